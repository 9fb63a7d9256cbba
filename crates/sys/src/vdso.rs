//! Functions of the vDSO, the library that the kernel maps into each process.
//!
//! They are found without the loader, whose lock another thread may hold.

use elf::abi::{DT_GNU_HASH, DT_HASH, DT_STRTAB, DT_SYMTAB, PT_DYNAMIC, PT_LOAD, SHN_UNDEF};
use elf::dynamic::DynamicTable;
use elf::endian::NativeEndian;
use elf::file::{Class, ELF64_EHDR_TAILSIZE, FileHeader, parse_ident};
use elf::hash::{GnuHashTable, SysVHashTable};
use elf::segment::SegmentTable;
use elf::string_table::StringTable;
use elf::symbol::SymbolTable;

/// The least size of a page. The kernel maps whole pages, and the headers are on the first one.
const PAGE: usize = 4096;

/// Returns the address of a function of the vDSO, if the kernel has one of this name.
#[cfg(target_pointer_width = "64")]
pub(crate) fn function(name: &str) -> Option<*const ()> {
    // SAFETY: the call takes an integer.
    let base = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
    if base == 0 {
        return None;
    }
    let base: *const u8 = std::ptr::with_exposed_provenance(base);
    // SAFETY: the kernel gave the process this address of at least one page, which stays mapped and does not change.
    let first = unsafe { std::slice::from_raw_parts(base, PAGE) };
    let loaded = segments(first)?.iter().find(|segment| segment.p_type == PT_LOAD && segment.p_offset == 0)?;
    // SAFETY: the kernel has mapped this segment to this address. It is a part of the library's code, which is
    // constant.
    let image = unsafe { std::slice::from_raw_parts(base, usize::try_from(loaded.p_filesz).ok()?) };
    Some(base.wrapping_add(place_of(image, loaded.p_vaddr, name)?).cast())
}

/// Returns `None`: only the format for 64 bits is read.
#[cfg(not(target_pointer_width = "64"))]
pub(crate) fn function(_: &str) -> Option<*const ()> {
    None
}

fn segments(image: &[u8]) -> Option<SegmentTable<'_, NativeEndian>> {
    let (ident, tail) = image.split_at_checked(elf::abi::EI_NIDENT)?;
    let header: FileHeader<NativeEndian> =
        FileHeader::parse_tail(parse_ident(ident).ok()?, tail.get(..ELF64_EHDR_TAILSIZE)?).ok()?;
    let begin = usize::try_from(header.e_phoff).ok()?;
    let size = usize::from(header.e_phentsize) * usize::from(header.e_phnum);
    Some(SegmentTable::new(NativeEndian, Class::ELF64, image.get(begin..begin.checked_add(size)?)?))
}

/// Returns the distance of a function from the beginning of the image, which was linked for the address `linked_at`.
fn place_of(image: &[u8], linked_at: u64, name: &str) -> Option<usize> {
    let from = |address: u64| image.get(usize::try_from(address.checked_sub(linked_at)?).ok()?..);
    let dynamic = segments(image)?.iter().find(|segment| segment.p_type == PT_DYNAMIC)?;
    let dynamic = DynamicTable::new(NativeEndian, Class::ELF64, from(dynamic.p_vaddr)?);
    let table = |tag: i64| {
        // The list ends with an entry of type 0.
        let mut entries = dynamic.iter().take_while(|entry| entry.d_tag != elf::abi::DT_NULL);
        from(entries.find(|entry| entry.d_tag == tag)?.d_ptr())
    };
    let names = StringTable::new(table(DT_STRTAB)?);
    let symbols = SymbolTable::new(NativeEndian, Class::ELF64, table(DT_SYMTAB)?);
    let found = match (table(DT_GNU_HASH), table(DT_HASH)) {
        (Some(hash), _) => {
            GnuHashTable::new(NativeEndian, Class::ELF64, hash).ok()?.find(name.as_bytes(), &symbols, &names)
        }
        (_, Some(hash)) => {
            SysVHashTable::new(NativeEndian, Class::ELF64, hash).ok()?.find(name.as_bytes(), &symbols, &names)
        }
        _ => return None,
    };
    let (_, symbol) = found.ok()??;
    let is_defined = symbol.st_shndx != SHN_UNDEF;
    is_defined.then(|| usize::try_from(symbol.st_value.checked_sub(linked_at)?).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The C library finds the same functions by its loader.
    #[test]
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    fn functions_of_the_kernel_are_found() {
        // SAFETY: the names are constant strings, and the library is mapped for as long as the process lives.
        let asked = |name: &std::ffi::CStr| unsafe {
            let library = libc::dlopen(c"linux-vdso.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            assert!(!library.is_null(), "the loader does not know the vDSO");
            libc::dlsym(library, name.as_ptr()).addr()
        };
        for name in [c"__vdso_clock_gettime", c"__vdso_getcpu", c"__vdso_futex_robust_list64_try_unlock"] {
            let found = function(name.to_str().expect("ASCII"));
            assert_eq!(found.map_or(0, <*const ()>::addr), asked(name), "{name:?}");
        }
        assert!(function("__vdso_clock_gettime").is_some());
        assert_eq!(function("__vdso_nothing"), None);
    }

    #[test]
    fn what_is_no_library_has_no_functions() {
        assert_eq!(place_of(&[], 0, "name"), None);
        assert_eq!(place_of(&[0; 4096], 0, "name"), None);
    }
}
