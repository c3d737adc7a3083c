import type { PipelineHealth } from "../api/types";

export type Order = { column: string; isDescending: boolean };
export type Rank = (one: PipelineHealth, now: string) => number | string | undefined;

const compare = (left: number | string, right: number | string) =>
  typeof left === "number" && typeof right === "number"
    ? left - right
    : String(left).localeCompare(String(right));

/** Sorts by a column, by name where that is equal; what nobody knows comes last both ways. */
export const sortBy = (rows: PipelineHealth[], rank: Rank, isDescending: boolean, now: string) =>
  [...rows].sort((one, other) => {
    const [left, right] = [rank(one, now), rank(other, now)];

    if (left === undefined || right === undefined) {
      return Number(left === undefined) - Number(right === undefined);
    }

    return (isDescending ? -1 : 1) * compare(left, right) || one.pipeline.localeCompare(other.pipeline);
  });

/** Keeps the pipelines that have every word in their name, state, health or description. */
export const filterBy = (rows: PipelineHealth[], text: string) => {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);

  return rows.filter((one) => {
    const told = `${one.pipeline} ${one.state} ${one.health} ${one.description}`.toLowerCase();

    return words.every((word) => told.includes(word));
  });
};

/** Turns a column around that is sorted by already; another begins upwards. */
export const turn = (order: Order, column: string): Order => ({
  column,
  isDescending: order.column === column && !order.isDescending,
});
