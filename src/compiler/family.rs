//! Plans that follow from plans of other sizes, without passes, fusion or lowering.
//!
//! What planning asks of sizes are comparisons of sums of them, and whether one number divides another. Along a stretch of
//! graphs whose sizes grow evenly, a plan is made for the first graph, for the one after it and for the last. If these are one
//! plan but for numbers that grow evenly too, each comparison that came out one way at both ends does so in between; and what
//! divides two neighbours divides all. So the numbers of any plan of the stretch follow from where on it the plan is. What
//! would be special in between is another structure (`graph::sizes`): sizes that are equal to others, beyond a power of
//! two, or small. Schedules and texts are chosen for each kernel as it is, and where values are is worked out for each plan.
//!
//! Debug builds of this workspace plan each graph all the same, and compare.

mod growth;
mod line;
#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use lazuli_codegen::nest::is_verified;
use lru::LruCache;

use super::plan::{Plan, Shared};
use super::settings::Settings;
use crate::graph::Graph;
use crate::graph::hash::{self, StructuralKey};
use crate::graph::parameters::Parameters;
use crate::graph::rounded::rounded;
use crate::graph::sizes::{Sizes, with_sizes};
use crate::graph::verify::verify;
use crate::{Result, Scalar};
use growth::Growth;
use line::Line;

/// Plans a recorded graph, whatever follows from others.
type Make = fn(&Graph, Settings) -> Result<Plan>;

/// Structures that are remembered.
const MOST_STRUCTURES: usize = 128;
/// Stretches of one structure.
const MOST_FAMILIES: usize = 8;
/// Attempts of one structure at a stretch that came to none.
const MOST_ATTEMPTS: usize = 3;
/// What plans of one size share is kept for so many sizes of a stretch.
const MOST_SHARED: usize = 4;

/// A stretch of plans.
struct Family {
    line: Line,
    /// Whether it is decided once for all of it which operations share a kernel. Else it was decided alike at both ends.
    is_decided: bool,
    /// Whether no pass has computed with the user's numbers.
    is_general: bool,
    /// The user's numbers of the first one; the same in all if something is computed from them alone.
    scalars: Vec<Scalar>,
    computes_scalars: bool,
    /// The plan at the beginning.
    first: Plan,
    parameters: Parameters,
    growth: Growth,
    /// What plans of a size share, by where it is.
    shared: Mutex<LruCache<i64, Arc<Shared>>>,
}

/// What is known of a structure.
#[derive(Default)]
struct Known {
    /// How many sizes were planned, and which was the last.
    planned: usize,
    seen: Vec<i64>,
    families: Vec<Arc<Family>>,
    attempts: usize,
}

type Structures = LruCache<(StructuralKey, Settings), Known>;

static STRUCTURES: Mutex<Option<Structures>> = Mutex::new(None);

fn with_structures<T>(f: impl FnOnce(&mut Structures) -> T) -> T {
    let mut structures = STRUCTURES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    f(structures.get_or_insert_with(|| LruCache::new(most(MOST_STRUCTURES))))
}

fn most(most: usize) -> NonZeroUsize {
    NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN)
}

/// The plan of a recorded graph of these sizes, if it follows from others.
pub(super) fn plan(recorded: &Graph, sizes: &Sizes, settings: Settings, make: Make) -> Option<Plan> {
    let families =
        with_structures(|structures| Some(structures.get(&(sizes.key, settings))?.families.clone()))?;
    let (plan, is_decided) =
        families.iter().find_map(|family| Some((family.plan(recorded, sizes)?, family.is_decided)))?;
    if is_verified() {
        let is_same =
            |made: Plan| growth::is_same(&plan, &made) || !is_decided && !growth::has_groups_of(&plan, &made);
        debug_assert!(make(recorded, settings).is_ok_and(is_same), "another plan follows than is made");
    }
    Some(plan)
}

/// A recorded graph of these sizes was planned: the third of a structure, and the one before it, say which others follow. A batch
/// and the smaller one at the end of the data are only two.
pub(super) fn note(recorded: &Graph, sizes: Sizes, plan: &Plan, make: Make) {
    let key = (sizes.key, plan.settings);
    let seen = with_structures(|structures| {
        let known = structures.get_or_insert_mut(key, Known::default);
        if known.seen == sizes.numbers {
            return None;
        }
        known.planned += 1;
        let is_open = known.attempts < MOST_ATTEMPTS && known.families.len() < MOST_FAMILIES;
        let seen = std::mem::replace(&mut known.seen, sizes.numbers.clone());
        (is_open && known.planned >= 3 && seen.len() == sizes.numbers.len()).then_some(seen)
    });
    let Some(line) = seen.and_then(|seen| Line::new(&seen, &sizes.numbers)) else { return };
    let family = Family::along(line, recorded, &sizes, plan, make);
    with_structures(|structures| {
        let Some(known) = structures.get_mut(&key) else { return };
        match family {
            Some(family) => known.families.push(Arc::new(family)),
            None => known.attempts += 1,
        }
    });
}

