// A browser for the tests of pages that contain the simulator.
import { readFileSync } from "node:fs";
import { after, before } from "node:test";
import { chromium } from "playwright-core";

const axe = readFileSync(new URL("./node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const FOREVER = 120_000;
let browser;

before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.POLYPATH_CHROMIUM ?? "/usr/bin/chromium",
    timeout: FOREVER,
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
  });
});
after(() => browser?.close());

/** A page that is ready; `page.faults` has what went wrong in it, and what it asked of a network. */
export async function opened(address, { width = 1100, scheme = "light" } = {}) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme });
  page.setDefaultTimeout(FOREVER);
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && page.faults.push(message.text()));
  page.on("request", (request) => /^(file|blob|data):/.test(request.url()) || page.faults.push(`asks for ${request.url()}`));
  await page.goto(address);
  await page.waitForSelector("main[data-ready]");
  return page;
}

/** Waits until a run with this recording is shown. */
export const shows = (page, hash) => page.waitForFunction((text) => document.querySelectorAll("dd.hash")[1]?.textContent === text, hash);

/** What keeps somebody from reading the page, by axe. */
export async function violations(page) {
  await page.addScriptTag({ content: axe }).catch(() => page.evaluate(axe));
  return page.evaluate(async () => (await window.axe.run()).violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`));
}

export const fits = (page) => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
