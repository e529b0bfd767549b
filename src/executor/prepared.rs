//! A plan made ready for a device: kernels that are loaded, and for each where its arguments are.

use std::any::Any;
use std::ffi::c_void;
use std::sync::{Arc, PoisonError};

use lazuli_codegen::Emitted;
use lazuli_codegen::ir::AxisKind;
use lazuli_codegen::nest::Parameter;
use rayon::prelude::*;
use smallvec::SmallVec;

use super::donation::Pairs;
use super::timing::{self, Work};
use super::trial::Noted;
use crate::compiler::{Code, Place, Plan};
use crate::error::IndexCheck;
use crate::runtime::backend::Backend;
use crate::runtime::device::Device;
use crate::runtime::kernels::{self, Loaded, Text};
use crate::runtime::progress::Progress;
use crate::runtime::tiles::{MapWords, Tiles};
use crate::{Error, Result};

/// How many a plan keeps: of several devices, and over different inputs.
const MOST_KEPT: usize = 16;

/// Of how many results an error names the lines.
const MOST_NAMED: usize = 3;

/// A plan's kernels, loaded for a device. All plans that differ in values of parameters alone have one.
pub(crate) struct Prepared {
    pub(super) device: Device,
    pub(super) backend: Backend,
    /// By kernel: the inputs that are written over, and the outputs that are. Empty where nothing is.
    over: Vec<Pairs>,
    pub(super) commands: Vec<Command>,
    /// The kernels of a device that runs ahead as its errors name them, with the lines of who recorded such a graph first.
    pub(super) names: Arc<[String]>,
}

/// A kernel and everything that its launch needs, but for the memory.
pub(super) struct Command {
    pub(super) code: Arc<Code>,
    /// Missing where there is nothing to compute.
    pub(super) loaded: Option<Loaded>,
    /// The parameters, of one part after the other.
    words: Vec<Word>,
    /// Where the tiles are that it copies as a whole, and what of.
    maps: Vec<(Place, Tiles)>,
    /// The first block of each part of a batch.
    first_blocks: Vec<u64>,
    /// Places to be written first, and their bytes; and those that get an input's memory.
    pub(super) new: SmallVec<[(Place, usize); 2]>,
    pub(super) over: SmallVec<[(Place, Place); 2]>,
    /// Bytes of scratch memory, and whether it is zeros.
    pub(super) scratch: SmallVec<[(usize, bool); 2]>,
    pub(super) checks: Option<Arc<[IndexCheck]>>,
    /// Of each part, its inputs and its outputs.
    pub(super) flows: Vec<[SmallVec<[Place; 4]>; 2]>,
    pub(super) last_used: SmallVec<[Place; 2]>,
    /// What it reads and writes at least.
    pub(super) bytes: u64,
    /// Additions and multiplications of its products.
    pub(super) flops: u64,
}

/// Where a kernel's parameter is to be had from.
#[derive(Clone, Copy)]
enum Word {
    /// The address of what is there.
    Place(Place),
    /// The address of scratch memory.
    Scratch(usize),
    /// The value of one of the plan's parameters.
    Value(usize),
    Number(u64),
    /// The address of the note of failed checks.
    Note,
}

/// Numbers that kernels need no allocation for.
type Words = SmallVec<[u64; 8]>;

impl Prepared {
    /// For the plan, with kernels over these inputs, if it was made before.
    pub(super) fn known(plan: &Plan, device: Device, over: &[Pairs]) -> Option<Arc<Prepared>> {
        let over = if over.iter().all(Vec::is_empty) { &[] } else { over };
        let made = plan.made.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |made: &Arc<dyn Any + Send + Sync>| {
            let prepared = made.downcast_ref::<Prepared>()?;
            let is_it = prepared.device == device && prepared.over == over;
            is_it.then(|| made.clone().downcast::<Prepared>().ok()).flatten()
        };
        made.iter().rev().find_map(of)
    }

    /// The same, made and kept if it was not.
    pub(super) fn of(
        plan: &Plan,
        device: Device,
        backend: &Backend,
        over: &[Pairs],
    ) -> Result<Arc<Prepared>> {
        if let Some(known) = Prepared::known(plan, device, over) {
            return Ok(known);
        }
        let over = if over.iter().all(Vec::is_empty) { &[] } else { over };
        let prepared = Arc::new(Prepared::new(plan, device, backend, over)?);
        let mut made = plan.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.len() == MOST_KEPT {
            made.remove(0);
        }
        made.push(prepared.clone());
        Ok(prepared)
    }

