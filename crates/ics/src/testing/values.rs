//! Variables of several words are read and written as a whole.

use crate::mutation::Mutation;
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
    ics.query(|view| view.read(var)).expect("the variable exists")
}

#[test]
fn variables_follow_each_other_and_keep_their_values() {
    let ics = object();
    let mut writer = ics.writer().expect("two writers");
    let pose = Pose { x: -1.5, y: 2.25, is_valid: true };
    let pairs = [(-3, 0.5), (7, -0.25)];
    assert_eq!((<Pose as Data>::WORDS, PAIRS.index, LAST.index), (3, 3, 7));
    assert_eq!(writer.update(|section| section.write(POSE, pose)), Ok(()));
    assert_eq!(writer.update(|section| section.write(PAIRS, pairs)), Ok(()));
    assert_eq!(writer.update(|section| section.write(LAST, 9)), Ok(()));
    assert_eq!((read(&ics, POSE), read(&ics, PAIRS), read(&ics, LAST)), (pose, pairs, 9));
    // A section reads its own writes. It may write a variable again, which takes no more of its record.
    let seen = writer.update(|section| {
        section.write(POSE, Pose { x: 0.0, ..pose })?;
        let own = section.read(POSE)?;
        section.write(POSE, Pose { y: 8.0, ..own })?;
        section.read(POSE)
    });
    assert_eq!(seen, Ok(Pose { x: 0.0, y: 8.0, is_valid: true }));
    assert_eq!(Ok(read(&ics, POSE)), seen);
}

#[test]
fn a_variable_that_does_not_fit_is_not_written_in_part() {
    let ics = object();
    let mut writer = ics.writer().expect("two writers");
    let ignored = writer.update(|section| {
        // This takes three of the four words. The body ignores the errors that follow.
        section.write(Var::<[u64; 3]>::new(0), [1; 3])?;
        assert_eq!(section.write(PAIRS, [(1, 1.0); 2]), Err(Stop::Full));
        assert_eq!(section.write(Var::<(u64, u64)>::new(6), (1, 1)), Err(Stop::Full));
        assert_eq!(section.write(Var::<[u64; 3]>::new(6), [1; 3]), Err(Stop::NoSuchWord));
        assert_eq!(section.write(Var::<(u64, u64)>::new(usize::MAX), (1, 1)), Err(Stop::NoSuchWord));
        assert_eq!(section.read(Var::<[u64; 5]>::new(3)), Ok([0; 5]));
        Ok(())
    });
    assert_eq!(ignored, Ok(()));
    let all = Var::<[u64; 8]>::new(0);
    assert_eq!(read(&ics, all), [1, 1, 1, 0, 0, 0, 0, 0]);
    // Writes reach the last word; one of two words is written already.
    let fits = writer.update(|section| {
        section.write(Var::<[u64; 3]>::new(5), [2; 3])?;
        section.write(Var::<[u64; 2]>::new(4), [3; 2])
    });
    assert_eq!(fits, Ok(()));
    assert_eq!(read(&ics, all), [1, 1, 1, 0, 3, 3, 2, 2]);
}

/// Returns the words after a section that writes a variable without room for it, and continues.
fn words_after_a_write_without_room() -> [u64; 8] {
    let ics = object();
    let mut writer = ics.writer().expect("two writers");
    let ignored = writer.update(|section| {
        section.write(Var::<[u64; 3]>::new(0), [1; 3])?;
        assert_eq!(section.write(Var::<(u64, u64)>::new(6), (1, 1)), Err(Stop::Full));
        Ok(())
    });
    assert_eq!(ignored, Ok(()));
    read(&ics, Var::new(0))
}

#[test]
fn without_the_room_check_a_part_is_written() {
    assert_eq!(words_after_a_write_without_room(), [1, 1, 1, 0, 0, 0, 0, 0]);
    assert_eq!(Mutation::NoRoomCheck.during(words_after_a_write_without_room), [1, 1, 1, 0, 0, 0, 1, 0]);
}

/// Names that the macro might use itself, and a field with the name of a constant.
mod names {
    use crate::data;

    #[derive(Clone, Copy, PartialEq, Debug)]
    pub(super) struct E(pub(super) u8);

    impl crate::Value for E {
        fn to_bits(self) -> u64 {
            self.0.into()
        }
        fn from_bits(bits: u64) -> Self {
            Self(bits as u8)
        }
    }

    #[allow(non_upper_case_globals, dead_code)]
    const known: u64 = 3;

    #[derive(Clone, Copy, PartialEq, Debug)]
    pub(super) struct Odd {
        pub(super) each: E,
        pub(super) next: u64,
        pub(super) known: u64,
        pub(super) r#type: bool,
    }
    data!(Odd { each: E, next: u64, known: u64, r#type: bool });
}

#[test]
fn the_macro_captures_no_names() {
    let ics = object();
    let odd = names::Odd { each: names::E(7), next: 8, known: 9, r#type: true };
    assert_eq!(ics.writer().expect("two writers").update(|section| section.write(Var::new(4), odd)), Ok(()));
    assert_eq!(read(&ics, Var::<names::Odd>::new(4)), odd);
}
