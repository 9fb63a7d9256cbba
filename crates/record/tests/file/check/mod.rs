//! The property of the reader of recordings for any bytes: it returns a recording whose numbers name something, from
//! which a task set and findings follow, or a problem with its place. The tests here and the fuzz target use it.

use lockwright_model::format::parse_system;
use lockwright_record::file::format::{
    CHUNK_ALIGN, CHUNK_MAGIC, DETAIL_SHIFT, HEADER, MAGIC, VERSION, chunk, class, event, switch, words,
};
use lockwright_record::{Choices, EventKind, Findings, Recording, Trends, Wait, infer};

/// The result of an input that was handled correctly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Accepted,
    Refused,
}

/// Checks the reader on any bytes.
pub fn recording(bytes: &[u8]) -> Result<Outcome, String> {
    match Recording::from_bytes(bytes) {
        Ok(recording) => {
            names_something(&recording)?;
            leads_to_results(&recording)?;
            Ok(Outcome::Accepted)
        }
        Err(error) if error.reason.is_empty() => Err("refused without a reason".into()),
        Err(error) => match error.at {
            Some(at) if at > bytes.len() as u64 => Err(format!("byte {at} of {}: {error}", bytes.len())),
            Some(_) => Ok(Outcome::Refused),
            None => Err(format!("refused without a place: {error}")),
        },
    }
}

fn names_something(recording: &Recording) -> Result<(), String> {
    if !recording.events.is_sorted_by_key(|event| event.at_ns) {
        return Err("events out of order".into());
    }
    let (objects, sites) = (recording.objects.len(), recording.sites.len());
    for event in &recording.events {
        let (object, site) = match event.kind {
            EventKind::Request { object, site, .. } | EventKind::Locked { object, site, .. } => {
                (Some(object), Some(site))
            }
            EventKind::Refused { object }
            | EventKind::Unlock { object }
            | EventKind::Signal { object }
            | EventKind::Initialised { object, .. } => (Some(object), None),
            EventKind::Wait { wait, site } => {
                let object = match wait {
                    Wait::Condition { object }
                    | Wait::Semaphore { object }
                    | Wait::Barrier { object }
                    | Wait::Futex { object } => Some(object),
                    _ => None,
                };
                (object, Some(site))
            }
            _ => (None, None),
        };
        let callback = match event.kind {
            EventKind::CallbackStart { callback } | EventKind::CallbackEnd { callback } => callback as usize,
            _ => 0,
        };
        let is_known = (callback == 0 || callback < recording.callbacks.len())
            && (event.thread as usize) < recording.threads.len()
            && object.is_none_or(|object| (object as usize) < objects)
            && site.is_none_or(|site| (site as usize) < sites)
            && event.at_ns <= recording.length_ns;
        if !is_known {
            return Err(format!("{event:?} names what is not there"));
        }
    }
    Ok(())
}

/// All that is computed from a recording ends, and an inferred task set is a valid file.
fn leads_to_results(recording: &Recording) -> Result<(), String> {
    if let Some(split) = recording.by_callback() {
        names_something(&split)?;
        follows(&split)?;
    }
    follows(recording)
}

fn follows(recording: &Recording) -> Result<(), String> {
    let findings = Findings::of(recording, Some(1_000));
    drop((findings.sentences(recording), Trends::of(recording)));
    for margin in [0, 20, u32::MAX] {
        let inferred = infer(recording, &Choices { margin, ..Choices::default() });
        let Some(file) = inferred.file(recording) else { continue };
        match parse_system(&file) {
            Ok(system) if inferred.system.as_ref() == Ok(&system) => {}
            Ok(_) => return Err(format!("another system is read back:\n{file}")),
            Err(faults) => return Err(format!("not read back: {faults:?}\n{file}")),
        }
    }
    Ok(())
}

/// A file with a valid frame: a header, two moments of the clocks, and threads and switches that follow from the
/// script. Of few addresses, so that locks and waits meet, which they never do in random bytes.
///
/// A step of the script is three bytes: the kind of an event, the thread and the object, and the time that passes.
pub fn file_of(script: &[u8]) -> Vec<u8> {
    let (mut now, mut events, mut switches) = (0_u64, [(); 4].map(|()| Vec::new()), Vec::new());
    for step in script.chunks_exact(3) {
        let &[kind, who, passes] = step else { continue };
        now += 1 << (passes % 32);
        let (thread, object) = (usize::from(who & 3), u64::from(who >> 2 & 15));
        let id = thread as u64 + 100;
        if kind >= 0xC0 {
            let cpu = u64::from(who >> 6) << switch::CPU_SHIFT;
            switches.extend([1_000 + now, id | cpu | u64::from(kind & 3) << switch::KIND_SHIFT]);
            continue;
        }
        let kind = kind & 31;
        let Some(length) = words(kind) else { continue };
        let class = u64::from([class::MUTEX, class::RWLOCK, class::SEMAPHORE, class::FUTEX][(object & 3) as usize]);
        let place = (0x20 * u64::from(kind) + object) | (class | u64::from(passes & 0x60) << 8) << DETAIL_SHIFT;
        let rest = match kind {
            event::START | event::AFFINITY => [id, 1 << (object & 3), 0, 0],
            event::SCHEDULING => [id | (object & 3) << 32 | u64::from(who) << 40, 0, 0, 0],
            event::DEADLINE => [id, 1 << (passes & 15), 1 << (who & 31), 1 << (who & 31)],
            event::SLEEP_UNTIL => [1_000 + now + (1 << (who & 31)), (object & 1) << DETAIL_SHIFT, 0, 0],
            _ => [0x1000 + 64 * object, place, object, 0],
        };
        events[thread].push(now << 8 | u64::from(kind));
        events[thread].extend(rest.iter().cycle().take(length - 1));
    }
    let clock = |moment: u64| [10 + moment, 1_000 + moment, 5_000_000 + moment];
    let mut file =
        [&MAGIC[..], &VERSION.to_le_bytes(), &[0; 12], &10_u64.to_le_bytes(), &1_000_u64.to_le_bytes()].concat();
    assert_eq!(file.len(), HEADER);
    add(&mut file, chunk::CLOCK, 0, &clock(0));
    for (number, events) in (0..).zip(&events) {
        add(&mut file, chunk::THREAD, number, &[100 + u64::from(number), 0, 0x6174 + u64::from(number), 0]);
        add(&mut file, chunk::EVENTS, number, events);
    }
    add(&mut file, chunk::SWITCHES, 0, &switches);
    add(&mut file, chunk::CLOCK, 0, &clock(now.max(1)));
    add(&mut file, chunk::END, 0, &[1_000 + now]);
    file
}

fn add(file: &mut Vec<u8>, kind: u32, argument: u32, words: &[u64]) {
    let bytes = u32::try_from(8 * words.len()).expect("a short script");
    [CHUNK_MAGIC, kind, argument, bytes].iter().for_each(|field| file.extend(field.to_le_bytes()));
    words.iter().for_each(|word| file.extend(word.to_le_bytes()));
    assert_eq!(file.len() % CHUNK_ALIGN, 0);
}
