// The page in a browser. POLYPATH_PAGES is a folder of pages and expected.json, which tests/report/test_browser.py makes.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const pages = process.env.POLYPATH_PAGES;
const expected = JSON.parse(readFileSync(join(pages, "expected.json"), "utf8"));
const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const profile = mkdtempSync(join(tmpdir(), "polypath-browser-"));
let browser;

before(async () => {
  browser = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.POLYPATH_CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    timeout: 120_000,
    viewport: { width: 1100, height: 800 },
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  browser.setDefaultTimeout(60_000);
});

after(async () => {
  await browser?.close();
  rmSync(profile, { recursive: true, force: true });
});

/** Opens a page, and fails at the end if it said anything on its console or asked for anything. */
async function opened(name, hash, look) {
  const page = await browser.newPage();
  const said = [];
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(error.message));
  page.on("dialog", (dialog) => said.push(`dialog ${dialog.message()}`));
  page.on("request", (request) => {
    if (!request.url().startsWith("file:") && !request.url().startsWith("blob:")) said.push(`asked for ${request.url()}`);
  });
  try {
    await page.goto(pathToFileURL(join(pages, name)).href + hash);
    await page.waitForSelector("main[data-ready]");
    await look(page);
    assert.deepEqual(said, []);
  } finally {
    await page.close();
  }
}

const cells = (page, table) =>
  page.$$eval(`[data-table=${table}] tbody tr`, (rows) =>
    rows.map((row) => [...row.cells].map((cell) => cell.innerText.trim().replace(/\s+/g, " "))),
  );

async function violations(page) {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const { violations } = await window.axe.run(document);
    return violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.html).slice(0, 3).join(" ")}`);
  });
}

test("the figures are those of the table", async () => {
  for (const [index, rows] of expected.results.entries()) {
    await opened("aggregation.html", `#run-${index + 1}`, async (page) => {
      assert.deepEqual(await cells(page, "results"), rows);
    });
  }
});

test("expectations have what was published, bound and measured", async () => {
  await opened("aggregation.html", "", async (page) => {
    assert.deepEqual(await cells(page, "expectations"), expected.expectations);
    assert.equal(await page.$$eval("[data-chart=all-rate] .legend button", (found) => found.length), expected.results.length);
  });
});

test("zooming one chart zooms all, and a double click shows the whole run again", async () => {
  await opened("aggregation.html", "#run-2", async (page) => {
    const ticks = () =>
      page.$$eval("[data-chart] canvas", (found) => found.map((canvas) => canvas.toDataURL().length));
    const whole = page.getByRole("button", { name: "whole run" });
    assert.equal(await whole.isDisabled(), true);
    const before = await ticks();
    const over = page.locator("[data-chart=rate] .u-over");
    await over.scrollIntoViewIfNeeded();
    const box = await over.boundingBox();
    await page.mouse.move(box.x + box.width * 0.2, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.4, box.y + 40, { steps: 4 });
    await page.mouse.up();
    await page.waitForFunction(() => {
      const button = [...document.querySelectorAll(".scrubber button")].at(-1);
      return button && !button.disabled;
    });
    await page.waitForFunction(
      (before) =>
        [...document.querySelectorAll("[data-chart] canvas")].every(
          (canvas, index) => canvas.toDataURL().length !== before[index],
        ),
      before,
    );
    await over.dblclick();
    await page.waitForFunction(() => [...document.querySelectorAll(".scrubber button")].at(-1).disabled);
  });
});

test("under the pointer is told what is drawn there, in the first interval, too", async () => {
  await opened("aggregation.html", "#run-2", async (page) => {
    const { end, edges, mbps } = expected.rate;
    const over = page.locator("[data-chart=rate] .u-over");
    await over.scrollIntoViewIfNeeded();
    const box = await over.boundingBox();
    for (const interval of [0, 1, 7, 20]) {
      const at = edges[interval] + 0.3 * (edges[interval + 1] - edges[interval]);
      await page.mouse.move(box.x + (box.width * at) / end, box.y + 60);
      const told = await page.locator("[data-chart=rate] .told").innerText();
      const [, time, value] = /^([\d.]+) s: goodput ([\d.]+)/.exec(told) ?? assert.fail(told);
      assert.ok(Math.abs(time - at) < 0.02, `${told} at ${at}`);
      assert.equal(Number(value), Number(mbps[interval].toPrecision(4)), `${told} at ${at}`);
    }
  });
});

