//! Executes the tests on a machine of its own: eight processors and Debian's PREEMPT_RT kernel under QEMU.
//!
//! The files are those of this machine, read only, so that programs and libraries have the same paths; nothing may be
//! built while the lab executes them. An emulated processor is slow, and its times mean nothing. The limits of time of
//! the tests of locks are scaled; a test that expects a certain time, or that something happens often in a certain
//! time, can fail here without a defect.

use crate::{tests, tool};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The packages whose tests are executed, those that use threads in real time, and what the names of these tests
/// contain.
const PACKAGES: [(&str, &str); 6] = [
    ("crates/sys", ""),
    ("crates/rt", ""),
    ("crates/engine", ""),
    ("crates/cli", "partitions_of_a_killed_run"),
    ("scenarios", ""),
    ("bindings/pthread", ""),
];
/// The modules that the first process loads, where they are not part of the kernel.
const MODULES: [&str; 11] = [
    "virtio",
    "virtio_ring",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "netfs",
    "fscache",
    "9pnet",
    "9pnet_virtio",
    "9p",
    "overlay",
];
/// The time that a test may take on a processor as fast as this machine's.
const TEST_S_MAX: u64 = 20;
/// The least time that a test may take: the tests' own limits are up to two minutes.
const LEAST_S_MAX: u64 = 240;
/// The time within which the kernel must boot.
const BOOT_MAX: Duration = Duration::from_secs(120);
/// The same under KVM, which works at once or not at all.
const KVM_BOOT_MAX: Duration = Duration::from_secs(20);

/// The time without a sign of life after which the machine stands still. It gives one every ten seconds of its own.
const STILL_MAX: Duration = Duration::from_secs(120);
/// How often a machine that stands still or ends is booted again. This is seldom the fault of a test: the machine ends
/// a test that takes too long. While the kernel rewrites its own code, QEMU (7.2) now and then executes a breakpoint
/// that is no longer there: it stands still, or the kernel panics with `int3`. A test that ends the machine does it
/// again.
const BOOTS_AGAIN_MAX: usize = 2;

/// A loop of a shell with which this machine and the lab are compared.
const LOOP: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done";

/// The tests of [`check`]: of each kind of question that only this machine answers, those that take a minute or less.
const SHORT: [&str; 6] = [
    "realtime unplug::",
    "realtime ending::stop_ends",
    "realtime audit::",
    "cli machine::doctor_removes_the_partitions",
    "realtime stress::clusters_share",
    "realtime isolated::",
];
/// The processors that [`check`] isolates. The other tests do not use them.
const ISOLATED: &str = "6-7";

const INSTALL: &str = "install `qemu-system-x86 busybox-static cpio xz-utils` (Debian)";

struct Options {
    cpus: u32,
    /// The processors are in as many sockets.
    sockets: u32,
    /// The Debian package of the kernel, or one that depends on it; or the file of a kernel.
    kernel: String,
    /// The processors that the kernel keeps apart (`isolcpus`), as it reads them.
    isolated: Option<String>,
    /// Whether the kernel limits the time of threads in real time, as it does by default.
    is_throttled: bool,
    /// The seed of the tests that draw systems.
    seed: u64,
    /// Tests whose programs and names contain one of these are executed; without any, all.
    names: Vec<String>,
    /// Whether a test passes that only says why it is skipped.
    may_skip: bool,
}

/// A test of a program, executed as a process of its own.
struct Test {
    directory: PathBuf,
    program: PathBuf,
    name: String,
}

impl Test {
    fn shown(&self) -> String {
        let program = self.program.file_name().unwrap_or_default().to_string_lossy();
        let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
        format!("{program} {}", self.name)
    }
}

/// The messages of the guest.
#[derive(Debug, PartialEq)]
enum Said {
    Ready { cpus: u32, scale: u64, limit_s: u64, kernel: String },
    Alive,
    Ended { number: usize, status: i32, ms: u64 },
    Failed(String),
    Over,
}

