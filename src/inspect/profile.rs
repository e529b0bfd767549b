//! Where the time of an evaluation goes, by kernel.

use std::fmt;
use std::path::Path;
use std::time::Instant;

use indexmap::{IndexMap, IndexSet};
use serde_json::{Value, json};

use crate::compiler::explain;
use crate::executor::timing::{self, Launched, Noted, Work};
use crate::{Device, Error, Result};

/// Runs a closure, and tells where its time went: which kernels this thread launched, how long they took, and how fast they
/// moved their bytes. Each kernel is waited for before the next, so on a GPU the whole takes longer than without.
///
/// ```
/// use lazuli::{Tensor, profile};
/// let x = Tensor::rand([256, 1000], 1);
/// x.eval()?;
/// let (result, profile) = profile(|| x.softmax(1).eval());
/// result?;
/// assert_eq!(profile.kernels().len(), 1);
/// assert_eq!(profile.kernels()[0].launches, 1);
/// println!("{profile}");
/// # Ok::<(), lazuli::Error>(())
/// ```
pub fn profile<T>(f: impl FnOnce() -> T) -> (T, Profile) {
    let start = Instant::now();
    let (result, noted) = timing::of_kernels(f);
    let seconds = start.elapsed().as_secs_f64();
    let mut kernels: IndexMap<(Device, String, String), KernelTime> = IndexMap::new();
    for kernel in &noted.launched {
        let key = (kernel.device, kernel.name.clone(), kernel.schedule.clone());
        let entry = kernels.entry(key).or_insert_with_key(|(device, name, schedule)| KernelTime {
            device: *device,
            name: name.clone(),
            schedule: schedule.clone(),
            operations: kernel.operations.clone(),
            launches: 0,
            bytes: 0,
            flops: 0,
            seconds: 0.0,
            share_of_copy: None,
            registers: kernel.occupancy.map(|(registers, _)| registers),
            occupancy: None,
        });
        entry.launches += kernel.launches;
        entry.bytes += kernel.bytes;
        entry.flops += kernel.flops;
        entry.seconds += kernel.seconds;
        if let Some((_, share)) = kernel.occupancy {
            entry.occupancy = Some(entry.occupancy.unwrap_or(1.0).min(share));
        }
    }
    let mut kernels: Vec<KernelTime> = kernels.into_values().collect();
    kernels.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    (result, Profile { kernels, start, noted, seconds })
}

/// Where time went, kernel by kernel; it prints as a table. Made by [`profile`].
///
/// ```
/// use lazuli::{Tensor, profile};
/// let x = Tensor::rand([1000], 1);
/// let (sum, profile) = profile(|| (&x * 2.0).sum(0).item::<f32>());
/// assert!(sum? > 0.0);
/// assert!(profile.seconds_in_kernels() <= profile.seconds());
/// assert!(profile.to_string().contains("GB/s"));
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Profile {
    pub(crate) kernels: Vec<KernelTime>,
    start: Instant,
    noted: Noted,
    seconds: f64,
}

/// What all launches of a kernel took together.
///
/// ```
/// use lazuli::{Tensor, profile};
/// let x = Tensor::rand([1000], 1);
/// x.eval()?;
/// let (_, profile) = profile(|| (0..3).try_for_each(|_| (&x * 2.0).eval()));
/// let kernel = profile.kernels().iter().find(|kernel| kernel.name.starts_with("mul")).expect("a product");
/// assert_eq!((kernel.launches, kernel.bytes), (3, 3 * 8000));
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KernelTime {
    /// Where it ran.
    pub device: Device,
    /// Its name, as in its source.
    pub name: String,
    /// Its schedule, in words.
    pub schedule: String,
    /// The operations whose results it gives, with their lines; of kernels that several lines share, those of the first.
    pub operations: String,
    /// How often something was launched for it, as [`stats`](crate::stats()) counts: once a run, or twice for long reductions and
    /// scans that are split; several small kernels in one launch are one.
    pub launches: u64,
    /// The bytes that its inputs and results have, together.
    pub bytes: u64,
    /// The multiplications and additions of its products of matrices and of windows; nothing else counts.
    pub flops: u64,
    /// Its time: on a GPU by the device's own clock, else with launching.
    pub seconds: f64,
    /// How fast it moves its bytes, as a share of how fast a copy of memory does; from [`Profile::beside_copies`] on.
    pub share_of_copy: Option<f64>,
    /// On a GPU, the registers of a thread.
    pub registers: Option<u32>,
    /// On a GPU, the threads of one multiprocessor that run at once, as a share of the most that it can have (0 to 1); of
    /// launches that differ, the least.
    pub occupancy: Option<f64>,
}

