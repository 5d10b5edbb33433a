// Builds the page's program into one file of the Python package: node build.mjs [FILE]
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const read = (name) => readFileSync(here(name), "utf8");
const target = process.argv[2] ?? here("../python/polypath/report/page.html");

const shared = { bundle: true, write: false, minify: true, charset: "utf8", legalComments: "none", logLevel: "warning" };
const bundled = async (entry, more) => {
  const { outputFiles } = await build({ ...shared, entryPoints: [here(entry)], ...more });
  return outputFiles[0].text.trim();
};

const script = await bundled("src/main.tsx", {
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
});
const style = await bundled("src/style.css", { loader: { ".css": "css" } });
for (const [what, text] of Object.entries({ script, style })) {
  if (new RegExp(`</${what}|<!--`, "i").test(text)) throw new Error(`the ${what} would end its element early`);
}

const hash = (text) => `sha256-${createHash("sha256").update(text, "utf8").digest("base64")}`;
const notices = ["preact", "uplot"]
  .map((name) => {
    const { version } = JSON.parse(read(`node_modules/${name}/package.json`));
    return `${name} ${version}\n\n${read(`node_modules/${name}/LICENSE`).trim()}`;
  })
  .join("\n\n");
if (notices.includes("--")) throw new Error("a licence would end the comment that it is in");

const parts = { script, style, notices, "script-hash": hash(script), "style-hash": hash(style) };
const page = read("src/page.html").replace(/\{\{([a-z-]+)\}\}/g, (_, name) => parts[name]);
writeFileSync(target, page);
