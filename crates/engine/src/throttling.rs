//! The kernel's limits on the CPU time of real-time threads.
//!
//! - *Fair server.* Since Linux 6.12, a server on each CPU reserves a share for ordinary threads.
//! - *RT throttling.* Real-time threads that have used up their time in a period do not execute until the next one,
//!   even if their CPU then idles. Before Linux 6.12, this was the only limit. Later kernels have it beside the fair
//!   server if they were built with `CONFIG_RT_GROUP_SCHED`. The controller `cpu` of cgroup v1 then gives each group
//!   its own time.
//!
//! Linux 6.18 spoils its account of reservations if somebody reads the time for all real-time threads while it keeps
//! some of threads that have ended (docs/edf.md). So on kernels with the fair server, the file is read only where a
//! group may have a limit, and only if the account shows that nothing is kept.

use crate::cpusets;
use lockwright_model::Duration;
use std::fmt;

/// What limits the CPU time of real-time threads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Limiter {
    /// The server for ordinary threads. It takes no time if none of them is ready.
    FairServer,
    /// RT throttling, with the time for all real-time threads.
    Kernel,
    /// RT throttling, with the time for the cgroup of this process.
    Group,
}

/// Real-time threads get at most `runtime` of every `period` on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Throttling {
    /// The CPU time for real-time threads.
    pub runtime: Duration,
    /// The period of the limit.
    pub period: Duration,
    /// What limits them.
    pub by: Limiter,
}

impl fmt::Display for Throttling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "real-time threads get at most {} of every {}", self.runtime, self.period)?;
        f.write_str(match self.by {
            Limiter::FairServer => " on a CPU that ordinary threads also need (the fair server)",
            Limiter::Kernel => " on each CPU, even if it then idles (RT throttling)",
            Limiter::Group => " on each CPU, even if it then idles (RT throttling of their cgroup)",
        })
    }
}

/// Returns the kernel's limits on real-time threads of this process.
///
/// The parameters of the fair server and the account of reservations are in debugfs. If they cannot be read, or while
/// the kernel keeps reservations, its defaults are assumed.
pub(crate) fn limits() -> Vec<Throttling> {
    limits_in(&|path| std::fs::read_to_string(path).ok(), &|| cpusets::is_settled(&cpusets::Kernel, &[]) == Some(true))
}

/// Like [`limits`], for the files that `read` returns, and an account that is settled or not.
fn limits_in(read: &dyn Fn(&str) -> Option<String>, is_settled: &dyn Fn() -> bool) -> Vec<Throttling> {
    let number = |path: &str| read(path)?.trim().parse::<i64>().ok();
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let has_fair_server = has_fair_server(&release);
    let mut limits = Vec::new();
    if has_fair_server {
        let server = |name| number(&format!("/sys/kernel/debug/sched/fair_server/cpu0/{name}"));
        let (runtime, period) = (server("runtime").unwrap_or(50_000_000), server("period").unwrap_or(1_000_000_000));
        limits.extend(limit(period.saturating_sub(runtime), period, Limiter::FairServer));
    }
    let in_us = |runtime: &str, period: &str, by| {
        limit(number(runtime)?.saturating_mul(1_000), number(period)?.saturating_mul(1_000), by)
    };
    let of_group = |directory: &String| {
        number(&format!("{directory}/cpu.rt_runtime_us"))?;
        let file = |name: &str| format!("{directory}/cpu.rt_{name}_us");
        Some(in_us(&file("runtime"), &file("period"), Limiter::Group))
    };
    let own = group(read).iter().find_map(of_group);
    if own.is_some() || !has_fair_server || has_groups(&release, read) {
        let all = match !has_fair_server || is_settled() {
            true => {
                in_us("/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_period_us", Limiter::Kernel)
            }
            false => limit(950_000_000, 1_000_000_000, Limiter::Kernel),
        };
        // Without a limit on all real-time threads, groups have none either.
        limits.extend(all.and_then(|all| own.unwrap_or(Some(all))));
    }
    limits
}

