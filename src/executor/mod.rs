//! Carries out plans: transfers first, then one kernel after the other.

pub(crate) mod donation;
pub(crate) mod interpreted;
pub(crate) mod settings;
pub(crate) mod timing;

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Instant;

use donation::{Claim, Offer};
use lazuli_codegen::nest::Parameter;
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use crate::compiler::{self, Code, Part, Plan, PlannedKernel};
use crate::debug::{self, Level};
use crate::graph::{Graph, NodeId};
use crate::interpreter;
use crate::recording::build::build;
use crate::recording::{Recipe, State, Tensor, TensorNode};
use crate::runtime::backend::Backend;
use crate::runtime::buffer::Buffer;
use crate::runtime::device::Device;
use crate::runtime::fault::Fault;
use crate::runtime::kernels::{self, Loaded, Text};
use crate::runtime::progress::Progress;
use crate::{Error, Fusion, Result, stats};

/// Bytes that a thread may spill: what the threads of a full multiprocessor (2,048) spill stays in its nearest cache (128 KiB
/// and more), while a value between two kernels goes to memory and back.
const MOST_SPILLED_BYTES: u32 = 64;

/// Computes the tensors that are not computed yet; those on one device share a plan.
pub(crate) fn evaluate(tensors: &[Tensor], fusion: Fusion) -> Result<()> {
    for tensor in tensors {
        tensor.validity()?;
    }
    let device_of = |tensor: &Tensor| tensor.node.device.unwrap_or(Device::cpu());
    if tensors.windows(2).any(|pair| device_of(&pair[0]) != device_of(&pair[1])) {
        // What one device computes for another is there for its own plan too.
        carry_out_pending(tensors, fusion)?;
    }
    let mut by_device: Vec<(Device, Vec<Tensor>)> = Vec::new();
    for tensor in tensors.iter().filter(|tensor| !tensor.is_evaluated()) {
        let device = device_of(tensor);
        match by_device.iter_mut().find(|(other, _)| *other == device) {
            Some((_, tensors)) => tensors.push(tensor.clone()),
            None => by_device.push((device, vec![tensor.clone()])),
        }
    }
    by_device.into_iter().try_for_each(|(device, tensors)| evaluate_on(device, &tensors, fusion))
}

fn carry_out_pending(tensors: &[Tensor], fusion: Fusion) -> Result<()> {
    pending_transfers(tensors).iter().try_for_each(|transfer| carry_out(transfer, fusion))
}

/// Transfers between devices in the tensors' histories, those that others need first.
fn pending_transfers(tensors: &[Tensor]) -> Vec<Tensor> {
    let mut order = Vec::new();
    let mut seen: FxHashSet<*const TensorNode> = FxHashSet::default();
    // A tensor is entered, then left when all its sources were.
    let mut pending: Vec<(Tensor, bool)> = tensors.iter().map(|tensor| (tensor.clone(), false)).collect();
    while let Some((tensor, leave)) = pending.pop() {
        let State::Recorded(recipe, sources) = tensor.node.state().clone() else { continue };
        if leave {
            if matches!(recipe, Recipe::Transfer) && sources.iter().all(|source| source.node.device.is_some())
            {
                order.push(tensor);
            }
        } else if seen.insert(Arc::as_ptr(&tensor.node)) {
            pending.push((tensor, true));
            pending.extend(sources.into_iter().map(|source| (source, false)));
        }
    }
    order
}

/// Computes a transfer's source where it is, and copies it.
fn carry_out(transfer: &Tensor, fusion: Fusion) -> Result<()> {
    let State::Recorded(_, sources) = transfer.node.state().clone() else { return Ok(()) };
    let (Some(source), Some(device)) = (sources.first(), transfer.node.device) else {
        return Err(Error::internal("transfer", "a transfer without source or device"));
    };
    if !source.is_evaluated() {
        evaluate_on(source.node.device.unwrap_or(Device::cpu()), std::slice::from_ref(source), fusion)?;
    }
    let buffer = source.buffer()?;
    let imported = Backend::open(device)?.import(&buffer)?;
    transfer.settle(imported);
    Ok(())
}

