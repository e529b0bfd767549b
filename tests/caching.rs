//! What is planned and compiled only once: counters of a process, so each scenario is a process of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

mod workloads;

use std::fs;
use std::path::{Path, PathBuf};

use lazuli::{Stats, Tensor, stats};
use workloads::{child_succeeds, tensor};

/// Two kernels: columns come before rows.
fn expression(scale: f32) -> Tensor {
    let x = tensor([50, 60]) * scale;
    (&x - x.mean_keepdim(0)).abs().sum(1)
}

fn expected(scale: f32) -> Vec<f32> {
    let x: Vec<f32> = workloads::data(50 * 60).iter().map(|x| x * scale).collect();
    let mean = |column: usize| (0..50).map(|row| x[row * 60 + column]).sum::<f32>() / 50.0;
    let means: Vec<f32> = (0..60).map(mean).collect();
    x.chunks(60).map(|row| row.iter().zip(&means).map(|(x, mean)| (x - mean).abs()).sum()).collect()
}

#[track_caller]
fn assert_right(scale: f32) {
    let result = expression(scale).to_vec::<f32>().unwrap();
    for (actual, expected) in result.iter().zip(expected(scale)) {
        assert!((actual - expected).abs() <= 1e-4 * expected.abs(), "{actual} is not {expected}");
    }
}

#[test]
fn child() {
    let Some(scenario) = workloads::scenario() else { return };
    match scenario.as_str() {
        "evaluate" => {
            assert_eq!(stats(), Stats::default());
            assert_right(1.0);
            println!("{}", numbers(stats()));
        }
        "again" => again(),
        "structures" => structures(),
        "many" => {
            many();
            println!("{}", numbers(stats()));
        }
        other => panic!("no scenario {other}"),
    }
}

fn numbers(stats: Stats) -> String {
    let Stats { plans_made, plan_hits, kernels_compiled, disk_hits, launches, .. } = stats;
    format!(
        "planned={plans_made} known={plan_hits} compiled={kernels_compiled} from_disk={disk_hits} launched={launches};"
    )
}

fn again() {
    assert_right(3.0);
    let first = stats();
    assert_eq!((first.plans_made, first.plan_hits, first.evaluations), (1, 0, 1));
    assert!(first.kernels_compiled >= 1);
    for _ in 0..3 {
        assert_right(3.0);
    }
    let after = stats();
    assert_eq!((after.plans_made, after.plan_hits, after.evaluations), (1, 3, 4));
    assert_eq!((after.kernels_compiled, after.disk_hits), (first.kernels_compiled, 0));
    assert_eq!(after.launches, 4 * first.launches);
    // Other data, and data from elsewhere.
    let row = |x: Vec<f32>| Tensor::from_vec(x, [1, 3]).sum(1).item::<f32>().unwrap();
    assert_eq!(row(vec![1.0, 2.0, 3.0]), 6.0);
    let before = stats();
    assert_eq!(row(vec![10.0, 20.0, 30.0]), 60.0);
    let computed = Tensor::from_vec(vec![2.0f32, 3.0, 4.0], [1, 3]);
    computed.eval().unwrap();
    assert_eq!(computed.sum(1).item::<f32>().unwrap(), 9.0);
    assert_eq!(stats().plans_made, before.plans_made);
    assert_eq!(stats().kernels_compiled, before.kernels_compiled);
    // Other numbers are other arguments: nothing to compile.
    let before = stats();
    for scale in [2.5, 1e-3, -7.0] {
        assert_right(scale);
    }
    assert_eq!((stats().kernels_compiled, stats().disk_hits), (before.kernels_compiled, 0));
    // What is evaluated stays so.
    let result = expression(1.0);
    result.eval().unwrap();
    let before = stats();
    for _ in 0..3 {
        result.eval().unwrap();
        result.to_vec::<f32>().unwrap();
    }
    assert_eq!(stats(), before);
}

fn structures() {
    let run = |rows: usize| tensor([rows, 40]).exp().sum(1).eval().unwrap();
    run(10);
    let first = stats();
    assert_eq!(first.kernels_compiled, 1);
    // Another size is the same kernel, and the same plan if it is not much larger.
    (11..20).for_each(run);
    let after = stats();
    assert_eq!((after.plans_made, after.plan_hits), (2, 8));
    assert_eq!((after.kernels_compiled, after.disk_hits), (1, 0));
}

/// Small kernels of different kinds, some of one name.
fn many() {
    let x = || tensor([3, 40]);
    let chain = |length: usize| (0..length).fold(x().tanh(), |x, _| x.abs() * 1.5);
    let outputs = [
        x().exp(),
        chain(5),
        chain(6),
        tensor([3, 40]).transpose(0, 1).exp(),
        x().sum(0).tanh(),
        x().cumsum(1),
        x().cast(lazuli::DType::F16) * 2.0,
        tensor([3, 8, 8]).max_pool2d(2, 2),
    ];
    lazuli::eval(&outputs).unwrap();
    let expected = lazuli::with_fusion(lazuli::Fusion::Off, || x().exp().to_vec::<f32>().unwrap());
    assert_eq!(outputs[0].to_vec::<f32>().unwrap(), expected);
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    fn entries(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.0.path().join("kernels")).unwrap().map(|file| file.unwrap().path());
        // Other entries than kernels have no C beside them.
        let mut entries: Vec<PathBuf> = files
            .filter(|path| path.extension().unwrap() == "bin" && path.with_extension("c").exists())
            .collect();
        entries.sort();
        entries
    }
}