    pub(super) fn new(plan: &Plan, device: Device, backend: &Backend, over: &[Pairs]) -> Result<Prepared> {
        let codes = plan.kernels.iter().enumerate().map(|(number, kernel)| match over.get(number) {
            Some(over) if !over.is_empty() => kernel.in_place(over.clone(), plan.settings),
            _ => Ok(kernel.code.clone()),
        });
        let codes: Vec<Arc<Code>> = codes.collect::<Result<_>>()?;
        let loaded = timing::noting(Work::Compiling, || load_all(plan, &codes, device, backend))?;
        let commands = (codes.into_iter().zip(loaded).enumerate())
            .map(|(number, (code, loaded))| Command::new(plan, number, code, loaded))
            .collect::<Result<_>>()?;
        let named = if backend.runs_ahead() { plan.kernels.len() } else { 0 };
        let names = (0..named).map(|number| name(plan, number)).collect();
        Ok(Prepared { device, backend: backend.clone(), over: over.to_vec(), commands, names })
    }

    /// Its kernels, in their order.
    #[cfg(feature = "cuda")]
    pub(super) fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// For one kernel of the plan, as each of several texts has it.
    pub(super) fn alone(noted: &Noted, emitted: &[Arc<Emitted>]) -> Vec<Result<Prepared>> {
        let Noted { plan, number, device, backend, .. } = noted;
        let texts: Vec<Text> = emitted.iter().map(Text::exact).collect();
        kernels::compile_ahead(backend, *device, &texts);
        let prepared = |text: &Text| {
            let loaded = kernels::load(backend, *device, text)?;
            let code = Arc::new(Code { emitted: text.emitted.clone(), over: Vec::new() });
            let command = Command::new(plan, *number, code, Some(loaded))?;
            Ok(Prepared {
                device: *device,
                backend: backend.clone(),
                over: Vec::new(),
                commands: vec![command],
                names: [name(plan, *number)].into(),
            })
        };
        texts.iter().map(prepared).collect()
    }

    /// The kernels that spill too many registers, and how many bytes of them.
    pub(super) fn spilling(&self) -> Vec<(usize, u32)> {
        let spilled = self
            .commands
            .iter()
            .map(|command| command.loaded.as_ref().map_or(0, |loaded| loaded.spill_bytes));
        spilled.enumerate().filter(|&(_, bytes)| bytes > kernels::MOST_SPILLED_BYTES).collect()
    }
}

