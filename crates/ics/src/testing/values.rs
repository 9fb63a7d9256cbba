//! Variables of several words: read and written as a whole.

use crate::{Data, Ics, Stop, Var, Word, data};

#[derive(Clone, Copy, PartialEq, Debug)]
struct Pose {
    x: f64,
    y: f64,
    is_valid: bool,
}
data!(Pose { x: f64, y: f64, is_valid: bool });

const POSE: Var<Pose> = Var::new(0);
const PAIRS: Var<[(i8, f32); 2]> = POSE.then();
const LAST: Var<u64> = PAIRS.then();

type Object = Ics<[Word; 8], 2, 4>;

fn object() -> Object {
    Ics::new([const { Word::new(0) }; 8])
}

fn read<T: Data>(ics: &Object, var: Var<T>) -> T {
    ics.query(|view| view.read(var)).expect("it is there")
}

#[test]
fn they_lie_one_behind_the_other_and_come_back() {
    let ics = object();
    let mut slot = ics.slot().expect("two slots");
    let pose = Pose { x: -1.5, y: 2.25, is_valid: true };
    let pairs = [(-3, 0.5), (7, -0.25)];
    assert_eq!((<Pose as Data>::WORDS, PAIRS.index, LAST.index), (3, 3, 7));
    assert_eq!(slot.update(|section| section.write(POSE, pose)), Ok(()));
    assert_eq!(slot.update(|section| section.write(PAIRS, pairs)), Ok(()));
    assert_eq!(slot.update(|section| section.write(LAST, 9)), Ok(()));
    assert_eq!((read(&ics, POSE), read(&ics, PAIRS), read(&ics, LAST)), (pose, pairs, 9));
    // A section sees what it wrote, and may write it again: that takes no more of its record.
    let seen = slot.update(|section| {
        section.write(POSE, Pose { x: 0.0, ..pose })?;
        let own = section.read(POSE)?;
        section.write(POSE, Pose { y: 8.0, ..own })?;
        section.read(POSE)
    });
    assert_eq!(seen, Ok(Pose { x: 0.0, y: 8.0, is_valid: true }));
    assert_eq!(Ok(read(&ics, POSE)), seen);
}

#[test]
fn one_that_does_not_fit_is_not_written_by_halves() {
    let ics = object();
    let mut slot = ics.slot().expect("two slots");
    let swallowed = slot.update(|section| {
        section.write(POSE, Pose { x: 1.0, y: 1.0, is_valid: true })?;
        // Four words more, and there is room for one. The body goes on all the same.
        assert_eq!(section.write(PAIRS, [(1, 1.0); 2]), Err(Stop::Full));
        assert_eq!(section.write(Var::<[u64; 3]>::new(6), [1; 3]), Err(Stop::NoSuchWord));
        assert_eq!(section.write(Var::<(u64, u64)>::new(usize::MAX), (1, 1)), Err(Stop::NoSuchWord));
        // Of these two words one is written already.
        section.write(Var::<[u64; 2]>::new(2), [0, 5])
    });
    assert_eq!(swallowed, Ok(()));
    assert_eq!(read(&ics, Var::<[u64; 8]>::new(0)), [1.0_f64.to_bits(), 1.0_f64.to_bits(), 0, 5, 0, 0, 0, 0]);
}

/// Says that it has a word, and has three.
#[derive(Clone, Copy)]
struct Liar;

impl Data for Liar {
    const WORDS: usize = 1;

    fn put<E>(self, each: &mut impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        (0..3).try_for_each(|_| each(1))
    }
    fn take<E>(_: &mut impl FnMut() -> Result<u64, E>) -> Result<Self, E> {
        Ok(Self)
    }
}

#[test]
fn without_a_look_at_the_room_halves_are_written() {
    let ics = object();
    let mut slot = ics.slot().expect("two slots");
    let swallowed = slot.update(|section| {
        section.write(POSE, Pose { x: 0.0, y: 0.0, is_valid: false })?;
        assert_eq!(section.write(Var::<Liar>::new(5), Liar), Err(Stop::Full));
        Ok(())
    });
    assert_eq!(swallowed, Ok(()));
    assert_eq!(read(&ics, Var::<[u64; 3]>::new(5)), [1, 0, 0]);
}
