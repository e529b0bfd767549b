//! From a recorded graph to a plan: passes, fusion, lowering, emission. Knows no device, only targets.

mod batch;
pub(crate) mod explain;
pub(crate) mod program;
#[cfg(all(test, feature = "cuda"))]
mod tests;

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use lazuli_codegen::index::AxisId;
use lazuli_codegen::ir::{ArgumentId, AxisKind, BufferId, Kernel};
use lazuli_codegen::schedule::{Figures, Schedule};
use lazuli_codegen::{Emitted, Language, Refusal, emit, emit_batch};
use lru::LruCache;
use rustc_hash::FxHashSet;

use crate::debug::{self, Level};
use crate::fusion::cost::TargetFigures;
use crate::fusion::cut::Cut;
use crate::fusion::group::{Group, WhyNot};
use crate::fusion::reads::stored_as;
use crate::fusion::{self, Facts, Fusion, Grouping};
use crate::graph::op::Op;
use crate::graph::parameters::Parameters;
use crate::graph::text::{Locations, text};
use crate::graph::{Graph, NodeId, hash};
use crate::lower::{Lowered, Request, lower};
use crate::{Error, Result, Scalar, passes, stats};

/// How many plans are kept, least recently used first out.
const PLANS: usize = 512;

/// What plans depend on besides the graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Settings {
    pub(crate) language: Language,
    pub(crate) fusion: Fusion,
    /// Bytes of shared memory that a block can have (CUDA).
    pub(crate) shared_bytes: u32,
    /// A merge that is not made.
    pub(crate) undone: Option<Cut>,
}

impl Settings {
    pub(crate) fn figures(self) -> TargetFigures {
        let figures = match self.language {
            Language::Cuda => TargetFigures::CUDA,
            Language::C => TargetFigures::CPU,
        };
        TargetFigures { shared: self.shared_bytes as usize, ..figures }
    }
}

/// What to run for a graph.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The graph after all passes.
    pub(crate) graph: Graph,
    /// The values of the graph's [`Parameters`], which are what kernels get as scalars and offsets.
    pub(crate) values: Vec<u64>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) settings: Settings,
}

/// What plans of graphs have in common that differ in the values of their parameters alone.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) grouping: Grouping,
    /// One a group or, of small alike ones, one for several; in the order of launching.
    pub(crate) kernels: Vec<PlannedKernel>,
    /// The node whose buffer is each output.
    pub(crate) outputs: Vec<NodeId>,
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
    is_frugal: bool,
}

/// What runs a kernel.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) emitted: Arc<Emitted>,
    /// The inputs that are written over, and the outputs that are.
    pub(crate) over: Vec<(BufferId, BufferId)>,
    /// Filled at first use: the kernel compiled for the device that ran it last.
    pub(crate) compiled: Mutex<Option<crate::runtime::kernels::Loaded>>,
}

