import type { ChartConfiguration, ChartDataset } from "chart.js";

import type { BatchPoint } from "../api/types";
import { bytes, count } from "../parts/format";
import type { Axis, ChartData, Series } from "./series";

export type Palette = { text: string; grid: string; series: string[] };

const SERIES = 8;
const UPRIGHT_TICKS = 8;

const tellTime = (ms: number) => new Date(ms).toLocaleString("sv").slice(5, 16);
const tellValue = (value: number, unit: string) => (unit === "bytes" ? bytes(value) : count(value));

/** Reads the colours that the style sheet has for the theme at hand. */
export const readPalette = (element: Element): Palette => {
  const style = getComputedStyle(element);
  const read = (name: string) => style.getPropertyValue(name).trim();

  return {
    grid: read("--tg-grid"),
    series: Array.from({ length: SERIES }, (_, index) => read(`--tg-series-${index + 1}`)),
    text: style.color,
  };
};

const isDrawnByLines = (chart: ChartData, axis: Axis) => axis === "time" || Boolean(chart.isLevel);

const toDataset = (
  series: Series,
  index: number,
  chart: ChartData,
  xs: Array<number | string>,
  axis: Axis,
  palette: Palette,
): ChartDataset<"bar" | "line", Array<{ x: number; y: number | null }>> => {
  const colour = palette.series[index % SERIES]!;
  const isLine = isDrawnByLines(chart, axis);

  return {
    backgroundColor: colour,
    borderColor: colour,
    borderWidth: isLine ? 2 : 0,
    data: xs.map((x, place) => ({ x: x as number, y: series.values[place] ?? null })),
    label: series.name,
    yAxisID: series.isRight ? "right" : "y",
    ...(isLine ? { fill: Boolean(chart.isStacked), pointRadius: 2 } : {}),
  };
};

/** Makes of a chart what the library draws: lines for levels and by time, else bars. */
export const configure = (
  chart: ChartData,
  batches: BatchPoint[],
  axis: Axis,
  palette: Palette,
): ChartConfiguration<"bar" | "line", Array<{ x: number; y: number | null }>> => {
  const xs = batches.map((batch) => (axis === "batch" ? String(batch.batch_id) : Date.parse(batch.committed_at)));
  const scale = (unit: string) => ({
    beginAtZero: true,
    border: { display: false },
    grid: { color: palette.grid },
    stacked: chart.isStacked,
    ticks: { callback: (value: number | string) => tellValue(Number(value), unit), color: palette.text, maxTicksLimit: 6 },
    title: { color: palette.text, display: true, text: unit },
  });
  const ticks = { color: palette.text, maxRotation: 0, maxTicksLimit: UPRIGHT_TICKS };

  return {
    data: {
      datasets: chart.series.map((series, index) => toDataset(series, index, chart, xs, axis, palette)),
    },
    options: {
      animation: false,
      interaction: { intersect: false, mode: "index" },
      maintainAspectRatio: false,
      plugins: {
        legend: { display: chart.series.length > 1, labels: { boxHeight: 8, boxWidth: 12, color: palette.text } },
        tooltip: {
          callbacks: {
            label: (item) =>
              `${item.dataset.label}: ${tellValue(
                item.parsed.y ?? 0,
                item.dataset.yAxisID === "right" ? (chart.rightUnit ?? "") : chart.unit,
              )}`,
            title: (items) => {
              const batch = batches[items[0]?.dataIndex ?? 0];

              return batch ? `batch ${batch.batch_id}, ${tellTime(Date.parse(batch.committed_at))}` : "";
            },
          },
        },
      },
      scales: {
        ...(chart.rightUnit
          ? { right: { ...scale(chart.rightUnit), grid: { display: false }, position: "right" as const } }
          : {}),
        x:
          axis === "batch"
            ? { grid: { display: false }, stacked: chart.isStacked, ticks, type: "category" as const }
            : {
                grid: { display: false },
                ticks: { ...ticks, callback: (value: number | string) => tellTime(Number(value)) },
                type: "linear" as const,
              },
        y: scale(chart.unit),
      },
      responsive: true,
    },
    type: isDrawnByLines(chart, axis) ? "line" : "bar",
  };
};
