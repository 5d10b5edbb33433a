import { render } from "preact";
import { App } from "./app";
import { usePalette } from "./colour";
import type { Page } from "./data";
import { watchTheme } from "./store";

const page = JSON.parse(document.getElementById("data")?.textContent ?? "") as Page;
usePalette(page.palette);
watchTheme();
const target = document.getElementById("page");
if (target) {
  target.replaceChildren();
  render(<App page={page} />, target);
}
