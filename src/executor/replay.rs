//! A run that was made before, started again as one graph of the GPU's: only arguments that differ are set anew.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;

use super::layout::{Home, Layout};
use super::prepared::{Arguments, Command, Prepared};
use super::run::{Places, given};
use super::{timing, trial};
use crate::compiler::{Place, Plan};
use crate::debug::{self, Level};
use crate::runtime::buffer::{Buffer, Buffers};
use crate::runtime::checks::{self, Reserved};
use crate::runtime::cuda::driver::{Access, CudaBuffer, CudaDevice, CudaGraph, Node};
use crate::runtime::fault::Faults;
use crate::runtime::range;
use crate::{Error, Result, settings, stats};

/// Calls that are made one by one first: a graph takes longer to build than it saves in a few calls.
const CALLS_BEFORE: usize = 2;
/// Streams that have a graph of their own at a time: one graph runs once at a time.
const MOST_STREAMS: usize = 4;

/// What a compiled function's calls have in common on a GPU.
#[derive(Default)]
pub(super) struct Replay {
    calls: AtomicUsize,
    /// Nothing where launches are made one by one.
    layout: OnceLock<Option<Layout>>,
    /// The driver makes none of this.
    is_refused: AtomicBool,
    /// By the stream's number, the one used last at the end.
    graphs: Mutex<Vec<(u64, Arc<OfStream>)>>,
}

/// Nothing until it is built, and where it could not be brought up to date.
type OfStream = Mutex<Option<Instance>>;

/// A graph, and where its launches have what they use.
struct Instance {
    graph: CudaGraph,
    addresses: Addresses,
}

/// Everything that differs between calls.
#[derive(Default)]
struct Addresses {
    places: SmallVec<[u64; 16]>,
    arena: u64,
    counters: u64,
    notes: SmallVec<[u64; 2]>,
}

/// The memory of one call.
struct Memory {
    /// Those that are not in the arena.
    places: Places,
    arena: CudaBuffer,
    counters: Option<Arc<CudaBuffer>>,
}

impl Replay {
    /// The results, or nothing where launches are to be made one by one.
    pub(super) fn run(
        &self,
        plan: &Plan,
        prepared: &Prepared,
        device: &Arc<CudaDevice>,
        inputs: &[Buffer],
        outputs: &[Option<Buffer>],
    ) -> Result<Option<Buffers>> {
        if self.calls.fetch_add(1, Ordering::Relaxed) < CALLS_BEFORE
            || self.is_refused.load(Ordering::Relaxed)
            || !device.has_graphs()
            || debug::enabled(Level::Timings)
            || timing::is_timing()
            || trial::is_noting()
            || settings::is_launch_blocking()
            || !settings::has_cuda_graphs()
        {
            return Ok(None);
        }
        let Some(layout) = self.layout.get_or_init(|| Layout::new(plan, prepared)) else { return Ok(None) };
        if layout.checking.len() > checks::SLOTS {
            return Ok(None);
        }
        let memory = match Memory::new(layout, plan, device, inputs, outputs) {
            // One by one, memory goes back earlier.
            Err(Error::OutOfMemory { .. }) => return Ok(None),
            other => other?,
        };
        let _range = range(|| format!("a graph of {} kernels", prepared.commands().len()));
        if !self.launch(layout, plan, prepared, device, &memory)? {
            return Ok(None);
        }
        let output = |&place: &Place| {
            let value = memory.places[layout.root(place).index()].clone();
            value.ok_or_else(|| Error::internal("execution", "an output was not computed"))
        };
        plan.storage.outputs.iter().map(output).collect::<Result<_>>().map(Some)
    }