impl Command {
    fn new(plan: &Plan, number: usize, code: Arc<Code>, loaded: Option<Loaded>) -> Result<Command> {
        let missing = || Error::internal("execution", "a value has no place");
        let (kernel, storage) = (&plan.kernels[number], &plan.storage.kernels[number]);
        let mut words = Vec::with_capacity(kernel.parts.len() * code.emitted.parameters.len());
        let mut flows = Vec::with_capacity(kernel.parts.len());
        let mut over: SmallVec<[(Place, Place); 2]> = SmallVec::new();
        for (number, (part, places)) in kernel.parts.iter().zip(&storage.parts).enumerate() {
            let inputs = part.lowered.inputs.len();
            if places.len() != inputs + part.lowered.outputs.len() || storage.parts.len() <= number {
                return Err(missing());
            }
            for &(input, output) in &code.over {
                let place =
                    |id: lazuli_codegen::ir::BufferId| places.get(id.index()).copied().ok_or_else(missing);
                over.push((place(output)?, place(input)?));
            }
            for parameter in &code.emitted.parameters {
                words.push(match *parameter {
                    Parameter::Buffer(id) => Word::Place(*places.get(id.index()).ok_or_else(missing)?),
                    Parameter::Argument(id) => Word::Value(part.lowered.arguments[id.index()]),
                    Parameter::Extent(axis) => Word::Number(part.lowered.kernel.axis(axis).extent),
                    Parameter::Offset(axis) => match part.lowered.kernel.axis(axis).kind {
                        AxisKind::Offset { number } => Word::Value(number as usize),
                        AxisKind::Map | AxisKind::Reduce | AxisKind::Computed { .. } => Word::Number(0),
                    },
                    Parameter::Checks => Word::Note,
                    Parameter::Workspace(number) => Word::Scratch(number),
                    Parameter::Map(_) => continue,
                });
            }
            let (read, written) = places.split_at(inputs);
            flows.push([read.into(), written.into()]);
        }
        let first_blocks = kernel.parts.iter().scan(0, |next, part| {
            let first = *next;
            *next += part.blocks;
            Some(first)
        });
        // What is empty is not launched.
        let spaces = code.emitted.workspaces.iter().filter(|_| !kernel.is_empty());
        // Kernels with maps have one part.
        let maps =
            code.emitted.maps.iter().zip(std::iter::repeat(kernel.parts.first().zip(storage.parts.first())));
        let maps = maps.map(|(map, part)| {
            let (part, places) = part.ok_or_else(missing)?;
            let place = *places.get(map.buffer.index()).ok_or_else(missing)?;
            Ok((place, Tiles::new(map, &part.lowered.kernel)))
        });
        Ok(Command {
            words,
            maps: maps.collect::<Result<_>>()?,
            first_blocks: first_blocks.collect(),
            new: (storage.first_used.iter().copied())
                .filter(|(place, _)| !over.iter().any(|(output, _)| output == place))
                .collect(),
            scratch: spaces
                .map(|space| (space.elements as usize * space.dtype.size(), space.zeroed))
                .collect(),
            checks: kernel
                .parts
                .iter()
                .map(|part| &part.lowered.checks)
                .find(|checks| !checks.is_empty())
                .cloned(),
            flows,
            last_used: storage.last_used.clone(),
            bytes: kernel.groups(&plan.grouping).map(|group| group.work.bytes()).sum(),
            flops: kernel.groups(&plan.grouping).map(|group| group.flops(&plan.graph)).sum(),
            over,
            code,
            loaded,
        })
    }
}

/// What the functions of a kernel get.
pub(super) struct Arguments {
    words: Words,
    /// Of a batch: how many words its table has, which is one argument.
    table: usize,
    /// The last ones.
    maps: Vec<MapWords>,
}

impl Arguments {
    /// Addresses of each, good until this moves or changes.
    pub(super) fn pointers(&mut self) -> SmallVec<[*mut c_void; 8]> {
        let (table, numbers) = self.words.split_at_mut(self.table);
        let table = (!table.is_empty()).then(|| table.as_mut_ptr().cast());
        let numbers = numbers.iter_mut().map(|word| std::ptr::from_mut(word).cast());
        let maps = self.maps.iter_mut().map(|map| std::ptr::from_mut(map).cast());
        table.into_iter().chain(numbers).chain(maps).collect()
    }
}

impl Command {
    /// How often the device is given something to do.
    #[cfg(feature = "cuda")]
    pub(super) fn launches(&self) -> usize {
        self.loaded.as_ref().map_or(0, |_| self.code.emitted.launches.len())
    }

    /// With addresses of places and of scratch memory, values of the plan's parameters, and where failed checks are noted.
    pub(super) fn arguments(
        &self,
        loaded: &Loaded,
        values: &[u64],
        place: impl Fn(Place) -> Option<u64>,
        scratch: impl Fn(usize) -> u64,
        note: u64,
    ) -> Result<Arguments> {
        // Little-endian: a narrower parameter is the low bytes of its word.
        let mut words = Words::with_capacity(self.words.len());
        for word in &self.words {
            words.push(match *word {
                Word::Place(at) => {
                    place(at).ok_or_else(|| Error::internal("execution", "a value is missing"))?
                }
                Word::Scratch(number) => scratch(number),
                Word::Value(number) => values[number],
                Word::Number(number) => number,
                Word::Note => note,
            });
        }
        let emitted = &self.code.emitted;
        let mut table = 0;
        if let Some(batch) = &emitted.batch {
            let parts = words.chunks(emitted.parameters.len().max(1));
            words = batch.table(self.first_blocks.iter().copied().zip(parts)).into();
            table = words.len();
        }
        words.extend(loaded.numbers.iter().flat_map(|numbers| numbers.iter().copied()));
        let maps = self.maps.iter().map(|(at, tiles)| {
            let address = place(*at).ok_or_else(|| Error::internal("execution", "a value is missing"))?;
            loaded.module.tensor_map(tiles, address)
        });
        Ok(Arguments { words, table, maps: maps.collect::<Result<_>>()? })
    }
}