test("numbers on the axis of time differ however far it is zoomed, and none is cut off", async () => {
  await opened("aggregation.html", "#run-2", async (page) => {
    await page.evaluate(() => {
      window.written = [];
      window.cut = [];
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        window.written.push(text);
        if (this.textAlign === "center" && x + this.measureText(text).width / 2 > this.canvas.width) window.cut.push(text);
        fillText.call(this, text, x, y);
      };
    });
    await page.getByRole("slider", { name: "Moment" }).fill("10.4");
    await page.evaluate(() => document.activeElement.blur());
    for (let press = 0; press < 24; press += 1) await page.keyboard.press("+");
    await page.waitForFunction(() => window.written.some((text) => /^10\.\d{6}/.test(text)));
    await page.keyboard.press("0");
    await page.getByRole("slider", { name: "Moment" }).fill("8.001");
    await page.evaluate(() => document.activeElement.blur());
    for (let press = 0; press < 24; press += 1) {
      await page.keyboard.press("+");
      await page.evaluate(() => new Promise(requestAnimationFrame));
    }
    assert.deepEqual(await page.evaluate(() => window.cut), []);
  });
});

test("the scrubber moves the network and every chart's mark, and plays", async () => {
  await opened("aggregation.html", "#run-2", async (page) => {
    const use = () => page.$eval('[data-link="path0"][data-direction="forward"]', (link) => Number(link.dataset.use));
    const slider = page.getByRole("slider", { name: "Moment" });
    await slider.fill("0");
    const early = await use();
    await slider.fill(String(await slider.evaluate((input) => Number(input.max) / 2)));
    await page.waitForFunction(
      (early) => Number(document.querySelector('[data-link="path0"][data-direction="forward"]').dataset.use) > early,
      early,
    );
    assert.ok((await use()) > 0.9);
    const heads = await page.$$eval(".playhead", (found) => found.map((head) => head.style.transform));
    assert.ok(heads.length >= 5);
    assert.ok(heads.every((transform) => !transform.includes("(0px)")));
    await page.getByRole("button", { name: "Play" }).click();
    const from = Number(await slider.inputValue());
    await page.waitForFunction((from) => Number(document.querySelector("input[type=range]").value) > from, from);
    await page.getByRole("button", { name: "Pause" }).click();
  });
});

test("keys move, zoom and change the theme", async () => {
  await opened("aggregation.html", "#run-2", async (page) => {
    const at = () => page.$eval(".scrubber output", (output) => output.textContent);
    const start = await at();
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction((start) => document.querySelector(".scrubber output").textContent !== start, start);
    await page.keyboard.press("+");
    await page.waitForFunction(() => ![...document.querySelectorAll(".scrubber button")].at(-1).disabled);
    const theme = await page.evaluate(() => document.documentElement.dataset.theme);
    await page.keyboard.press("t");
    await page.waitForFunction((theme) => document.documentElement.dataset.theme !== theme, theme);
    await page.keyboard.press("]");
    await page.waitForFunction(() => location.hash === "#run-3");
  });
});

test("a table that is too wide is scrolled by keys", async () => {
  await opened("aggregation.html", "#run-2", async (page) => {
    await page.setViewportSize({ width: 660, height: 800 });
    const table = page.getByRole("region", { name: "Results" }).getByRole("group");
    await table.focus();
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction((element) => element.scrollLeft > 0, await table.elementHandle());
    assert.equal(await page.getByRole("slider", { name: "Moment" }).inputValue(), "0");
  });
});

test("a moment that was dragged to is played from by its key", async () => {
  await opened("aggregation.html", "#run-2", async (page) => {
    const slider = page.getByRole("slider", { name: "Moment" });
    await slider.focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press(" ");
    await page.waitForSelector("button[aria-label=Pause]");
  });
});

