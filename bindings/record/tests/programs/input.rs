//! Waits for timers and data that need care (`input.c`).

use super::support::{build, record, steps};

#[test]
fn fortified_programs_are_recorded() {
    let Some(program) = build("input.c", &["-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]) else { return };
    let text = String::from_utf8_lossy(&std::fs::read(&program).expect("a program")).into_owned();
    for name in ["__read_chk", "__recv_chk", "__recvfrom_chk", "__poll_chk", "__ppoll_chk"] {
        assert!(text.contains(name), "the program does not call {name}");
    }
    let steps = steps(&record(&program, &["checked"]), "reads");
    let kind = |step: &String| step.split(' ').next().map(str::to_owned);
    let waits: Vec<_> = steps.iter().filter_map(kind).filter(|kind| kind == "input" || kind == "poll").collect();
    assert_eq!(waits, ["input", "input", "input", "poll", "poll", "input", "poll"], "{steps:?}");
}

#[test]
fn a_timer_stays_one_while_others_close_descriptors_of_its_number() {
    let Some(program) = build("input.c", &[]) else { return };
    for (way, jobs) in [("timer", 60), ("child", 1)] {
        let steps = steps(&record(&program, &[way]), "reads");
        let waits = steps.iter().filter(|step| *step == "wait timer").count();
        assert_eq!(waits, jobs, "{way}: {steps:?}");
    }
}
