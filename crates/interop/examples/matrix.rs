//! The published test cases between our endpoint and others, each in both roles.
//!
//! `matrix [--python PATH] [--peer NAME] [--case NAME] [--seed N] [--out PAGE | --check PAGE]`: `--python` names a
//! Python that has aioquic. `--out` writes the page. `--check` fails if a case that the page lists as passed does not
//! pass.

use std::path::PathBuf;
use std::process::ExitCode;

use polypath_interop::Side;
use polypath_interop::matrix::{Cell, stands, written};
use polypath_interop::peer::{AioquicPeer, NoqProto, Peer, QuinnProto};
use polypath_interop::scenario::{REGISTRY, Verdict};

/// What the page is made with.
const SEEDS: [u64; 3] = [1, 2, 3];

#[derive(Default)]
struct Options {
    python: Option<PathBuf>,
    peer: Option<String>,
    case: Option<String>,
    seed: Option<u64>,
    out: Option<PathBuf>,
    check: Option<PathBuf>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(format!("{name} needs a value"))?;
            match name.as_str() {
                "--python" => options.python = Some(value.into()),
                "--peer" => options.peer = Some(value),
                "--case" => options.case = Some(value),
                "--seed" => {
                    let seed = value.parse();
                    options.seed = Some(seed.map_err(|_| format!("--seed {value}: no number"))?);
                }
                "--out" => options.out = Some(value.into()),
                "--check" => options.check = Some(value.into()),
                _ => return Err(format!("{name} is no option")),
            }
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let python = options.python.clone().unwrap_or("python3".into());
    let aioquic = AioquicPeer::with(&python);
    let mut peers: Vec<&dyn Peer> = vec![&NoqProto, &QuinnProto];
    match &aioquic {
        Ok(aioquic) => peers.push(aioquic),
        Err(reason) => eprintln!("without aioquic: {}: {reason}", python.display()),
    }
    let chosen = |name: &str, wish: &Option<String>| {
        wish.as_ref()
            .is_none_or(|wish| name.split(' ').next() == Some(wish.as_str()))
    };
    peers.retain(|peer| chosen(peer.name(), &options.peer));
    if peers.is_empty() {
        return Err("no such peer".to_string());
    }
    let seeds = options.seed.map_or(SEEDS.to_vec(), |seed| vec![seed]);
    let mut cells = Vec::new();
    for scenario in REGISTRY.iter().filter(|it| chosen(it.name, &options.case)) {
        let checks_chance = options.check.is_some() && scenario.network.is_by_chance();
        let seeds = if checks_chance { &SEEDS[..1] } else { &seeds };
        for &peer in &peers {
            for role in [Side::Client, Side::Server] {
                let cell = Cell::play(scenario, peer, role, seeds.iter().copied());
                println!(
                    "{}, {} as {role:?}: {}",
                    scenario.name,
                    cell.peer,
                    cell.word()
                );
                cells.push(cell);
            }
        }
    }
    if let Some(path) = &options.out {
        let whole = options.peer.is_none() && options.case.is_none() && aioquic.is_ok();
        if !whole {
            return Err("the page is of every test case and peer; it was not written".to_string());
        }
        let page = read(path)?;
        let page = written(&page, &peers, &cells)?;
        std::fs::write(path, page).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if let Some(path) = &options.check {
        let page = read(path)?;
        for cell in &cells {
            let said = stands(&page, cell.scenario.name, &cell.peer, cell.role);
            if said.as_deref() == Some("passed") && cell.verdict != Verdict::Passed {
                let name = cell.scenario.name;
                return Err(format!(
                    "{name}, {} as {:?}: {}",
                    cell.peer,
                    cell.role,
                    cell.word()
                ));
            }
            if said.is_none() {
                return Err(format!(
                    "the page does not have {} as {:?}",
                    cell.peer, cell.role
                ));
            }
        }
    }
    Ok(())
}

fn read(path: &PathBuf) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
