//! Compilers that have been started before there is a text: until they read, they take as long as for a third of a small
//! kernel. There are files nowhere: the text comes through a pipe, which ends with this process, and so do they then; the
//! object file is in memory.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::MemfdFlags;

use super::linker;
use crate::runtime::process::{self, Running};

/// Of which no text came so soon, it ends.
const IDLE: Duration = Duration::from_secs(3);
/// More than these are never needed at once: what is to be compiled next is rarely more.
const MOST: usize = 2;
/// What a pipe holds.
const MOST_TEXT: usize = 1 << 16;
/// What reads standard input as a text, and writes the object file to standard output. By this name: compilers remove what they
/// fail to write, and where root runs them `/dev/stdout` would be gone.
const ARGUMENTS: [&str; 6] = ["-xc", "-include", "/dev/stdin", "/dev/null", "-o", "/proc/self/fd/1"];
/// What answers instead of a compiler may take the place of files into account. Scripts may, too.
const WRAPPERS: [&str; 4] = ["ccache", "distcc", "icecc", "buildcache"];

struct Standby {
    /// What it was started as.
    command: Vec<String>,
    compiler: Running,
    object: File,
    /// Which of all.
    number: u64,
}

static READY: Mutex<Pool> = Mutex::new(Pool { waiting: Vec::new(), started: 0 });
/// Once one has failed, there are no others.
static FAILED: AtomicBool = AtomicBool::new(false);

struct Pool {
    waiting: Vec<Standby>,
    started: u64,
}

/// After some time starts compilers by the command until so many wait. The command is asked for by another thread.
pub(super) fn start(
    count: usize,
    after: Duration,
    command: impl Fn() -> Option<Vec<String>> + Send + 'static,
) {
    let is_enough = move |pool: &Pool| pool.waiting.len() >= count.min(MOST);
    if !linker::IS_KNOWN
        || FAILED.load(Ordering::Relaxed)
        || READY.try_lock().is_ok_and(|pool| is_enough(&pool))
    {
        return;
    }
    let start = move || {
        std::thread::sleep(after);
        let mut numbers = Vec::new();
        {
            // Whoever has a text meanwhile waits: the compiler is further by then than one that it would start.
            let mut pool = READY.lock().unwrap_or_else(PoisonError::into_inner);
            while !is_enough(&pool) {
                let number = pool.started;
                let Some(standby) = command().and_then(|command| Standby::new(command, number)) else {
                    return FAILED.store(true, Ordering::Relaxed);
                };
                pool.started += 1;
                pool.waiting.push(standby);
                numbers.push(number);
            }
        }
        std::thread::sleep(IDLE);
        let mut pool = READY.lock().unwrap_or_else(PoisonError::into_inner);
        pool.waiting.retain(|standby| !numbers.contains(&standby.number));
    };
    // Without a thread there is none, and all goes on as it does without.
    let _ = std::thread::Builder::new().name("lazuli-compilers".into()).spawn(start);
}

/// The library of a text by a compiler that waits, if there is one of this command and all goes well.
pub(super) fn compile(source: &str, command: &[String]) -> Option<Vec<u8>> {
    if source.len() > MOST_TEXT {
        return None;
    }
    let standby = {
        let mut pool = READY.lock().unwrap_or_else(PoisonError::into_inner);
        let place = pool.waiting.iter().position(|standby| standby.command == command)?;
        pool.waiting.remove(place)
    };
    let library = standby.compile(source);
    // What the text has to do with it, another run says.
    FAILED.fetch_or(library.is_none(), Ordering::Relaxed);
    library
}

impl Standby {
    fn new(command: Vec<String>, number: u64) -> Option<Standby> {
        let (program, first) = command.split_first()?;
        let path = std::fs::canonicalize(program).ok()?;
        let name = path.file_name()?.to_str()?;
        let mut magic = [0; 4];
        File::open(&path).ok()?.read_exact(&mut magic).ok()?;
        if magic != *b"\x7fELF" || WRAPPERS.iter().any(|wrapper| name.contains(wrapper)) {
            return None;
        }
        let object = File::from(rustix::fs::memfd_create("lazuli", MemfdFlags::CLOEXEC).ok()?);
        let mut run = Command::new(program);
        run.args(first).args(ARGUMENTS).current_dir(Path::new("/")).env("LC_ALL", "C").stdin(Stdio::piped());
        let compiler = Running::start(run, Some(object.try_clone().ok()?)).ok()?;
        Some(Standby { command, compiler, object, number })
    }

    fn compile(mut self, source: &str) -> Option<Vec<u8>> {
        self.compiler.give(source.as_bytes()).ok()?;
        let (is_well, _) = self.compiler.end(process::limit()).ok()?;
        let mut object = Vec::new();
        self.object.seek(SeekFrom::Start(0)).ok()?;
        self.object.read_to_end(&mut object).ok()?;
        // A wrapper may have read the text, and the compiler nothing.
        let (_, function) = source.rsplit_once("\nvoid ")?;
        let name = function.split('(').next()?.as_bytes();
        let is_there = object.windows(name.len()).any(|bytes| bytes == name);
        linker::link(&object).filter(|_| is_well && is_there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "typedef long long idx;\n\nvoid twice(int* x) { x[0] *= 2; }\n";

    fn command() -> Vec<String> {
        let found = ["/usr/bin/cc", "/usr/bin/gcc", "/usr/bin/clang"]
            .into_iter()
            .find(|path| Path::new(path).exists());
        let words = [found.unwrap_or("cc"), "-O1", "-pipe", "-fPIC", "-c"];
        words.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_compiler_that_waits_takes_one_text() {
        let standby = Standby::new(command(), 0).unwrap();
        let library = standby.compile(TEXT).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("twice.so");
        std::fs::write(&file, library).unwrap();
        // SAFETY: what was compiled has no initialisers, and the function has the type that the text gives it.
        let doubled = unsafe {
            let library = libloading::Library::new(&file).unwrap();
            let twice: libloading::Symbol<unsafe extern "C" fn(*mut i32)> = library.get(b"twice").unwrap();
            let mut x = 21;
            twice(&raw mut x);
            x
        };
        assert_eq!(doubled, 42);
    }

    #[test]
    fn what_goes_wrong_is_left_to_another_run() {
        let compile = |text: &str| Standby::new(command(), 0).unwrap().compile(text);
        assert!(compile("\nvoid broken(int* x) { x[0] *= ; }\n").is_none());
        // More than a pipe holds would wait for a compiler that does not read.
        assert!(compile(&format!("{}{TEXT}", " ".repeat(1 << 20))).is_none());
        assert!(compile("").is_none());
    }

    #[test]
    fn what_is_no_compiler_itself_does_not_wait_for_texts() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("cc");
        std::fs::write(&script, "#!/bin/sh\nexec cc \"$@\"\n").unwrap();
        assert!(Standby::new(vec![script.to_str().unwrap().to_owned()], 0).is_none());
        assert!(Standby::new(vec!["/nonexistent/cc".to_owned()], 0).is_none());
    }
}