/// Why a machine ended before its tests did.
#[derive(Debug, PartialEq)]
enum Cut {
    /// The emulator or the kernel gave up, and may do better next time.
    Machine(&'static str),
    For(String),
}

const STANDS_STILL: Cut = Cut::Machine("the machine stands still");
const ENDED: Cut = Cut::Machine("the machine ended (target/lab/qemu.log has what QEMU says)");

pub fn run(arguments: &[String]) -> Result<(), String> {
    let options = options(arguments)?;
    execute(&options, &Parts::find(&options.kernel)?)
}

/// A part of the tests that takes a few minutes. Where the machine or the kernel cannot be had, a message says so.
pub fn check() -> Result<(), String> {
    let isolated = Some(ISOLATED.to_owned());
    let options = Options { may_skip: false, isolated, ..options(&SHORT.map(str::to_owned))? };
    match Parts::find(&options.kernel) {
        Ok(parts) => execute(&options, &parts),
        Err(why) if std::env::var_os("LOCKWRIGHT_REQUIRE_LAB").is_some() => Err(why),
        Err(why) => {
            eprintln!("xtask: skipped: {why}");
            Ok(())
        }
    }
}

/// What a machine is made of.
struct Parts {
    folder: PathBuf,
    busybox: PathBuf,
    kernel: PathBuf,
}

impl Parts {
    fn find(kernel: &str) -> Result<Self, String> {
        ["qemu-system-x86_64", "cpio", "xz", "dpkg", "apt-get"].iter().try_for_each(|program| needed(program))?;
        let folder = tool::root().join("target/lab");
        let kernel = match std::fs::canonicalize(kernel) {
            Ok(file) if file.is_file() => file,
            _ => self::kernel(&folder.join("kernels").join(kernel), kernel)?,
        };
        Ok(Self { busybox: busybox()?, kernel, folder })
    }
}

fn execute(options: &Options, parts: &Parts) -> Result<(), String> {
    let Parts { folder, busybox, kernel } = parts;
    // What an earlier run wrote would be taken for this one's.
    let share = folder.join("share");
    _ = std::fs::remove_dir_all(&share);
    make(&share.join("logs"))?;
    let initramfs = initramfs(folder, kernel, busybox)?;
    let tests = chosen(options)?;
    write(&share.join("tests"), include_str!("../lab/tests"))?;
    let environment = format!(
        "HOST_MS={}\nBUSYBOX={}\nLOOP='{LOOP}'\nSECONDS_MAX={TEST_S_MAX}\nSECONDS_LEAST={LEAST_S_MAX}\nTHROTTLED={}\n\
         export RUST_BACKTRACE=0 LOCKWRIGHT_TEST_CPUSETS=1 LOCKWRIGHT_TEST_UNPLUG=1 LOCKWRIGHT_TEST_SEED={}\n",
        host_ms(busybox)?,
        busybox.display(),
        u8::from(options.is_throttled),
        options.seed
    );
    write(&share.join("environment"), &environment)?;
    let (cpus, sockets) = (options.cpus, options.sockets);
    let isolated = options.isolated.clone();
    let machine = Machine { cpus, sockets, isolated, kernel: image(kernel)?, initramfs, share };
    let mut ended = BTreeMap::new();
    let mut boots_again = 0;
    let cut = loop {
        write(&machine.share.join("plan"), &plan(&tests, &ended))?;
        let guest = match machine.boot() {
            Ok(guest) => guest,
            Err(why) if boots_again < BOOTS_AGAIN_MAX => {
                eprintln!("xtask: {why}; it is booted again");
                boots_again += 1;
                continue;
            }
            Err(why) => return Err(why),
        };
        match follow(guest, &tests, &mut ended) {
            Ok(()) => break None,
            Err(Cut::Machine(why)) if boots_again < BOOTS_AGAIN_MAX => {
                eprintln!("xtask: {why}, and is booted again for the other tests");
                boots_again += 1;
            }
            Err(Cut::Machine(why)) => break Some(format!("{why}, and was booted {} times", boots_again + 1)),
            Err(Cut::For(why)) => break Some(why),
        }
    };
    let logs = machine.share.join("logs");
    let log = |number: usize| std::fs::read_to_string(logs.join(number.to_string())).unwrap_or_default();
    let judged = verdict(&tests, &ended, cut.as_deref(), options.may_skip, log);
    let place = |failed| format!("{failed}\nthe logs are in {}\nthe seed was {}", logs.display(), options.seed);
    judged.map_err(place)
}

fn options(arguments: &[String]) -> Result<Options, String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = now.map_or(1, |time| time.as_secs());
    let kernel = "linux-image-rt-amd64".to_owned();
    let mut options = Options {
        cpus: 8,
        sockets: 1,
        kernel,
        isolated: None,
        is_throttled: true,
        seed,
        names: Vec::new(),
        may_skip: true,
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--cpus" => options.cpus = number(words.next(), 1..=64, "--cpus", "of processors")?,
            "--sockets" => options.sockets = number(words.next(), 1..=64, "--sockets", "of sockets")?,
            "--seed" => options.seed = number(words.next(), 0..=u64::MAX, "--seed", "")?,
            "--kernel" => {
                let is_known = |name: &&String| {
                    name.starts_with("linux-image-") && !name.contains('/') || Path::new(name).is_file()
                };
                let needs = "`--kernel` needs a Debian package, such as linux-image-amd64, or the file of a kernel";
                options.kernel = words.next().filter(is_known).ok_or(needs)?.clone();
            }
            "--isolated" => {
                let is_list = |list: &&String| {
                    !list.is_empty() && list.chars().all(|one| one.is_ascii_digit() || ",-".contains(one))
                };
                let needs = "`--isolated` needs a list of processors, such as 1-3 or 1,3";
                options.isolated = Some(words.next().filter(is_list).ok_or(needs)?.clone());
            }
            "--no-throttling" => options.is_throttled = false,
            option if option.starts_with('-') => {
                let known =
                    "--cpus N, --sockets N, --isolated LIST, --kernel PACKAGE|FILE, --no-throttling and --seed N";
                return Err(format!("`{option}` is not an option of `lab`, which has {known}"));
            }
            name => options.names.push(name.to_owned()),
        }
    }
    if !options.cpus.is_multiple_of(options.sockets) {
        return Err(format!("{} processors cannot be in {} equal sockets", options.cpus, options.sockets));
    }
    Ok(options)
}

