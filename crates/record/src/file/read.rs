//! From bytes to chunks.

use super::format::{CHUNK_ALIGN, CHUNK_HEADER, CHUNK_MAGIC, HEADER, MAGIC, VERSION, chunk, words};

/// The fault of a file, and its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) at: usize,
    pub(super) reason: String,
}

impl Problem {
    pub(super) fn new(at: usize, reason: impl Into<String>) -> Self {
        Self { at, reason: reason.into() }
    }
}

/// The flags and moments of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) flags: u32,
    pub(super) process: u32,
    pub(super) stamp: u64,
    pub(super) monotonic_ns: u64,
}

/// A thread as its last chunk describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadEntry {
    pub(super) number: u32,
    pub(super) id: u32,
    pub(super) lost: u64,
    pub(super) name: String,
}

/// A moment by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) stamp: u64,
    pub(super) monotonic_ns: u64,
    pub(super) realtime_ns: u64,
}

/// Events of one thread: its number in the file, the place of the first word, and the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Events {
    pub(super) thread: u32,
    pub(super) at: usize,
    pub(super) words: Vec<u64>,
}

/// All that a file contains.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) header: Header,
    pub(super) program: Vec<String>,
    pub(super) moments: Vec<Moment>,
    pub(super) maps: Vec<String>,
    pub(super) threads: Vec<ThreadEntry>,
    pub(super) events: Vec<Events>,
    pub(super) switches: Option<Vec<[u64; 2]>>,
    pub(super) switches_lost: u64,
    pub(super) unrecorded_threads: u32,
    pub(super) end_ns: Option<u64>,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn double(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn header(bytes: &[u8]) -> Result<Header, Problem> {
    if !bytes.starts_with(&MAGIC) && !MAGIC.starts_with(bytes) {
        return Err(Problem::new(0, "this is not a recording; give the folder that `lockwright record` wrote"));
    }
    let short = || Problem::new(bytes.len(), "the file ends within its header; record the program again");
    let version = word(bytes, 8).ok_or_else(short)?;
    if version != VERSION {
        let reason = format!("the recording has version {version}, and this program reads {VERSION}; record it again");
        return Err(Problem::new(8, reason));
    }
    let read = || Some((word(bytes, 12)?, word(bytes, 16)?, double(bytes, 24)?, double(bytes, 32)?));
    let (flags, process, stamp, monotonic_ns) = read().ok_or_else(short)?;
    Ok(Header { flags, process, stamp, monotonic_ns })
}

/// Reads a file. What follows the last complete chunk is read as far as it goes.
pub(super) fn contents(bytes: &[u8]) -> Result<Contents, Problem> {
    let mut contents = Contents { header: header(bytes)?, ..Contents::default() };
    let mut at = HEADER;
    // BOUND: each round consumes a header of a chunk.
    while let Some(head) = bytes.get(at..at + CHUNK_HEADER) {
        let field = |index: usize| word(head, 4 * index).unwrap_or_default();
        if field(0) != CHUNK_MAGIC {
            return Err(Problem::new(at, "a chunk is missing here; the file is damaged, record the program again"));
        }
        let begin = at + CHUNK_HEADER;
        let length = field(3) as usize;
        let end = begin.saturating_add(length);
        let body = &bytes[begin..end.min(bytes.len())];
        contents.add(field(1), field(2), body, begin, end <= bytes.len())?;
        at = end.next_multiple_of(CHUNK_ALIGN);
        if contents.end_ns.is_some() || end > bytes.len() {
            break;
        }
    }
    Ok(contents)
}

impl Contents {
    fn add(&mut self, kind: u32, argument: u32, body: &[u8], at: usize, is_whole: bool) -> Result<(), Problem> {
        // Only lists may break off.
        if !is_whole && !matches!(kind, chunk::EVENTS | chunk::SWITCHES) {
            return Ok(());
        }
        let short = || Problem::new(at, format!("a chunk of kind {kind} is too short; the file is damaged"));
        match kind {
            chunk::PROGRAM => {
                let arguments = body.split(|&byte| byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
                self.program = arguments.collect();
                // Each argument ends with a zero.
                self.program.pop();
            }
            chunk::CLOCK => self.moments.push(
                (|| {
                    let (stamp, monotonic_ns) = (double(body, 0)?, double(body, 8)?);
                    Some(Moment { stamp, monotonic_ns, realtime_ns: double(body, 16)? })
                })()
                .ok_or_else(short)?,
            ),
            chunk::MAPS => self.maps.push(String::from_utf8_lossy(body).into_owned()),
            chunk::THREAD => {
                let (id, lost) = word(body, 0).zip(double(body, 8)).ok_or_else(short)?;
                let name = body.get(16..32).ok_or_else(short)?;
                let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
                let name = String::from_utf8_lossy(name).into_owned();
                let entry = ThreadEntry { number: argument, id, lost, name };
                match self.threads.iter_mut().find(|thread| thread.number == argument) {
                    Some(known) => *known = entry,
                    None => self.threads.push(entry),
                }
            }
            chunk::EVENTS => self.events.push(Events { thread: argument, at, words: events(body, at)? }),
            chunk::SWITCHES => {
                self.switches_lost = self.switches_lost.saturating_add(u64::from(argument));
                let pairs = body.chunks_exact(16).filter_map(|pair| Some([double(pair, 0)?, double(pair, 8)?]));
                self.switches.get_or_insert_default().extend(pairs);
            }
            chunk::END => {
                self.unrecorded_threads = argument;
                self.end_ns = Some(double(body, 0).ok_or_else(short)?);
            }
            _ => {
                let reason = format!("there is no chunk of kind {kind}; the file is damaged, record the program again");
                return Err(Problem::new(at, reason));
            }
        }
        Ok(())
    }
}

/// The words of whole events.
fn events(body: &[u8], at: usize) -> Result<Vec<u64>, Problem> {
    let mut all: Vec<u64> = body.chunks_exact(8).filter_map(|word| double(word, 0)).collect();
    let mut next = 0;
    // BOUND: each event has a word.
    while let Some(first) = all.get(next) {
        let kind = (first & 0xFF) as u8;
        let Some(length) = words(kind) else {
            let reason = format!("there is no event of kind {kind}; the file is damaged, record the program again");
            return Err(Problem::new(at + 8 * next, reason));
        };
        if next + length > all.len() {
            break;
        }
        next += length;
    }
    all.truncate(next);
    Ok(all)
}
