import type { PipelineDetail } from "../api/types";
import { Badge } from "../parts/Badge";
import { ago, bytes, count, moment, NONE, seconds, share } from "../parts/format";

const listFacts = ({ health, now, schedule, watermark }: PipelineDetail): Array<[string, string]> => [
  ["Runs", schedule],
  ["Last commit", ago(health.committed_at, now)],
  ["Batch", count(health.batch)],
  ["Pending", health.pending_batch === null ? NONE : `batch ${health.pending_batch}`],
  ["Rows/s", count(health.rows_per_second)],
  ["Lag", health.lag ? `${count(health.lag.count)} ${health.lag.unit}` : NONE],
  ["Behind", seconds(health.lag?.seconds)],
  ["Lag as of", health.lag ? ago(health.lag.measured_at, now) : NONE],
  ["Kept for", seconds(health.lag?.headroom_seconds)],
  ["Quarantined", share(health.quarantine_share)],
  ["State", health.state_bytes ? bytes(health.state_bytes) : NONE],
  ["Watermark", watermark ? moment(watermark) : NONE],
];

/** Where the pipeline stands, and what somebody should know. */
export const Summary = ({ detail }: { readonly detail: PipelineDetail }) => {
  const { health } = detail;

  return (
    <div className="tg-section">
      <p>
        <Badge kind={health.health}>{health.state.replace("_", " ")}</Badge> {health.reason}
      </p>
      {health.notes.length > 0 ? (
        <ul className="tg-notes">
          {health.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      ) : undefined}
      {health.incidents.length > 0 ? (
        <ul aria-label="Open incidents" className="tg-notes">
          {health.incidents.map((incident) => (
            <li key={incident.rule}>
              <Badge kind="error">{incident.rule}</Badge> {incident.message}, since {moment(incident.since)}
            </li>
          ))}
        </ul>
      ) : undefined}
      <dl className="tg-facts">
        {listFacts(detail).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
};