impl Code {
    fn new(emitted: Arc<Emitted>, over: Vec<(BufferId, BufferId)>) -> Arc<Code> {
        Arc::new(Code { emitted, over, compiled: Mutex::new(None) })
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
    fn new(emitted: Arc<Emitted>, parts: Vec<Part>, is_frugal: bool) -> PlannedKernel {
        let overwritable = match (&emitted.schedule, parts.first()) {
            (Schedule::Pointwise(_), Some(part)) => part.lowered.kernel.overwritable(),
            _ => Vec::new(),
        };
        PlannedKernel {
            code: Code::new(emitted, Vec::new()),
            parts,
            overwritable,
            in_place: Mutex::default(),
            is_frugal,
        }
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
        let emitted = emit_cached(&kernel, self.is_frugal, settings)?;
        match &self.code.emitted.batch {
            None => Ok(emitted),
            Some(batch) => {
                let blocks = self.parts.iter().map(|part| part.blocks).sum();
                emit_batch(&kernel, &emitted, self.parts.len(), blocks, batch.records).map(Arc::new)
            }
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

type Key = (hash::StructuralKey, Settings);

/// Plans by what was recorded, and what they share by what is left of that after all passes, values of parameters aside.
struct PlanCache {
    plans: LruCache<Key, Arc<Plan>>,
    shared: LruCache<Key, Arc<Shared>>,
}

static CACHE: Mutex<Option<PlanCache>> = Mutex::new(None);

fn with_plans<T>(f: impl FnOnce(&mut PlanCache) -> T) -> T {
    let mut cache = CACHE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let most = NonZeroUsize::new(PLANS).unwrap_or(NonZeroUsize::MIN);
    let new = || PlanCache { plans: LruCache::new(most), shared: LruCache::new(most) };
    f(cache.get_or_insert_with(new))
}

/// The plan of a graph, from the cache if one was planned before that differs in the values of parameters at most.
pub(crate) fn plan(graph: &Graph, settings: Settings) -> Result<Arc<Plan>> {
    let key = (hash::structural_key(graph), settings);
    if let Some(plan) = with_plans(|cache| cache.plans.get(&key).cloned()) {
        stats::add(stats::Counter::PlanHits);
        return Ok(plan);
    }
    let graph = through_passes(graph)?;
    let parameters = Parameters::of(&graph, settings.language);
    let shared_key = (hash::parametric_key(&graph, &parameters), settings);
    let known = with_plans(|cache| cache.shared.get(&shared_key).cloned());
    let plan = match known {
        Some(shared) => {
            stats::add(stats::Counter::PlanHits);
            Plan { graph, values: parameters.values, shared, settings }
        }
        None => plan_anew(graph, parameters, settings)?,
    };
    Ok(remember(key, shared_key, plan))
}

fn remember(key: Key, shared_key: Key, plan: Plan) -> Arc<Plan> {
    let plan = Arc::new(plan);
    with_plans(|cache| {
        cache.shared.put(shared_key, plan.shared.clone());
        cache.plans.put(key, plan.clone());
    });
    plan
}

/// Another plan of the same graph, from now on the one in the cache: the kernels with these numbers spilled
/// registers, so that they become more frugal, or smaller. `None` if they cannot.
pub(crate) fn relieved(graph: &Graph, plan: &Plan, spilling: &[(usize, u32)]) -> Result<Option<Arc<Plan>>> {
    if spilling.is_empty() || plan.settings.fusion == Fusion::Off {
        return Ok(None);
    }
    let facts = facts(&plan.graph, plan.settings);
    let mut grouping = plan.grouping.clone();
    let mut relieved = Vec::new();
    for &(number, bytes) in spilling {
        relieved.extend(plan.kernels[number].parts.iter().map(|part| (part.group, bytes)));
    }
    // From the last one on: what is divided goes to the end of the list, and another takes its place.
    relieved.sort_unstable_by_key(|&(group, _)| std::cmp::Reverse(group));
    let mut changed = false;
    for (group, bytes) in relieved {
        changed |= grouping.relieve(&plan.graph, &facts, group, bytes).is_some();
    }
    if !changed {
        return Ok(None);
    }
    let parameters = Parameters::of(&plan.graph, plan.settings.language);
    let shared_key = (hash::parametric_key(&plan.graph, &parameters), plan.settings);
    let relieved = plan_of(plan.graph.clone(), parameters, plan.settings, &facts, grouping)?;
    Ok(Some(remember((hash::structural_key(graph), plan.settings), shared_key, relieved)))
}

/// Plans without the cache.
#[cfg(all(test, feature = "cuda"))]
fn make_plan(graph: &Graph, settings: Settings) -> Result<Plan> {
    let graph = through_passes(graph)?;
    let parameters = Parameters::of(&graph, settings.language);
    plan_anew(graph, parameters, settings)
}

fn through_passes(graph: &Graph) -> Result<Graph> {
    Ok(match debug::enabled(Level::Ir) {
        false => passes::run(graph, None)?,
        true => {
            debug::print(Level::Ir, || format!("graph as recorded:\n{}", text(graph, Locations::Shown)));
            let mut observer = |pass: &str, graph: &Graph| {
                debug::print(Level::Ir, || format!("after {pass}:\n{}", text(graph, Locations::Shown)));
            };
            passes::run(graph, Some(&mut observer))?
        }
    })
}

fn facts(graph: &Graph, settings: Settings) -> Facts {
    Facts::new(graph, &settings.figures(), settings.undone)
}

/// Plans a graph that went through all passes.
fn plan_anew(graph: Graph, parameters: Parameters, settings: Settings) -> Result<Plan> {
    let facts = facts(&graph, settings);
    let grouping = fusion::fuse(&graph, &facts, settings.fusion);
    plan_of(graph, parameters, settings, &facts, grouping)
}

/// A plan of these groups. One that turns out to be too much is divided.
fn plan_of(
    graph: Graph,
    parameters: Parameters,
    settings: Settings,
    facts: &Facts,
    mut grouping: Grouping,
) -> Result<Plan> {
    let start = Instant::now();
    stats::add(stats::Counter::PlansMade);
    let mut kernels: Vec<PlannedKernel> = Vec::with_capacity(grouping.groups.len());
    while let Some(group) = grouping.groups.get(kernels.len()) {
        match emit_group(&graph, &parameters, group, settings) {
            Ok(kernel) => kernels.push(kernel),
            Err(reason) => grouping
                .divide(&graph, facts, kernels.len(), reason.clone())
                .ok_or_else(|| Error::internal("scheduling", reason.to_string()))?,
        }
    }
    let order = fusion::order(&grouping.groups);
    fusion::permute(&mut grouping.groups, &order);
    fusion::permute(&mut kernels, &order);
    for (number, kernel) in kernels.iter_mut().enumerate() {
        kernel.parts.iter_mut().for_each(|part| part.group = number);
    }
    if settings.fusion == Fusion::On {
        kernels = batch::batch(kernels, &grouping, &settings.figures())
            .map_err(|reason| Error::internal("batching", reason.to_string()))?;
    }
    let outputs = graph.outputs().iter().map(|&output| stored_as(&graph, output)).collect();
    let shared = Arc::new(Shared { grouping, kernels, outputs });
    let plan = Plan { graph, values: parameters.values, shared, settings };
    debug::print(Level::Plan, || {
        format!(
            "planned in {:.3} ms\n{}",
            start.elapsed().as_secs_f64() * 1e3,
            explain::Explanation::of(&plan)
        )
    });
    for kernel in &plan.kernels {
        let emitted = &kernel.code.emitted;
        debug::print(Level::Schedule, || {
            let launches: Vec<String> =
                emitted.launches.iter().map(|(name, launch)| format!("{name}: {launch}")).collect();
            format!("{}: {}; {}", emitted.name, emitted.schedule, launches.join("; "))
        });
        debug::print(Level::Source, || emitted.source.clone());
        for part in &kernel.parts {
            debug::print(Level::Ir, || part.lowered.kernel.to_string());
        }
    }
    Ok(plan)
}

/// Kernels of more than this many milliseconds are divided, down to this many operations.
const MOST_COMPILE_TIME: usize = 400;
const LEAST_DIVIDED: usize = 16;

/// About how many milliseconds a C compiler takes: its time goes with the text, and with the loops in vectors.
fn compile_time(source: &str) -> usize {
    let functions = source.find("\nstatic void ").unwrap_or(0);
    let text = &source[functions..];
    text.len() / 100 + 8 * text.matches("#pragma omp simd").count()
}

/// The kernel of a group, whose number is not known yet.
fn emit_group(
    graph: &Graph,
    parameters: &Parameters,
    group: &Group,
    settings: Settings,
) -> Result<PlannedKernel, WhyNot> {
    let nodes: FxHashSet<NodeId> = group.nodes.iter().copied().collect();
    let name = kernel_name(graph, group);
    let request = Request {
        graph,
        parameters,
        nodes: &nodes,
        reads: &group.reads,
        outputs: &group.outputs,
        reduction: group.reduction,
        scan: group.scan,
        name: &name,
    };
    let lowered = lower(&request).map_err(WhyNot::NotLowered)?;
    let emitted = emit_cached(&lowered.kernel, group.is_frugal, settings).map_err(WhyNot::NoSchedule)?;
    let is_divisible = settings.language == Language::C && group.nodes.len() >= LEAST_DIVIDED;
    let milliseconds = if is_divisible { compile_time(&emitted.source) } else { 0 };
    if milliseconds > MOST_COMPILE_TIME {
        return Err(WhyNot::CompileTime { milliseconds });
    }
    let blocks = emitted.launches.first().map_or(0, |(_, launch)| launch.grid()[0]);
    let parts = vec![Part { group: 0, lowered, blocks }];
    Ok(PlannedKernel::new(emitted, parts, group.is_frugal))
}

type EmittedCache = LruCache<(Kernel, Language, bool, u32), Arc<Emitted>>;

static EMITTED: Mutex<Option<EmittedCache>> = Mutex::new(None);

/// Emits a kernel, or finds what was emitted for an equal one: the repeated blocks of a model, or the
/// same kernel with another learning rate.
fn emit_cached(kernel: &Kernel, is_frugal: bool, settings: Settings) -> Result<Arc<Emitted>, Refusal> {
    let mut key = kernel.clone();
    for argument in &mut key.arguments {
        // The text has the argument's name and type.
        argument.value = Scalar::from_i64(argument.value.dtype(), 0);
    }
    for axis in &mut key.axes {
        if let AxisKind::Offset { number } = &mut axis.kind {
            *number = 0;
        }
    }
    let key = (key, settings.language, is_frugal, settings.shared_bytes);
    if let Some(emitted) = with_emitted(|cache| cache.get(&key).cloned()) {
        return Ok(emitted);
    }
    let processors = settings.figures().processors;
    let figures = Figures { processors, is_frugal, shared_bytes: settings.shared_bytes };
    let emitted = Arc::new(emit(kernel, settings.language, &figures)?);
    with_emitted(|cache| cache.put(key, emitted.clone()));
    Ok(emitted)
}

fn with_emitted<T>(f: impl FnOnce(&mut EmittedCache) -> T) -> T {
    let mut cache = EMITTED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    f(cache.get_or_insert_with(|| LruCache::new(NonZeroUsize::new(PLANS).unwrap_or(NonZeroUsize::MIN))))
}

/// The operations' names in order, each once, and the dtype of the first result: `where_mul_f32`.
fn kernel_name(graph: &Graph, group: &Group) -> String {
    const NAMES: usize = 4;
    let mut names: Vec<&str> = Vec::new();
    for &id in &group.nodes {
        let node = graph.node(id);
        let name = if node.origin.is_empty() { node.op.name() } else { node.origin };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = if names.len() > NAMES { "_etc" } else { "" };
    names.truncate(NAMES);
    let dtype = group.outputs.first().map_or("", |&output| graph.node(output).dtype.name());
    format!("{}{more}_{dtype}", names.join("_"))
}

/// The graph's input nodes, by input number.
pub(crate) fn input_nodes(graph: &Graph) -> impl Iterator<Item = (usize, NodeId)> + '_ {
    graph.nodes().filter_map(|id| match graph.node(id).op {
        Op::Input(slot) => Some((slot, id)),
        _ => None,
    })
}
