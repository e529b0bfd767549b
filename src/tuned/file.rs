//! A tuning as text.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use super::chosen::Chosen;
use super::measured::{Key, TunedKernel, Tuning};
use crate::{Error, Result};

/// What a text begins with. Another number is of another form.
const HEADER: &str = "lazuli tuning 1";

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        writeln!(
            f,
            "# Kernels that were measured beside their default schedules, under others and cut in several."
        )?;
        let mut device = None;
        for kernel in self.kernels.values() {
            if device != Some(&kernel.device) {
                writeln!(f, "\ndevice {}", kernel.device)?;
                device = Some(&kernel.device);
            }
            writeln!(f, "\nkernel {}", kernel.key)?;
            writeln!(f, "  extents {}", kernel.key.extents)?;
            writeln!(f, "  default {} {}", kernel.default, Time(kernel.default_time))?;
            writeln!(f, "  fastest {} {}", kernel.fastest, Time(kernel.time))?;
        }
        Ok(())
    }
}

/// All of its digits, so that a text reads back to the same.
struct Time(Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        write!(f, "{}.{:03} us", nanos / 1000, nanos % 1000)
    }
}

impl FromStr for Tuning {
    type Err = Error;

    /// ```
    /// use lazuli::Tuning;
    /// let tuning: Tuning = "lazuli tuning 1\n".parse()?;
    /// assert!(tuning.is_empty());
    /// let error = "lazuli tuning 1\nkernel sum_f32".parse::<Tuning>().unwrap_err();
    /// assert_eq!(error.to_string(), "could not read a tuning: line 2: expected a device before its kernels");
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] with the first line that is none of a tuning's.
    fn from_str(text: &str) -> Result<Tuning> {
        parse(text).map_err(|message| damaged("a tuning", message))
    }
}

fn damaged(path: &str, message: String) -> Error {
    Error::Io { action: "read", path: path.to_owned(), message, source: None }
}

impl Tuning {
    /// The tuning in a file.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// let file = folder.path().join("tuning.txt");
    /// lazuli::Tuning::default().save(&file)?;
    /// assert!(lazuli::Tuning::load(&file)?.is_empty());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, or with the first line that is none of a tuning's.
    pub fn load(path: impl AsRef<Path>) -> Result<Tuning> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
        parse(&text).map_err(|message| damaged(&path.display().to_string(), message))
    }

    /// Writes the file, and takes the place of what was there.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// lazuli::Tuning::default().save(folder.path().join("tuning.txt"))?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let failed = |error| Error::io("write", path, error);
        // Whoever reads meanwhile finds the old file or the new one.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        std::fs::write(file.path(), self.to_string()).map_err(failed)?;
        #[cfg(unix)]
        {
            // A temporary file is nobody else's; this one is to be shared.
            use std::os::unix::fs::PermissionsExt;
            let readable = std::fs::Permissions::from_mode(0o644);
            std::fs::set_permissions(file.path(), readable).map_err(failed)?;
        }
        file.persist(path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

/// The lines that say something, with their numbers.
struct Lines<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    number: usize,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<&'a str> {
        for (number, line) in self.lines.by_ref() {
            self.number = number + 1;
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                return Some(line);
            }
        }
        self.number += 1;
        None
    }

    fn error(&self, what: impl fmt::Display) -> String {
        format!("line {}: {what}", self.number)
    }

    /// What follows a word at the beginning of the next line.
    fn after(&mut self, word: &str) -> Result<&'a str, String> {
        let line = self.next();
        let rest = line.and_then(|line| line.strip_prefix(word));
        rest.map(str::trim).ok_or_else(|| self.error(format!("expected `{}`", word.trim())))
    }

    /// `row_reduce(…) 812.400 us`, after a word.
    fn measured(&mut self, word: &str) -> Result<(Chosen, Duration), String> {
        let line = self.after(word)?;
        let (chosen, time) =
            line.strip_suffix(" us").and_then(|line| line.rsplit_once(' ')).ok_or_else(|| {
                self.error("expected a schedule and a time in microseconds, such as `… 812.400 us`")
            })?;
        let chosen = chosen.parse().map_err(|error: String| self.error(error))?;
        let nanos =
            nanos(time).ok_or_else(|| self.error(format!("`{time}` is no number of microseconds")))?;
        Ok((chosen, Duration::from_nanos(nanos)))
    }
}

