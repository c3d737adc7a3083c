/** Numbers and times as people read them. */

const UNITS: Array<[number, string]> = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

export const NONE = "–";

export const count = (value: number | null | undefined): string =>
  value === null || value === undefined ? NONE : value.toLocaleString("en", { maximumFractionDigits: 1 });

export const seconds = (value: number | null | undefined): string => {
  if (value === null || value === undefined) {
    return NONE;
  }
  const size = Math.abs(value);
  const [length, unit] = UNITS.find(([least]) => size >= least) ?? [1, "s"];
  const number = value / length;

  return `${size < 10 || length > 60 ? Number(number.toFixed(1)) : Math.round(number)} ${unit}`;
};

export const share = (value: number | null | undefined): string => {
  if (value === null || value === undefined) {
    return NONE;
  }
  if (value > 0 && value < 0.0001) {
    return "< 0.01 %";
  }

  return `${Number((value * 100).toFixed(2))} %`;
};

export const bytes = (value: number): string => {
  const power = value < 1 ? 0 : Math.min(4, Math.floor(Math.log10(value) / 3));

  return `${Number((value / 1000 ** power).toFixed(1))} ${["B", "kB", "MB", "GB", "TB"][power]}`;
};

export const ageOf = (moment: string | null, now: string): number | null =>
  moment === null ? null : Math.max(0, (Date.parse(now) - Date.parse(moment)) / 1000);

export const ago = (moment: string | null, now: string): string => {
  const age = ageOf(moment, now);

  return age === null ? NONE : `${seconds(age)} ago`;
};

export const moment = (value: string | null): string =>
  value === null ? NONE : new Date(value).toLocaleString("sv");
