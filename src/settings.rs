//! What the user sets for the whole process: in the program, or by environment variables, which are the defaults.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::{Error, Result, SourceLocation, stderr};

const THREADS: &str = "LAZULI_NUM_THREADS";
const FUSION: &str = "LAZULI_FUSION";
const CUDA_GRAPHS: &str = "LAZULI_CUDA_GRAPHS";
const LAUNCH_BLOCKING: &str = "LAZULI_LAUNCH_BLOCKING";
const LIBRARIES: &str = "LAZULI_LIBRARIES";
const NVTX: &str = "LAZULI_NVTX";
const PROGRESS: &str = "LAZULI_PROGRESS";
const DEBUG: &str = "LAZULI_DEBUG";
/// The finest of its levels.
const MOST_DEBUG: u8 = 5;

/// Settings of the process, for programs that do not leave them to environment variables: each method takes the place of one,
/// and what is not set here is as the variable says.
///
/// They hold from [`Settings::install`] on. All but the number of threads are read once, when they are first needed: install
/// them at the beginning. Some can be others for what one thread does: [`Settings::scope`].
///
/// ```
/// use lazuli::{Settings, Tensor};
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// Settings::new().num_threads(2).cache_dir(folder).progress(false).install()?;
/// assert_eq!(Tensor::from([1.0f32, 2.0]).sum(0).item::<f32>()?, 3.0);
/// assert!(folder.join("kernels").exists());
///
/// Settings::new().num_threads(1).install()?; // at any time
/// let error = Settings::new().cache(false).install().unwrap_err(); // too late
/// assert!(error.to_string().contains("LAZULI_CACHE has been read"));
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[must_use = "settings hold when they are installed, or in their scope"]
pub struct Settings {
    variables: BTreeMap<&'static str, OsString>,
}

impl Settings {
    /// As the environment variables say.
    ///
    /// ```
    /// lazuli::Settings::new().install()?; // nothing changes
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn new() -> Settings {
        Settings::default()
    }

    fn with(mut self, variable: &'static str, value: impl Into<OsString>) -> Settings {
        self.variables.insert(variable, value.into());
        self
    }

