//! The command `lockwright`.

fn main() -> std::process::ExitCode {
    lockwright_cli::main()
}
