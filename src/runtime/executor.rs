//! Carries out plans: transfers first, then one kernel after the other.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Instant;

use lazuli_codegen::nest::Parameter;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::backend::{self, Backend};
use super::buffer::Buffer;
use super::device::Device;
use super::kernels::{self, Loaded};
use crate::compiler::{self, Part, Plan, PlannedKernel, Settings};
use crate::debug::{self, Level};
use crate::graph::build::build;
use crate::graph::{Graph, NodeId};
use crate::interpreter;
use crate::tensor::{Recipe, State, Tensor, TensorNode};
use crate::{Error, Fusion, Result, stats};

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
    let start = Instant::now();
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
    let results = match &backend {
        Backend::Interpreter => interpret(&recording.graph, &inputs)?,
        _ => {
            let settings = Settings { language: backend::language(device), fusion };
            let plan = compiler::plan(&recording.graph, settings)?;
            run(&plan, device, &backend, &inputs)?
        }
    };
    debug::print(Level::Timings, || {
        format!(
            "{device}: evaluated {} tensors in {:.3} ms",
            tensors.len(),
            start.elapsed().as_secs_f64() * 1e3
        )
    });
    tensors.iter().zip(results).for_each(|(tensor, buffer)| tensor.settle(buffer));
    Ok(())
}

fn interpret(graph: &Graph, inputs: &[Buffer]) -> Result<Vec<Buffer>> {
    let inputs = inputs.iter().map(Buffer::to_host).collect::<Result<Vec<_>>>()?;
    let slices: Vec<&[u8]> = inputs.iter().map(|input| input.as_slice()).collect();
    let results = interpreter::evaluate(graph, &slices)?;
    Ok(results.into_iter().map(|result| Buffer::Host(Arc::new(result))).collect())
}

/// Runs a plan on its inputs and gives the outputs' buffers.
fn run(plan: &Plan, device: Device, backend: &Backend, inputs: &[Buffer]) -> Result<Vec<Buffer>> {
    let loaded = load_all(plan, device, backend)?;
    let mut values: FxHashMap<NodeId, Buffer> = FxHashMap::default();
    for (slot, id) in compiler::input_nodes(&plan.graph) {
        let input = inputs.get(slot).ok_or_else(|| Error::internal("execution", "an input is missing"))?;
        values.insert(id, input.clone());
    }
    // After its last reader, an intermediate value's memory goes back to the pool.
    let mut last_reader: FxHashMap<NodeId, usize> = FxHashMap::default();
    for (number, kernel) in plan.kernels.iter().enumerate() {
        last_reader.extend(kernel.parts.iter().flat_map(|part| &part.lowered.inputs).map(|&id| (id, number)));
    }
    for (number, (kernel, loaded)) in plan.kernels.iter().zip(&loaded).enumerate() {
        let start = Instant::now();
        launch(plan, kernel, loaded.as_ref(), backend, &mut values)?;
        if debug::enabled(Level::Timings) {
            backend.synchronize()?;
            let seconds = start.elapsed().as_secs_f64();
            let bytes: u64 = kernel.groups(&plan.grouping).map(|group| group.work.bytes()).sum();
            debug::print(Level::Timings, || {
                format!(
                    "{device}: {} {:.1} µs, {:.1} GB/s",
                    kernel.emitted.name,
                    seconds * 1e6,
                    bytes as f64 / seconds / 1e9
                )
            });
        }
        for &id in kernel.parts.iter().flat_map(|part| &part.lowered.inputs) {
            if last_reader.get(&id) == Some(&number) && !plan.outputs.contains(&id) {
                values.remove(&id);
            }
        }
    }
    let output = |id: &NodeId| {
        values.get(id).cloned().ok_or_else(|| Error::internal("execution", "an output was not computed"))
    };
    plan.outputs.iter().map(output).collect()
}

