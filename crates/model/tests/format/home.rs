//! The homes of resources if the file gives none.

use lockwright_model::format::parse_system;
use lockwright_model::{ResourceId, System};

/// Returns a system of two CPUs and one resource. Each CPU has
/// the given tasks, as pairs of wcet and period in milliseconds.
fn system(cpus: [&[(u64, u64)]; 2]) -> System {
    let mut text = String::from("[platform]\ncpus = 2\n[[resource]]\nname = \"bus\"\n");
    for (cpu, tasks) in cpus.iter().enumerate() {
        for (index, (wcet, period)) in tasks.iter().enumerate() {
            text += &format!(
                "[[task]]\nname = \"t{cpu}{index}\"\ncpu = {cpu}\nperiod = \"{period} ms\"\nwcet = \"{wcet} ms\"\n"
            );
        }
    }
    parse_system(&text).expect("a valid system")
}

/// Rounded down task by task, three sixths would be less than one half.
#[test]
fn the_first_of_equally_used_cpus_is_home() {
    let sixths: &[(u64, u64)] = &[(1, 6), (1, 6), (1, 6)];
    for cpus in [[&[(3, 6)], sixths], [sixths, &[(3, 6)]], [sixths, sixths], [&[(1, 2)], &[(1, 3), (1, 6)]]] {
        assert_eq!(system(cpus).home(ResourceId(0)).0, 0, "{cpus:?}");
    }
}

#[test]
fn the_least_used_cpu_is_home_by_any_margin() {
    let less: &[(u64, u64)] = &[(1, 999_999_999)];
    let more: &[(u64, u64)] = &[(1, 999_999_998)];
    assert_eq!(system([less, more]).home(ResourceId(0)).0, 0);
    assert_eq!(system([more, less]).home(ResourceId(0)).0, 1);
    assert_eq!(system([more, &[]]).home(ResourceId(0)).0, 1);
}
