// A picture of part of a report page, for the documentation: node screenshot.mjs PAGE HASH FIRST LAST OUT
// FIRST and LAST are selectors of the elements that it begins and ends with.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const WIDTH = 1000;
const MARGIN = 12;
const [file, hash, first, last, out] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.POLYPATH_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
try {
  const page = await browser.newPage({ viewport: { width: WIDTH, height: 4000 }, colorScheme: "light" });
  await page.goto(pathToFileURL(resolve(file)).href + hash);
  await page.waitForSelector("main[data-ready]");
  await page.evaluate(() => (document.querySelector(".scrubber").style.position = "static"));
  await page.waitForTimeout(300);
  const [from, to] = await Promise.all([first, last].map((each) => page.locator(each).first().boundingBox()));
  const top = Math.max(0, from.y - MARGIN);
  await page.screenshot({ path: out, clip: { x: 0, y: top, width: WIDTH, height: to.y + to.height + MARGIN - top } });
} finally {
  await browser.close();
}