    /// Gives whether it has.
    fn launch(
        &self,
        layout: &Layout,
        plan: &Plan,
        prepared: &Prepared,
        device: &Arc<CudaDevice>,
        memory: &Memory,
    ) -> Result<bool> {
        let stream = device.stream();
        let graph = self.graph_of(stream.id);
        let mut graph = graph.lock().unwrap_or_else(PoisonError::into_inner);
        for &(place, is_written) in &layout.uses {
            if let Some(Buffer::Cuda(buffer)) = &memory.places[place.index()] {
                buffer.use_on(&stream, if is_written { Access::Writes } else { Access::Reads })?;
            }
        }
        let commands = prepared.commands();
        let checked: SmallVec<[_; 2]> =
            layout.checking.iter().filter_map(|&number| commands[number].checks.as_ref()).collect();
        // Until the launch.
        let reserved = if checked.is_empty() { None } else { Some(checks::reserve(device, &checked)?) };
        let addresses = memory.addresses(layout, reserved.as_ref());
        let call = Call { layout, plan, prepared, addresses: &addresses };
        let ready = match graph.take() {
            Some(mut known) => call.update(&mut known).map(|()| known),
            None => call.build(device),
        };
        let Ok(mut instance) = ready else {
            // If there is more to it, launches have the same to say.
            self.is_refused.store(true, Ordering::Relaxed);
            return Ok(false);
        };
        instance.addresses = addresses;
        device.launching(&prepared.names, None);
        // SAFETY: the arguments are made from the emitted parameter lists, every buffer has the size that lowering stated for
        // it, and what uses the same memory is ordered by the layout.
        unsafe { instance.graph.launch(&stream)? };
        *graph = Some(instance);
        stats::add(stats::Counter::GraphReplays);
        stats::add_many(stats::Counter::Launches, layout.launches.len());
        let in_place = commands.iter().map(|command| command.over.len()).sum();
        stats::add_many(stats::Counter::InPlace, in_place);
        memory.follow(layout, reserved.as_ref());
        Ok(true)
    }

    fn graph_of(&self, stream: u64) -> Arc<OfStream> {
        let mut graphs = self.graphs.lock().unwrap_or_else(PoisonError::into_inner);
        let known = graphs.iter().position(|(id, _)| *id == stream).map(|number| graphs.remove(number));
        if known.is_none() && graphs.len() == MOST_STREAMS {
            graphs.remove(0);
        }
        let known = known.unwrap_or_else(|| (stream, Arc::default()));
        let graph = known.1.clone();
        graphs.push(known);
        graph
    }
}

/// One call, with its memory.
struct Call<'a> {
    layout: &'a Layout,
    plan: &'a Plan,
    prepared: &'a Prepared,
    addresses: &'a Addresses,
}

impl Call<'_> {
    fn build(&self, device: &Arc<CudaDevice>) -> Result<Instance> {
        let commands = self.prepared.commands();
        let arguments = (0..commands.len()).map(|number| self.arguments(number));
        let mut arguments: Vec<Option<Arguments>> = arguments.collect::<Result<_>>()?;
        let pointers: Vec<_> = (arguments.iter_mut())
            .map(|arguments| arguments.as_mut().map(Arguments::pointers).unwrap_or_default())
            .collect();
        let mut launches = Vec::with_capacity(self.layout.launches.len());
        for step in &self.layout.launches {
            // The functions of a kernel have the same arguments.
            let arguments = pointers[step.kernel].clone();
            launches.push((&commands[step.kernel], step, arguments));
        }
        let nodes = launches.iter_mut().map(|(command, step, arguments)| {
            Ok((command.node(step.function, arguments)?, step.after.as_slice()))
        });
        let graph = device.graph(nodes)?;
        Ok(Instance { graph, addresses: Addresses::default() })
    }

    /// Sets what differs from the call before.
    fn update(&self, instance: &mut Instance) -> Result<()> {
        let commands = self.prepared.commands();
        let (old, new) = (&instance.addresses, self.addresses);
        let differs = |number: usize| {
            let command: &Command = &commands[number];
            let mut places = command.flows.iter().flatten().flatten();
            places.any(|place| old.places[place.index()] != new.places[place.index()])
                || !command.scratch.is_empty() && (old.arena, old.counters) != (new.arena, new.counters)
                || command.checks.is_some()
        };
        let differing: SmallVec<[(usize, usize); 8]> = (self.layout.launches.iter().enumerate())
            .filter(|(_, step)| step.function == 0 && differs(step.kernel))
            .map(|(number, step)| (number, step.kernel))
            .collect();
        for (first, kernel) in differing {
            let Some(mut arguments) = self.arguments(kernel)? else { continue };
            let mut pointers = arguments.pointers();
            for function in 0..commands[kernel].launches() {
                instance.graph.update(first + function, commands[kernel].node(function, &mut pointers)?)?;
            }
        }
        Ok(())
    }

    /// Nothing for a kernel that has nothing to do.
    fn arguments(&self, number: usize) -> Result<Option<Arguments>> {
        let command = &self.prepared.commands()[number];
        let Some(loaded) = &command.loaded else { return Ok(None) };
        let place = |place: Place| self.addresses.places.get(place.index()).copied();
        let scratch = |part: usize| match self.layout.scratch[number][part] {
            Some(offset) => self.addresses.arena + offset as u64,
            None => self.addresses.counters,
        };
        let check = self.layout.checking.binary_search(&number);
        let note = check.map_or(0, |check| self.addresses.notes[check]);
        command.arguments(loaded, &self.plan.values, place, scratch, note).map(Some)
    }
}

