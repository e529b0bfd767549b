//! Folders for the files of one run of a compiler. They go when they are dropped; what a killed process has left is
//! removed when another one makes its first.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

const PREFIX: &str = "lazuli-cc-";
/// A folder may be so old before its maker has locked it.
const YOUNG: Duration = Duration::from_secs(60);

/// A folder of this process alone.
pub(crate) struct Workshop {
    folder: TempDir,
    /// Held as long as the process lives, so that others know. Not where a file system has no locks.
    _lock: Option<File>,
}

impl Workshop {
    /// A new folder in one of [`places`].
    pub(crate) fn new(place: &Path) -> io::Result<Workshop> {
        static CLEARED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
        if CLEARED.lock().unwrap_or_else(PoisonError::into_inner).insert(place.to_owned()) {
            clear_up(place);
        }
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
        let lock = File::open(folder.path()).ok().filter(is_locked_by_us);
        Ok(Workshop { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Where a workshop can be, best first: the second one where the first is full or not to be written to.
pub(crate) fn places() -> Vec<PathBuf> {
    [Some(std::env::temp_dir()), dirs::cache_dir()].into_iter().flatten().collect()
}

#[cfg(unix)]
fn is_locked_by_us(folder: &File) -> bool {
    rustix::fs::flock(folder, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(not(unix))]
fn is_locked_by_us(_folder: &File) -> bool {
    false
}

/// Removes this user's folders that no process has locked any more.
fn clear_up(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) && is_left(&entry) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_left(entry: &fs::DirEntry) -> bool {
    // Not what a link leads to.
    let Ok(metadata) = entry.metadata() else { return false };
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::uid(&metadata) != rustix::process::geteuid().as_raw() {
        return false;
    }
    let made = metadata.modified().unwrap_or(SystemTime::now());
    metadata.is_dir()
        && SystemTime::now().duration_since(made).is_ok_and(|age| age > YOUNG)
        && File::open(entry.path()).is_ok_and(|folder| is_locked_by_us(&folder))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_holds_any_more_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let old = |folder: &Path| {
            fs::write(folder.join("kernel.c"), "").unwrap();
            File::open(folder).unwrap().set_modified(SystemTime::now() - 2 * YOUNG).unwrap();
        };
        let [left, others, young] = ["lazuli-cc-left", "tmp-others", "lazuli-cc-young"].map(|name| {
            let folder = place.path().join(name);
            fs::create_dir(&folder).unwrap();
            folder
        });
        old(&left);
        old(&others);
        let held = Workshop::new(place.path()).unwrap();
        old(held.path());
        clear_up(place.path());
        assert!(!left.exists());
        assert!(others.exists() && young.exists() && held.path().exists());
        let path = held.path().to_owned();
        drop(held);
        assert!(!path.exists());
    }
}
