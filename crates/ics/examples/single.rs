//! A single word that several threads update.
//!
//! `cargo run -p lockwright-ics --example single`

use lockwright_ics::{Single, Stop};
use std::thread;

static LEVEL: Single<i32> = Single::new(0);

fn main() -> Result<(), Stop> {
    let threads = [1, -2, 3]
        .map(|step| thread::spawn(move || (0..1_000).try_for_each(|_| LEVEL.update(|level| Ok((level + step, ()))))));
    for thread in threads {
        thread.join().expect("the thread ends")?;
    }
    println!("the level is {}", LEVEL.get());
    assert_eq!(LEVEL.get(), 2_000);
    Ok(())
}