/// The number that follows an option.
fn number<T: std::str::FromStr + PartialOrd + std::fmt::Display>(
    word: Option<&String>,
    range: RangeInclusive<T>,
    option: &str,
    of: &str,
) -> Result<T, String> {
    let number = word.and_then(|word| word.parse().ok()).filter(|number| range.contains(number));
    number.ok_or_else(|| format!("`{option}` needs a number {of} from {} to {}", range.start(), range.end()))
}

fn needed(program: &str) -> Result<(), String> {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.map(drop).map_err(|error| format!("{program} does not start ({error}): {INSTALL}"))
}

/// Returns the path of a busybox without shared libraries, which the first process needs.
fn busybox() -> Result<PathBuf, String> {
    let found = ["/bin/busybox", "/usr/bin/busybox"].map(PathBuf::from).into_iter().find(|path| path.is_file());
    found.ok_or_else(|| format!("there is no busybox: {INSTALL}"))
}

/// Returns the milliseconds that this machine takes for the loop that the guest measures itself with.
fn host_ms(busybox: &Path) -> Result<u128, String> {
    let mut command = Command::new(busybox);
    command.args(["sh", "-c", LOOP]);
    let mut shortest = Duration::MAX;
    for _ in 0..3 {
        let begin = Instant::now();
        command.status().map_err(|error| format!("busybox does not start: {error}"))?;
        shortest = shortest.min(begin.elapsed());
    }
    Ok(shortest.as_millis().max(1))
}

