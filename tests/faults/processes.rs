//! Processes that are not as others are: without standard error, children, a home or memory, with many threads, forked.

use std::cell::RefCell;
use std::fs;
use std::sync::Barrier;
use std::time::Duration;

use lazuli::{DType, Device, Error, Tensor, stats};

use super::{COMPILES, NEITHER, Place, expression, succeeds};

/// The scenarios of this file.
pub fn run(scenario: &str) {
    match scenario {
        "takes apart" => takes_apart(),
        "reaps" => reaps(),
        "runs short" => runs_short(),
        "comes at once" => comes_at_once(),
        "fails at once" => fails_at_once(),
        "ends late" => ends_late(),
        "forks" => forks(),
        other => panic!("no scenario {other}"),
    }
}

#[test]
fn what_standard_error_does_not_take_is_lost() {
    let place = Place::new();
    let cache = place.path().join("cache").display().to_string();
    let variables = [("LAZULI_CACHE_LIMIT", "abc"), ("LAZULI_DEBUG", "5"), ("LAZULI_CACHE_DIR", &cache)];
    for limits in ["exec 2>/dev/full", "exec 2>&-"] {
        assert!(!succeeds(limits, "evaluates", &variables).contains("LAZULI_CACHE_LIMIT"));
    }
}

/// Reads settings that the expression of others does not need.
fn takes_apart() {
    let threads = expression(1.0).eval().and_then(|()| Tensor::rand([1000, 1000], 1).sum(1).eval());
    threads.unwrap();
    assert!(Tensor::rand([9, 9], 1).det().item::<f32>().is_ok());
    println!("<kernels={}>", (expression(1.0) * 2.0).explain().unwrap().kernels());
}

#[test]
fn settings_that_say_nothing_are_warned_of_once() {
    let place = Place::new();
    let (threads, switch) = ("a number of threads", "`on` or `off`");
    let wrong = [
        ("LAZULI_FUSION", "maybe", switch),
        ("LAZULI_NUM_THREADS", "0", threads),
        ("LAZULI_DEBUG", "x", "`off` or a number from 1 to 5"),
        ("LAZULI_PROGRESS", "x", switch),
        ("LAZULI_CACHE", "2", switch),
        ("LAZULI_CACHE_LIMIT", "1GB", "a number of bytes"),
        ("LAZULI_COMPILE_TIMEOUT", "abc", "a number of seconds"),
    ];
    let cache = place.path().join("cache").display().to_string();
    let mut variables: Vec<(&str, &str)> = wrong.iter().map(|&(name, value, _)| (name, value)).collect();
    variables.extend([("LAZULI_CACHE_DIR", &*cache), ("LAZULI_TUNING", "/nonexistent/tuning.txt")]);
    let said = succeeds("", "takes apart", &variables);
    for (name, value, what) in wrong {
        let warning = format!("lazuli: {name}={value} is not {what}\n");
        assert_eq!(said.matches(&warning).count(), 1, "{warning}{said}");
    }
    assert_eq!(
        said.matches("lazuli: LAZULI_TUNING: could not read /nonexistent/tuning.txt").count(),
        1,
        "{said}"
    );
    assert!(said.contains("<kernels=1>"), "{said}");
    for (off, kernels) in [("OFF", 3), ("false", 3), ("no", 3), ("0", 3), ("Yes", 1), ("TRUE", 1)] {
        let said = place.says("", "takes apart", &[("LAZULI_FUSION", off)]);
        assert_eq!(said, (format!("kernels={kernels}"), 0));
    }
    #[cfg(feature = "libraries")]
    {
        let said = succeeds("", "takes apart", &[("LAZULI_CACHE_DIR", &cache), ("LAZULI_LIBRARIES", "x")]);
        assert!(said.contains("lazuli: LAZULI_LIBRARIES=x is not `on` or `off`"), "{said}");
    }
}