impl KernelTime {
    /// Its bytes in a second, in 10^9.
    ///
    /// ```
    /// use lazuli::{Tensor, profile};
    /// let x = Tensor::rand([1000], 1);
    /// let (_, profile) = profile(|| (&x * 2.0).eval());
    /// assert!(profile.kernels().iter().all(|kernel| kernel.gigabytes_per_second() > 0.0));
    /// ```
    pub fn gigabytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.seconds.max(1e-12) / 1e9
    }

    /// The multiplications and additions of its products in a second, in 10^9.
    ///
    /// ```
    /// use lazuli::{Tensor, profile};
    /// let x = Tensor::rand([64, 64], 1);
    /// x.eval()?;
    /// let (_, profile) = profile(|| x.matmul(&x).relu().eval());
    /// assert_eq!(profile.kernels()[0].flops, 2 * 64 * 64 * 64);
    /// assert!(profile.kernels()[0].gigaflops_per_second() > 0.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn gigaflops_per_second(&self) -> f64 {
        self.flops as f64 / self.seconds.max(1e-12) / 1e9
    }
}

impl Profile {
    /// The kernels, those first that took the longest.
    ///
    /// ```
    /// let (_, profile) = lazuli::profile(|| ());
    /// assert!(profile.kernels().is_empty());
    /// ```
    pub fn kernels(&self) -> &[KernelTime] {
        &self.kernels
    }

    /// Every launch as an event of Chrome's trace format, one row for the whole and one for each device: for `chrome://tracing`,
    /// [Perfetto](https://ui.perfetto.dev) and the like. Times are in microseconds.
    ///
    /// ```
    /// use lazuli::{Tensor, profile};
    /// let (_, profile) = profile(|| Tensor::rand([1000], 1).sum(0).eval());
    /// let trace = profile.chrome_trace();
    /// assert!(trace.starts_with(r#"{"displayTimeUnit":"ms","traceEvents":["#));
    /// ```
    pub fn chrome_trace(&self) -> String {
        let microseconds = |seconds: f64| (seconds * 1e9).round() / 1e3;
        let devices: IndexSet<Device> = self.noted.launched.iter().map(|launched| launched.device).collect();
        let named = |row: usize, name: &str| json!({"ph": "M", "pid": 1, "tid": row, "name": "thread_name", "args": {"name": name}});
        let mut events = vec![named(0, "profile")];
        events.extend(devices.iter().enumerate().map(|(row, device)| named(row + 1, &device.to_string())));
        events.push(json!({
            "ph": "X", "pid": 1, "tid": 0, "ts": 0.0, "dur": microseconds(self.seconds),
            "name": "profile", "cat": "host",
        }));
        let event = |launched: &Launched| {
            let Launched { device, name, schedule, operations, launches, start, .. } = launched;
            let Launched { bytes, flops, seconds, occupancy, .. } = launched;
            let rate = |count: u64| count as f64 / seconds.max(1e-12) / 1e9;
            let row = devices.get_index_of(device).map_or(0, |row| row + 1);
            let since = start.saturating_duration_since(self.start).as_secs_f64();
            json!({
                "ph": "X", "pid": 1, "tid": row, "ts": microseconds(since), "dur": microseconds(*seconds),
                "name": name, "cat": "kernel",
                "args": {
                    "schedule": schedule, "operations": operations, "launches": launches, "bytes": bytes,
                    "GB/s": rate(*bytes), "GFLOP/s": (*flops > 0).then(|| rate(*flops)),
                    "registers": occupancy.map(|(registers, _)| registers),
                    "occupancy": occupancy.map(|(_, share)| share),
                },
            })
        };
        events.extend(self.noted.launched.iter().map(event));
        Value::to_string(&json!({"displayTimeUnit": "ms", "traceEvents": events}))
    }

