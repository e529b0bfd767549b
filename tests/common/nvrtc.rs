//! Every CUDA kernel that a case emits goes through the real compiler; no GPU is needed.

use std::collections::HashSet;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, Once};

use lazuli::{Error, KernelInfo, Target, Tensor};

const ARCHITECTURES: [&str; 4] = ["sm_75", "sm_80", "sm_90", "sm_100"];

/// Characters of the source of a small kernel. Larger ones, where a test does many operations on one input, and
/// CUDA's functions in double precision take NVRTC seconds: such a kernel is compiled for one architecture, which its
/// text chooses, and may use a stack.
const SMALL: usize = 4000;

/// Bytes of stack that the compiler spends around calls of its own, such as the slow path of a division. More are
/// registers that ran out, or an array indexed at run time.
const STACK_LIMIT: u32 = 64;

/// Compiles the kernels of the tensors that have not been compiled before.
pub fn compile(tensors: &[&Tensor], every_architecture: bool) -> Result<(), String> {
    let mut problems = String::new();
    for (number, architecture) in ARCHITECTURES.into_iter().enumerate() {
        let program = lazuli::compile_for(tensors.iter().copied(), &Target::cuda(architecture));
        let program = program.map_err(|error| super::brief(&error))?;
        for kernel in program.kernels() {
            let is_small = kernel.source().len() <= SMALL && !kernel.source().contains("double");
            let is_chosen = every_architecture && is_small || chosen(kernel) == number;
            if !is_chosen || !is_new(architecture, kernel) {
                continue;
            }
            match kernel.compile() {
                Ok(compiled) if is_small => {
                    let info = compiled.info;
                    if info.stack_bytes.max(info.spill_bytes) > STACK_LIMIT {
                        let (name, schedule) = (kernel.name(), kernel.schedule());
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
