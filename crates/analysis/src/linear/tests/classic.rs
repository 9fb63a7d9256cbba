//! Compares the packings with the classic bounds.

use super::*;

/// Returns the length of the longest requests, at most `total` in all.
fn longest(mut requests: Vec<(u64, u64)>, mut total: u64) -> u64 {
    requests.sort_unstable_by(|a, b| b.cmp(a));
    let mut time = 0;
    for (length, times) in requests {
        let taken = times.min(total);
        total -= taken;
        time += taken * length;
    }
    time
}

#[test]
fn none_is_looser_than_the_classic_bound() {
    let mut rng = fastrand::Rng::with_seed(7);
    let (mut tighter, mut all) = (0, 0);
    for _ in 0..400 {
        let (sharing, sites) = random(&mut rng);
        let (d, f, m) = (dpcp(&sharing, &sites).unwrap(), fmlp_plus(&sharing).unwrap(), mpcp(&sharing).unwrap());
        for i in 0..sharing.tasks.len() {
            let w = Written::new(&sharing, i);
            let (tasks, me) = (w.tasks, &w.tasks[i]);
            let at = |q: u16| sites[usize::from(q)];

            // DPCP: all requests of higher priority and the a(i,p) longest of lower priority on every other processor
            // with requests; all requests on its own.
            let mut classic = Blocked::default();
            for site in (0..4).filter(|&site| site != me.cluster && w.asked(site, &sites) > 0) {
                let there = || w.kinds.iter().filter(|k| at(k.q) == site);
                classic.remote += there().filter(|k| w.higher(k.x)).map(|k| k.issued * k.length).sum::<u64>();
                let conflicts = |q: u16| {
                    tasks.iter().any(|t| t.priority >= me.priority && t.requests.iter().any(|r| r.resource == q))
                };
                let lower =
                    there().filter(|k| !w.higher(k.x) && conflicts(k.q)).map(|k| (k.length, k.issued)).collect();
                classic.remote += longest(lower, w.asked(site, &sites));
            }
            classic.local = w.kinds.iter().filter(|k| at(k.q) == me.cluster).map(|k| k.issued * k.length).sum();
            assert!(d[i].remote <= classic.remote && d[i].local <= classic.local, "dpcp {i} {sharing:?}");
            (tighter, all) = (tighter + u32::from(d[i] != classic), all + 1);

            // FMLP+: the d(p) longest requests of every remote task, and one per arrival of every local task of lower
            // priority.
            let mut classic = Blocked::default();
            for x in (0..tasks.len()).filter(|&x| x != i && !(w.local(x) && w.higher(x))) {
                let its = w.kinds.iter().filter(|k| k.x == x).map(|k| (k.length, k.issued)).collect();
                if w.local(x) {
                    let own = me.requests.iter().map(|r| u64::from(r.count)).sum::<u64>();
                    let waits =
                        (0..4).filter(|&c| c != me.cluster).map(|c| w.waits(|y| tasks[y].cluster == c)).sum::<u64>();
                    classic.local += longest(its, 1 + own.min(waits));
                } else {
                    classic.remote += longest(its, w.waits(|y| tasks[y].cluster == tasks[x].cluster));
                }
            }
            assert!(f[i].remote <= classic.remote && f[i].local <= classic.local, "fmlp+ {i} {sharing:?}");

            // MPCP, local part: the longest section of every local task of lower priority at every arrival.
            let arrivals = 1 + me.requests.iter().map(|r| u64::from(r.count)).sum::<u64>();
            let lower = (0..tasks.len()).filter(|&x| x != i && w.local(x) && !w.higher(x));
            let longest = |x: usize| tasks[x].requests.iter().map(|r| r.length).max().unwrap_or(0);
            assert!(m[i].local <= arrivals * lower.map(longest).sum::<u64>(), "mpcp {i} {sharing:?}");
        }
    }
    assert!(tighter > all / 10, "{tighter} of {all}");
}

#[test]
fn none_is_looser_than_the_classic_bound_of_the_library() {
    use crate::blocking::{self as classic, fmlp::Sections};
    let mut rng = fastrand::Rng::with_seed(17);
    let (mut tighter, mut all) = ([0; 3], 0);
    for _ in 0..600 {
        let (sharing, sites) = random(&mut rng);
        let classic = [
            classic::dpcp::dpcp(&sharing, &sites).unwrap(),
            classic::dflp::dflp(&sharing, &sites).unwrap(),
            classic::fmlp::fmlp_plus(&sharing, Sections::Preemptive).unwrap(),
        ];
        let program = [dpcp(&sharing, &sites).unwrap(), dflp(&sharing, &sites).unwrap(), fmlp_plus(&sharing).unwrap()];
        for (which, (classic, program)) in classic.iter().zip(&program).enumerate() {
            for (task, (classic, program)) in classic.iter().zip(program).enumerate() {
                let (whole, parts) = (classic.total().unwrap(), (classic.remote.unwrap(), classic.local));
                let total = program.total().unwrap();
                assert!(total <= whole, "{which}: {task} of {sharing:?} {sites:?}: {program:?} {classic:?}");
                assert!(program.remote <= parts.0 && program.local <= parts.1, "{which}: {task} of {sharing:?}");
                tighter[which] += u32::from(total < whole);
            }
        }
        all += sharing.tasks.len() as u32;
    }
    assert!(tighter.iter().all(|&count| count > all / 20), "{tighter:?} of {all}");
}

#[test]
fn spinning_is_no_looser_as_response_times() {
    use crate::blocking::{joint, msrp};
    let mut rng = fastrand::Rng::with_seed(18);
    let (mut both, mut more, mut tighter, mut looser) = (0, 0, 0, 0);
    for _ in 0..12_000 {
        let (mut sharing, _) = random(&mut rng);
        for task in &mut sharing.tasks {
            task.period *= 4;
            task.deadline = task.period;
        }
        let classic = joint(&sharing, &mut msrp::protocol(&sharing, None).unwrap());
        let program = responses(&sharing, Locking::SpinFifo);
        // The program alone sometimes exceeds the classic bound.
        let alone = responses_of_program(&sharing, Locking::SpinFifo);
        if let (Ok(alone), Ok(classic)) = (&alone, &classic) {
            looser += u32::from(alone.responses.iter().zip(&classic.responses).any(|(alone, classic)| alone > classic));
        }
        match (classic, program) {
            (Ok(classic), Ok(program)) => {
                both += 1;
                for (classic, program) in classic.responses.iter().zip(&program.responses) {
                    assert!(program <= classic, "{sharing:?}: {program} {classic}");
                    tighter += u32::from(program < classic);
                }
            }
            (Ok(_), Err(why)) => panic!("{why} of {sharing:?}"),
            (Err(_), Ok(_)) => more += 1,
            (Err(_), Err(_)) => {}
        }
    }
    assert!(both > 5_000 && more > 20 && tighter > 5_000 && looser > 0, "{both} {more} {tighter} {looser}");
}
