// A report that contains the simulator: each run that a page can simulate can be changed.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { App } from "./app";
import { address, Bench, chosenOf, type Preset } from "./bench";
import { usePalette } from "./colour";
import { complaining } from "./complaint";
import type { Page } from "./data";
import { Lab } from "./lab";
import { unpackedJson } from "./packed";
import { hrefOf, parametersOf, watchTheme } from "./store";

interface Props {
  lab: Lab;
  preset: Preset;
  run: number;
}

function LiveRun({ lab, preset, run }: Props) {
  const addressed = () => chosenOf(parametersOf(location.hash), preset);
  const [chosen, choose] = useState(addressed);
  useEffect(() => {
    const moved = () => choose(addressed());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => {
    const settings = address(new URLSearchParams(), preset, chosen).toString();
    const hash = hrefOf({ view: "live", run }) + (settings && `&${settings}`);
    if (location.hash !== hash) history.replaceState(null, "", hash);
  }, [chosen]);
  return (
    <Bench {...{ lab, preset, chosen, choose }}>
      <a href={hrefOf({ view: "run", run })}>The run as it was recorded</a>
    </Bench>
  );
}

const target = document.getElementById("page");
complaining(target);

const page = JSON.parse(document.getElementById("data")?.textContent ?? "") as Page;

/** By run; null: no page can simulate it. */
void unpackedJson<(Preset | null)[]>("presets").then((presets) => {
  usePalette(page.palette);
  watchTheme();
  let lab: Lab | null = null;
  const live = {
    has: (run: number) => Boolean(presets[run]),
    view: (run: number) => {
      const preset = presets[run];
      lab ??= new Lab();
      return preset && <LiveRun key={run} {...{ lab, preset, run }} />;
    },
  };
  if (target) {
    target.replaceChildren();
    render(<App page={page} live={live} />, target);
  }
});
