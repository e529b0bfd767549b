//! What the system does not give: an error that says so, never an end of the process. Each scenario is a process of its
//! own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.
#![cfg(unix)]

#[path = "faults/processes.rs"]
mod processes;
mod workloads;

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use lazuli::{DType, Error, Tensor, io, stats};
use workloads::in_limited_child;

#[test]
fn child() {
    match workloads::scenario().as_deref() {
        None => {}
        Some("copies") => copies(),
        Some("evaluates") => evaluates(),
        Some("fails") => println!("<{:?}>", expression(1.0).eval().unwrap_err()),
        Some("lacks files") => lacks_files(),
        Some("dies") => dies(),
        Some(other) => processes::run(other),
    }
}

/// Runs a scenario under limits of the shell's `ulimit`.
#[track_caller]
fn succeeds(limits: &str, scenario: &str, variables: &[(&str, &str)]) -> String {
    let output = in_limited_child(limits, scenario, variables);
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{scenario}: {}\n{text}", output.status);
    text
}

fn is_out_of_memory<T>(result: lazuli::Result<T>) -> bool {
    matches!(result, Err(Error::OutOfMemory { requested, .. }) if requested >= 1 << 28)
}

/// A tensor that fits once and not twice.
fn copies() {
    let large = Tensor::zeros([3 << 25], DType::F32);
    large.eval().unwrap();
    assert!(is_out_of_memory(large.to_vec::<f32>()));
    assert!(is_out_of_memory((&large + 1.0).eval()));
    assert!(is_out_of_memory((0i64..).collect::<Tensor>().eval()));
    drop(large);
    // Its memory is in the pool, which the copy gets back.
    let small = Tensor::zeros([1 << 26], DType::F32);
    assert_eq!(small.to_vec::<f32>().unwrap().len(), 1 << 26);
    // A file is written without a copy.
    io::write_npy("/dev/null", &small).unwrap();
}

#[test]
fn a_copy_that_does_not_fit_is_out_of_memory() {
    let folder = tempfile::tempdir().unwrap();
    // Each thread takes 66 MiB of addresses, the one that starts compilers too.
    succeeds("ulimit -v 870000", "copies", &[("LAZULI_CACHE_DIR", folder.path().to_str().unwrap())]);
}

fn expression(addend: f32) -> Tensor {
    Tensor::from_slice(&[1f32, 2.0, 3.0], [3]).sqrt() + addend
}

fn evaluates() {
    assert_eq!(expression(1.0).to_vec::<f32>().unwrap()[0], 2.0);
    println!("<compiled={} from_disk={}>", stats().kernels_compiled, stats().disk_hits);
}

/// What a scenario said between angle brackets, and the number of warnings.
#[track_caller]
fn says(limits: &str, scenario: &str, variables: &[(&str, &str)]) -> (String, usize) {
    let text = succeeds(limits, scenario, variables);
    let said = text.split_once('<').unwrap().1.rsplit_once('>').unwrap().0;
    (said.to_owned(), text.matches("lazuli: ").count())
}

const COMPILES: &str = "compiled=1 from_disk=0";
const FINDS: &str = "compiled=0 from_disk=1";
const NEITHER: &str = "compiled=0 from_disk=0";

/// A folder for the cache, temporary files and a compiler.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        fs::create_dir(place.path().join("tmp")).unwrap();
        place
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// The command of a compiler that is a script, run in this folder, after it has said what it is.
    fn compiler(&self, script: &str) -> String {
        let path = self.path().join("cc.sh");
        let head = "case $1 in --version|-dumpmachine) exec cc \"$1\";; esac";
        let text = format!("{head}\nhere={}\n{script}\n", self.path().display());
        fs::write(&path, text).unwrap();
        format!("sh {}", path.display())
    }

    /// As the function [`says`], with this place's cache and temporary folder, unless others are given.
    #[track_caller]
    fn says(&self, limits: &str, scenario: &str, variables: &[(&str, &str)]) -> (String, usize) {
        let [cache, temporary] = ["cache", "tmp"].map(|name| self.path().join(name).display().to_string());
        let own = [("LAZULI_CACHE_DIR", cache.as_str()), ("TMPDIR", temporary.as_str())];
        says(limits, scenario, &[&own, variables].concat())
    }
}

const WITHOUT_WRITING: &str = "trap '' XFSZ; ulimit -f 0";

#[test]
fn a_warm_cache_needs_no_place_to_write_and_no_compiler() {
    let place = Place::new();
    assert_eq!(place.says("", "evaluates", &[]), (COMPILES.into(), 0));
    let nowhere = [("TMPDIR", "/nonexistent"), ("PATH", "/nonexistent")];
    assert_eq!(place.says(WITHOUT_WRITING, "evaluates", &nowhere), (FINDS.into(), 0));
    // What is not in it is interpreted, with a warning.
    for entry in fs::read_dir(place.path().join("cache/kernels")).unwrap() {
        let entry = entry.unwrap().path();
        if entry.extension().is_some_and(|extension| extension == "c") {
            fs::remove_file(entry.with_extension("bin")).unwrap();
        }
    }
    assert_eq!(place.says("", "evaluates", &nowhere), (NEITHER.into(), 1));
    assert_eq!(place.says("", "evaluates", &[]), (COMPILES.into(), 0));
}

