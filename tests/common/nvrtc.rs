//! Every CUDA kernel that a case emits goes through the real compiler; no GPU is needed.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::{Mutex, Once};

use lazuli::{Error, KernelInfo, Target, Tensor};

/// Compiles the kernels of the tensors that have not been compiled before. A kernel that needs a stack has spilled
/// registers, or indexes an array at run time: the default schedules do neither.
pub fn compile(tensors: &[&Tensor], architectures: &[&str]) -> Result<(), String> {
    static SEEN: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    static MISSING: Once = Once::new();
    let mut spills = String::new();
    for &architecture in architectures {
        let program = lazuli::compile_for(tensors.iter().copied(), Target::cuda(architecture))
            .map_err(|e| e.to_string())?;
        let is_new = |kernel: &&KernelInfo| {
            let mut seen = SEEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            seen.get_or_insert_default().insert(format!("{architecture}\n{}", kernel.source()))
        };
        for kernel in program.kernels().iter().filter(is_new) {
            let compiled = match kernel.compile() {
                Ok(compiled) => compiled,
                Err(Error::Unavailable { .. }) => {
                    MISSING.call_once(|| {
                        eprintln!(
                            "not checked: NVRTC is missing, kernels were not compiled for CUDA (tests/run fetches it)"
                        );
                    });
                    return Ok(());
                }
                Err(error) => return Err(format!("{architecture}: {error}")),
            };
            if compiled.info.stack_bytes > 0 || compiled.info.spill_bytes > 0 {
                let _ = write!(
                    spills,
                    "\n{architecture}: {}, {}: {:?}",
                    kernel.name(),
                    kernel.schedule(),
                    compiled.info
                );
            }
        }
    }
    if spills.is_empty() { Ok(()) } else { Err(format!("registers spilled{spills}")) }
}
