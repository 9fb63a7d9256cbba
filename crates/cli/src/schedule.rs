//! The files and the chart that show a schedule.

use crate::args::Schedules;
use crate::console::Console;
use crate::exit::Exit;
use crate::export::{ResultFile, reason};
use crate::input::find_task;
use crate::tame::tame;
use crate::units;
use lockwright_model::{Duration, Instant, Protocol, Record, System, TaskId};
use lockwright_report::perfetto::{self, Scene};
use lockwright_report::svg::{Form, Level};
use lockwright_report::text::Layout;
use lockwright_report::{By, Place, Schedule, Window, jobs, svg, text, worst_jobs};
use std::path::{Path, PathBuf};

/// The margin of the default window: this part of the job's response time, before and after it.
const MARGIN: u64 = 10;
/// Greatest number of intervals in a picture: with more, it is larger than viewers open quickly.
const INTERVALS_MAX: usize = 20_000;
/// With more intervals, marks and steps than this, short neighbours in a picture are merged, up to [`Level::FINE`].
const PARTS_MAX: usize = 2_000;
/// Greatest number of characters of a task's name in the name of a file.
const NAME_MAX: usize = 60;

/// The files that show the schedule under one protocol.
pub struct ScheduleFiles {
    trace: Option<ResultFile>,
    svg: Option<Svg>,
    gantt: bool,
    by: By,
    width: u32,
    window: Option<Window>,
    /// The job around which the window is: its task, and its number from 1.
    job: Option<(TaskId, usize)>,
}

/// Where pictures go.
enum Svg {
    /// One picture.
    File(ResultFile),
    /// Into this directory a picture of the worst job of each task. The names of the files begin with this word.
    Folder(PathBuf, String),
}

impl ScheduleFiles {
    /// Opens the files that are wanted. With several protocols, each has its own: `out.svg` becomes `out-pip.svg`.
    ///
    /// # Errors
    /// A file cannot be opened, or there is no such task; the console has the message.
    pub fn create(
        system: &System,
        arguments: &Schedules,
        protocol: Protocol,
        protocols: usize,
        console: &Console,
    ) -> Result<Self, Exit> {
        let open = |path: &Option<PathBuf>, option| {
            let path = path.as_deref().map(|path| match protocols {
                0 | 1 => path.to_owned(),
                _ => beside(path, protocol.name()),
            });
            path.map(|path| ResultFile::open(&path, option, console)).transpose()
        };
        let job = match &arguments.job {
            Some((task, number)) => Some((find_task(system, task, console)?, *number)),
            None => None,
        };
        let folder = arguments.svg.as_deref().filter(|path| path.is_dir());
        if folder.is_some() && (arguments.window.is_some() || job.is_some()) {
            console.error("--window and --job choose one picture, and --svg names a directory", "give --svg a file");
            return Err(Exit::BadInput);
        }
        // A bad directory is reported before the long work begins.
        if let Some(folder) = folder
            && let Err(error) = tempfile::tempfile_in(folder)
        {
            let help = "give --svg a file, or a directory with write permission";
            console.error(format!("cannot write into {}: {}", folder.display(), reason(&error)), help);
            return Err(Exit::of_output(&error));
        }
        let svg = match folder {
            Some(folder) => {
                let word = if protocols > 1 { format!("{protocol}-") } else { String::new() };
                Some(Svg::Folder(folder.to_owned(), word))
            }
            None => open(&arguments.svg, "--svg")?.map(Svg::File),
        };
        Ok(Self {
            trace: open(&arguments.trace, "--trace")?,
            svg,
            gantt: arguments.gantt,
            by: arguments.by,
            width: arguments.width,
            window: arguments.window,
            job,
        })
    }

    /// Whether anything needs the records of a schedule.
    #[must_use]
    pub fn need_records(&self) -> bool {
        self.trace.is_some() || self.svg.is_some() || self.gantt
    }

