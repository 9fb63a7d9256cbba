//! The wait-free object.

use super::{Attempt, Construction, LINES};
use crate::Bound;
use crate::mutation::{in_order, removed};
use crate::sequential::{Answer, Request, Sequential};
use crate::sync::{AtomicU64, array, constructor, in_sequence};
use crate::word::{index, tag};
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use crossbeam_utils::CachePadded;

/// A sequential object on which each attempt performs two requests: that of its participant, and that of the
/// participant whose turn it is in this version.
///
/// The answer to a request is in the same place of all tables from the version that contains it until the participant
/// makes another request. Attempts that begin later copy the answer, so it can be read from a table that is not
/// current.
pub(crate) struct Helping<O, const BLOCKS: usize, const SLOTS: usize> {
    object: Construction<BLOCKS, SLOTS, SLOTS>,
    announced: [CachePadded<Announced>; SLOTS],
    kind: PhantomData<fn() -> O>,
}

/// The last request of a participant.
struct Announced {
    /// | number of the request 63 | 1 for a push |
    request: AtomicU64,
    value: AtomicU64,
}

impl<O: Sequential, const BLOCKS: usize, const SLOTS: usize> Helping<O, BLOCKS, SLOTS> {
    /// The values that fit.
    pub(crate) const CAPACITY: usize = BLOCKS * LINES * O::PER_LINE - O::HEADER;

    /// The bound of an operation.
    pub(crate) fn bound() -> Bound {
        let attempt = Construction::<BLOCKS, SLOTS, SLOTS>::steps(O::accesses(Self::CAPACITY), 2);
        // An announcement, and a late answer. Per attempt and request: the request, its value, and the answer before
        // and after.
        let once = 3 + 3;
        Bound { once, attempt: attempt + 12, attempts: Some(SLOTS as u64 + 1) }
    }

    constructor! {
        pub(crate) fn new() -> Self {
            Self {
                object: Construction::new(),
                announced: array!(CachePadded::new(Announced {
                    request: AtomicU64::new(0),
                    value: AtomicU64::new(0),
                })),
                kind: PhantomData,
            }
        }
    }

    pub(crate) fn perform(&self, me: usize, request: Request) -> Answer {
        let announced = &self.announced[me];
        let number = (announced.request.load(Relaxed) >> 1) + 1;
        let (is_push, value) = match request {
            Request::Push(value) => (true, value),
            Request::Pop => (false, 0),
        };
        announced.value.store(value, Relaxed);
        // ORDERING: the release pairs with the acquire of an attempt that performs the request.
        // Store and then load, on both sides: this participant swaps its request and then loads the head; another one
        // commits, and a later attempt loads the head and then the request. The swap, the three loads and the
        // compare-and-swap of each commit are sequentially consistent, so they have one order S that agrees with the
        // order in each thread. If an attempt misses the request, then in S its load of the head precedes its load of
        // the request, which precedes the swap, which precedes the load of the head below. The commit that the attempt
        // saw precedes all of them, so the load below sees the same version or a later one.
        // On x86 a swap is a full barrier. On Arm it ends with a store-release (STLXR, SWPAL), and no later
        // load-acquire (LDAR, as which a sequentially consistent load is compiled) is performed before it.
        announced.request.swap(number << 1 | u64::from(is_push), SeqCst);
        in_sequence();
        // After the first commit that this participant notices, each commit sees the request, and this participant has
        // its turn in one of `SLOTS` versions.
        for _ in 0..=SLOTS {
            let mut attempt = self.object.begin(me);
            in_sequence();
            if !removed!(Help) {
                let turn = (tag(attempt.seen) % SLOTS as u64) as usize;
                self.help(&mut attempt, turn);
            }
            let answer = self.help(&mut attempt, me);
            if attempt.commit() {
                return answer;
            }
        }
        let table = self.object.table(index(self.object.head.load(Acquire)));
        let (done, value) = &table.answers[me];
        let (done, value) = (done.load(Relaxed), value.load(Relaxed));
        assert!(done >> 1 == number, "others have performed a request after as many versions as there are slots");
        (done & 1 == 1, value)
    }

    /// Performs the request of a participant unless it has been performed, and returns the answer.
    fn help(&self, attempt: &mut Attempt<'_, BLOCKS, SLOTS, SLOTS>, other: usize) -> Answer {
        let announced = &self.announced[other];
        // ORDERING: this load and that of the head in `begin` are the pair of an attempt; see `perform`.
        let request = announced.request.load(in_order!(RequestInOrder));
        let (done, value) = &attempt.object.table(attempt.mine).answers[other];
        let seen = done.load(Relaxed);
        if seen >> 1 == request >> 1 {
            return (seen & 1 == 1, value.load(Relaxed));
        }
        // If the participant has announced another request meanwhile, then a commit has performed this one, and this
        // attempt fails.
        let argument = announced.value.load(Relaxed);
        let asked = if request & 1 == 1 { Request::Push(argument) } else { Request::Pop };
        let (is_done, result) = O::apply(attempt, Self::CAPACITY, asked);
        let (done, value) = &attempt.object.table(attempt.mine).answers[other];
        done.store(request & !1 | u64::from(is_done), Relaxed);
        value.store(result, Relaxed);
        attempt.changed = true;
        (is_done, result)
    }
}
