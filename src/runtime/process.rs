//! Other programs and libraries. Compilers run in process groups of their own, for a limited time, and not on when this
//! process has ended.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::settings;

/// How many seconds a compiler may take.
const LIMIT_VARIABLE: &str = "LAZULI_COMPILE_TIMEOUT";
const DEFAULT_LIMIT: Duration = Duration::from_secs(600);

/// What the rest of a text beyond so many bytes says is not kept.
const MOST_TEXT: usize = 1 << 20;

/// What is over by then is not guarded, and it is looked whether a silent process has ended.
#[cfg(unix)]
const SOON: Duration = Duration::from_millis(100);

/// How a program came to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Well,
    Badly,
    /// Somebody else was told: this process ignores `SIGCHLD`, or a thread of its waits for all children.
    Unknown,
}

impl End {
    fn of(success: bool) -> End {
        if success { End::Well } else { End::Badly }
    }
}

/// What a program that came to its end said.
pub(crate) struct Answer {
    pub(crate) end: End,
    /// To standard output.
    pub(crate) output: String,
    /// To standard error: not all of it need be its own, the loader of programs warns there too.
    pub(crate) messages: String,
}

impl Answer {
    fn new(end: End, [output, messages]: [Vec<u8>; 2]) -> Answer {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Answer { end, output: text(output), messages: text(messages) }
    }

    /// All of it.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.output, self.messages)
    }
}

/// The time that a compiler may take.
pub(crate) fn limit() -> Duration {
    static LIMIT: OnceLock<Duration> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let parse = |text: &str| Duration::try_from_secs_f64(text.parse().ok()?).ok();
        let parse = |text: &str| parse(text).filter(|limit| !limit.is_zero());
        settings::value(LIMIT_VARIABLE, "a number of seconds", parse).unwrap_or(DEFAULT_LIMIT)
    })
}

/// Runs a program to its end in the folder, where its temporary files are as well.
///
/// # Errors
/// What the system says where it could not be run; [`io::ErrorKind::TimedOut`] after `limit`, when it and all that it
/// has started have been ended.
pub(crate) fn run(
    command: &[String],
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    folder: &Path,
    limit: Duration,
) -> io::Result<Answer> {
    let Some((program, first)) = command.split_first() else { return Err(io::ErrorKind::NotFound.into()) };
    let mut command = Command::new(program);
    command.args(first).args(arguments).current_dir(folder).env("LC_ALL", "C").stdin(Stdio::null());
    if folder.parent().is_some() {
        command.env("TMPDIR", folder);
    }
    to_the_end(command, limit)
}

/// What the loader of libraries says. The outer error only names the function that failed.
pub(crate) fn loader_words(error: &libloading::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}

#[cfg(not(unix))]
fn to_the_end(mut command: Command, _limit: Duration) -> io::Result<Answer> {
    let output = command.output()?;
    Ok(Answer::new(End::of(output.status.success()), [output.stdout, output.stderr]))
}

#[cfg(unix)]
fn to_the_end(command: Command, limit: Duration) -> io::Result<Answer> {
    Running::start(command, None)?.end(limit)
}

/// A program in a group of its own, which ends when this is dropped.
#[cfg(unix)]
pub(crate) struct Running {
    child: Child,
    /// What it prints to standard output, unless that is a file, and to standard error.
    readers: [Option<io::PipeReader>; 2],
}

#[cfg(unix)]
impl Running {
    /// Starts it; what it makes goes to the file, if there is one.
    pub(crate) fn start(mut command: Command, made: Option<std::fs::File>) -> io::Result<Running> {
        let (errors, writer) = io::pipe()?;
        command.stderr(writer);
        let output = match made {
            Some(file) => {
                command.stdout(file);
                None
            }
            None => {
                let (output, writer) = io::pipe()?;
                command.stdout(writer);
                Some(output)
            }
        };
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        // Its ends of the pipes go with the command.
        Ok(Running { child: command.spawn()?, readers: [output, Some(errors)] })
    }

    /// Gives it all that it reads, which is not more than a pipe holds.
    ///
    /// # Errors
    /// Those of the pipe: it may not read, or have ended.
    #[cfg(target_os = "linux")]
    pub(crate) fn give(&mut self, input: &[u8]) -> io::Result<()> {
        let mut pipe = self.child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        if input.len() > rustix::pipe::fcntl_getpipe_size(&pipe)? {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        io::Write::write_all(&mut pipe, input)
    }

    /// How it ends, and what it prints until then.
    ///
    /// # Errors
    /// As [`run`].
    pub(crate) fn end(mut self, limit: Duration) -> io::Result<Answer> {
        let deadline = Instant::now().checked_add(limit);
        let mut guard = None;
        let texts = read(&mut self.readers, &mut self.child, deadline, &mut guard)?;
        Ok(Answer::new(wait(&mut self.child, deadline, &mut guard)?, texts))
    }
}

#[cfg(unix)]
impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(ended(&mut self.child), Ok(None)) {
            return;
        }
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Ends the processes of a group when this process is no more, however it came to its end: the pipe that it reads from has no
/// other end then. To start it takes a millisecond, so what is over soon has none.
#[cfg(unix)]
struct Guard(Child);

#[cfg(unix)]
impl Guard {
    /// For the group of a process that has not been waited for. None where there is no shell: then compilers come to their end
    /// by themselves.
    fn start(group: i32) -> Option<Guard> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "read _; kill -s KILL 0"]).current_dir("/");
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        std::os::unix::process::CommandExt::process_group(&mut shell, group);
        shell.spawn().ok().map(Guard)
    }
}

