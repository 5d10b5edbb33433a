// Builds the programs of the report page, without and with the simulator, and of the playground into files of the Python package: node build.mjs [FOLDER]
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const read = (name) => readFileSync(here(name), "utf8");
const folder = process.argv[2] ?? here("../python/polypath/report");

const shared = { bundle: true, write: false, minify: true, charset: "utf8", legalComments: "none", logLevel: "warning" };
const bundled = async (entry, more) => {
  const { outputFiles } = await build({ ...shared, entryPoints: [here(entry)], ...more });
  return outputFiles[0].text.trim();
};

const program = (entry) => bundled(entry, { format: "iife", target: "es2022", jsx: "automatic", jsxImportSource: "preact" });
const style = await bundled("src/style.css", { loader: { ".css": "css" } });

const hash = (text) => `sha256-${createHash("sha256").update(text, "utf8").digest("base64")}`;
const notices = ["preact", "uplot"]
  .map((name) => {
    const { version } = JSON.parse(read(`node_modules/${name}/package.json`));
    return `${name} ${version}\n\n${read(`node_modules/${name}/LICENSE`).trim()}`;
  })
  .join("\n\n");
if (notices.includes("--")) throw new Error("a licence would end the comment that it is in");

function write(name, script, more = {}) {
  for (const [what, text] of Object.entries({ script, style, ...more })) {
    if (new RegExp(`</(script|style)|<!--`, "i").test(text)) throw new Error(`the ${what} would end its element early`);
  }
  const parts = { script, style, notices, ...more, "script-hash": hash(script), "style-hash": hash(style) };
  const page = read(`src/${name}`).replace(/\{\{([a-z-]+)\}\}/g, (_, part) => parts[part]);
  writeFileSync(join(folder, name), page);
}

const worker = await program("src/simulator.ts");
write("page.html", await program("src/main.tsx"));
write("live.html", await program("src/live.tsx"), { worker });
write("playground.html", await program("src/playground.tsx"), { worker });
