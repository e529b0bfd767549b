//! Scans whose step moves or combines elements: the steps are recorded one after the other.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::along::{Along, at};
use super::step::{Kind, Part, Step, key};
use crate::graph::op::{ConstantRole, Op, StepResult};
use crate::recording::{Decomposition, Recipe, Sources, State, Tensor, TensorNode};
use crate::runtime::routine::Invocation;
use crate::tensor::arguments::call::Call;
use crate::{Result, Scalar, Shape};

/// How many operations all steps may be: more would take minutes to plan.
const MOST_OPERATIONS: usize = 1 << 20;

/// Steps that are recorded.
pub(super) struct Unrolled {
    call: Call,
    along: Along,
    /// The carries after the last step.
    last: Vec<Tensor>,
    /// What steps would follow from, beside their carries, if there were any: the results of none have gradients of zeros.
    unused: Vec<Tensor>,
    /// Each of a step's outputs as it was recorded, and those of all steps in the order of the axis.
    each: Vec<(Tensor, Vec<Tensor>)>,
}

impl Unrolled {
    pub(super) fn record(
        call: Call,
        mut step: Step,
        inits: &[Tensor],
        along: Along,
        reverse: bool,
    ) -> Result<Unrolled> {
        let mut shapes: Vec<Shape> = step.outputs.iter().map(|output| output.node.shape.clone()).collect();
        for (shape, init) in shapes.iter_mut().zip(inits) {
            let begun = &init.node.shape;
            if !shape.broadcasts_to(begun) {
                return call.fail(format!(
                    "the step gives shape {shape} for a carry that begins with {begun}: a carry keeps its shape"
                ));
            }
            shape.clone_from(begun);
        }
        step.expand_outputs(&shapes)?;
        let operations = step.parts.iter().filter(|part| part.kind == Kind::Made).count();
        if operations.saturating_mul(along.length) > MOST_OPERATIONS {
            return call.fail(format!(
                "the step moves or combines elements, so that its {} steps are recorded one after the other: {operations} \
                 operations each, and {MOST_OPERATIONS} are the most of all; go along parts of the axis",
                along.length
            ));
        }
        let mut drawn: FxHashMap<*const TensorNode, Tensor> = FxHashMap::default();
        for Part { tensor, kind } in &step.parts {
            if let &Kind::Drawn(seed) = kind {
                let TensorNode { shape, dtype, origin, location, .. } = &*tensor.node;
                let all = along.of_all_steps(shape);
                call.needs_addressable(&all)?;
                let numbers = Tensor::record(Op::Random { seed }, &[], all, *dtype, origin, *location);
                drawn.insert(key(tensor), numbers);
            }
        }
        let mut last = inits.to_vec();
        let mut each: Vec<Vec<Tensor>> = vec![Vec::with_capacity(along.length); shapes.len()];
        let template = Template::of(&step);
        for number in 0..along.length {
            let position = if reverse { along.length - 1 - number } else { number };
            let mut given = last;
            for input in &along.inputs {
                given.push(input.at(call, position)?);
            }
            let of_step = |tensor: &Tensor, _| {
                let all = &drawn[&key(tensor)];
                at(call, all, along.axis_beside(tensor.node.shape.rank()), position)
            };
            let outputs = template.outputs(given, of_step)?;
            for (all, output) in each.iter_mut().zip(&outputs) {
                all.push(output.clone());
            }
            last = outputs;
            last.truncate(inits.len());
        }
        if reverse {
            each.iter_mut().for_each(|all| all.reverse());
        }
        let unused = match along.length {
            0 => along
                .inputs
                .iter()
                .map(|input| &input.tensor)
                .chain(inits)
                .chain(template.outside())
                .cloned()
                .collect(),
            _ => Vec::new(),
        };
        let each = step.outputs.iter().cloned().zip(each).collect();
        Ok(Unrolled { call, along, last, unused, each })
    }

    pub(super) fn result(&self, result: StepResult) -> Result<Tensor> {
        let unused: Vec<&Tensor> = self.unused.iter().collect();
        let (output, all) = match result {
            StepResult::Last(number) => return Ok(self.call.following(&self.last[number], &unused)),
            StepResult::Each(number) => &self.each[number],
        };
        let TensorNode { shape, dtype, device, .. } = &*output.node;
        if all.is_empty() {
            let (none, shape) = (Scalar::from_i64(*dtype, 0), self.along.of_all_steps(shape));
            let nothing = self.call.filled_on(*device, none, ConstantRole::Literal, &shape)?;
            return Ok(self.call.following(&nothing, &unused));
        }
        let axis = self.along.axis_beside(shape.rank()) as isize;
        Ok(self.call.compose(|| Tensor::stack(all, axis)))
    }
}

