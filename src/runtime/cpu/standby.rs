//! Compilers that are started before there is a text for them: starting one takes a third as long as compiling a small kernel.
//! No files are made: a compiler waits at a pipe for its text, and writes the object file to memory. When this process ends,
//! however that may be, so does the pipe, and the compiler with it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::MemfdFlags;

use super::linker;
use crate::runtime::fork;
use crate::runtime::process::{self, End, Running};

/// Compilers that nobody has needed for so long are ended.
const IDLE: Duration = Duration::from_secs(3);
/// So many wait at most.
const MOST: usize = 2;
/// What a pipe holds.
const MOST_TEXT: usize = 1 << 16;
/// The text is standard input, the object file standard output; the latter by this name, because a compiler removes a file that
/// it fails to write: run by root, it would remove `/dev/stdout`.
const ARGUMENTS: [&str; 6] = ["-xc", "-include", "/dev/stdin", "/dev/null", "-o", "/proc/self/fd/1"];
/// Programs that stand for a compiler and expect files. Scripts are not waited with either.
const WRAPPERS: [&str; 4] = ["ccache", "distcc", "icecc", "buildcache"];

struct Standby {
    /// What it was started as.
    command: Vec<String>,
    compiler: Running,
    object: File,
}

/// What gives the command, asked for by the thread that starts compilers.
type Asked = fn() -> Option<Vec<String>>;

struct Pool {
    waiting: Vec<Standby>,
    /// How many are to wait, and when that is looked at.
    wanted: usize,
    after: Duration,
    /// Whether there is a thread that starts and ends them.
    is_kept: bool,
}

static READY: Mutex<Pool> =
    Mutex::new(Pool { waiting: Vec::new(), wanted: 0, after: Duration::ZERO, is_kept: false });
static CHANGED: Condvar = Condvar::new();
/// Once one has failed, there are no others.
static FAILED: AtomicBool = AtomicBool::new(false);

/// After some time starts compilers by the command until so many wait.
pub(super) fn start(count: usize, after: Duration, command: Asked) {
    // Those that wait are the other process's, in a child that was forked, and so is what the lock is.
    if !linker::IS_KNOWN || FAILED.load(Ordering::Relaxed) || fork::is_child() {
        return;
    }
    // Whoever holds the lock is starting some.
    let Ok(mut pool) = READY.try_lock() else { return };
    let wanted = count.min(MOST);
    if pool.waiting.len() >= wanted {
        return;
    }
    (pool.wanted, pool.after) = (wanted, after);
    match pool.is_kept {
        true => CHANGED.notify_one(),
        // Without a thread there are none, and all goes on as it does without.
        false => {
            let thread = std::thread::Builder::new().name("lazuli-compilers".into());
            pool.is_kept = thread.spawn(move || keep(command)).is_ok();
        }
    }
}

/// Starts what is wanted, until nothing was for some time.
fn keep(command: Asked) {
    let lock = || READY.lock().unwrap_or_else(PoisonError::into_inner);
    let mut pool = lock();
    loop {
        let after = std::mem::take(&mut pool.after);
        drop(pool);
        std::thread::sleep(after);
        // Under the lock: a text that comes meanwhile waits for this compiler, which is ready earlier than one started for it.
        pool = lock();
        while pool.waiting.len() < pool.wanted && !FAILED.load(Ordering::Relaxed) {
            match command().and_then(Standby::new) {
                Some(standby) => pool.waiting.push(standby),
                None => FAILED.store(true, Ordering::Relaxed),
            }
        }
        pool.wanted = 0;
        let waited = CHANGED.wait_timeout_while(pool, IDLE, |pool| pool.wanted == 0);
        let (next, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        pool = next;
        if waited.timed_out() {
            break;
        }
    }
    pool.waiting.clear();
    pool.is_kept = false;
}

/// The object file of a text by a compiler that waits, if there is one of this command and all goes well.
pub(super) fn compile(source: &str, command: &[String]) -> Option<Vec<u8>> {
    if source.len() > MOST_TEXT || fork::is_child() {
        return None;
    }
    let standby = {
        let mut pool = READY.lock().unwrap_or_else(PoisonError::into_inner);
        let place = pool.waiting.iter().position(|standby| standby.command == command)?;
        pool.waiting.remove(place)
    };
    let object = standby.compile(source);
    // The next run tells whether the text is at fault.
    FAILED.fetch_or(object.is_none(), Ordering::Relaxed);
    object
}

impl Standby {
    fn new(command: Vec<String>) -> Option<Standby> {
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
        Some(Standby { command, compiler, object })
    }

    fn compile(mut self, source: &str) -> Option<Vec<u8>> {
        self.compiler.give(source.as_bytes()).ok()?;
        let answer = self.compiler.end(process::limit()).ok()?;
        // Where nobody knows how it ended, it has something to say of what went wrong.
        let is_well = answer.end == End::Well || (answer.end == End::Unknown && answer.messages.is_empty());
        let mut object = Vec::new();
        self.object.seek(SeekFrom::Start(0)).ok()?;
        self.object.read_to_end(&mut object).ok()?;
        // A wrapper may have read the text, and the compiler nothing.
        let (_, function) = source.rsplit_once("\nvoid ")?;
        let name = function.split('(').next()?.as_bytes();
        let is_there = object.windows(name.len()).any(|bytes| bytes == name);
        (is_well && is_there).then_some(object)
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
        let standby = Standby::new(command()).unwrap();
        let library = linker::link(&[&standby.compile(TEXT).unwrap()]).unwrap();
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
        let compile = |text: &str| Standby::new(command()).unwrap().compile(text);
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
        assert!(Standby::new(vec![script.to_str().unwrap().to_owned()]).is_none());
        assert!(Standby::new(vec!["/nonexistent/cc".to_owned()]).is_none());
    }
}
