//! What is known only later: whether the launch that made a value was one with a position that is none. Only a GPU is not
//! waited for.

use std::sync::OnceLock;
#[cfg(feature = "cuda")]
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(feature = "cuda")]
use smallvec::SmallVec;

use crate::Error;
#[cfg(feature = "cuda")]
use crate::Result;

/// What the checks of one launch come to: unknown until its device has been waited for.
#[derive(Default)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "there is none"))]
pub(crate) struct Fault(OnceLock<Option<Error>>);

impl Fault {
    /// What it came to, as far as that is known.
    pub(crate) fn error(&self) -> Option<Error> {
        self.0.get().cloned().flatten()
    }
}

#[cfg(feature = "cuda")]
impl Fault {
    /// The device has been waited for.
    pub(crate) fn settle(&self, error: Option<Error>) {
        let _ = self.0.set(error);
    }

    fn is_none(&self) -> bool {
        matches!(self.0.get(), Some(None))
    }
}

/// The launches that a value follows from, but for those that are known to be right.
#[cfg(feature = "cuda")]
#[derive(Default)]
pub(crate) struct Faults(Mutex<SmallVec<[Arc<Fault>; 1]>>);

#[cfg(feature = "cuda")]
impl Faults {
    fn get(&self) -> SmallVec<[Arc<Fault>; 1]> {
        let mut faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        faults.retain(|fault| !fault.is_none());
        faults.clone()
    }

    /// Those of a value that follows from these others, and from these launches.
    pub(crate) fn gather<'a>(
        sources: impl Iterator<Item = &'a Faults>,
        launches: impl Iterator<Item = &'a Arc<Fault>>,
    ) -> SmallVec<[Arc<Fault>; 1]> {
        let mut faults: SmallVec<[Arc<Fault>; 1]> =
            sources.flat_map(Faults::get).chain(launches.cloned()).collect();
        faults.sort_unstable_by_key(Arc::as_ptr);
        faults.dedup_by(|a, b| Arc::ptr_eq(a, b));
        faults
    }

    /// From now on the value has these.
    pub(crate) fn set(&self, faults: SmallVec<[Arc<Fault>; 1]>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = faults;
    }

    /// Whether some of the launches have not been looked at.
    pub(crate) fn are_unknown(&self) -> bool {
        self.get().iter().any(|fault| fault.0.get().is_none())
    }

    /// After the device has been waited for.
    ///
    /// # Errors
    /// Of a launch that the value follows from.
    pub(crate) fn check(&self) -> Result<()> {
        let error = self.get().iter().find_map(|fault| fault.error());
        error.map_or(Ok(()), Err)
    }
}
