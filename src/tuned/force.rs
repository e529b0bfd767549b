//! Which tuning is in force: of the process, or of what a thread does in a scope.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use lazuli_codegen::ir::Kernel;
use smallvec::SmallVec;

use super::measured::{Key, TunedKernel, Tuning, normalised};
use crate::runtime::cpu;
#[cfg(feature = "cuda")]
use crate::runtime::cuda::driver::CudaDevice;
use crate::runtime::device::{Device, DeviceKind};
use crate::{settings, stderr};

/// What a tuning says of one device: a part of what plans depend on, and small enough to be in every key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SectionId(NonZeroU32);

/// What a tuning says of one device.
#[derive(PartialEq, Debug)]
pub(crate) struct Section {
    kernels: BTreeMap<Key, TunedKernel>,
    /// Why it says nothing, though there is a tuning.
    pub(crate) remark: Option<String>,
}

impl Section {
    /// What was measured of a kernel that is [`normalised`](super::normalised).
    pub(crate) fn of(&self, kernel: &Kernel) -> Option<&TunedKernel> {
        if self.kernels.is_empty() { None } else { self.kernels.get(&Key::of(kernel)) }
    }
}

/// What was measured of a kernel that is to be cut, if it is one.
pub(crate) fn cut(id: Option<SectionId>, kernel: &Kernel) -> Option<TunedKernel> {
    let section = section(id?)?;
    // A kernel's key is its whole text.
    if !section.kernels.values().any(|kernel| kernel.place().is_some()) {
        return None;
    }
    section.of(&normalised(kernel)).filter(|kernel| kernel.place().is_some()).cloned()
}

/// All that were ever in force: equal ones are one, so that plans are found again.
static SECTIONS: Mutex<Vec<Arc<Section>>> = Mutex::new(Vec::new());

fn intern(section: Section) -> Option<SectionId> {
    let mut sections = SECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let place = sections.iter().position(|other| **other == section).unwrap_or_else(|| {
        sections.push(Arc::new(section));
        sections.len() - 1
    });
    NonZeroU32::new(u32::try_from(place + 1).ok()?).map(SectionId)
}

/// The section of a number.
pub(crate) fn section(id: SectionId) -> Option<Arc<Section>> {
    let sections = SECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    sections.get(id.0.get() as usize - 1).cloned()
}

/// Of few devices.
type Sections = SmallVec<[(Device, Option<SectionId>); 2]>;

/// A tuning, or why there is none.
struct InForce {
    tuning: Result<Tuning, String>,
    /// Of each device that was asked for.
    sections: Mutex<Sections>,
}

impl InForce {
    fn new(tuning: Result<Tuning, String>) -> Arc<InForce> {
        Arc::new(InForce { tuning, sections: Mutex::default() })
    }

    fn section(&self, device: Device) -> Option<SectionId> {
        let mut known = self.sections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, id)) = known.iter().find(|(other, _)| *other == device) {
            return *id;
        }
        let id = self.section_anew(device);
        known.push((device, id));
        id
    }

    fn section_anew(&self, device: Device) -> Option<SectionId> {
        let name = device_name(device)?;
        let nothing = |remark: String| Section { kernels: BTreeMap::new(), remark: Some(remark) };
        intern(match &self.tuning {
            Err(problem) => nothing(problem.clone()),
            Ok(tuning) if tuning.is_empty() => return None,
            Ok(tuning) => {
                let own = tuning.kernels.iter().filter(|((device, _), _)| *device == name);
                let kernels: BTreeMap<Key, TunedKernel> =
                    own.map(|((_, key), kernel)| (key.clone(), kernel.clone())).collect();
                match kernels.is_empty() {
                    false => Section { kernels, remark: None },
                    true => {
                        let mut others: Vec<&str> =
                            tuning.kernels.keys().map(|(device, _)| device.as_str()).collect();
                        others.dedup();
                        let others = others.join("; ");
                        nothing(format!("nothing was measured on {name}, but on {others}"))
                    }
                }
            }
        })
    }
}

