//! Values that are being overwritten, and who waits for the end of that.

use std::sync::{Condvar, Mutex, PoisonError};

/// An evaluation that overwrites values: those who meet them on the way wait for it.
#[derive(Default)]
pub(crate) struct Loan {
    is_over: Mutex<bool>,
    ended: Condvar,
}

impl Loan {
    /// Waits for the end.
    pub(crate) fn wait(&self) {
        let mut is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_over {
            is_over = self.ended.wait(is_over).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn end(&self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ended.notify_all();
    }
}
