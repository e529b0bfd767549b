//! Kernels that were noted, run again with other code.

use std::sync::Arc;
use std::time::Instant;

use lazuli_codegen::Emitted;

use super::prepared::Prepared;
use super::run::Run;
use super::trial::Noted;
use crate::Result;
use crate::runtime::buffer::Buffer;

/// Other code for a kernel that was noted.
pub(crate) struct Candidate {
    prepared: Arc<Prepared>,
}

impl Noted {
    /// Compiles and loads other code for the kernel; `None` for what fails, or spills registers.
    pub(crate) fn candidates(&self, emitted: &[Arc<Emitted>]) -> Vec<Option<Candidate>> {
        let usable = |prepared: Result<Prepared>| {
            let prepared = prepared.ok().filter(|prepared| prepared.spilling().is_empty())?;
            Some(Candidate { prepared: Arc::new(prepared) })
        };
        Prepared::alone(self, emitted).into_iter().map(usable).collect()
    }

    /// What the kernel computes with this code.
    pub(crate) fn results(&self, candidate: &Candidate) -> Result<Vec<Buffer>> {
        let mut run = Run::again(self, candidate.prepared.clone());
        let memory = run.allocate(0)?;
        run.launch(0, memory)?;
        self.backend.synchronize()?;
        Ok(run.results(0))
    }

    /// The seconds of a launch, of so many one after the other. Memory is there before.
    pub(crate) fn seconds(&self, candidate: &Candidate, launches: u32) -> Result<f64> {
        let memory = Run::again(self, candidate.prepared.clone()).allocate(0)?;
        self.backend.synchronize()?;
        let start = Instant::now();
        for _ in 0..launches {
            Run::again(self, candidate.prepared.clone()).launch(0, memory.clone())?;
        }
        self.backend.synchronize()?;
        Ok(start.elapsed().as_secs_f64() / f64::from(launches.max(1)))
    }
}
