import { describe, expect, it } from "vitest";

import { ago, bytes, count, seconds, share } from "./format";

describe("numbers and times", () => {
  it.each([
    [null, "–"],
    [0, "0 s"],
    [4.26, "4.3 s"],
    [59, "59 s"],
    [61, "1 min"],
    [5400, "1.5 h"],
    [200_000, "2.3 d"],
    [-100, "-2 min"],
  ])("spells %s seconds as %s", (value, told) => expect(seconds(value)).toBe(told));

  it.each([
    [null, "–"],
    [0, "0 %"],
    [0.00001, "< 0.01 %"],
    [0.0123, "1.23 %"],
    [1, "100 %"],
  ])("spells the share %s as %s", (value, told) => expect(share(value)).toBe(told));

  it.each([
    [0, "0 B"],
    [999, "999 B"],
    [1500, "1.5 kB"],
    [2_000_000, "2 MB"],
  ])("spells %s bytes as %s", (value, told) => expect(bytes(value)).toBe(told));

  it("groups digits", () => expect(count(1_234_567)).toBe("1,234,567"));

  it("tells how long ago something was", () => {
    expect(ago("2026-11-18T12:00:00Z", "2026-11-18T12:10:00Z")).toBe("10 min ago");
    expect(ago(null, "2026-11-18T12:10:00Z")).toBe("–");
  });
});
