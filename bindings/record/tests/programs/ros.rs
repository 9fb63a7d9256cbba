//! An executor of ROS 2, imitated (`ros.c`): its callbacks are tasks.

use super::support::{build, record};
use lockwright_record::{Choices, EventKind, infer};

/// The name of the second callback, of more than one part.
const LONG: &str = "std::_Bind<void (Localizer::*(Localizer*, std::_Placeholder<1>))(sensor_msgs::msg::Image const&)>";

#[test]
fn callbacks_of_an_executor_are_tasks() {
    let Some(library) = build("ros.c", &["-shared", "-fPIC", "-DLIBRARY"]) else { return };
    let path = library.to_str().expect("a path in UTF-8");
    let Some(program) = build("ros.c", &[path]) else { return };
    let recording = record(&program, &[]);
    let names: Vec<&str> = recording.callbacks.iter().map(|callback| callback.name.as_str()).collect();
    assert_eq!(names, ["Controller::on_timer()", LONG]);
    let count = |is_meant: fn(&EventKind) -> bool| recording.events.iter().filter(|one| is_meant(&one.kind)).count();
    let calls = [
        count(|kind| matches!(kind, EventKind::CallbackStart { .. })),
        count(|kind| matches!(kind, EventKind::CallbackEnd { .. })),
    ];
    assert_eq!(calls, [30, 30]);
    if !recording.switches {
        return;
    }
    let split = recording.by_callback().expect("there are callbacks");
    let inferred = infer(&split, &Choices::default());
    let system = inferred.system.unwrap_or_else(|why| panic!("{why}: {:?}", inferred.left_out));
    let mut tasks: Vec<(&str, usize)> = system
        .tasks()
        .iter()
        .zip(&inferred.tasks)
        .map(|(task, found)| (task.name.as_str(), found.jobs.len()))
        .collect();
    tasks.sort_unstable();
    assert_eq!(tasks.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names, "{:?}", inferred.left_out);
    assert_eq!(tasks.iter().map(|&(_, jobs)| jobs).collect::<Vec<_>>(), [24, 6]);
    // Other work lengthens execution times, and never shortens them.
    for (task, least_us) in system.tasks().iter().map(|task| (task, if task.name == LONG { 900 } else { 300 })) {
        assert!(task.wcet.as_ns() > least_us * 1_000 / 2, "{}: {}", task.name, task.wcet);
        assert_eq!(system.resources().len(), 1);
    }
    // The mutant: without callbacks, the thread has no recognisable jobs.
    assert!(infer(&recording, &Choices::default()).system.is_err());
}