fn nanos(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.is_empty() || part.len() > 3 {
        return None;
    }
    let part: u64 = format!("{part:0<3}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(part)
}

fn parse(text: &str) -> Result<Tuning, String> {
    let mut lines = Lines { lines: text.lines().enumerate(), number: 0 };
    match lines.next() {
        Some(HEADER) => {}
        Some(other) if other.starts_with("lazuli tuning ") => {
            return Err(
                lines.error(format!("`{other}` is another form of file than this version's, `{HEADER}`"))
            );
        }
        _ => return Err(lines.error(format!("expected `{HEADER}`"))),
    }
    let mut device: Option<String> = None;
    let mut kernels: Vec<TunedKernel> = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("device ") {
            device = Some(name.trim().to_owned());
            continue;
        }
        let Some(kernel) = line.strip_prefix("kernel ") else {
            return Err(lines.error(format!("expected `device` or `kernel`, found `{line}`")));
        };
        let Some(device) = device.clone() else {
            return Err(lines.error("expected a device before its kernels"));
        };
        let key = kernel.trim().split_once(' ').and_then(|(name, hash)| {
            let hash = hash.trim();
            let hash = if hash.len() == 16 { u64::from_str_radix(hash, 16).ok()? } else { return None };
            Some((name.to_owned(), hash))
        });
        let Some((name, hash)) = key else {
            return Err(lines.error("expected a kernel's name and its 16 hexadecimal digits"));
        };
        let extents = lines.after("extents")?.to_owned();
        let (default, default_time) = lines.measured("default ")?;
        let Chosen::Under(default) = default else {
            return Err(lines.error("a cut is no default: expected a schedule"));
        };
        let (fastest, time) = lines.measured("fastest ")?;
        let key = Key { name, extents, hash };
        if kernels.iter().any(|other| other.device == device && other.key == key) {
            return Err(lines.error(format!("kernel {key} is there twice")));
        }
        kernels.push(TunedKernel { device, key, default, default_time, fastest, time });
    }
    Ok(Tuning::new(kernels))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
lazuli tuning 1
# Kernels that were measured beside their default schedules, under others and cut in several.

device A, 2 threads

kernel exp_f32 00000000000000ff
  extents i0=1000
  default pointwise(elements_per_block=16384) 12.040 us
  fastest pointwise(elements_per_block=4096) 6.020 us

kernel sum_f32 8c6a8d8d4fba1c1e
  extents i0=4096 r0=1000
  default row_reduce(threads_per_row=16, rows_per_block=8, vec=1) 812.400 us
  fastest row_reduce(threads_per_row=16, rows_per_block=8, vec=1) 812.400 us

device B

kernel exp_sum_f32 0000000000000002
  extents i0=64 r0=1000
  default row_reduce(threads_per_row=16, rows_per_block=8, vec=1) 9.000 us
  fastest cut below exp f32 [64, 1000] #2 6.000 us

kernel sum_f32 0000000000000001
  extents\x20
  default pointwise(threads=256, vec=4) 1.000 us
  fastest pointwise(threads=128, vec=4) 0.500 us
";

    #[test]
    fn texts_read_back() {
        let tuning: Tuning = TEXT.parse().unwrap();
        assert_eq!(tuning.to_string(), TEXT);
        let gains: Vec<f64> = tuning.kernels().iter().map(TunedKernel::gain).collect();
        assert_eq!(gains, [2.0, 1.0, 1.5, 2.0]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        tuning.save(&path).unwrap();
        assert_eq!(Tuning::load(&path).unwrap(), tuning);
        let by_hand = TEXT.replace("12.040 us", "12.04 us").replace("\n\n", "\n\n# a remark\n");
        assert_eq!(by_hand.parse::<Tuning>().unwrap(), tuning);
    }

    #[test]
    fn newer_measurements_take_the_place_of_older_ones() {
        let older: Tuning = TEXT.parse().unwrap();
        let newer: Tuning = TEXT.replace("6.020 us", "3.010 us").parse().unwrap();
        assert_eq!(older.and(&newer), newer);
        assert_eq!(newer.and(&older), older);
        assert_eq!(Tuning::default().and(&older), older);
    }

    #[test]
    fn damaged_texts_are_errors_that_say_where() {
        let changed = |from: &str, to: &str| {
            let text = TEXT.replacen(from, to, 1);
            assert_ne!(text, TEXT);
            text.parse::<Tuning>().unwrap_err().to_string()
        };
        for (from, to, error) in [
            ("lazuli tuning 1", "", "line 4: expected `lazuli tuning 1`"),
            (
                "tuning 1",
                "tuning 7",
                "line 1: `lazuli tuning 7` is another form of file than this version's, `lazuli tuning 1`",
            ),
            ("device A, 2 threads", "", "line 6: expected a device before its kernels"),
            ("00ff", "", "line 6: expected a kernel's name and its 16 hexadecimal digits"),
            (
                "12.040 us",
                "12.040",
                "line 8: expected a schedule and a time in microseconds, such as `… 812.400 us`",
            ),
            ("12.040", "1e3", "line 8: `1e3` is no number of microseconds"),
            ("  extents i0=1000\n", "", "line 7: expected `extents`"),
            (
                "fastest pointwise(elements_per_block=4096)",
                "fastest pointwise(elements_per_block=0)",
                "line 9: `pointwise(elements_per_block=0)` is no schedule: line 1, column 30: elements_per_block is at least 1",
            ),
            (
                "cut below exp f32 [64, 1000] #2",
                "cut below exp f32 [64, 1000",
                "line 21: `cut below exp f32 [64, 1000` is no cut, such as `cut below exp f32 [4096, 1000]`",
            ),
            (
                "default pointwise(threads=256, vec=4)",
                "default cut beside sum f32 []",
                "line 25: a cut is no default: expected a schedule",
            ),
            ("device B", "<<<<<<<", "line 16: expected `device` or `kernel`, found `<<<<<<<`"),
        ] {
            assert_eq!(changed(from, to), format!("could not read a tuning: {error}"));
        }
        let cut = TEXT.split("  fastest").next().unwrap().parse::<Tuning>().unwrap_err();
        assert!(cut.to_string().ends_with("line 9: expected `fastest`"), "{cut}");
        let twice = format!("{TEXT}{}", TEXT.split_once("device B").unwrap().1);
        assert!(twice.parse::<Tuning>().unwrap_err().to_string().contains("is there twice"));
        let missing = Tuning::load("/nowhere/tuning.txt").unwrap_err();
        assert!(missing.to_string().starts_with("could not read /nowhere/tuning.txt: "), "{missing}");
    }
}
