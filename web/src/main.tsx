import { render } from "preact";
import { App } from "./app";
import { usePalette } from "./colour";
import { complaining } from "./complaint";
import type { Page } from "./data";
import { watchTheme } from "./store";

const target = document.getElementById("page");

complaining(target);

const page = JSON.parse(document.getElementById("data")?.textContent ?? "") as Page;
usePalette(page.palette);
watchTheme();
if (target) {
  target.replaceChildren();
  render(<App page={page} />, target);
}
