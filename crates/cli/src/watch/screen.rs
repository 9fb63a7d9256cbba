//! What is seen, again and again on one screen of a terminal.

use super::{look, tables};
use crate::args::Watch;
use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt;
use crate::json::WatchOutput;
use crate::layout::{Column, Lean};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Row, Table};
use ratatui::{DefaultTerminal, Frame};
use std::io;
use std::time::{Duration, Instant};

/// The shortest time between two looks.
const EVERY_MIN: Duration = Duration::from_millis(20);
/// How often a signal is looked for.
const SIGNAL_EVERY: Duration = Duration::from_millis(100);
/// The widest column of text.
const PROSE_MAX: usize = 44;

/// Shows the process until it ends, the user leaves or a signal comes, and prints the last look.
pub(super) fn show(arguments: &Watch, first: WatchOutput, console: &Console) -> Result<Exit, Exit> {
    let mut last = first;
    interrupt::listen(|| {}, console);
    let every = Duration::from_nanos(arguments.every.as_ns()).max(EVERY_MIN);
    let shown = ratatui::try_init().and_then(|mut terminal| {
        let shown = until_end(&mut terminal, &mut last, every);
        ratatui::restore();
        shown
    });
    let end = shown.map_err(|error| {
        console.error(format!("the terminal cannot be used: {error}"), "give --once");
        Exit::Machine
    })?;
    console.print_text(&tables::text(&last, console))?;
    if end == End::Process {
        console.note(format!("process {} has ended", last.process));
    }
    Ok(if end == End::Interrupted { Exit::Interrupted } else { Exit::Holds })
}

/// Why the screen ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The process has ended.
    Process,
    /// The user leaves.
    Left,
    /// A signal came, or Ctrl-C.
    Interrupted,
}

/// Draws until the process has ended, the user leaves, or a signal comes.
fn until_end(terminal: &mut DefaultTerminal, last: &mut WatchOutput, every: Duration) -> io::Result<End> {
    // BOUND: the life of the process, or the user's patience.
    loop {
        terminal.draw(|frame| draw(frame, last))?;
        let next = Instant::now() + every;
        while let Some(rest) = next.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero()) {
            if interrupt::requested() {
                return Ok(End::Interrupted);
            }
            if event::poll(rest.min(SIGNAL_EVERY))?
                && let Some(end) = left(&event::read()?)
            {
                return Ok(end);
            }
        }
        match look::look(last.process) {
            Ok(now) if now.sets.is_empty() && now.mutexes.is_empty() => return Ok(End::Process),
            Ok(now) => *last = now,
            Err(_) => return Ok(End::Process),
        }
    }
}

/// Whether the user ends the screen. The terminal does not send Ctrl-C as a signal.
fn left(event: &Event) -> Option<End> {
    let key = event.as_key_press_event()?;
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Some(End::Left),
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(End::Interrupted),
        _ => None,
    }
}

/// One screen: a line, and below it the tables, each as high as its rows while there is room.
fn draw(frame: &mut Frame, output: &WatchOutput) {
    let mut parts: Vec<(String, Vec<Column>)> = Vec::new();
    for set in &output.sets {
        parts.push((tables::of_set(set), tables::tasks(&set.tasks)));
        parts.extend(tables::waits(&set.tasks).map(|waits| ("longest waits, and what is held".into(), waits)));
    }
    parts.extend(tables::mutexes(output).map(|mutexes| (tables::of_mutexes(output), mutexes)));
    let height = |columns: &[Column]| columns.first().map_or(0, |first| first.cells.len()) as u16 + 3;
    let heights = parts.iter().map(|(_, columns)| Constraint::Length(height(columns)));
    let places = Layout::vertical([Constraint::Length(1)].into_iter().chain(heights)).split(frame.area());
    let title = Line::from(vec![tables::title(output).bold(), "   q leaves".dim()]);
    frame.render_widget(title, places[0]);
    for ((title, columns), &place) in parts.into_iter().zip(places.iter().skip(1)) {
        part(frame, title, columns, place);
    }
}

