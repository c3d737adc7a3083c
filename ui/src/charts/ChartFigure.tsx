import { useEffect, useMemo, useRef } from "react";

import type { BatchPoint } from "../api/types";
import { bytes, count, moment } from "../parts/format";
import { Table } from "../parts/Table";
import { Chart } from "./library";
import { configure, readPalette } from "./options";
import type { Axis, ChartData } from "./series";
import { useTheme } from "./useTheme";

type Props = { readonly axis: Axis; readonly batches: BatchPoint[]; readonly chart: ChartData };

const describe = (chart: ChartData): string => {
  const told = chart.series.map((series) => {
    const known = series.values.filter((value) => value !== null);

    return known.length === 0
      ? `${series.name}: nothing known`
      : `${series.name}: newest ${count(known.at(-1))}, most ${count(Math.max(...known))}`;
  });

  return `${chart.title} in ${chart.unit}. ${told.join("; ")}.`;
};

const ValueTable = ({ batches, chart }: Omit<Props, "axis">) => (
  <Table
    caption={`${chart.title} by batch`}
    columns={[
      { cell: (place: number) => batches[place]?.batch_id, isNumber: true, name: "Batch" },
      { cell: (place: number) => moment(batches[place]?.committed_at ?? null), name: "Committed" },
      ...chart.series.map((series) => ({
        cell: (place: number) => {
          const value = series.values[place];
          const isSize = chart.unit === "bytes" && !series.isRight;

          return isSize && typeof value === "number" ? bytes(value) : count(value);
        },
        isNumber: true,
        name: series.name,
      })),
    ]}
    keyOf={(place) => batches[place]?.batch_id ?? place}
    rows={batches.map((_, place) => place).reverse()}
  />
);

/** A chart, with what it says in words and as a table. */
export const ChartFigure = ({ axis, batches, chart }: Props) => {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  const told = useMemo(() => describe(chart), [chart]);

  useEffect(() => {
    if (canvas.current === null) {
      return undefined;
    }
    const drawn = new Chart(canvas.current, configure(chart, batches, axis, readPalette(canvas.current)));

    return () => drawn.destroy();
  }, [axis, batches, chart, theme]);

  return (
    <figure className="tg-chart">
      <figcaption>{chart.title}</figcaption>
      <div className="tg-canvas">
        <canvas aria-label={told} ref={canvas} role="img" />
      </div>
      <details>
        <summary>{chart.title} as a table</summary>
        <ValueTable batches={batches} chart={chart} />
      </details>
    </figure>
  );
};
