// A picture of part of a report page, for the documentation: node screenshot.mjs PAGE HASH FIRST LAST OUT [MOMENT [ZOOM]]
// FIRST and LAST are selectors of the elements that it begins and ends with, MOMENT is where the playhead is, in
// seconds, and ZOOM how often the page is zoomed in there.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const WIDTH = 1000;
const MARGIN = 12;
const [file, hash, first, last, out, moment, zoom = 0] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.POLYPATH_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
try {
  const page = await browser.newPage({ viewport: { width: WIDTH, height: 4000 }, colorScheme: "light" });
  await page.goto(pathToFileURL(resolve(file)).href + hash);
  await page.waitForSelector("main[data-ready]");
  await page.evaluate(() => (document.querySelector(".scrubber").style.position = "static"));
  if (moment !== undefined) await page.getByRole("slider", { name: "Moment" }).fill(moment);
  await page.evaluate(() => document.activeElement?.blur());
  for (let press = 0; press < zoom; press += 1) await page.keyboard.press("+");
  await page.waitForTimeout(300);
  const [from, to] = await Promise.all([first, last].map((each) => page.locator(each).first().boundingBox()));
  const top = Math.max(0, from.y - MARGIN);
  await page.screenshot({ path: out, clip: { x: 0, y: top, width: WIDTH, height: to.y + to.height + MARGIN - top } });
} finally {
  await browser.close();
}
