//! The file that is written: chunks, from front to back.

use crate::clock;
use lockwright_record::file::format::{
    CHUNK_ALIGN, CHUNK_HEADER, CHUNK_MAGIC, FILE_NAME, HEADER, MAGIC, STAMPS_ARE_CYCLES, VERSION, chunk,
};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

/// Opens the file in a folder. Returns `None` if another process writes it: a child of the recorded program that
/// executes a program is not recorded. The recorded process itself may execute another program, which is then recorded
/// instead.
pub(crate) fn open(folder: &Path) -> io::Result<Option<File>> {
    let path = folder.join(FILE_NAME);
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    match options.clone().create_new(true).open(&path) {
        Ok(file) => return Ok(Some(file)),
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Err(_) => {}
    }
    let mut file = options.open(&path)?;
    let mut header = [0; HEADER];
    if file.read_exact(&mut header).is_err() || header[16..20] != std::process::id().to_le_bytes() {
        return Ok(None);
    }
    file.set_len(0)?;
    drop(file);
    options.open(&path).map(Some)
}

/// Makes a new file in a folder, which is made as well. An earlier recording is removed.
pub(crate) fn replace(folder: &Path) -> io::Result<File> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(FILE_NAME);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

/// The file of a recording.
pub(crate) struct Output {
    file: File,
    has_failed: bool,
}

impl Output {
    /// Begins the file.
    pub(crate) fn begin(file: File, is_cycles: bool, start: [u64; 3]) -> Self {
        let mut output = Self { file, has_failed: false };
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&if is_cycles { STAMPS_ARE_CYCLES } else { 0 }.to_le_bytes());
        header[16..20].copy_from_slice(&std::process::id().to_le_bytes());
        header[24..32].copy_from_slice(&start[0].to_le_bytes());
        header[32..40].copy_from_slice(&start[1].to_le_bytes());
        output.write(&mut [IoSlice::new(&header)]);
        output.moment(start);
        output
    }

    /// The descriptor of the file.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Writes a chunk.
    pub(crate) fn chunk(&mut self, kind: u32, argument: u32, contents: &[u8]) {
        let mut header = [0; CHUNK_HEADER];
        let fields = [CHUNK_MAGIC, kind, argument, contents.len() as u32];
        for (place, field) in header.chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let padding = [0; CHUNK_ALIGN];
        let padded = &padding[..contents.len().next_multiple_of(CHUNK_ALIGN) - contents.len()];
        self.write(&mut [IoSlice::new(&header), IoSlice::new(contents), IoSlice::new(padded)]);
    }

    /// Writes a moment by all clocks.
    pub(crate) fn moment(&mut self, moment: [u64; 3]) {
        let mut contents = [0; 24];
        for (place, time) in contents.chunks_exact_mut(8).zip(moment) {
            place.copy_from_slice(&time.to_le_bytes());
        }
        self.chunk(chunk::CLOCK, 0, &contents);
    }

    /// Writes all slices. After an error nothing more is written: what is there remains valid.
    fn write(&mut self, mut slices: &mut [IoSlice<'_>]) {
        // BOUND: the slices; each round writes some bytes.
        while !self.has_failed && slices.iter().any(|slice| !slice.is_empty()) {
            match self.file.write_vectored(slices) {
                Ok(written) if written > 0 => IoSlice::advance_slices(&mut slices, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                failed => {
                    let reason = failed.err().map_or_else(|| "no room".to_owned(), |error| error.to_string());
                    eprintln!("lockwright: the recording ends here: {reason}");
                    self.has_failed = true;
                }
            }
        }
    }

    /// Ends the file, with the number of threads for which there was no ring.
    pub(crate) fn end(&mut self, without_ring: u32) {
        self.moment(clock::moment());
        self.chunk(chunk::END, without_ring, &clock::now_ns(libc::CLOCK_MONOTONIC).to_le_bytes());
    }
}