    /// Writes the files, and prints their paths; prints the chart. The records are complete up to `end`, and nothing is
    /// drawn after it.
    ///
    /// # Errors
    /// A file cannot be written, for example on a full disk, or the schedule has no such job; the console has the
    /// message.
    pub fn write(
        self,
        system: &System,
        title: &str,
        records: &[Record],
        end: Instant,
        console: &Console,
    ) -> Result<(), Exit> {
        if let Some(file) = self.trace {
            let path = file.write(|out| Ok(perfetto::write(&Scene::of(system, title), records, out)?), console)?;
            console.note(format!("the trace is in {}; https://ui.perfetto.dev shows it", path.display()));
        }
        if self.svg.is_none() && !self.gantt {
            return Ok(());
        }
        let part = match self.job {
            Some((task, number)) => Part::job(around(system, records, task, number, console)?),
            None => self.window.map_or_else(|| tightest(system, records), Part::exactly),
        };
        let shown = part.window().before(end);
        if let Some(window) = self.window.filter(|&window| shown != Some(window)) {
            let at = since_start(end);
            console.note(match window.before(end) {
                Some(_) => format!("--window reaches beyond the schedule, which ends at {at}: so does the picture"),
                None => format!("--window begins when the schedule has ended, at {at}: nothing is drawn"),
            });
        }
        let form = Form { title, by: self.by, place: Place::File, width: self.width, level: Level::FINEST };
        match self.svg {
            Some(Svg::File(file)) => {
                let schedule = drawable(system, records, part, end, console);
                let path = write_picture(file, system, &schedule, form, console)?;
                console.note(format!("the picture of the schedule is in {}", path.display()));
            }
            Some(Svg::Folder(folder, word)) => {
                let worst = system.task_ids().zip(worst_jobs(system, records));
                for (task, job) in worst.filter_map(|(task, job)| Some((task, job?))) {
                    let name = &system.task(task).name;
                    let path = folder.join(format!("{word}{}-{}.svg", task.index() + 1, plain(name)));
                    let file = ResultFile::open(&path, "--svg", console)?;
                    let schedule = drawable(system, records, Part::job(job), end, console);
                    let title = format!("{title}: the worst job of {name}");
                    write_picture(file, system, &schedule, Form { title: &title, ..form }, console)?;
                }
                console.note(format!("the pictures of the schedule are in {}", folder.display()));
            }
            None => {}
        }
        if self.gantt {
            let schedule = read(system, records, part, end);
            let layout = Layout { width: console.layout.width(), by: self.by };
            let chart = text::draw(system, &schedule, layout);
            console.print_text(&format!("{}\n\n{}\n", tame(title), tame(&chart)))?;
        }
        Ok(())
    }
}

/// Refuses a window of which a schedule up to `end` has nothing.
///
/// # Errors
/// The window begins at the end or later; the console has the message.
pub fn refuse_beyond(window: Option<Window>, end: Instant, console: &Console) -> Result<(), Exit> {
    if window.is_none_or(|window| window.before(end).is_some()) {
        return Ok(());
    }
    console.error(
        format!("--window begins when the schedule has ended, at {}", since_start(end)),
        "choose an earlier window, or a longer --for",
    );
    Err(Exit::BadInput)
}

fn since_start(at: Instant) -> String {
    units::text(at.since(Instant::ZERO))
}

/// The part of a schedule that is shown.
#[derive(Clone, Copy)]
struct Part {
    /// What it is about, such as the time of a job.
    core: Window,
    /// Whether the time before and after it is shown too.
    has_margin: bool,
}

impl Part {
    /// The time around a job.
    fn job(core: Window) -> Self {
        Self { core, has_margin: true }
    }

    fn exactly(core: Window) -> Self {
        Self { core, has_margin: false }
    }

    fn window(self) -> Window {
        if self.has_margin { self.core.with_margin(MARGIN) } else { self.core }
    }

    /// The same part from the middle of its core on: jobs miss their deadlines at their ends.
    fn last_half(self) -> Self {
        let half = Duration::from_ns(self.core.length().as_ns() / 2);
        Self { core: Window { from: self.core.from + half, ..self.core }, ..self }
    }
}

/// Reads this part of a schedule that ends at `end`.
fn read(system: &System, records: &[Record], part: Part, end: Instant) -> Schedule {
    match part.window().before(end) {
        Some(shown) => Schedule::read(system, records, shown),
        None => Schedule::read(system, &[], part.window()),
    }
}

fn intervals(schedule: &Schedule) -> usize {
    schedule.rows.iter().map(|row| row.spans.len()).sum()
}

/// Reads as much of this part of a schedule as a picture may have.
fn drawable(system: &System, records: &[Record], part: Part, end: Instant, console: &Console) -> Schedule {
    let whole = read(system, records, part, end);
    let all = intervals(&whole);
    let (mut left, mut schedule) = (part, whole);
    // BOUND: each turn halves the core, down to a nanosecond: 64 turns.
    while intervals(&schedule) > INTERVALS_MAX && left.core.length() > Duration::from_ns(1) {
        left = left.last_half();
        schedule = read(system, records, left, end);
    }
    if left.core != part.core {
        console.warn(format!(
            "a picture may have at most {INTERVALS_MAX} intervals, and all {} would have {all}: it shows the last {}; \
             --trace writes everything",
            units::text(part.core.length()),
            units::text(left.core.length())
        ));
    }
    schedule
}

/// Draws a schedule into a file, and returns the path.
fn write_picture(
    file: ResultFile,
    system: &System,
    schedule: &Schedule,
    form: Form<'_>,
    console: &Console,
) -> Result<PathBuf, Exit> {
    let picture = picture(system, schedule, form);
    file.write(|out| Ok(out.write_all(picture.as_bytes())?), console)
}

