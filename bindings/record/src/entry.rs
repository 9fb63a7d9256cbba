//! Entries of functions: each passes the return address of its call as one more argument, the *site*.

/// Defines exported functions. Each one jumps to a function of this library, with the site in the register of the
/// argument behind its own arguments. A jump leaves no frame, so threads can be cancelled and unwound through it.
macro_rules! entries {
    ($($register:literal $name:ident = $function:path;)*) => {$(
        #[doc = concat!("As in the C library: `", stringify!($name), "`.")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name() {
            std::arch::naked_asm!(
                concat!("mov ", $register, ", qword ptr [rsp]"),
                "jmp {function}",
                function = sym $function,
            )
        }
    )*};
}

/// The same for functions with six arguments: the site is on the stack.
macro_rules! entries_of_six {
    ($($name:ident = $function:path;)*) => {$(
        #[doc = concat!("As in the C library: `", stringify!($name), "`.")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name() {
            std::arch::naked_asm!(
                ".cfi_startproc",
                "push qword ptr [rsp]",
                ".cfi_adjust_cfa_offset 8",
                "call {function}",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "ret",
                ".cfi_endproc",
                function = sym $function,
            )
        }
    )*};
}

/// The same for functions with seven arguments: the seventh one and the site are on the stack, which is aligned.
macro_rules! entries_of_seven {
    ($($name:ident = $function:path;)*) => {$(
        #[doc = concat!("As in the C library: `", stringify!($name), "`.")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name() {
            std::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "push qword ptr [rsp + 8]",
                ".cfi_adjust_cfa_offset 8",
                "push qword ptr [rsp + 24]",
                ".cfi_adjust_cfa_offset 8",
                "call {function}",
                "add rsp, 24",
                ".cfi_adjust_cfa_offset -24",
                "ret",
                ".cfi_endproc",
                function = sym $function,
            )
        }
    )*};
}

pub(crate) use {entries, entries_of_seven, entries_of_six};
