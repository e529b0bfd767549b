//! The system's C compiler: which one, with what flags, and one kernel through it.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Arithmetic must be what the text says, operation by operation, NaN, infinities and signed zeros included;
/// traps and `errno` alone are given up. Nothing here may set flush-to-zero for the process, as `-ffast-math`
/// does.
const FLAGS: [&str; 13] = [
    "-std=gnu11",
    "-O3",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fopenmp-simd",
    "-fwrapv",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fPIC",
    "-shared",
    "-pipe",
    "-w",
];
/// For this processor. Left out once a compiler was seen to refuse it.
const NATIVE: &str = "-march=native";
const LIBRARIES: [&str; 1] = ["-lm"];

/// Compiles where a kernel does not: it tells a refused flag from a refused kernel.
const PROBE: &str = "int lazuli_probe(void) { return 0; }\n";

/// A C compiler that answers.
#[derive(Debug)]
pub(crate) struct Compiler {
    /// The program, and arguments that come before all others: `$CC` may name a wrapper.
    command: Vec<String>,
    /// The first line of what it says of itself.
    version: String,
    identity: String,
    /// Whether [`NATIVE`] is, as far as is known, accepted.
    native: AtomicBool,
}

/// One run of the compiler.
enum Outcome {
    Library(Vec<u8>),
    /// Its messages.
    Refused(String),
}

impl Compiler {
    /// The compiler of this process, looked for once: `$LAZULI_CC`, `$CC`, `cc`, `gcc`, `clang`.
    pub(crate) fn get() -> Result<&'static Compiler> {
        static COMPILER: OnceLock<Result<Compiler>> = OnceLock::new();
        COMPILER
            .get_or_init(|| Compiler::find(&|name| std::env::var(name).ok()))
            .as_ref()
            .map_err(Error::clone)
    }

    /// As [`Compiler::get`], with the environment as a function.
    pub(super) fn find(environment: &dyn Fn(&str) -> Option<String>) -> Result<Compiler> {
        let variable = |name| environment(name).filter(|value| !value.trim().is_empty());
        // Who names a compiler for Lazuli wants that one. `$CC` is meant for others too, and may not suit.
        let candidates = match variable("LAZULI_CC") {
            Some(chosen) => vec![chosen],
            None => variable("CC").into_iter().chain(["cc", "gcc", "clang"].map(str::to_owned)).collect(),
        };
        let mut reasons = Vec::new();
        for candidate in &candidates {
            match Compiler::try_candidate(candidate) {
                Ok(compiler) => return Ok(compiler),
                Err(reason) => reasons.push(format!("{candidate}: {reason}")),
            }
        }
        Err(Error::Unavailable {
            what: "a C compiler".into(),
            reason: reasons.join("; "),
            hint: "Install gcc or clang, or set LAZULI_CC to a C compiler. Device::interpreter() needs none"
                .into(),
        })
    }

    fn try_candidate(candidate: &str) -> Result<Compiler, String> {
        let mut command: Vec<String> = candidate.split_whitespace().map(str::to_owned).collect();
        let Some(program) = command.first_mut() else { return Err("no program is named".into()) };
        *program = resolve(program).ok_or("not found")?;
        let ask = |question: &str| match run(&command, [question], Path::new("/")) {
            Ok((true, answer)) => Ok(answer.lines().next().unwrap_or_default().trim().to_owned()),
            Ok((false, log)) => Err(format!("`{question}` failed: {}", log.trim())),
            Err(error) => Err(error.to_string()),
        };
        let version = ask("--version")?;
        // A cross compiler's libraries could not be loaded.
        if let Ok(machine) = ask("-dumpmachine")
            && !is_this_architecture(&machine)
        {
            return Err(format!("it compiles for {machine}"));
        }
        let words = command.iter().map(String::as_str);
        let words: Vec<&str> = words.chain(FLAGS).chain([NATIVE]).chain(LIBRARIES).collect();
        let identity = format!("{version} | {} | {}", words.join(" "), processor(&command));
        Ok(Compiler { command, version, identity, native: AtomicBool::new(true) })
    }

    /// What a compiled library depends on besides the source: program, version, flags and processor. For
    /// the keys of caches, which machines may share.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// The bytes of a shared library.
    pub(crate) fn compile(&self, kernel_name: &str, source: &str) -> Result<Vec<u8>> {
        let failed = |error: io::Error| Error::Io {
            action: "compile in",
            path: std::env::temp_dir().display().to_string(),
            message: error.to_string(),
        };
        let native = self.native.load(Ordering::Relaxed);
        let mut outcome = self.attempt(source, native).map_err(failed)?;
        if native && matches!(outcome, Outcome::Refused(_)) && self.refuses_native().map_err(failed)? {
            self.native.store(false, Ordering::Relaxed);
            outcome = self.attempt(source, false).map_err(failed)?;
        }
        match outcome {
            Outcome::Library(library) => Ok(library),
            Outcome::Refused(log) => Err(Error::Compilation {
                kernel: kernel_name.to_owned(),
                compiler: format!("{} ({})", self.command.join(" "), self.version),
                log,
                source_text: source.into(),
            }),
        }
    }

    /// Whether the flag is refused, rather than a text.
    fn refuses_native(&self) -> io::Result<bool> {
        Ok(matches!(self.attempt(PROBE, true)?, Outcome::Refused(_))
            && matches!(self.attempt(PROBE, false)?, Outcome::Library(_)))
    }

    fn attempt(&self, source: &str, native: bool) -> io::Result<Outcome> {
        let folder = tempfile::Builder::new().prefix("lazuli-cc-").tempdir()?;
        fs::write(folder.path().join("kernel.c"), source)?;
        let flags = FLAGS.into_iter().chain(native.then_some(NATIVE));
        let files = ["kernel.c", "-o", "kernel.so"];
        let (success, log) = run(&self.command, flags.chain(files).chain(LIBRARIES), folder.path())?;
        if !success {
            return Ok(Outcome::Refused(log));
        }
        fs::read(folder.path().join("kernel.so")).map(Outcome::Library)
    }
}

