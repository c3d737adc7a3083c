import { expect, it } from "vitest";

import type { PipelineHealth } from "../api/types";
import { filterBy, sortBy, turn } from "./order";

const one = (pipeline: string, batch: number | null, state = "idle"): PipelineHealth =>
  ({ batch, description: "", health: "ok", pipeline, state }) as unknown as PipelineHealth;
const ROWS = [one("b", 2), one("c", null), one("a", 10, "failed"), one("d", 2)];
const byBatch = (row: PipelineHealth) => row.batch ?? undefined;
const names = (rows: PipelineHealth[]) => rows.map((row) => row.pipeline).join("");

it("sorts numbers as numbers, then by name, what is unknown last", () => {
  expect(names(sortBy(ROWS, byBatch, false, ""))).toBe("bdac");
  expect(names(sortBy(ROWS, byBatch, true, ""))).toBe("abdc");
});

it("finds pipelines by words of name and state", () => {
  expect(names(filterBy(ROWS, " FAIL "))).toBe("a");
  expect(names(filterBy(ROWS, ""))).toBe("bcad");
  expect(names(filterBy(ROWS, "a nothing"))).toBe("");
});

it("turns a column around when it is chosen again", () => {
  const up = turn({ column: "a", isDescending: true }, "b");

  expect(up).toEqual({ column: "b", isDescending: false });
  expect(turn(up, "b")).toEqual({ column: "b", isDescending: true });
});
