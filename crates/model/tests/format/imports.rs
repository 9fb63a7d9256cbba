//! Files of SchedCAT, Cheddar and rt-app: the systems that they become, and what is refused by name.

use lockwright_model::format::{Imported, import_cheddar, import_rt_app, import_schedcat, parse_system, write_system};
use lockwright_model::{Duration, Priority, Protocol, Scheduler, Step};

const MS: Duration = Duration::from_ms(1);
const US: Duration = Duration::from_us(1);

fn corpus(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The messages of the faults or notes, with the text at fault.
fn told(source: &str, list: &[lockwright_model::format::Diagnostic]) -> Vec<String> {
    let at = |span: &Option<core::ops::Range<usize>>| span.clone().map_or("", |span| &source[span]).to_owned();
    list.iter().map(|fault| format!("{}: {}", at(&fault.span), fault.message)).collect()
}

fn names(steps: &[Step], imported: &Imported) -> Vec<String> {
    let name = |id: lockwright_model::ResourceId| imported.system.resource(id).name.clone();
    let one = |step: &Step| match step {
        Step::Run(time) => format!("{time}"),
        Step::Lock(id) => format!("lock {}", name(*id)),
        Step::Read(id) => format!("read {}", name(*id)),
        Step::Unlock(id) => format!("unlock {}", name(*id)),
    };
    steps.iter().map(one).collect()
}

#[test]
fn threads_by_deadline_become_tasks_under_edf() {
    let source = corpus("rt-app/good-deadline.json");
    let imported = import_rt_app(&source).expect("it is a workload");
    let system = &imported.system;
    // 9 / 20 + 3 * 0.9 / 2.5 = 1.53.
    assert_eq!((system.scheduler(), system.cpus(), system.tasks().len()), (Scheduler::GEdf, 2, 4));
    let times = |index: usize| {
        let task = &system.tasks()[index];
        (task.wcet, task.deadline, task.period)
    };
    assert_eq!(times(0), (Duration::from_ms(9), Duration::from_ms(15), Duration::from_ms(20)));
    assert_eq!(times(3), (Duration::from_us(900), Duration::from_us(2_500), Duration::from_us(2_500)));
    let notes = told(&source, &imported.notes);
    for wanted in [
        "4000: thread `video` executes for 9 ms and reserves 4 ms: Linux stops it; its task is not stopped",
        "2000: the period of the reservation, 2 ms, is ignored: the timer has 2.5 ms",
        "5: the priority is ignored: SCHED_DEADLINE has none",
        "\"video\": the threads name no CPUs: 2 CPUs assumed, as their utilization needs at least",
    ] {
        assert!(notes.iter().any(|note| note == wanted), "{wanted}: {notes:#?}");
    }
    assert!(!notes.iter().any(|note| note.contains("SCHED_OTHER have no fixed")), "{notes:#?}");
    assert_eq!(parse_system(&write_system(system)).as_ref(), Ok(system));
    let bound = source.replace("\"SCHED_DEADLINE\",", "\"SCHED_DEADLINE\", \"cpus\" : [1],");
    let bound = import_rt_app(&bound).expect("it is a workload").system;
    assert_eq!((bound.scheduler(), bound.cpus()), (Scheduler::PEdf, 2));
    assert!(bound.tasks().iter().all(|task| task.cpu.index() == 1));
    assert_eq!(parse_system(&write_system(&bound)), Ok(bound));
}

#[test]
fn requirements_of_schedcat_become_sections() {
    let source = corpus("schedcat/good-requirements.xml");
    let imported = import_schedcat(&source, US).expect("it is a task set");
    let system = &imported.system;
    assert_eq!((system.cpus(), system.tasks().len(), system.resources().len()), (2, 2, 1));
    let [one, two] = system.tasks() else { panic!("{system:?}") };
    assert_eq!(
        (one.wcet, one.deadline, one.period),
        (Duration::from_ns(900_500), Duration::from_ms(8), Duration::from_ms(10))
    );
    assert!(one.priority > two.priority, "deadline-monotonic");
    let body = names(&one.body, &imported);
    // 900.5 us less two sections of 20 us, in three parts.
    let third = ["286.834 us", "286.833 us", "286.833 us"];
    let section = ["lock R3", "20 us", "unlock R3"];
    let wanted: Vec<_> = [&third[..1], &section, &third[1..2], &section, &third[2..]].concat();
    assert_eq!(body, wanted);
    let notes = told(&source, &imported.notes);
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes.iter().any(|note| note.starts_with("64: `wss` is ignored")), "{notes:?}");
}