fn limit(runtime: i64, period: i64, by: Limiter) -> Option<Throttling> {
    if !(0..period).contains(&runtime) {
        return None;
    }
    let ns = |value| Some(Duration::from_ns(u64::try_from(value).ok()?));
    Some(Throttling { runtime: ns(runtime)?, period: ns(period)?, by })
}

/// Whether the kernel is 6.12 or later.
fn has_fair_server(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.trim().parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(12))
}

/// Whether the kernel was built with groups of real-time threads, as far as a file tells that.
fn has_groups(release: &str, read: &dyn Fn(&str) -> Option<String>) -> bool {
    let config = read(&format!("/boot/config-{}", release.trim())).unwrap_or_default();
    let has = |option: &str| config.lines().any(|line| line.trim() == option);
    has("CONFIG_RT_GROUP_SCHED=y") && !has("CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y")
}

/// Returns the directories in which the group of this process may be, under the controller `cpu` of cgroup v1.
fn group(read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let (groups, mounts) =
        (read("/proc/self/cgroup").unwrap_or_default(), read("/proc/self/mountinfo").unwrap_or_default());
    let names = |list: &str| list.split(',').any(|name| name == "cpu");
    // Such as `4:cpu,cpuacct:/path`.
    let path = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        names(controllers).then_some(path)
    });
    // Such as `30 25 0:26 /root /mounted rw - cgroup cgroup rw,cpu,cpuacct`.
    let mount = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let is_cpu = kind.next() == Some("cgroup") && kind.nth(1).is_some_and(names);
        let mut place = place.split(' ').skip(3);
        is_cpu.then(|| Some((place.next()?, place.next()?)))?
    });
    let (Some(path), Some((root, mounted))) = (path, mount) else { return Vec::new() };
    let inside = path.strip_prefix(root).unwrap_or("").trim_matches('/');
    let own = if inside.is_empty() { mounted.to_owned() } else { format!("{mounted}/{inside}") };
    vec![own, mounted.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const CGROUP: &str = "9:name=systemd:/\n5:cpu,cpuacct:/jail/one\n4:cpuset:/other\n0::/\n";
    const MOUNTS: &str = "22 1 0:20 / /sys rw - sysfs sysfs rw\n\
        30 22 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
        31 22 0:27 /jail /sys/fs/cgroup/cpu rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n";

    fn found(files: &[(&str, &str)]) -> Vec<(u64, u64, Limiter)> {
        let read = |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned());
        let in_us = |it: Throttling| (it.runtime.as_ns() / 1_000, it.period.as_ns() / 1_000, it.by);
        limits_in(&read, &|| true).into_iter().map(in_us).collect()
    }

    #[test]
    fn kernels_have_one_limit_or_two() {
        let release = |text| ("/proc/sys/kernel/osrelease", text);
        let (runtime, period) = ("/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_period_us");
        let (sysctl, off) = ([(runtime, "900000\n"), (period, "1000000\n")], (runtime, "-1\n"));
        let (old, new) = (release("6.6.12-generic\n"), release("6.18.44-x\n"));
        let (kernel, server) = ((900_000, 1_000_000, Limiter::Kernel), (950_000, 1_000_000, Limiter::FairServer));
        assert_eq!(found(&[old, sysctl[0], sysctl[1]]), [kernel]);
        assert_eq!(found(&[old, off, sysctl[1]]), []);
        assert_eq!(found(&[new, sysctl[0], sysctl[1]]), [server]);
        let config = ("/boot/config-6.18.44-x", "CONFIG_RT_GROUP_SCHED=y\n");
        assert_eq!(found(&[new, sysctl[0], sysctl[1], config]), [server, kernel]);
        let disabled = (config.0, "CONFIG_RT_GROUP_SCHED=y\nCONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y\n");
        assert_eq!(found(&[new, sysctl[0], sysctl[1], disabled]), [server]);
        // No ordinary thread has a share.
        let unreserved = ("/sys/kernel/debug/sched/fair_server/cpu0/runtime", "0\n");
        assert_eq!(found(&[new, sysctl[0], sysctl[1], unreserved]), []);
    }

    #[test]
    fn a_group_has_its_own_time() {
        let release = ("/proc/sys/kernel/osrelease", "6.18.44-x\n");
        let all =
            [("/proc/sys/kernel/sched_rt_runtime_us", "950000"), ("/proc/sys/kernel/sched_rt_period_us", "1000000")];
        let place = [("/proc/self/cgroup", CGROUP), ("/proc/self/mountinfo", MOUNTS)];
        let server = (950_000, 1_000_000, Limiter::FairServer);
        let with = |more: &[(&str, &str)]| found(&[&[release], &all[..], &place[..], more].concat());
        let own = [
            ("/sys/fs/cgroup/cpu/one/cpu.rt_runtime_us", "200000"),
            ("/sys/fs/cgroup/cpu/one/cpu.rt_period_us", "500000"),
        ];
        assert_eq!(with(&own), [server, (200_000, 500_000, Limiter::Group)]);
        // A namespace may hide the group itself.
        let outer =
            [("/sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000"), ("/sys/fs/cgroup/cpu/cpu.rt_period_us", "1000000")];
        assert_eq!(with(&outer), [server, (950_000, 1_000_000, Limiter::Group)]);
        // No group has a limit, or the controller has no real-time groups.
        assert_eq!(with(&[(outer[0].0, "-1"), outer[1]]), [server]);
        assert_eq!(with(&[]), [server]);
        let off = found(&[&[release, (all[0].0, "-1"), all[1]], &place[..], &own[..]].concat());
        assert_eq!(off, [server]);
    }

    #[test]
    fn a_read_that_could_spoil_the_account_is_not_made() {
        let (old, new) = ("6.6.12-generic\n", "6.18.44-x\n");
        let config = ("/boot/config-6.18.44-x", "CONFIG_RT_GROUP_SCHED=y\n");
        let read = |release: &str, has_groups: bool, is_settled: bool| {
            let is_read = std::cell::Cell::new(false);
            let read = |path: &str| {
                is_read.set(is_read.get() || path.starts_with("/proc/sys/kernel/sched_rt"));
                match path {
                    "/proc/sys/kernel/osrelease" => Some(release.to_owned()),
                    "/proc/sys/kernel/sched_rt_runtime_us" => Some("900000\n".to_owned()),
                    "/proc/sys/kernel/sched_rt_period_us" => Some("1000000\n".to_owned()),
                    _ => (has_groups && path == config.0).then(|| config.1.to_owned()),
                }
            };
            let limits = limits_in(&read, &|| is_settled);
            let kernel = limits.into_iter().find(|limit| limit.by == Limiter::Kernel);
            (is_read.get(), kernel.map(|limit| limit.runtime.as_ns() / 1_000_000))
        };
        assert_eq!(read(old, false, false), (true, Some(900)), "older kernels read without harm");
        assert_eq!(read(new, false, true), (false, None), "only the fair server limits");
        assert_eq!(read(new, true, true), (true, Some(900)));
        assert_eq!(read(new, true, false), (false, Some(950)), "the default");
    }

    #[test]
    fn each_limit_says_when_it_holds() {
        let text = |by| limit(950_000_000, 1_000_000_000, by).map(|limit| limit.to_string());
        let begin = "real-time threads get at most 950 ms of every 1 s on ";
        let server = "a CPU that ordinary threads also need (the fair server)";
        assert_eq!(text(Limiter::FairServer), Some(format!("{begin}{server}")));
        assert_eq!(text(Limiter::Kernel), Some(format!("{begin}each CPU, even if it then idles (RT throttling)")));
    }
}
