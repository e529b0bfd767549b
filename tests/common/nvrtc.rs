//! Every CUDA kernel that a case emits goes through the real compiler; no GPU is needed.

use std::collections::HashSet;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, Once};

use lazuli::{Error, KernelInfo, Target, Tensor};

const ARCHITECTURES: [&str; 4] = ["sm_75", "sm_80", "sm_90", "sm_100"];

/// Characters of the source of a small kernel. A large one, of which many operations on one input make a test out
/// of proportion, takes NVRTC seconds: it is compiled for one architecture, which its text chooses, and may
/// spill.
const SMALL: usize = 4000;

/// Kernels that spill, which the compiler could do better; to be taken from this list when it does.
const KNOWN_SPILLS: [(&str, &str); 1] = [("clamp_u8", "sm_100")];

/// Compiles the kernels of the tensors that have not been compiled before.
pub fn compile(tensors: &[&Tensor], every_architecture: bool) -> Result<(), String> {
    let mut problems = String::new();
    for (number, architecture) in ARCHITECTURES.into_iter().enumerate() {
        let program = lazuli::compile_for(tensors.iter().copied(), &Target::cuda(architecture));
        let program = program.map_err(|error| super::brief(&error))?;
        for kernel in program.kernels() {
            let is_small = kernel.source().len() <= SMALL;
            let is_chosen = every_architecture && is_small || chosen(kernel) == number;
            if !is_chosen || !is_new(architecture, kernel) {
                continue;
            }
            match kernel.compile() {
                // The double-precision functions of CUDA itself need a stack, whatever calls them.
                Ok(compiled) if is_small && !kernel.source().contains("double") => {
                    let spills = compiled.info.stack_bytes > 0 || compiled.info.spill_bytes > 0;
                    if spills && !KNOWN_SPILLS.contains(&(kernel.name(), architecture)) {
                        let (name, schedule, info) = (kernel.name(), kernel.schedule(), compiled.info);
                        let _ = write!(problems, "\n{architecture}: {name}, {schedule} spills: {info:?}");
                    }
                }
                Ok(_) => {}
                Err(Error::Unavailable { .. }) => {
                    warn();
                    return Ok(());
                }
                Err(error) => {
                    let _ = write!(problems, "\n{architecture}: {}", super::brief(&error));
                }
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// The architecture of a kernel that is compiled for one alone.
fn chosen(kernel: &KernelInfo) -> usize {
    let mut hasher = DefaultHasher::new();
    kernel.source().hash(&mut hasher);
    hasher.finish() as usize % ARCHITECTURES.len()
}

/// Whether this process has not compiled the text before.
fn is_new(architecture: &'static str, kernel: &KernelInfo) -> bool {
    static SEEN: Mutex<Option<HashSet<(&str, String)>>> = Mutex::new(None);
    let mut seen = SEEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    seen.get_or_insert_default().insert((architecture, kernel.source().to_string()))
}

fn warn() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        eprintln!("not checked: NVRTC is missing, kernels were not compiled for CUDA (tests/run fetches it)");
    });
}
