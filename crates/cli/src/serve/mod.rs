//! `lockwright serve`: the page of `simulate`, live.
//!
//! The server is compiled with the feature `serve` only, because it takes long to compile.

#[cfg(feature = "serve")]
mod guard;
#[cfg(feature = "serve")]
mod sections;
#[cfg(feature = "serve")]
mod server;
#[cfg(feature = "serve")]
mod site;
#[cfg(feature = "serve")]
mod work;
#[cfg(feature = "serve")]
mod worker;

#[cfg(feature = "serve")]
pub use server::serve;

/// Refuses: the server is not there.
///
/// # Errors
/// Always; the console has the message.
#[cfg(not(feature = "serve"))]
pub fn serve(
    _: &crate::args::Serve,
    console: &crate::console::Console,
) -> Result<crate::exit::Exit, crate::exit::Exit> {
    let help = "build it with `--features serve`, or install it with `cargo xtask install`";
    console.error("this lockwright was built without the feature `serve`", help);
    Err(crate::exit::Exit::Machine)
}