/// The picture of a schedule. What is short is merged as far as [`PARTS_MAX`] asks for it, but nothing longer than
/// eight units: rather than show states that did not happen, a picture has more parts.
fn picture(system: &System, schedule: &Schedule, form: Form<'_>) -> String {
    let level = svg::level(system, &[schedule], form.by, form.width, PARTS_MAX).min(Level::FINE);
    svg::draw(system, schedule, Form { level, ..form })
}

/// The part of a task's name that any file may have.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    name.chars().take(NAME_MAX).map(|c| if is_plain(c) { c } else { '_' }).collect()
}

/// The time around the job with the least slack; everything if no job was complete.
fn tightest(system: &System, records: &[Record]) -> Part {
    let jobs = system.tasks().iter().zip(worst_jobs(system, records)).filter_map(|(task, job)| {
        let job = job?;
        Some((i128::from(task.deadline.as_ns()) - i128::from(job.length().as_ns()), job))
    });
    let least = jobs.min_by_key(|&(slack, _)| slack);
    least.map_or_else(|| Part::exactly(Window::of(records)), |(_, job)| Part::job(job))
}

/// The time of the job of this number.
fn around(system: &System, records: &[Record], task: TaskId, number: usize, console: &Console) -> Result<Window, Exit> {
    let jobs = jobs(records, task);
    if let Some(job) = jobs.get(number - 1) {
        return Ok(*job);
    }
    console.error(
        format!("there is no job {number} of `{}` in this schedule", tame(&system.task(task).name)),
        &match jobs.len() {
            0 => "no job of it arrived; use a longer --for".to_owned(),
            1 => "its only job is 1; use a longer --for for more".to_owned(),
            last => format!("its jobs are 1 to {last}; use a longer --for for more"),
        },
    );
    Err(Exit::BadInput)
}

/// The file of one of several protocols: `out-pip.svg` for `out.svg`.
pub(crate) fn beside(path: &Path, word: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}-{word}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{word}"),
    };
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::format::parse_system;
    use lockwright_sim::{Config, Simulation};
    use std::fmt::Write;

    /// The bars that show execution: CPU, begin and end in the units of the picture.
    fn executing(picture: &str) -> Vec<(usize, f64, f64)> {
        let tree = roxmltree::Document::parse(picture).expect("valid XML");
        let bar = |node: roxmltree::Node<'_, '_>| {
            let told = node.first_element_child()?.text()?;
            let (_, cpu) = told.split_once(" on CPU ").filter(|_| told.starts_with("executes"))?;
            let cpu = cpu.split(' ').next()?.parse().ok()?;
            let number = |name| node.attribute(name)?.parse::<f64>().ok();
            Some((cpu, number("x")?, number("x")? + number("width")?))
        };
        tree.descendants().filter_map(bar).collect()
    }

    /// However dense a schedule is, its picture shows about one execution at a time on each CPU.
    #[test]
    fn dense_pictures_show_one_execution_at_a_time() {
        let mut text = "[platform]\ncpus = 2\npriorities = \"rate-monotonic\"\n".to_owned();
        for task in 0..60 {
            let (cpu, period) = (task % 2, 20_000 + 2_310 * task);
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "[[task]]\nname = \"t{task}\"\ncpu = {cpu}\nperiod = \"{period} us\"\nwcet = \"{} us\"\n",
                period / 32
            );
        }
        let system = parse_system(&text).expect("valid");
        let mut simulation = Simulation::new(&system, &Config::default(), Vec::new());
        simulation.run_until(Instant::from_ns(2_000_000_000));
        let records = simulation.into_tracer();
        let window = Window { from: Instant::ZERO, until: Instant::from_ns(2_000_000_000) };
        let schedule = Schedule::read(&system, &records, window);
        let intervals = intervals(&schedule);
        assert!((2 * PARTS_MAX..INTERVALS_MAX).contains(&intervals), "{intervals}");
        let form = Form { title: "dense", by: By::Task, place: Place::File, width: svg::WIDTH, level: Level::FINEST };
        let bars = executing(&picture(&system, &schedule, form));
        assert!(bars.len() > 200, "{}", bars.len());
        let mut longest = (0.0, None);
        for (place, one) in bars.iter().enumerate() {
            for other in bars[..place].iter().filter(|other| other.0 == one.0) {
                let overlap = one.2.min(other.2) - one.1.max(other.1);
                if overlap > longest.0 {
                    longest = (overlap, Some((*one, *other)));
                }
            }
        }
        // Parts longer than eight units are kept apart.
        assert!(longest.0 <= 8.0, "{longest:?}");
    }

    #[test]
    fn each_protocol_has_its_own_file() {
        assert_eq!(beside(Path::new("a/out.pftrace"), "pip"), Path::new("a/out-pip.pftrace"));
        assert_eq!(beside(Path::new("out"), "pip"), Path::new("out-pip"));
    }
}
