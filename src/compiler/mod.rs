//! From a recorded graph to a plan: passes, fusion, lowering, emission. Knows no device, only targets.

mod apart;
mod batch;
mod candidates;
mod cuts;
mod emission;
pub(crate) mod explain;
mod family;
mod general;
mod groups;
mod kept;
mod passed;
mod plan;
mod settings;
mod storage;
#[cfg(all(test, feature = "cuda"))]
mod tests;

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use lru::LruCache;

use crate::debug::{self, Level};
#[cfg(feature = "opt")]
pub(crate) use crate::fusion::Wanted;
use crate::fusion::reads::stored_as;
use crate::fusion::{self, Facts, Fusion, Grouping};
use crate::graph::Graph;
use crate::graph::hash::{self, Keys};
use crate::graph::parameters::Parameters;
use crate::graph::rounded::rounded;
use crate::graph::sizes::Sizes;
use crate::{Result, stats};
pub(crate) use apart::{cuts, in_parts, place};
pub(crate) use candidates::{default_schedule, neighbours, results, tuned_key, under};
use general::General;
use groups::emit_groups;
use kept::{Kept, PLANS};
use passed::passed;
pub(crate) use passed::through_passes;
use plan::Shared;
pub(crate) use plan::{Code, Part, Plan, PlannedKernel};
pub(crate) use settings::{Settings, matrices};
pub(crate) use storage::{Place, input_nodes};

type Key = (hash::StructuralKey, Settings);

/// Plans by what was recorded, and by that but for the user's numbers, what they share by what is left of that after all passes, values of parameters aside, and
/// what is one kernel by the same with rounded extents.
struct PlanCache {
    plans: Kept<Key, Arc<Plan>>,
    general: Kept<Key, General>,
    shared: LruCache<Key, Arc<Shared>>,
    groupings: LruCache<Key, Grouping>,
}

static CACHE: Mutex<Option<PlanCache>> = Mutex::new(None);

fn with_plans<T>(f: impl FnOnce(&mut PlanCache) -> T) -> T {
    let mut cache = CACHE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let most = NonZeroUsize::new(PLANS).unwrap_or(NonZeroUsize::MIN);
    let new = || PlanCache {
        plans: Kept::new(),
        general: Kept::new(),
        shared: LruCache::new(most),
        groupings: LruCache::new(most),
    };
    f(cache.get_or_insert_with(new))
}

/// The plan of a graph, from the cache if one was planned before that differs in the values of parameters at most.
pub(crate) fn plan(graph: &Graph, settings: Settings) -> Result<Arc<Plan>> {
    planned(graph, settings, false)
}

/// The same to run it: also what follows from plans of other sizes, and has all that a run needs.
pub(crate) fn plan_to_run(graph: &Graph, settings: Settings) -> Result<Arc<Plan>> {
    // Who wants to see plans sees them made.
    planned(graph, settings, !debug::enabled(Level::Plan))
}

fn planned(recorded: &Graph, settings: Settings, may_follow: bool) -> Result<Arc<Plan>> {
    let keys = hash::keys(recorded);
    if let Some(plan) = with_plans(|cache| cache.plans.get(&(keys.exact, settings)).cloned())
        .filter(|plan| may_follow || !plan.follows)
    {
        stats::add(stats::Counter::PlanHits);
        return Ok(plan);
    }
    let sizes = if may_follow { Sizes::of(recorded) } else { None };
    if let Some(plan) = sizes.as_ref().and_then(|sizes| family::plan(recorded, sizes, settings, uncached)) {
        stats::add(stats::Counter::PlanHits);
        return Ok(with_plans(|cache| cache.remember(&keys, plan)));
    }
    let (graph, parameters, numbers) = passed(recorded, settings)?;
    let shared_key = (hash::parametric_key(&graph, &parameters), settings);
    let known = with_plans(|cache| cache.shared.get(&shared_key).cloned());
    let mut plan = match known {
        Some(shared) => {
            stats::add(stats::Counter::PlanHits);
            let (graph, values) = (Arc::new(graph), parameters.values);
            Plan { graph, values, shared, settings, follows: false, numbers: None }
        }
        None => {
            let (mut plan, is_decided) = plan_anew(graph, parameters, settings)?;
            plan.numbers.clone_from(&numbers);
            stats::add(match is_decided {
                true => stats::Counter::PlanHits,
                false => stats::Counter::PlansMade,
            });
            if let Some(sizes) = sizes.filter(|_| !plan.grouping.is_cut()) {
                family::note(recorded, sizes, &plan, uncached);
            }
            plan
        }
    };
    plan.numbers = numbers;
    Ok(remember(&keys, shared_key, plan))
}

/// The plan of the graph with these keys, if it was planned before, or one that differs in the user's numbers. `recorded` is
/// the graph.
pub(crate) fn known_or_general(
    keys: &Keys,
    settings: Settings,
    recorded: &dyn Fn() -> Result<Graph>,
) -> Option<Arc<Plan>> {
    let (known, general) = with_plans(|cache| {
        let known = cache.plans.get(&(keys.exact, settings)).cloned();
        let is_new = known.is_none() && !keys.numbers.is_empty();
        let general = is_new.then(|| cache.general.get(&(keys.general, settings)).cloned()).flatten();
        (known, general)
    });
    known.or_else(|| Some(Arc::new(general?.plan(keys, recorded)?)))
}

fn remember(keys: &Keys, shared_key: Key, plan: Plan) -> Arc<Plan> {
    with_plans(|cache| {
        cache.shared.put(shared_key, plan.shared.clone());
        cache.remember(keys, plan)
    })
}