/// Another thread is told how all children end.
fn reaps() {
    std::thread::spawn(|| {
        loop {
            if rustix::process::wait(rustix::process::WaitOptions::empty()).is_err() {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    });
    super::evaluates();
}

#[test]
fn a_compiler_has_compiled_although_nobody_knows_how_it_ended() {
    const IGNORED: &str = "trap '' CHLD";
    let place = Place::new();
    assert_eq!(place.says(IGNORED, "evaluates", &[]), (COMPILES.into(), 0));
    assert_eq!(Place::new().says("", "reaps", &[]), (COMPILES.into(), 0));
    let failing = place.compiler("echo 'kernel.c: error: no such thing' >&2; exit 1");
    // Not from the cache.
    let (error, _) = Place::new().says(IGNORED, "fails", &[("LAZULI_CC", &failing)]);
    assert!(error.starts_with("Compilation {") && error.contains("no such thing"), "{error}");
}

#[test]
fn what_is_no_compiler_is_said_in_words() {
    let place = Place::new();
    let slow = place.path().join("slow.sh");
    fs::write(&slow, "sleep 60").unwrap();
    let slow = format!("sh {}", slow.display());
    for (compiler, words) in [
        ("true", "true: it does not say what it compiles for, as a C compiler would. Install"),
        (slow.as_str(), "`--version` did not end within 300ms, which LAZULI_COMPILE_TIMEOUT sets. Install"),
    ] {
        let cache = place.path().join("cache").display().to_string();
        let limit = ("LAZULI_COMPILE_TIMEOUT", "0.3");
        let variables = [("LAZULI_CC", compiler), ("LAZULI_CACHE_DIR", &cache), limit];
        let said = succeeds("", "evaluates", &variables);
        assert!(said.contains(words) && said.contains(NEITHER), "{said}");
        assert!(said.contains("needs none. Falling back to the (slow) interpreter\n"), "{said}");
    }
    // The loader of programs warns on their standard error.
    let preloaded = [("LD_PRELOAD", "/nonexistent/library.so")];
    assert_eq!(place.says("", "evaluates", &preloaded), (COMPILES.into(), 0));
}

#[test]
fn nobody_gets_a_home() {
    let place = Place::new();
    let home = place.path().join("home");
    let variables = [("HOME", home.to_str().unwrap()), ("LAZULI_CACHE_DIR", "")];
    let said = place.says("unset XDG_CACHE_HOME", "evaluates", &variables);
    assert_eq!(said, (COMPILES.into(), 1));
    assert!(!home.exists());
}

/// Asks for too much, lets go of all, and goes on.
fn runs_short() {
    let mut tensors = Vec::new();
    let error = loop {
        let tensor = Tensor::zeros([1 << 22], DType::F32);
        match tensor.eval() {
            Ok(()) => tensors.push(tensor),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::OutOfMemory { .. }) && tensors.len() > 5, "{error}");
    let many = Device::cpu().memory().unwrap().reserved;
    tensors.clear();
    let few = Device::cpu().memory().unwrap().reserved;
    assert!(few < many / 8, "{few} of {many} bytes are kept");
    // What others need, and the compiler.
    drop(vec![1u8; 200 << 20]);
    assert_eq!((expression(1.0).exp() * 2.0).to_vec::<f32>().unwrap().len(), 3);
}

#[test]
fn after_too_much_there_is_memory_for_what_comes_next() {
    let folder = tempfile::tempdir().unwrap();
    let cache = ("LAZULI_CACHE_DIR", folder.path().to_str().unwrap());
    succeeds("ulimit -v 600000", "runs short", &[cache, ("RAYON_NUM_THREADS", "2")]);
}

/// What 8 threads get that begin together.
fn at_once<T: Send>(f: impl Fn(f32) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(8);
    let run = |number: u8| {
        barrier.wait();
        f(f32::from(number))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || run(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Several kernels, which are compiled together.
fn several() -> [Tensor; 3] {
    let x = Tensor::rand([50, 70], 1);
    [x.cumsum(0).exp(), x.sort(1, false).0.sin(), x.matmul(x.t()).sum(1)]
}

fn comes_at_once() {
    let sums = at_once(|number| expression(number + 2.5).to_vec::<f32>().unwrap()[0]);
    assert_eq!(sums, [3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5]);
    assert_eq!(stats().kernels_compiled, 1);
    at_once(|_| lazuli::eval(&several()).unwrap());
    let kernels = lazuli::explain(&several()).unwrap().kernels();
    assert_eq!(stats().kernels_compiled, 1 + kernels as u64);
}

fn fails_at_once() {
    let errors = at_once(|addend| expression(addend).eval().unwrap_err().to_string());
    assert!(errors.iter().all(|error| error.contains("no such thing")), "{errors:?}");
}

#[test]
fn threads_that_want_the_same_kernel_have_it_compiled_once() {
    let off = ("LAZULI_CACHE", "off");
    succeeds("", "comes at once", &[off]);
    let place = Place::new();
    let runs = place.path().join("runs");
    let failing = place.compiler("echo >> $here/runs; echo 'error: no such thing' >&2; exit 1");
    succeeds("", "fails at once", &[off, ("LAZULI_CC", &failing)]);
    // Of one thread there are five: the kernel, and whether it is a flag that is refused.
    let runs = fs::read_to_string(runs).unwrap().lines().count();
    assert!(runs < 16, "{runs} runs");
}

/// Evaluates when it is dropped.
struct Late(Tensor);

impl Drop for Late {
    fn drop(&mut self) {
        assert_eq!(self.0.to_vec::<f32>().unwrap()[0], 2.0);
        let scanned = self.0.scan_with(0, 0.0, |sum, x| sum + x + Tensor::rand((), 1) * 0.0);
        let (values, profile) =
            lazuli::profile(|| lazuli::Tuning::default().scope(|| scanned.to_vec::<f32>()));
        println!("<{} {}>", values.unwrap().len(), profile.kernels().len());
    }
}

fn ends_late() {
    thread_local!(static LATE: RefCell<Option<Late>> = const { RefCell::new(None) });
    let thread = || {
        // What is made first goes last.
        LATE.set(Some(Late(expression(1.0))));
        let scanned = expression(0.0).scan_with(0, 0.0, |sum, x| sum + x);
        let (result, _) = lazuli::profile(|| lazuli::Tuning::default().scope(|| scanned.eval()));
        result.unwrap();
    };
    std::thread::spawn(thread).join().unwrap();
}

#[test]
fn a_thread_evaluates_to_its_end() {
    let (said, _) = Place::new().says("", "ends late", &[]);
    assert_eq!(said, "3 1");
}

/// Large enough for all threads, also in a process that has none but this.
fn forks() {
    let compute = |number: u64| {
        let x = Tensor::rand([1 << 22], number);
        let (sum, most) = (x.exp().sum(..), x.sin().max(..));
        lazuli::eval([&sum, &most]).unwrap();
        sum.item::<f32>().unwrap()
    };
    let expected = [compute(1), compute(2)];
    // SAFETY: no other thread of this process holds anything that the child needs.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_right = compute(2) == expected[1]
            && std::thread::spawn(move || compute(1)).join().unwrap() == expected[0]
            && lazuli::eval(&several()).is_ok();
        // SAFETY: ends the process, without what the test's harness would say.
        unsafe { libc::_exit(if is_right { 0 } else { 1 }) };
    }
    let child = rustix::process::Pid::from_raw(child).unwrap();
    assert_eq!(compute(1), expected[0]);
    for _ in 0..3000 {
        let waited = rustix::process::waitpid(Some(child), rustix::process::WaitOptions::NOHANG).unwrap();
        if let Some((_, status)) = waited {
            assert_eq!(status.exit_status(), Some(0), "{status:?}");
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
    panic!("the child hangs");
}

#[test]
fn a_forked_process_evaluates() {
    let folder = tempfile::tempdir().unwrap();
    succeeds("", "forks", &[("LAZULI_CACHE_DIR", folder.path().to_str().unwrap())]);
}
