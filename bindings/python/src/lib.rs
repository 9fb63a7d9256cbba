//! The compiled part of the Python package `lockwright`: the reader of task-set files, the generators, and the
//! command line.
//!
//! The Python part builds everything else on these functions, so a result in Python is the one that `--json`
//! prints.

use lockwright_model::System;
use lockwright_model::format::{Diagnostic, Placing, parse_placed_bytes, write_system};
use lockwright_study::generators::{ConvolutionalFixedSum, Philox};
use lockwright_study::plan::parse_generator;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Time between two looks for signals.
const SIGNALS: Duration = Duration::from_millis(50);
/// The longest wait for a command that was stopped.
const ENDING: Duration = Duration::from_secs(2);

/// Vectors that are drawn between two looks for signals.
const CHUNK: u64 = 1_000;

/// A fault of a file: message, help, line and column. Lines and columns begin at 1.
type Fault = (String, Option<String>, Option<usize>, Option<usize>);

/// Executes a command line with `input` as standard input, and returns its exit status, its output and its messages.
/// The interpreter may execute other threads meanwhile. A signal whose handler raises, such as Ctrl-C, stops the
/// command.
#[pyfunction]
fn call(py: Python<'_>, arguments: Vec<OsString>, input: Vec<u8>) -> PyResult<(u8, String, String)> {
    let stop = Arc::new(AtomicBool::new(false));
    let (send, mut receive) = channel();
    std::thread::Builder::new().name("lockwright".into()).spawn({
        let stop = Arc::clone(&stop);
        // The other end is gone after a signal.
        move || drop(send.send(lockwright_cli::call(&arguments, input, stop)))
    })?;
    loop {
        let received;
        (receive, received) = py.detach(move || {
            let received = receive.recv_timeout(SIGNALS);
            (receive, received)
        });
        match received {
            Ok(called) => return Ok((called.exit as u8, called.written.out, called.written.err)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the command ended without a result"));
            }
        }
        if let Err(raised) = py.check_signals() {
            // ORDERING: Relaxed: a flag alone, it publishes nothing.
            stop.store(true, Ordering::Relaxed);
            // The command may still write files, which the caller is about to remove.
            let _ = py.detach(move || receive.recv_timeout(ENDING));
            return Err(raised);
        }
    }
}

/// Executes the command line of this process, and returns its exit status. `again` begins a command that executes
/// another one.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>, again: Vec<OsString>) -> u8 {
    py.detach(|| lockwright_cli::command(&arguments, &again)) as u8
}

/// Reads a task-set file. Returns the system, or the faults of the file.
#[pyfunction]
fn parse<'py>(py: Python<'py>, source: &[u8]) -> PyResult<(Option<Bound<'py, PyDict>>, Vec<Fault>)> {
    match py.detach(|| parse_placed_bytes(source, Placing::Caller)) {
        Ok(placed) => Ok((Some(described(py, &placed.system)?), Vec::new())),
        Err(faults) => {
            let text = String::from_utf8_lossy(source);
            Ok((None, faults.iter().map(|fault| located(fault, &text)).collect()))
        }
    }
}

fn located(fault: &Diagnostic, source: &str) -> Fault {
    let (line, column) = fault.line_column(source).unzip();
    (fault.message.clone(), fault.help.clone(), line, column)
}

/// The system as nested dictionaries. Times are in nanoseconds.
fn described<'py>(py: Python<'py>, system: &System) -> PyResult<Bound<'py, PyDict>> {
    let tasks = system.tasks().iter().map(|task| {
        let fields = PyDict::new(py);
        fields.set_item("name", &task.name)?;
        fields.set_item("cpu", task.cpu.index())?;
        fields.set_item("priority", task.priority.level())?;
        fields.set_item("period_ns", task.period.as_ns())?;
        fields.set_item("deadline_ns", task.deadline.as_ns())?;
        fields.set_item("jitter_ns", task.jitter.as_ns())?;
        fields.set_item("offset_ns", task.offset.as_ns())?;
        fields.set_item("wcet_ns", task.wcet.as_ns())?;
        Ok(fields)
    });
    let system_fields = PyDict::new(py);
    system_fields.set_item("name", system.name())?;
    system_fields.set_item("cpus", system.cpus())?;
    system_fields.set_item("scheduler", system.scheduler().to_string())?;
    system_fields.set_item("tasks", tasks.collect::<PyResult<Vec<_>>>()?)?;
    let names: Vec<&str> = system.resources().iter().map(|resource| resource.name.as_str()).collect();
    system_fields.set_item("resources", names)?;
    Ok(system_fields)
}

/// Draws the system with this number by a generator: the tables `[generator]` and `[sections]` of a study file. Returns
/// the text of a task-set file, or faults.
#[pyfunction]
fn draw(py: Python<'_>, generator: &str, seed: u64, sample: u64) -> (Option<String>, Vec<Fault>) {
    py.detach(|| {
        let generator = match parse_generator(generator) {
            Ok(generator) => generator,
            Err(faults) => return (None, faults.iter().map(|fault| located(fault, generator)).collect()),
        };
        match generator.draw(seed, sample) {
            Ok(system) => (Some(write_system(&system)), Vec::new()),
            Err(why) => (None, vec![(why.to_string(), None, None, None)]),
        }
    })
}

/// Draws vectors of numbers within `limits` with the sum `total`. Raises a message if there is none. A signal whose
/// handler raises, such as Ctrl-C, ends it.
#[pyfunction]
fn fixed_sum<'py>(
    py: Python<'py>,
    limits: Vec<(f64, f64)>,
    total: f64,
    count: u64,
    seed: u64,
) -> PyResult<Bound<'py, PyList>> {
    let prepared = py.detach(|| ConvolutionalFixedSum::new(&limits, total));
    let prepared = prepared.map_err(|why| PyValueError::new_err(why.to_string()))?;
    let random = Philox::new(seed, 0);
    let all = PyList::empty(py);
    let mut next = 0;
    // The list grows with what is drawn: a count that no memory holds is no promise of memory.
    while next < count {
        py.check_signals()?;
        let chunk = next..count.min(next + CHUNK);
        next = chunk.end;
        let drawn: Vec<Vec<f64>> =
            py.detach(|| chunk.map(|sample| prepared.draw(&mut random.stream(sample, 0))).collect());
        for vector in drawn {
            all.append(vector)?;
        }
    }
    Ok(all)
}

/// The first words of a stream of random numbers.
#[pyfunction]
fn words(seed: u64, cell: u64, sample: u64, part: u64, count: usize) -> Vec<u64> {
    let mut stream = Philox::new(seed, cell).stream(sample, part);
    (0..count).map(|_| stream.word()).collect()
}

/// The module `lockwright._lockwright`.
#[pymodule]
fn _lockwright(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(call, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(parse, module)?)?;
    module.add_function(wrap_pyfunction!(draw, module)?)?;
    module.add_function(wrap_pyfunction!(fixed_sum, module)?)?;
    module.add_function(wrap_pyfunction!(words, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
