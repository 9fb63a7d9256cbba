//! `completions` and `man`.

use crate::support::{end, lockwright};
use clap::CommandFactory;
use lockwright_cli::args::Cli;

/// The commands that the help lists.
fn commands() -> Vec<String> {
    let command = Cli::command();
    let listed = command.get_subcommands().filter(|command| !command.is_hide_set());
    listed.map(|command| command.get_name().to_owned()).collect()
}

#[test]
fn completions_have_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let ended = end(lockwright().args(["completions", shell]));
        assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{shell}");
        for command in commands() {
            assert!(ended.out.contains(&command), "{shell}: {command}");
        }
    }
    assert_eq!(end(lockwright().args(["completions", "basic"])).status, 2);
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pages = folder.path().join("share/man1");
    assert_eq!(end(lockwright().arg("man").arg(&pages)).status, 0);
    let read = |name: &str| std::fs::read_to_string(pages.join(name));
    for command in commands() {
        let page = read(&format!("lockwright-{command}.1")).expect("is there");
        assert!(page.contains("Exit status:") && page.contains(&format!("lockwright {command}")), "{command}: {page}");
    }
    assert!(read("lockwright.1").is_ok() && read("lockwright-measure-locks.1").is_ok());
    assert!(read("lockwright-man.1").is_err(), "the hidden command has no page");
    let refused = end(lockwright().args(["man", "/proc/pages"]));
    assert!(refused.status == 2 && refused.err.contains("cannot create"), "{}", refused.err);
}