test("a link that differs by direction is described both ways", async () => {
  await opened("directions.html", "", async (page) => {
    const names = await page.$$eval(".network-picture .name", (found) => found.map((each) => [...each.children].map((line) => line.textContent)));
    assert.deepEqual(names, [
      ["wifi", "20 Mbps, 10 ms, 7 % loss"],
      ["dsl", "2 Mbps, 30 ms", "back: 16 Mbps, 30 ms"],
    ]);
  });
});

test("a cause leads to its moment", async () => {
  await opened("aggregation.html", "#run-2", async (page) => {
    const button = page.locator(".why button").first();
    const moment = Number.parseFloat((await button.innerText()).replace("see ", ""));
    await button.click();
    await page.waitForFunction(
      (moment) => Math.abs(Number.parseFloat(document.querySelector(".scrubber output").textContent) - moment) < 1e-3,
      moment,
    );
  });
});

test("a single segment tells what it is", async () => {
  await opened("aggregation.html", "#run-2", async (page) => {
    const over = page.locator("[data-chart=sequence] .u-over");
    await over.scrollIntoViewIfNeeded();
    const box = await over.boundingBox();
    const told = page.locator("[data-chart=sequence] .told");
    for (let part = 0.95; part > 0.05; part -= 0.05) {
      await page.mouse.move(box.x + box.width * 0.5, box.y + box.height * part);
      if (/ on subflow \d .*sequence number \d+/.test(await told.innerText())) return;
    }
    assert.fail("no segment under the pointer");
  });
});

test("a segment that is clicked stands among the single ones, with its options", async () => {
  await opened("aggregation.html", "#run-2", async (page) => {
    const over = page.locator("[data-chart=sequence] .u-over");
    await over.scrollIntoViewIfNeeded();
    const box = await over.boundingBox();
    const told = page.locator("[data-chart=sequence] .told");
    for (let part = 0.95; part > 0.05; part -= 0.05) {
      await page.mouse.move(box.x + box.width * 0.5, box.y + box.height * part);
      const [, length, seq, said] = /\((\d+) B\), sequence number (\d+); (DSS .*, TSecr \d+)/.exec(await told.innerText()) ?? [];
      if (!said) continue;
      await page.mouse.down();
      await page.mouse.up();
      await page.waitForFunction(
        (seq) => [...document.querySelectorAll("[data-table=segments] tr td:nth-child(5)")].some((cell) => cell.innerText === seq),
        seq,
      );
      const row = (await cells(page, "segments")).find((each) => each[4] === seq && each[6] === length);
      assert.equal(row[8], said);
      assert.match(said, /^DSS ack \d+, seq \d+, \d+ B; TSval \d+, TSecr \d+$/);
      return;
    }
    assert.fail("no segment under the pointer");
  });
});

test("single segments begin with the handshakes and are stepped through", async () => {
  await opened("aggregation.html", "#run-2", async (page) => {
    const choice = page.locator("section.single select");
    await choice.selectOption("special");
    await page.getByRole("slider", { name: "Moment" }).fill("0");
    const rows = await cells(page, "segments");
    assert.deepEqual(rows.slice(0, 3).map((row) => row[3]), ["SYN", "SYN, ACK", "ACK"]);
    for (const row of rows.slice(0, 3)) assert.match(row[8], /MP_CAPABLE v1/);
    assert.ok(rows.some((row) => /MP_JOIN id=\d+ token=0x[0-9a-f]{8}/.test(row[8])), JSON.stringify(rows));
    const current = () => page.$eval("[data-table=segments] tr[aria-current]", (row) => row.innerText);
    const before = await current();
    await page.locator("section.single button", { hasText: "later" }).click();
    await page.waitForFunction((before) => document.querySelector("[data-table=segments] tr[aria-current]").innerText !== before, before);
    await page.locator("section.single button", { hasText: "earlier" }).click();
    await page.waitForFunction((before) => document.querySelector("[data-table=segments] tr[aria-current]").innerText === before, before);
  });
});

