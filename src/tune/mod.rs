//! Measures the kernels of a program under other schedules than the default ones, and cut in several.

mod bench;
mod search;

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bench::{Clock, KernelBench, Way};
use search::{Found, search};

use crate::executor::trial::{self, Noted};
use crate::tuned::{TunedKernel, Tuning, device_name};
use crate::{Error, Result};

/// Runs a program, and then measures each kernel that this thread has launched, on its device, with the data that it had there,
/// under its default schedule and others, and as several kernels, with one merge of fusion's undone. What is clearly faster is in
/// the [`Tuning`]. As [`Tuner::run`] of a new [`Tuner`].
///
/// ```
/// use lazuli::{Tensor, tune};
/// let x = Tensor::rand([100, 200], 1);
/// x.eval()?;
/// let (_, tuning) = tune(|| x.softmax(1).eval())?;
/// println!("{tuning}");
/// tuning.install(); // or `tuning.save("tuning.txt")`, and LAZULI_TUNING=tuning.txt
/// # lazuli::Tuning::default().install();
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// # Errors
/// The program's own.
pub fn tune<T>(program: impl FnOnce() -> Result<T>) -> Result<(T, Tuning)> {
    Tuner::new().run(program)
}

/// What is told while kernels are measured.
///
/// ```
/// use lazuli::{Tensor, Tuner};
/// let mut said = Vec::new();
/// let tuner = Tuner::new().time_limit(std::time::Duration::ZERO).progress(|progress| said.push(progress.to_string()));
/// tuner.run(|| Tensor::rand([100], 1).exp().eval())?;
/// assert_eq!(said[0], "0 of 1 kernels, rand_exp_f32 i0=100");
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TuningProgress {
    /// How many kernels are done.
    pub done: usize,
    /// How many there are.
    pub kernels: usize,
    /// The name of the one that is measured; empty at the end.
    pub name: String,
    /// The extents of its axes.
    pub extents: String,
    /// How many of its schedules and cuts have been compiled.
    pub tried: usize,
    /// How long all has taken.
    pub elapsed: Duration,
    /// How long it may take.
    pub time_limit: Duration,
}

impl fmt::Display for TuningProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} kernels", self.done, self.kernels)?;
        if !self.name.is_empty() {
            write!(f, ", {} {}", self.name, self.extents)?;
        }
        if self.tried > 0 {
            write!(f, ", {} tried", self.tried)?;
        }
        Ok(())
    }
}

/// Who is told.
type Listener<'a> = Box<dyn FnMut(&TuningProgress) + 'a>;

/// How a program is tuned: see [`tune`].
///
/// The candidates of a kernel, first schedules and then up to six cuts, are measured in turn, several times, and the fastest once
/// more beside the default: it is chosen if it is at least 5 % faster on the median and at best, and in nearly each pair of
/// measurements. Times are the least ones. Candidates whose results are not the default's, but for the rounding of sums, are left out.
///
/// ```
/// use std::time::Duration;
/// use lazuli::{Tensor, Tuner};
/// # let folder = tempfile::tempdir().unwrap();
/// # let file = folder.path().join("tuning.txt");
/// let x = Tensor::rand([100, 200], 1);
/// x.eval()?;
/// let tuner = || Tuner::new().time_limit(Duration::from_secs(1)).file(&file);
/// let (_, tuning) = tuner().run(|| x.softmax(1).eval())?; // measured, and written into the file
/// let (_, again) = tuner().run(|| x.softmax(1).eval())?; // known, from the file
/// assert_eq!(tuning, again);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[must_use = "a tuner does something when it runs a program"]
pub struct Tuner<'a> {
    time_limit: Duration,
    file: Option<PathBuf>,
    progress: Option<Listener<'a>>,
    clock: Option<Clock<'a>>,
}

impl fmt::Debug for Tuner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tuner").field("time_limit", &self.time_limit).field("file", &self.file).finish()
    }
}

impl Default for Tuner<'_> {
    fn default() -> Self {
        Tuner::new()
    }
}

/// How long measuring may take if nothing is said.
const TIME_LIMIT: Duration = Duration::from_secs(60);

