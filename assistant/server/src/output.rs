//! What the commands print: results on stdout, everything else on stderr.

use std::io::{self, Write as _};

/// Prints a result on stdout.
///
/// # Errors
/// When stdout is closed.
pub fn result(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Tells the person at the terminal something. A closed stderr is no reason to stop.
pub fn note(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}