fn part(frame: &mut Frame, title: String, columns: Vec<Column>, place: Rect) {
    let [head, below] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(place);
    frame.render_widget(Line::from(title).cyan(), head);
    let columns = fitting(columns, usize::from(place.width));
    let aligned = |column: &Column| match column.lean {
        Lean::Left => Alignment::Left,
        Lean::Right => Alignment::Right,
    };
    let cell = |column: &Column, text: String| Cell::from(Text::from(text).alignment(aligned(column)));
    let heads = Row::new(columns.iter().map(|column| cell(column, column.title.clone()))).style(Style::new().bold());
    let count = columns.first().map_or(0, |first| first.cells.len());
    let rows = (0..count).map(|row| {
        let cells: Vec<Cell> = columns.iter().map(|column| cell(column, column.cells[row].clone())).collect();
        let is_late = columns.iter().any(|column| {
            matches!(column.title.as_str(), "misses" | "above") && !matches!(column.cells[row].as_str(), "0" | "–")
        });
        Row::new(cells).style(if is_late { Style::new().red() } else { Style::new() })
    });
    let widths = columns.iter().map(|column| Constraint::Length(width(column) as u16));
    frame.render_widget(Table::new(rows, widths).header(heads).column_spacing(2), below);
}

fn width(column: &Column) -> usize {
    let cells = column.cells.iter().chain([&column.title]).map(|cell| textwrap::core::display_width(cell));
    cells.max().unwrap_or(0).min(PROSE_MAX)
}

/// The columns that fit a width.
fn fitting(mut columns: Vec<Column>, most: usize) -> Vec<Column> {
    // BOUND: the columns.
    while columns.iter().map(|column| width(column) + 2).sum::<usize>() > most + 2 {
        let Some((_, last)) = columns.iter().enumerate().filter_map(|(at, one)| Some((one.rank()?, at))).max() else {
            break;
        };
        columns.remove(last);
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{WatchedRequest, WatchedResource, WatchedSet, WatchedTask};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::KeyEvent;

    fn output() -> WatchOutput {
        let task = |name: &str, misses, request| WatchedTask {
            name: name.into(),
            thread: Some(7),
            jobs: 100,
            misses,
            deadline_ns: Some(10_000_000),
            bound_ns: Some(4_000_000),
            above_bound: misses,
            mean_ns: 1_000_000,
            p999_ns: Some(2_000_000),
            worst_ns: 2_500_000,
            worst_job: 12,
            present_ns: Some(30_000),
            request,
            histogram: Vec::new(),
            resources: vec![WatchedResource {
                name: "bus".into(),
                sections: 100,
                waits: 3,
                total_wait_ns: 90_000,
                longest_wait_ns: 40_000,
                behind: Some("logging".into()),
                longest_section_ns: 80_000,
                held_ns: (name == "logging").then_some(20_000),
            }],
        };
        let request = WatchedRequest { resource: "bus".into(), since_ns: 15_000, holders: vec!["logging".into()] };
        let tasks = vec![task("control", 1, Some(request)), task("logging", 0, None)];
        WatchOutput {
            verb: WatchOutput::VERB,
            process: 4711,
            program: "robot".into(),
            sets: vec![WatchedSet { name: "tasks".into(), counted_ns: 2_000_000_000, tasks }],
            mutexes: Vec::new(),
            mutexes_left_out: 0,
        }
    }

    fn screen(width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen in memory");
        terminal.draw(|frame| draw(frame, &output())).expect("it can be drawn");
        let buffer = terminal.backend().buffer();
        let cells = buffer.content().chunks(usize::from(width));
        cells.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn one_screen_shows_tasks_bounds_waits_and_holders() {
        let wide = screen(160, 20);
        for part in [
            "process 4711 (robot)",
            "task set tasks, counted for 2 s",
            "waits 15 us for bus, held by logging",
            "in a job for 30 us, holds bus",
            "2.5 ms",
            "████··|·········",
            "4 ms",
            "10 ms",
            "40 us",
        ] {
            assert!(wide.contains(part), "{part}: {wide}");
        }
        // What does not fit is left out, and nothing panics on a tiny screen.
        let narrow = screen(100, 12);
        assert!(narrow.contains("waits 15 us for bus") && !narrow.contains("p99.9"), "{narrow}");
        for (width, height) in [(1, 1), (10, 3), (40, 5)] {
            screen(width, height);
        }
    }

    #[test]
    fn q_and_escape_leave_and_control_c_interrupts() {
        let key = |code, modifiers| left(&Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(key(KeyCode::Char('q'), KeyModifiers::NONE), Some(End::Left));
        assert_eq!(key(KeyCode::Esc, KeyModifiers::NONE), Some(End::Left));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(End::Interrupted));
        assert_eq!([key(KeyCode::Char('c'), KeyModifiers::NONE), left(&Event::Resize(1, 1))], [None; 2]);
    }
}
