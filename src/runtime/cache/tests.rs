use std::cell::RefCell;

use super::*;

fn key(name: &str) -> Key {
    Key::new("cpu", "cc 1", &["-O3"], name)
}

fn cache(limit: u64) -> (tempfile::TempDir, DiskCache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(folder.path(), limit).unwrap();
    (folder, cache)
}

fn names(cache: &DiskCache) -> Vec<String> {
    let files = fs::read_dir(&cache.folder).unwrap();
    let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_was_stored_comes_back_and_the_source_lies_beside_it() {
    let (_folder, cache) = cache(DEFAULT_LIMIT);
    assert_eq!(cache.load(&key("a")), None);
    cache.store(&key("a"), "c", "void a(void) {}", b"binary");
    assert_eq!(cache.load(&key("a")).as_deref(), Some(&b"binary"[..]));
    assert_eq!(cache.load(&key("b")), None);
    assert_eq!(names(&cache), [format!("{}.bin", key("a")), format!("{}.c", key("a"))]);
    assert_eq!(fs::read_to_string(cache.path(&key("a"), "c")).unwrap(), "void a(void) {}");
    cache.store(&key("a"), "c", "", b"");
    assert_eq!(cache.load(&key("a")).as_deref(), Some(&b""[..]));
}

#[test]
fn every_part_of_a_key_counts() {
    let keys = [
        Key::new("sm_90", "nvrtc 12", &["-a", "-b"], "text"),
        Key::new("sm_80", "nvrtc 12", &["-a", "-b"], "text"),
        Key::new("sm_90", "nvrtc 13", &["-a", "-b"], "text"),
        Key::new("sm_90", "nvrtc 12", &["-a", "-c"], "text"),
        Key::new("sm_90", "nvrtc 12", &["-a-b"], "text"),
        Key::new("sm_90", "nvrtc 12", &["-a", "-b"], "text "),
        Key::new("sm_90nvrtc 12", "", &["-a", "-b"], "text"),
    ];
    let distinct: std::collections::HashSet<Key> = keys.into_iter().collect();
    assert_eq!(distinct.len(), keys.len());
}

#[test]
fn one_damaged_byte_anywhere_and_the_entry_is_gone() {
    let (_folder, cache) = cache(DEFAULT_LIMIT);
    let key = key("a");
    let path = cache.path(&key, BINARY);
    cache.store(&key, "c", "source", b"some binary");
    let whole = fs::read(&path).unwrap();
    let flipped = (0..whole.len()).map(|at| {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        damaged
    });
    let truncated = (0..whole.len()).map(|length| whole[..length].to_vec());
    let longer = std::iter::once([&whole[..], b"x"].concat());
    for damaged in flipped.chain(truncated).chain(longer) {
        fs::write(&path, &damaged).unwrap();
        assert_eq!(cache.load(&key), None);
        assert!(!path.exists());
    }
    cache.store(&key, "c", "source", b"some binary");
    assert_eq!(cache.load(&key).as_deref(), Some(&b"some binary"[..]));
}

#[test]
fn an_entry_under_another_key_is_foreign() {
    let (_folder, cache) = cache(DEFAULT_LIMIT);
    cache.store(&key("a"), "c", "", b"binary");
    fs::copy(cache.path(&key("a"), BINARY), cache.path(&key("b"), BINARY)).unwrap();
    assert_eq!(cache.load(&key("b")), None);
    assert!(!cache.path(&key("b"), BINARY).exists());
    assert!(cache.load(&key("a")).is_some());
}

#[test]
fn many_threads_store_and_load_one_key() {
    let (folder, _) = cache(DEFAULT_LIMIT);
    let binary = vec![7u8; 100_000];
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                // Each as if it were a process of its own.
                let cache = DiskCache::open(folder.path(), DEFAULT_LIMIT).unwrap();
                for _ in 0..50 {
                    cache.store(&key("a"), "c", "source", &binary);
                    assert_eq!(cache.load(&key("a")).as_deref(), Some(&binary[..]));
                }
            });
        }
    });
    let cache = DiskCache::open(folder.path(), DEFAULT_LIMIT).unwrap();
    assert_eq!(names(&cache).len(), 2);
}

#[test]
fn many_threads_evict_at_once() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let folder = folder.path();
            scope.spawn(move || {
                let cache = DiskCache::open(folder, 10_000).unwrap();
                for number in 0..50 {
                    let key = key(&format!("{thread} {number}"));
                    cache.store(&key, "c", "source", &[thread; 900]);
                    assert!(cache.load(&key).is_none_or(|binary| binary == [thread; 900]));
                    evict(&cache.folder, cache.limit).unwrap();
                }
            });
        }
    });
    let cache = DiskCache::open(folder.path(), 10_000).unwrap();
    evict(&cache.folder, cache.limit).unwrap();
    assert!(size(&cache) <= 10_000);
}

fn size(cache: &DiskCache) -> u64 {
    names(cache).iter().map(|name| fs::metadata(cache.folder.join(name)).unwrap().len()).sum()
}

