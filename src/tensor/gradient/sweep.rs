//! The reverse sweep: from outputs to what they were recorded from, each tensor after all that use it.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::recurrence::Loops;
use super::site::{Site, summed_to};
use super::total::total;
use crate::graph::op::Op;
use crate::recording::{Past, Recipe, Sources, TensorNode};
use crate::tensor::arguments::call::Call;
use crate::{Result, Tensor};

/// A tensor on the way, and what its gradient depends on.
struct Visited {
    tensor: Tensor,
    recipe: Option<Recipe>,
    sources: Sources,
    /// The sources' numbers, which are less than its own.
    numbers: SmallVec<[usize; 3]>,
    /// Whether it leads to what is wanted.
    is_needed: bool,
}

/// What reaches each of the `wanted`, of what reaches the outputs; `None` where no output follows from it.
pub(super) fn sweep(outputs: &[(Tensor, Tensor)], wanted: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
    let key = |tensor: &Tensor| Arc::as_ptr(&tensor.node);
    let aims: FxHashSet<*const TensorNode> = wanted.iter().map(key).collect();
    let earliest = wanted.iter().map(|tensor| tensor.node.time).min().unwrap_or(0);
    let (visited, numbers) = visit(outputs.iter().map(|(output, _)| output), &aims, earliest)?;
    let mut reaching: Vec<SmallVec<[Tensor; 2]>> = vec![SmallVec::new(); visited.len()];
    for (output, cotangent) in outputs {
        reaching[numbers[&key(output)]].push(cotangent.clone());
    }
    let needed = visited.iter().enumerate().filter(|(_, visited)| visited.is_needed);
    let mut loops = Loops::of(needed.map(|(number, v)| (number, v.recipe.as_ref(), &v.sources)));
    let mut found: FxHashMap<*const TensorNode, Tensor> = FxHashMap::default();
    for (number, Visited { tensor, recipe, sources, numbers, is_needed }) in visited.iter().enumerate().rev()
    {
        let terms = std::mem::take(&mut reaching[number]);
        if !is_needed {
            continue;
        }
        let call = Call::at(adjoint_name(tensor.node.origin), tensor.node.location);
        let cotangent = total(call, &terms)?;
        if let Some(cotangent) = &cotangent
            && aims.contains(&key(tensor))
        {
            found.insert(key(tensor), cotangent.clone());
        }
        let wants = |source: usize| visited[numbers[source]].is_needed;
        let Some(recipe) = recipe.as_ref().filter(|_| (0..numbers.len()).any(wants)) else { continue };
        let adjoints = match (recipe, cotangent) {
            (Recipe::Op(Op::Recurrence { .. }), cotangent) => {
                let Some(all) = loops.meet(number, recipe, cotangent) else { continue };
                all.adjoints(call, sources, &wants, sweep)?
            }
            (_, None) => continue,
            (recipe, Some(cotangent)) => {
                let site = Site { call, result: tensor, sources, cotangent: &cotangent, wants: &wants };
                call.compose(|| site.adjoints(recipe))?
            }
        };
        for ((source, &number), adjoint) in sources.iter().zip(numbers).zip(adjoints) {
            if let Some(adjoint) = adjoint.filter(|_| visited[number].is_needed) {
                reaching[number].push(summed_to(call, &adjoint, &source.node.shape)?);
            }
        }
    }
    Ok(wanted.iter().map(|tensor| found.get(&key(tensor)).cloned()).collect())
}

/// Whether an output follows from a tensor by operations of floats, if only by some that are constant but for jumps. What an
/// operation makes on its way, positions or conditions, is its own; between operations these are no way for a gradient.
pub(super) fn follow(outputs: &[(Tensor, Tensor)], from: &Tensor) -> Result<bool> {
    let key = |tensor: &Tensor| Arc::as_ptr(&tensor.node);
    let outputs = || outputs.iter().map(|(output, _)| output);
    let (visited, numbers) = visit(outputs(), &FxHashSet::from_iter([key(from)]), from.node.time)?;
    let mut follows: Vec<bool> = Vec::with_capacity(visited.len());
    for Visited { tensor, sources, numbers, .. } in &visited {
        let mut below = sources.iter().zip(numbers);
        let leads_on = |source: &Tensor| source.node.dtype.is_float() || are_of_one_call(source, tensor);
        let of_sources = below.any(|(source, &number)| follows[number] && leads_on(source));
        follows.push(of_sources || key(tensor) == key(from));
    }
    Ok(outputs().any(|output| follows[numbers[&key(output)]]))
}

/// Whether one call of the user's, or its gradient, recorded both.
fn are_of_one_call(a: &Tensor, b: &Tensor) -> bool {
    let name = |tensor: &Tensor| tensor.node.origin.trim_end_matches(GRADIENT);
    a.node.location == b.node.location && name(a) == name(b)
}

/// The last float on the way to the outputs that was recorded from floats after a tensor, and that an evaluation has made data.
pub(super) fn data_between(outputs: &[(Tensor, Tensor)], x: &Tensor) -> Option<Tensor> {
    let (visited, _) =
        visit(outputs.iter().map(|(output, _)| output), &FxHashSet::default(), x.node.time).ok()?;
    let is_data = |tensor: &&Tensor| {
        let node = &tensor.node;
        node.time > x.node.time
            && node.dtype.is_float()
            && node.is_of_floats
            && tensor.is_evaluated()
            && node.state().recorded().is_none()
    };
    visited
        .iter()
        .map(|visited| &visited.tensor)
        .filter(is_data)
        .max_by_key(|tensor| tensor.node.time)
        .cloned()
}

