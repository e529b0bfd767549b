//! The processor that kernels of the CPU are for.

use std::fs;
use std::io::{self, BufRead};

/// The processor's model in words.
pub(crate) fn model() -> String {
    let file = fs::File::open("/proc/cpuinfo");
    let model = file.and_then(|file| describe(io::BufReader::new(file))).map(|(model, _)| model);
    model.ok().filter(|model| !model.is_empty()).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// The processor that `-march=native` means, if the system says: its model in words, and its features.
pub(super) fn described() -> Option<(String, String)> {
    let (model, features) =
        fs::File::open("/proc/cpuinfo").and_then(|file| describe(io::BufReader::new(file))).ok()?;
    (!features.is_empty()).then_some((model, features))
}

/// Model and features out of the first processor's lines of `/proc/cpuinfo`. No more is read: the system
/// asks every core for its frequency to write the rest.
fn describe(cpuinfo: impl BufRead) -> io::Result<(String, String)> {
    let (mut model, mut features) = (String::new(), String::new());
    for line in cpuinfo.take(1 << 16).lines() {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else {
            if line.trim().is_empty() && !features.is_empty() {
                break;
            }
            continue;
        };
        match name.trim() {
            "model name" => model = value.trim().to_owned(),
            "vendor_id" | "cpu family" | "model" | "stepping" | "flags" | "Features" | "CPU implementer"
            | "CPU architecture" | "CPU variant" | "CPU part" | "isa" | "cpu" => {
                features.push_str(&line);
                features.push('\n');
            }
            _ => {}
        }
    }
    Ok((model, features))
}

/// Whether a target triple's first part is the architecture of this program.
pub(super) fn is_this_architecture(machine: &str) -> bool {
    let architecture = machine.split('-').next().unwrap_or_default();
    match std::env::consts::ARCH {
        "x86" => matches!(architecture, "i386" | "i486" | "i586" | "i686" | "x86"),
        "x86_64" => matches!(architecture, "x86_64" | "amd64"),
        "aarch64" => matches!(architecture, "aarch64" | "arm64"),
        // Triples of the others begin with the name, and go on with a variant.
        other => architecture.starts_with(other.trim_end_matches("64")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_processor_is_read_without_what_changes_from_run_to_run() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Fast CPU\ncpu MHz\t\t: 2100.0\nflags\t\t: sse avx\n\n\
                       processor\t: 1\nflags\t\t: other\n";
        let (model, features) = describe(cpuinfo.as_bytes()).unwrap();
        assert_eq!((model.as_str(), features.as_str()), ("Fast CPU", "flags\t\t: sse avx\n"));
    }

    #[test]
    fn foreign_architectures_are_told_apart() {
        assert!(is_this_architecture(&format!("{}-linux-gnu", std::env::consts::ARCH)));
        assert!(!is_this_architecture("m68k-linux-gnu"));
        assert!(!is_this_architecture(""));
    }
}
