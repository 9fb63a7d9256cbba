//! Stored overheads: one file in the user's cache directory for each machine and kernel.
//!
//! The file is an overheads file between two comments. The first names the version, the machine and the kernel. The
//! last marks the end: a truncated overheads file would be valid, because a missing key stands for no cost.

use lockwright_model::Overheads;
use lockwright_model::format::{SOURCE_BYTES_MAX, parse_overheads};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::NamedTempFile;

/// Version of the measurement. Stored overheads of another version are not used.
const MEASUREMENT: u32 = 2;
/// Greatest age of stored overheads that are used.
const AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// The last line.
const END: &str = "# This is the end of the file.\n";
/// Greatest length of a machine's name in the name of the file.
const NAME_MAX: usize = 64;

/// The file with the overheads of this machine.
#[derive(Debug)]
pub struct Cache {
    path: PathBuf,
    /// The first line.
    header: String,
}

/// Stored overheads.
#[derive(PartialEq, Eq, Debug)]
pub struct Kept {
    /// The overheads.
    pub overheads: Overheads,
    /// Time since they were measured.
    pub age: Duration,
}

impl Cache {
    /// The file of this machine and its kernel. `None` if the environment names no directory.
    pub fn of_this_machine() -> Option<Self> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        // Relative paths are ignored: XDG Base Directory Specification 0.8.
        let folder = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")))?;
        let of_kernel = |file| std::fs::read_to_string(Path::new("/proc/sys/kernel").join(file)).unwrap_or_default();
        let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpus.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(':'));
        let [machine, kernel, build] = ["hostname", "osrelease", "version"].map(of_kernel);
        let model = model.map_or("", |(_, model)| model);
        Some(Self::new(&folder.join("lockwright"), [&machine, &kernel, &build, model].map(str::trim)))
    }

    /// The file in a directory, for a machine, a kernel and its build, and a processor.
    fn new(folder: &Path, [machine, kernel, build, processor]: [&str; 4]) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let header =
            format!("# lockwright {version}, measurement {MEASUREMENT}, on {machine}, {processor}, {kernel}, {build}");
        let name = format!("overheads-{}-{}.toml", tame(machine), tame(kernel));
        Self { path: folder.join(name), header: header.replace(char::is_control, " ") + "\n" }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The stored overheads; `None` if there is no file.
    ///
    /// # Errors
    /// Why the file is not used, in a few words.
    pub fn read(&self) -> Result<Option<Kept>, String> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let age = age_of(&file)?;
        if age > AGE_MAX {
            return Err("they were measured more than a day ago".into());
        }
        let mut text = String::new();
        let most = SOURCE_BYTES_MAX as u64 + 1;
        Read::by_ref(&mut file).take(most).read_to_string(&mut text).map_err(|error| error.to_string())?;
        let body = text.strip_prefix(&self.header).ok_or("another machine, kernel or version measured them")?;
        let body = body.strip_suffix(END).ok_or("the file is incomplete")?;
        let overheads = parse_overheads(body).map_err(|_| "it is not a valid overheads file")?;
        Ok(Some(Kept { overheads, age }))
    }

    /// Stores the text of an overheads file. If this fails, the previous file remains.
    ///
    /// # Errors
    /// The directory or the file cannot be written.
    pub fn write(&self, text: &str) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder)?;
        let mut file = NamedTempFile::new_in(folder)?;
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        write!(file, "{}{text}{newline}{END}", self.header)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Age of a file. A time in the future is an error: the clock was set back.
fn age_of(file: &File) -> Result<Duration, String> {
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".into());
    }
    let modified = metadata.modified().map_err(|error| error.to_string())?;
    SystemTime::now().duration_since(modified).map_err(|_| "their time is in the future".into())
}

/// An age in whole hours or minutes.
pub fn age_text(age: Duration) -> String {
    match age.as_secs() / 60 {
        0 => "less than a minute".into(),
        minutes @ 1..120 => crate::units::count(minutes, "minute"),
        minutes => crate::units::count(minutes / 60, "hour"),
    }
}

/// A name as part of a file's name.
fn tame(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+');
    name.chars().take(NAME_MAX).map(|c| if is_plain(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::tempdir;

    const PARTS: [&str; 4] = ["box", "6.1.0", "#1 SMP", "a processor"];
    const TEXT: &str = "release = \"3 us\"\nlock = \"1 us\"\n";

    #[test]
    fn stored_overheads_are_read_back() {
        let folder = tempdir().expect("a temporary folder");
        let cache = Cache::new(&folder.path().join("new"), PARTS);
        assert_eq!(cache.read(), Ok(None));
        cache.write("lock = \"9 us\"").expect("is kept");
        cache.write(TEXT).expect("is kept instead");
        let kept = cache.read().expect("serves").expect("is there");
        assert_eq!(Ok(kept.overheads), parse_overheads(TEXT));
        let files = std::fs::read_dir(folder.path().join("new")).expect("is there").count();
        assert_eq!(files, 1, "nothing else is left behind");
    }

    #[test]
    fn each_machine_and_kernel_has_its_own_file() {
        let folder = Path::new("/folder");
        let path = |parts| Cache::new(folder, parts).path;
        assert_eq!(path(PARTS), Path::new("/folder/overheads-box-6.1.0.toml"));
        assert_ne!(path(PARTS), path(["other", PARTS[1], PARTS[2], PARTS[3]]));
        assert_ne!(path(PARTS), path([PARTS[0], "6.2.0", PARTS[2], PARTS[3]]));
        let hostile = path(["../../etc/x y\n", &"k".repeat(900), "", ""]);
        assert_eq!(hostile.parent(), Some(folder));
        assert!(hostile.as_os_str().len() < 200, "{hostile:?}");
    }

    #[test]
    fn invalid_or_old_files_are_not_used() {
        let folder = tempdir().expect("a temporary folder");
        let cache = Cache::new(folder.path(), PARTS);
        let refused = |text: &str| {
            std::fs::write(cache.path(), text).expect("a temporary file");
            cache.read().expect_err(text)
        };
        cache.write(TEXT).expect("is kept");
        let whole = std::fs::read_to_string(cache.path()).expect("is there");
        for length in 0..whole.len() {
            refused(&whole[..length]);
        }
        assert!(refused(&whole.replace("release", "relaese")).contains("not a valid overheads file"));
        assert!(refused(&whole.replace("6.1.0", "6.1.1")).contains("another machine"));
        assert!(refused(&(whole.clone() + "lock = \"0 ns\"\n")).contains("incomplete"));
        std::fs::write(cache.path(), &whole).expect("a temporary file");
        assert!(cache.read().expect("serves").is_some(), "the whole file does");
        let set = |time| {
            let file = File::options().write(true).open(cache.path()).expect("is there");
            file.set_modified(time).expect("is ours");
        };
        set(SystemTime::now() - AGE_MAX - Duration::from_secs(60));
        assert!(cache.read().expect_err("old").contains("more than a day"));
        set(SystemTime::now() + Duration::from_secs(3600));
        assert!(cache.read().expect_err("future").contains("future"));
        set(SystemTime::now() - AGE_MAX + Duration::from_secs(60));
        assert!(cache.read().expect("serves").is_some());
    }

    #[test]
    fn ages_are_in_words() {
        let text = |seconds| age_text(Duration::from_secs(seconds));
        assert_eq!(
            [text(59), text(60), text(7199), text(7200)],
            ["less than a minute", "1 minute", "119 minutes", "2 hours"]
        );
    }
}