impl PlanCache {
    fn remember(&mut self, keys: &Keys, plan: Plan) -> Arc<Plan> {
        let plan = Arc::new(plan);
        let nodes = plan.graph.bound();
        if let Some(general) = General::of(&plan, keys) {
            self.general.put((keys.general, plan.settings), general, nodes);
        }
        self.plans.put((keys.exact, plan.settings), plan.clone(), nodes);
        plan
    }
}

/// Another plan of the same graph, from now on the one in the cache: the kernels with these numbers spilled
/// registers, so that they need fewer of them, or become smaller. `None` if they cannot.
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
    stats::add(stats::Counter::PlansMade);
    let grouping_key = rounded(&plan.graph).map(|rounded| hash::grouping_key(&rounded, &parameters));
    let mut relieved = plan_of(Graph::clone(&plan.graph), parameters, plan.settings, &facts, grouping)?;
    relieved.numbers.clone_from(&plan.numbers);
    family::forget(graph, plan.settings);
    // What was measured is of these sizes alone.
    if let Some(key) = grouping_key.filter(|_| !relieved.grouping.is_cut()) {
        with_plans(|cache| cache.groupings.put((key, plan.settings), relieved.grouping.clone()));
    }
    Ok(Some(remember(&hash::keys(graph), shared_key, relieved)))
}

/// Plans a graph as it was recorded, without the cache of plans.
fn uncached(recorded: &Graph, settings: Settings) -> Result<Plan> {
    let (graph, parameters, numbers) = passed(recorded, settings)?;
    Ok(Plan { numbers, ..plan_anew(graph, parameters, settings)?.0 })
}

fn facts(graph: &Graph, settings: Settings) -> Facts {
    Facts::new(graph, &settings.figures(), settings.undone)
}

/// Plans a graph that went through all passes, as all are that differ in outermost extents which round alike. Also says
/// whether it was known what is one kernel.
fn plan_anew(graph: Graph, parameters: Parameters, settings: Settings) -> Result<(Plan, bool)> {
    let own = facts(&graph, settings);
    let rounded = match settings.fusion {
        Fusion::On => rounded(&graph),
        Fusion::Off => None,
    };
    let key = rounded.as_ref().map(|rounded| (hash::grouping_key(rounded, &parameters), settings));
    let known = key.and_then(|key| with_plans(|cache| cache.groupings.get(&key).cloned()));
    let is_known = known.is_some();
    let decided = known.or_else(|| {
        let rounded = rounded?;
        let grouping = fusion::fuse(&rounded, &facts(&rounded, settings), settings.fusion);
        // As it was decided for all: what one of them cannot do is divided for it alone.
        with_plans(|cache| cache.groupings.put(key?, grouping.clone()));
        Some(grouping)
    });
    let grouping = decided.and_then(|decided| decided.like(&graph, &own));
    let is_decided = is_known && grouping.is_some();
    let grouping = grouping.unwrap_or_else(|| fusion::fuse(&graph, &own, settings.fusion));
    Ok((plan_of(graph, parameters, settings, &own, grouping)?, is_decided))
}

/// Plans a graph that went through all passes that it is to go through.
#[cfg(feature = "opt")]
pub(crate) fn plan_passed(graph: Graph, settings: Settings) -> Result<Plan> {
    let parameters = Parameters::of(&graph, settings.language);
    let (plan, is_decided) = plan_anew(graph, parameters, settings)?;
    stats::add(if is_decided { stats::Counter::PlanHits } else { stats::Counter::PlansMade });
    Ok(plan)
}

/// As [`plan_passed`], in groups that somebody else has chosen.
///
/// # Errors
/// Why they are none: in words.
#[cfg(feature = "opt")]
pub(crate) fn plan_grouped(graph: Graph, settings: Settings, groups: &[Wanted]) -> Result<Plan, String> {
    let parameters = Parameters::of(&graph, settings.language);
    let facts = facts(&graph, settings);
    let grouping = Grouping::of(&graph, &facts, groups)?;
    plan_of(graph, parameters, settings, &facts, grouping).map_err(|error| error.to_string())
}

/// A plan of these groups. One that turns out to be too much is divided, and so is one that was measured to be faster as several.
fn plan_of(
    graph: Graph,
    parameters: Parameters,
    settings: Settings,
    facts: &Facts,
    mut grouping: Grouping,
) -> Result<Plan> {
    let start = Instant::now();
    let kernels = emit_groups(&graph, &parameters, settings, facts, &mut grouping)?;
    let outputs = graph.outputs().iter().map(|&output| stored_as(&graph, output)).collect();
    let shared = Arc::new(Shared::new(&graph, grouping, kernels, outputs));
    let (graph, values) = (Arc::new(graph), parameters.values);
    let plan = Plan { graph, values, shared, settings, follows: false, numbers: None };
    dump(&plan, start);
    Ok(plan)
}

/// What the levels of debugging show of a plan that was made since then.
fn dump(plan: &Plan, start: Instant) {
    debug::print(Level::Plan, || {
        format!(
            "planned in {:.3} ms\n{}",
            start.elapsed().as_secs_f64() * 1e3,
            explain::Explanation::of(plan)
        )
    });
    for kernel in &plan.kernels {
        let emitted = &kernel.code.emitted;
        debug::print(Level::Schedule, || {
            let launches: Vec<String> =
                emitted.launches.iter().map(|(name, launch)| format!("{name}: {launch}")).collect();
            format!("{}: {}; {}", emitted.name, emitted.schedule, launches.join("; "))
        });
        debug::print(Level::Source, || emitted.source.to_string());
        for part in &kernel.parts {
            debug::print(Level::Ir, || part.lowered.kernel.to_string());
        }
    }
}
