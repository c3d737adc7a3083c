/** What the API answers with; see src/tidegate/airflow/plugin/models.py. */

export type Health = "ok" | "warning" | "error" | "new";

export type Lag = {
  unit: "records" | "files" | "versions";
  count: number;
  seconds: number | null;
  headroom_seconds: number | null;
  measured_at: string;
};

export type Incident = { rule: string; since: string; message: string };

export type PipelineHealth = {
  pipeline: string;
  health: Health;
  state: string;
  reason: string;
  description: string;
  notes: string[];
  run_id: string | null;
  planned_at: string | null;
  batch: number | null;
  committed_at: string | null;
  pending_batch: number | null;
  rows: number | null;
  rows_per_second: number | null;
  lag: Lag | null;
  quarantine_share: number | null;
  late_rows: number;
  state_bytes: number;
  incidents: Incident[];
};

export type FleetPage = { now: string; total: number; pipelines: PipelineHealth[] };

export type PartitionPosition = {
  topic: string;
  partition: number;
  committed: number | null;
  planned: number | null;
};

export type SourcePosition = {
  source: string;
  kind: string;
  committed: string;
  planned: string;
  partitions: PartitionPosition[];
};

export type PipelineDetail = {
  now: string;
  health: PipelineHealth;
  positions: SourcePosition[];
  query_id: string | null;
  watermark: string | null;
  source_types: string[];
  schedule: string;
  has_quarantine: boolean;
  after: string[];
};

export type SourceRange = { startOffset: unknown; endOffset: unknown; description?: string };

export type BatchPoint = {
  batch_id: number;
  run_id: string;
  committed_at: string;
  seconds: number | null;
  read_rows: number | null;
  written_rows: number | null;
  rows_per_second: number | null;
  quarantined: number | null;
  is_replay: boolean;
  phases_ms: Record<string, number>;
  state_rows: number;
  state_bytes: number;
  late_rows: number;
  watermark: string | null;
  lag: number | null;
  planned_lag: Lag | null;
  offsets: SourceRange[];
};

export type BatchPage = {
  now: string;
  history: { batches: BatchPoint[]; next_before: number | null };
};

export type Fault = {
  code: string;
  severity: "error" | "warning" | "info";
  file: string;
  message: string;
  remedy: string;
};

export type Findings = { is_healthy: boolean; faults: Fault[] };

export type PartitionLag = {
  topic: string;
  partition: number;
  committed: number | null;
  end: number;
  lag_records: number;
  lag_seconds: number | null;
  headroom_seconds: number | null;
};

export type PartitionLags = { partitions: PartitionLag[]; problem: string | null };

export type Quarantine = {
  tallies: Array<{ rule: string; sink: string | null; rows: number; runs: number; last: string }>;
  rows: Array<{
    rule: string;
    reason: string | null;
    place: string;
    content: string;
    quarantined_at: string;
  }>;
};

export type Spec = { file: string; text: string };

/** Airflow's own. */
export type DagRun = {
  dag_run_id: string;
  state: string;
  run_type: string;
  start_date: string | null;
  duration: number | null;
};

export type Param = {
  value: unknown;
  description: string | null;
  schema: {
    type?: string | string[];
    enum?: unknown[];
    format?: string;
    title?: string;
    minimum?: number;
    maximum?: number;
  };
};
