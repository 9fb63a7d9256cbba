//! Prints how far each task can grow before a deadline is missed.
//!
//! ```text
//! cargo run -p lockwright-analysis --example sensitivity
//! ```

use lockwright_analysis::{Growth, sensitivity};
use lockwright_model::format::parse_system;
use lockwright_model::{Overheads, Protocol};

/// Two tasks that share a sensor.
const SYSTEM: &str = r#"
    [[resource]]
    name = "sensor"

    [[task]]
    name = "control"
    period = "10 ms"
    body = [{ run = "1 ms" }, { lock = "sensor" }, { run = "1 ms" }, { unlock = "sensor" }]

    [[task]]
    name = "filter"
    period = "50 ms"
    body = [{ lock = "sensor" }, { run = "4 ms" }, { unlock = "sensor" }, { run = "10 ms" }]
"#;

fn main() {
    let system = parse_system(SYSTEM).expect("a valid task set");
    let found = sensitivity(&system, &Overheads::default(), Protocol::Icpp, |_, _| true);
    let found = found.expect("the search is not interrupted");
    for (task, growth) in found.tasks {
        let name = &system.task(task).name;
        match growth {
            Growth::Permille(factor) => {
                println!("{name} can take {}.{:03} times as long", factor / 1000, factor % 1000);
            }
            Growth::Broken => println!("a deadline is missed however short {name} is"),
            Growth::Unlimited => println!("{name} can take any time"),
        }
    }
}