/// What the outputs were recorded from, sources first, with each one's number. What was recorded before all that is wanted
/// follows from none of it, and is not looked into: a loop that records a gradient in each step does not visit the steps
/// before in each.
fn visit<'a>(
    outputs: impl Iterator<Item = &'a Tensor>,
    aims: &FxHashSet<*const TensorNode>,
    earliest: u64,
) -> Result<(Vec<Visited>, FxHashMap<*const TensorNode, usize>)> {
    let mut visited: Vec<Visited> = Vec::new();
    let mut numbers: FxHashMap<*const TensorNode, usize> = FxHashMap::default();
    let mut entered: FxHashSet<*const TensorNode> = FxHashSet::default();
    // A tensor is entered, then left, with how it was recorded, when all its sources were.
    let mut pending: Vec<(Tensor, Option<Recorded>)> = outputs.map(|output| (output.clone(), None)).collect();
    while let Some((tensor, recorded)) = pending.pop() {
        let key = Arc::as_ptr(&tensor.node);
        let Some((recipe, sources)) = recorded else {
            if entered.insert(key) {
                let recorded = recorded_as(&tensor, aims, earliest)?;
                let below: Vec<Tensor> = recorded.1.iter().cloned().collect();
                pending.push((tensor, Some(recorded)));
                pending.extend(below.into_iter().map(|source| (source, None)));
            }
            continue;
        };
        let below: SmallVec<[usize; 3]> = sources.iter().map(|s| numbers[&Arc::as_ptr(&s.node)]).collect();
        let leads_on = aims.contains(&key) || below.iter().any(|&number| visited[number].is_needed);
        let is_needed = leads_on && tensor.node.dtype.is_float();
        numbers.insert(key, visited.len());
        visited.push(Visited { tensor, recipe, sources, numbers: below, is_needed });
    }
    Ok((visited, numbers))
}

/// How a tensor was recorded, and what its gradient goes on to.
type Recorded = (Option<Recipe>, Sources);

fn recorded_as(tensor: &Tensor, aims: &FxHashSet<*const TensorNode>, earliest: u64) -> Result<Recorded> {
    tensor.validity()?;
    if tensor.node.time < earliest {
        return Ok((None, Sources::new()));
    }
    let state = tensor.node.state();
    if let Some((recipe, sources)) = state.recorded() {
        return Ok((Some(recipe.clone()), Sources::from(recipe.differentiable(sources))));
    }
    if let Some(Past::Origins(origins)) = state.past()
        && !aims.contains(&Arc::as_ptr(&tensor.node))
        && let Some(aim) = origins.alive().find(|origin| aims.contains(&Arc::as_ptr(origin)))
    {
        let TensorNode { shape, dtype, origin, location, .. } = &*tensor.node;
        return Call::here("grad").fail(format!(
            "goes through the {dtype} {shape} of `{origin}` at {location}, which follows from that of `{}` at {}, but was computed \
             too long ago: how is forgotten; record gradients before asking for values, or make it a constant with .detach()",
            aim.origin, aim.location
        ));
    }
    Ok((None, Sources::new()))
}

/// What the names of operations that go back end with.
const GRADIENT: &str = "_grad";

/// `softmax_grad` for `softmax`.
fn adjoint_name(origin: &'static str) -> &'static str {
    static NAMES: Mutex<Option<FxHashMap<&'static str, &'static str>>> = Mutex::new(None);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_default();
    // There are as many as operations have names: they may stay.
    names.entry(origin).or_insert_with(|| format!("{origin}{GRADIENT}").leak())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    /// A loop that records a gradient in each step would take time by the square of its length.
    #[test]
    fn a_gradient_does_not_visit_what_came_before() {
        let x = Tensor::zeros([20, 3], DType::F32);
        let mut w = Tensor::zeros([3], DType::F32);
        let mut visited = Vec::new();
        for _ in 0..4 {
            let loss = x.matmul(&w).square().sum(..);
            let aims = FxHashSet::from_iter([Arc::as_ptr(&w.node)]);
            visited.push(visit([&loss].into_iter(), &aims, w.node.time).unwrap().0.len());
            let gradient = crate::grad(&loss, &w);
            gradient.validity().unwrap();
            w = w - gradient * 0.1;
        }
        assert_eq!(visited[3], visited[1], "{visited:?}");
        // Of several, one after more operations than another, whose values are asked for in each step.
        let mut bias = Tensor::zeros([1], DType::F32);
        visited.clear();
        for _ in 0..6 {
            let loss = (x.matmul(&w).relu() + &bias).square().sum(..);
            let aims = FxHashSet::from_iter([&w, &bias].map(|x| Arc::as_ptr(&x.node)));
            let earliest = w.node.time.min(bias.node.time);
            visited.push(visit([&loss].into_iter(), &aims, earliest).unwrap().0.len());
            let (dw, db) = crate::grad(&loss, &(w.clone(), bias.clone()));
            (w, bias) = ((w - dw * 0.1).clamp(-1.0, 1.0) * 1.0, bias - db);
            w.to_vec::<f32>().unwrap();
            bias.to_vec::<f32>().unwrap();
        }
        assert_eq!(visited[5], visited[1], "{visited:?}");
    }
}