fn set_age(cache: &DiskCache, key: &Key, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    fs::File::open(cache.path(key, BINARY)).unwrap().set_modified(time).unwrap();
}

#[test]
fn what_was_not_used_for_longest_goes_first() {
    let (_folder, cache) = cache(4500);
    let keys: Vec<Key> = (0..4).map(|number| key(&number.to_string())).collect();
    for (number, key) in keys.iter().enumerate() {
        cache.store(key, "c", "source", &[0; 1000]);
        set_age(&cache, key, 1000 - number as u64);
    }
    // The oldest is used once more.
    assert!(cache.load(&keys[0]).is_some());
    cache.store(&key("new"), "c", "source", &[0; 1000]);
    evict(&cache.folder, cache.limit).unwrap();
    let left: Vec<bool> = keys.iter().map(|key| cache.path(key, BINARY).exists()).collect();
    assert_eq!(left, [true, false, false, true]);
    assert!(cache.path(&key("new"), BINARY).exists());
    assert!(!cache.path(&keys[1], "c").exists(), "a source goes with its binary");
    assert!(size(&cache) <= 4500);
}

#[test]
fn the_limit_holds_without_asking() {
    let (_folder, cache) = cache(20_000);
    for number in 0..200 {
        cache.store(&key(&number.to_string()), "c", "source", &[0; 1000]);
    }
    assert!(size(&cache) <= 20_000 + 20_000 / 8 + 1100);
    cache.store(&key("huge"), "c", "source", &[0; 30_000]);
    assert_eq!(cache.load(&key("huge")), None);
}

#[test]
fn eviction_leaves_strangers_alone_and_clears_up_after_crashes() {
    let (_folder, cache) = cache(100);
    let age = |name: &str, seconds: u64| {
        let path = cache.folder.join(name);
        fs::write(&path, vec![0; 200]).unwrap();
        let time = SystemTime::now() - Duration::from_secs(seconds);
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        name.to_owned()
    };
    let kept = [age("README", 9999), age("notes.bin", 9999), age(".unfinished-new", 10)];
    age(".unfinished-old", 9999);
    age(&format!("{}.cu", key("crashed")), 9999);
    let fresh = age(&format!("{}.cu", key("being stored")), 10);
    evict(&cache.folder, cache.limit).unwrap();
    let mut expected = kept.to_vec();
    expected.push(fresh);
    expected.sort();
    assert_eq!(names(&cache), expected);
}

#[test]
fn a_folder_that_vanished_is_made_again() {
    let (folder, cache) = cache(DEFAULT_LIMIT);
    fs::remove_dir_all(folder.path()).unwrap();
    assert_eq!(cache.load(&key("a")), None);
    cache.store(&key("a"), "c", "source", b"binary");
    assert!(cache.load(&key("a")).is_some());
}

#[test]
fn where_nothing_can_be_written_storing_does_nothing() {
    let (folder, cache) = cache(DEFAULT_LIMIT);
    // A file in the folder's place: works for every user, while root may write to read-only folders.
    fs::remove_dir_all(&cache.folder).unwrap();
    fs::write(&cache.folder, "in the way").unwrap();
    cache.store(&key("a"), "c", "source", b"binary");
    assert_eq!(cache.load(&key("a")), None);
    assert!(DiskCache::open(folder.path(), 100).is_err());
}

#[cfg(unix)]
#[test]
fn a_read_only_folder_can_still_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, cache) = cache(DEFAULT_LIMIT);
    cache.store(&key("a"), "c", "source", b"binary");
    fs::set_permissions(&cache.folder, fs::Permissions::from_mode(0o500)).unwrap();
    cache.store(&key("b"), "c", "source", b"binary");
    assert!(cache.load(&key("a")).is_some());
    fs::set_permissions(&cache.folder, fs::Permissions::from_mode(0o700)).unwrap();
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

#[cfg(unix)]
#[test]
fn a_folder_that_others_can_write_to_is_not_trusted_nor_is_one_in_it() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("cache");
    drop(DiskCache::open(&folder, 100).unwrap());
    for (path, mode, remedy) in [
        (folder.join("kernels"), 0o777, "go-w"),
        (folder.join("kernels"), 0o770, "g-w"),
        (folder.join("kernels"), 0o1777, "go-w"),
        (folder.clone(), 0o775, "g-w"),
        (above.path().to_owned(), 0o707, "go-w"),
    ] {
        set_mode(&path, mode);
        let error = DiskCache::open(&folder, 100).unwrap_err().to_string();
        let path_text = path.display();
        let expected = format!("others can write to {path_text} (`chmod {remedy} {path_text}` ends that)");
        assert_eq!(error, expected);
        set_mode(&path, 0o700);
        assert!(DiskCache::open(&folder, 100).is_ok());
    }
    // As /tmp is.
    set_mode(above.path(), 0o1777);
    assert!(DiskCache::open(&folder, 100).is_ok());
}

