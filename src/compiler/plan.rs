//! A plan: what to run for a graph.

use std::any::Any;
use std::sync::{Arc, Mutex};

use lazuli_codegen::index::AxisId;
use lazuli_codegen::ir::{ArgumentId, AxisKind, BufferId};
use lazuli_codegen::schedule::Schedule;
use lazuli_codegen::{Emitted, Refusal, emit_batch};

use super::emission::{emit_as, emit_cached};
use super::settings::Settings;
use super::storage::{Storage, input_nodes};
use crate::fusion::Grouping;
use crate::fusion::group::Group;
use crate::graph::numbers::Number;
use crate::graph::{Graph, NodeId};
use crate::lower::Lowered;
use crate::{Error, Result};

/// Numbers among the values of a plan's parameters, and their places there.
pub(super) type PlacedNumbers = Vec<(usize, Number)>;

/// What to run for a graph.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The graph after all passes.
    pub(crate) graph: Arc<Graph>,
    /// The values of the graph's [`Parameters`], which are what kernels get as scalars and offsets.
    pub(crate) values: Vec<u64>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) settings: Settings,
    /// Whether it follows from plans of other sizes: what a run does not need is theirs.
    pub(crate) follows: bool,
    /// Which values are numbers of the user's or seeds, and these, if no pass has computed with one.
    pub(super) numbers: Option<PlacedNumbers>,
}

/// What plans of graphs have in common that differ in the values of their parameters alone.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) grouping: Grouping,
    /// One a group or, of small alike ones, one for several; in the order of launching. Plans of several sizes share those that
    /// are the same in all.
    pub(crate) kernels: Vec<Arc<PlannedKernel>>,
    /// The node whose buffer is each output.
    pub(crate) outputs: Vec<NodeId>,
    pub(crate) storage: Storage,
    /// What devices have made of it: nothing that plans know.
    pub(crate) made: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

impl Shared {
    pub(super) fn new(
        graph: &Graph,
        grouping: Grouping,
        kernels: Vec<Arc<PlannedKernel>>,
        outputs: Vec<NodeId>,
    ) -> Shared {
        Shared::between(graph, grouping, kernels, input_nodes(graph), outputs)
    }

    /// From values of the graph that are there before to others.
    pub(super) fn between(
        graph: &Graph,
        grouping: Grouping,
        kernels: Vec<Arc<PlannedKernel>>,
        inputs: impl Iterator<Item = (usize, NodeId)>,
        outputs: Vec<NodeId>,
    ) -> Shared {
        let parts = kernels.iter().map(|kernel| kernel.parts.iter().map(|part| &part.lowered).collect());
        let storage = Storage::new(graph, &parts.collect::<Vec<_>>(), inputs, &outputs);
        Shared { grouping, kernels, outputs, storage, made: Mutex::default() }
    }
}

impl std::ops::Deref for Plan {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// A kernel of a plan.
#[derive(Debug)]
pub(crate) struct PlannedKernel {
    pub(crate) code: Arc<Code>,
    /// What one launch computes: a group or, if it is a batch, several of the same text.
    pub(crate) parts: Vec<Part>,
    /// Inputs that an output can be written over where it is as long, and nobody needs them.
    pub(crate) overwritable: Vec<BufferId>,
    /// The same for some of these pairs, each made at first use.
    in_place: Mutex<Vec<Arc<Code>>>,
    /// Whether its threads take as few registers as they can.
    pub(super) is_low_pressure: bool,
}

/// What runs a kernel.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) emitted: Arc<Emitted>,
    /// The inputs that are written over, and the outputs that are.
    pub(crate) over: Vec<(BufferId, BufferId)>,
}

impl Code {
    fn new(emitted: Arc<Emitted>, over: Vec<(BufferId, BufferId)>) -> Arc<Code> {
        Arc::new(Code { emitted, over })
    }
}

/// A group as a part of a kernel.
#[derive(Debug)]
pub(crate) struct Part {
    /// The number of the group.
    pub(crate) group: usize,
    pub(crate) lowered: Lowered,
    /// Blocks of its own in a batch.
    pub(crate) blocks: u64,
}

impl Part {
    /// What a kernel of the plan gets for a scalar: the bits of its value.
    pub(crate) fn argument(&self, plan: &Plan, id: ArgumentId) -> u64 {
        plan.values[self.lowered.arguments[id.index()]]
    }

