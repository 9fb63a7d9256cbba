//! Entries of functions: each passes the return address of its call as one more argument, the *site*.

/// Defines an exported function of these instructions. `{function}` in them is a function of this library.
macro_rules! entry {
    ($name:ident = $function:path: $($instruction:expr),+) => {
        #[doc = concat!("As in the C library: `", stringify!($name), "`.")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name() {
            std::arch::naked_asm!($($instruction,)+ function = sym $function)
        }
    };
}

/// Defines exported functions. Each one jumps to a function of this library, with the site in the register of the
/// argument behind its own arguments. A jump leaves no frame, so threads can be cancelled and unwound through it.
macro_rules! entries {
    ($($register:literal $name:ident = $function:path;)*) => {$(
        $crate::entry::entry!(
            $name = $function: concat!("mov ", $register, ", qword ptr [rsp]"), "jmp {function}"
        );
    )*};
}

/// The same for functions with six arguments: the site is on the stack.
macro_rules! entries_of_six {
    ($($name:ident = $function:path;)*) => {$(
        $crate::entry::entry!(
            $name = $function:
            ".cfi_startproc",
            "push qword ptr [rsp]",
            ".cfi_adjust_cfa_offset 8",
            "call {function}",
            "add rsp, 8",
            ".cfi_adjust_cfa_offset -8",
            "ret",
            ".cfi_endproc"
        );
    )*};
}

/// The same for functions with seven arguments: the seventh one and the site are on the stack.
macro_rules! entries_of_seven {
    ($($name:ident = $function:path;)*) => {$(
        $crate::entry::entry!(
            $name = $function:
            ".cfi_startproc",
            $crate::entry::call_with_seventh!("{function}"),
            ".cfi_endproc"
        );
    )*};
}

/// The instructions that call a function with the seventh argument and the site on the stack, which they align, and
/// then return.
macro_rules! call_with_seventh {
    ($function:literal) => {
        concat!(
            "sub rsp, 8\n",
            ".cfi_adjust_cfa_offset 8\n",
            "push qword ptr [rsp + 8]\n",
            ".cfi_adjust_cfa_offset 8\n",
            "push qword ptr [rsp + 24]\n",
            ".cfi_adjust_cfa_offset 8\n",
            "call ",
            $function,
            "\n",
            "add rsp, 24\n",
            ".cfi_adjust_cfa_offset -24\n",
            "ret",
        )
    };
}

pub(crate) use {call_with_seventh, entries, entries_of_seven, entries_of_six, entry};