    /// Writes [`Profile::chrome_trace`] to a file.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("trace.json");
    /// let (_, profile) = lazuli::profile(|| lazuli::Tensor::rand([10], 1).eval());
    /// profile.save_chrome_trace(&path)?;
    /// # assert!(path.exists());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Io`](Error::Io).
    pub fn save_chrome_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        std::fs::write(path, self.chrome_trace()).map_err(|error| Error::io("write", path, error))
    }

    /// The whole time, with planning and compiling.
    ///
    /// ```
    /// let (_, profile) = lazuli::profile(|| ());
    /// assert!(profile.seconds() >= 0.0);
    /// ```
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The time in kernels.
    ///
    /// ```
    /// let (_, profile) = lazuli::profile(|| ());
    /// assert_eq!(profile.seconds_in_kernels(), 0.0);
    /// ```
    pub fn seconds_in_kernels(&self) -> f64 {
        // The sum of no numbers would be -0.
        self.kernels.iter().fold(0.0, |sum, kernel| sum + kernel.seconds)
    }

    /// The time in which kernels were compiled, or found in the cache, and loaded.
    ///
    /// ```
    /// use lazuli::{Tensor, profile};
    /// let x = Tensor::rand([1000], 1);
    /// x.eval()?;
    /// let run = || profile(|| (&x * 3.0).tanh().eval()).1;
    /// let (first, second) = (run(), run());
    /// assert!(first.seconds_compiling() > 0.0);
    /// assert_eq!(second.seconds_compiling(), 0.0); // it was there
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn seconds_compiling(&self) -> f64 {
        self.noted.seconds(Work::Compiling)
    }

    /// The time in which an interpreter has computed: on the CPU where there is no C compiler, and on
    /// [`Device::interpreter`](crate::Device::interpreter) and its like.
    ///
    /// ```
    /// use lazuli::{Device, Tensor, profile};
    /// let x = Tensor::rand([1000], 1).to(&Device::interpreter());
    /// let (_, profile) = profile(|| x.sum(0).eval());
    /// assert!(profile.seconds_interpreting() > 0.0 && profile.kernels().is_empty());
    /// assert!(profile.to_string().contains(" interpreting"));
    /// ```
    pub fn seconds_interpreting(&self) -> f64 {
        self.noted.seconds(Work::Interpreting)
    }
}

