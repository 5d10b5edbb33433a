// What a playground's presets record in a browser: node recorded.mjs PAGE, presets by name on the standard input, in JSON.
// Prints an object: the recording's SHA-256, the seconds that the run took, and the end of it as the page has it.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const names = JSON.parse(readFileSync(0, "utf8"));
const address = pathToFileURL(resolve(process.argv[2])).href;
const browser = await chromium.launch({
  executablePath: process.env.POLYPATH_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
try {
  const found = {};
  for (const lab of names) {
    const page = await browser.newPage();
    page.setDefaultTimeout(300_000);
    await page.goto(`${address}#${new URLSearchParams({ lab })}`);
    const status = page.locator(".status[data-state=done], .status[data-state=failed]");
    await status.filter({ hasText: /\S/ }).waitFor();
    const said = await status.textContent();
    const hash = page.locator("dd.hash");
    found[lab] = { said, recording: said.startsWith("ran") ? await hash.nth(1).textContent() : null };
    await page.close();
  }
  console.log(JSON.stringify(found));
} finally {
  await browser.close();
}
