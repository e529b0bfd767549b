//! Kernels that were noted, run again with other code.

use std::sync::Arc;
use std::time::Instant;

use lazuli_codegen::Emitted;

use super::prepared::Prepared;
use super::run::{Places, Run, given};
use super::trial::Noted;
use crate::Result;
use crate::compiler::Plan;
use crate::runtime::buffer::Buffer;

/// Other code for a kernel that was noted, or several kernels in its place.
pub(crate) struct Candidate {
    /// The noted one, or that of the several.
    plan: Arc<Plan>,
    prepared: Arc<Prepared>,
    /// What is there before.
    places: Places,
}

impl Candidate {
    /// What fails or spills registers is none.
    fn of(plan: &Arc<Plan>, prepared: Result<Prepared>, places: Places) -> Option<Candidate> {
        let prepared = prepared.ok().filter(|prepared| prepared.spilling().is_empty())?;
        Some(Candidate { plan: plan.clone(), prepared: Arc::new(prepared), places })
    }

    fn run(&self) -> Run<'_> {
        Run::again(&self.plan, self.prepared.clone(), self.places.clone())
    }
}

impl Noted {
    /// Compiles and loads other code for the kernel; `None` for what fails, or spills registers.
    pub(crate) fn candidates(&self, emitted: &[Arc<Emitted>]) -> Vec<Option<Candidate>> {
        let prepared = Prepared::alone(self, emitted).into_iter();
        prepared.map(|prepared| Candidate::of(&self.plan, prepared, self.inputs.clone())).collect()
    }

    /// The same for the kernels of a plan of what the kernel computes, from its inputs in order.
    pub(crate) fn in_parts(&self, plan: &Arc<Plan>) -> Option<Candidate> {
        let kernel = self.plan.kernels.get(self.number)?.parts.first()?;
        let places = self.plan.storage.kernels.get(self.number)?.parts.first()?;
        let inputs = places.iter().take(kernel.lowered.inputs.len());
        let inputs: Vec<Buffer> =
            inputs.map(|place| self.inputs[place.index()].clone()).collect::<Option<_>>()?;
        let prepared = Prepared::new(plan, self.device, &self.backend, &[]);
        Candidate::of(plan, prepared, given(plan, &inputs, []).ok()?)
    }

    /// What the kernel computes with this code, in its order.
    pub(crate) fn results(&self, candidate: &Candidate) -> Result<Vec<Buffer>> {
        let mut run = candidate.run();
        for number in 0..run.kernels() {
            let memory = run.allocate(number)?;
            run.launch(number, memory)?;
        }
        self.backend.synchronize()?;
        match Arc::ptr_eq(&candidate.plan, &self.plan) {
            true => Ok(run.results(0)),
            false => Ok(run.finish()?.into_vec()),
        }
    }

    /// The seconds of a launch, of so many one after the other; of one after the other of several kernels. Memory is there before.
    pub(crate) fn seconds(&self, candidate: &Candidate, launches: u32) -> Result<f64> {
        let run = candidate.run();
        let memory = (0..run.kernels()).map(|number| run.allocate(number)).collect::<Result<Vec<_>>>()?;
        self.backend.synchronize()?;
        let start = Instant::now();
        for _ in 0..launches {
            let mut run = candidate.run();
            for (number, memory) in memory.iter().enumerate() {
                run.launch(number, memory.clone())?;
            }
        }
        self.backend.synchronize()?;
        Ok(start.elapsed().as_secs_f64() / f64::from(launches.max(1)))
    }
}
