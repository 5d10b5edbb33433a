//! Lists the functions that a page calls. A program exports nothing on its own.

const EXPORTS: [&str; 7] = [
    "input",
    "output",
    "output_length",
    "begin",
    "step",
    "now",
    "finish",
];

/// More memory than this the page does not take: a run that needs more ends with an error.
const MOST_MEMORY: u32 = 1 << 30;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("wasm32") {
        for name in EXPORTS {
            println!("cargo::rustc-link-arg-bins=--export={name}");
        }
        println!("cargo::rustc-link-arg-bins=--max-memory={MOST_MEMORY}");
    }
}