fn evaluate_on(device: Device, tensors: &[Tensor], fusion: Fusion) -> Result<()> {
    let start = debug::enabled(Level::Timings).then(Instant::now);
    let mut recording = build(tensors)?;
    if recording.inputs.iter().any(Option::is_none) {
        carry_out_pending(tensors, fusion)?;
        if tensors.iter().all(Tensor::is_evaluated) {
            return Ok(());
        }
        recording = build(tensors)?;
    }
    stats::add(stats::Counter::Evaluations);
    let inputs: Option<Vec<Buffer>> = recording.inputs.into_iter().collect();
    let inputs = inputs.ok_or_else(|| Error::internal("evaluation", "a transfer was not carried out"))?;
    let backend = Backend::open(device)?;
    let (results, claim) = match &backend {
        Backend::Interpreter => (interpret(&recording.graph, &inputs)?, None),
        Backend::Interpreted => {
            let plan = compiler::plan(&recording.graph, settings::of(device, fusion))?;
            (interpreted::carry_out(&recording.graph, &plan, &inputs)?, None)
        }
        _ => {
            let settings = settings::of(device, fusion);
            let mut plan = compiler::plan(&recording.graph, settings)?;
            let ready = loop {
                let offer = Offer::new(&plan, tensors, &inputs, &recording.donated);
                let ready = match load_all(&plan, codes(&plan, offer.as_ref())?, device, &backend) {
                    Ok(ready) => ready,
                    Err(error) => match backend.after(&error) {
                        Some(_) => break None,
                        None => return Err(error),
                    },
                };
                match compiler::relieved(&recording.graph, &plan, &spilling(&ready))? {
                    Some(relieved) => plan = relieved,
                    None => break Some((offer, ready)),
                }
            };
            match ready {
                Some((offer, ready)) => Run::new(&plan, device, &backend, inputs)?.carry_out(offer, ready)?,
                None => (interpret(&recording.graph, &inputs)?, None),
            }
        }
    };
    debug::print(Level::Timings, || {
        format!(
            "{device}: evaluated {} tensors in {:.3} ms",
            tensors.len(),
            start.map_or(0.0, |start| start.elapsed().as_secs_f64() * 1e3)
        )
    });
    tensors.iter().zip(results).for_each(|(tensor, buffer)| tensor.settle(buffer));
    // Who waits for what was overwritten finds the results.
    drop(claim);
    Ok(())
}

fn interpret(graph: &Graph, inputs: &[Buffer]) -> Result<Vec<Buffer>> {
    let inputs = inputs.iter().map(Buffer::to_host).collect::<Result<Vec<_>>>()?;
    let slices: Vec<&[u8]> = inputs.iter().map(|input| input.as_slice()).collect();
    let results = interpreter::evaluate(graph, &slices)?;
    Ok(results.into_iter().map(|result| Buffer::Host(Arc::new(result))).collect())
}

/// A plan on its way.
struct Run<'a> {
    plan: &'a Plan,
    device: Device,
    backend: &'a Backend,
    /// What is there and still needed, by node.
    values: Vec<Option<Buffer>>,
}

/// How a kernel runs this time; the module is missing where there is nothing to compute.
type Ready = (Arc<Code>, Option<Loaded>);

/// Memory of one launch: for each part its outputs', but for those that are written over an input.
struct Allocated {
    outputs: Vec<Vec<Option<Buffer>>>,
    scratch: Vec<Buffer>,
}