/// A kernel of the plan as errors and profilers name it.
pub(super) fn name(plan: &Plan, number: usize) -> String {
    format!("{} ({})", plan.kernels[number].code.emitted.name, operations(plan, number))
}

/// The operations whose results a kernel of the plan gives, with their lines.
pub(super) fn operations(plan: &Plan, number: usize) -> String {
    let kernel = &plan.kernels[number];
    let outputs = kernel.parts.iter().flat_map(|part| &part.lowered.outputs);
    let mut results: Vec<String> = outputs
        .map(|&id| plan.graph.node(id))
        .map(|node| format!("{}, at {}", node.origin, node.location))
        .collect();
    results.dedup();
    if results.len() > MOST_NAMED {
        let others = results.len() - MOST_NAMED;
        results.truncate(MOST_NAMED);
        results.push(format!("{others} more"));
    }
    results.join("; ")
}

/// Every kernel of the plan, loaded; those that need a compiler are compiled in parallel.
fn load_all(
    plan: &Plan,
    codes: &[Arc<Code>],
    device: Device,
    backend: &Backend,
) -> Result<Vec<Option<Loaded>>> {
    let used: Vec<usize> = (0..codes.len()).filter(|&number| !plan.kernels[number].is_empty()).collect();
    let emitted: Vec<_> = used.iter().map(|&number| codes[number].emitted.clone()).collect();
    let texts = kernels::texts(backend, device, &emitted);
    let mut all: Vec<Option<Loaded>> = vec![None; codes.len()];
    for (&number, text) in used.iter().zip(&texts) {
        all[number] = kernels::loaded(device, text);
    }
    let missing: Vec<(usize, &Text)> =
        used.into_iter().zip(&texts).filter(|&(number, _)| all[number].is_none()).collect();
    if missing.is_empty() {
        // To wake threads would take longer than all the rest.
        return Ok(all);
    }
    let progress = Progress::new(missing.len());
    kernels::compile_ahead(backend, device, &texts);
    let load = |text: &Text| -> Result<Loaded> {
        let loaded = kernels::load(backend, device, text)?;
        progress.advance();
        Ok(loaded)
    };
    let loaded: Vec<(usize, Loaded)> =
        missing.into_par_iter().map(|(number, text)| Ok((number, load(text)?))).collect::<Result<_>>()?;
    loaded.into_iter().for_each(|(number, loaded)| all[number] = Some(loaded));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use lazuli_codegen::Language;

    use super::*;
    use crate::executor::settings;
    use crate::recording::Tensor;
    use crate::recording::build::build;
    use crate::runtime::device::DeviceKind;
    use crate::{Fusion, compiler};

    #[test]
    fn values_that_are_needed_at_different_times_share_places() {
        let x = Tensor::from_vec(vec![1.0f32; 100], [100]);
        let shorter = x.slice(0, ..50);
        let chain = |x: &Tensor| (0..6).fold(x.clone(), |x, _| x.exp());
        let places = |outputs: &[Tensor]| {
            let device = Device(DeviceKind::Interpreted(Language::C));
            let graph = build(outputs).unwrap().graph;
            let plan = compiler::plan(&graph, settings::of(device, Fusion::Off)).unwrap();
            assert_eq!(plan.storage.kernels.len(), plan.kernels.len());
            let released: usize = plan.storage.kernels.iter().map(|kernel| kernel.last_used.len()).sum();
            assert_eq!(released + plan.storage.outputs.len(), plan.storage.places);
            plan.storage.places
        };
        // The input, the output, and two that five intermediate values take turns in.
        assert_eq!(places(&[chain(&x)]), 4);
        // Half as long is near enough, a tenth is not.
        assert_eq!(places(&[chain(&(chain(&x).slice(0, ..50)))]), 4);
        assert_eq!(places(&[chain(&(chain(&x).slice(0, ..10)))]), 6);
        // Outputs have places of their own.
        assert_eq!(places(&[x.exp(), x.exp().exp(), shorter.sin()]), 4);
    }
}
