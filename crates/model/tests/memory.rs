//! The memory that the readers take for files that are not valid, or mean nothing: at most fifty bytes for each byte of
//! the file, or 65 MB, including the file itself.
//!
//! This test is a binary of its own because it counts all allocations.

use lockwright_model::Duration;
use lockwright_model::format::{import_cheddar, import_rt_app, import_schedcat, parse_overheads, parse_system, reader};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that are allocated, and their maximum since it was last set.
static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

fn grow(bytes: usize) {
    // ORDERING: Relaxed: one thread allocates what is measured, and reads the counts.
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: all calls are passed to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller meets the contract of `GlobalAlloc::alloc`, which is that of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller meets the contract of `GlobalAlloc::dealloc`, and the place came from the system's
        // allocator.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The system moves the pages of a large block, and does not copy them.
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        grow(size);
        // SAFETY: the caller meets the contract of `GlobalAlloc::realloc`, and the place came from the system's
        // allocator.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The maximum number of bytes of memory for each byte of the file.
const MOST: usize = 50;

/// The number of bytes of memory that a short file may take: the tree of as many values as one part may have.
const TREE: usize = 65_000_000;

/// The length of the files: 4 MiB if LOCKWRIGHT_DEEP is set, as in CI.
fn length() -> usize {
    if std::env::var_os("LOCKWRIGHT_DEEP").is_some() { 4 << 20 } else { 1 << 20 }
}

/// Returns the memory that a file and its reader take at the peak.
fn peak(file: &str, read: impl FnOnce(&str)) -> usize {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let copy = file.to_owned();
    read(&copy);
    PEAK.load(Ordering::Relaxed) - before
}

fn repeated(part: &str) -> String {
    part.repeat(length() / part.len())
}

fn noise() -> String {
    let mut random = 1_u64;
    let sign = |_| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if random.is_multiple_of(20) { '\n' } else { char::from((random / 32 % 95) as u8 + 32) }
    };
    (0..length()).map(sign).collect()
}

/// Reads a study plan: the readers outside of this crate use [`reader::read`] as this function does.
fn read_plan(file: &str) {
    let keys = ["name", "samples", "axis"];
    let read = reader::read(file, "a study", &keys, |fields, faults| {
        fields.get("samples")?.integer("the number of samples", 1, 1_000, faults)
    });
    assert!(read.is_err());
}

#[test]
fn invalid_files_take_at_most_fifty_times_their_length_or_one_tree() {
    let ms = Duration::from_ms(1);
    let toml = [
        ("signs", repeated("=")),
        ("lines of signs", repeated("=\n")),
        ("keys without values", repeated("x=\n")),
        ("words", repeated("word\n")),
        ("one key again and again", repeated("a=1\n")),
        ("quotes", repeated("\"")),
        ("brackets", repeated("[")),
        ("braces in a list", format!("a=[{}", repeated("{"))),
        ("blank lines", repeated("\n")),
        ("blanks between lines", repeated(" \n")),
        ("comments", repeated("#\n")),
        ("blank lines in a task", format!("[[task]]\nname=\"a\"\n{}", repeated("\n"))),
        ("blank lines in a list", format!("a=[{}]", repeated("\n"))),
        ("a list of lists", format!("a=[{}]", repeated("[],"))),
        ("a list of tables", format!("a=[{}]", repeated("{a=1},"))),
        // Nearly as many values as one part may have.
        ("a list, short enough", format!("a=[{}]", "1,".repeat(131_000))),
        ("tables, short enough", format!("a=[{}]", "{a=1},".repeat(43_000))),
        ("invalid tasks", repeated("[[task]]\nbody=[{a=1},{a=1},{a=1}]\n")),
        ("a very long body", format!("[[task]]\nbody=[{}]", repeated("{lock=\"r\"},"))),
        ("dotted keys", repeated("a.a.a.a.a.a.a.a=1\n")),
        ("noise", noise()),
    ];
    let json = [
        ("objects", repeated("{\"a\":[1,")),
        ("numbers", format!("[{}]", repeated("1,"))),
        ("empty objects", format!("{{\"tasks\":[{}]}}", repeated("{},"))),
        ("texts", format!("[{}]", repeated("\"\","))),
    ];
    let xml = [
        ("tags and attributes", repeated("<=")),
        ("long tags", format!("<aaaa>{}</aaaa>", repeated("<bbb/>"))),
        ("deep long tags", repeated("<aaaaa>")),
        ("flat", format!("<a>{}</a>", repeated("<b/>"))),
        ("deep", repeated("<a>")),
        ("signs", repeated("<")),
        ("texts", format!("<taskset>{}</taskset>", repeated("<b>x</b>"))),
        ("tasks", format!("<taskset>{}</taskset>", repeated("<task period=\"1\"/>"))),
        ("cheddar", format!("<cheddar><tasks>{}</tasks></cheddar>", repeated("<periodic_task/>"))),
        ("cores", format!("<cheddar><core_units>{}</core_units></cheddar>", repeated("<c id=\"\"/>"))),
        ("references", format!("<a>{}</a>", repeated("&lt;"))),
        ("sections", format!("<a>{}</a>", repeated("<![CDATA[]]>"))),
        ("attributes", format!("<a>{}</a>", repeated("<b a=\"\" b=\"\" c=\"\"/>"))),
        ("instructions", format!("<a>{}</a>", repeated("<?a?>"))),
        ("comments", format!("<a>{}</a>", repeated("<!---->"))),
    ];
    type Reader = fn(&str, Duration);
    let readers: [(&str, Reader); 6] = [
        ("task set", |file, _| assert!(parse_system(file).is_err())),
        ("overheads", |file, _| drop(parse_overheads(file))),
        ("plan", |file, _| read_plan(file)),
        ("rt-app", |file, _| assert!(import_rt_app(file).is_err())),
        ("schedcat", |file, ms| assert!(import_schedcat(file, ms).is_err())),
        ("cheddar", |file, ms| assert!(import_cheddar(file, ms).is_err())),
    ];
    for (name, file) in toml.iter().chain(&json).chain(&xml) {
        for (reader, read) in &readers {
            let taken = peak(file, |file| read(file, ms));
            println!("{name}, as {reader}: {taken} bytes, {} times", taken / file.len());
            assert!(taken <= TREE.max(MOST * file.len()), "{name}, as {reader}: {taken} bytes for {}", file.len());
        }
    }
}