impl<'a> Run<'a> {
    fn new(plan: &'a Plan, device: Device, backend: &'a Backend, inputs: Vec<Buffer>) -> Result<Run<'a>> {
        let mut values: Vec<Option<Buffer>> = vec![None; plan.graph.bound()];
        for (slot, id) in compiler::input_nodes(&plan.graph) {
            let input =
                inputs.get(slot).ok_or_else(|| Error::internal("execution", "an input is missing"))?;
            values[id.index()] = Some(input.clone());
        }
        Ok(Run { plan, device, backend, values })
    }

    /// Runs all kernels, and gives the outputs' buffers, and what was overwritten for them.
    fn carry_out(mut self, offer: Option<Offer>, ready: Vec<Ready>) -> Result<(Vec<Buffer>, Option<Claim>)> {
        let kernels = &self.plan.kernels;
        let tail = offer.as_ref().map_or(kernels.len(), |offer| offer.tail);
        for (number, ready) in ready.iter().enumerate().take(tail) {
            let memory = self.allocate(&kernels[number], &ready.0)?;
            self.launch(number, ready, memory)?;
        }
        let claim = match offer {
            None => None,
            Some(offer) => self.overwrite(offer, ready)?,
        };
        let output = |id: &NodeId| {
            let value = self.values[id.index()].clone();
            value.ok_or_else(|| Error::internal("execution", "an output was not computed"))
        };
        Ok((self.plan.outputs.iter().map(output).collect::<Result<_>>()?, claim))
    }

    /// Runs the last kernels, over inputs if nobody sees them. All that can fail is done before.
    fn overwrite(&mut self, offer: Offer, mut ready: Vec<Ready>) -> Result<Option<Claim>> {
        let (kernels, tail) = (&self.plan.kernels, offer.tail);
        let mut memory = Vec::with_capacity(kernels.len() - tail);
        for (kernel, (code, _)) in kernels.iter().zip(&ready).skip(tail) {
            memory.push(self.allocate(kernel, code)?);
        }
        // The tensor's share, and that in `values`.
        let claim = offer.claim(2);
        if claim.is_none() {
            // Someone has come to see them meanwhile.
            ready = load_all(self.plan, codes(self.plan, None)?, self.device, self.backend)?;
            memory.clear();
            for kernel in &kernels[tail..] {
                memory.push(self.allocate(kernel, &kernel.code)?);
            }
        }
        for (number, memory) in (tail..).zip(memory) {
            if let Err(error) = self.launch(number, &ready[number], memory) {
                if let Some(claim) = claim {
                    claim.fail(&error);
                }
                return Err(error);
            }
        }
        Ok(claim)
    }

    /// The memory that a kernel needs besides its inputs.
    fn allocate(&self, kernel: &PlannedKernel, code: &Code) -> Result<Allocated> {
        let mut outputs = Vec::with_capacity(kernel.parts.len());
        for part in &kernel.parts {
            let inputs = part.lowered.inputs.len();
            let new = |(number, &id): (usize, &NodeId)| -> Result<Option<Buffer>> {
                let node = self.plan.graph.node(id);
                match code.over.iter().any(|(_, output)| output.index() == inputs + number) {
                    true => Ok(None),
                    false => self.backend.allocate(node.shape.elements() * node.dtype.size()).map(Some),
                }
            };
            outputs.push(part.lowered.outputs.iter().enumerate().map(new).collect::<Result<_>>()?);
        }
        let mut scratch = Vec::with_capacity(code.emitted.workspaces.len());
        // What is empty is not launched.
        for space in code.emitted.workspaces.iter().filter(|_| !kernel.is_empty()) {
            let bytes = space.elements as usize * space.dtype.size();
            scratch.push(match space.zeroed {
                true => self.backend.counters(bytes)?,
                false => self.backend.allocate(bytes)?,
            });
        }
        Ok(Allocated { outputs, scratch })
    }

    /// Launches a kernel: takes its inputs from the values, adds its outputs to them, and drops what was read last.
    fn launch(&mut self, number: usize, (code, loaded): &Ready, memory: Allocated) -> Result<()> {
        let is_timed = debug::enabled(Level::Timings) || timing::is_timing();
        let start = is_timed.then(Instant::now);
        let kernel = &self.plan.kernels[number];
        let mut buffers: Vec<Vec<Buffer>> = Vec::with_capacity(kernel.parts.len());
        for (part, outputs) in kernel.parts.iter().zip(memory.outputs) {
            buffers.push(self.part_buffers(part, code, outputs)?);
        }
        if let Some(loaded) = loaded {
            let fault = call(self.plan, number, code, loaded, self.backend, &buffers, &memory.scratch)?;
            for (part, buffers) in kernel.parts.iter().zip(&buffers) {
                let (inputs, outputs) = buffers.split_at(part.lowered.inputs.len());
                outputs.iter().for_each(|output| output.follow(inputs, fault.as_ref()));
            }
        }
        if let Some(start) = start {
            self.backend.synchronize()?;
            let seconds = start.elapsed().as_secs_f64();
            let bytes: u64 = kernel.groups(&self.plan.grouping).map(|group| group.work.bytes()).sum();
            timing::note(|| timing::Launched {
                device: self.device,
                name: code.emitted.name.clone(),
                schedule: code.emitted.schedule.to_string(),
                bytes,
                seconds,
            });
            debug::print(Level::Timings, || {
                format!(
                    "{}: {} {:.1} µs, {:.1} GB/s",
                    self.device,
                    code.emitted.name,
                    seconds * 1e6,
                    bytes as f64 / seconds / 1e9
                )
            });
        }
        // After its last reader, an intermediate value's memory goes back to the pool.
        self.plan.read_last[number].iter().for_each(|id| self.values[id.index()] = None);
        Ok(())
    }

    /// The buffers of one part: its inputs', and its outputs', which are values from now on.
    fn part_buffers(
        &mut self,
        part: &Part,
        code: &Code,
        outputs: Vec<Option<Buffer>>,
    ) -> Result<Vec<Buffer>> {
        let missing = || Error::internal("execution", "a value is missing");
        let mut buffers: Vec<Buffer> = Vec::with_capacity(part.lowered.kernel.buffers.len());
        for id in &part.lowered.inputs {
            buffers.push(self.values[id.index()].clone().ok_or_else(missing)?);
        }
        for (&id, new) in part.lowered.outputs.iter().zip(outputs) {
            let buffer = match new {
                Some(new) => new,
                None => {
                    let over = code.over.iter().find(|(_, output)| output.index() == buffers.len());
                    stats::add(stats::Counter::InPlace);
                    over.and_then(|(input, _)| buffers.get(input.index()).cloned()).ok_or_else(missing)?
                }
            };
            buffers.push(buffer.clone());
            self.values[id.index()] = Some(buffer);
        }
        Ok(buffers)
    }
}