test("a subflow's segments stand beside what was acknowledged of them", async () => {
  await opened("aggregation.html", "#run-2", async (page) => {
    const choice = page.getByLabel("time and sequence of");
    await choice.selectOption("1");
    await page.waitForFunction(() => /ACKs when/.test(document.querySelector("[data-chart=sequence] .told")?.innerText ?? ""));
    const over = page.locator("[data-chart=sequence] .u-over");
    await over.scrollIntoViewIfNeeded();
    const box = await over.boundingBox();
    const told = page.locator("[data-chart=sequence] .told");
    assert.match(await told.innerText(), /line: ACKs when they were sent/);
    for (let part = 0.95; part > 0.05; part -= 0.05) {
      await page.mouse.move(box.x + box.width * 0.5, box.y + box.height * part);
      const text = await told.innerText();
      if (!/last ACK until then/.test(text)) continue;
      const [, lane, seq, ack] = /on subflow (\d).*sequence number (\d+).*; last ACK until then (\d+)/.exec(text);
      assert.equal(lane, "1");
      assert.ok(Number(ack) > 0 && Number(ack) <= Number(seq), text);
      return;
    }
    assert.fail("no segment under the pointer");
  });
});

test("a cell of a sweep leads to its run, and columns sort", async () => {
  await opened("sweep.html", "", async (page) => {
    const before = await cells(page, "matrix");
    assert.equal(before.length, 2);
    const heading = page.locator("[data-table=matrix] thead button").first();
    await heading.click();
    await heading.click();
    await page.waitForSelector('th[aria-sort="descending"]');
    const sorted = await cells(page, "matrix");
    assert.deepEqual(
      sorted.map((row) => row[0]),
      before.map((row) => row[0]).reverse(),
    );
    await page.locator("[data-table=matrix] td a").first().click();
    await page.waitForSelector("[data-table=results]");
  });
});

test("what no run has a value of is not shown first", async () => {
  await opened("unfinished.html", "", async (page) => {
    const figure = page.getByLabel("figure");
    assert.notEqual(await figure.inputValue(), "completion_s");
    assert.ok((await cells(page, "compared")).some((row) => /\d/.test(row[2])));
  });
});

test("figures of a sweep are rounded as the terminal does, and bars begin at 0", async () => {
  await opened("sweep.html", "", async (page) => {
    const figures = await page.$$eval("[data-table=matrix] td a:first-of-type", (found) =>
      found.filter((link) => !link.closest(".seeds")).map((link) => link.innerText),
    );
    assert.deepEqual(figures, expected.matrix);
    const bars = await page.$$eval("[data-table=matrix] .shade rect", (found) => found.map((bar) => parseFloat(bar.getAttribute("width"))));
    const means = expected.matrix.map((text) => parseFloat(text));
    const most = Math.max(...means);
    bars.forEach((bar, index) => assert.ok(Math.abs(bar / 100 - means[index] / most) < 0.05, `${bar} of ${means[index]}`));
  });
});

test("signs of a sweep's figures are explained", async () => {
  await opened("unfinished.html", "", async (page) => {
    await page.getByLabel("figure").selectOption("completion_s");
    assert.match(await page.locator("main").innerText(), /done: runs that finished, .* is the median/);
  });
});

test("a comparison has its differences within seeds", async () => {
  await opened("sweep.html", "", async (page) => {
    assert.deepEqual(await cells(page, "compared"), expected.compared);
  });
});

test("a burst of reassembled data does not stretch the axis of rates, which says so", async () => {
  await opened("failing.html", "#run-1", async (page) => {
    const told = await page.locator("[data-chart=rate] .told").innerText();
    const [, most] = /cut off: up to (\d+) Mbps/.exec(told) ?? [];
    assert.ok(Number(most) > 45, told);
  });
});

test("an event's name stands over its line when a chart is drawn again, too", async () => {
  await opened("failing.html", "#run-1", async (page) => {
    await page.evaluate(() => {
      window.written = [];
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        const part = { left: 0.5, start: 0.5, center: 0, right: -0.5, end: -0.5 }[this.textAlign];
        window.written.push({ text, middle: (x + part * this.measureText(text).width) / devicePixelRatio });
        fillText.call(this, text, x, y);
      };
    });
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("+");
    await page.waitForFunction(() => window.written.some((each) => each.text === "wifi: down"));
    const middle = await page.evaluate(() => window.written.findLast((each) => each.text === "wifi: down").middle);
    const second = await page.evaluate(() => window.written.findLast((each) => each.text === "1").middle);
    assert.ok(Math.abs(middle - second) < 3, `${middle} and ${second}`);
  });
});

