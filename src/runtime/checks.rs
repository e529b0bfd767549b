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
    sync::atomic::{AtomicBool, Ordering},
    sync::{Mutex, MutexGuard, PoisonError},
};

#[cfg(feature = "cuda")]
use super::cuda::driver::{Access, CudaBuffer, CudaDevice, CudaStream};
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
    /// A slot, which nobody reads until the launch has been made.
    #[cfg(feature = "cuda")]
    Device {
        pointer: u64,
        fault: Arc<Fault>,
        _until_launched: Reserved,
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

    /// Whether a check is known to have failed: what is launched next must not write over inputs.
    pub(crate) fn has_failed(&self) -> bool {
        match self {
            Notes::Host(note) => note.0[0] != 0,
            #[cfg(feature = "cuda")]
            Notes::Device { .. } => false,
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

/// Launches whose notes a device keeps until they are read.
#[cfg(feature = "cuda")]
pub(crate) const SLOTS: usize = 256;

#[cfg(feature = "cuda")]
const SLOT_BYTES: usize = size_of::<Note>();

/// Where the launches on one device note what fails. Slots hold zeros when they are taken; no two launches share one.
#[cfg(feature = "cuda")]
struct Slots {
    memory: CudaBuffer,
    /// Whether the zeros that the memory began with are known to be there.
    is_there: AtomicBool,
    taken: Mutex<Taken>,
}

#[cfg(feature = "cuda")]
struct Taken {
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
}

/// A slot that is a launch's.
#[cfg(feature = "cuda")]
#[derive(Clone)]
struct Slot {
    checks: Arc<[IndexCheck]>,
    fault: Arc<Fault>,
    stream: Arc<CudaStream>,
    /// The stream has been given the launch.
    is_launched: bool,
    /// A thread is writing zeros over what was noted.
    is_cleared: bool,
}

/// By the device's number.
#[cfg(feature = "cuda")]
fn all() -> MutexGuard<'static, BTreeMap<usize, Arc<Slots>>> {
    static ALL: Mutex<BTreeMap<usize, Arc<Slots>>> = Mutex::new(BTreeMap::new());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Slots for launches that are made before this is dropped.
#[cfg(feature = "cuda")]
pub(crate) struct Reserved {
    /// Of each launch: where it notes a failed check, and what that comes to.
    pub(crate) notes: SmallVec<[(u64, Arc<Fault>); 1]>,
    numbers: SmallVec<[usize; 1]>,
    slots: Arc<Slots>,
}

#[cfg(feature = "cuda")]
impl Drop for Reserved {
    /// Now whoever waits for the launches may read the slots.
    fn drop(&mut self) {
        let mut taken = self.slots.taken();
        for &number in &self.numbers {
            if let Some(slot) = &mut taken.slots[number] {
                slot.is_launched = true;
            }
        }
    }
}

/// Notes of the next launch on a GPU.
///
/// # Errors
/// As allocating and copying.
#[cfg(feature = "cuda")]
pub(crate) fn on_device(device: &Arc<CudaDevice>, checks: &Arc<[IndexCheck]>) -> Result<Notes> {
    let reserved = reserve(device, &[checks])?;
    let (pointer, fault) = reserved.notes.first().cloned().unwrap_or_default();
    Ok(Notes::Device { pointer, fault, _until_launched: reserved })
}

/// Notes of launches on a GPU that check these; at most [`SLOTS`]. Nothing is held that others wait for: they take other slots,
/// and read none of these before they are launched.
///
/// # Errors
/// As allocating and copying.
#[cfg(feature = "cuda")]
pub(crate) fn reserve(device: &Arc<CudaDevice>, checks: &[&Arc<[IndexCheck]>]) -> Result<Reserved> {
    if checks.len() > SLOTS {
        return Err(Error::internal("launch", "more checks than a device has slots for"));
    }
    let known = all().get(&device.ordinal()).cloned();
    let slots = match known {
        Some(slots) => slots,
        None => {
            let made = Arc::new(Slots::new(device)?);
            all().entry(device.ordinal()).or_insert(made).clone()
        }
    };
    let stream = device.stream();
    if !slots.is_there.load(Ordering::Acquire) {
        slots.memory.use_on(&stream, Access::Reads)?;
    }
    loop {
        if let Some(reserved) = slots.take(checks, &stream) {
            return Ok(reserved);
        }
        slots.read()?;
        // Others may be about to launch.
        std::thread::yield_now();
    }
}

/// Reads what launches on the device noted, after it has been waited for.
///
/// # Errors
/// As copying.
#[cfg(feature = "cuda")]
pub(crate) fn read(device: &CudaDevice) -> Result<()> {
    let slots = all().get(&device.ordinal()).cloned();
    slots.map_or(Ok(()), |slots| slots.read())
}

/// What a buffer's values follow from, when they have been waited for.
///
/// # Errors
/// Of a launch among these; as copying.
#[cfg(feature = "cuda")]
pub(crate) fn of(buffer: &CudaBuffer) -> Result<()> {
    if buffer.faults().are_unknown() {
        read(buffer.device())?;
    }
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
    let all: Vec<Arc<Slots>> = all().values().cloned().collect();
    all.iter().try_for_each(|slots| slots.read())
}

#[cfg(feature = "cuda")]
impl Slots {
    fn new(device: &Arc<CudaDevice>) -> Result<Slots> {
        let taken = Taken { slots: vec![None; SLOTS], free: (0..SLOTS).rev().collect() };
        let memory = device.allocate_zeroed(SLOT_BYTES * SLOTS)?;
        Ok(Slots { memory, is_there: AtomicBool::new(false), taken: Mutex::new(taken) })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Slots for each of these, or none.
    fn take(self: &Arc<Self>, checks: &[&Arc<[IndexCheck]>], stream: &Arc<CudaStream>) -> Option<Reserved> {
        let mut taken = self.taken();
        let left = taken.free.len().checked_sub(checks.len())?;
        let numbers: SmallVec<[usize; 1]> = taken.free.drain(left..).rev().collect();
        let mut notes = SmallVec::new();
        for (&number, &checks) in numbers.iter().zip(checks) {
            let fault = Arc::<Fault>::default();
            notes.push((self.memory.device_pointer() + (SLOT_BYTES * number) as u64, fault.clone()));
            let (checks, stream) = (checks.clone(), stream.clone());
            taken.slots[number] = Some(Slot { checks, fault, stream, is_launched: false, is_cleared: false });
        }
        Some(Reserved { notes, numbers, slots: self.clone() })
    }

    /// Waits for the launches that there are, and says what they come to. Several threads may do so at the same time: they find the
    /// same, and the first one to be done gives the slots back.
    fn read(&self) -> Result<()> {
        let launched = |(number, slot): (usize, &Option<Slot>)| {
            slot.as_ref().filter(|slot| slot.is_launched).map(|slot| (number, slot.clone()))
        };
        let launched: Vec<(usize, Slot)> =
            self.taken().slots.iter().enumerate().filter_map(launched).collect();
        if launched.is_empty() {
            return Ok(());
        }
        let device = self.memory.device();
        let mut bytes = vec![0; SLOT_BYTES * SLOTS];
        let mut streams: SmallVec<[&Arc<CudaStream>; 4]> =
            launched.iter().map(|(_, slot)| &slot.stream).collect();
        streams.sort_by_key(|stream| stream.id);
        streams.dedup_by_key(|stream| stream.id);
        device.read_after(&streams, &self.memory, &mut bytes)?;
        self.is_there.store(true, Ordering::Release);
        let number =
            |at: &[u8]| at.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte)) as i64;
        let mut to_clear: Vec<usize> = Vec::new();
        for (at, slot) in &launched {
            let note = &bytes[SLOT_BYTES * at..SLOT_BYTES * (at + 1)];
            let error = error_of([number(&note[..8]), number(&note[8..])], &slot.checks);
            let has_failed = error.is_some();
            slot.fault.settle(error);
            let mut taken = self.taken();
            // Unless another thread has given it back, and perhaps somebody has it by now; or is about to, and has written the zeros
            // that were read here.
            match &mut taken.slots[*at] {
                Some(own) if Arc::ptr_eq(&own.fault, &slot.fault) && !own.is_cleared => match has_failed {
                    true => {
                        own.is_cleared = true;
                        to_clear.push(*at);
                    }
                    false => taken.give_back(*at),
                },
                _ => {}
            }
        }
        for number in to_clear {
            device.write_now(&self.memory, SLOT_BYTES * number, &[0; SLOT_BYTES])?;
            self.taken().give_back(number);
        }
        Ok(())
    }
}

#[cfg(feature = "cuda")]
impl Taken {
    fn give_back(&mut self, number: usize) {
        self.slots[number] = None;
        self.free.push(number);
    }
}
