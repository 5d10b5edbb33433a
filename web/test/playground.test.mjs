// The playground in a browser. POLYPATH_PAGES is a folder with playground.html and expected.json, which
// tests/playground/test_browser.py makes: runs of the command, with what they recorded.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { fits, opened as openedAt, shows, violations } from "../browser.mjs";

const pages = process.env.POLYPATH_PAGES;
const { runs, presets } = JSON.parse(readFileSync(join(pages, "expected.json"), "utf8"));
const address = pathToFileURL(join(pages, "playground.html")).href;

async function opened(settings, how) {
  const page = await openedAt(`${address}#${new URLSearchParams(settings)}`, how);
  await settled(page);
  return page;
}

async function settled(page) {
  await page.waitForSelector("main[data-ready]");
  await page.waitForSelector(".status[data-state=done]");
}

const recordingOf = (page) => page.locator("dd.hash").nth(1).textContent();

for (const { lab, settings, command, recording, goodput, requests } of runs) {
  test(`${command} gives the same bytes in the page`, async () => {
    const page = await opened({ lab, ...settings });
    assert.equal(await page.locator("[data-command]").textContent(), command);
    assert.equal(await recordingOf(page), recording);
    const cells = await page.locator("[data-table=results] tr.connection td.number:nth-child(3)").allTextContents();
    assert.deepEqual(cells, goodput);
    assert.equal(await page.locator("[data-table=requests] li").count(), Math.min(requests, 40));
    assert.deepEqual(page.faults, []);
    await page.close();
  });
}

test("a change runs at once, stands in the address, and is taken back", async () => {
  const [plain, changed] = runs;
  const page = await opened({ lab: plain.lab });
  assert.equal(await recordingOf(page), plain.recording);
  for (const [key, value] of Object.entries(changed.settings)) {
    const knob = page.locator(`[data-knob="${key}"]`);
    if (typeof value === "string") await knob.selectOption(value);
    else {
      await knob.fill(`${value}`);
      await knob.blur();
    }
  }
  await shows(page, changed.recording);
  assert.match(await page.locator(".compared").textContent(), /before/);
  assert.ok(await page.getByText("before", { exact: true }).count());
  const url = page.url();
  await page.reload();
  await settled(page);
  assert.equal(page.url(), url);
  assert.equal(await recordingOf(page), changed.recording);
  await page.getByRole("button", { name: "Reset" }).click();
  await shows(page, plain.recording);
  assert.deepEqual(page.faults, []);
  await page.close();
});

test("a thing to try is done by its button", async () => {
  const page = await opened({ lab: runs[0].lab });
  await page.getByRole("button", { name: "try it" }).first().click();
  await page.waitForFunction((text) => document.querySelector("[data-command]")?.textContent.includes(text), "--set");
  await settled(page);
  assert.notEqual(await recordingOf(page), runs[0].recording);
  await page.close();
});

test("an event is added, changed and removed", async () => {
  const page = await opened({ lab: runs[0].lab });
  await page.locator("[data-event=add]").click();
  await page.locator("[data-event=kind]").selectOption("rate");
  await page.locator("[data-event=value]").fill("2");
  await page.locator("[data-event=value]").blur();
  await page.waitForFunction(() => document.querySelector("[data-command]")?.textContent.endsWith(`--set 'event.1={at="5 s", link="path1", rate="2 Mbps"}'`));
  await settled(page);
  assert.notEqual(await recordingOf(page), runs[0].recording);
  await page.getByRole("button", { name: "Remove event 1" }).click();
  await page.waitForFunction((text) => document.querySelectorAll("dd.hash")[1]?.textContent === text, runs[0].recording);
  assert.deepEqual(page.faults, []);
  await page.close();
});

test("a plan is saved, and opened again", async () => {
  const [plain, changed] = runs;
  const page = await opened({ lab: changed.lab, ...changed.settings });
  const coming = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save the plan" }).click();
  const saved = await (await coming).path();
  await page.goto(`${address}#${new URLSearchParams({ lab: plain.lab })}`);
  await shows(page, plain.recording);
  await page.locator("input[type=file]").setInputFiles(saved);
  await shows(page, changed.recording);
  await page.locator("input[type=file]").setInputFiles({ name: "other.json", mimeType: "application/json", buffer: Buffer.from("[1]") });
  assert.match(await page.locator("[role=alert]").textContent(), /other.json: this is no plan; open the plan.json/);
  assert.deepEqual(page.faults, []);
  await page.close();
});

test("a slider runs what it is moved to", async () => {
  const page = await opened({ lab: runs[0].lab });
  const slider = page.locator(".knob", { has: page.locator('[data-knob="link.path1.delay"]') }).locator("input[type=range]");
  await slider.focus();
  await slider.press("End");
  await page.waitForFunction(() => location.hash.includes("link.path1.delay=500"));
  await settled(page);
  assert.notEqual(await recordingOf(page), runs[0].recording);
  await page.close();
});

test("a link of the picture leads to its settings", async () => {
  const page = await opened({ lab: runs[0].lab });
  await page.locator(".network-picture svg text", { hasText: "path1" }).first().click();
  assert.equal(await page.evaluate(() => document.activeElement?.closest("fieldset")?.querySelector("legend")?.textContent), "link path1");
  await page.close();
});

test("what the simulator refuses is said, and the last run stays", async () => {
  const page = await opened({ lab: runs[0].lab, seed: 7 });
  const kept = await recordingOf(page);
  await page.evaluate(() => {
    const post = Worker.prototype.postMessage;
    Worker.prototype.postMessage = function (order) {
      post.call(this, order.plan ? { ...order, plan: order.plan.replace('"version":1', '"version":9') } : order);
    };
  });
  await page.locator('[data-knob="seed"]').fill("8");
  await page.locator('[data-knob="seed"]').blur();
  await page.waitForSelector(".status[data-state=failed]");
  assert.match(await page.locator(".status").textContent(), /version/);
  assert.equal(await recordingOf(page), kept);
  await page.close();
});

test("every preset is offered", async () => {
  const page = await opened({});
  const names = await page.locator('[data-knob="lab"] option').allTextContents();
  assert.deepEqual(names.map((name) => name.split(":")[0]), presets);
  await page.close();
});

for (const scheme of ["light", "dark"]) {
  for (const width of [1100, 400]) {
    test(`it is accessible and fits, ${scheme}, ${width} pixels`, async () => {
      const page = await opened({ lab: runs[0].lab }, { width, scheme });
      assert.deepEqual(await violations(page), []);
      assert.ok(await fits(page));
      await page.close();
    });
  }
}
