//! A control loop and a logger share a position under a mutex with priority inheritance.
//!
//! The control loop locks with a deadline: if the logger holds the mutex for too long, the loop skips the cycle. While
//! the loop waits, the logger inherits the priority of its thread. Without permission for real-time priorities both are
//! ordinary threads; to see inheritance, run it under `chrt -f 10`.
//!
//! `cargo run -p lockwright --example inheritance`

use lockwright::mutex::{LockError, Mutex, MutexProtocol};
use std::thread;
use std::time::Duration;

static POSITION: Mutex<[f64; 3]> = Mutex::builder().protocol(MutexProtocol::Inherit).build([0.0; 3]);

/// Moves by one step in each cycle. Returns the number of cycles that were skipped.
fn control(cycles: u32) -> Result<u32, LockError<'static, [f64; 3]>> {
    let mut skipped = 0;
    for _ in 0..cycles {
        match POSITION.lock_for(Duration::from_millis(1)) {
            Ok(mut position) => position[0] += 0.5,
            Err(LockError::TimedOut) => skipped += 1,
            Err(error) => return Err(error),
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(skipped)
}

fn main() -> Result<(), String> {
    let control = thread::spawn(|| control(100).map_err(|error| error.to_string()));
    while !control.is_finished() {
        // The copy is short: the control loop waits for it, not for the output.
        let position = *POSITION.lock().map_err(|error| error.to_string())?;
        println!("at {position:?}");
        thread::sleep(Duration::from_millis(20));
    }
    let skipped = control.join().expect("the thread ends")?;
    println!("{skipped} of 100 cycles were skipped");
    Ok(())
}