/// The codes of all kernels; some write over inputs, if there is an offer.
fn codes(plan: &Plan, offer: Option<&Offer>) -> Result<Vec<Arc<Code>>> {
    let over = |number: usize| offer.map_or(&[][..], |offer| offer.over[number].as_slice());
    let kernels = plan.kernels.iter().enumerate();
    kernels
        .map(|(number, kernel)| match over(number) {
            [] => Ok(kernel.code.clone()),
            over => kernel.in_place(over.to_vec(), plan.settings),
        })
        .collect()
}

/// Every kernel of the plan, loaded; those that need a compiler are compiled in parallel.
fn load_all(plan: &Plan, codes: Vec<Arc<Code>>, device: Device, backend: &Backend) -> Result<Vec<Ready>> {
    let present = |code: &Code| {
        let compiled = code.compiled.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let loaded = compiled.as_deref().and_then(|compiled| compiled.downcast_ref::<Loaded>());
        loaded.filter(|loaded| loaded.device == device).cloned()
    };
    let load = |progress: &Progress, code: &Code, text: &Text| -> Result<Loaded> {
        let loaded = kernels::load(backend, device, text)?;
        progress.advance();
        *code.compiled.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) =
            Some(Arc::new(loaded.clone()));
        Ok(loaded)
    };
    let kernels = &plan.kernels;
    let found: Vec<Option<Loaded>> = codes.iter().map(|code| present(code)).collect();
    match found.iter().zip(kernels).all(|(loaded, kernel)| loaded.is_some() || kernel.is_empty()) {
        true => Ok(codes.into_iter().zip(found).collect()),
        false => {
            let used: Vec<usize> = (0..codes.len()).filter(|&number| !kernels[number].is_empty()).collect();
            let emitted: Vec<_> = used.iter().map(|&number| codes[number].emitted.clone()).collect();
            let texts = kernels::texts(backend, device, &emitted);
            let progress = Progress::new(used.len());
            kernels::compile_ahead(backend, device, &texts);
            let loaded: Vec<(usize, Loaded)> = (used.into_par_iter().zip(&texts))
                .map(|(number, text)| Ok((number, load(&progress, &codes[number], text)?)))
                .collect::<Result<_>>()?;
            let mut ready: Vec<Ready> = codes.into_iter().map(|code| (code, None)).collect();
            loaded.into_iter().for_each(|(number, loaded)| ready[number].1 = Some(loaded));
            Ok(ready)
        }
    }
}