#[test]
fn an_entry_that_does_not_load_is_replaced() {
    let place = Place::new();
    let other = place.path().join("other.so");
    let source = place.path().join("other.c");
    fs::write(&source, "int other(void) { return 0; }").unwrap();
    let mut cc = std::process::Command::new("cc");
    assert!(cc.args(["-shared", "-fPIC", "-o"]).args([&other, &source]).status().unwrap().success());
    // What `-flto` makes is for the system's linker.
    let needs_other =
        "[ -f $here/other.so ] && set -- \"$@\" -flto -Wl,--no-as-needed $here/other.so; exec cc \"$@\"";
    let compiler = place.compiler(needs_other);
    let evaluates = || place.says("", "evaluates", &[("LAZULI_CC", &compiler)]);
    assert_eq!([evaluates(), evaluates()], [(COMPILES.into(), 0), (FINDS.into(), 0)]);
    fs::remove_file(other).unwrap();
    assert_eq!([evaluates(), evaluates()], [(COMPILES.into(), 0), (FINDS.into(), 0)]);
}

#[test]
fn a_full_disk_is_an_error_of_the_system() {
    let (error, _) = Place::new().says(WITHOUT_WRITING, "fails", &[]);
    assert!(error.starts_with("Io {") && error.contains("FileTooLarge"), "{error}");
    // Where the compiler meets it first.
    let place = Place::new();
    let full = place.compiler("echo 'cc1: fatal error: kernel.s: No space left on device' >&2; exit 1");
    let (error, _) = place.says("", "fails", &[("LAZULI_CC", &full)]);
    assert!(error.starts_with("Io {") && error.contains("StorageFull"), "{error}");
}

fn lacks_files() {
    expression(1.0).eval().unwrap();
    let mut files = Vec::new();
    // The first texts may find compilers that were started while there were files.
    let functions = [Tensor::exp, Tensor::sin, Tensor::cos, Tensor::tanh, Tensor::log, Tensor::atan];
    let failed = functions.into_iter().find_map(|function| {
        files.extend(std::iter::from_fn(|| File::open("/dev/null").ok()).take(200));
        assert!(files.len() < 200);
        let other = function(&expression(1.0));
        let error = other.eval().err()?;
        Some((other, error))
    });
    let (other, error) = failed.unwrap();
    println!("<{error:?}>");
    drop(files);
    other.eval().unwrap();
}

#[test]
fn too_few_files_are_an_error_of_the_system_and_later_enough() {
    let (error, _) = Place::new().says("ulimit -n 100", "lacks files", &[]);
    assert!(error.starts_with("Io {") && error.contains("code: 24"), "{error}");
}

#[test]
fn a_compiler_that_does_not_do_its_work_is_named() {
    let place = Place::new();
    for (script, limit, words) in [
        ("sleep 60", "0.5", ["did not end within 500ms", "LAZULI_COMPILE_TIMEOUT"]),
        ("exit 0", "", ["left no library", "LAZULI_CC"]),
        ("echo 'int x;' > kernel.c; exec cc \"$@\"", "", ["lacks a function", "LAZULI_CC"]),
    ] {
        let compiler = place.compiler(script);
        let variables = [("LAZULI_CC", compiler.as_str()), ("LAZULI_COMPILE_TIMEOUT", limit)];
        let (error, _) = place.says("", "fails", &variables);
        assert!(error.starts_with("Unavailable {"), "{error}");
        assert!(words.iter().all(|words| error.contains(words)), "{error}");
    }
    assert_eq!(fs::read_dir(place.path().join("tmp")).unwrap().count(), 0);
}

/// Ends while its compiler runs.
fn dies() {
    std::thread::spawn(|| {
        let started = std::env::var("STARTED").unwrap();
        wait_until(|| Path::new(&started).exists());
        // What is over in a tenth of a second is not guarded.
        std::thread::sleep(Duration::from_secs(1));
        std::process::abort();
    });
    let _ = expression(1.0).eval();
}

#[track_caller]
fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_compiler_does_not_outlive_who_has_started_it() {
    let place = Place::new();
    let compiler = place.compiler("echo $$ > $here/pid; mv $here/pid $here/started; sleep 100; exit 1");
    let started = place.path().join("started");
    let [cache, file] = [&place.path().join("cache"), &started].map(|path| path.display().to_string());
    let variables = [("LAZULI_CC", &*compiler), ("LAZULI_CACHE_DIR", &cache), ("STARTED", &file)];
    assert!(!in_limited_child("", "dies", &variables).status.success());
    let process = fs::read_to_string(&started).unwrap();
    let state = || fs::read_to_string(format!("/proc/{}/stat", process.trim()));
    // Gone, or nobody has asked how it ended.
    wait_until(|| state().map_or(true, |state| state.contains(") Z ")));
}
