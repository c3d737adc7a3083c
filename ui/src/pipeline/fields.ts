import type { BatchPoint, Param } from "../api/types";

export type Kind = "choice" | "integer" | "json" | "lines" | "text" | "time" | "toggle";
export type Values = Record<string, string | boolean>;

const listTypes = ({ schema }: Param): string[] => [schema.type ?? "string"].flat();

/** Tells how a DAG's parameter is asked for. */
export const kindOf = (param: Param): Kind => {
  const types = listTypes(param);

  if (param.schema.enum) {
    return "choice";
  }
  if (types.includes("boolean")) {
    return "toggle";
  }
  if (types.includes("integer")) {
    return "integer";
  }
  if (types.includes("object")) {
    return "json";
  }
  if (types.includes("array")) {
    return "lines";
  }

  return param.schema.format === "date-time" ? "time" : "text";
};

const spell = (value: unknown, kind: Kind): string | boolean => {
  if (kind === "toggle") {
    return Boolean(value);
  }
  if (value === null || value === undefined) {
    return "";
  }
  if (kind === "lines" && Array.isArray(value)) {
    return value.join("\n");
  }

  return kind === "json" ? JSON.stringify(value) : String(value);
};

const read = (value: string | boolean, kind: Kind): unknown => {
  if (typeof value === "boolean") {
    return value;
  }
  if (value.trim() === "") {
    return null;
  }
  switch (kind) {
    case "integer":
      return Number(value);
    case "json":
      return JSON.parse(value);
    case "lines":
      return value.split("\n").filter(Boolean);
    case "time":
      return new Date(value).toISOString();
    default:
      return value;
  }
};

/** Fills in the form: the DAG's own defaults, and what is known already. */
export const fill = (params: Record<string, Param>, known: Record<string, unknown>): Values =>
  Object.fromEntries(
    Object.entries(params).map(([name, param]) => [name, spell(known[name] ?? param.value, kindOf(param))]),
  );

/** Reads the form as the run's configuration; raises where a field is not JSON. */
export const readForm = (params: Record<string, Param>, values: Values): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(params).map(([name, param]) => [name, read(values[name] ?? "", kindOf(param))]),
  );

type Offsets = Record<string, Record<string, number>>;

const isOffsets = (value: unknown): value is Offsets =>
  typeof value === "object" &&
  value !== null &&
  Object.values(value).every((part) => typeof part === "object" && part !== null);

/** Suggests the range that the newest batch read, as a backfill asks for it. */
export const suggestRange = (batch: BatchPoint | undefined): Record<string, unknown> => {
  const [range, ...others] = batch?.offsets ?? [];

  if (range === undefined || others.length > 0) {
    return {};
  }
  const [start, end] = [range.startOffset, range.endOffset] as [Record<string, number> | null, Record<string, number>];

  if (typeof end?.reservoirVersion === "number") {
    return { first_version: start?.reservoirVersion ?? 0, last_version: Math.max(0, end.reservoirVersion - 1) };
  }
  if (!isOffsets(end) || Object.keys(end).length === 0) {
    return {};
  }
  const from = isOffsets(start) ? (start as Offsets) : {};
  const offsets = Object.entries(end as Offsets).map(([topic, partitions]) => [
    topic,
    Object.fromEntries(
      Object.entries(partitions)
        .map(([partition, last]) => [partition, [from[topic]?.[partition] ?? 0, last]] as const)
        .filter(([, [first, last]]) => first < last),
    ),
  ]);

  return { offsets: Object.fromEntries(offsets) };
};
