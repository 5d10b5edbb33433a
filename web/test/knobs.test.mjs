// Plans with settings. POLYPATH_CASES is a file of plans, knobs, settings and the plans that `--set` gives.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const { outputFiles } = await build({
  entryPoints: [fileURLToPath(new URL("../src/knobs.ts", import.meta.url))],
  bundle: true,
  format: "esm",
  write: false,
});
const { planWith, settingsOf } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);

for (const { name, plan, knobs, settings, expected } of JSON.parse(readFileSync(process.env.POLYPATH_CASES, "utf8"))) {
  const given = JSON.stringify(settings);
  test(`${name} with ${given}`, () => {
    const before = JSON.stringify(plan);
    assert.deepEqual(planWith(plan, knobs, settings), expected);
    assert.equal(JSON.stringify(plan), before, "the preset's plan stays as it is");
    const address = new URLSearchParams(Object.entries(settings).map(([key, value]) => [key, `${value}`]));
    assert.deepEqual(settingsOf(address, knobs), settings);
  });
}

test("an address that names no setting changes nothing", () => {
  const knobs = [
    { kind: "number", key: "delay", min: 0, max: 500, whole: false, value: 20, places: [] },
    { kind: "choice", key: "scheduler", value: "default", options: [{ name: "default" }, { name: "ecf" }] },
  ];
  for (const address of ["delay=501", "delay=", "delay=x", "scheduler=x", "other=1"]) assert.deepEqual(settingsOf(new URLSearchParams(address), knobs), {});
  assert.deepEqual(settingsOf(new URLSearchParams("delay=0&scheduler=ecf"), knobs), { delay: 0, scheduler: "ecf" });
});
