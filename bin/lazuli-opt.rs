//! Reads a graph, its groups or kernels as text, and prints or runs what the compiler makes of it: see `lazuli::opt`.

use std::io::{Read, Write};
use std::process::ExitCode;

use lazuli::opt::Command;

fn main() -> ExitCode {
    match output() {
        Ok(text) => match std::io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(message) => {
            eprintln!("lazuli-opt: {message}");
            ExitCode::FAILURE
        }
    }
}

fn output() -> Result<String, String> {
    let command = Command::parse(std::env::args_os().skip(1))?;
    let text = match command.file() {
        _ if command.is_help() => String::new(),
        Some(file) => std::fs::read_to_string(file)
            .map_err(|error| format!("could not read {}: {error}", file.display()))?,
        None => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|error| format!("could not read the standard input: {error}"))?;
            text
        }
    };
    command.run(&text)
}
