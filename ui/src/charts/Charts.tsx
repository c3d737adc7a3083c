import { useMemo, useState } from "react";

import type { BatchPoint } from "../api/types";
import { Section } from "../parts/Section";
import { ChartFigure } from "./ChartFigure";
import { type Axis, listCharts, listQuiet } from "./series";

const AXES: Array<[Axis, string]> = [
  ["batch", "by batch"],
  ["time", "by time"],
];

/** How the newest batches went. */
export const Charts = ({ batches }: { readonly batches: BatchPoint[] }) => {
  const [axis, setAxis] = useState<Axis>("batch");
  const oldestFirst = useMemo(() => [...batches].reverse(), [batches]);
  const charts = useMemo(() => listCharts(oldestFirst), [oldestFirst]);
  const chooser = (
    <div aria-label="Axis of the charts" className="tg-choice" role="group">
      {AXES.map(([value, name]) => (
        <button aria-pressed={axis === value} key={value} onClick={() => setAxis(value)} type="button">
          {name}
        </button>
      ))}
    </div>
  );

  return (
    <Section aside={chooser} title="Charts">
      <div className="tg-charts">
        {charts.map((chart) => (
          <ChartFigure axis={axis} batches={oldestFirst} chart={chart} key={chart.title} />
        ))}
      </div>
      <p className="tg-muted">{listQuiet(charts).join(" ")}</p>
    </Section>
  );
};
