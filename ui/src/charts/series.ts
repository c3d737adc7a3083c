import type { BatchPoint } from "../api/types";

export type Axis = "batch" | "time";

export type Series = {
  name: string;
  values: Array<number | null>;
  /** A second scale, at the right. */
  isRight?: boolean;
};

export type ChartData = {
  title: string;
  unit: string;
  rightUnit?: string;
  isStacked?: boolean;
  /** What stands at each moment, and is not added up. */
  isLevel?: boolean;
  series: Series[];
};

/** The whole, which the other phases are parts of. */
const WHOLE = "triggerExecution";

/** Spark's names of the phases, in words. */
const PHASES: Record<string, string> = {
  addBatch: "write",
  commitOffsets: "commit",
  getBatch: "fetch",
  latestOffset: "find the end",
  queryPlanning: "plan",
  walCommit: "log offsets",
};

const listPhases = (batches: BatchPoint[]): string[] => {
  const found = new Set(batches.flatMap((batch) => Object.keys(batch.phases_ms)));
  const named = Object.keys(PHASES).filter((phase) => found.has(phase));

  return [...named, ...[...found].filter((phase) => phase !== WHOLE && !(phase in PHASES)).sort()];
};

const isAny = (series: Series) => series.values.some((value) => value !== null && value !== 0);

/** Lays out batches, oldest first, as what the charts show; a chart of nothing is left out. */
export const listCharts = (batches: BatchPoint[]): ChartData[] => {
  const of = (pick: (batch: BatchPoint) => number | null) => batches.map(pick);
  const unit = batches.find((batch) => batch.planned_lag)?.planned_lag?.unit ?? "records";
  const charts: ChartData[] = [
    {
      series: [
        { name: "read", values: of((batch) => batch.read_rows) },
        { name: "written", values: of((batch) => batch.written_rows) },
        { name: "quarantined", values: of((batch) => batch.quarantined) },
      ],
      title: "Rows",
      unit: "rows",
    },
    {
      isStacked: true,
      series: listPhases(batches).map((phase) => ({
        name: PHASES[phase] ?? phase,
        values: of((batch) => (batch.phases_ms[phase] ?? 0) / 1000),
      })),
      title: "Duration by phase",
      unit: "s",
    },
    {
      isLevel: true,
      series: [
        { name: "when planned", values: of((batch) => batch.planned_lag?.count ?? null) },
        { name: "left after the batch", values: of((batch) => batch.lag) },
      ].filter((series) => series.values.some((value) => value !== null)),
      title: "Lag",
      unit,
    },
    {
      isLevel: true,
      rightUnit: "rows",
      series: [
        { name: "size", values: of((batch) => batch.state_bytes) },
        { isRight: true, name: "rows", values: of((batch) => batch.state_rows) },
      ],
      title: "State",
      unit: "bytes",
    },
    { series: [{ name: "too late", values: of((batch) => batch.late_rows) }], title: "Late rows", unit: "rows" },
  ];

  return charts.filter((chart) => chart.series.some(isAny) || chart.title === "Rows" || chart.title === "Lag");
};

/** Names what a quiet pipeline has no chart of. */
export const listQuiet = (charts: ChartData[]): string[] =>
  [
    ["State", "It keeps no state."],
    ["Late rows", "No row came too late."],
  ]
    .filter(([title]) => !charts.some((chart) => chart.title === title))
    .map(([, told]) => told!);
