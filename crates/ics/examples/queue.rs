//! A priority queue in fixed storage.
//!
//! `cargo run -p lockwright-ics --example queue`

use lockwright_ics::{PriorityQueue, Stop};
use std::thread;

/// 16 nodes for 2 writers: room for 14 entries.
static QUEUE: PriorityQueue<16, 2> = PriorityQueue::new();

fn main() -> Result<(), Stop> {
    let producer = thread::spawn(|| -> Result<(), Stop> {
        let mut writer = QUEUE.writer().ok_or(Stop::Full)?;
        for value in 0..6 {
            writer.enqueue(value % 3, value)?;
        }
        Ok(())
    });
    producer.join().expect("the thread ends")?;
    let mut writer = QUEUE.writer().ok_or(Stop::Full)?;
    let mut entries = Vec::new();
    while let Some(entry) = writer.dequeue()? {
        entries.push(entry);
    }
    println!("{entries:?}");
    assert_eq!(entries, [(2, 2), (2, 5), (1, 1), (1, 4), (0, 0), (0, 3)]);
    Ok(())
}