    /// What it gets for an offset; 0 for another axis.
    pub(crate) fn offset(&self, plan: &Plan, axis: AxisId) -> u64 {
        match self.lowered.kernel.axis(axis).kind {
            AxisKind::Offset { number } => plan.values[number as usize],
            AxisKind::Map | AxisKind::Reduce | AxisKind::Computed { .. } => 0,
        }
    }
}

impl PlannedKernel {
    pub(super) fn new(emitted: Arc<Emitted>, parts: Vec<Part>, is_low_pressure: bool) -> PlannedKernel {
        let overwritable = match (&emitted.schedule, parts.first()) {
            (Schedule::Pointwise(_), Some(part)) => part.lowered.kernel.overwritable(),
            (Schedule::Scatter(schedule), Some(part)) if schedule.is_sparse => {
                part.lowered.kernel.overwritable()
            }
            _ => Vec::new(),
        };
        PlannedKernel {
            code: Code::new(emitted, Vec::new()),
            parts,
            overwritable,
            in_place: Mutex::default(),
            is_low_pressure,
        }
    }

    /// Whether everything is checked before a function writes over inputs.
    pub(crate) fn checks_first(&self) -> bool {
        matches!(self.code.emitted.schedule, Schedule::Scatter(schedule) if schedule.is_sparse)
    }

    /// Outputs to write over these inputs, in all parts.
    pub(crate) fn pair_up(&self, inputs: &[BufferId]) -> Vec<(BufferId, BufferId)> {
        let length = |part: &Part, id: BufferId| part.lowered.kernel.buffers[id.index()].elements;
        let fits = |a, b| self.parts.iter().all(|part| length(part, a) == length(part, b));
        self.parts.first().map_or(Vec::new(), |part| part.lowered.kernel.pair_up(inputs, fits))
    }

    /// The code that writes outputs over inputs.
    pub(crate) fn in_place(&self, over: Vec<(BufferId, BufferId)>, settings: Settings) -> Result<Arc<Code>> {
        let mut known = self.in_place.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(code) = known.iter().find(|code| code.over == over) {
            return Ok(code.clone());
        }
        let emitted = self
            .emit_in_place(&over, settings)
            .map_err(|reason| Error::internal("in place", reason.to_string()))?;
        let code = Code::new(emitted, over);
        known.push(code.clone());
        Ok(code)
    }

    fn emit_in_place(
        &self,
        over: &[(BufferId, BufferId)],
        settings: Settings,
    ) -> Result<Arc<Emitted>, Refusal> {
        let Some(part) = self.parts.first() else { return Err(Refusal::Misfit("a kernel without parts")) };
        let kernel = part.lowered.kernel.written_over(over);
        let emitted = match settings.tuned {
            // It was measured where it writes over nothing.
            Some(_) => emit_as(&kernel, self.is_low_pressure, settings, self.code.emitted.schedule)?,
            None => emit_cached(&kernel, self.is_low_pressure, settings)?,
        };
        match &self.code.emitted.batch {
            None => Ok(emitted),
            Some(batch) => {
                let blocks = self.parts.iter().map(|part| part.blocks).sum();
                emit_batch(&kernel, &emitted, self.parts.len(), blocks, batch.records).map(Arc::new)
            }
        }
    }

    /// The one part of a kernel that can be emitted otherwise. Several parts have one text, which each of them chooses as if it
    /// were alone; and where registers ran out there is no choice.
    pub(super) fn only_part(&self) -> Option<&Part> {
        match self.parts.as_slice() {
            [part] if !self.is_low_pressure && !self.is_empty() => Some(part),
            _ => None,
        }
    }

    /// Whether there is nothing to compute: all results are empty.
    pub(crate) fn is_empty(&self) -> bool {
        let mut buffers = self.parts.iter().flat_map(|part| &part.lowered.kernel.buffers);
        buffers.all(|buffer| !buffer.is_output || buffer.elements == 0)
    }

    /// How often it is launched.
    pub(crate) fn launches(&self) -> usize {
        if self.is_empty() { 0 } else { self.code.emitted.launches.len() }
    }

    /// What the groups do.
    pub(crate) fn groups<'a>(&'a self, grouping: &'a Grouping) -> impl Iterator<Item = &'a Group> {
        self.parts.iter().map(|part| &grouping.groups[part.group])
    }
}
