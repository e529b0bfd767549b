//! What the plans for a device depend on.

use lazuli_codegen::Language;
use lazuli_codegen::schedule::Matrices;

use crate::Fusion;
use crate::compiler::Settings;
#[cfg(feature = "cuda")]
use crate::compiler::matrices;
use crate::fusion::cut;
#[cfg(feature = "cuda")]
use crate::runtime::cuda::driver::{CudaDevice, DEFAULT_SHARED_BYTES};
use crate::runtime::device::{Device, DeviceKind};
#[cfg(feature = "emulate")]
use crate::runtime::emulate;
use crate::tuned;

/// Shared memory of a block for which interpreted kernels are planned: that of sm_100, which has no groups of warps that multiply as sm_90
/// has, for which emulated ones are.
const INTERPRETED_SHARED_BYTES: u32 = 227 << 10;

/// What the plans for a device depend on.
pub(crate) fn of(device: Device, fusion: Fusion) -> Settings {
    let (language, shared_bytes, matrices) = match device.0 {
        DeviceKind::Cpu(_) | DeviceKind::Interpreter | DeviceKind::Interpreted(Language::C) => {
            (Language::C, 0, Matrices::None)
        }
        DeviceKind::Interpreted(Language::Cuda) => {
            (Language::Cuda, INTERPRETED_SHARED_BYTES, Matrices::Warps)
        }
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda(ordinal) => {
            // Where it is not there, nothing runs.
            let opened = CudaDevice::open(ordinal).ok();
            let of = |device: &CudaDevice| {
                // Products of groups of warps copy by tensor maps.
                let matrices = match matrices(device.architecture()) {
                    Matrices::Groups if !device.has_tensor_maps() => Matrices::Warps,
                    matrices => matrices,
                };
                (device.shared_bytes_per_block(), matrices)
            };
            let (shared_bytes, matrices) =
                opened.as_deref().map_or((DEFAULT_SHARED_BYTES, Matrices::Warps), of);
            (Language::Cuda, shared_bytes, matrices)
        }
        #[cfg(not(feature = "cuda"))]
        DeviceKind::Cuda(_) => (Language::Cuda, 0, Matrices::Warps),
        #[cfg(feature = "emulate")]
        DeviceKind::Emulated => (Language::Cuda, emulate::SHARED_BYTES, Matrices::Groups),
        #[cfg(not(feature = "emulate"))]
        DeviceKind::Emulated => (Language::Cuda, 0, Matrices::Warps),
    };
    let (undone, tuned) = (cut::undone(), tuned::in_force(device));
    Settings { language, fusion, shared_bytes, matrices, undone, tuned }
}