    /// The threads that a kernel of the CPU may run on, at least one; more than the processors change nothing. Results are the
    /// same on any number. `LAZULI_NUM_THREADS`.
    ///
    /// ```
    /// lazuli::Settings::new().num_threads(2).install()?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn num_threads(self, threads: usize) -> Settings {
        self.with(THREADS, threads.max(1).to_string())
    }

    /// Where compiled kernels are kept; by default the user's folder for caches. `LAZULI_CACHE_DIR`.
    ///
    /// ```
    /// lazuli::Settings::new().cache_dir(tempfile::tempdir().unwrap().path()).install()?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn cache_dir(self, folder: impl Into<PathBuf>) -> Settings {
        self.with("LAZULI_CACHE_DIR", folder.into())
    }

    /// Whether compiled kernels are kept on disk. `LAZULI_CACHE`.
    ///
    /// ```
    /// lazuli::Settings::new().cache(false).install()?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn cache(self, is_on: bool) -> Settings {
        self.with("LAZULI_CACHE", switch(is_on))
    }

    /// The bytes that kernels may take on disk; what was used least recently goes. `LAZULI_CACHE_LIMIT`.
    ///
    /// ```
    /// lazuli::Settings::new().cache_limit(100 << 20).install()?; // 100 MiB
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn cache_limit(self, bytes: u64) -> Settings {
        self.with("LAZULI_CACHE_LIMIT", bytes.to_string())
    }

    /// A file of schedules that were measured, made by [`tune`](crate::tune()). `LAZULI_TUNING`.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let file = folder.path().join("tuning.txt");
    /// # lazuli::Tuning::default().save(&file)?;
    /// lazuli::Settings::new().tuning(&file).install()?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn tuning(self, file: impl Into<PathBuf>) -> Settings {
        self.with("LAZULI_TUNING", file.into())
    }

    /// The C compiler, perhaps with options, such as `clang` or `ccache gcc-13`. `LAZULI_CC`.
    ///
    /// ```
    /// lazuli::Settings::new().c_compiler("gcc -O2").install()?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn c_compiler(self, command: impl Into<String>) -> Settings {
        self.with("LAZULI_CC", command.into())
    }

    /// How long one run of a C compiler may take. `LAZULI_COMPILE_TIMEOUT`.
    ///
    /// ```
    /// lazuli::Settings::new().compile_timeout(std::time::Duration::from_secs(60)).install()?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn compile_timeout(self, limit: Duration) -> Settings {
        self.with("LAZULI_COMPILE_TIMEOUT", limit.as_secs_f64().to_string())
    }

    /// The NVRTC library. `LAZULI_NVRTC`.
    ///
    /// ```
    /// lazuli::Settings::new().nvrtc("/opt/cuda/lib64/libnvrtc.so.13").install()?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn nvrtc(self, library: impl Into<PathBuf>) -> Settings {
        self.with("LAZULI_NVRTC", library.into())
    }

    /// Whether a line on the terminal tells of kernels that take long to compile. `LAZULI_PROGRESS`.
    ///
    /// ```
    /// lazuli::Settings::new().progress(false).install()?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn progress(self, is_on: bool) -> Settings {
        self.with(PROGRESS, switch(is_on))
    }

    /// Whether calls of compiled functions are given to a GPU as one graph. `LAZULI_CUDA_GRAPHS`.
    ///
    /// ```
    /// lazuli::Settings::new().cuda_graphs(false).install()?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn cuda_graphs(self, is_on: bool) -> Settings {
        self.with(CUDA_GRAPHS, switch(is_on))
    }

    /// Whether a GPU is waited for after each kernel, so that what goes wrong there is the error of that kernel, with its line, and not
    /// of whoever asks for values later. To find mistakes: everything takes longer. `LAZULI_LAUNCH_BLOCKING`, or CUDA's own
    /// `CUDA_LAUNCH_BLOCKING=1`.
    ///
    /// ```
    /// use lazuli::{Settings, Tensor};
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// let y = Settings::new().launch_blocking(true).scope(|| (x + 1.0).eval())?;
    /// assert!(y.is_ok());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn launch_blocking(self, is_on: bool) -> Settings {
        self.with(LAUNCH_BLOCKING, switch(is_on))
    }

    /// Whether what is recorded from now on leaves linear algebra and Fourier transforms on a CPU to libraries, in builds with the feature
    /// `libraries`. Without them there are kernels for all of it, as on a GPU. `LAZULI_LIBRARIES`.
    ///
    /// ```
    /// use lazuli::{Settings, Tensor};
    /// let x = Tensor::rand([9, 9], 1);
    /// let by_kernels = Settings::new().libraries(false).scope(|| x.det())?;
    /// assert!(by_kernels.explain()?.kernels() > 0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn libraries(self, is_on: bool) -> Settings {
        self.with(LIBRARIES, switch(is_on))
    }

    /// Whether evaluations and launches of kernels are ranges of NVTX, which Nsight Systems shows on the host's timeline, each with the
    /// lines that recorded it. Without NVIDIA's library for them there is a warning. `LAZULI_NVTX`.
    ///
    /// ```
    /// lazuli::Settings::new().nvtx(false).install()?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn nvtx(self, is_on: bool) -> Settings {
        self.with(NVTX, switch(is_on))
    }

    /// A folder that gets the text of each kernel for a GPU, which is compiled so that Nsight Compute, Compute Sanitizer and cuda-gdb
    /// know its lines (`-lineinfo`): its instructions stay the same. `LAZULI_LINE_INFO`.
    ///
    /// ```
    /// lazuli::Settings::new().line_info("kernels").install()?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn line_info(self, folder: impl Into<PathBuf>) -> Settings {
        self.with("LAZULI_LINE_INFO", folder.into())
    }

    /// Whether operations share kernels where [`with_fusion`](crate::with_fusion) says nothing. `LAZULI_FUSION`.
    ///
    /// ```
    /// lazuli::Settings::new().fusion(false).install()?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn fusion(self, is_on: bool) -> Settings {
        self.with(FUSION, switch(is_on))
    }

    /// What is printed to standard error: from 0, nothing, to 5, everything, as is more. `LAZULI_DEBUG`.
    ///
    /// ```
    /// lazuli::Settings::new().debug(1).install()?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn debug(self, level: u8) -> Settings {
        self.with(DEBUG, level.min(MOST_DEBUG).to_string())
    }

    /// From now on they hold, in place of those installed before. Nothing is changed if it fails.
    ///
    /// ```
    /// lazuli::Settings::new().cache(false).num_threads(4).install()?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidOperation`](Error::InvalidOperation) for another value of what has been read already.
    #[track_caller]
    pub fn install(self) -> Result<()> {
        let location = SourceLocation::caller();
        let mut store = store();
        store.install(self.variables).map_err(|variable| Error::InvalidOperation {
            op: "install",
            message: format!(
                "{variable} has been read, and holds; install settings before anything is evaluated"
            ),
            location,
        })?;
        MOST_THREADS.store(0, Ordering::Relaxed);
        Ok(())
    }
}