/// Whether it succeeded, and all that it printed.
fn run(
    command: &[String],
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    folder: &Path,
) -> io::Result<(bool, String)> {
    let Some((program, first)) = command.split_first() else { return Err(io::ErrorKind::NotFound.into()) };
    let output = Command::new(program)
        .args(first)
        .args(arguments)
        .current_dir(folder)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()?;
    let text = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

/// The absolute path of a program. It is run from other folders, and two compilers of one name differ.
fn resolve(program: &str) -> Option<String> {
    let is_file = |path: &PathBuf| path.is_file();
    let path = if program.contains(std::path::is_separator) {
        std::path::absolute(program).ok().filter(is_file)
    } else {
        let name = format!("{program}{}", std::env::consts::EXE_SUFFIX);
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders)
            .filter_map(|folder| std::path::absolute(folder.join(&name)).ok())
            .find(is_file)
    };
    path?.into_os_string().into_string().ok()
}

/// Whether a target triple's first part is the architecture of this program.
fn is_this_architecture(machine: &str) -> bool {
    let architecture = machine.split('-').next().unwrap_or_default();
    match std::env::consts::ARCH {
        "x86" => matches!(architecture, "i386" | "i486" | "i586" | "i686" | "x86"),
        "x86_64" => matches!(architecture, "x86_64" | "amd64"),
        "aarch64" => matches!(architecture, "aarch64" | "arm64"),
        // Triples of the others begin with the name, and go on with a variant.
        other => architecture.starts_with(other.trim_end_matches("64")),
    }
}

/// The processor that `-march=native` means: its model in words, and a hash of its features.
fn processor(command: &[String]) -> String {
    let described = fs::File::open("/proc/cpuinfo").and_then(|file| describe(io::BufReader::new(file)));
    if let Ok((model, features)) = described
        && !features.is_empty()
    {
        return format!("{model} {}", short_hash(&features));
    }
    // Elsewhere the compiler itself knows what it would use.
    let macros = run(command, [NATIVE, "-dM", "-E", "-x", "c", "/dev/null"], Path::new("/"));
    let macros = macros.map(|(_, text)| text).unwrap_or_default();
    format!("{} {}", std::env::consts::ARCH, short_hash(&macros))
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

fn short_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
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
