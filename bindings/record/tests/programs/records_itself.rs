//! A program that records itself: the first argument is the folder of the recording.
//! `lockwright record --read FOLDER` then shows what it did.

use std::time::Duration;

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "recorded".into());
    lockwright_recorder::start(&folder)?;
    let periodic = std::thread::Builder::new().name("periodic".into()).spawn(|| {
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(2));
        }
    })?;
    periodic.join().expect("the thread does not panic");
    assert!(lockwright_recorder::stop() && !lockwright_recorder::stop());
    assert!(lockwright_recorder::start(&folder).is_err(), "a process records once");
    Ok(())
}
