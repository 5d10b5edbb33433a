// Rates as means over an interval.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = fileURLToPath(new URL("../src/smooth.ts", import.meta.url));
const made = await build({ entryPoints: [source], bundle: true, format: "esm", write: false });
const { interval, smoothed } = await import(`data:text/javascript,${encodeURIComponent(made.outputFiles[0].text)}`);

const connection = (count, p50) => ({ requests: { count }, subflows: [{ srtt_ms: { p50 } }] });
const series = (values, step = 0.1) => ({ t: values.map((_, row) => row * step), v: [values], of: values.length, extremes: 0 });

test("a square wave of requests becomes the mean over a few of them", () => {
  const wave = series([null, ...Array.from({ length: 400 }, (_, row) => (row % 4 === 0 ? 8 : 0))]);
  const width = interval(connection(100, 10), wave);
  assert.equal(width, 2);
  const means = smoothed(wave, width).v[0].slice(41);
  assert.ok(means.every((value) => Math.abs(value - 2) < 1e-6));
});

test("a transfer keeps its samples where its RTT is short", () => {
  const steady = series([null, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  assert.equal(smoothed(steady, interval(connection(0, 1), steady)), steady);
});

test("a mean over an interval is what arrived in it, from the first sample on", () => {
  const rates = series([null, 4, 2, 6, 0], 1);
  assert.deepEqual(smoothed(rates, 2).v[0], [null, 4, 3, 4, 3]);
  assert.deepEqual(smoothed({ ...rates, v: [[null, 4, null, 6, 0]] }, 2).v[0], [null, 4, null, 3, 3]);
});
