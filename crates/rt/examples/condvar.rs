//! A mailbox: one thread sends numbers, another one waits for them at a condition variable.
//!
//! `cargo run -p lockwright --example condvar`

use lockwright::mutex::{Condvar, LockError, Mutex, WaitEnd};
use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

/// The numbers that have not been received yet. Mutexes inherit priorities unless another protocol is chosen.
static MAILBOX: Mutex<VecDeque<u32>> = Mutex::new(VecDeque::new());
static ARRIVED: Condvar = Condvar::new();

fn send(number: u32) -> Result<(), LockError<'static, VecDeque<u32>>> {
    let mut mailbox = MAILBOX.lock()?;
    mailbox.push_back(number);
    // The mutex is held: the signal moves the receiver to the mutex, and it wakes when the guard is dropped.
    ARRIVED.signal();
    Ok(())
}

/// Returns the next number, or `None` if none arrives in time.
fn receive(time: Duration) -> Result<Option<u32>, LockError<'static, VecDeque<u32>>> {
    let mut mailbox = MAILBOX.lock()?;
    loop {
        if let Some(number) = mailbox.pop_front() {
            return Ok(Some(number));
        }
        // A wait may end without a signal, so the mailbox is checked again.
        let (again, end) = ARRIVED.wait_for(mailbox, time)?;
        mailbox = again;
        if end == WaitEnd::TimedOut {
            return Ok(mailbox.pop_front());
        }
    }
}

fn main() -> Result<(), String> {
    let sender = thread::spawn(|| {
        for number in 0..10 {
            send(number).map_err(|error| error.to_string())?;
            thread::sleep(Duration::from_millis(5));
        }
        Ok::<(), String>(())
    });
    let mut sum = 0;
    while let Some(number) = receive(Duration::from_millis(200)).map_err(|error| error.to_string())? {
        sum += number;
    }
    sender.join().expect("the thread ends")?;
    println!("received numbers that add up to {sum}");
    assert_eq!(sum, 45);
    Ok(())
}
