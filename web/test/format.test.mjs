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
const { tick } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);

test("numbers on an axis differ, and are those of their places", () => {
  const axis = (...values) => values.map((value) => tick(value, values[1] - values[0]));
  assert.deepEqual(axis(0, 250_000, 500_000, 750_000, 1_000_000, 1_250_000), ["0", "250000", "500000", "750000", "1e+6", "1.25e+6"]);
  assert.deepEqual(axis(12_034.5665, 12_034.567, 12_034.5675), ["12034.5665", "12034.567", "12034.5675"]);
  assert.deepEqual(axis(0, 0.1, 0.2, 0.1 + 0.2), ["0", "0.1", "0.2", "0.3"]);
});
