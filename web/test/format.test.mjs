// Numbers as text.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const { outputFiles } = await build({
  entryPoints: [fileURLToPath(new URL("../src/format.ts", import.meta.url))],
  bundle: true,
  format: "esm",
  write: false,
});
const { duration, instant, mbps, percent, rounded, tick, took } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);

test("numbers on an axis differ, and are those of their places", () => {
  const axis = (...values) => values.map((value) => tick(value, values[1] - values[0]));
  assert.deepEqual(axis(0, 250_000, 500_000, 750_000, 1_000_000, 1_250_000), ["0", "250000", "500000", "750000", "1e+6", "1.25e+6"]);
  assert.deepEqual(axis(12_034.5665, 12_034.567, 12_034.5675), ["12034.5665", "12034.567", "12034.5675"]);
  assert.deepEqual(axis(0, 0.1, 0.2, 0.1 + 0.2), ["0", "0.1", "0.2", "0.3"]);
});

test("times have digits as long as what they are of", () => {
  assert.deepEqual([instant(2.5, 10), instant(0.00025, 0.001), instant(9000, 10_000)], ["2.500 s", "0.000250 s", "9000.000 s"]);
  assert.deepEqual([took(2.5), took(0.4567), took(0.00021), took(null)], ["2.500 s", "0.457 s", "0.000210 s", ""]);
  assert.deepEqual([duration(999.4), duration(999.6), duration(1000)], ["999 s", "1000 s", "1000 s"]);
});

test("what lies exactly between two is rounded as the terminal does", () => {
  assert.deepEqual([mbps(1.125), mbps(1.375), mbps(2.675), percent(1 / 16), percent(3 / 16)], ["1.12", "1.38", "2.67", "6.2%", "18.8%"]);
  assert.deepEqual([rounded(5586.5), rounded(22.625), rounded(0.5), rounded(0)], ["5,586", "22.62", "0.5", "0"]);
  assert.deepEqual([rounded(2.5, 30), rounded(1245, 630), rounded(0.125, 0.1)], ["2", "1,240", "0.12"]);
});