/// Of the settings of a scope, those that are said; all others are the process's.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Scope {
    most_threads: Option<u64>,
    fusion: Option<bool>,
    cuda_graphs: Option<bool>,
    launch_blocking: Option<bool>,
    libraries: Option<bool>,
    progress: Option<bool>,
    debug: Option<u8>,
}

thread_local! {
    static SCOPE: Cell<Scope> = const {
        Cell::new(Scope {
            most_threads: None,
            fusion: None,
            cuda_graphs: None,
            launch_blocking: None,
            libraries: None,
            progress: None,
            debug: None,
        })
    };
}

/// The settings of the scope that this thread is in.
fn scope() -> Scope {
    SCOPE.get()
}

impl Scope {
    /// The same with these; or the first variable that is the process's alone.
    fn with(mut self, variables: &BTreeMap<&'static str, OsString>) -> Result<Scope, &'static str> {
        for (&variable, value) in variables {
            let is_on = Some(value == switch(true));
            let number = value.to_str().and_then(|value| value.parse::<u64>().ok());
            match variable {
                THREADS => self.most_threads = number,
                FUSION => self.fusion = is_on,
                CUDA_GRAPHS => self.cuda_graphs = is_on,
                LAUNCH_BLOCKING => self.launch_blocking = is_on,
                LIBRARIES => self.libraries = is_on,
                PROGRESS => self.progress = is_on,
                DEBUG => self.debug = number.and_then(|level| u8::try_from(level).ok()),
                other => return Err(other),
            }
        }
        Ok(self)
    }
}

impl Settings {
    /// They hold while `f` runs, on this thread alone; inside of other such calls, in the place of theirs. That can be the number of
    /// threads, fusion, graphs, waiting for launches, libraries, the line of progress and messages: caches and compilers are the process's, and a file of schedules has
    /// [`Tuning::scope`](crate::Tuning::scope).
    ///
    /// ```
    /// use lazuli::{Settings, Tensor};
    /// let y = (Tensor::rand([8], 1) + 1.0).exp();
    /// let unfused = Settings::new().fusion(false).num_threads(1).scope(|| y.explain())??;
    /// assert_eq!((unfused.kernels(), y.explain()?.kernels()), (3, 1));
    /// let error = Settings::new().cache(false).scope(|| ()).unwrap_err();
    /// assert!(error.to_string().contains("LAZULI_CACHE is of the whole process"));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidOperation`](Error::InvalidOperation) for settings of the process; then `f` is not called.
    #[track_caller]
    pub fn scope<T>(&self, f: impl FnOnce() -> T) -> Result<T> {
        /// Restores what held before also if `f` panics.
        struct Restore(Scope);
        impl Drop for Restore {
            fn drop(&mut self) {
                SCOPE.set(self.0);
            }
        }
        let location = SourceLocation::caller();
        let scope = scope().with(&self.variables).map_err(|variable| Error::InvalidOperation {
            op: "scope",
            message: format!("{variable} is of the whole process; install it"),
            location,
        })?;
        let _restore = Restore(SCOPE.replace(scope));
        Ok(f())
    }
}

fn switch(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

/// What was installed, and which variables have been read.
struct Store {
    installed: BTreeMap<&'static str, OsString>,
    read: BTreeSet<String>,
}

impl Store {
    /// Gives the variable that it is too late for, if there is one.
    fn install(&mut self, variables: BTreeMap<&'static str, OsString>) -> Result<(), &'static str> {
        let is_late = |(variable, value): &(&&'static str, &OsString)| {
            **variable != THREADS
                && self.read.contains(**variable)
                && self.installed.get(*variable) != Some(*value)
        };
        if let Some((variable, _)) = variables.iter().find(is_late) {
            return Err(variable);
        }
        self.installed.extend(variables);
        Ok(())
    }

    fn variable(&mut self, name: &str) -> Option<OsString> {
        self.read.insert(name.to_owned());
        self.installed.get(name).cloned().or_else(|| std::env::var_os(name))
    }
}

fn store() -> MutexGuard<'static, Store> {
    static STORE: Mutex<Store> = Mutex::new(Store { installed: BTreeMap::new(), read: BTreeSet::new() });
    STORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The value of an environment variable, or what was installed in its place.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    store().variable(name)
}

/// The same, where it is text.
pub(crate) fn text(name: &str) -> Option<String> {
    variable(name)?.into_string().ok()
}

/// What a variable's value says, and none for one that is empty.
///
/// # Errors
/// For what it does not understand, a message that says what the value is not.
pub(crate) fn understood<T>(
    name: &str,
    value: Option<OsString>,
    what: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, String> {
    let Some(value) = value.filter(|value| !value.is_empty()) else { return Ok(None) };
    let parsed = value.to_str().and_then(|text| parse(text.trim()));
    parsed.map(Some).ok_or_else(|| format!("{name}={} is not {what}", value.display()))
}

/// What the user has set, with a warning for what it does not understand.
pub(crate) fn value<T>(name: &str, what: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    understood(name, variable(name), what, parse).unwrap_or_else(|warning| {
        stderr::warn(&warning);
        None
    })
}

/// What a switch is set to.
pub(crate) const SWITCH: &str = "`on` or `off`";

/// As people write it.
pub(crate) fn on_or_off(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// Whether something is switched on for the process, and `default` where nothing is said of it.
fn is_on(name: &str, default: bool) -> bool {
    value(name, SWITCH, on_or_off).unwrap_or(default)
}

/// Whether operations share kernels.
pub(crate) fn is_fused() -> bool {
    static DEFAULT: OnceLock<bool> = OnceLock::new();
    scope().fusion.unwrap_or_else(|| *DEFAULT.get_or_init(|| is_on(FUSION, true)))
}

/// Whether calls of compiled functions may be graphs.
#[cfg(feature = "cuda")]
pub(crate) fn has_cuda_graphs() -> bool {
    static DEFAULT: OnceLock<bool> = OnceLock::new();
    scope().cuda_graphs.unwrap_or_else(|| *DEFAULT.get_or_init(|| is_on(CUDA_GRAPHS, true)))
}

/// Whether each launch on a GPU is waited for.
pub(crate) fn is_launch_blocking() -> bool {
    static DEFAULT: OnceLock<bool> = OnceLock::new();
    // What CUDA's own variable may be is CUDA's to say.
    let by_cuda = || text("CUDA_LAUNCH_BLOCKING").and_then(|value| on_or_off(&value)) == Some(true);
    let default = || is_on(LAUNCH_BLOCKING, false) || by_cuda();
    scope().launch_blocking.unwrap_or_else(|| *DEFAULT.get_or_init(default))
}

/// Whether libraries do what they are better at than kernels.
pub(crate) fn has_libraries() -> bool {
    static DEFAULT: OnceLock<bool> = OnceLock::new();
    scope().libraries.unwrap_or_else(|| *DEFAULT.get_or_init(|| is_on(LIBRARIES, true)))
}

/// Whether profilers are told of evaluations and launches.
#[cfg(feature = "cuda")]
pub(crate) fn has_nvtx() -> bool {
    is_on(NVTX, false)
}

/// Whether a line tells of kernels that take long to compile.
pub(crate) fn has_progress() -> bool {
    static DEFAULT: OnceLock<bool> = OnceLock::new();
    scope().progress.unwrap_or_else(|| *DEFAULT.get_or_init(|| is_on(PROGRESS, true)))
}

/// How much is said on standard error.
pub(crate) fn debug_level() -> u8 {
    static DEFAULT: OnceLock<u8> = OnceLock::new();
    let default = || value(DEBUG, "`off` or a number from 1 to 5", debug_level_of).unwrap_or(0);
    scope().debug.unwrap_or_else(|| *DEFAULT.get_or_init(default))
}

/// A level of messages as people write it: what is on alone is the first one.
fn debug_level_of(text: &str) -> Option<u8> {
    let number = || text.parse().ok().filter(|level| *level <= MOST_DEBUG);
    on_or_off(text).map(u8::from).or_else(number)
}

/// What the number of threads is limited to; 0 before it is known.
static MOST_THREADS: AtomicU64 = AtomicU64::new(0);

/// The most threads that a kernel of this thread's may have.
pub(crate) fn most_threads() -> u64 {
    if let Some(most) = scope().most_threads {
        return most;
    }
    match MOST_THREADS.load(Ordering::Relaxed) {
        0 => {
            // Nobody installs another one meanwhile.
            let mut store = store();
            let parse = |text: &str| text.parse().ok().filter(|&number| number > 0);
            let number = understood(THREADS, store.variable(THREADS), "a number of threads", parse);
            let most = number.as_ref().ok().copied().flatten().unwrap_or(u64::MAX);
            MOST_THREADS.store(most, Ordering::Relaxed);
            drop(store);
            number.map_or_else(|warning| stderr::warn(&warning), drop);
            most
        }
        most => most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_nest_and_end() {
        let before = most_threads();
        let inner =
            || Settings::new().fusion(true).num_threads(0).scope(|| (most_threads(), scope())).unwrap();
        let settings = Settings::new().num_threads(7).fusion(false).debug(3);
        let (own, inner) = settings.scope(|| (most_threads(), inner())).unwrap();
        assert_eq!((own, inner.0, inner.1.fusion, inner.1.debug), (7, 1, Some(true), Some(3)));
        assert_eq!((most_threads(), scope()), (before, Scope::default()));
        let caught = std::panic::catch_unwind(|| settings.scope(|| std::panic::resume_unwind(Box::new(()))));
        assert!(caught.is_err() && scope() == Scope::default());
        let refused = settings.clone().cache_limit(1).scope(|| ()).unwrap_err();
        assert!(refused.to_string().contains("LAZULI_CACHE_LIMIT is of the whole process"), "{refused}");
        let elsewhere = settings.scope(|| std::thread::spawn(scope).join().unwrap()).unwrap();
        assert_eq!(elsewhere, Scope::default());
    }

    #[test]
    fn levels_of_messages_are_a_switch_or_a_number() {
        let levels =
            ["off", "NO", "false", "0", "on", "1", "5", "6", "-1", "x", "256", "2.0"].map(debug_level_of);
        let off = Some(0);
        assert_eq!(levels, [off, off, off, off, Some(1), Some(1), Some(5), None, None, None, None, None]);
        assert_eq!(Settings::new().debug(200), Settings::new().debug(5));
    }

    #[test]
    fn what_is_installed_takes_the_place_of_variables_until_they_are_read() {
        let mut store = Store { installed: BTreeMap::new(), read: BTreeSet::new() };
        store.install(Settings::new().cache(false).debug(2).variables).unwrap();
        store.install(Settings::new().cache(true).num_threads(0).variables).unwrap();
        assert_eq!(store.variable("LAZULI_CACHE"), Some("on".into()));
        assert_eq!(store.variable(THREADS), Some("1".into()));
        assert_eq!(store.variable("PATH"), std::env::var_os("PATH"));
        let late = Settings::new().num_threads(3).debug(1).cache(false);
        assert_eq!(store.install(late.variables), Err("LAZULI_CACHE"));
        assert_eq!(store.variable("LAZULI_DEBUG"), Some("2".into()), "all or nothing");
        store.install(Settings::new().num_threads(3).cache(true).variables).unwrap();
        assert_eq!(store.variable(THREADS), Some("3".into()));
    }
}