/// No plan follows for such a graph any more, until there are others.
pub(super) fn forget(recorded: &Graph, settings: Settings) {
    if let Some(sizes) = Sizes::of(recorded) {
        with_structures(|structures| structures.pop(&(sizes.key, settings)));
    }
}

impl Family {
    /// A stretch of the line, on which the plan of a recorded graph of these sizes is: all of it or, where something is decided
    /// otherwise before, from this plan on.
    fn along(line: Line, recorded: &Graph, sizes: &Sizes, plan: &Plan, make: Make) -> Option<Family> {
        let is_alike = |numbers: &[i64]| {
            let graph = with_sizes(recorded, sizes, numbers, &sizes.scalars);
            let of_graph = verify(&graph, "other sizes").ok().and_then(|()| Sizes::of(&graph));
            of_graph.is_some_and(|other| other.key == sizes.key)
        };
        let (line, at) = line.stretch(is_alike)?;
        let rest = line.from(at).filter(|_| at > 0);
        let sample = |line: &Line, step: i64, scalars: &[Scalar]| {
            make(&with_sizes(recorded, sizes, &line.at(step), scalars), plan.settings).ok()
        };
        let of = |line, at| Family::of(line, (at, plan), sizes, sample);
        of(line, at).or_else(|| of(rest?, 0))
    }

    /// A stretch of which one plan was made anyway.
    fn of(
        line: Line,
        (at, plan): (i64, &Plan),
        sizes: &Sizes,
        sample: impl Fn(&Line, i64, &[Scalar]) -> Option<Plan>,
    ) -> Option<Family> {
        let others = line::other_scalars(&sizes.scalars);
        let first = sample(&line, 0, &sizes.scalars)?;
        let second = sample(&line, 1, &sizes.scalars)?;
        let last = sample(&line, line.steps, &others)?;
        let samples = [(0, &first), (1, &second), (line.steps, &last), (at, plan)];
        if samples.iter().any(|(_, plan)| plan.grouping.is_cut()) {
            return None;
        }
        let growth = Growth::of(&samples, [&sizes.scalars, &others])?;
        let decision = decided(plan);
        Some(Family {
            is_decided: decision.is_some() && samples.iter().all(|(_, plan)| decided(plan) == decision),
            is_general: samples.iter().all(|(_, plan)| plan.numbers.is_some()),
            line,
            scalars: sizes.scalars.clone(),
            computes_scalars: sizes.computes_scalars || growth.has_fixed_scalars,
            parameters: Parameters::of(&first.graph, plan.settings.language),
            growth,
            first,
            shared: Mutex::new(LruCache::new(most(MOST_SHARED))),
        })
    }

    /// The plan of a recorded graph of these sizes; `None` if it is not on the stretch.
    fn plan(&self, recorded: &Graph, sizes: &Sizes) -> Option<Plan> {
        let step = self.line.step_of(&sizes.numbers)?;
        if self.computes_scalars && sizes.scalars != self.scalars {
            return None;
        }
        let settings = self.first.settings;
        let graph = self.growth.graph(&self.first, step, &sizes.scalars)?;
        if !growth::has_ends_of(&graph, recorded) {
            return None;
        }
        let parameters = Parameters::of(&graph, settings.language);
        if !parameters.is_like(&self.parameters) {
            return None;
        }
        let known = self.with_shared(|shared| shared.get(&step).cloned());
        let shared = match known {
            Some(shared) => shared,
            None => {
                let shared = Arc::new(self.growth.shared(&self.first, step, &graph)?);
                self.with_shared(|all| all.put(step, shared.clone()));
                shared
            }
        };
        let numbers = self.is_general.then(|| parameters.numbers(&graph));
        let graph = Arc::new(graph);
        Some(Plan { graph, values: parameters.values, shared, settings, follows: true, numbers })
    }

    fn with_shared<T>(&self, f: impl FnOnce(&mut LruCache<i64, Arc<Shared>>) -> T) -> T {
        f(&mut self.shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

/// By what it was decided which operations share a kernel; `None` if that was for these sizes alone.
fn decided(plan: &Plan) -> Option<StructuralKey> {
    let parameters = Parameters::of(&plan.graph, plan.settings.language);
    rounded(&plan.graph).map(|rounded| hash::grouping_key(&rounded, &parameters))
}
