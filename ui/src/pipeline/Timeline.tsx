import type { BatchPoint, PipelineHealth } from "../api/types";
import { count, moment, seconds } from "../parts/format";
import { Section } from "../parts/Section";

type Props = { readonly batches: BatchPoint[]; readonly health: PipelineHealth };

const LEGEND = ["committed", "replayed", "pending"];

const tellRun = (run: string, before: string | undefined) =>
  before === undefined || run === before ? "" : " tg-begins";

/** The newest batches in a row; a gap is where a run began. */
export const Timeline = ({ batches, health }: Props) => (
  <Section
    aside={
      <span className="tg-muted">
        {LEGEND.map((kind) => (
          <span key={kind}>
            <span aria-hidden="true" className={`tg-cell tg-cell-${kind}`} /> {kind}{" "}
          </span>
        ))}
      </span>
    }
    title="Timeline"
  >
    <ol aria-label="Batches, the newest first" className="tg-timeline" tabIndex={0}>
      {health.pending_batch === null ? undefined : (
        <li className="tg-cell tg-cell-pending" title={`batch ${health.pending_batch}: pending`}>
          <span className="tg-hidden">batch {health.pending_batch}: pending</span>
        </li>
      )}
      {batches.map((batch, place) => {
        const kind = batch.is_replay ? "replayed" : "committed";
        const told = `batch ${batch.batch_id}: ${kind}, ${count(batch.read_rows)} rows in ${seconds(batch.seconds)}, ${moment(batch.committed_at)}`;

        return (
          <li
            className={`tg-cell tg-cell-${kind}${tellRun(batch.run_id, batches[place - 1]?.run_id)}`}
            key={batch.batch_id}
            title={told}
          >
            <span className="tg-hidden">{told}</span>
          </li>
        );
      })}
    </ol>
  </Section>
);
