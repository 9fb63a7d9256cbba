//! Names of addresses, from the files that were mapped into the program.

use crate::recording::Recording;
use addr2line::Loader;
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Names sites and objects. `maps` are texts of `/proc/self/maps` from different times of the run; what was mapped
/// last counts. An address that no file explains stays without a name.
pub(crate) fn resolve(recording: &mut Recording, maps: &[String]) {
    let modules = modules(maps);
    let find = |address: u64| modules.iter().find(|module| (module.begin..module.end).contains(&address));
    let mut codes: BTreeMap<u64, Option<Loader>> = BTreeMap::new();
    for site in &mut recording.sites {
        let Some(module) = find(site.address) else { continue };
        let code = codes.entry(module.begin).or_insert_with(|| Loader::new(&module.path).ok());
        // The address behind a call may be the first one of the next line.
        let within = site.address.wrapping_sub(module.bias).wrapping_sub(1);
        site.name = code.as_ref().and_then(|code| name_of_code(code, within));
    }
    let mut variables: BTreeMap<u64, Vec<Variable>> = BTreeMap::new();
    for object in &mut recording.objects {
        let Some(module) = find(object.address) else { continue };
        let known = variables.entry(module.begin).or_insert_with(|| variables_of(&module.path));
        object.symbol = name_of_variable(known, object.address.wrapping_sub(module.bias));
    }
}

/// A mapped file: the addresses that it occupies, and what they have more than the addresses in the file.
struct Module {
    path: String,
    begin: u64,
    end: u64,
    bias: u64,
}

fn modules(maps: &[String]) -> Vec<Module> {
    let mut modules: Vec<Module> = Vec::new();
    let mut others = BTreeSet::new();
    // The last text first, so that it wins.
    for line in maps.iter().rev().flat_map(|text| text.lines()) {
        let Some((start, offset, path)) = mapping(line) else { continue };
        let is_known = modules.iter().any(|module| module.path == path && (module.begin..module.end).contains(&start));
        if is_known || others.contains(path) {
            continue;
        }
        match program_file(path).and_then(|bytes| module(&bytes, path, start, offset)) {
            Some(module) => modules.push(module),
            None => _ = others.insert(path),
        }
    }
    modules
}

/// The first address, the offset in the file and the path of a line `55e0-55e4 r-xp 00002000 fe:00 1234   /usr/bin/x`.
fn mapping(line: &str) -> Option<(u64, u64, &str)> {
    let path = &line[line.find('/')?..];
    let mut fields = line.split_ascii_whitespace();
    let (start, _) = fields.next()?.split_once('-')?;
    let offset = fields.nth(1)?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(offset, 16).ok()?, path))
}

/// Reads a file if it is a program or a library. Programs map other things as well: reading a device can block or have
/// an effect, and databases are large.
fn program_file(path: &str) -> Option<Vec<u8>> {
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut file = File::open(path).ok()?;
    let mut bytes = vec![0; object::elf::ELFMAG.len()];
    file.read_exact(&mut bytes).ok()?;
    if bytes != object::elf::ELFMAG {
        return None;
    }
    file.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn module(bytes: &[u8], path: &str, start: u64, offset: u64) -> Option<Module> {
    /// Mappings begin at whole pages, and segments need not.
    const PAGE: u64 = 4096;
    let file = object::File::parse(bytes).ok()?;
    let at = file.segments().find_map(|segment| {
        let (begin, length) = segment.file_range();
        let page = begin - begin % PAGE;
        (page..begin + length).contains(&offset).then(|| segment.address().wrapping_sub(begin - offset.min(begin)))
    })?;
    let bias = start.wrapping_sub(at - at % PAGE);
    let first = file.segments().map(|segment| segment.address()).min()?;
    let last = file.segments().map(|segment| segment.address().saturating_add(segment.size())).max()?;
    let (begin, end) = (bias.wrapping_add(first - first % PAGE), bias.wrapping_add(last));
    Some(Module { path: path.to_owned(), begin, end, bias })
}

/// The name of a symbol as the program has it. A variable `c` of a C program is not the mangled type `char` of C++.
fn demangled(symbol: &str) -> String {
    let is_mangled = ["_Z", "_R"].iter().any(|begin| symbol.starts_with(begin));
    if is_mangled { addr2line::demangle_auto(Cow::Borrowed(symbol), None).into_owned() } else { symbol.to_owned() }
}

/// `fetch (sensor.c:41)`, or the parts of it that the file contains.
fn name_of_code(code: &Loader, address: u64) -> Option<String> {
    let mut function = None;
    let mut location = None;
    if let Ok(mut frames) = code.find_frames(address)
        && let Ok(Some(frame)) = frames.next()
    {
        // The innermost function, if the call was inlined.
        function = frame.function.and_then(|function| Some(demangled(&function.raw_name().ok()?)));
        location = frame.location.and_then(|location| Some((location.file?.to_owned(), location.line?)));
    }
    let function = function.or_else(|| code.find_symbol(address).map(demangled));
    let location = location.map(|(file, line)| {
        let name = Path::new(&file).file_name().map_or(file.clone(), |name| name.to_string_lossy().into_owned());
        format!("{name}:{line}")
    });
    match (function, location) {
        (Some(function), Some(location)) => Some(format!("{function} ({location})")),
        (function, location) => function.or(location),
    }
}

/// A variable with a name: its address in the file, and its size.
struct Variable {
    address: u64,
    size: u64,
    name: String,
}

fn variables_of(path: &str) -> Vec<Variable> {
    let Some(bytes) = program_file(path) else { return Vec::new() };
    let Ok(file) = object::File::parse(&*bytes) else { return Vec::new() };
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let data = symbols.filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.size() > 0);
    let variable = |symbol: object::Symbol<'_, '_>| {
        Some(Variable { address: symbol.address(), size: symbol.size(), name: demangled(symbol.name().ok()?) })
    };
    let mut variables: Vec<Variable> = data.filter_map(variable).collect();
    variables.sort_by_key(|variable| variable.address);
    variables
}

/// `buffer_lock`, or `sensor+0x40` within a variable.
fn name_of_variable(variables: &[Variable], address: u64) -> Option<String> {
    let after = variables.partition_point(|variable| variable.address <= address);
    let variable = variables.get(after.checked_sub(1)?)?;
    match address - variable.address {
        0 => Some(variable.name.clone()),
        offset if offset < variable.size => Some(format!("{}+{offset:#x}", variable.name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mangled_names_are_demangled() {
        let names = ["c", "d", "bus", "_ZN5robot3busE", "_ZL4lock", "_RNvC5robot3bus"].map(demangled);
        assert_eq!(names, ["c", "d", "bus", "robot::bus", "lock", "robot::bus"]);
    }
}