/// What a process that evaluates once counts, and what it says on stderr.
#[track_caller]
fn evaluate(variables: &[(&str, &str)]) -> (String, String) {
    let (stdout, stderr) = child_succeeds("evaluate", variables);
    let counters = stdout.split(';').next().unwrap().split("planned=").nth(1).unwrap();
    (format!("planned={counters}"), stderr)
}

const COMPILES: &str = "planned=1 known=0 compiled=2 from_disk=0 launched=2";
const FINDS: &str = "planned=1 known=0 compiled=0 from_disk=2 launched=2";

#[test]
fn the_same_structure_is_planned_and_compiled_once() {
    let folder = Folder::new();
    child_succeeds("again", &[("LAZULI_CACHE_DIR", folder.path())]);
}

#[test]
fn another_size_is_not_another_kernel() {
    let folder = Folder::new();
    child_succeeds("structures", &[("LAZULI_CACHE_DIR", folder.path())]);
}

#[test]
fn a_second_process_compiles_nothing() {
    let folder = Folder::new();
    let variables = [("LAZULI_CACHE_DIR", folder.path())];
    assert_eq!(evaluate(&variables), (COMPILES.into(), String::new()));
    assert_eq!(evaluate(&variables), (FINDS.into(), String::new()));
    assert_eq!(folder.entries().len(), 2);
}

#[cfg(unix)]
#[test]
fn one_run_of_the_compiler_takes_several_kernels() {
    let folder = Folder::new();
    let (script, runs) = (folder.0.path().join("cc.sh"), folder.0.path().join("runs"));
    let text = format!("case $* in *kernel.c*) echo run >> {};; esac; exec cc \"$@\"", runs.display());
    fs::write(&script, text).unwrap();
    let compiler = format!("sh {}", script.display());
    let variables =
        [("LAZULI_CACHE_DIR", folder.path()), ("LAZULI_CC", &compiler), ("RAYON_NUM_THREADS", "1")];
    let (stdout, _) = child_succeeds("many", &variables);
    assert!(stdout.contains("compiled=8 from_disk=0 "), "{stdout}");
    // What has loops for the compiler's vectoriser is compiled with other flags.
    assert_eq!(fs::read_to_string(&runs).unwrap(), "run\nrun\n");
    let (stdout, _) = child_succeeds("many", &variables);
    assert!(stdout.contains("compiled=0 from_disk=8 "), "{stdout}");
}

#[test]
fn a_damaged_entry_is_compiled_again() {
    let folder = Folder::new();
    let variables = [("LAZULI_CACHE_DIR", folder.path())];
    assert_eq!(evaluate(&variables).0, COMPILES);
    let damages: [fn(&Path); 4] = [
        |path| fs::write(path, b"").unwrap(),
        |path| {
            let mut content = fs::read(path).unwrap();
            let middle = content.len() / 2;
            content[middle] ^= 1;
            fs::write(path, content).unwrap();
        },
        |path| {
            let content = fs::read(path).unwrap();
            fs::write(path, &content[..content.len() - 10]).unwrap();
        },
        |path| fs::remove_file(path).unwrap(),
    ];
    for damage in damages {
        let entries = folder.entries();
        damage(&entries[0]);
        let (counters, stderr) = evaluate(&variables);
        assert_eq!(counters, "planned=1 known=0 compiled=1 from_disk=1 launched=2");
        assert_eq!(stderr, "");
        assert_eq!(folder.entries(), entries);
        assert_eq!(evaluate(&variables).0, FINDS);
    }
}

#[test]
fn entries_of_each_other_are_not_mistaken() {
    let folder = Folder::new();
    let variables = [("LAZULI_CACHE_DIR", folder.path())];
    evaluate(&variables);
    let entries = folder.entries();
    fs::copy(&entries[0], &entries[1]).unwrap();
    assert_eq!(evaluate(&variables).0, "planned=1 known=0 compiled=1 from_disk=1 launched=2");
}

#[test]
fn without_the_cache_every_process_compiles() {
    let folder = Folder::new();
    for value in ["off", "0"] {
        let variables = [("LAZULI_CACHE_DIR", folder.path()), ("LAZULI_CACHE", value)];
        for _ in 0..2 {
            assert_eq!(evaluate(&variables), (COMPILES.into(), String::new()));
        }
        assert!(!folder.0.path().join("kernels").exists());
    }
}

#[test]
fn a_folder_that_cannot_be_written_costs_a_warning() {
    // Not by permissions: these do not stop root.
    for folder in ["/dev/null", "/dev/null/cache", "/proc/lazuli"] {
        let (counters, stderr) = evaluate(&[("LAZULI_CACHE_DIR", folder)]);
        assert_eq!(counters, COMPILES);
        assert_eq!(stderr.matches("lazuli: kernels are not cached").count(), 1, "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn processes_share_a_folder_at_the_same_time() {
    let folder = Folder::new();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| evaluate(&[("LAZULI_CACHE_DIR", folder.path())]));
        }
    });
    assert_eq!(evaluate(&[("LAZULI_CACHE_DIR", folder.path())]).0, FINDS);
}

#[test]
fn without_a_compiler_the_interpreter_steps_in_with_one_warning() {
    let folder = Folder::new();
    let variables = [("LAZULI_CACHE_DIR", folder.path()), ("LAZULI_CC", "/nonexistent")];
    let (counters, stderr) = evaluate(&variables);
    assert!(counters.ends_with("compiled=0 from_disk=0 launched=0"), "{counters}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    for part in ["/nonexistent: not found", "LAZULI_CC", "Falling back to the (slow) interpreter"] {
        assert!(stderr.contains(part), "{stderr}");
    }
}