/// Returns the folder with a kernel of Debian, which is downloaded and unpacked if it is missing. This needs no
/// privileges.
fn kernel(folder: &Path, wanted: &str) -> Result<PathBuf, String> {
    if image(folder).is_ok() {
        return Ok(folder.to_owned());
    }
    make(folder)?;
    for package in packages(wanted)? {
        tool::run(Command::new("apt-get").args(["download", &package]).current_dir(folder))?;
        let archive = entry(folder, |name| name.ends_with(".deb"))?;
        tool::run(Command::new("dpkg").arg("-x").arg(&archive).arg(folder))?;
        _ = std::fs::remove_file(archive);
    }
    image(folder).map(|_| folder.to_owned())
}

/// The packages with the files of the kernel that this package stands for. Before Linux 7, this is one package.
fn packages(wanted: &str) -> Result<Vec<String>, String> {
    let needed = needs_of(wanted)?;
    match needed.iter().find(|name| name.starts_with("linux-image-")) {
        Some(image) => packages(image),
        None => {
            let is_part =
                |name: &&String| ["linux-binary-", "linux-modules-"].iter().any(|part| name.starts_with(part));
            let parts: Vec<String> = needed.iter().filter(is_part).cloned().collect();
            Ok(if parts.is_empty() { vec![wanted.to_owned()] } else { parts })
        }
    }
}

/// The packages that a package depends on.
fn needs_of(package: &str) -> Result<Vec<String>, String> {
    let output = Command::new("apt-cache").args(["depends", package]).output();
    let output = output.map_err(|error| format!("apt-cache does not start: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.trim().is_empty() {
        return Err(format!("apt knows no `{package}`: run `apt-get update`, on Debian for amd64"));
    }
    Ok(text.lines().filter_map(|line| line.trim().strip_prefix("Depends: ")).map(str::to_owned).collect())
}

/// Returns the file with which QEMU boots: of Debian's kernel in a folder, or the kernel itself.
fn image(folder: &Path) -> Result<PathBuf, String> {
    if folder.is_file() {
        return Ok(folder.to_owned());
    }
    // Debian's kernels from Linux 7 on have it beside the modules.
    entry(&folder.join("boot"), |name| name.starts_with("vmlinuz-"))
        .or_else(|_| entry(&entry(&folder.join("usr/lib/modules"), |_| true)?, |name| name == "vmlinuz"))
}

/// The first entry of a folder, in the order of names, whose name is right.
fn entry(folder: &Path, is_right: impl Fn(&str) -> bool) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let named = |path: &PathBuf| path.file_name().is_some_and(|name| is_right(&name.to_string_lossy()));
    paths.into_iter().find(named).ok_or_else(|| format!("{} has no such file", folder.display()))
}

/// Packs the first process, busybox and the modules.
fn initramfs(folder: &Path, kernel: &Path, busybox: &Path) -> Result<PathBuf, String> {
    let files = folder.join("initramfs");
    _ = std::fs::remove_dir_all(&files);
    make(&files.join("modules"))?;
    let copy = |from: &Path, to: &Path| {
        std::fs::copy(from, to).map(drop).map_err(|error| format!("cannot copy {}: {error}", from.display()))
    };
    copy(busybox, &files.join("busybox"))?;
    for (number, module) in MODULES.iter().enumerate() {
        // Debian has merged these folders since.
        let mut folders = ["lib/modules", "usr/lib/modules"].map(|folder| kernel.join(folder)).into_iter();
        if let Some(found) = folders.find_map(|folder| find(&folder, &format!("{module}.ko"))) {
            let name = found.file_name().unwrap_or_default().to_string_lossy();
            let packed = files.join(format!("modules/{number:02}-{name}"));
            copy(&found, &packed)?;
            if name.ends_with(".xz") {
                tool::run(Command::new("xz").arg("--decompress").arg(packed))?;
            }
        }
    }
    write(&files.join("init"), include_str!("../lab/init"))?;
    let archive = folder.join("initramfs.cpio");
    let pack = "chmod +x init && find . | cpio --quiet --create --format=newc --owner=+0:+0 --file=../initramfs.cpio";
    tool::run(Command::new("sh").args(["-c", pack]).current_dir(&files))?;
    Ok(archive)
}