impl<'a> Tuner<'a> {
    /// With a limit of a minute.
    ///
    /// ```
    /// assert!(format!("{:?}", lazuli::Tuner::new()).contains("60s"));
    /// ```
    pub fn new() -> Tuner<'a> {
        Tuner { time_limit: TIME_LIMIT, file: None, progress: None, clock: None }
    }

    /// How long measuring and compiling may take after the program has run. Kernels that take more of the program's time
    /// get more of it, and come first; of what is not measured the tuning says nothing.
    ///
    /// ```
    /// use std::time::Duration;
    /// let tuner = lazuli::Tuner::new().time_limit(Duration::from_secs(600));
    /// assert!(format!("{tuner:?}").contains("600s"));
    /// ```
    pub fn time_limit(mut self, limit: Duration) -> Tuner<'a> {
        self.time_limit = limit;
        self
    }

    /// A file whose kernels are known already, and that gets those that are measured now. It need not exist.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("tuning.txt");
    /// let (_, tuning) = lazuli::Tuner::new().file(&path).run(|| Ok(()))?;
    /// assert_eq!(lazuli::Tuning::load(&path)?, tuning);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn file(mut self, path: impl Into<PathBuf>) -> Tuner<'a> {
        self.file = Some(path.into());
        self
    }

    /// Calls `f` before each kernel, while its schedules are tried, and at the end.
    ///
    /// ```
    /// use lazuli::{Tensor, Tuner};
    /// let tuner = Tuner::new().time_limit(std::time::Duration::ZERO).progress(|progress| eprintln!("{progress}"));
    /// tuner.run(|| Tensor::rand([100], 1).exp().eval())?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn progress(mut self, f: impl FnMut(&TuningProgress) + 'a) -> Tuner<'a> {
        self.progress = Some(Box::new(f));
        self
    }

    /// For tests: `f` says how long a launch took, from the kernel's name, its schedule or cut, and the seconds that were measured.
    #[doc(hidden)]
    pub fn clock(mut self, f: impl FnMut(&str, &str, f64) -> f64 + 'a) -> Tuner<'a> {
        self.clock = Some(Box::new(f));
        self
    }

    /// Runs a program, and measures its kernels. It runs once; nothing is written over its inputs meanwhile, so that it takes more
    /// memory than otherwise. Kernels that several small ones share, and those of interpreters, have nothing to choose.
    ///
    /// ```
    /// use lazuli::{Tensor, Tuner};
    /// let w = Tensor::rand([64, 64], 1);
    /// let x = Tensor::rand([32, 64], 2);
    /// let tuner = Tuner::new().time_limit(std::time::Duration::from_millis(300));
    /// let (y, tuning) = tuner.run(|| x.matmul(&w).relu().to_vec::<f32>())?;
    /// assert_eq!(y.len(), 32 * 64);
    /// for kernel in tuning.kernels() {
    ///     println!("{} {}: {:.2}", kernel.name(), kernel.schedule(), kernel.gain());
    /// }
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// The program's own; [`Error::Io`] for a file that is damaged, or cannot be written.
    pub fn run<T>(mut self, program: impl FnOnce() -> Result<T>) -> Result<(T, Tuning)> {
        let known = self.known()?;
        let (result, noted) = trial::noted(program);
        let result = result?;
        let measured = self.measure(noted, &known);
        let tuning = known.and(&Tuning::new(measured));
        if let Some(path) = &self.file {
            tuning.save(path)?;
        }
        Ok((result, tuning))
    }

    /// What the file has.
    fn known(&self) -> Result<Tuning> {
        let Some(path) = &self.file else { return Ok(Tuning::default()) };
        match Tuning::load(path) {
            Err(Error::Io { source: Some(error), .. }) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Tuning::default())
            }
            loaded => loaded,
        }
    }

    fn measure(&mut self, noted: Vec<Noted>, known: &Tuning) -> Vec<TunedKernel> {
        let start = Instant::now();
        let mut names = Vec::new();
        let mut kernels: Vec<(String, Noted)> = Vec::new();
        for noted in noted {
            if !names.iter().any(|(device, _)| *device == noted.device) {
                names.push((noted.device, device_name(noted.device)));
            }
            let name = names.iter().find(|(device, _)| *device == noted.device);
            if let Some(name) = name.and_then(|(_, name)| name.clone())
                && !known.knows(&name, &noted.key)
            {
                kernels.push((name, noted));
            }
        }
        kernels.sort_by(|(_, a), (_, b)| b.seconds.total_cmp(&a.seconds));
        let count = kernels.len();
        let mut left: f64 = kernels.iter().map(|(_, noted)| noted.seconds).sum();
        let mut progress = TuningProgress {
            done: 0,
            kernels: count,
            name: String::new(),
            extents: String::new(),
            tried: 0,
            elapsed: Duration::ZERO,
            time_limit: self.time_limit,
        };
        let mut measured = Vec::new();
        for (done, (device, noted)) in kernels.into_iter().enumerate() {
            progress = TuningProgress {
                done,
                name: noted.key.name().to_owned(),
                extents: noted.key.extents().to_owned(),
                tried: 0,
                elapsed: start.elapsed(),
                ..progress
            };
            self.tell(&progress);
            let rest = self.time_limit.saturating_sub(start.elapsed());
            // Its share by its part of the time of all that are left, but no less than half of an equal share.
            let equal = 0.5 / (count - done) as f64;
            let share = rest.mul_f64((noted.seconds / left.max(1e-12)).clamp(equal, 1.0));
            left -= noted.seconds;
            measured.extend(self.measure_one(device, &noted, share, start, &mut progress));
        }
        let (name, extents) = (String::new(), String::new());
        self.tell(&TuningProgress {
            done: count,
            name,
            extents,
            tried: 0,
            elapsed: start.elapsed(),
            ..progress
        });
        measured
    }

    fn measure_one(
        &mut self,
        device: String,
        noted: &Noted,
        limit: Duration,
        start: Instant,
        progress: &mut TuningProgress,
    ) -> Option<TunedKernel> {
        let end = Instant::now() + limit;
        let mut tell = |tried: usize| {
            *progress = TuningProgress { tried, elapsed: start.elapsed(), ..progress.clone() };
            if let Some(f) = &mut self.progress {
                f(progress);
            }
        };
        let mut bench = KernelBench::new(noted, end, self.clock.as_mut(), &mut tell);
        let default = bench.default_schedule()?;
        let Found { way, seconds, default_seconds, .. } = search(&mut bench, Way::Under(default))?;
        let fastest = bench.chosen(way)?;
        Some(TunedKernel::new(device, noted.key.clone(), (default, default_seconds), (fastest, seconds)))
    }

    fn tell(&mut self, progress: &TuningProgress) {
        if let Some(f) = &mut self.progress {
            f(progress);
        }
    }
}