#[test]
fn sections_of_schedcat_exclude_those_inside_them() {
    let source = corpus("schedcat/good-nested.xml");
    let imported = import_schedcat(&source, MS).expect("it is a task set");
    let body = names(&imported.system.tasks()[0].body, &imported);
    let nested = ["5 ms", "lock R0", "4 ms", "lock R1", "6 ms", "unlock R1", "unlock R0", "5 ms"];
    let last = ["lock R1", "5 ms", "unlock R1", "5 ms"];
    assert_eq!(body, [&nested[..], &last].concat());
}

#[test]
fn each_item_that_schedcat_has_and_a_task_set_has_not_is_refused_by_name() {
    let source = corpus("schedcat/bad-everything.xml");
    let faults = told(&source, &import_schedcat(&source, US).expect_err("it is full of faults"));
    let wanted = [
        "1e3: the period, `1e3`, is not a duration",
        "-4: the execution time, `-4`, is not a duration",
        "64: the partition, `64`, is not a whole number from 0 to 63",
        "colour=\"red\": unknown attribute `colour` of a task",
        "2: reads cannot be imported",
        "1.5: the number of requests, `1.5`, is not a whole number from 0 to 4096",
        "x: the length, `x`, is not a duration",
        "affinity: an affinity to several processors cannot be imported",
        "task: the critical sections are longer than the execution time",
        "task: the task has no `period`",
        "task: the task has no `wcet`",
        "job: unknown element `job` in a task set",
    ];
    assert_eq!(faults, wanted);
    for (text, message) in [
        ("<testpoint/>", "testpoint: a testpoint contains several task sets"),
        ("<html/>", "html: `html` is not a task set of SchedCAT"),
        ("<taskset/>", "taskset: the task set has no tasks"),
        ("<taskset><task period='0' wcet='2'/></taskset>", "task: "),
        (
            "<taskset><task period='9' wcet='4'><resources><requirement/></resources>\
             <critical_sections><critical_section length='1'/></critical_sections></task></taskset>",
            "critical_sections: the task has both",
        ),
        (
            "<taskset><task period='9' wcet='4'><resources><demand/></resources></task></taskset>",
            "demand: unknown element `demand`",
        ),
        ("<taskset xmlns='x'/>", "xmlns: namespaces are not part of these formats"),
    ] {
        let faults = told(text, &import_schedcat(text, US).expect_err(text));
        assert!(faults.len() == 1 && faults[0].starts_with(message), "{text}: {faults:?}");
    }
    let source = corpus("schedcat/bad-syntax.xml");
    let faults = import_schedcat(&source, US).expect_err("it is not XML");
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].line_column(&source).map(|(line, _)| line), Some(3), "{faults:?}");
    assert!(faults[0].message.starts_with("this is not XML: ") && !faults[0].message.contains("3:"), "{faults:?}");
}

