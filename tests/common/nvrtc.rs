//! Every CUDA kernel that a test emits goes through the real compiler, for every architecture; no GPU is needed.
//!
//! Compiling is most of the time that the tests take. So the kernels of a case are compiled together, a few in each
//! text, on all cores; texts that differ in the kernel's name alone are compiled once; and what passed is remembered
//! in the target folder, by text and version of the compiler.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once};

use lazuli::{Program, Target, nvrtc};
use rayon::prelude::*;

const ARCHITECTURES: [&str; 4] = ["sm_75", "sm_80", "sm_90", "sm_100"];

/// Kernels in one text: the more, the less the compiler's start costs.
const TOGETHER: usize = 16;

/// Characters of the source of a small kernel. Larger ones, where a test does many operations on one input, and
/// CUDA's functions in double precision take the optimiser seconds: such a kernel is optimised for one architecture,
/// which its text chooses, and otherwise compiled in a hurry. It may use a stack.
const SMALL: usize = 4000;

/// Bytes of stack that the compiler spends around calls of its own, such as the slow path of a division. More are an array
/// indexed at run time.
const STACK_LIMIT: u32 = 64;

/// What happens to kernels that are not [`SMALL`].
#[derive(Clone, Copy, PartialEq)]
enum Care {
    /// All are treated like those: they must compile.
    Least,
    /// They may spill, and are optimised for one architecture.
    Hurry,
    /// What happens to all others.
    Full,
}

struct Kernel {
    name: String,
    /// Its functions' names.
    functions: Vec<String>,
    schedule: String,
    source: String,
    /// It is optimised for every architecture, and must not spill registers.
    is_checked: bool,
    /// The architecture that it is optimised for otherwise.
    chosen: usize,
    /// Is there once it has passed.
    stamp: PathBuf,
    /// Is there once it has passed with more care.
    stricter: Option<PathBuf>,
}

impl Kernel {
    fn new(name: &str, schedule: &str, source: &str, version: (i32, i32), care: Care) -> Kernel {
        let function = |head: &str| Some(head.split_once(") ")?.1.split_once('(')?.0.to_owned());
        let functions: Vec<String> = source.split("__global__ ").skip(1).filter_map(function).collect();
        assert!(!functions.is_empty(), "no function in {name}:\n{source}");
        let nameless = functions.iter().enumerate().fold(source.to_owned(), |text, (number, function)| {
            text.replace(&format!(" {function}("), &format!(" {}(", renamed("kernel", number)))
        });
        let is_small = source.len() <= SMALL && !source.contains("double");
        let stamp = |care: Care| {
            let rule = match care {
                Care::Least => "least ",
                Care::Full if !is_small => "none in a hurry ",
                Care::Full | Care::Hurry => "",
            };
            let rules = format!("{rule}{version:?} {ARCHITECTURES:?} {SMALL} {STACK_LIMIT} 0\n");
            let hash = blake3::hash((rules + &nameless).as_bytes());
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("nvrtc").join(hash.to_hex().as_str())
        };
        let hash = blake3::hash(nameless.as_bytes());
        Kernel {
            name: name.into(),
            functions,
            schedule: schedule.into(),
            source: source.into(),
            is_checked: is_small && care != Care::Least || care == Care::Full,
            chosen: usize::from(hash.as_bytes()[0]) % ARCHITECTURES.len(),
            stamp: stamp(care),
            stricter: (care == Care::Least).then(|| stamp(Care::Hurry)),
        }
    }

    fn is_optimised(&self, architecture: usize) -> bool {
        self.is_checked || self.chosen == architecture
    }

    /// Whether this process has not compiled the text before, and no other has.
    fn is_new(&self) -> bool {
        static SEEN: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);
        let mut seen = SEEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let has_passed = self.stamp.exists() || self.stricter.as_ref().is_some_and(|stamp| stamp.exists());
        seen.get_or_insert_default().insert(self.stamp.clone()) && !has_passed
    }
}

/// Compiles the kernels of the programs that have not been compiled before.
pub fn compile(programs: &[Program]) -> Result<(), String> {
    compile_with(&texts(programs), Care::Hurry)
}

