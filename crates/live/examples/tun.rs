//! One connection over the TUN interface on standard input: `tun SETTINGS.json`. It prints the outcome as JSON.

use polypath_live::{Settings, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args()
        .nth(1)
        .ok_or("usage: tun SETTINGS.json < interface")?;
    let settings: Settings = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let outcome = run(settings, &std::io::stdin())?;
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}
