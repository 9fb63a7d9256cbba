//! Two threads write a pose of three fields, and every query reads a consistent one.
//!
//! `cargo run -p lockwright-ics --example pose`

use lockwright_ics::{Ics, Stop, Var, Word, data};
use std::thread;

#[derive(Clone, Copy, PartialEq, Debug)]
struct Pose {
    x: f64,
    y: f64,
    updates: u32,
}
data!(Pose { x: f64, y: f64, updates: u32 });

const POSE: Var<Pose> = Var::new(0);
static SHARED: Ics<[Word; 3], 2, 3> = Ics::new([const { Word::new(0) }; 3]);

fn moves() -> Result<(), Stop> {
    let mut writer = SHARED.writer().ok_or(Stop::Full)?;
    for _ in 0..1_000 {
        writer.update(|section| {
            let pose = section.read(POSE)?;
            section.write(POSE, Pose { x: pose.x + 0.5, y: pose.y - 0.5, updates: pose.updates + 1 })
        })?;
    }
    Ok(())
}

fn main() -> Result<(), Stop> {
    let threads = [thread::spawn(moves), thread::spawn(moves)];
    for _ in 0..1_000 {
        let pose = SHARED.query(|view| view.read(POSE))?;
        assert_eq!(pose.x, -pose.y);
    }
    for thread in threads {
        thread.join().expect("the thread ends")?;
    }
    let pose = SHARED.query(|view| view.read(POSE))?;
    println!("{pose:?}");
    assert_eq!(pose, Pose { x: 1_000.0, y: -1_000.0, updates: 2_000 });
    Ok(())
}
