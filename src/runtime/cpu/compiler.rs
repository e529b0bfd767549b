//! The system's C compiler: which one, with what flags, and one kernel through it.

use std::borrow::{Borrow, Cow};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::called::{self, Function};
use super::effort::{EFFORTS, Effort, FAULTS, LESS, effort};
use super::flags::{Extras, FLAGS, LINK, NATIVE, NO_LIBRARIES, OBJECT, calls_libraries, flags};
use super::{DEVICE, Unloaded, linker, processor, standby, together};
use crate::error::{Error, Result};
use crate::runtime::cache::{DiskCache, Key};
use crate::runtime::process::{self, Answer, End};
use crate::runtime::workshop::{self, Workshop};
use crate::settings;

/// The file that it compiles.
const TEXT: &str = "kernel.c";

/// Whether the plan before took a run.
static IS_BUSY: AtomicBool = AtomicBool::new(false);

/// One text of what is to be compiled of each kernel; `sources` name their functions.
fn joined<'a>(texts: &[&'a str], sources: &[&str]) -> Cow<'a, str> {
    match texts {
        [text] => Cow::Borrowed(text),
        several => Cow::Owned(together::join(several.iter().copied().zip(sources.iter().copied()))),
    }
}

/// Compiles where a kernel does not: it tells a refused flag from a refused kernel.
const PROBE: &str = "int lazuli_probe(void) { return 0; }\n";

/// A C compiler that answers.
#[derive(Debug)]
pub(crate) struct Compiler {
    /// The program, and arguments that come before all others: `$CC` may name a wrapper.
    command: Vec<String>,
    /// The first line of what it says of itself.
    version: String,
    /// What it is, as far as is known, taken: an index of [`Extras::ALL`].
    extras: AtomicUsize,
}

/// One run of the compiler.
enum Outcome {
    /// The bytes of the file that it was to make.
    Made(Vec<u8>),
    /// Its messages.
    Refused(String),
}

/// What is not a refused text, though a compiler can only tell by words: that the system has no more of something.
#[cfg(unix)]
const SHORTAGES: [(&str, rustix::io::Errno); 11] = {
    use rustix::io::Errno;
    [
        ("No space left on device", Errno::NOSPC),
        ("Disk quota exceeded", Errno::DQUOT),
        ("File too large", Errno::FBIG),
        ("Read-only file system", Errno::ROFS),
        ("Too many open files", Errno::MFILE),
        ("Resource temporarily unavailable", Errno::AGAIN),
        ("Input/output error", Errno::IO),
        ("Cannot allocate memory", Errno::NOMEM),
        ("virtual memory exhausted", Errno::NOMEM),
        ("out of memory", Errno::NOMEM),
        ("Killed signal terminated program", Errno::NOMEM),
    ]
};

