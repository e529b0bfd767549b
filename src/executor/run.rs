//! A plan that is carried out: the memory of its places, and one kernel after the other.

use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;

use super::prepared::{Command, Prepared, name, operations};
use super::timing;
use super::trial::{self, Noted};
use crate::compiler::{self, Place, Plan};
use crate::debug::{self, Level};
use crate::runtime::backend::Backend;
use crate::runtime::buffer::{Buffer, Buffers};
use crate::runtime::checks::Notes;
use crate::runtime::fault::Fault;
use crate::runtime::kernels::Loaded;
use crate::runtime::range;
use crate::{Error, Result, settings, stats};

/// Memory of one launch, there before it.
#[derive(Clone)]
pub(super) struct Allocated {
    new: SmallVec<[Buffer; 2]>,
    scratch: SmallVec<[Buffer; 2]>,
}

/// A plan on its way.
pub(super) struct Run<'a> {
    plan: &'a Arc<Plan>,
    prepared: Arc<Prepared>,
    /// What is there and still needed.
    places: Places,
}

/// The memory of each place of a plan, as far as there is any.
pub(super) type Places = SmallVec<[Option<Buffer>; 6]>;

/// What the caller of a plan gives: inputs, and memory for outputs that have none.
pub(super) fn given(
    plan: &Plan,
    inputs: &[Buffer],
    outputs: impl IntoIterator<Item = Option<Buffer>>,
) -> Result<Places> {
    let mut places: Places = smallvec::smallvec![None; plan.storage.places];
    for &(slot, place) in &plan.storage.inputs {
        let input = inputs.get(slot).ok_or_else(|| Error::internal("execution", "an input is missing"))?;
        places[place.index()] = Some(input.clone());
    }
    for (&place, buffer) in plan.storage.outputs.iter().zip(outputs) {
        let place = &mut places[place.index()];
        *place = place.take().or(buffer);
    }
    Ok(places)
}

