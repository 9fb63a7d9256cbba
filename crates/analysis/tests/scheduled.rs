//! Systems under other schedulers: what was accepted once, though a schedule misses a deadline.

use lockwright_analysis::{Untested, scheduled};
use lockwright_model::format::{parse_overheads, parse_system};
use lockwright_model::{Overheads, System};

fn system(text: &str) -> System {
    parse_system(text).expect("a task set")
}

/// A section of 10 ms takes 11.1 ms under ticks, and who waits for it 1 ms besides.
#[test]
fn sections_hold_their_interrupts_under_edf() {
    let text = |deadline: &str| {
        format!(
            "[platform]\nscheduler = \"p-edf\"\n[[resource]]\nname = \"r\"\n\
             [[task]]\nname = \"i\"\nperiod = \"{deadline}\"\nwcet = \"1 ms\"\nrequests = [{{ resource = \"r\", length = \"1 us\" }}]\n\
             [[task]]\nname = \"j\"\nperiod = \"100 ms\"\nwcet = \"10 ms\"\nrequests = [{{ resource = \"r\", length = \"10 ms\" }}]\n"
        )
    };
    let ticks = parse_overheads("tick = \"100 us\"\ntick_period = \"1 ms\"").unwrap();
    assert!(scheduled(&system(&text("11.5 ms")), &Overheads::default()).unwrap().schedulable);
    assert!(!scheduled(&system(&text("11.5 ms")), &ticks).unwrap().schedulable);
    assert!(scheduled(&system(&text("13 ms")), &ticks).unwrap().schedulable);
}

#[test]
fn jitter_with_resources_is_refused_under_edf() {
    let late = "[platform]\nscheduler = \"p-edf\"\n[[resource]]\nname = \"r\"\n\
        [[task]]\nname = \"u\"\nperiod = \"70 ms\"\nwcet = \"1 ms\"\nrequests = [{ resource = \"r\", length = \"1 ms\" }]\n\
        [[task]]\nname = \"i\"\nperiod = \"100 ms\"\njitter = \"50 ms\"\nwcet = \"49 ms\"\n\
        [[task]]\nname = \"j\"\nperiod = \"900 ms\"\nwcet = \"15 ms\"\nrequests = [{ resource = \"r\", length = \"15 ms\" }]\n";
    assert!(matches!(scheduled(&system(late), &Overheads::default()), Err(Untested::Jitter(_))));
}

/// One processor takes the releases of all 40 tasks, a millisecond each.
#[test]
fn releases_queue_at_the_processor_that_takes_them() {
    let tasks: String = (0..40)
        .map(|i| format!("[[task]]\nname = \"t{i}\"\nperiod = \"1 s\"\ndeadline = \"30 ms\"\nwcet = \"1 us\"\n"))
        .collect();
    let all = parse_overheads("dedicated_interrupts = true\nrelease = \"1 ms\"").unwrap();
    let free = system(&format!("[platform]\ncpus = 2\nscheduler = \"g-edf\"\n{tasks}"));
    assert!(scheduled(&free, &Overheads::default()).unwrap().schedulable);
    assert!(!scheduled(&free, &all).unwrap().schedulable);
}

#[test]
fn what_does_not_fit_is_a_verdict() {
    let one =
        system("[platform]\nscheduler = \"p-edf\"\n[[task]]\nname = \"a\"\nperiod = \"1 ms\"\nwcet = \"900 us\"\n");
    let heavy = parse_overheads("schedule = \"100 us\"").unwrap();
    let found = scheduled(&one, &heavy).unwrap();
    assert!(!found.schedulable && !found.exact);
    assert_eq!(found.tests[0].name, "overheads");
}