/// As [`compile`], but no kernel may spill, however large it is.
pub fn compile_without_spills(programs: &[Program]) -> Result<(), String> {
    compile_with(&texts(programs), Care::Full)
}

/// Compiles texts, each with the kernel's name and schedule, with the least care: optimised for one architecture each.
pub fn compile_at_all(texts: &[(String, String, String)]) -> Result<(), String> {
    compile_with(texts, Care::Least)
}

/// Compiles texts, each with the kernel's name and schedule.
pub fn compile_texts(texts: &[(String, String, String)]) -> Result<(), String> {
    compile_with(texts, Care::Hurry)
}

fn texts(programs: &[Program]) -> Vec<(String, String, String)> {
    let programs = programs.iter().filter(|program| *program.target() != Target::cpu());
    let kernels = programs.flat_map(Program::kernels);
    kernels.map(|k| (k.name().into(), k.schedule().to_string(), k.source().into())).collect()
}

fn compile_with(texts: &[(String, String, String)], care: Care) -> Result<(), String> {
    let Ok((version, known)) = nvrtc::find() else {
        warn();
        return Ok(());
    };
    let kernels =
        texts.iter().map(|(name, schedule, source)| Kernel::new(name, schedule, source, version, care));
    let kernels: Vec<Kernel> = kernels.filter(Kernel::is_new).collect();
    let mut jobs: Vec<(usize, bool, Vec<&Kernel>)> = Vec::new();
    let is_known = |number: &usize| known.iter().any(|known| ARCHITECTURES[*number] == format!("sm_{known}"));
    for architecture in (0..ARCHITECTURES.len()).filter(is_known) {
        let (slow, quick): (Vec<&Kernel>, Vec<&Kernel>) =
            kernels.iter().partition(|kernel| kernel.is_optimised(architecture));
        jobs.extend(slow.chunks(TOGETHER).map(|part| (architecture, true, part.to_vec())));
        jobs.extend(quick.chunks(TOGETHER).map(|part| (architecture, false, part.to_vec())));
    }
    let problems: String = jobs
        .par_iter()
        .map(|(number, optimise, part)| problems(ARCHITECTURES[*number], *optimise, part))
        .collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    for kernel in &kernels {
        // Without a stamp it is compiled again the next time.
        let _ = kernel.stamp.parent().map(std::fs::create_dir_all);
        let _ = std::fs::write(&kernel.stamp, "");
    }
    Ok(())
}

/// A function of a kernel that gets another name: most have one.
fn renamed(kernel: &str, function: usize) -> String {
    if function == 0 { kernel.to_owned() } else { format!("{kernel}_{function}") }
}

/// What the compiler has against the kernels; empty if nothing.
fn problems(architecture: &str, optimise: bool, kernels: &[&Kernel]) -> String {
    let mut text = String::new();
    let mut names: Vec<String> = Vec::new();
    let mut owners: Vec<&Kernel> = Vec::new();
    for (number, kernel) in kernels.iter().enumerate() {
        // Kernels of a case may have one name, and all have helpers of the same names.
        let Kernel { functions, source, .. } = kernel;
        for (function, old) in functions.iter().enumerate() {
            let new = renamed(&format!("kernel_{number}"), function);
            let _ = writeln!(text, "#define {old} {new}");
            names.push(new);
            owners.push(kernel);
        }
        let _ = writeln!(text, "namespace in_kernel_{number} {{\n{source}\n}}");
        for old in functions {
            let _ = writeln!(text, "#undef {old}");
        }
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut problems = String::new();
    match nvrtc::compile(&text, &names, architecture, optimise) {
        Ok(infos) => {
            for (kernel, info) in owners.iter().zip(infos).filter(|(kernel, _)| kernel.is_checked) {
                if info.stack_bytes > STACK_LIMIT || info.spill_bytes > 0 {
                    let Kernel { name, schedule, .. } = kernel;
                    let _ = write!(problems, "\n{architecture}: {name}, {schedule} spills: {info:?}");
                }
            }
        }
        Err(error) => {
            let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
            let _ = write!(problems, "\n{architecture}: {names:?}: {error}");
        }
    }
    problems
}

fn warn() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        eprintln!("not checked: NVRTC is missing, kernels were not compiled for CUDA (tests/run fetches it)");
    });
}
