//! The tracepoints of the kernel's scheduler, as tracefs describes them. Only root can read the descriptions where
//! tracefs has its usual rights.

use crate::error::SysError;
use std::ffi::CStr;
use std::os::fd::AsRawFd;

/// `PERF_EVENT_IOC_SET_FILTER` of `linux/perf_event.h`.
const SET_FILTER: libc::Ioctl = libc::_IOW::<*const libc::c_char>(b'$' as u32, 6);

/// Lets a perf event of a tracepoint record only what this condition admits, such as `pid>=10&&pid<=20`.
///
/// # Errors
/// The descriptor is not a perf event of a tracepoint, or the kernel does not understand the condition.
pub fn set_filter(event: &impl AsRawFd, condition: &CStr) -> Result<(), SysError> {
    // SAFETY: for a perf event, the kernel only reads the string, up to its end and before the call returns. Other
    // files refuse the request, whose number is that of perf events.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), SET_FILTER, condition.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(SysError::last("ioctl(PERF_EVENT_IOC_SET_FILTER)")) }
}

/// A tracepoint: its number, and where its fields begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tracepoint {
    id: u64,
    format: String,
}

impl Tracepoint {
    /// Reads the description of an event of the scheduler, such as `sched_switch`. Returns `None` if tracefs is not
    /// mounted, cannot be read, or does not have the event.
    #[must_use]
    pub fn of_scheduler(name: &str) -> Option<Self> {
        ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].iter().find_map(|folder| {
            let read = |file: &str| std::fs::read_to_string(format!("{folder}/events/sched/{name}/{file}")).ok();
            Some(Self { id: read("id")?.trim().parse().ok()?, format: read("format")? })
        })
    }

    /// The number by which `perf_event_open` knows the event.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The offset of a field in bytes from the beginning of a record.
    #[must_use]
    pub fn offset(&self, field: &str) -> Option<usize> {
        // `field:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;`
        let is_it = |line: &&str| line.split(';').next().is_some_and(|one| one.ends_with(&format!(" {field}")));
        let rest = self.format.lines().find(is_it)?.split("offset:").nth(1)?;
        rest.split(';').next()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_names() {
        let format = "name: sched_switch\nID: 1\nformat:\n\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
                      \tfield:int pid;\toffset:28;\tsize:4;\tsigned:1;\n";
        let tracepoint = Tracepoint { id: 1, format: format.into() };
        assert_eq!((tracepoint.offset("pid"), tracepoint.offset("prev_pid")), (Some(28), Some(24)));
        assert_eq!((tracepoint.offset("prio"), tracepoint.offset("id")), (None, None));
        assert_eq!(Tracepoint::of_scheduler("no_such_event"), None);
    }
}