impl<'a> Run<'a> {
    /// `outputs` is memory for results, where it is as long as they are.
    pub(super) fn new(
        plan: &'a Arc<Plan>,
        prepared: Arc<Prepared>,
        inputs: &[Buffer],
        outputs: impl IntoIterator<Item = Option<Buffer>>,
    ) -> Result<Run<'a>> {
        Ok(Run { plan, prepared, places: given(plan, inputs, outputs)? })
    }

    /// From now on with other code for the same kernels.
    pub(super) fn change(&mut self, prepared: Arc<Prepared>) {
        self.prepared = prepared;
    }

    pub(super) fn kernels(&self) -> usize {
        self.prepared.commands.len()
    }

    /// The outputs' buffers.
    pub(super) fn finish(self) -> Result<Buffers> {
        let output = |place: &Place| {
            let value = self.places[place.index()].clone();
            value.ok_or_else(|| Error::internal("execution", "an output was not computed"))
        };
        self.plan.storage.outputs.iter().map(output).collect()
    }

    /// The memory that a kernel needs besides its inputs.
    pub(super) fn allocate(&self, number: usize) -> Result<Allocated> {
        let Prepared { commands, backend, .. } = &*self.prepared;
        let command = &commands[number];
        let mut allocated = Allocated { new: SmallVec::new(), scratch: SmallVec::new() };
        for (others, &(place, bytes)) in command.new.iter().enumerate() {
            allocated.new.push(match &self.places[place.index()] {
                Some(given) if given.bytes() == bytes => given.clone(),
                _ => backend.allocate_beside(bytes, others)?,
            });
        }
        for &(bytes, zeroed) in &command.scratch {
            allocated.scratch.push(match zeroed {
                true => backend.counters(bytes)?,
                false => backend.allocate(bytes)?,
            });
        }
        Ok(allocated)
    }

    /// Launches a kernel in this memory, and lets go of what was read last.
    pub(super) fn launch(&mut self, number: usize, memory: Allocated) -> Result<()> {
        let is_timed = debug::enabled(Level::Timings) || timing::is_timing() || trial::is_noting();
        let start = is_timed.then(Instant::now);
        let prepared = self.prepared.clone();
        let command = &prepared.commands[number];
        for (&(place, _), buffer) in command.new.iter().zip(memory.new) {
            self.places[place.index()] = Some(buffer);
        }
        for &(output, input) in &command.over {
            stats::add(stats::Counter::InPlace);
            self.places[output.index()] = self.places[input.index()].clone();
        }
        let mut by_device = None;
        if let Some(loaded) = &command.loaded {
            if prepared.backend.runs_ahead() {
                let buffer = |place: &Place| self.places[place.index()].as_ref();
                let [read, written] = [0, 1]
                    .map(|side| command.flows.iter().flat_map(move |flow| &flow[side]).filter_map(buffer));
                prepared.backend.order(read, written)?;
            }
            prepared.backend.launching(&prepared.names, number);
            let _range = range(|| name(self.plan, number));
            let mut fault = None;
            let mut call = || {
                fault = self.call(command, loaded, &prepared.backend, &memory.scratch)?;
                Ok(())
            };
            match is_timed {
                true => by_device = prepared.backend.time(call)?,
                false => call()?,
            }
            if prepared.backend.runs_ahead() {
                self.follow(command, fault.as_ref());
                if settings::is_launch_blocking() {
                    prepared.wait_for(number, fault.as_deref())?;
                }
            }
        }
        // Of empty results nothing was launched.
        if let Some(start) = start.filter(|_| command.loaded.is_some()) {
            let seconds = prepared.note(command, start, by_device, || operations(self.plan, number))?;
            trial::note(|| self.noted(number, seconds));
        }
        for place in &command.last_used {
            self.places[place.index()] = None;
        }
        Ok(())
    }

    /// The kernel that was launched just now, with what it read.
    fn noted(&self, number: usize, seconds: f64) -> Option<Noted> {
        let command = &self.prepared.commands[number];
        let key = compiler::tuned_key(self.plan, number).filter(|_| command.loaded.is_some())?;
        let mut inputs = smallvec::smallvec![None; self.places.len()];
        for place in command.flows.iter().flat_map(|[read, _]| read) {
            inputs[place.index()] = self.places[place.index()].clone();
        }
        let Prepared { device, backend, .. } = &*self.prepared;
        let (plan, device, backend) = (self.plan.clone(), *device, backend.clone());
        Some(Noted { key, plan, number, device, backend, inputs, seconds, launches: 1 })
    }

    /// With what is there before: all kernels of a plan, or one that was noted on its own, with other code.
    pub(super) fn again(plan: &'a Arc<Plan>, prepared: Arc<Prepared>, places: Places) -> Run<'a> {
        Run { plan, prepared, places }
    }

    /// What the kernel with this number has left.
    pub(super) fn results(&self, number: usize) -> Vec<Buffer> {
        let written = self.prepared.commands[number].flows.iter().flat_map(|[_, written]| written);
        written.filter_map(|place| self.places[place.index()].clone()).collect()
    }

    fn follow(&self, command: &Command, fault: Option<&Arc<Fault>>) {
        for [inputs, outputs] in &command.flows {
            let buffer = |place: &Place| self.places[place.index()].as_ref();
            for output in outputs.iter().filter_map(buffer) {
                output.follow(inputs.iter().filter_map(buffer), fault);
            }
        }
    }

    /// Calls a kernel's functions. What they check may be known later only.
    fn call(
        &self,
        command: &Command,
        loaded: &Loaded,
        backend: &Backend,
        scratch: &[Buffer],
    ) -> Result<Option<Arc<Fault>>> {
        let mut notes = command.checks.as_ref().map(|checks| backend.notes(checks)).transpose()?;
        let note = notes.as_mut().map_or(0, |notes| notes.pointer() as u64);
        let scratch = |number: usize| scratch[number].pointer() as u64;
        let place = |place: Place| self.places[place.index()].as_ref().map(|buffer| buffer.pointer() as u64);
        let mut arguments = command.arguments(loaded, &self.plan.values, place, scratch, note)?;
        let mut arguments = arguments.pointers();
        let emitted = &command.code.emitted;
        for launch in &emitted.launches {
            if notes.as_ref().is_some_and(Notes::has_failed) {
                break;
            }
            stats::add(stats::Counter::Launches);
            // SAFETY: the arguments are made from the emitted parameter list, or are the table that the batch describes;
            // and every buffer has the size that lowering stated for it.
            unsafe { backend.launch(&loaded.module, launch, &mut arguments)? };
        }
        match (notes, &command.checks) {
            (Some(notes), Some(checks)) => notes.finish(checks),
            _ => Ok(None),
        }
    }
}

impl Prepared {
    /// Waits for a kernel that was launched just now.
    ///
    /// # Errors
    /// The kernel's own.
    #[cold]
    fn wait_for(&self, number: usize, fault: Option<&Fault>) -> Result<()> {
        let is_done = self.backend.synchronize();
        is_done.map_err(|error| match error {
            Error::Device { device, message, .. } => {
                let kernel = self.names.get(number).map_or("", String::as_str);
                Error::Device { device, operation: format!("kernel {kernel}"), message }
            }
            other => other,
        })?;
        fault.and_then(Fault::error).map_or(Ok(()), Err)
    }

    /// Notes how long a kernel took, which is waited for.
    #[cold]
    fn note(
        &self,
        command: &Command,
        start: Instant,
        by_device: Option<f64>,
        operations: impl FnOnce() -> String,
    ) -> Result<f64> {
        self.backend.synchronize()?;
        let seconds = by_device.unwrap_or_else(|| start.elapsed().as_secs_f64());
        let (emitted, bytes, flops) = (&command.code.emitted, command.bytes, command.flops);
        timing::note(|| timing::Launched {
            device: self.device,
            name: emitted.name.clone(),
            schedule: emitted.schedule.to_string(),
            operations: operations(),
            launches: emitted.launches.len() as u64,
            start,
            bytes,
            flops,
            seconds,
            occupancy: command.loaded.as_ref().and_then(|of| of.module.occupancy(&emitted.launches)),
        });
        debug::print(Level::Timings, || {
            format!(
                "{}: {} {:.1} µs, {:.1} GB/s",
                self.device,
                emitted.name,
                seconds * 1e6,
                bytes as f64 / seconds / 1e9
            )
        });
        Ok(seconds)
    }
}
