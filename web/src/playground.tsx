// The playground: labs and scenarios that run in the page. What is changed runs at once, and everything below follows.

import { render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { address, Bench, chosenOf, NOTHING, type Chosen, type Preset } from "./bench";
import { usePalette } from "./colour";
import { complaining } from "./complaint";
import { Lab } from "./lab";
import { unpackedJson } from "./packed";
import { Scrubber } from "./scrubber";
import { theme, toggleTheme, useValue, watchTheme } from "./store";

interface Playground {
  version: string;
  palette: string[];
  presets: Preset[];
}

interface Place {
  number: number;
  chosen: Chosen;
}

/** What the address names. */
function addressed(presets: Preset[]): Place {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const number = Math.max(0, presets.findIndex((each) => each.name === parameters.get("lab")));
  return { number, chosen: chosenOf(parameters, presets[number] as Preset) };
}

function App({ page }: { page: Playground }) {
  const [presets, setPresets] = useState(page.presets);
  const lab = useMemo(() => new Lab(), []);
  const [{ number, chosen }, go] = useState(() => addressed(presets));
  const [unread, setUnread] = useState<string | null>(null);
  const current = useValue(theme);
  const preset = presets[number] as Preset;
  const choose = (chosen: Chosen) => go({ number, chosen });

  useEffect(() => {
    const moved = () => go(addressed(presets));
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, [presets]);

  useEffect(() => {
    setUnread(null);
    const hash = `#${address(new URLSearchParams({ lab: preset.name }), preset, chosen)}`;
    if (location.hash !== hash) history.replaceState(null, "", hash);
  }, [number, chosen]);

  const open = (file: File) =>
    openedPlan(file).then(
      (preset) => {
        setPresets([...presets, preset]);
        go({ number: presets.length, chosen: NOTHING });
      },
      (reason: unknown) => setUnread(`${file.name}: ${reason instanceof Error ? reason.message : String(reason)}`),
    );
  return (
    <>
      <header>
        <div class="head">
          <h1>Polypath playground</h1>
          <button type="button" onClick={toggleTheme} aria-label={`Change to ${current === "dark" ? "light" : "dark"}`}>
            {current === "dark" ? "light" : "dark"}
          </button>
        </div>
        <label>
          lab{" "}
          <select value={String(number)} onChange={(event) => go({ number: Number(event.currentTarget.value), chosen: NOTHING })} data-knob="lab">
            {presets.map((each, index) => (
              <option value={String(index)} key={each.name}>
                {each.name}: {each.title}
              </option>
            ))}
          </select>
        </label>
        <p class="question">{preset.question}</p>
        {preset.tries.length > 0 && (
          <ul class="tries">
            {preset.tries.map((each, index) => (
              <li key={index}>
                {each.text}{" "}
                <button type="button" onClick={() => choose({ ...chosen, settings: each.settings })}>
                  try it
                </button>
              </li>
            ))}
          </ul>
        )}
      </header>
      <Bench key={number} {...{ lab, preset, chosen, choose }}>
        <label class="file">
          Open a plan{" "}
          <input
            type="file"
            accept=".json,application/json"
            onChange={(event) => {
              const file = event.currentTarget.files?.[0];
              if (file) void open(file);
            }}
          />
        </label>
        {unread && (
          <span class="warning" role="alert">
            {unread}
          </span>
        )}
      </Bench>
      <footer>
        <p class="quiet">
          polypath {page.version}. The simulator runs in this page; nothing is sent anywhere. The same plan gives the same recording everywhere:
          its hash stands below “Where this comes from”.
        </p>
      </footer>
      <Scrubber key={number} />
    </>
  );
}

/** A file's plan, as a run's folder and `Save the plan` have it. It has no knobs: they are found from a scenario. */
async function openedPlan(file: File): Promise<Preset> {
  const plan = JSON.parse(await file.text()) as Partial<Preset["plan"]> | null;
  if (!plan || !Array.isArray(plan.links) || !Array.isArray(plan.nodes) || !Array.isArray(plan.events) || typeof plan.duration_ns !== "number")
    throw new Error("this is no plan; open the plan.json of a run's folder, or one that this page has saved");
  return { name: file.name, title: "a plan that was opened", question: "", command: null, tries: [], plan: plan as Preset["plan"], network: null, marks: [], knobs: [], events: null };
}

const target = document.getElementById("page");
complaining(target);

void unpackedJson<Playground>("data").then((page) => {
  usePalette(page.palette);
  watchTheme();
  if (target) {
    target.replaceChildren();
    render(<App page={page} />, target);
  }
});