/// A step to be recorded with its own values in the place of those that stood for them.
struct Template<'a> {
    step: &'a Step,
    /// How each part comes by its value.
    made: Vec<Option<(Recipe, Vec<Place>)>>,
    outputs: Vec<Place>,
}

/// Where a step finds a tensor.
enum Place {
    /// Among what it was given, and what it has made so far.
    Own(usize),
    Outside(Tensor),
}

impl<'a> Template<'a> {
    fn of(step: &'a Step) -> Template<'a> {
        let own = step.given.iter().chain(step.parts.iter().map(|part| &part.tensor));
        let numbers: FxHashMap<*const TensorNode, usize> =
            own.enumerate().map(|(number, tensor)| (key(tensor), number)).collect();
        let place = |tensor: &Tensor| {
            numbers
                .get(&key(tensor))
                .map_or_else(|| Place::Outside(tensor.clone()), |&number| Place::Own(number))
        };
        let made = step.parts.iter().map(|part| match &*part.tensor.node.state() {
            State::Recorded(recipe, sources) if part.kind == Kind::Made => {
                Some((recipe.clone(), sources.iter().map(place).collect()))
            }
            _ => None,
        });
        Template { step, made: made.collect(), outputs: step.outputs.iter().map(place).collect() }
    }

    /// What it takes from outside.
    fn outside(&self) -> impl Iterator<Item = &Tensor> {
        let places = self.made.iter().flatten().flat_map(|(_, places)| places).chain(&self.outputs);
        let outside = places.filter_map(|place| match place {
            Place::Outside(tensor) => Some(tensor),
            Place::Own(_) => None,
        });
        let captured = self.step.parts.iter().filter(|part| part.kind == Kind::Captured);
        outside.chain(captured.map(|part| &part.tensor))
    }

    /// The outputs of the step for what it is given; `drawn` are random numbers in the place of some.
    fn outputs(
        &self,
        given: Vec<Tensor>,
        drawn: impl Fn(&Tensor, u64) -> Result<Tensor>,
    ) -> Result<Vec<Tensor>> {
        let mut values = given;
        let mut routines = Routines::default();
        let found = |values: &[Tensor], place: &Place| match place {
            Place::Own(number) => values[*number].clone(),
            Place::Outside(tensor) => tensor.clone(),
        };
        for (Part { tensor, kind }, made) in self.step.parts.iter().zip(&self.made) {
            let value = match (kind, made) {
                (&Kind::Drawn(seed), _) => drawn(tensor, seed)?,
                (Kind::Made, Some((recipe, places))) => {
                    let TensorNode { shape, dtype, device, origin, location, .. } = &*tensor.node;
                    let sources: Sources = places.iter().map(|place| found(&values, place)).collect();
                    // A carry that begins as a constant, which is anywhere, may go on as what is somewhere.
                    let device = device.or_else(|| sources.iter().find_map(|source| source.node.device));
                    let recipe = routines.recipe(recipe);
                    match &recipe {
                        // It was recorded where no device was known yet.
                        Recipe::Routine { number, decomposition, .. }
                            if !device.unwrap_or_default().is_cpu() =>
                        {
                            decomposition.result(*number, &sources)?
                        }
                        _ => {
                            let state = State::Recorded(recipe, sources);
                            Tensor::from_parts(shape.clone(), *dtype, device, origin, *location, state)
                        }
                    }
                }
                _ => tensor.clone(),
            };
            values.push(value);
        }
        Ok(self.outputs.iter().map(|place| found(&values, place)).collect())
    }
}

/// The routines of one step, each an invocation of its own.
#[derive(Default)]
struct Routines(FxHashMap<*const Invocation, (Arc<Invocation>, Arc<Decomposition>)>);

impl Routines {
    fn recipe(&mut self, recipe: &Recipe) -> Recipe {
        let Recipe::Routine { invocation, number, decomposition } = recipe else { return recipe.clone() };
        let own = self.0.entry(Arc::as_ptr(invocation));
        let (invocation, decomposition) =
            own.or_insert_with(|| (Arc::new(invocation.again()), Arc::new(decomposition.again()))).clone();
        Recipe::Routine { invocation, number: *number, decomposition }
    }
}
