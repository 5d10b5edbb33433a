import { render } from "preact";
import { App } from "./app";
import { usePalette } from "./colour";
import type { Page } from "./data";
import { watchTheme } from "./store";

const target = document.getElementById("page");

/** Says above the page what of it cannot be shown. */
function complain(reason: unknown): void {
  const line = document.createElement("p");
  line.className = "damage";
  line.role = "alert";
  line.textContent = `Part of this page cannot be shown: the file is damaged, or was edited (${String(reason)}).`;
  if (!document.querySelector(".damage")) target?.before(line);
}
addEventListener("unhandledrejection", (event) => complain(event.reason));
addEventListener("error", (event) => event.error && complain(event.error));

const page = JSON.parse(document.getElementById("data")?.textContent ?? "") as Page;
usePalette(page.palette);
watchTheme();
if (target) {
  target.replaceChildren();
  render(<App page={page} />, target);
}