#[cfg(unix)]
#[test]
fn a_folder_behind_a_link_is_where_the_link_leads() {
    let above = tempfile::tempdir().unwrap();
    let (open, own) = (above.path().join("open"), above.path().join("own"));
    for folder in [&open, &own] {
        fs::create_dir(folder).unwrap();
    }
    std::os::unix::fs::symlink(&open, own.join("cache")).unwrap();
    assert!(DiskCache::open(&own.join("cache"), 100).is_ok());
    set_mode(&open, 0o777);
    assert!(DiskCache::open(&own.join("cache"), 100).is_err());
}

#[cfg(unix)]
#[test]
fn an_entry_that_others_can_have_written_is_not_used_and_is_replaced() {
    let (_folder, cache) = cache(DEFAULT_LIMIT);
    let path = cache.place(&key("a"));
    let is_stored_again = || {
        cache.store(&key("a"), "c", "source", b"binary");
        assert_eq!(cache.load(&key("a")).as_deref(), Some(&b"binary"[..]));
    };
    is_stored_again();
    for mode in [0o620, 0o602] {
        set_mode(&path, mode);
        assert_eq!(cache.load(&key("a")), None);
        is_stored_again();
    }
    let elsewhere = cache.folder.join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert_eq!(cache.load(&key("a")), None);
    is_stored_again();
    // Only root can give files to others.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        assert_eq!(cache.load(&key("a")), None);
        is_stored_again();
        std::os::unix::fs::chown(&cache.folder, Some(12345), None).unwrap();
        let error = trust::check_folder(&cache.folder).unwrap_err().to_string();
        assert!(error.ends_with("belongs to another user (number 12345)"), "{error}");
    }
}

fn configured(variables: &[(&str, &str)]) -> (Option<DiskCache>, Vec<String>) {
    let warnings = RefCell::new(Vec::new());
    let environment =
        |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
    let cache = DiskCache::configured(&environment, &|warning| warnings.borrow_mut().push(warning));
    (cache, warnings.into_inner())
}

#[test]
fn the_environment_configures_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    for off in ["0", "off", "OFF", "false", "No"] {
        let (cache, warnings) = configured(&[("LAZULI_CACHE", off), ("LAZULI_CACHE_DIR", path)]);
        assert!(cache.is_none() && warnings.is_empty());
    }
    let (cache, warnings) = configured(&[("LAZULI_CACHE_DIR", path), ("LAZULI_CACHE_LIMIT", "12345")]);
    let cache = cache.unwrap();
    assert_eq!((cache.limit, cache.folder.parent()), (12345, Some(folder.path())));
    assert!(warnings.is_empty());
    let (cache, warnings) = configured(&[("LAZULI_CACHE_DIR", path), ("LAZULI_CACHE_LIMIT", "1 GB")]);
    assert_eq!(cache.unwrap().limit, DEFAULT_LIMIT);
    assert_eq!(warnings, ["LAZULI_CACHE_LIMIT=1 GB is not a number of bytes"]);
    let (cache, warnings) = configured(&[("LAZULI_CACHE_DIR", path), ("LAZULI_CACHE", "maybe")]);
    assert!(cache.is_some());
    assert_eq!(warnings, ["LAZULI_CACHE=maybe is not `on` or `off`"]);
    let (cache, warnings) = configured(&[("LAZULI_CACHE_DIR", "/dev/null/x")]);
    assert!(cache.is_none());
    assert!(warnings.len() == 1 && warnings[0].contains("/dev/null/x"), "{warnings:?}");
}

#[test]
fn no_home_is_made() {
    let home = tempfile::tempdir().unwrap();
    let of = |caches: &str, home: &std::path::Path| folder_of_user(Some(caches.into()), Some(home.into()));
    let own = home.path().join(".cache");
    assert_eq!(of(own.to_str().unwrap(), home.path()), Some(own.join("lazuli")));
    assert_eq!(of("/nonexistent/.cache", "/nonexistent".as_ref()), None);
    assert_eq!(of("/elsewhere", "/nonexistent".as_ref()), Some("/elsewhere/lazuli".into()));
}

/// A full disk, as far as a program can tell: the shell lets files grow to 8 KiB only.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "trap '' XFSZ; ulimit -f 16; exec \"$0\" --exact runtime::cache::tests::on_a_full_disk --ignored";
    let child = std::process::Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .env("LAZULI_TEST_FULL_DISK", folder.path())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && output.contains("1 passed"), "{output}");
}

#[cfg(unix)]
#[test]
#[ignore = "run by a_full_disk_leaves_no_trace, in a process of its own"]
fn on_a_full_disk() {
    let Some(folder) = std::env::var_os("LAZULI_TEST_FULL_DISK") else { return };
    let cache = DiskCache::open(Path::new(&folder), DEFAULT_LIMIT).unwrap();
    cache.store(&key("a"), "c", "source", &[1; 1 << 20]);
    assert_eq!(cache.load(&key("a")), None);
    assert_eq!(names(&cache), [""; 0]);
    cache.store(&key("b"), "c", "source", b"little");
    assert!(cache.load(&key("b")).is_some());
}
