//! Runs a benchmark's work and prints how many packet-hops it was: `work W1 [SECONDS]`. Made to run under valgrind.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("usage: work NAME [SECONDS]")?;
    let seconds = arguments.next().map(|text| text.parse()).transpose()?;
    let report = polypath_lab::bench::run(&name, seconds).ok_or("no such work")??;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