/// The device as a tuning names it: what decides how fast kernels are. None for one that has no kernels of its own.
pub(crate) fn device_name(device: Device) -> Option<String> {
    match device.0 {
        DeviceKind::Cpu(_) => {
            // Not how many of them kernels may have: results are the same on any number.
            let processors = std::thread::available_parallelism().map_or(1, |number| number.get());
            let plural = if processors == 1 { "" } else { "s" };
            Some(format!("{}, {processors} processor{plural}", cpu::model()))
        }
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda(ordinal) => {
            let device = CudaDevice::open(ordinal).ok()?;
            Some(format!("{}, {}", device.name(), device.architecture()))
        }
        #[cfg(not(feature = "cuda"))]
        DeviceKind::Cuda(_) => None,
        DeviceKind::Emulated => Some(device.to_string()),
        DeviceKind::Interpreter | DeviceKind::Interpreted(_) => None,
    }
}

thread_local! {
    /// Of a scope, which takes back what it has set: nothing is left to drop, so that it is there in destructors of others.
    static SCOPED: ManuallyDrop<RefCell<Option<Arc<InForce>>>> = const { ManuallyDrop::new(RefCell::new(None)) };
}

static GLOBAL: RwLock<Option<Arc<InForce>>> = RwLock::new(None);

/// Whether there is something in `GLOBAL`: that is asked at every evaluation.
static STATE: AtomicU8 = AtomicU8::new(UNREAD);
const UNREAD: u8 = 0;
const NONE: u8 = 1;
const SOME: u8 = 2;

/// What is said of the device by the tuning in force on this thread.
pub(crate) fn in_force(device: Device) -> Option<SectionId> {
    if let Some(scoped) = SCOPED.with(|scoped| scoped.borrow().clone()) {
        return scoped.section(device);
    }
    if STATE.load(Ordering::Acquire) == UNREAD {
        read_variable();
    }
    match STATE.load(Ordering::Acquire) {
        SOME => {
            let global = GLOBAL.read().unwrap_or_else(PoisonError::into_inner).clone();
            global.and_then(|global| global.section(device))
        }
        _ => None,
    }
}

fn read_variable() {
    let mut global = GLOBAL.write().unwrap_or_else(PoisonError::into_inner);
    if STATE.load(Ordering::Acquire) != UNREAD {
        return;
    }
    *global = settings::variable("LAZULI_TUNING").filter(|path| !path.is_empty()).map(|path| {
        let tuning = Tuning::load(path).map_err(|error| error.to_string());
        if let Err(problem) = &tuning {
            stderr::warn(&format!("LAZULI_TUNING: {problem}"));
        }
        InForce::new(tuning)
    });
    STATE.store(if global.is_some() { SOME } else { NONE }, Ordering::Release);
}

impl Tuning {
    /// From now on it is in force on all threads, in the place of what was before, and of `LAZULI_TUNING`. An empty one leaves
    /// every kernel its default schedule.
    ///
    /// ```
    /// lazuli::Tuning::default().install();
    /// ```
    pub fn install(&self) {
        let mut global = GLOBAL.write().unwrap_or_else(PoisonError::into_inner);
        *global = (!self.is_empty()).then(|| InForce::new(Ok(self.clone())));
        STATE.store(if global.is_some() { SOME } else { NONE }, Ordering::Release);
    }

    /// Evaluates, explains and compiles with it while `f` runs on this thread.
    ///
    /// ```
    /// use lazuli::{Tensor, Tuning};
    /// let x = Tensor::rand([10, 10], 1);
    /// let default = Tuning::default().scope(|| x.sum(1).to_vec::<f32>())?;
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn scope<T>(&self, f: impl FnOnce() -> T) -> T {
        /// Restores what was in force also if `f` panics.
        struct Restore(Option<Arc<InForce>>);
        impl Drop for Restore {
            fn drop(&mut self) {
                SCOPED.with(|scoped| drop(scoped.replace(self.0.take())));
            }
        }
        let own = Some(InForce::new(Ok(self.clone())));
        let _restore = Restore(SCOPED.with(|scoped| scoped.replace(own)));
        f()
    }
}
