//! The files that a process has in its memory, for the names of addresses.

/// The mapped files of a process: the name of each, where it begins, and where it ends.
#[derive(Debug, Default)]
pub(super) struct Maps(Vec<(String, u64, u64)>);

impl Maps {
    /// Reads the files of a process. None if it may not be looked at.
    pub(super) fn of(process: u32) -> Self {
        Self::parse(&std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default())
    }

    /// Each line is `START-END FLAGS OFFSET DEVICE INODE PATH`. The variables of a file that begin as zeros follow it
    /// in a mapping without a name.
    fn parse(text: &str) -> Self {
        let mut files: Vec<(String, u64, u64)> = Vec::new();
        for line in text.lines() {
            let mut words = line.splitn(6, ' ');
            let Some((start, end)) = words.next().and_then(|range| range.split_once('-')) else { continue };
            let [Ok(start), Ok(end)] = [start, end].map(|number| u64::from_str_radix(number, 16)) else { continue };
            let path = words.nth(4).unwrap_or_default().trim_start();
            let name = path.rsplit('/').next().filter(|_| path.starts_with('/'));
            match (files.last_mut(), name) {
                (Some(last), None) if path.is_empty() && last.2 == start => last.2 = end,
                (Some(last), Some(name)) if last.0 == name => last.2 = end,
                (_, Some(name)) => files.push((name.to_owned(), start, end)),
                _ => {}
            }
        }
        Self(files)
    }

    /// The file at an address and the place in it, or the address.
    pub(super) fn name(&self, address: u64) -> String {
        match self.0.iter().find(|(_, start, end)| (*start..*end).contains(&address)) {
            Some((name, start, _)) => format!("{name}+{:#x}", address - start),
            None => format!("{address:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_named_after_their_files() {
        let maps = Maps::parse(
            "5000-6000 r--p 00000000 fe:01 77   /usr/bin/control\n\
             6000-7000 rw-p 00001000 fe:01 77   /usr/bin/control\n\
             7000-8000 rw-p 00000000 00:00 0 \n\
             9000-a000 rw-p 00000000 00:00 0    [heap]\n\
             b000-c000 r-xp 00000000 fe:01 78   /usr/lib/libc.so.6\n",
        );
        let names = [0x6040, 0x7010, 0x9000, 0xb008, 0x10].map(|address| maps.name(address));
        assert_eq!(names, ["control+0x1040", "control+0x2010", "0x9000", "libc.so.6+0x8", "0x10"]);
    }
}