/// A time with a unit that suits it.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let launches: u64 = self.kernels.iter().map(|kernel| kernel.launches).sum();
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let inside = self.seconds_in_kernels();
        write!(
            f,
            "{}: {} in {launches} launch{} of {} kernel{}",
            time(self.seconds),
            time(inside),
            if launches == 1 { "" } else { "es" },
            self.kernels.len(),
            plural(self.kernels.len() as u64),
        )?;
        let mut rest = self.seconds - inside;
        let others = [
            (Work::Compiling, "compiling and loading kernels"),
            (Work::Interpreting, "interpreting, without kernels"),
            (Work::Libraries, "in libraries"),
        ];
        for (work, words) in others {
            let seconds = self.noted.seconds(work);
            if seconds > 0.0 {
                rest -= seconds;
                write!(f, ", {} {words}", time(seconds))?;
            }
        }
        writeln!(f, ", {} besides (recording, planning, copying)", time(rest.max(0.0)))?;
        if self.kernels.is_empty() {
            return Ok(());
        }
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        // A column of its own where any kernel has such a number.
        type Column<'a> = (&'static str, &'a dyn Fn(&KernelTime) -> Option<String>);
        let gigaflops = |kernel: &KernelTime| format!("{:.1}", kernel.gigaflops_per_second());
        let columns: [Column; 4] = [
            ("GFLOP/s", &|kernel| (kernel.flops > 0).then(|| gigaflops(kernel))),
            ("of copy", &|kernel| kernel.share_of_copy.map(percent)),
            ("registers", &|kernel| kernel.registers.map(|registers| registers.to_string())),
            ("occupancy", &|kernel| kernel.occupancy.map(percent)),
        ];
        let columns = columns.into_iter().filter(|(_, of)| self.kernels.iter().any(|own| of(own).is_some()));
        let columns: Vec<Column> = columns.collect();
        let heads: String = columns.iter().map(|(head, _)| format!(" {head:>9}")).collect();
        writeln!(
            f,
            "\n{:>10} {:>6} {:>9} {:>10} {:>7}{heads}  kernel",
            "time", "share", "launches", "bytes", "GB/s",
        )?;
        for kernel in &self.kernels {
            let numbers: String =
                columns.iter().map(|(_, of)| format!(" {:>9}", of(kernel).unwrap_or_default())).collect();
            writeln!(
                f,
                "{:>10} {:>6} {:>9} {:>10} {:>7.1}{numbers}  {} on {}: {}; {}",
                time(kernel.seconds),
                percent(kernel.seconds / inside.max(1e-12)),
                kernel.launches,
                explain::bytes(kernel.bytes),
                kernel.gigabytes_per_second(),
                kernel.name,
                kernel.device,
                kernel.schedule,
                kernel.operations,
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Tensor};

    #[test]
    fn launches_of_one_kernel_are_one_row() {
        let small = Tensor::ones([10], DType::F32);
        let large = Tensor::ones([1 << 20], DType::F32);
        crate::eval([&small, &large]).unwrap();
        let (result, profile) = profile(|| {
            (2..6).try_for_each(|n| (&small * f64::from(n)).eval()).and_then(|()| large.exp().sin().eval())
        });
        result.unwrap();
        assert!(profile.kernels().is_sorted_by(|a, b| a.seconds >= b.seconds));
        let mut rows: Vec<_> =
            profile.kernels().iter().map(|k| (k.name.as_str(), k.launches, k.bytes)).collect();
        rows.sort();
        assert_eq!(rows, [("exp_sin_f32", 1, 8 << 20), ("mul_f32", 4, 4 * 80)]);
        assert!(profile.seconds_in_kernels() > 0.0 && profile.seconds_in_kernels() <= profile.seconds());
        assert_eq!(profile.to_string().lines().count(), 5);
        assert!(!timing::is_timing());
    }

    #[test]
    fn launches_are_those_that_are_planned() {
        let x = Tensor::ones([1 << 20], DType::F32);
        x.eval().unwrap();
        let (sum, empty) = (x.sum(..), x.slice(0, ..0) * 2.0);
        for (tensor, launches) in [(sum, 2), (empty, 0)] {
            assert_eq!(tensor.explain().unwrap().launches(), launches);
            let (result, profile) = profile(|| tensor.eval());
            result.unwrap();
            assert_eq!(profile.kernels().iter().map(|kernel| kernel.launches).sum::<u64>(), launches as u64);
        }
    }

    #[test]
    fn without_kernels_there_is_no_time_in_them() {
        let (_, nothing) = profile(|| ());
        assert!(nothing.seconds_in_kernels().is_sign_positive());
        assert!(nothing.to_string().contains(" 0.0 µs in 0 launches"), "{nothing}");
    }

    #[test]
    fn a_trace_has_every_launch_with_its_line() {
        let x = Tensor::ones([1000], DType::F32);
        x.eval().unwrap();
        let (result, profile) =
            profile(|| (2..5).try_for_each(|n| (&x * f64::from(n)).eval()).and_then(|()| x.sum(0).eval()));
        result.unwrap();
        let trace: Value = serde_json::from_str(&profile.chrome_trace()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let names: Vec<&str> = events.iter().map(|event| event["name"].as_str().unwrap()).collect();
        assert_eq!(
            names,
            ["thread_name", "thread_name", "profile", "mul_f32", "mul_f32", "mul_f32", "sum_f32"]
        );
        assert_eq!(events[1]["args"]["name"], "cpu");
        let (whole, launches) = (&events[2], &events[3..]);
        let mut end = 0.0;
        for launch in launches {
            let (start, length) = (launch["ts"].as_f64().unwrap(), launch["dur"].as_f64().unwrap());
            assert!(start >= end && length > 0.0, "{trace}");
            end = start + length - 0.002;
        }
        assert!(end <= whole["dur"].as_f64().unwrap());
        let of_sum = launches[3]["args"]["operations"].as_str().unwrap();
        assert!(of_sum.starts_with("sum, at src/inspect/profile.rs:"), "{of_sum}");
        assert_eq!(launches[0]["args"]["bytes"], 8000);
    }

    #[test]
    fn a_profile_in_a_profile_has_its_own_kernels() {
        let x = Tensor::ones([10], DType::F32);
        x.eval().unwrap();
        let (inner, outer) = profile(|| {
            (&x + 1.0).eval().unwrap();
            profile(|| (&x * 2.0).eval().unwrap()).1
        });
        assert_eq!(inner.kernels().iter().map(|k| k.name.as_str()).collect::<Vec<_>>(), ["mul_f32"]);
        assert_eq!(outer.kernels().iter().map(|k| k.name.as_str()).collect::<Vec<_>>(), ["add_f32"]);
    }
}
