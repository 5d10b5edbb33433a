"""Reads the summary of `cargo llvm-cov report --json` and prints lines covered by module, as a table in Markdown."""

import json
import sys
from collections import defaultdict

MODULES = {
    "crates/transport/src/": 1,
    "crates/wire/src/": 1,
}


def module(path: str) -> str | None:
    for root, depth in MODULES.items():
        at = path.find(root)
        if at >= 0:
            inner = path[at + len(root) :].split("/")
            below = inner[:depth] if len(inner) > depth else []
            return root + "/".join(below)
    return None


def main() -> None:
    lines: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for file in json.load(sys.stdin)["data"][0]["files"]:
        name = module(file["filename"])
        if name is None:
            continue
        root = next(root for root in MODULES if name.startswith(root))
        summary = file["summary"]["lines"]
        for key in {name, f"all of {root}"}:
            lines[key][0] += summary["covered"]
            lines[key][1] += summary["count"]
    print("| module | lines | covered |\n|---|---|---|")
    for name, (covered, count) in sorted(lines.items(), key=lambda item: (item[0].startswith("all"), item[0])):
        print(f"| `{name}` | {count} | {covered / max(count, 1):.1%} |")


if __name__ == "__main__":
    main()
