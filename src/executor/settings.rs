//! What the plans for a device depend on.

use lazuli_codegen::Language;

use crate::Fusion;
use crate::compiler::Settings;
#[cfg(feature = "cuda")]
use crate::compiler::has_warp_groups;
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
    let (language, shared_bytes, warp_groups) = match device.0 {
        DeviceKind::Cpu(_) | DeviceKind::Interpreter | DeviceKind::Interpreted(Language::C) => {
            (Language::C, 0, false)
        }
        DeviceKind::Interpreted(Language::Cuda) => (Language::Cuda, INTERPRETED_SHARED_BYTES, false),
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda(ordinal) => {
            // Where it is not there, nothing runs.
            let opened = CudaDevice::open(ordinal).ok();
            let of = |device: &CudaDevice| {
                // Products of groups of warps copy by tensor maps.
                let has_groups = device.has_tensor_maps() && has_warp_groups(device.architecture());
                (device.shared_bytes_per_block(), has_groups)
            };
            let (shared_bytes, warp_groups) = opened.as_deref().map_or((DEFAULT_SHARED_BYTES, false), of);
            (Language::Cuda, shared_bytes, warp_groups)
        }
        #[cfg(not(feature = "cuda"))]
        DeviceKind::Cuda(_) => (Language::Cuda, 0, false),
        #[cfg(feature = "emulate")]
        DeviceKind::Emulated => (Language::Cuda, emulate::SHARED_BYTES, true),
        #[cfg(not(feature = "emulate"))]
        DeviceKind::Emulated => (Language::Cuda, 0, false),
    };
    let (undone, tuned) = (cut::undone(), tuned::in_force(device));
    Settings { language, fusion, shared_bytes, warp_groups, undone, tuned }
}
