//! What kernels note when a position that they computed is none, and the errors that these notes become.
//!
//! A launch gets two numbers to write to: one more than the number of a check that failed, and the index. On the
//! host they are looked at when the kernel has run. A GPU is not waited for: there each launch has a slot of its own
//! in a buffer, which is read when something waits for the device anyway, and when all slots are taken. Until then a
//! [`Fault`] goes with whatever follows from the launch, and only who reads that gets the error.

use std::ffi::c_void;
use std::sync::Arc;
#[cfg(feature = "cuda")]
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

#[cfg(feature = "cuda")]
use super::cuda::driver::{Access, CudaBuffer, CudaDevice};
use super::fault::Fault;
use crate::error::IndexCheck;
use crate::{Error, Result};
#[cfg(feature = "cuda")]
use smallvec::SmallVec;

/// One more than the number of a check, and the index; zeros for none. GPUs write it as one.
#[derive(Default)]
#[repr(align(16))]
pub(crate) struct Note([i64; 2]);

/// Where one launch notes a failed check.
pub(crate) enum Notes {
    Host(Box<Note>),
    /// A slot, and the device's others: no one else reads or takes any until the launch has been made.
    #[cfg(feature = "cuda")]
    Device {
        pointer: u64,
        fault: Arc<Fault>,
        _others: MutexGuard<'static, BTreeMap<usize, Slots>>,
    },
}

impl Notes {
    /// Of a launch on the host.
    pub(crate) fn on_host() -> Notes {
        Notes::Host(Box::default())
    }

    /// The address for the kernel.
    pub(crate) fn pointer(&mut self) -> *mut c_void {
        match self {
            Notes::Host(note) => note.0.as_mut_ptr().cast(),
            #[cfg(feature = "cuda")]
            Notes::Device { pointer, .. } => *pointer as *mut c_void,
        }
    }

    /// After the launch: what its results follow from if that is not known yet.
    ///
    /// # Errors
    /// If a check is known to have failed.
    pub(crate) fn finish(self, checks: &[IndexCheck]) -> Result<Option<Arc<Fault>>> {
        match self {
            Notes::Host(note) => error_of(note.0, checks).map_or(Ok(None), Err),
            #[cfg(feature = "cuda")]
            Notes::Device { fault, .. } => Ok(Some(fault)),
        }
    }
}

/// The error of a note: one more than the number of the check, and the index.
pub(crate) fn error_of([number, index]: [i64; 2], checks: &[IndexCheck]) -> Option<Error> {
    let number = usize::try_from(number).ok()?.checked_sub(1)?;
    Some(match checks.get(number) {
        Some(&IndexCheck { op, axis, extent, location }) => {
            Error::IndexOutOfRange { op, index, axis, extent, location }
        }
        None => Error::internal("execution", format!("check {number}, which there is not, found {index}")),
    })
}

/// Launches whose notes a device keeps until it is waited for.
#[cfg(feature = "cuda")]
pub(crate) const SLOTS: usize = 256;

/// The notes of the launches on one device since it was last waited for.
#[cfg(feature = "cuda")]
pub(crate) struct Slots {
    memory: CudaBuffer,
    /// What the launch of each slot checks, and what becomes of it, in the order of launching.
    taken: Vec<(Arc<[IndexCheck]>, Arc<Fault>)>,
}

/// By the device's number.
#[cfg(feature = "cuda")]
fn all() -> MutexGuard<'static, BTreeMap<usize, Slots>> {
    static ALL: Mutex<BTreeMap<usize, Slots>> = Mutex::new(BTreeMap::new());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Slots for launches that are made together: no one else reads or takes any until this is dropped.
#[cfg(feature = "cuda")]
pub(crate) struct Reserved {
    /// Of each launch: where it notes a failed check, and what that comes to.
    pub(crate) notes: SmallVec<[(u64, Arc<Fault>); 1]>,
    others: MutexGuard<'static, BTreeMap<usize, Slots>>,
}

/// Notes of the next launch on a GPU.
///
/// # Errors
/// As allocating and copying.
#[cfg(feature = "cuda")]
pub(crate) fn on_device(device: &Arc<CudaDevice>, checks: &Arc<[IndexCheck]>) -> Result<Notes> {
    let Reserved { mut notes, others } = reserve(device, &[checks])?;
    let (pointer, fault) = notes.pop().unwrap_or_default();
    Ok(Notes::Device { pointer, fault, _others: others })
}

/// Notes of launches on a GPU that check these; at most [`SLOTS`].
///
/// # Errors
/// As allocating and copying.
#[cfg(feature = "cuda")]
pub(crate) fn reserve(device: &Arc<CudaDevice>, checks: &[&Arc<[IndexCheck]>]) -> Result<Reserved> {
    let mut all = all();
    let slots = match all.entry(device.ordinal()) {
        std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
        std::collections::btree_map::Entry::Vacant(entry) => {
            entry.insert(Slots { memory: device.allocate_zeroed(16 * SLOTS)?, taken: Vec::new() })
        }
    };
    if slots.taken.len() + checks.len() > SLOTS {
        slots.read()?;
    }
    // Slots are other memory for each launch: none waits for another one's.
    slots.memory.use_on(&device.stream(), Access::Reads)?;
    let mut take = |checks: &&Arc<[IndexCheck]>| {
        let pointer = slots.memory.device_pointer() + 16 * slots.taken.len() as u64;
        let fault = Arc::<Fault>::default();
        slots.taken.push((Arc::clone(checks), fault.clone()));
        (pointer, fault)
    };
    let notes = checks.iter().map(&mut take).collect();
    Ok(Reserved { notes, others: all })
}

/// Reads what launches on the device noted, after it has been waited for.
///
/// # Errors
/// As copying.
#[cfg(feature = "cuda")]
pub(crate) fn read(device: &CudaDevice) -> Result<()> {
    match all().get_mut(&device.ordinal()) {
        Some(slots) if !slots.taken.is_empty() => slots.read(),
        _ => Ok(()),
    }
}

/// What a buffer's values follow from, when they have been waited for.
///
/// # Errors
/// Of a launch among these; as copying.
#[cfg(feature = "cuda")]
pub(crate) fn of(buffer: &CudaBuffer) -> Result<()> {
    read(buffer.device())?;
    if buffer.faults().are_unknown() {
        // Of another GPU, which a copy has waited for.
        read_all()?;
    }
    buffer.faults().check()
}

/// Reads what launches on any device noted, waiting for each of these.
///
/// # Errors
/// As copying.
#[cfg(feature = "cuda")]
pub(crate) fn read_all() -> Result<()> {
    all().values_mut().filter(|slots| !slots.taken.is_empty()).try_for_each(Slots::read)
}

#[cfg(feature = "cuda")]
impl Slots {
    fn read(&mut self) -> Result<()> {
        let mut bytes = vec![0; 16 * SLOTS];
        let device = self.memory.device();
        // All that write to slots.
        self.memory.use_on(&device.stream(), Access::Writes)?;
        device.download(&self.memory, &mut bytes)?;
        let number =
            |at: &[u8]| at.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte)) as i64;
        let notes = bytes.chunks_exact(16).map(|slot| [number(&slot[..8]), number(&slot[8..])]);
        let taken = std::mem::take(&mut self.taken);
        let mut has_failed = false;
        for (note, (checks, fault)) in notes.zip(taken) {
            let error = error_of(note, &checks);
            has_failed |= error.is_some();
            fault.settle(error);
        }
        // Slots hold zeros when they are taken.
        if has_failed { device.fill(&self.memory, 0) } else { Ok(()) }
    }
}
