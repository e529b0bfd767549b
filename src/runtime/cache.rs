//! Compiled kernels on disk, for all back ends and all processes of a user.
//!
//! An entry is one file: what the compiler made, then a trailer with the entry's key and a checksum of everything.
//! Loaders of ELF files ignore what stands behind the end, so that `objdump`, `cuobjdump` and the like read an
//! entry as it is. The source text lies beside it. Files appear under their names complete, by renaming; whatever
//! is not exactly what was stored is removed and compiled again, and what others may have written is not used. Nothing
//! here ever fails an evaluation.

pub(crate) mod trust;

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Once, OnceLock};
use std::time::{Duration, SystemTime};

use crate::{settings, stderr};

/// Part of every key: another format is another cache.
const FORMAT: &str = "lazuli kernel cache 1";
const MAGIC: &[u8; 8] = b"lazuli\0\x01";
const HASH: usize = 32;
/// Key, checksum, magic.
const TRAILER: usize = HASH + HASH + MAGIC.len();

/// The ending of entries' names.
const BINARY: &str = "bin";
/// How names of unfinished files begin.
const TEMPORARY: &str = ".unfinished-";
/// Unfinished files and sources without a binary are left alone for so long: their writer may be at work.
const ORPHAN_AGE: Duration = Duration::from_secs(3600);

const CACHE: &str = "LAZULI_CACHE";
const LIMIT: &str = "LAZULI_CACHE_LIMIT";
const DEFAULT_LIMIT: u64 = 1 << 30;
/// The folder's size is looked at after so many stores, and at the first.
const STORES_PER_SCAN: u64 = 64;

/// What an entry is found by: a hash of all that its content depends on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key([u8; HASH]);

