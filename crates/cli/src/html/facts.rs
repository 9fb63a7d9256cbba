//! The facts with which a reader can repeat a result: the machine, the version and the command.

use crate::units;
use std::ffi::OsString;
use std::path::Path;

/// Names and values.
pub type Facts = Vec<(&'static str, String)>;

/// The machine, its kernel and this program.
pub fn machine() -> Facts {
    let of_kernel = |file: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{file}")).unwrap_or_default();
        text.trim().to_owned()
    };
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown", |(_, model)| model.trim());
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    vec![
        ("Program", format!("lockwright {}", env!("CARGO_PKG_VERSION"))),
        ("Processor", format!("{model}; this process may use {}", units::count(count as u64, "CPU"))),
        ("Kernel", format!("Linux {}, {}", of_kernel("osrelease"), of_kernel("version"))),
    ]
}

/// A command line for a shell, with further options.
pub fn command(words: &[OsString], more: &[String]) -> String {
    let (program, words) = words.split_first().map_or(("lockwright".into(), words), |(program, words)| {
        (Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned(), words)
    });
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = std::iter::once(program).chain(words).chain(more.iter().cloned()).map(quoted).collect();
    words.join(" ")
}

/// A word as a shell reads it.
fn quoted(word: String) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_same_words() {
        for word in ["a b", "", "it's", "$(reboot)", "a;b", "`x`", "ü", "plain-1.0/x"] {
            let script = format!("printf %s {}", quoted(word.to_owned()));
            let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&output.stdout), word);
        }
    }
}
