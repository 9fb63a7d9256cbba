//! Ranks protocols by the response time of the most urgent task.
//!
//! ```text
//! cargo run -p lockwright-analysis --example rank_protocols
//! ```

use lockwright_analysis::analyse;
use lockwright_model::format::parse_system;
use lockwright_model::{DURATION_MAX, Duration, Protocol};

/// Two processors that share a bus.
const SYSTEM: &str = r#"
    [platform]
    cpus = 2

    [[resource]]
    name = "bus"

    [[task]]
    name = "control"
    cpu = 0
    period = "10 ms"
    body = [{ run = "1 ms" }, { lock = "bus" }, { run = "500 us" }, { unlock = "bus" }]

    [[task]]
    name = "video"
    cpu = 0
    period = "40 ms"
    body = [{ run = "8 ms" }, { lock = "bus" }, { run = "2 ms" }, { unlock = "bus" }]

    [[task]]
    name = "log"
    cpu = 1
    period = "100 ms"
    body = [{ lock = "bus" }, { run = "3 ms" }, { unlock = "bus" }, { run = "20 ms" }]
"#;

fn main() {
    let system = parse_system(SYSTEM).expect("a valid task set");
    let mut ranked: Vec<(Option<Duration>, Protocol)> = Vec::new();
    for protocol in Protocol::ALL {
        ranked.push((analyse(&system, protocol).tasks[0].response, protocol));
    }
    // Protocols without a bound come last.
    ranked.sort_by_key(|(response, _)| response.unwrap_or(DURATION_MAX));
    for (response, protocol) in ranked {
        match response {
            Some(response) => println!("{protocol:10} {response}"),
            None => println!("{protocol:10} no bound"),
        }
    }
}
