//! Kernels that were measured, and what tells them apart.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lazuli_codegen::ir::{AxisKind, Kernel};
use lazuli_codegen::schedule::Schedule;
use xxhash_rust::xxh3::xxh3_64;

use super::chosen::{Chosen, Place};
use crate::Scalar;

/// Schedules of kernels that were measured to be the fastest on some devices, and kernels that are faster as several; made by
/// [`tune`](crate::tune()). With it, nothing is measured: a kernel that it knows, of the same sizes and on the same device, has
/// the schedule that it says, or is cut where it says, and all others have their default.
///
/// It is a text that people can read, review and commit; its [`Display`](fmt::Display) and [`FromStr`](std::str::FromStr)
/// give and take it. `LAZULI_TUNING` names a file that holds for the process.
///
/// Another schedule or a cut changes no elementwise result. Sums and products of floats are added up in another order, so that they may
/// differ by a rounding from those of the default schedule; with the same tuning they are the same each time.
///
/// ```
/// use lazuli::{Tensor, Tuner, Tuning};
/// # let folder = tempfile::tempdir().unwrap();
/// let file = folder.path().join("tuning.txt");
/// let x = Tensor::rand([64, 100], 1);
/// x.eval()?;
/// let tuner = Tuner::new().time_limit(std::time::Duration::from_millis(200));
/// let (_, tuning) = tuner.run(|| x.softmax(1).eval())?;
/// tuning.save(&file)?;
///
/// let tuning = Tuning::load(&file)?;
/// let explanation = tuning.scope(|| x.softmax(1).explain())?; // or `tuning.install()`, for all threads
/// assert_eq!(explanation.kernels(), 1);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Tuning {
    /// By device and kernel.
    pub(super) kernels: Arc<BTreeMap<(String, Key), TunedKernel>>,
}

/// What tells kernels apart: name and extents, and a hash of all the rest.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Key {
    pub(super) name: String,
    pub(super) extents: String,
    pub(super) hash: u64,
}

/// What was measured of a kernel on a device; of a [`Tuning`].
///
/// ```
/// use lazuli::Tuning;
/// let tuning: Tuning = "\
/// lazuli tuning 1
///
/// device A processor, 2 threads
///
/// kernel sum_f32 8c6a8d8d4fba1c1e
///   extents i0=4096 r0=1000
///   default row_reduce(threads_per_row=16, rows_per_block=8, vec=1) 812.400 us
///   fastest row_reduce(threads_per_row=64, rows_per_block=8, vec=1) 406.200 us
/// "
/// .parse()?;
/// let kernel = &tuning.kernels()[0];
/// assert_eq!((kernel.name(), kernel.device(), kernel.gain()), ("sum_f32", "A processor, 2 threads", 2.0));
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct TunedKernel {
    pub(super) device: String,
    pub(super) key: Key,
    pub(super) default: Schedule,
    pub(super) default_time: Duration,
    pub(super) fastest: Chosen,
    pub(super) time: Duration,
}

impl TunedKernel {
    pub(crate) fn new(
        device: String,
        key: Key,
        (default, default_seconds): (Schedule, f64),
        (fastest, seconds): (Chosen, f64),
    ) -> TunedKernel {
        let time = |seconds: f64| Duration::from_nanos((seconds.max(0.0) * 1e9).round() as u64);
        TunedKernel {
            device,
            key,
            default,
            default_time: time(default_seconds),
            fastest,
            time: time(seconds),
        }
    }

