import type { ReactNode } from "react";
import { Link } from "react-router-dom";

import type { PipelineHealth } from "../api/types";
import { Badge } from "../parts/Badge";
import { ageOf, ago, count, moment, NONE, seconds, share } from "../parts/format";

export type FleetColumn = {
  id: string;
  name: string;
  /** What rows are sorted by; undefined where nobody knows, and then last. */
  rank: (one: PipelineHealth, now: string) => number | string | undefined;
  cell: (one: PipelineHealth, now: string) => ReactNode;
  isNumber?: boolean;
};

const WORST_FIRST = ["error", "warning", "ok", "new"];
const known = <T,>(value: T | null | undefined): T | undefined => value ?? undefined;

const tellLag = ({ lag }: PipelineHealth, now: string) =>
  lag ? (
    <span title={`as of ${ago(lag.measured_at, now)}`}>
      {count(lag.count)} {lag.unit}
    </span>
  ) : (
    NONE
  );

export const COLUMNS: FleetColumn[] = [
  {
    cell: (one) => <Link to={encodeURIComponent(one.pipeline)}>{one.pipeline}</Link>,
    id: "pipeline",
    name: "Pipeline",
    rank: (one) => one.pipeline,
  },
  {
    cell: (one) => (
      <span title={[one.reason, ...one.notes].filter(Boolean).join("; ")}>
        <Badge kind={one.health}>{one.state.replace("_", " ")}</Badge>
      </span>
    ),
    id: "health",
    name: "Health",
    rank: (one) => WORST_FIRST.indexOf(one.health),
  },
  {
    cell: (one, now) => <span title={moment(one.committed_at)}>{ago(one.committed_at, now)}</span>,
    id: "age",
    isNumber: true,
    name: "Last commit",
    rank: (one, now) => known(ageOf(one.committed_at, now)),
  },
  {
    cell: (one) => count(one.batch),
    id: "batch",
    isNumber: true,
    name: "Batch",
    rank: (one) => known(one.batch),
  },
  {
    cell: (one) => count(one.rows_per_second),
    id: "rate",
    isNumber: true,
    name: "Rows/s",
    rank: (one) => known(one.rows_per_second),
  },
  { cell: tellLag, id: "lag", isNumber: true, name: "Lag", rank: (one) => known(one.lag?.count) },
  {
    cell: (one) => seconds(one.lag?.seconds),
    id: "behind",
    isNumber: true,
    name: "Behind",
    rank: (one) => known(one.lag?.seconds),
  },
  {
    cell: (one) => (one.pending_batch === null ? NONE : `batch ${one.pending_batch}`),
    id: "pending",
    isNumber: true,
    name: "Pending",
    rank: (one) => known(one.pending_batch),
  },
  {
    cell: (one) => seconds(one.lag?.headroom_seconds),
    id: "headroom",
    isNumber: true,
    name: "Kept for",
    rank: (one) => known(one.lag?.headroom_seconds),
  },
  {
    cell: (one) => share(one.quarantine_share),
    id: "quarantine",
    isNumber: true,
    name: "Quarantined",
    rank: (one) => known(one.quarantine_share),
  },
];
