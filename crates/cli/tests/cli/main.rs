//! The binary as a user meets it: small files in, streams and exit statuses out.

mod check;
mod machine;
mod schema;
mod simulate;
mod streams;
mod support;