impl Command {
    /// One of its launches.
    fn node<'a>(&'a self, function: usize, arguments: &'a mut [*mut std::ffi::c_void]) -> Result<Node<'a>> {
        let missing = || Error::internal("execution", "a kernel is missing");
        let (name, launch) = self.code.emitted.launches.get(function).ok_or_else(missing)?;
        let (kernel, grid) = self.loaded.as_ref().ok_or_else(missing)?.module.on_cuda(name, launch)?;
        Ok(Node { kernel, grid, block: launch.block, shared_bytes: launch.shared_bytes, arguments })
    }
}

impl Memory {
    fn new(
        layout: &Layout,
        plan: &Plan,
        device: &Arc<CudaDevice>,
        inputs: &[Buffer],
        outputs: &[Option<Buffer>],
    ) -> Result<Memory> {
        let mut places = given(plan, inputs, outputs.iter().cloned())?;
        for &(place, bytes) in &layout.results {
            let given = &mut places[place.index()];
            if given.as_ref().is_none_or(|given| given.bytes() != bytes) {
                *given = Some(Buffer::Cuda(Arc::new(device.allocate(bytes)?)));
            }
        }
        let counters = if layout.counters > 0 { Some(device.counters(layout.counters)?) } else { None };
        Ok(Memory { places, arena: device.allocate(layout.arena)?, counters })
    }

    fn addresses(&self, layout: &Layout, reserved: Option<&Reserved>) -> Addresses {
        let arena = self.arena.device_pointer();
        let given =
            |place: Place| self.places[place.index()].as_ref().map_or(0, |buffer| buffer.pointer() as u64);
        let places = layout.homes.iter().zip(&self.places).map(|(home, buffer)| match *home {
            Home::Given => buffer.as_ref().map_or(0, |buffer| buffer.pointer() as u64),
            Home::Arena(offset) => arena + offset as u64,
            Home::As(place) => given(place),
        });
        Addresses {
            places: places.collect(),
            arena,
            counters: self.counters.as_ref().map_or(0, |counters| counters.device_pointer()),
            notes: reserved.iter().flat_map(|reserved| &reserved.notes).map(|(note, _)| *note).collect(),
        }
    }

    /// What is not known of the inputs, and of the launches, is not known of the results.
    fn follow(&self, layout: &Layout, reserved: Option<&Reserved>) {
        let faults = |place: Place| match &self.places[layout.root(place).index()] {
            Some(Buffer::Cuda(buffer)) => Some(buffer.faults()),
            _ => None,
        };
        let of =
            |check: &usize| reserved.and_then(|reserved| reserved.notes.get(*check)).map(|(_, fault)| fault);
        // All before the first changes: a result may be in an input's memory.
        let gathered: SmallVec<[_; 4]> = (layout.follows.iter())
            .map(|(_, sources)| {
                let inputs = sources.inputs.iter().filter_map(|&place| faults(place));
                Faults::gather(inputs, sources.checks.iter().filter_map(of))
            })
            .collect();
        for ((place, _), gathered) in layout.follows.iter().zip(gathered) {
            if let Some(faults) = faults(*place) {
                faults.set(gathered);
            }
        }
    }
}
