import { expect, it } from "vitest";

import type { BatchPoint, Param } from "../api/types";
import { fill, kindOf, readForm, suggestRange } from "./fields";

const param = (schema: Param["schema"], value: unknown = null): Param => ({ description: null, schema, value });
const PARAMS = {
  dry_run: param({ type: "boolean" }, true),
  first_version: param({ type: ["null", "integer"] }),
  mode: param({ enum: ["replace", "merge"], type: "string" }, "replace"),
  offsets: param({ type: ["null", "object"] }),
  paths: param({ type: ["null", "array"] }),
  pipeline: param({ type: "string" }),
  since: param({ format: "date-time", type: ["null", "string"] }),
};

it("tells how each parameter is asked for", () => {
  expect(Object.values(PARAMS).map(kindOf)).toEqual(["toggle", "integer", "choice", "json", "lines", "text", "time"]);
});

it("fills in defaults and what is known, and reads the same again", () => {
  const known = { offsets: { orders: { "0": [1, 2] } }, paths: ["a", "b"], pipeline: "orders" };
  const values = fill(PARAMS, known);

  expect(values).toMatchObject({ dry_run: true, mode: "replace", paths: "a\nb", pipeline: "orders", since: "" });
  expect(readForm(PARAMS, values)).toEqual({ ...known, dry_run: true, first_version: null, mode: "replace", since: null });
  expect(readForm(PARAMS, { ...values, first_version: "7" })).toMatchObject({ first_version: 7 });
  expect(() => readForm(PARAMS, { ...values, offsets: "{" })).toThrow();
});

const batch = (startOffset: unknown, endOffset: unknown) =>
  ({ offsets: [{ endOffset, startOffset }] }) as unknown as BatchPoint;

it("suggests what the newest batch read", () => {
  const kafka = batch({ t: { "0": 5, "1": 7 } }, { t: { "0": 9, "1": 7 } });

  expect(suggestRange(kafka)).toEqual({ offsets: { t: { "0": [5, 9] } } });
  expect(suggestRange(batch(null, { reservoirVersion: 4 }))).toEqual({ first_version: 0, last_version: 3 });
  expect(suggestRange(batch(null, { logOffset: 4 }))).toEqual({});
  expect(suggestRange(undefined)).toEqual({});
});