/// Finds a file whose name begins like this, in a folder or below it.
fn find(folder: &Path, beginning: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let is_named = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning));
    files.into_iter().find(is_named).or_else(|| folders.iter().find_map(|folder| find(folder, beginning)))
}

fn make(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// Builds the programs, and returns the tests that are to be executed.
fn chosen(options: &Options) -> Result<Vec<Test>, String> {
    let mut chosen = Vec::new();
    for program in tests::programs()? {
        let is_its = |(package, _): &&(&str, &str)| program.package == tool::root().join(package);
        let Some((_, part)) = PACKAGES.iter().find(is_its) else { continue };
        let (all, ignored) = (listed(&program, &[])?, listed(&program, &["--ignored"])?);
        // A search of all states learns nothing from more processors.
        let names =
            all.into_iter().filter(|name| name.contains(part) && !ignored.contains(name) && !name.contains("model::"));
        let tests = names.map(|name| Test { directory: program.package.clone(), program: program.file.clone(), name });
        chosen.extend(tests.filter(|test| options.names.is_empty() || is_named(test, &options.names)));
    }
    // After a run in partitions was killed, Linux 6.1 refuses to unplug a processor.
    chosen.sort_by_key(|test| test.name.contains("partitions"));
    match options.names.iter().find(|&name| !chosen.iter().any(|test| is_named(test, std::slice::from_ref(name)))) {
        Some(name) => Err(format!("no test has `{name}` in its name")),
        None => Ok(chosen),
    }
}

/// The names of the tests of a program.
fn listed(program: &tests::Program, more: &[&str]) -> Result<Vec<String>, String> {
    let mut command = Command::new(&program.file);
    let list = command.args(["--list", "--format", "terse"]).args(more).output();
    let list = list.map_err(|error| format!("{} does not start: {error}", tool::shown(&command)))?;
    if !list.status.success() {
        return Err(format!("{} ended with {}", tool::shown(&command), list.status));
    }
    let text = String::from_utf8_lossy(&list.stdout);
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

fn is_named(test: &Test, parts: &[String]) -> bool {
    let shown = test.shown();
    parts.iter().any(|part| shown.contains(part))
}

/// The plan of the guest: the tests that have not `ended`.
fn plan(tests: &[Test], ended: &BTreeMap<usize, i32>) -> String {
    let line = |(number, test): (usize, &Test)| {
        format!("{number}\t{}\t{}\t{}\n", test.directory.display(), test.program.display(), test.name)
    };
    tests.iter().enumerate().filter(|(number, _)| !ended.contains_key(number)).map(line).collect()
}

struct Machine {
    cpus: u32,
    sockets: u32,
    isolated: Option<String>,
    kernel: PathBuf,
    initramfs: PathBuf,
    share: PathBuf,
}

/// A machine that executes, and what it says. It ends with this value.
struct Guest {
    qemu: Child,
    said: Receiver<String>,
    /// The time for the next result.
    limit: Duration,
    /// The time for the next sign of life.
    still: Duration,
}

impl Drop for Guest {
    fn drop(&mut self) {
        _ = self.qemu.kill();
        _ = self.qemu.wait();
    }
}

impl Machine {
    /// Boots with KVM where that works, otherwise with emulated processors.
    fn boot(&self) -> Result<Guest, String> {
        if std::fs::OpenOptions::new().write(true).open("/dev/kvm").is_ok() {
            match self.start("kvm", "host", KVM_BOOT_MAX) {
                Ok(guest) => return Ok(guest),
                Err(why) => eprintln!("xtask: not with KVM: {why}"),
            }
        }
        self.start("tcg,thread=multi", "max", BOOT_MAX)
    }

    fn start(&self, accelerator: &str, processor: &str, limit: Duration) -> Result<Guest, String> {
        let share = format!("local,path={},mount_tag=lab,security_model=none", self.share.display());
        let mut command = Command::new("qemu-system-x86_64");
        command.args([
            "-accel",
            accelerator,
            "-cpu",
            processor,
            "-m",
            "4G",
            "-nographic",
            "-no-reboot",
            "-nic",
            "none",
        ]);
        let cores = self.cpus / self.sockets;
        command.args(["-smp", &format!("{},sockets={},cores={cores}", self.cpus, self.sockets)]);
        command.arg("-kernel").arg(&self.kernel).arg("-initrd").arg(&self.initramfs);
        let isolated = self.isolated.as_ref().map(|list| format!(" isolcpus={list}")).unwrap_or_default();
        let kernel = "console=ttyS0 quiet tsc=reliable clocksource=tsc no_timer_check panic=1";
        command.args(["-append", &format!("{kernel}{isolated}")]);
        command.args([
            "-virtfs",
            "local,path=/,mount_tag=machine,security_model=none,readonly=on,multidevs=remap",
            "-virtfs",
            &share,
        ]);
        let log = self.share.with_file_name("qemu.log");
        let errors = std::fs::File::create(&log).map_err(|error| format!("cannot write {}: {error}", log.display()))?;
        let mut qemu = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(|error| format!("{} does not start: {error}", tool::shown(&command)))?;
        let output = qemu.stdout.take().ok_or("QEMU has no output")?;
        let (send, said) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                if send.send(String::from_utf8_lossy(&line).trim().to_owned()).is_err() {
                    return;
                }
            }
        });
        let mut guest = Guest { qemu, said, limit, still: STILL_MAX };
        let why = |cut| match cut {
            Cut::Machine(why) => why.to_owned(),
            Cut::For(why) => why,
        };
        match guest.next().map_err(why)? {
            Said::Ready { cpus, scale, limit_s, kernel } => {
                eprintln!("xtask: {kernel} on {cpus} processors, {scale} times slower; {limit_s} s for each test");
                guest.limit = Duration::from_secs(limit_s + 60);
                Ok(guest)
            }
            other => Err(format!("the machine did not boot: {other:?}")),
        }
    }
}

