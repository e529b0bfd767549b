//! Every CUDA kernel that a test emits goes through the real compiler; no GPU is needed.
//!
//! Each kernel is compiled for one architecture, which its text chooses; those of the seed pipelines, and all where
//! `LAZULI_TEST_MATRIX=full` is set, for every one. The kernels of a case are compiled together, a few in each text, on
//! all cores; texts that differ in the kernel's name alone are compiled once; and what passed is remembered in the
//! target folder, by text and version of the compiler.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use lazuli::{Program, Target, nvrtc};
use rayon::prelude::*;

use super::matrix::{is_full_matrix, unchecked};

const ARCHITECTURES: [&str; 4] = ["sm_75", "sm_80", "sm_90", "sm_100"];

/// Kernels in one text: the more, the less the compiler's start costs.
const TOGETHER: usize = 16;

/// Characters of the source of a small kernel, which must not spill registers. Larger ones, where a test does many
/// operations on one input, and CUDA's functions in double precision may.
const SMALL: usize = 4000;

/// Bytes of stack that the compiler spends around calls of its own, such as the slow path of a division. More are an array
/// indexed at run time.
const STACK_LIMIT: u32 = 64;

/// What is asked of kernels.
#[derive(Clone, Copy, PartialEq)]
enum Care {
    /// They compile, in a hurry.
    Compiles,
    /// Those that are [`SMALL`] do not spill registers; others compile, in a hurry.
    SmallFits,
    /// None spills registers.
    Fits,
    /// None spills registers, on any architecture.
    FitsEverywhere,
}

struct Kernel {
    name: String,
    /// Its functions' names.
    functions: Vec<String>,
    schedule: String,
    source: String,
    /// It is optimised, and must not spill registers. Otherwise the compiler hurries: the optimiser takes minutes for the
    /// largest.
    fits: bool,
    /// The one architecture that it is compiled for, unless it is every one.
    chosen: Option<usize>,
    /// Is there once it has passed.
    stamp: PathBuf,
    /// One of them is there if it has passed with more care.
    stricter: Vec<PathBuf>,
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
        let is_everywhere = |care: Care| care == Care::FitsEverywhere || is_full_matrix();
        let fits = |care: Care| match care {
            Care::Compiles => false,
            Care::SmallFits => is_small,
            Care::Fits | Care::FitsEverywhere => true,
        };
        let stamp = |care: Care| {
            let architectures = if is_everywhere(care) { "everywhere" } else { "somewhere" };
            let rules = format!(
                "{architectures} fits={} {version:?} {ARCHITECTURES:?} {STACK_LIMIT} early\n",
                fits(care)
            );
            let hash = blake3::hash((rules + &nameless).as_bytes());
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("nvrtc").join(hash.to_hex().as_str())
        };
        let stricter = match care {
            Care::Compiles => &[Care::SmallFits, Care::Fits, Care::FitsEverywhere][..],
            Care::SmallFits => &[Care::Fits, Care::FitsEverywhere],
            Care::Fits => &[Care::FitsEverywhere],
            Care::FitsEverywhere => &[],
        };
        let hash = blake3::hash(nameless.as_bytes());
        Kernel {
            name: name.into(),
            functions,
            schedule: schedule.into(),
            source: source.into(),
            fits: fits(care),
            chosen: (!is_everywhere(care)).then_some(usize::from(hash.as_bytes()[0]) % ARCHITECTURES.len()),
            stamp: stamp(care),
            stricter: stricter.iter().map(|&care| stamp(care)).collect(),
        }
    }

    fn is_for(&self, architecture: usize) -> bool {
        self.chosen.is_none_or(|chosen| chosen == architecture)
    }

    /// Whether it must not spill there. What groups of warps multiply on sm_90, threads add up elsewhere, from local memory: such a text
    /// is right there, and not meant for it.
    fn fits_on(&self, architecture: usize) -> bool {
        self.fits && (!self.schedule.contains("group") || ARCHITECTURES[architecture] == "sm_90")
    }

    /// Whether this process has not compiled the text before, and no other has.
    fn is_new(&self) -> bool {
        static SEEN: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);
        let mut seen = SEEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let has_passed = self.stamp.exists() || self.stricter.iter().any(|stamp| stamp.exists());
        seen.get_or_insert_default().insert(self.stamp.clone()) && !has_passed
    }
}

/// Compiles the kernels of the programs that have not been compiled before. Small ones must not spill.
pub fn compile(programs: &[Program]) -> Result<(), String> {
    compile_with(&texts(programs), Care::SmallFits)
}

/// As [`compile`], but no kernel may spill, however large it is.
pub fn compile_without_spills(programs: &[Program]) -> Result<(), String> {
    compile_with(&texts(programs), Care::Fits)
}

/// As [`compile_without_spills`], for every architecture.
pub fn compile_everywhere(programs: &[Program]) -> Result<(), String> {
    compile_with(&texts(programs), Care::FitsEverywhere)
}

/// Compiles texts, each with the kernel's name and schedule, in a hurry.
pub fn compile_at_all(texts: &[(String, String, String)]) -> Result<(), String> {
    compile_with(texts, Care::Compiles)
}

/// Compiles texts, each with the kernel's name and schedule. Small ones must not spill.
pub fn compile_texts(texts: &[(String, String, String)]) -> Result<(), String> {
    compile_with(texts, Care::SmallFits)
}

fn texts(programs: &[Program]) -> Vec<(String, String, String)> {
    let programs = programs.iter().filter(|program| *program.target() != Target::cpu());
    let kernels = programs.flat_map(Program::kernels);
    kernels.map(|k| (k.name().into(), k.schedule().to_string(), k.source().into())).collect()
}

