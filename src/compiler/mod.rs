//! From a recorded graph to a plan: passes, fusion, lowering, emission. Knows no device, only targets.

pub(crate) mod explain;
pub(crate) mod program;

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use lazuli_codegen::ir::Kernel;
use lazuli_codegen::schedule::Figures;
use lazuli_codegen::{Emitted, Language, emit};
use lru::LruCache;
use rustc_hash::FxHashSet;

use crate::debug::{self, Level};
use crate::fusion::cost::TargetFigures;
use crate::fusion::group::Group;
use crate::fusion::reads::stored_as;
use crate::fusion::{self, Fusion, Grouping};
use crate::graph::op::Op;
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
}

impl Settings {
    pub(crate) fn figures(self) -> &'static TargetFigures {
        match self.language {
            Language::Cuda => &TargetFigures::CUDA,
            Language::C => &TargetFigures::CPU,
        }
    }
}

/// What to run for a graph.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The graph after all passes.
    pub(crate) graph: Graph,
    pub(crate) grouping: Grouping,
    /// One a group, in the order of launching.
    pub(crate) kernels: Vec<PlannedKernel>,
    /// The node whose buffer is each output.
    pub(crate) outputs: Vec<NodeId>,
    pub(crate) settings: Settings,
}

/// A kernel of a plan.
#[derive(Debug)]
pub(crate) struct PlannedKernel {
    pub(crate) lowered: Lowered,
    pub(crate) emitted: Arc<Emitted>,
    /// Filled at first use: the kernel compiled for the device that ran it last.
    pub(crate) compiled: Mutex<Option<crate::runtime::kernels::Loaded>>,
}

type PlanCache = LruCache<(hash::StructuralKey, Settings), Arc<Plan>>;

static CACHE: Mutex<Option<PlanCache>> = Mutex::new(None);

/// The plan of a graph, from the cache if one of the same structure was planned before.
pub(crate) fn plan(graph: &Graph, settings: Settings) -> Result<Arc<Plan>> {
    let key = (hash::structural_key(graph), settings);
    let mut cache = CACHE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let plans =
        cache.get_or_insert_with(|| LruCache::new(NonZeroUsize::new(PLANS).unwrap_or(NonZeroUsize::MIN)));
    if let Some(plan) = plans.get(&key) {
        stats::add(stats::Counter::PlanHits);
        return Ok(plan.clone());
    }
    drop(cache);
    let plan = Arc::new(make_plan(graph, settings)?);
    let mut cache = CACHE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(plans) = cache.as_mut() {
        plans.put(key, plan.clone());
    }
    Ok(plan)
}

/// Plans without the cache.
pub(crate) fn make_plan(graph: &Graph, settings: Settings) -> Result<Plan> {
    let start = Instant::now();
    stats::add(stats::Counter::PlansMade);
    let graph = match debug::enabled(Level::Ir) {
        false => passes::run(graph, None)?,
        true => {
            debug::print(Level::Ir, || format!("graph as recorded:\n{}", text(graph, Locations::Shown)));
            let mut observer = |pass: &str, graph: &Graph| {
                debug::print(Level::Ir, || format!("after {pass}:\n{}", text(graph, Locations::Shown)));
            };
            passes::run(graph, Some(&mut observer))?
        }
    };
    let mut grouping = fusion::fuse(&graph, settings.fusion, settings.figures());
    let mut kernels = Vec::with_capacity(grouping.groups.len());
    let mut number = 0;
    while number < grouping.groups.len() {
        match emit_group(&graph, &grouping.groups[number], settings) {
            Ok(kernel) => {
                kernels.push(kernel);
                number += 1;
            }
            // No schedule after all: its operations become kernels of their own, from here on.
            Err(reason) if grouping.groups[number].nodes.len() > 1 => {
                fusion::split(&graph, &mut grouping, number, &reason, settings.figures());
                kernels.clear();
                number = 0;
            }
            Err(reason) => return Err(Error::internal("scheduling", reason)),
        }
    }
    let outputs = graph.outputs().iter().map(|&output| stored_as(&graph, output)).collect();
    let plan = Plan { graph, grouping, kernels, outputs, settings };
    debug::print(Level::Plan, || {
        format!(
            "planned in {:.3} ms\n{}",
            start.elapsed().as_secs_f64() * 1e3,
            explain::Explanation::of(&plan)
        )
    });
    for kernel in &plan.kernels {
        let emitted = &kernel.emitted;
        debug::print(Level::Schedule, || {
            let launches: Vec<String> =
                emitted.launches.iter().map(|(name, launch)| format!("{name}: {launch}")).collect();
            format!("{}: {}; {}", emitted.name, emitted.schedule, launches.join("; "))
        });
        debug::print(Level::Source, || emitted.source.clone());
        debug::print(Level::Ir, || kernel.lowered.kernel.to_string());
    }
    Ok(plan)
}

fn emit_group(graph: &Graph, group: &Group, settings: Settings) -> Result<PlannedKernel, String> {
    let nodes: FxHashSet<NodeId> = group.nodes.iter().copied().collect();
    let name = kernel_name(graph, group);
    let request = Request {
        graph,
        nodes: &nodes,
        reads: &group.reads,
        outputs: &group.outputs,
        reduction: group.reduction,
        name: &name,
    };
    let lowered = lower(&request).map_err(|error| error.to_string())?;
    let emitted = emit_cached(&lowered.kernel, settings)?;
    Ok(PlannedKernel { lowered, emitted, compiled: Mutex::new(None) })
}

type EmittedCache = LruCache<(Kernel, Language), Arc<Emitted>>;

static EMITTED: Mutex<Option<EmittedCache>> = Mutex::new(None);

/// Emits a kernel, or finds what was emitted for an equal one: the repeated blocks of a model, or the
/// same kernel with another learning rate.
fn emit_cached(kernel: &Kernel, settings: Settings) -> Result<Arc<Emitted>, String> {
    let mut key = kernel.clone();
    for argument in &mut key.arguments {
        // The text has the argument's name and type.
        argument.value = Scalar::from_i64(argument.value.dtype(), 0);
    }
    let key = (key, settings.language);
    if let Some(emitted) = with_emitted(|cache| cache.get(&key).cloned()) {
        return Ok(emitted);
    }
    let figures = Figures { processors: settings.figures().processors };
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
