//! The reader of recordings turns any bytes into a recording or a problem with its place, and never panics. What
//! follows from a damaged recording never panics either.
#![cfg(feature = "infer")]

mod check;

use check::Outcome;
use fastrand::Rng;

const CASES: usize = 2_000;

fn script(random: &mut Rng) -> Vec<u8> {
    let length = random.usize(0..300);
    std::iter::repeat_with(|| random.u8(..)).take(length).collect()
}

fn checked(bytes: &[u8]) -> Outcome {
    check::recording(bytes).unwrap_or_else(|error| panic!("{error}: {bytes:?}"))
}

#[test]
fn any_bytes_are_handled() {
    let mut random = Rng::with_seed(1);
    for _ in 0..CASES {
        assert_eq!(checked(&script(&mut random)), Outcome::Refused);
    }
}

#[test]
fn any_script_of_events_is_handled() {
    let mut random = Rng::with_seed(2);
    for _ in 0..CASES {
        assert_eq!(checked(&check::file_of(&script(&mut random))), Outcome::Accepted);
    }
}

#[test]
fn any_damage_to_a_file_is_handled() {
    let mut random = Rng::with_seed(3);
    let mut outcomes = [0, 0];
    for _ in 0..CASES {
        let mut file = check::file_of(&script(&mut random));
        for _ in 0..random.usize(1..6) {
            let at = random.usize(0..file.len());
            match random.u8(0..4) {
                0 => file[at] = random.u8(..),
                1 => file[at] ^= 1 << random.u8(0..8),
                2 => file.truncate(at.max(1)),
                // The words of a chunk stay aligned.
                _ => drop(file.drain(at / 8 * 8..file.len().min(at / 8 * 8 + 8))),
            }
            if file.is_empty() {
                break;
            }
        }
        outcomes[usize::from(checked(&file) == Outcome::Accepted)] += 1;
    }
    assert!(outcomes.iter().all(|&count| count > CASES / 20), "{outcomes:?}");
}