impl Compiler {
    /// The compiler of this process, looked for once: `$LAZULI_CC`, `$CC`, `cc`, `gcc`, `clang`.
    pub(crate) fn get() -> Result<&'static Compiler> {
        static COMPILER: OnceLock<Result<Compiler>> = OnceLock::new();
        COMPILER.get_or_init(|| Compiler::find(&variable)).as_ref().map_err(Error::clone)
    }

    /// As [`Compiler::get`], with the environment as a function.
    pub(super) fn find(environment: &dyn Fn(&str) -> Option<String>) -> Result<Compiler> {
        let mut reasons = Vec::new();
        for candidate in candidates(environment) {
            match Compiler::try_candidate(&candidate) {
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
        let ask = |question: &str| match ask(&command, [question]) {
            // A compiler that has said something has not failed, as far as one knows.
            Ok(Answer { end: End::Well | End::Unknown, output, .. }) => {
                Ok(output.lines().next().unwrap_or_default().trim().to_owned())
            }
            Ok(answer) => Err(format!("`{question}` failed: {}", answer.text().trim())),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(format!(
                "`{question}` did not end within {:?}, which LAZULI_COMPILE_TIMEOUT sets",
                process::limit()
            )),
            Err(error) => Err(error.to_string()),
        };
        // At once, and not on the pool: a thread of its that waits for a task in here takes on others meanwhile, and these wait
        // for the compiler.
        let (version, machine) = std::thread::scope(|scope| {
            let machine = std::thread::Builder::new().spawn_scoped(scope, || ask("-dumpmachine"));
            let version = ask("--version");
            let machine = machine.ok().and_then(|thread| thread.join().ok());
            (version, machine.unwrap_or_else(|| ask("-dumpmachine")))
        });
        let version = version?;
        match machine {
            Ok(machine) if machine.is_empty() => {
                return Err("it does not say what it compiles for, as a C compiler would".into());
            }
            // A cross compiler's libraries could not be loaded.
            Ok(machine) if !processor::is_this_architecture(&machine) => {
                return Err(format!("it compiles for {machine}"));
            }
            _ => {}
        }
        Ok(Compiler { command, version, extras: AtomicUsize::new(0) })
    }

    /// What it says of itself, in a line.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Program, version and flags, without the processor that they are for.
    fn maker(&self) -> String {
        let words = self.command.iter().map(String::as_str);
        let words: Vec<&str> = words
            .chain(FLAGS)
            .chain([EFFORTS, NATIVE])
            .chain(LINK)
            .chain(NO_LIBRARIES.iter().copied())
            .collect();
        format!("{} | {}", self.version, words.join(" "))
    }

    /// What a compiled library depends on besides the source: program, version, flags and processor. For
    /// the keys of caches, which machines may share.
    pub(crate) fn identity(&self) -> String {
        format!("{} | {}", self.maker(), described().unwrap_or_else(|| self.processor()))
    }

    /// The bytes of a shared library.
    ///
    /// # Errors
    /// [`Error::Compilation`] for a text that is refused; [`Error::Io`] where the system has no room, no files or no
    /// memory for the compiler; [`Error::Unavailable`] if it does not end, or does not do its work.
    pub(crate) fn compile(&self, kernel_name: &str, source: &str) -> Result<Vec<u8>> {
        self.compile_all(kernel_name, &[source])
    }

    /// As [`Compiler::compile`], of several kernels.
    pub(crate) fn compile_all(&self, kernel_name: &str, sources: &[&str]) -> Result<Vec<u8>> {
        let whole = joined(sources, sources);
        let is_linked = calls_libraries(&whole);
        if linker::IS_KNOWN
            && !is_linked
            && let Some(library) = self.compile_apart(kernel_name, sources)?
        {
            return Ok(library);
        }
        self.compile_as(kernel_name, &whole, is_linked)
    }

    /// The library, if its sources have functions that are compiled apart from them, and all goes well.
    fn compile_apart(&self, kernel_name: &str, sources: &[&str]) -> Result<Option<Vec<u8>>> {
        let (texts, functions): (Vec<String>, Vec<Vec<Function>>) =
            sources.iter().map(|source| called::split(source)).unzip();
        let mut functions = functions.concat();
        functions.sort();
        functions.dedup();
        if functions.is_empty() {
            return Ok(None);
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let text = joined(&texts, sources);
        let (own, objects) = std::thread::scope(|scope| {
            // At once where there are threads; else one after the other.
            for function in &functions {
                let compile = move || drop(self.function(function));
                let _ = std::thread::Builder::new().spawn_scoped(scope, compile);
            }
            let extras = Extras::ALL[self.extras.load(Ordering::Relaxed)];
            let own = self.object(kernel_name, &text, extras, effort(&text, self.is_gcc()));
            (own, functions.iter().map(|function| self.function(function)).collect::<Option<Vec<_>>>())
        });
        let (Outcome::Made(own), Some(objects)) = (own?, objects) else { return Ok(None) };
        let objects: Vec<&[u8]> = std::iter::once(&own).chain(&objects).map(Vec::as_slice).collect();
        Ok(linker::link(&objects))
    }

    /// The object file of a function, from this process, from the cache, or made now.
    fn function(&self, function: &Function) -> Option<Vec<u8>> {
        function.object(&self.maker(), || {
            let (name, text) = (function.name(), function.text());
            let disk = DiskCache::get();
            let key = Key::new("cpu", &self.identity(), &["an object"], text);
            if let Some(object) = disk.and_then(|disk| disk.load(&key)) {
                return Some(object);
            }
            let extras = Extras::ALL[self.extras.load(Ordering::Relaxed)];
            let Ok(Outcome::Made(object)) = self.object(name, text, extras, effort(text, self.is_gcc()))
            else {
                return None;
            };
            if let Some(disk) = disk {
                disk.store(&key, "c", text, &object);
            }
            Some(object)
        })
    }

    fn is_gcc(&self) -> bool {
        !self.version.contains("clang")
    }

    /// As [`Compiler::compile`], for a text whose library lacked something when it was to be loaded.
    pub(crate) fn compile_linked(&self, kernel_name: &str, source: &str) -> Result<Vec<u8>> {
        self.compile_as(kernel_name, source, true)
    }

    fn compile_as(&self, kernel_name: &str, source: &str, is_linked: bool) -> Result<Vec<u8>> {
        let attempt = |extras: usize, effort: Effort| {
            self.attempt(kernel_name, source, Extras::ALL[extras], effort, is_linked)
        };
        let own = effort(source, self.is_gcc());
        let mut extras = self.extras.load(Ordering::Relaxed);
        let mut outcome = attempt(extras, own)?;
        if matches!(outcome, Outcome::Refused(_))
            && let Some(taken) = self.taken()?
            && taken != extras
        {
            self.extras.store(taken, Ordering::Relaxed);
            extras = taken;
            outcome = attempt(extras, own)?;
        }
        for less in LESS {
            match &outcome {
                Outcome::Refused(log) if FAULTS.iter().any(|words| log.contains(words)) => {
                    outcome = attempt(extras, less)?;
                }
                _ => break,
            }
        }
        match outcome {
            Outcome::Made(library) => Ok(library),
            Outcome::Refused(log) => Err(Error::Compilation {
                kernel: kernel_name.to_owned(),
                compiler: format!("{} ({})", self.command.join(" "), self.version),
                log,
                source_text: source.into(),
            }),
        }
    }

    /// An error for a compiler that does not do its work, though it may be one: what it did.
    fn unusable(&self, kernel_name: &str, did: &str, hint: &str) -> Error {
        let reason = format!("the C compiler {} {did}", self.command.join(" "));
        Error::Unavailable { what: format!("kernel {kernel_name}"), reason, hint: hint.to_owned() }
    }

    /// An error for a library that this compiler made just now.
    pub(crate) fn not_loaded(&self, kernel_name: &str, unloaded: Unloaded) -> Error {
        match unloaded {
            Unloaded::Refused(message) => Error::Device {
                device: DEVICE.into(),
                operation: format!("loading kernel {kernel_name}"),
                message,
            },
            Unloaded::Incomplete(message) => self.unusable(
                kernel_name,
                &format!("made a library that lacks a function of it: {message}"),
                "Set LAZULI_CC to another one",
            ),
        }
    }

    /// The first of [`Extras::ALL`] with which it compiles at all: extras are told from a text that is refused.
    fn taken(&self) -> Result<Option<usize>> {
        for (index, extras) in Extras::ALL.into_iter().enumerate() {
            if let Outcome::Made(_) = self.attempt("probe", PROBE, extras, LESS[0], true)? {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    fn attempt(
        &self,
        kernel_name: &str,
        source: &str,
        extras: Extras,
        effort: Effort,
        is_linked: bool,
    ) -> Result<Outcome> {
        if linker::IS_KNOWN && !is_linked {
            match self.object(kernel_name, source, extras, effort)? {
                Outcome::Made(object) => {
                    if let Some(library) = linker::link(&[&object]) {
                        return Ok(Outcome::Made(library));
                    }
                }
                refused => return Ok(refused),
            }
        }
        let libraries = extras.libraries(is_linked).iter().copied();
        let end = [LINK[0], TEXT, "-o", "kernel.so"].into_iter().chain(libraries);
        self.run(kernel_name, source, &mut || flags(extras, effort).chain(end.clone()), "kernel.so")
    }

    /// An object file, by a compiler that waits or another one.
    fn object(&self, kernel_name: &str, source: &str, extras: Extras, effort: Effort) -> Result<Outcome> {
        if let Some(object) = standby::compile(source, &self.standing_by(extras, effort)) {
            return Ok(Outcome::Made(object));
        }
        let end = OBJECT.into_iter().chain([TEXT, "-o", "kernel.o"]);
        self.run(kernel_name, source, &mut || flags(extras, effort).chain(end.clone()), "kernel.o")
    }

    /// One run of it over a source, wherever there is room, which makes a file.
    fn run<I: Iterator<Item = &'static str>>(
        &self,
        kernel_name: &str,
        source: &str,
        arguments: &mut dyn FnMut() -> I,
        made: &str,
    ) -> Result<Outcome> {
        let mut shortage = None;
        for place in workshop::places() {
            let outcome = Workshop::new(&place)
                .map_err(|error| Error::io("make a folder in", &place, error))
                .and_then(|workshop| {
                    let text = workshop.path().join(TEXT);
                    fs::write(&text, source).map_err(|error| Error::io("write", &text, error))?;
                    self.run_in(&workshop, kernel_name, &mut arguments(), &place, made)
                });
            match outcome {
                Err(error @ Error::Io { .. }) => shortage = shortage.or(Some(error)),
                outcome => return outcome,
            }
        }
        Err(shortage.unwrap_or_else(|| Error::internal("cpu", "there is no place for a compiler's files")))
    }

    /// Its command for what has no text yet.
    fn standing_by(&self, extras: Extras, effort: Effort) -> Vec<String> {
        let words = flags(extras, effort).chain(OBJECT).map(str::to_owned);
        self.command.iter().cloned().chain(words).collect()
    }

    /// A plan is made, whose kernels are probably new if those of the plan before were.
    pub(crate) fn expect_text() {
        if IS_BUSY.load(Ordering::Relaxed) {
            Compiler::stand_by(1, Duration::ZERO);
        }
    }

    /// A plan took so many runs. The next one probably takes as many.
    pub(crate) fn note_runs(runs: usize) {
        IS_BUSY.store(runs > 0, Ordering::Relaxed);
        // Once the kernels have begun, or are over.
        Compiler::stand_by(runs, Duration::from_millis(10));
    }

    fn stand_by(runs: usize, after: Duration) {
        standby::start(runs, after, || {
            let compiler = Compiler::get().ok()?;
            let extras = Extras::ALL[compiler.extras.load(Ordering::Relaxed)];
            Some(compiler.standing_by(extras, effort("", true)))
        });
    }

    /// One run of it in the workshop, which makes a file.
    fn run_in(
        &self,
        workshop: &Workshop,
        kernel_name: &str,
        arguments: &mut dyn Iterator<Item = &'static str>,
        place: &Path,
        made: &str,
    ) -> Result<Outcome> {
        let limit = process::limit();
        let answer = process::run(&self.command, arguments, workshop.path(), limit);
        let answer = answer.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => self.unusable(
                kernel_name,
                &format!("did not end within {limit:?}"),
                "LAZULI_COMPILE_TIMEOUT is the limit, in seconds",
            ),
            _ => Error::io("run", Path::new(&self.command[0]), error),
        })?;
        let made = workshop.path().join(made);
        let has_failed = match answer.end {
            End::Well => false,
            End::Badly => true,
            // What it made is there, then, unless it has failed.
            End::Unknown => answer.text().contains("error:") || !(made.exists() || answer.text().is_empty()),
        };
        if has_failed {
            let log = answer.text();
            return match self.shortage(place, &log) {
                Some(error) => Err(error),
                None => Ok(Outcome::Refused(log)),
            };
        }
        match fs::read(&made) {
            Ok(made) => Ok(Outcome::Made(made)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.unusable(
                kernel_name,
                "left no library of it, and no word of failure",
                "Set LAZULI_CC to another one",
            )),
            Err(error) => Err(Error::io("read", &made, error)),
        }
    }

    /// What the compiler says the system has no more of.
    #[cfg(unix)]
    fn shortage(&self, place: &Path, log: &str) -> Option<Error> {
        let (_, errno) = SHORTAGES.into_iter().find(|(words, _)| log.contains(words))?;
        let path = format!("in {} with {}", place.display(), self.command.join(" "));
        let source = Some(Arc::new(io::Error::from(errno)));
        Some(Error::Io { action: "compile", path, message: log.trim().to_owned(), source })
    }

    #[cfg(not(unix))]
    fn shortage(&self, _place: &Path, _log: &str) -> Option<Error> {
        None
    }

    /// The processor, where the system does not say: what the compiler would use.
    fn processor(&self) -> String {
        let macros = ask(&self.command, [NATIVE, "-dM", "-E", "-x", "c", "/dev/null"]);
        let macros = macros.map(|answer| answer.output).unwrap_or_default();
        format!("{} {}", std::env::consts::ARCH, short_hash(&macros))
    }
}

/// What compiled kernels of this machine are found by: [`Compiler::identity`]. Kernels that are compiled already need
/// no compiler: the one that made them is remembered in the cache, and asked again only if it is another file now.
///
/// # Errors
/// [`Error::Unavailable`] if there is no compiler, and never was one.
pub(crate) fn identity() -> Result<&'static str> {
    static IDENTITY: OnceLock<Result<String>> = OnceLock::new();
    let identity = IDENTITY.get_or_init(|| identify(&variable, DiskCache::get(), Compiler::get));
    identity.as_deref().map_err(Error::clone)
}

/// As [`identity`], with the environment, the cache and the compiler given.
pub(super) fn identify<C: Borrow<Compiler>>(
    environment: &dyn Fn(&str) -> Option<String>,
    disk: Option<&DiskCache>,
    compiler: impl FnOnce() -> Result<C>,
) -> Result<String> {
    // Without the processor, which only this machine knows, nothing can be said of a compiled kernel.
    let (Some(disk), Some(processor)) = (disk, described()) else {
        return Ok(compiler()?.borrow().identity());
    };
    let candidates = candidates(environment);
    let key = Key::new("the C compiler", "", &[], &candidates.join("\n"));
    let files = files(&candidates);
    let known = disk.load(&key).and_then(|known| String::from_utf8(known).ok());
    if let Some((then, maker)) = known.as_ref().and_then(|known| known.split_once('\n'))
        && files.as_ref().is_none_or(|files| then == files)
    {
        return Ok(format!("{maker} | {processor}"));
    }
    let maker = compiler()?.borrow().maker();
    let known = format!("{}\n{maker}", files.unwrap_or_default());
    disk.store(&key, "txt", &candidates.join("\n"), known.as_bytes());
    Ok(format!("{maker} | {processor}"))
}

fn variable(name: &str) -> Option<String> {
    settings::text(name)
}

/// The compilers to try, in this order.
fn candidates(environment: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let variable = |name| environment(name).filter(|value| !value.trim().is_empty());
    // Who names a compiler for Lazuli wants that one. `$CC` is meant for others too, and may not suit.
    match variable("LAZULI_CC") {
        Some(chosen) => vec![chosen],
        None => variable("CC").into_iter().chain(["cc", "gcc", "clang"].map(str::to_owned)).collect(),
    }
}

/// The processor that `-march=native` means, if the system says: its model in words, and a hash of its features.
fn described() -> Option<String> {
    let (model, features) = processor::described()?;
    Some(format!("{model} {}", short_hash(&features)))
}

/// A hash of the files that these commands name, as they are now; None if there is no program to run.
fn files(candidates: &[String]) -> Option<String> {
    let mut described = String::new();
    for candidate in candidates {
        let mut words = candidate.split_whitespace();
        // Other words may be a wrapper's own program, or its script.
        let files = words.next().and_then(resolve).into_iter().chain(words.filter_map(resolve));
        for file in files {
            let Ok(path) = fs::canonicalize(file) else { continue };
            let Ok(metadata) = fs::metadata(&path) else { continue };
            described.push_str(&format!(
                "{} {} {:?}\n",
                path.display(),
                metadata.len(),
                metadata.modified().ok()
            ));
        }
    }
    (!described.is_empty()).then(|| short_hash(&described))
}

/// A question that is quickly answered.
fn ask(command: &[String], arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> io::Result<Answer> {
    process::run(command, arguments, Path::new("/"), process::limit())
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

fn short_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_call_libraries_are_told_from_others() {
        let body = "static void a_blocks(float* out0) {\n  double x = pow(2.0, 3.0);\n  f(x);\n}\n";
        for (declared, expected) in [
            ("", false),
            ("float sqrtf(float);\ndouble fma(double, double, double);\n", false),
            ("float sqrtf(float);\ndouble pow(double, double);\n", true),
            ("float lgammaf(float);\n", true),
        ] {
            assert_eq!(calls_libraries(&format!("{declared}{body}")), expected, "{declared}");
        }
    }
}
