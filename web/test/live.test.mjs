// A report that contains the simulator, in a browser. POLYPATH_PAGES is a folder with live.html and expected.json, which
// tests/playground/test_browser.py makes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { fits, opened as openedAt, shows, violations } from "../browser.mjs";

const pages = process.env.POLYPATH_PAGES;
const { recorded, changed, changedCommand } = JSON.parse(readFileSync(join(pages, "expected.json"), "utf8"));
const address = pathToFileURL(join(pages, "live.html")).href;

const opened = (hash, how) => openedAt(address + hash, how);

test("a run is simulated again as it was recorded, and then with a change", async () => {
  const page = await opened("#run-1");
  await shows(page, recorded);
  await page.getByRole("link", { name: "Change this run" }).click();
  await page.waitForSelector(".status[data-state=done]");
  await shows(page, recorded);
  await page.locator('[data-knob="link.path1.delay"]').fill("60");
  await page.locator('[data-knob="link.path1.delay"]').blur();
  await shows(page, changed);
  assert.equal(await page.locator("[data-command]").textContent(), changedCommand);
  const url = page.url();
  assert.match(url, /#live-1&link\.path1\.delay=60$/);
  await page.reload();
  await shows(page, changed);
  await page.getByRole("link", { name: "The run as it was recorded" }).click();
  await shows(page, recorded);
  assert.match(page.url(), /#run-1$/);
  assert.deepEqual(page.faults, []);
  await page.close();
});

test("a run of the kernel has nothing to change", async () => {
  const page = await opened("#run-2");
  assert.equal(await page.getByRole("link", { name: "Change this run" }).count(), 0);
  await page.goto(`${address}#live-2`);
  await page.waitForSelector("main[data-ready]");
  assert.equal(await page.locator(".knobs").count(), 0);
  await page.close();
});

for (const scheme of ["light", "dark"]) {
  test(`it is accessible and fits a phone, ${scheme}`, async () => {
    const page = await opened("#live-1", { width: 400, scheme });
    assert.deepEqual(await violations(page), []);
    assert.ok(await fits(page));
    await page.close();
  });
}