impl Guest {
    /// Waits for the next result.
    fn next(&mut self) -> Result<Said, Cut> {
        let begin = Instant::now();
        loop {
            let left = self.limit.saturating_sub(begin.elapsed());
            match self.said.recv_timeout(left.min(self.still)) {
                Ok(line) => match parse(&line) {
                    Some(Said::Alive) => {}
                    Some(said) => return Ok(said),
                    // What the kernel says about itself.
                    None if !line.is_empty() => eprintln!("  | {line}"),
                    None => {}
                },
                Err(RecvTimeoutError::Timeout) if left > self.still => return Err(STANDS_STILL),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Cut::For(format!("there was no result for {} s", self.limit.as_secs())));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(ENDED),
            }
        }
    }
}

fn parse(line: &str) -> Option<Said> {
    let (_, rest) = line.split_once("LAB ")?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    match words.as_slice() {
        ["ready", cpus, scale, limit_s, kernel] => Some(Said::Ready {
            cpus: cpus.parse().ok()?,
            scale: scale.parse().ok()?,
            limit_s: limit_s.parse().ok()?,
            kernel: (*kernel).to_owned(),
        }),
        ["alive"] => Some(Said::Alive),
        ["test", number, status, ms] => {
            Some(Said::Ended { number: number.parse().ok()?, status: status.parse().ok()?, ms: ms.parse().ok()? })
        }
        ["failed:", why @ ..] => Some(Said::Failed(why.join(" "))),
        ["over"] => Some(Said::Over),
        _ => None,
    }
}

