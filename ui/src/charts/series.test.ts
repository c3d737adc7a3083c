import { expect, it } from "vitest";

import type { BatchPoint } from "../api/types";
import { listCharts, listQuiet } from "./series";

const batch = (more: Partial<BatchPoint>): BatchPoint =>
  ({
    batch_id: 0,
    lag: null,
    late_rows: 0,
    phases_ms: { addBatch: 1500, other: 2, triggerExecution: 1600 },
    planned_lag: null,
    quarantined: 0,
    read_rows: 10,
    state_bytes: 0,
    state_rows: 0,
    written_rows: 10,
    ...more,
  }) as BatchPoint;
const titles = (batches: BatchPoint[]) => listCharts(batches).map((chart) => chart.title);

it("leaves out what a pipeline has none of, and says so", () => {
  expect(titles([batch({})])).toEqual(["Rows", "Duration by phase", "Lag"]);
  expect(listQuiet(listCharts([batch({})]))).toEqual(["It keeps no state.", "No row came too late."]);
  expect(titles([batch({ late_rows: 3, state_bytes: 9 })])).toContain("Late rows");
});

it("shows phases without the whole that they are parts of", () => {
  const chart = listCharts([batch({})])[1]!;

  expect(chart.series.map(({ name }) => name)).toEqual(["write", "other"]);
  expect(chart.series[0]!.values).toEqual([1.5]);
});

it("tells lag in what the source is counted in", () => {
  const planned = { count: 4, unit: "files" } as BatchPoint["planned_lag"];
  const chart = listCharts([batch({ planned_lag: planned })])[2]!;

  expect([chart.unit, chart.series.map(({ name }) => name)]).toEqual(["files", ["when planned"]]);
});
