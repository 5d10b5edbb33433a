//! A file over the `noq` crate: `noq serve FOLDER ADDRESS:PORT`, or `noq fetch ADDRESS:PORT NAME OUT ADDRESS..` from
//! the given addresses.

mod files;

use std::net::IpAddr;

use files::{Failure, fetch, serve};

const USAGE: &str =
    "usage: noq serve FOLDER ADDRESS:PORT | noq fetch ADDRESS:PORT NAME OUT ADDRESS..";

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match words[..] {
        ["serve", folder, at] => {
            let bound = |at| println!("listening at {at}");
            runtime.block_on(serve(folder.into(), at.parse()?, bound))
        }
        ["fetch", server, name, out, ref from @ ..] => {
            let from = from.iter().map(|address| address.parse());
            let from: Vec<IpAddr> = from.collect::<Result<_, _>>()?;
            let server = server.parse()?;
            let (paths, bytes) = runtime.block_on(async {
                let mut out = tokio::fs::File::create_new(out).await?;
                fetch(server, name, &from, &mut out).await
            })?;
            println!("{bytes} bytes over {paths} paths");
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}
