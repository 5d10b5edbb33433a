// Plans with events. POLYPATH_CASES is a file of plans, kinds of events, events, the texts of `--set`, and the plans that these give.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const { outputFiles } = await build({
  entryPoints: [fileURLToPath(new URL("../src/schedule.ts", import.meta.url))],
  bundle: true,
  format: "esm",
  write: false,
});
const { eventsOf, planWithEvents, settingsOfEvents, written } = await import(
  `data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`
);

for (const { name, plan, kinds, schedule, given, expected } of JSON.parse(readFileSync(process.env.POLYPATH_CASES, "utf8"))) {
  test(`${name} with ${given.join(" ")}`, () => {
    const before = JSON.stringify(plan);
    assert.deepEqual(planWithEvents(plan, kinds, schedule), expected);
    assert.equal(JSON.stringify(plan), before, "the preset's plan stays as it is");
    assert.deepEqual(settingsOfEvents(kinds, schedule), given);
    const address = new URLSearchParams(schedule.map((event) => ["event", written(event)]));
    assert.deepEqual(eventsOf(address, kinds, plan), schedule);
  });
}

test("an address that names no event adds none", () => {
  const kinds = { first: 1, kinds: [{ name: "goes down", links: ["a"] }, { name: "rate", links: ["a"], unit: "Mbps", most: 1000 }] };
  const plan = { duration_ns: 1e10, links: [{ name: "a" }], events: [] };
  for (const text of ["", "1", "1~b~goes down", "11~a~goes down", "-1~a~goes down", "x~a~goes down", "1~a~other", "1~a~rate", "1~a~rate~1001", "~a~goes down"])
    assert.deepEqual(eventsOf(new URLSearchParams({ event: text }), kinds, plan), [], text);
  assert.equal(eventsOf(new URLSearchParams({ event: "0~a~rate~7" }), kinds, plan).length, 1);
});
