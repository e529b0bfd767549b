//! The kernels of a plan under other schedules, for who measures them.

use std::sync::Arc;

use lazuli_codegen::schedule::Schedule;
use lazuli_codegen::{Emitted, Language};

use super::emission::{MOST_COMPILE_TIME, compile_time, emit_as, emit_cached, figures};
use super::plan::{Part, Plan};
use super::settings::Settings;
use crate::DType;
use crate::tuned::{self, Key};

/// The part of a kernel that can be emitted otherwise.
fn only_part(plan: &Plan, number: usize) -> Option<&Part> {
    plan.kernels.get(number)?.only_part()
}

/// What a tuning knows the kernel by, if its schedule can be another.
pub(crate) fn tuned_key(plan: &Plan, number: usize) -> Option<Key> {
    let part = only_part(plan, number)?;
    Some(Key::of(&tuned::normalised(&part.lowered.kernel)))
}

/// The schedules of the kernel that are beside this one.
pub(crate) fn neighbours(plan: &Plan, number: usize, schedule: Schedule) -> Vec<Schedule> {
    let Some(part) = only_part(plan, number) else { return Vec::new() };
    schedule.neighbours(&part.lowered.kernel, plan.settings.language, &figures(plan.settings, false))
}

/// The kernel under a schedule, if it is one that a plan could have.
pub(crate) fn under(plan: &Plan, number: usize, schedule: Schedule) -> Option<Arc<Emitted>> {
    let part = only_part(plan, number)?;
    let emitted = emit_as(&part.lowered.kernel, false, plan.settings, schedule).ok()?;
    let is_quick =
        plan.settings.language == Language::Cuda || compile_time(&emitted.source) <= MOST_COMPILE_TIME;
    (emitted.schedule == schedule && is_quick).then_some(emitted)
}

/// The schedule that the kernel has if nothing was measured.
pub(crate) fn default_schedule(plan: &Plan, number: usize) -> Option<Schedule> {
    let part = only_part(plan, number)?;
    let settings = Settings { tuned: None, ..plan.settings };
    emit_cached(&part.lowered.kernel, false, settings).ok().map(|emitted| emitted.schedule)
}

/// The dtypes of what the kernel stores, in order.
pub(crate) fn results(plan: &Plan, number: usize) -> Vec<DType> {
    let buffers = only_part(plan, number).map(|part| &part.lowered.kernel.buffers);
    let outputs = buffers.into_iter().flatten().filter(|buffer| buffer.is_output);
    outputs.map(|buffer| buffer.dtype).collect()
}