test("requests without an answer are marked and counted", async () => {
  await opened("unanswered.html", "", async (page) => {
    assert.equal(await page.locator("[data-chart=delays] .told").innerText(), "× at 0: 1 unanswered");
    const red = await page.$eval("[data-chart=delays] canvas", (canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let at = 0; at < data.length; at += 4) if (data[at] > 150 && data[at + 1] < 80 && data[at + 2] < 80 && data[at + 3] > 200) count += 1;
      return count;
    });
    assert.ok(red > 5, `${red} pixels`);
  });
});

test("tables say what they leave out", async () => {
  await opened("crowd.html", "#run-1", async (page) => {
    assert.match(await page.locator("table.now caption").innerText(), /the first 16 of 18 directions/);
  });
  await opened("crowd.html", "#all", async (page) => {
    assert.ok((await page.locator("main").innerText()).includes("Of each run the first 12 connections."));
  });
  await opened("crowded.html", "", async (page) => {
    const said = await page.locator("main").evaluate((main) => main.textContent);
    assert.ok(said.includes("The first 400 of 401 directions are shown."));
    assert.ok(said.includes("The 8 dearest of 9 are shown."));
    assert.equal(await page.locator(".words").count(), 40);
    await page.getByRole("button", { name: "and 41 notes" }).click();
    assert.equal(await page.locator(".words").count(), 41);
  });
});

test("several runs have short names and one event", async () => {
  await opened("failing.html", "#all", async (page) => {
    assert.equal(await page.locator("[data-chart=all-rate]").getAttribute("data-marks"), "wifi: down");
    assert.equal(await page.locator("[data-chart=all-delivered]").getAttribute("data-marks"), "wifi: down");
  });
});

test("a run and its capture share an axis, though their connections have other names", async () => {
  await opened("captured.html", "#all", async (page) => {
    for (const name of ["all-rate", "all-delivered"]) {
      assert.equal(await page.$$eval(`[data-chart=${name}] .legend button`, (found) => found.length), 2);
    }
  });
});

test("of a sweep one run of each place is drawn first", async () => {
  await opened("sweep.html", "#all", async (page) => {
    const ticked = await page.$$eval("[data-table=runs] input", (found) => found.map((box) => box.checked));
    assert.deepEqual(ticked, [true, false, false, true, false, false]);
    const names = await page.$$eval("[data-chart=all-delivered] .legend button", (found) => found.map((each) => each.innerText.trim()));
    assert.deepEqual(names, ["delay=10 ms, seed=1", "delay=50 ms, seed=1"]);
  });
});

test("the network can be read on a telephone", async () => {
  await opened("aggregation.html", "#run-2", async (page) => {
    await page.setViewportSize({ width: 400, height: 800 });
    const height = () => page.$eval(".network-picture svg .name", (text) => text.getBoundingClientRect().height);
    assert.ok((await height()) >= 9, `${await height()} px`);
    const [server] = await page.$$eval(".network-picture .node text", (texts) =>
      texts.filter((text) => text.textContent === "server").map((text) => text.getBoundingClientRect().right),
    );
    assert.ok(server <= 400, `${server} px`);
  });
});

test("tables of a run and of all runs are cut nowhere on a telephone", async () => {
  for (const hash of ["#run-2", "#all"]) {
    await opened("aggregation.html", hash, async (page) => {
      await page.setViewportSize({ width: 400, height: 800 });
      const cut = () => page.$$eval(".stacked", (tables) => tables.filter((table) => table.getBoundingClientRect().right > 400).length);
      assert.equal(await cut(), 0);
      const [first] = await page.$$eval(".stacked [data-what]", (found) => found.map((cell) => getComputedStyle(cell, "::before").content));
      assert.match(first, /Mbps/);
    });
  }
});

test("rates of several runs are means over an interval, which is told", async () => {
  await opened("aggregation.html", "#all", async (page) => {
    assert.match(await page.locator("[data-chart=all-rate] .told").innerText(), /means over [\d.]+ s/);
  });
});