    /// The device that it was measured on, in words.
    ///
    /// ```
    /// # let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/tuned/example.txt"));
    /// # let tuning: lazuli::Tuning = text.parse()?;
    /// assert_eq!(tuning.kernels()[0].device(), "A processor, 2 threads");
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The kernel's name, as in its source.
    ///
    /// ```
    /// # let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/tuned/example.txt"));
    /// # let tuning: lazuli::Tuning = text.parse()?;
    /// assert_eq!(tuning.kernels()[0].name(), "sum_f32");
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.key.name
    }

    /// The extents of its axes, such as `i0=4096 r0=1000`.
    ///
    /// ```
    /// # let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/tuned/example.txt"));
    /// # let tuning: lazuli::Tuning = text.parse()?;
    /// assert_eq!(tuning.kernels()[0].extents(), "i0=4096 r0=1000");
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn extents(&self) -> &str {
        &self.key.extents
    }

    /// The schedule that it has without tuning, when it was measured.
    ///
    /// ```
    /// # let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/tuned/example.txt"));
    /// # let tuning: lazuli::Tuning = text.parse()?;
    /// assert!(tuning.kernels()[0].default_schedule().contains("threads_per_row=16"));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn default_schedule(&self) -> String {
        self.default.to_string()
    }

    /// The schedule that it has with it: the same, if no other one was clearly faster. Or `cut below exp f32 [4096, 1000]` if it
    /// was faster as several kernels, because one stores these exponentials and others read them; `cut beside …` where a value is
    /// stored by a kernel of its own.
    ///
    /// ```
    /// # let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/tuned/example.txt"));
    /// # let tuning: lazuli::Tuning = text.parse()?;
    /// assert!(tuning.kernels()[0].schedule().contains("threads_per_row=64"));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn schedule(&self) -> String {
        self.fastest.to_string()
    }

    /// How long a launch took under the default schedule, and how long it took under the fastest, or all launches of a cut.
    ///
    /// ```
    /// # let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/tuned/example.txt"));
    /// # let tuning: lazuli::Tuning = text.parse()?;
    /// let (default, fastest) = tuning.kernels()[0].times();
    /// assert_eq!((default.as_nanos(), fastest.as_nanos()), (812_400, 406_200));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn times(&self) -> (Duration, Duration) {
        (self.default_time, self.time)
    }

    /// How many times as fast it is; 1 where the default stays.
    ///
    /// ```
    /// # let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/tuned/example.txt"));
    /// # let tuning: lazuli::Tuning = text.parse()?;
    /// assert_eq!(tuning.kernels()[0].gain(), 2.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn gain(&self) -> f64 {
        match self.is_default() {
            true => 1.0,
            false => self.default_time.as_secs_f64() / self.time.as_secs_f64().max(1e-9),
        }
    }

    pub(crate) fn is_default(&self) -> bool {
        self.fastest == Chosen::Under(self.default)
    }

    /// The schedule, if it is faster as one kernel.
    pub(crate) fn schedule_given(&self) -> Option<Schedule> {
        match self.fastest {
            Chosen::Under(schedule) => Some(schedule),
            Chosen::Cut(_) => None,
        }
    }

    /// Where it is cut, if it is.
    pub(crate) fn place(&self) -> Option<&Place> {
        match &self.fastest {
            Chosen::Cut(place) => Some(place),
            Chosen::Under(_) => None,
        }
    }

    /// For `explain`: what the kernel runs under, and what came of it.
    pub(crate) fn remark(&self, emitted: Schedule) -> String {
        let [before, now] = [self.default_time, self.time].map(|time| format!("{:.1} µs", micros(time)));
        match () {
            () if self.schedule_given() != Some(emitted) => {
                format!("not so: {} is not for this kernel any more", self.fastest)
            }
            () if self.is_default() => format!("no other schedule was clearly faster ({now})"),
            () => format!("{:.2} times as fast ({now}) as {} ({before})", self.gain(), self.default),
        }
    }
}

impl TunedKernel {
    /// For `explain`: why it is several kernels.
    pub(crate) fn reason(&self) -> String {
        let [one, several] = [self.default_time, self.time].map(micros);
        let gain = self.gain();
        format!(
            "tuned: {}, {gain:.2} times as fast ({several:.1} µs) as one kernel ({one:.1} µs)",
            self.fastest
        )
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

impl Tuning {
    pub(crate) fn new(kernels: impl IntoIterator<Item = TunedKernel>) -> Tuning {
        let by_key = |kernel: TunedKernel| ((kernel.device.clone(), kernel.key.clone()), kernel);
        Tuning { kernels: Arc::new(kernels.into_iter().map(by_key).collect()) }
    }

    /// What it knows, by device, name and extents.
    ///
    /// ```
    /// for kernel in lazuli::Tuning::default().kernels() {
    ///     println!("{}: {} is {:.2} times as fast", kernel.name(), kernel.schedule(), kernel.gain());
    /// }
    /// ```
    pub fn kernels(&self) -> Vec<TunedKernel> {
        self.kernels.values().cloned().collect()
    }

    /// Whether nothing was measured.
    ///
    /// ```
    /// assert!(lazuli::Tuning::default().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.kernels.is_empty()
    }

    /// Both; where both know a kernel, what `newer` says.
    ///
    /// ```
    /// use lazuli::Tuning;
    /// let (a, b) = (Tuning::default(), Tuning::default());
    /// assert!(a.and(&b).is_empty());
    /// ```
    #[must_use]
    pub fn and(&self, newer: &Tuning) -> Tuning {
        Tuning::new(self.kernels.values().chain(newer.kernels.values()).cloned())
    }

    /// Whether the kernel was measured on the device.
    pub(crate) fn knows(&self, device: &str, key: &Key) -> bool {
        self.kernels.contains_key(&(device.to_owned(), key.clone()))
    }
}

/// The kernel without the values that are no part of its text: what is equal has the same schedule.
pub(crate) fn normalised(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    for argument in &mut kernel.arguments {
        // The text has the argument's name and type.
        argument.value = Scalar::from_i64(argument.value.dtype(), 0);
    }
    for axis in &mut kernel.axes {
        if let AxisKind::Offset { number } = &mut axis.kind {
            *number = 0;
        }
    }
    kernel
}

impl Key {
    /// Of a kernel that is [`normalised`].
    pub(crate) fn of(kernel: &Kernel) -> Key {
        let is_loop = |kind: AxisKind| matches!(kind, AxisKind::Map | AxisKind::Reduce);
        let axes = kernel.axes.iter().filter(|axis| is_loop(axis.kind));
        let extents: Vec<String> = axes.map(|axis| format!("{}={}", axis.name, axis.extent)).collect();
        let hash = xxh3_64(kernel.to_string().as_bytes());
        Key { name: kernel.name.clone(), extents: extents.join(" "), hash }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn extents(&self) -> &str {
        &self.extents
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:016x}", self.name, self.hash)
    }
}