/// Every kernel of the plan, loaded; those that need a compiler are compiled in parallel.
fn load_all(plan: &Plan, device: Device, backend: &Backend) -> Result<Vec<Option<Loaded>>> {
    let ready = |kernel: &PlannedKernel| {
        let compiled = kernel.compiled.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        compiled.as_ref().filter(|loaded| loaded.device == device).cloned()
    };
    let load = |kernel: &PlannedKernel| -> Result<Option<Loaded>> {
        if kernel.is_empty() {
            return Ok(None);
        }
        let loaded = kernels::load(backend, device, &kernel.emitted)?;
        *kernel.compiled.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(loaded.clone());
        Ok(Some(loaded))
    };
    let present: Vec<Option<Loaded>> = plan.kernels.iter().map(ready).collect();
    match present.iter().zip(&plan.kernels).all(|(loaded, kernel)| loaded.is_some() || kernel.is_empty()) {
        true => Ok(present),
        false => plan.kernels.par_iter().map(load).collect(),
    }
}

/// Launches one kernel: takes its inputs from the values, and adds its outputs to them.
fn launch(
    plan: &Plan,
    kernel: &PlannedKernel,
    loaded: Option<&Loaded>,
    backend: &Backend,
    values: &mut FxHashMap<NodeId, Buffer>,
) -> Result<()> {
    let PlannedKernel { emitted, parts, .. } = kernel;
    let mut buffers: Vec<Vec<Buffer>> = Vec::with_capacity(parts.len());
    for part in parts {
        buffers.push(part_buffers(plan, part, backend, values)?);
    }
    let Some(loaded) = loaded else { return Ok(()) };
    let mut scratch = Vec::with_capacity(emitted.workspaces.len());
    for space in &emitted.workspaces {
        let bytes = space.elements as usize * space.dtype.size();
        scratch.push(if space.zeroed { backend.counters(bytes)? } else { backend.allocate(bytes)? });
    }
    let checks = parts.iter().map(|part| &part.lowered.checks).find(|checks| !checks.is_empty());
    let mut notes = checks.map(|checks| backend.notes(checks)).transpose()?;
    // Little-endian: a narrower parameter is the low bytes of its word.
    let mut words: Vec<u64> = Vec::with_capacity(parts.len() * emitted.parameters.len());
    for (part, buffers) in parts.iter().zip(&buffers) {
        let kernel = &part.lowered.kernel;
        words.extend(emitted.parameters.iter().map(|parameter| match *parameter {
            Parameter::Buffer(id) => buffers[id.index()].pointer() as u64,
            Parameter::Argument(id) => kernel.arguments[id.index()].value.to_bits(),
            Parameter::Extent(axis) => kernel.axis(axis).extent,
            Parameter::Checks => notes.as_mut().map_or(0, |notes| notes.pointer() as u64),
            Parameter::Workspace(number) => scratch[number].pointer() as u64,
        }));
    }
    let mut arguments: Vec<*mut c_void> = match &emitted.batch {
        None => words.iter_mut().map(|word| std::ptr::from_mut(word).cast()).collect(),
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
    for (function, shape) in &emitted.launches {
        stats::add(stats::Counter::Launches);
        // SAFETY: the arguments are made from the emitted parameter list, or are the table that the batch describes;
        // and every buffer has the size that lowering stated for it.
        unsafe { backend.launch(&loaded.module, function, shape.grid(), shape.block, &mut arguments)? };
    }
    match (notes, checks) {
        (Some(notes), Some(checks)) => notes.finish(checks),
        _ => Ok(()),
    }
}

/// The buffers of one part: its inputs', and new ones for its outputs.
fn part_buffers(
    plan: &Plan,
    part: &Part,
    backend: &Backend,
    values: &mut FxHashMap<NodeId, Buffer>,
) -> Result<Vec<Buffer>> {
    let mut buffers: Vec<Buffer> = Vec::with_capacity(part.lowered.kernel.buffers.len());
    for id in &part.lowered.inputs {
        let buffer = values.get(id).ok_or_else(|| Error::internal("execution", "a value is missing"))?;
        buffers.push(buffer.clone());
    }
    for &id in &part.lowered.outputs {
        let node = plan.graph.node(id);
        let buffer = backend.allocate(node.shape.elements() * node.dtype.size())?;
        buffers.push(buffer.clone());
        values.insert(id, buffer);
    }
    Ok(buffers)
}