#[cfg(unix)]
impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How the process has ended, if it has.
#[cfg(unix)]
fn ended(child: &mut Child) -> io::Result<Option<End>> {
    match child.try_wait() {
        Ok(status) => Ok(status.map(|status| End::of(status.success()))),
        // It has ended, and its number may be another one's by now.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::CHILD.raw_os_error()) => {
            Ok(Some(End::Unknown))
        }
        Err(error) => Err(error),
    }
}

/// What the process prints until it has ended. What it has started may keep the pipes open.
#[cfg(unix)]
fn read(
    readers: &mut [Option<io::PipeReader>; 2],
    child: &mut Child,
    deadline: Option<Instant>,
    guard: &mut Option<Guard>,
) -> io::Result<[Vec<u8>; 2]> {
    use std::io::Read;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let mut texts = [Vec::new(), Vec::new()];
    let mut buffer = [0; 8192];
    while readers.iter().any(Option::is_some) {
        let slice = left(deadline)?.min(SOON);
        let timeout = Timespec { tv_sec: 0, tv_nsec: slice.as_nanos() as i64 };
        let open = readers.iter().flatten();
        let mut polled: Vec<PollFd> = open.map(|reader| PollFd::new(reader, PollFlags::IN)).collect();
        match poll(&mut polled, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(0) if ended(child)?.is_some() => break,
            Ok(0) => *guard = guard.take().or_else(|| Guard::start(child.id() as i32)),
            Ok(_) => {}
        }
        let ready: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        let open = readers.iter_mut().zip(&mut texts).filter(|(reader, _)| reader.is_some());
        for ((reader, text), _) in open.zip(ready).filter(|(_, is_ready)| *is_ready) {
            let count = reader.as_mut().map_or(Ok(0), |reader| reader.read(&mut buffer))?;
            if count == 0 {
                *reader = None;
            } else if text.len() < MOST_TEXT {
                text.extend_from_slice(&buffer[..count]);
            }
        }
    }
    Ok(texts)
}

/// How the process ended. It has closed its output, and ends any moment.
#[cfg(unix)]
fn wait(child: &mut Child, deadline: Option<Instant>, guard: &mut Option<Guard>) -> io::Result<End> {
    let mut pause = Duration::from_micros(50);
    loop {
        if let Some(end) = ended(child)? {
            return Ok(end);
        }
        if pause * 2 > SOON && guard.is_none() {
            *guard = Guard::start(child.id() as i32);
        }
        std::thread::sleep(left(deadline)?.min(pause));
        pause = (pause * 2).min(SOON);
    }
}

/// The time until the deadline, if there is any left.
#[cfg(unix)]
fn left(deadline: Option<Instant>) -> io::Result<Duration> {
    let Some(deadline) = deadline else { return Ok(Duration::from_secs(1)) };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> io::Result<Answer> {
        run(&["/bin/sh".to_owned()], ["-c", script], Path::new("/"), limit)
    }

    #[test]
    fn both_outputs_are_the_answer() {
        let answer = shell("echo out; echo err >&2; exit 3", DEFAULT_LIMIT).unwrap();
        assert_eq!(
            (answer.end, answer.output.as_str(), answer.messages.as_str()),
            (End::Badly, "out\n", "err\n")
        );
        let answer = shell("yes | head -c 3000000", DEFAULT_LIMIT).unwrap();
        assert_eq!(answer.end, End::Well);
        assert!((MOST_TEXT..2 * MOST_TEXT).contains(&answer.output.len()));
    }

    #[test]
    fn what_stays_behind_is_not_waited_for() {
        let answer = shell("sleep 30 & echo done", DEFAULT_LIMIT).unwrap();
        assert_eq!((answer.end, answer.text().as_str()), (End::Well, "done\n"));
    }

    #[test]
    fn what_hangs_is_ended_with_all_that_it_has_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        for script in ["sleep 40 & echo $! > FILE; wait", "exec > /dev/null 2>&1; echo $$ > FILE; sleep 40"] {
            let script = script.replace("FILE", file.to_str().unwrap());
            let error = shell(&script, Duration::from_millis(500)).err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            let pid = std::fs::read_to_string(&file).unwrap();
            wait_until(|| has_ended(pid.trim()));
        }
    }

    fn wait_until(condition: impl Fn() -> bool) {
        let start = Instant::now();
        while !condition() {
            assert!(start.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Gone, or as good as.
    fn has_ended(pid: &str) -> bool {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        state.map_or(true, |state| {
            state.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
        })
    }
}