/// The kernels that spill too many registers, and how many bytes of them.
fn spilling(ready: &[Ready]) -> Vec<(usize, u32)> {
    let spilled = ready.iter().map(|(_, loaded)| loaded.as_ref().map_or(0, |loaded| loaded.spill_bytes));
    spilled.enumerate().filter(|&(_, bytes)| bytes > MOST_SPILLED_BYTES).collect()
}

/// Calls a kernel's functions. What they check may be known later only.
fn call(
    plan: &Plan,
    number: usize,
    code: &Code,
    loaded: &Loaded,
    backend: &Backend,
    buffers: &[Vec<Buffer>],
    scratch: &[Buffer],
) -> Result<Option<Arc<Fault>>> {
    let (emitted, parts) = (&code.emitted, &plan.kernels[number].parts);
    let checks = parts.iter().map(|part| &part.lowered.checks).find(|checks| !checks.is_empty());
    let mut notes = checks.map(|checks| backend.notes(checks)).transpose()?;
    // Little-endian: a narrower parameter is the low bytes of its word.
    let mut words: Vec<u64> = Vec::with_capacity(parts.len() * emitted.parameters.len());
    for (part, buffers) in parts.iter().zip(buffers) {
        let kernel = &part.lowered.kernel;
        words.extend(emitted.parameters.iter().map(|parameter| match *parameter {
            Parameter::Buffer(id) => buffers[id.index()].pointer() as u64,
            Parameter::Argument(id) => part.argument(plan, id),
            Parameter::Extent(axis) => kernel.axis(axis).extent,
            Parameter::Offset(axis) => part.offset(plan, axis),
            Parameter::Checks => notes.as_mut().map_or(0, |notes| notes.pointer() as u64),
            Parameter::Workspace(number) => scratch[number].pointer() as u64,
        }));
    }
    let mut arguments: Vec<*mut c_void> = match &emitted.batch {
        None => {
            words.extend(loaded.numbers.iter().flat_map(|numbers| numbers.iter()));
            words.iter_mut().map(|word| std::ptr::from_mut(word).cast()).collect()
        }
        Some(batch) => {
            let first_blocks = parts.iter().scan(0, |next, part| {
                let first = *next;
                *next += part.blocks;
                Some(first)
            });
            words = batch.table(first_blocks.zip(words.chunks(emitted.parameters.len().max(1))));
            vec![words.as_mut_ptr().cast()]
        }
    };
    for launch in &emitted.launches {
        stats::add(stats::Counter::Launches);
        // SAFETY: the arguments are made from the emitted parameter list, or are the table that the batch describes;
        // and every buffer has the size that lowering stated for it.
        unsafe { backend.launch(&loaded.module, launch, &mut arguments)? };
    }
    match (notes, checks) {
        (Some(notes), Some(checks)) => notes.finish(checks),
        _ => Ok(None),
    }
}