impl Key {
    /// `target` describes what the binary runs on, `compiler` who made it.
    pub(crate) fn new(target: &str, compiler: &str, flags: &[&str], source: &str) -> Key {
        let mut hasher = blake3::Hasher::new();
        let count = flags.len().to_string();
        let texts = [FORMAT, target, compiler, source, &count];
        for text in texts.iter().chain(flags) {
            // With its length: no two lists of texts read the same.
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        Key(hasher.finalize().into())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// A folder of compiled kernels.
#[derive(Debug)]
pub(crate) struct DiskCache {
    folder: PathBuf,
    /// Bytes of all files together, which a scan enforces.
    limit: u64,
    /// Stores of this process.
    stores: AtomicU64,
    /// Bytes stored since the last scan.
    unscanned: AtomicU64,
    /// Whether scans have a thread of their own: of a full folder they take as long as compiling a kernel.
    is_scanned_aside: bool,
}

impl DiskCache {
    /// The cache of this process, in `$LAZULI_CACHE_DIR` or else the user's folder for caches. None if
    /// `$LAZULI_CACHE` is off, or if there can be no such folder: then it said so on stderr, once.
    pub(crate) fn get() -> Option<&'static DiskCache> {
        static CACHE: OnceLock<Option<DiskCache>> = OnceLock::new();
        let warn = |message: String| stderr::warn(&message);
        CACHE.get_or_init(|| DiskCache::configured(&|name| settings::variable(name), &warn)).as_ref()
    }

    fn configured(
        environment: &dyn Fn(&str) -> Option<OsString>,
        warn: &dyn Fn(String),
    ) -> Option<DiskCache> {
        let variable = |name| environment(name).filter(|value| !value.is_empty());
        let is_on = settings::understood(CACHE, variable(CACHE), settings::SWITCH, settings::on_or_off);
        if is_on.unwrap_or_else(|warning| (warn(warning), None).1) == Some(false) {
            return None;
        }
        let bytes = |text: &str| text.parse().ok();
        let limit = settings::understood(LIMIT, variable(LIMIT), "a number of bytes", bytes);
        let limit = limit.unwrap_or_else(|warning| (warn(warning), None).1).unwrap_or(DEFAULT_LIMIT);
        let own = || folder_of_user(dirs::cache_dir(), dirs::home_dir());
        let Some(folder) = variable("LAZULI_CACHE_DIR").map(PathBuf::from).or_else(own) else {
            warn(
                "kernels are not cached: no folder for caches is known. Set LAZULI_CACHE_DIR to one, or \
                  LAZULI_CACHE=off"
                    .into(),
            );
            return None;
        };
        match DiskCache::open(&folder, limit) {
            Ok(cache) => Some(DiskCache { is_scanned_aside: true, ..cache }),
            Err(error) => {
                warn(format!(
                    "kernels are not cached: {}: {error}. Set LAZULI_CACHE_DIR to a folder of your own, or \
                     LAZULI_CACHE=off",
                    folder.display()
                ));
                None
            }
        }
    }

    /// A cache in the folder `kernels` of `folder`, which is made where it is missing.
    pub(crate) fn open(folder: &Path, limit: u64) -> io::Result<DiskCache> {
        // Later changes of the current folder do not move the cache.
        let folder = std::path::absolute(folder)?.join("kernels");
        create_private(&folder)?;
        // Nor do later changes of links.
        let folder = fs::canonicalize(folder)?;
        trust::check_folder(&folder)?;
        let [stores, unscanned] = [AtomicU64::new(0), AtomicU64::new(0)];
        Ok(DiskCache { folder, limit, stores, unscanned, is_scanned_aside: false })
    }

    fn path(&self, key: &Key, extension: &str) -> PathBuf {
        self.folder.join(format!("{key}.{extension}"))
    }

    /// Where the entry of the key is, if there is one.
    pub(crate) fn place(&self, key: &Key) -> PathBuf {
        self.path(key, BINARY)
    }

    /// What was stored under the key, exactly, or nothing.
    pub(crate) fn load(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(key, BINARY);
        let mut content = Vec::new();
        let mut file = open_itself(&path).ok()?;
        if let Err(error) = trust::check_file(&path, &file) {
            static WARN: Once = Once::new();
            WARN.call_once(|| {
                stderr::warn(&format!("cached kernels are not used: {error}. They are compiled again"));
            });
            return None;
        }
        file.read_to_end(&mut content).ok()?;
        let Some(length) = verified_length(key, &content) else {
            // At worst this removes a good entry that somebody just put in its place.
            let _ = fs::remove_file(&path);
            return None;
        };
        content.truncate(length);
        // For eviction: used now. A folder that cannot be written needs none.
        let _ = file.set_modified(SystemTime::now());
        Some(content)
    }

    /// Keeps `binary`, and `source` in a file with that extension, if it can.
    pub(crate) fn store(&self, key: &Key, extension: &str, source: &str, binary: &[u8]) {
        let bytes = (source.len() + binary.len() + TRAILER) as u64;
        if bytes > self.limit {
            return;
        }
        let stored = self.write(&self.path(key, extension), &[source.as_bytes()]).and_then(|()| {
            let checksum = checksum(key, binary);
            self.write(&self.path(key, BINARY), &[binary, &key.0, checksum.as_bytes(), MAGIC])
        });
        if stored.is_err() {
            // A full disk, perhaps: a source alone helps nobody, and what is old may make room.
            let _ = fs::remove_file(self.path(key, extension));
        }
        let stores = self.stores.fetch_add(1, Ordering::Relaxed);
        let unscanned = self.unscanned.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if stores.is_multiple_of(STORES_PER_SCAN) || unscanned > self.limit / 8 {
            self.unscanned.store(0, Ordering::Relaxed);
            let (folder, limit) = (self.folder.clone(), self.limit);
            let scan = move || drop(evict(&folder, limit));
            // A process may end before its thread has looked, so that by the key one in 64 waits.
            match self.is_scanned_aside && !key.0[0].is_multiple_of(64) {
                true => drop(std::thread::Builder::new().spawn(scan)),
                false => scan(),
            }
        }
    }

    fn write(&self, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
        // The folder may have been removed meanwhile: to clear the cache is everybody's right.
        let create = || tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(&self.folder);
        let mut file = create().or_else(|_| create_private(&self.folder).and_then(|()| create()))?;
        for part in parts {
            file.write_all(part)?;
        }
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Removes what was not used for longest until the limit holds, with some room to spare, and what
/// crashed processes left behind. Other processes may do the same at once.
fn evict(folder: &Path, limit: u64) -> io::Result<()> {
    let now = SystemTime::now();
    let mut entries: Vec<Entry> = Vec::new();
    let mut by_name = rustc_hash::FxHashMap::default();
    for file in fs::read_dir(folder)? {
        let Ok(file) = file else { continue };
        let Ok(name) = file.file_name().into_string() else { continue };
        let Ok(metadata) = file.metadata() else { continue };
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let is_old = now.duration_since(modified).is_ok_and(|age| age > ORPHAN_AGE);
        if name.starts_with(TEMPORARY) {
            if is_old {
                let _ = fs::remove_file(file.path());
            }
            continue;
        }
        // What is named otherwise is not ours.
        let Some((stem, extension)) = name.split_once('.') else { continue };
        if blake3::Hash::from_hex(stem).is_err() || !metadata.is_file() {
            continue;
        }
        let index = *by_name.entry(stem.to_owned()).or_insert(entries.len());
        if index == entries.len() {
            entries.push(Entry::default());
        }
        let entry = &mut entries[index];
        entry.bytes += metadata.len();
        if extension == BINARY {
            entry.used = Some(modified);
            entry.files.insert(0, file.path());
        } else {
            entry.is_old_source = is_old;
            entry.files.push(file.path());
        }
    }
    entries.retain(|entry| match entry.used {
        None if entry.is_old_source => {
            entry.remove();
            false
        }
        _ => true,
    });
    let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    if total <= limit {
        return Ok(());
    }
    // So that not every scan has to evict.
    let wanted = limit - limit / 8;
    entries.sort_by(|a, b| (a.used, &a.files).cmp(&(b.used, &b.files)));
    for entry in entries.iter().filter(|entry| entry.used.is_some()) {
        if total <= wanted {
            break;
        }
        entry.remove();
        total -= entry.bytes;
    }
    Ok(())
}

/// Files of one key, as a scan finds them.
#[derive(Default)]
struct Entry {
    /// The binary first.
    files: Vec<PathBuf>,
    bytes: u64,
    /// When it was last loaded or stored; None without a binary.
    used: Option<SystemTime>,
    is_old_source: bool,
}

impl Entry {
    fn remove(&self) {
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
    }
}

/// Lazuli's folder in the user's one for caches. None where that would be in a home that is not there: who has none, such as
/// a service, is to have none made.
fn folder_of_user(caches: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let caches = caches?;
    let is_homeless = home.is_some_and(|home| caches.starts_with(&home) && !home.is_dir());
    (!is_homeless).then(|| caches.join("lazuli"))
}

fn checksum(key: &Key, binary: &[u8]) -> blake3::Hash {
    blake3::Hasher::new().update(MAGIC).update(&key.0).update(binary).finalize()
}

/// The length of the binary in an entry that is whole and this key's.
fn verified_length(key: &Key, content: &[u8]) -> Option<usize> {
    let (binary, trailer) = content.split_at_checked(content.len().checked_sub(TRAILER)?)?;
    let expected = [&key.0, checksum(key, binary).as_bytes(), &MAGIC[..]].concat();
    (trailer == expected).then_some(binary.len())
}

/// The file, and not what a link leads to.
fn open_itself(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::File::options();
    #[cfg(unix)]
    {
        let no_links = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, no_links);
    }
    options.read(true).open(path)
}

pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

#[cfg(test)]
mod tests;