/// Follows the tests to their end, and notes how each ended. The machine ends with this call.
fn follow(mut guest: Guest, tests: &[Test], ended: &mut BTreeMap<usize, i32>) -> Result<(), Cut> {
    loop {
        match guest.next()? {
            Said::Ended { number, status, ms } => {
                let Some(test) = tests.get(number) else { continue };
                ended.insert(number, status);
                let (nth, all, seconds) = (ended.len(), tests.len(), ms / 1000);
                eprintln!("{nth:4} of {all}: {} {seconds} s: {}", word(status), test.shown());
            }
            Said::Alive => {}
            Said::Over => return Ok(()),
            Said::Failed(why) => return Err(Cut::For(why)),
            Said::Ready { .. } => return Err(Cut::For("the machine booted again".to_owned())),
        }
    }
}

/// Names each test that failed or was not executed, or was skipped if none `may_skip`. `cut` is why the machine
/// ended early, and `log` returns what a test printed.
fn verdict(
    tests: &[Test],
    ended: &BTreeMap<usize, i32>,
    cut: Option<&str>,
    may_skip: bool,
    log: impl Fn(usize) -> String,
) -> Result<(), String> {
    let named = |number: usize, how: &str| format!("log {number}: {}: {how}", tests[number].shown());
    let mut failed = Vec::new();
    let mut skipped = 0;
    for (&number, &status) in ended {
        let text = log(number);
        if status != 0 {
            failed.push(named(number, word(status)));
        } else if !text.contains("test result: ok. 1 passed") {
            failed.push(named(number, "not executed"));
        } else if !may_skip && text.contains("skipped:") {
            failed.push(named(number, "skipped"));
        } else if text.contains("skipped:") || text.contains("not judged") {
            eprintln!("xtask: {}", named(number, "skipped or not judged"));
            skipped += 1;
        }
    }
    eprintln!("xtask: {} tests, {} failed, {skipped} skipped or not judged", ended.len(), failed.len());
    if let Some(first) = (0..tests.len()).find(|number| !ended.contains_key(number)) {
        let why = cut.unwrap_or("the machine ended before");
        failed.push(format!("{}, and {} more", named(first, why), tests.len() - ended.len() - 1));
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

fn word(status: i32) -> &'static str {
    match status {
        0 => "passed",
        137 => "ended by its limit of time",
        _ => "FAILED",
    }
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn results_are_read_from_a_line_of_the_console() {
        assert_eq!(parse("[    1.0] LAB test 7 101 2300\r"), Some(Said::Ended { number: 7, status: 101, ms: 2300 }));
        let ready = Said::Ready { cpus: 8, scale: 12, limit_s: 720, kernel: "6.1-rt".into() };
        assert_eq!(parse("LAB ready 8 12 720 6.1-rt"), Some(ready));
        assert_eq!(parse("LAB failed: the overlay"), Some(Said::Failed("the overlay".into())));
        for other in ["", "LAB", "LAB test 7", "LAB test x 0 0", "a line of the kernel"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_machine_that_boots_again_executes_the_tests_that_have_not_ended() {
        let test = |name: &str| Test { directory: "/".into(), program: "/locks-1".into(), name: name.into() };
        let tests = ["one", "two", "three"].map(test);
        let left = plan(&tests, &BTreeMap::from([(0, 0), (1, 101)]));
        assert_eq!(left, "2\t/\t/locks-1\tthree\n");
    }

    #[test]
    fn a_test_that_fails_or_is_missing_is_named() {
        let test = |name: &str| Test { directory: "/".into(), program: "/locks-1".into(), name: name.into() };
        let tests = ["good", "bad", "ignored", "missing"].map(test);
        let log = |number: usize| format!("test result: ok. {} passed", u8::from(number != 2));
        let said =
            |ended: &[(usize, i32)]| verdict(&tests, &ended.iter().copied().collect(), Some("it hangs"), true, log);
        assert_eq!(verdict(&tests[..1], &BTreeMap::from([(0, 0)]), None, true, log), Ok(()));
        let skips = |may_skip| {
            let log = |_| "skipped: no tracefs\ntest result: ok. 1 passed".to_owned();
            verdict(&tests[..1], &BTreeMap::from([(0, 0)]), None, may_skip, log)
        };
        assert_eq!((skips(true), skips(false)), (Ok(()), Err("log 0: locks good: skipped".to_owned())));
        let failed = said(&[(0, 0), (1, 101), (2, 0)]).expect_err("three fail");
        let lines: Vec<&str> = failed.lines().collect();
        assert_eq!(
            lines,
            [
                "log 1: locks bad: FAILED",
                "log 2: locks ignored: not executed",
                "log 3: locks missing: it hangs, and 0 more",
            ]
        );
    }

    #[test]
    fn a_missing_program_and_an_unknown_kernel_say_what_to_do() {
        let missing = needed("qemu-system-of-nobody").expect_err("there is no such program");
        assert!(missing.contains("qemu-system-of-nobody") && missing.contains("install `qemu-system-x86"), "{missing}");
        assert_eq!(needed("sh"), Ok(()));
        // Without Debian, there is no apt-cache either.
        let unknown = packages("linux-image-of-nobody").expect_err("there is no such package");
        assert!(unknown.contains("apt"), "{unknown}");
    }

    #[test]
    fn a_machine_that_hangs_is_ended_by_time() {
        let qemu = Command::new("sleep").arg("600").spawn().expect("starts");
        let (process, (send, said)) = (qemu.id(), channel());
        let (limit, still) = (Duration::from_millis(50), Duration::from_secs(10));
        let mut guest = Guest { qemu, said, limit, still };
        send.send("LAB test 0 0 5".to_owned()).expect("is heard");
        assert_eq!(guest.next(), Ok(Said::Ended { number: 0, status: 0, ms: 5 }));
        send.send("a line of the kernel".to_owned()).expect("is heard");
        let why = format!("{:?}", guest.next().expect_err("it says nothing"));
        assert!(why.contains("no result"), "{why}");
        (guest.limit, guest.still) = (still, limit);
        send.send("LAB alive".to_owned()).expect("is heard");
        assert_eq!(guest.next(), Err(STANDS_STILL));
        drop(send);
        assert_eq!(guest.next(), Err(ENDED));
        drop(guest);
        assert!(!Path::new(&format!("/proc/{process}")).exists(), "it executes still");
    }

    #[test]
    fn options_are_names_and_a_machine() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let right = ["--cpus", "4", "mutex", "--sockets", "2", "--no-throttling", "--seed", "7", "--isolated", "1,3"];
        let right = options(&words(&right));
        let right = right.expect("right");
        assert_eq!((right.cpus, right.sockets, right.is_throttled, right.seed), (4, 2, false, 7));
        assert_eq!(right.isolated.as_deref(), Some("1,3"));
        assert_eq!((right.names, right.kernel), (vec!["mutex".to_owned()], "linux-image-rt-amd64".to_owned()));
        let other = options(&words(&["--kernel", "linux-image-amd64"])).expect("right");
        assert_eq!(other.isolated, None);
        assert_eq!((other.kernel, other.cpus, other.sockets), ("linux-image-amd64".to_owned(), 8, 1));
        let own = options(&words(&["--kernel", "/proc/self/exe"])).expect("the file of a kernel, as far as it knows");
        assert_eq!(image(Path::new(&own.kernel)), Ok("/proc/self/exe".into()));
        for wrong in [
            &["--cpus"][..],
            &["--cpus", "0"],
            &["--cpus", "many"],
            &["--fast"],
            &["--sockets", "3"],
            &["--seed", "-1"],
            &["--isolated"],
            &["--isolated", "1 panic=0"],
            &["--kernel", "vim"],
            &["--kernel", "linux-image-/../.."],
        ] {
            assert!(options(&words(wrong)).is_err(), "{wrong:?}");
        }
    }
}
