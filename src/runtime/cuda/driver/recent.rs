//! What a device was given last, for errors that show after the launch that made them.

use std::sync::Arc;

use cudarc::driver::{DriverError, sys::CUresult};

/// How many launches an error names.
const REMEMBERED: usize = 6;

/// A kernel by the list that names it and its place there; without a place, all of them as one graph.
type Launched = (Arc<[String]>, Option<usize>);

/// The last launches.
#[derive(Default)]
pub(super) struct Recent {
    launches: [Option<Launched>; REMEMBERED],
    next: usize,
}

impl Recent {
    /// Notes what is launched now.
    pub(super) fn note(&mut self, kernels: &Arc<[String]>, number: Option<usize>) {
        self.launches[self.next] = Some((kernels.clone(), number));
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// What is to be said of a device that the driver has given up.
    pub(super) fn loss(&self) -> String {
        let mut text =
            "The device has lost its memory for this process, which must be started again".to_owned();
        let mut launches = Vec::new();
        for back in 1..=REMEMBERED {
            let Some((kernels, number)) = &self.launches[(self.next + REMEMBERED - back) % REMEMBERED] else {
                break;
            };
            launches.push(match number.map(|number| kernels.get(number)) {
                Some(Some(kernel)) => kernel.clone(),
                _ => {
                    let named = &kernels[..kernels.len().min(REMEMBERED)];
                    let others = kernels.len() - named.len();
                    let more = if others > 0 { format!(", and {others} more") } else { String::new() };
                    format!("a graph of {}{more}", named.join(", "))
                }
            });
        }
        launches.dedup();
        if !launches.is_empty() {
            text += &format!(
                ". The last launches, the latest first: {}. LAZULI_LAUNCH_BLOCKING=on waits for each, and says which it was",
                launches.join("; ")
            );
        }
        text
    }
}

/// Whether the driver says so as the answer to everything from now on.
pub(super) fn is_final(error: DriverError) -> bool {
    matches!(
        error.0,
        CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
    )
}
