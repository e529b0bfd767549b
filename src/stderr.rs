//! Standard error. It may be full or closed: then what would be said there is lost, and nothing else.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Says a line. `eprintln!` would panic where it cannot.
pub(crate) fn say(line: &str) {
    // At once, so that lines of several threads stay lines.
    let _ = std::io::stderr().lock().write_all(format!("{}\n", line.trim_end()).as_bytes());
}

/// Says what the user should know, once a process for each such message.
pub(crate) fn warn(message: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let is_new = SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(message.to_owned());
    if is_new {
        say(&format!("lazuli: {message}"));
    }
}