test("what is printed fits a page, in light colours", async () => {
  await opened("aggregation.html", "#run-2", async (page) => {
    await page.setViewportSize({ width: 720, height: 1000 });
    await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    await page.waitForFunction(() => document.documentElement.dataset.theme === "light");
    assert.equal(await page.locator(".scrubber").isVisible(), false);
    const over = await page.$$eval("table, .network-picture svg", (found) =>
      found.map((each) => each.getBoundingClientRect().right - innerWidth).filter((right) => right > 0),
    );
    assert.deepEqual(over, []);
  });
});

test("subflows that never came to be have a row, without an RTT", async () => {
  await opened("unestablished.html", "", async (page) => {
    const rows = await cells(page, "results");
    assert.equal(rows.length, 5);
    assert.deepEqual(rows.slice(1).map((row) => row[4] !== ""), [true, false, false, true]);
  });
});

test("bytes of datagrams have no path, and pings no rate, as in the terminal", async () => {
  await opened("datagrams.html", "", async (page) => {
    const rows = (await cells(page, "results")).map((row) => row.slice(1));
    assert.deepEqual(rows.map((row) => row.filter((_, column) => column !== 3)), [
      ["mpquic", "0.39", "", "", "", ""],
      ["eth0", "", "", "", "", ""],
      ["eth1", "", "", "", "", ""],
      ["udp", "1.00", "", "", "", ""],
      ["icmp", "", "", "", "", ""],
    ]);
    assert.equal(await page.locator("[data-chart=rate] .legend").count(), 0);
    await page.getByRole("combobox", { name: "connection" }).selectOption({ label: "ping" });
    await page.locator("[data-chart=delays]").getByText("× at 0").waitFor();
    assert.doesNotMatch(await page.locator("main").innerText(), /path of an answer is not known/);
  });
});

test("what the terminal prints besides connections is on the page", async () => {
  await opened("beside.html", "", async (page) => {
    const rows = await cells(page, "further");
    assert.deepEqual(rows.map((row) => row.slice(0, 3)), [
      ["all", "2", "1"],
      ["up to 100 kB", "1", ""],
      ["above 1 MB", "1", "1"],
      ["s", "1", "0"],
    ]);
    await page.getByText("An unfinished flow is longer than any other").waitFor();
  });
});

test("a file that is damaged says so", async () => {
  const whole = readFileSync(join(pages, "datagrams.html"), "utf8");
  const columns = whole.indexOf('"data":"') + '"data":"'.length;
  const files = {
    "the file is not complete": whole.slice(0, columns),
    "Part of this page cannot be shown": `${whole.slice(0, columns)}AAAA${whole.slice(columns + 4)}`,
  };
  for (const [said, text] of Object.entries(files)) {
    const file = join(profile, "damaged.html");
    writeFileSync(file, text);
    const page = await browser.newPage();
    await page.goto(pathToFileURL(file).href);
    await page.getByText(said).waitFor();
    await page.close();
  }
});

test("hostile names are text", async () => {
  await opened("hostile.html", "", async (page) => {
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.$$eval("img, iframe, script:not([id=data]):not(:nth-of-type(2))", (found) => found.length), 0);
    assert.equal(await page.evaluate(() => JSON.parse(document.getElementById("data").textContent).runs[0].name), expected.hostile);
    const text = await page.evaluate(() => document.body.textContent);
    assert.ok(text.includes("<img src=x onerror=window.hacked=1>"));
  });
});

for (const [scheme, width] of [
  ["light", 1100],
  ["dark", 400],
]) {
  test(`axe finds nothing: ${scheme}, ${width} px`, async () => {
    for (const [name, hash] of [
      ["aggregation.html", "#run-2"],
      ["aggregation.html", "#all"],
      ["requests.html", ""],
      ["sweep.html", ""],
    ]) {
      await opened(name, hash, async (page) => {
        await page.emulateMedia({ colorScheme: scheme });
        await page.setViewportSize({ width, height: 800 });
        await page.waitForFunction((scheme) => document.documentElement.dataset.theme === scheme, scheme);
        assert.deepEqual(await violations(page), []);
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(over <= 0, `${over} px wider than the window`);
      });
    }
  });
}