#[test]
fn an_architecture_of_cheddar_becomes_a_system() {
    let source = corpus("cheddar/good-ceiling.xmlv3");
    let imported = import_cheddar(&source, MS).expect("it is an architecture");
    let system = &imported.system;
    assert_eq!((system.cpus(), system.scheduler()), (2, Scheduler::PFp));
    let [fast, slow, other] = system.tasks() else { panic!("{system:?}") };
    assert_eq!((fast.priority, slow.priority), (Priority::base(20), Priority::base(10)));
    assert_eq!(
        (fast.offset, fast.jitter, fast.deadline, fast.wcet),
        (MS, MS, Duration::from_ms(9), Duration::from_ms(3))
    );
    assert_eq!((slow.cpu.index(), other.cpu.index()), (0, 1));
    assert_eq!(names(&fast.body, &imported), ["1 ms", "lock table", "1 ms", "unlock table", "1 ms"]);
    let nested = ["lock table", "lock inner", "2 ms", "unlock inner", "2 ms", "unlock table", "2 ms"];
    assert_eq!(names(&slow.body, &imported), nested);
    let [table, inner] = system.resources() else { panic!("{system:?}") };
    assert_eq!((table.protocol, table.ceiling), (Some(Protocol::Icpp), Some(Priority::base(30))));
    assert_eq!((inner.protocol, inner.ceiling), (Some(Protocol::Icpp), None), "Cheddar computes this one");
    assert_eq!(imported.notes.len(), 1, "{:?}", told(&source, &imported.notes));

    let edf = import_cheddar(&corpus("cheddar/good-edf.xmlv3"), US).expect("it is an architecture");
    assert_eq!(edf.system.scheduler(), Scheduler::PEdf);
    assert!(write_system(&edf.system).contains("p-edf"));
}

#[test]
fn each_item_that_cheddar_has_and_a_task_set_has_not_is_refused_by_name() {
    let source = corpus("cheddar/bad-everything.xmlv3");
    let faults = told(&source, &import_cheddar(&source, MS).expect_err("it is full of faults"));
    for wanted in [
        "speed: a speed of `2` cannot be imported",
        "preemptive_type: `NOT_PREEMPTIVE` cannot be imported",
        "scheduler_type: the scheduler `LEAST_LAXITY_FIRST_PROTOCOL` cannot be imported",
        "migration_type: `JOB_LEVEL_MIGRATION_TYPE` cannot be imported",
        "aperiodic_task: `aperiodic_task` cannot be imported",
        "priority: the priority, `0`, is not a whole number from 1 to 65535",
        "policy: the policy `SCHED_RR` cannot be imported",
        "cpu_name: `cpu` has several cores",
        "periodic_task: the task has no `capacity`",
        "state: a state of `4` cannot be imported",
        "dependencies: `dependencies` cannot be imported",
    ] {
        assert!(faults.iter().any(|fault| fault == wanted), "{wanted}\n{faults:#?}");
    }
    let edf = corpus("cheddar/good-edf.xmlv3");
    for (old, new, wanted) in [
        ("ref=\"c0\"", "ref=\"c9\"", "name: there is no core `c9`"),
        ("core_units>", "cores>", "cheddar: the architecture has no cores"),
        ("<period>5</period>", "<period>5<!-- ms -->0</period>", "period: `period`, ``, is not a duration"),
    ] {
        let wrong = edf.replace(old, new);
        let faults = told(&wrong, &import_cheddar(&wrong, MS).expect_err(new));
        assert_eq!(faults[0], wanted, "{faults:?}");
    }
    // Other programs write these values where they mean nothing.
    let core = edf.replace("<name>core</name>", "<name>core</name><speed>0.00000</speed>");
    let idle = core.replace("<period>", "<policy>SCHED_OTHERS</policy><period>");
    assert!(core != edf && idle != core && import_cheddar(&idle, MS).is_ok());
    let source = corpus("cheddar/bad-overlap.xmlv3");
    let faults = told(&source, &import_cheddar(&source, MS).expect_err("sections overlap"));
    assert_eq!(faults, ["critical_section: two sections of the task overlap, and neither contains the other"]);
    let faults = told("<taskset/>", &import_cheddar("<taskset/>", MS).expect_err("SchedCAT's"));
    assert_eq!(faults, ["taskset: `taskset` is not an architecture of Cheddar"]);
}