fn compile_with(texts: &[(String, String, String)], care: Care) -> Result<(), String> {
    let (version, known) = match nvrtc::find() {
        Ok(found) => found,
        Err(error) => return unchecked(&format!("kernels were not compiled for CUDA: {error}")),
    };
    let kernels =
        texts.iter().map(|(name, schedule, source)| Kernel::new(name, schedule, source, version, care));
    let kernels: Vec<Kernel> = kernels.filter(Kernel::is_new).collect();
    let mut jobs: Vec<(usize, bool, Vec<&Kernel>)> = Vec::new();
    let is_known = |number: &usize| known.iter().any(|known| ARCHITECTURES[*number] == format!("sm_{known}"));
    for architecture in (0..ARCHITECTURES.len()).filter(is_known) {
        for is_optimised in [true, false] {
            let here = |kernel: &&Kernel| {
                kernel.is_for(architecture) && kernel.fits_on(architecture) == is_optimised
            };
            let kernels: Vec<&Kernel> = kernels.iter().filter(here).collect();
            jobs.extend(kernels.chunks(TOGETHER).map(|part| (architecture, is_optimised, part.to_vec())));
        }
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

/// Whether NVRTC keeps the accesses of the programs' kernels as wide as their texts have them; what it does not.
pub fn check_widths(programs: &[Program]) -> Result<(), String> {
    let version = match nvrtc::find() {
        Ok((version, _)) => version,
        Err(error) => return unchecked(&format!("kernels were not compiled for CUDA: {error}")),
    };
    let mut texts: Vec<(&str, &str)> =
        programs.iter().flat_map(Program::kernels).map(|k| (k.name(), k.source())).collect();
    texts.sort_unstable();
    texts.dedup();
    let stamp = |text: &str| {
        let hash = blake3::hash(format!("widths {version:?}\n{text}").as_bytes());
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("nvrtc").join(hash.to_hex().as_str())
    };
    texts.retain(|(_, text)| !stamp(text).exists());
    let problems: String = texts.par_chunks(TOGETHER).map(narrowed).collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    for (_, text) in texts {
        let _ = stamp(text).parent().map(std::fs::create_dir_all);
        let _ = std::fs::write(stamp(text), "");
    }
    Ok(())
}

/// What accesses of these kernels, names and texts, are narrower than in their texts.
pub fn narrowed(kernels: &[(&str, &str)]) -> String {
    let spaces =
        kernels.iter().enumerate().map(|(n, (_, text))| format!("namespace in_{n} {{\n{text}\n}}\n"));
    // Kernels of one name are in name spaces of their own.
    let source: String = spaces.collect::<String>().replace("extern \"C\" ", "");
    let ptx = nvrtc::ptx(&source).unwrap_or_else(|error| panic!("{error}"));
    let functions: Vec<&str> = ptx.split(".entry ").skip(1).collect();
    let mut problems = String::new();
    for (n, (name, text)) in kernels.iter().enumerate() {
        // As mangled: the length of a name and the name.
        let space = format!("in_{n}");
        let mangled = format!("_ZN{}{space}", space.len());
        let compiled: String = functions.iter().copied().filter(|text| text.starts_with(&mangled)).collect();
        assert!(!compiled.is_empty(), "{name} is not in the PTX");
        let (mut stores, mut loads) = (Vec::new(), Vec::new());
        for (to, from) in text.lines().filter_map(|line| line.split_once(" = ")) {
            stores.extend(vector(to).filter(|_| to.contains("*)(out")));
            loads.extend(vector(from).filter(|_| from.contains("*)(in")));
        }
        // Beside vectors there may be single elements: of a tail, of what is once a row, of parts of a reduction.
        let is_single = |line: &str| {
            let line = line.trim_start();
            line.starts_with("out")
                || ["partial", "arrivals", "checks"].iter().any(|word| line.contains(word))
        };
        let has_singles = text.lines().any(is_single);
        for (access, wanted, has_singles) in [("st.global", stores, has_singles), ("ld.global", loads, true)]
        {
            let found = widths(&compiled, access);
            let (Some(least), Some(most)) = (wanted.iter().min(), wanted.iter().max()) else { continue };
            if !found.contains(most) || !has_singles && found.iter().any(|width| width < least) {
                let _ = write!(problems, "\n{name}: {access} of {found:?} bytes, in the text {wanted:?}");
            }
        }
    }
    problems
}

/// Bytes of the vector that a side of an assignment accesses, such as `*(float4*)(out0 + i0)`.
fn vector(access: &str) -> Option<u32> {
    let ty = access.split("*(").nth(1)?.split('*').next()?.trim_start_matches("const ");
    let count = ty.chars().last()?.to_digit(10)?;
    let element = match ty.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "float" | "int" | "uint" => 4,
        "double" | "longlong" => 8,
        "short" | "ushort" => 2,
        "char" | "uchar" => 1,
        other => panic!("{other} is no vector's type"),
    };
    Some(count * element)
}

/// Bytes of the accesses in PTX.
fn widths(ptx: &str, access: &str) -> Vec<u32> {
    let of = |line: &str| -> Option<u32> {
        let instruction = line.trim_start().trim_start_matches(['@', '!']).trim_start();
        let instruction = instruction.split_once(access)?.1.split_whitespace().next()?;
        let mut width = 1;
        for part in instruction.split('.') {
            match part {
                "v2" => width *= 2,
                "v4" => width *= 4,
                "v8" => width *= 8,
                _ => {
                    let bits = part.trim_start_matches(|c: char| c.is_ascii_lowercase());
                    width *= bits.parse::<u32>().map_or(1, |bits| bits / 8);
                }
            }
        }
        Some(width)
    };
    ptx.lines().filter_map(of).collect()
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
            // Who must not spill is compiled with optimisation.
            for (kernel, info) in owners.iter().zip(infos).filter(|_| optimise) {
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
