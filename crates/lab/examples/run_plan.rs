//! Runs a plan from a JSON file and prints the totals of its connections and subflows: `run_plan PLAN.json [CAPTURE_DIRECTORY]`.

use polypath_lab::{CaptureMode, Simulation};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let plan = std::fs::read_to_string(
        arguments
            .next()
            .ok_or("usage: run_plan PLAN.json [CAPTURE_DIRECTORY]")?,
    )?;
    let directory = arguments.next().map(Into::into);
    let mode = if directory.is_some() {
        CaptureMode::Hosts
    } else {
        CaptureMode::None
    };
    let mut simulation = Simulation::new(&plan, mode, directory)?;
    simulation.step_until(u64::MAX)?;
    println!(
        "ended at {:.3} s, {:?}",
        simulation.now() as f64 / 1e9,
        simulation.totals()
    );
    let recording = simulation.finish()?;
    for (name, table) in recording.tables() {
        if name.ends_with("_ends") || name == "requests" || name == "events" {
            println!("{name}: {}", table.num_rows());
            for row in 0..table.num_rows().min(80) {
                let cells = table
                    .columns()
                    .iter()
                    .map(|column| arrow_cast::display::array_value_to_string(column, row));
                println!("  {}", cells.collect::<Result<Vec<_>, _>>()?.join(" "));
            }
        }
    }
    Ok(())
}
