//! Steps that join elements and combine them again, as `Tensor::stack([a, b], 0).logsumexp(0)` does: what has the joined axis is recorded
//! for each of its positions, so that an elementwise step is left.

use rustc_hash::FxHashMap;

use super::step::{Kind, Part, Step, key, number_of};
use crate::graph::op::{Axes, ConstantRole, Op, View};
use crate::recording::{Recipe, Sources, State, Tensor, TensorNode};
use crate::tensor::arguments::call::Call;
use crate::{ReduceOp, Result, Shape};

/// How many positions an axis may have: each has operations of its own.
const MOST_POSITIONS: usize = 16;

/// What is recorded in the place of a part of a step.
enum Form {
    Captured(Tensor),
    Own(Tensor),
    /// What is at each position of an axis, without that axis.
    Apart {
        axis: usize,
        each: Vec<Tensor>,
    },
}

/// The outputs without an axis that the step has joined itself, if all else is elementwise.
pub(super) fn outputs(step: &Step) -> Option<Vec<Tensor>> {
    let given = step.given.iter().map(|x| (key(x), Form::Own(x.clone())));
    let mut forms: FxHashMap<*const TensorNode, Form> = given.collect();
    for Part { tensor, kind } in &step.parts {
        let form = match kind {
            Kind::Captured => Form::Captured(tensor.clone()),
            Kind::Drawn(_) => Form::Own(tensor.clone()),
            Kind::Made => made(tensor, &forms)?,
        };
        forms.insert(key(tensor), form);
    }
    let whole = |output: &Tensor| match forms.get(&key(output))? {
        Form::Captured(tensor) | Form::Own(tensor) => Some(tensor.clone()),
        Form::Apart { .. } => None,
    };
    step.outputs.iter().map(whole).collect()
}

fn made(tensor: &Tensor, forms: &FxHashMap<*const TensorNode, Form>) -> Option<Form> {
    let state = tensor.node.state();
    let State::Recorded(recipe, sources) = &*state else { return None };
    let found: Option<Vec<&Form>> = sources.iter().map(|source| forms.get(&key(source))).collect();
    let found = found?;
    let is_apart = |form: &&Form| matches!(form, Form::Apart { .. });
    match (recipe, &found[..]) {
        (Recipe::Op(op), _) if op.is_elementwise() => elementwise(tensor, recipe, sources, &found),
        // A rule may be about the axis as a whole.
        (Recipe::Derived(_), all) if all.len() == 1 || !all.iter().any(is_apart) => {
            elementwise(tensor, recipe, sources, &found)
        }
        (Recipe::Op(Op::View(View::Reshape)), [Form::Own(x)]) => {
            let axis = inserted(&x.node.shape, &tensor.node.shape).next()?;
            Some(Form::Apart { axis, each: vec![x.clone()] })
        }
        (Recipe::Op(Op::View(view)), [Form::Apart { axis, each }]) => {
            of_view(tensor, &sources[0].node.shape, view, *axis, each)
        }
        (Recipe::Op(Op::Reduce { op, axes }), [Form::Apart { axis, each }]) => {
            combined(tensor, *op, axes, *axis, each)
        }
        _ => None,
    }
}

/// The axes of extent 1 that a shape has beside those of another.
fn inserted<'a>(narrow: &'a Shape, wide: &'a Shape) -> impl Iterator<Item = usize> + 'a {
    (0..wide.rank()).filter(|&axis| wide[axis] == 1 && wide.without(&[axis]) == *narrow)
}

fn elementwise(tensor: &Tensor, recipe: &Recipe, sources: &Sources, forms: &[&Form]) -> Option<Form> {
    let TensorNode { shape, dtype, device, origin, location, .. } = &*tensor.node;
    let record = |shape: &Shape, sources: Sources| {
        let state = State::Recorded(recipe.clone(), sources);
        Tensor::from_parts(shape.clone(), *dtype, *device, origin, *location, state)
    };
    // Axes are counted from the end, where shapes are aligned.
    let axes = forms.iter().filter_map(|form| match form {
        Form::Apart { axis, each } => Some((each.first()?.node.shape.rank() + 1).checked_sub(*axis)),
        Form::Captured(_) | Form::Own(_) => None,
    });
    let axes: Vec<usize> = axes.collect::<Option<_>>()?;
    let Some(&back) = axes.first() else {
        let mut is_same = true;
        let own = sources.iter().zip(forms).map(|(source, form)| match form {
            Form::Captured(x) | Form::Own(x) => {
                is_same &= key(x) == key(source);
                Some(x.clone())
            }
            Form::Apart { .. } => None,
        });
        let own = own.collect::<Option<Sources>>()?;
        return Some(Form::Own(if is_same { tensor.clone() } else { record(shape, own) }));
    };
    if axes.iter().any(|&other| other != back) {
        return None;
    }
    let axis = shape.rank().checked_sub(back).filter(|&axis| shape[axis] <= MOST_POSITIONS)?;
    let narrow = shape.without(&[axis]);
    let at = |position: usize| {
        let source = |form: &&Form| match form {
            Form::Apart { each, .. } => each.get(if each.len() == 1 { 0 } else { position }).cloned(),
            Form::Own(x) => (x.node.shape.rank() < back).then(|| x.clone()),
            Form::Captured(x) => match x.node.shape.rank().checked_sub(back) {
                Some(own) if x.node.shape[own] == 1 => of_captured(x, own, 0).ok(),
                Some(own) => of_captured(x, own, position).ok(),
                None => Some(x.clone()),
            },
        };
        let sources = forms.iter().map(source).collect::<Option<Sources>>()?;
        // A join is a choice by position.
        if let (Recipe::Op(Op::Select), [condition, a, b]) = (recipe, &sources[..])
            && let Some(is_first) = number_of(condition)
        {
            let chosen = if is_first.value.is_nonzero() { a } else { b };
            if chosen.node.shape == narrow {
                return Some(chosen.clone());
            }
        }
        Some(record(&narrow, sources))
    };
    Some(Form::Apart { axis, each: (0..shape[axis]).map(at).collect::<Option<_>>()? })
}

/// What the step uses from outside, at a position of an axis.
fn of_captured(x: &Tensor, axis: usize, position: usize) -> Result<Tensor> {
    let TensorNode { shape, origin, location, .. } = &*x.node;
    let (call, narrow) = (Call::at(origin, *location), shape.without(&[axis]));
    if let Some(constant) = number_of(x) {
        return call.filled(constant.value, constant.role, &narrow);
    }
    let state = x.node.state().clone();
    if let State::Recorded(Recipe::Op(Op::View(View::Pad { before, value })), sources) = &state
        && let [source] = &sources[..]
        && source.node.shape.without(&[axis]) == narrow
    {
        return match position.checked_sub(before[axis]).filter(|&own| own < source.node.shape[axis]) {
            Some(own) => of_captured(source, axis, own),
            None => call.filled(*value, ConstantRole::Literal, &narrow),
        };
    }
    super::along::at(call, x, axis, position)
}

/// A view of what is apart, of this shape.
fn of_view(tensor: &Tensor, whole: &Shape, view: &View, axis: usize, each: &[Tensor]) -> Option<Form> {
    let TensorNode { shape, origin, location, .. } = &*tensor.node;
    let first = each.first()?;
    let narrow = &first.node.shape;
    match view {
        View::Reshape => (each.len() == 1 && shape == narrow).then(|| Form::Own(first.clone())),
        View::Expand => {
            let axis = (shape.rank() + axis).checked_sub(whole.rank())?;
            let is_along = shape.without(&[axis]) == *narrow && shape[axis] <= MOST_POSITIONS;
            let at = |position| if each.len() == 1 { first } else { &each[position] };
            is_along.then(|| Form::Apart { axis, each: (0..shape[axis]).map(|p| at(p).clone()).collect() })
        }
        View::Slice { starts, steps } => {
            let is_along = shape.without(&[axis]) == *narrow
                && (0..shape.rank()).all(|other| other == axis || (starts[other], steps[other]) == (0, 1));
            let at =
                |position: usize| each.get((starts[axis] + steps[axis] * position as i64) as usize).cloned();
            let each = (0..shape[axis]).map(at).collect::<Option<_>>();
            each.filter(|_| is_along).map(|each| Form::Apart { axis, each })
        }
        View::Pad { before, value } => {
            // Among axes of extent 1, the one that is padded is meant.
            let is_along = |axis: &usize| {
                shape.without(&[*axis]) == *narrow
                    && (0..shape.rank()).all(|other| other == *axis || before[other] == 0)
            };
            let axis = match each.len() {
                1 => inserted(narrow, whole).find(is_along)?,
                _ => Some(axis).filter(is_along)?,
            };
            if shape[axis] > MOST_POSITIONS {
                return None;
            }
            let border = Call::at(origin, *location).filled(*value, ConstantRole::Literal, narrow).ok()?;
            let at = |position: usize| {
                let own = position.checked_sub(before[axis]).and_then(|own| each.get(own));
                own.unwrap_or(&border).clone()
            };
            Some(Form::Apart { axis, each: (0..shape[axis]).map(at).collect() })
        }
        View::Permute(_) | View::Window { .. } => None,
    }
}

/// What is at the positions of an axis, combined.
fn combined(tensor: &Tensor, op: ReduceOp, axes: &Axes, axis: usize, each: &[Tensor]) -> Option<Form> {
    let TensorNode { shape, dtype, origin, location, .. } = &*tensor.node;
    let by = op.plain().filter(|by| axes[..] == [axis] && by.accepts(*dtype))?;
    let call = Call::at(origin, *location);
    let (first, others) = each.split_first()?;
    let mut result = first.clone();
    for other in others {
        result = call.binary(by, &result, other).ok()?;
    }
    if let ReduceOp::Max | ReduceOp::Min = op
        && dtype.is_float()
        && !others.is_empty()
    {
        // As those of a reduction are: equal shares for all that are the extreme one.
        let dtype = *dtype;
        let all: Vec<&Tensor> = each.iter().collect();
        result = call.derived(&result, &all, move |g, all| {
            let are_best: Vec<Tensor> = all[1..].iter().map(|x| x.eq(&all[0])).collect();
            let ones = are_best.iter().map(|is_best| is_best.cast(dtype.compute()));
            let Some(count) = ones.reduce(|count, one| count + one) else { return Ok(Vec::new()) };
            let share = g / count;
            Ok(are_best.iter().map(|is_best| is_best.where_(&share, 0).cast(dtype)).collect())
        });
    }
    let is_kept = shape.rank() > result.node.shape.rank();
    Some(if is_kept { Form::Apart { axis, each: vec![result] } } else { Form::Own(result) })
}

#[cfg(test)]
mod tests {
    use crate::tensor::tests::recorded;
    use crate::{DType, Tensor, iterate};

    /// Whether the steps are one loop.
    fn is_loop(shape: &[usize], step: impl Fn(&Tensor) -> Tensor) -> bool {
        let begun = Tensor::from_vec(vec![1.0f64; shape.iter().product()], shape.to_vec());
        let ([last], []) = iterate(3, [&begun], |[h], _| ([step(h)], []));
        assert_eq!(last.shape().unwrap(), begun.shape().unwrap());
        recorded(&last).contains(&"recurrence".to_owned())
    }

    #[test]
    fn what_is_joined_and_combined_is_elementwise() {
        let stacked = |h: &Tensor, axis| Tensor::stack([h, &h.sin(), &(h * 2.0)], axis);
        let weights = Tensor::from([1.0f64, 2.0, 3.0]);
        let table = Tensor::from([[0.5f64; 5]; 3]);
        assert!(is_loop(&[5], |h| stacked(h, 0).logsumexp(0)));
        assert!(is_loop(&[5], |h| stacked(h, -1).mean(-1)));
        assert!(is_loop(&[5], |h| (stacked(h, 1) * &weights).sum(1)));
        assert!(is_loop(&[5], |h| (stacked(h, 0) * &table).max(0)));
        assert!(is_loop(&[], |h| stacked(h, 0).softmax(0).select(0, 1)));
        assert!(is_loop(&[2, 3], |h| stacked(h, 1).prod(1) + stacked(h, 2).min(2)));
        assert!(is_loop(&[1], |h| stacked(h, 1).min(1)));
        assert!(is_loop(&[4], |h| (h.unsqueeze(0) + &table.slice(1, ..4)).logsumexp(0)));
        assert!(is_loop(&[4], |h| Tensor::cat([h.unsqueeze(0), stacked(h, 0)], 0).flip(0).sum(0)));
        // What an axis has that was there before, or more than elements and single operations.
        assert!(!is_loop(&[3], |h| h.softmax(0)));
        assert!(!is_loop(&[5], |h| stacked(h, 0).sort(0, false).0.select(0, 1)));
        assert!(!is_loop(&[5], |h| stacked(h, 0).cumsum(0).select(0, 1)));
        assert!(!is_loop(&[5], |h| stacked(h, 0).sum(..) + h));
        assert!(!is_loop(&[5], |h| stacked(h, 0).sum(1).sum(0) + h));
        assert!(!is_loop(&[3], |h| stacked(h, 0).sum(1) + h));
        assert!(!is_loop(&[2], |h| Tensor::stack(vec![h; 17], 0).sum(0)));
        assert!(!is_loop(&[2], |h| (h.unsqueeze(0) + Tensor::from([[0.5f64; 2]; 17])).sum(0)));
    }

    /// Results of their own shape keep it.
    #[test]
    fn shapes_stay() {
        let x = Tensor::ones([5], DType::F64);
        let ([_, narrow], []) = iterate(2, [&x, &Tensor::scalar(0.0f64)], |[h, sum], _| {
            let both = Tensor::stack([sum, &(sum + 1.0)], 0).sum(0);
            ([h * 2.0, both], [])
        });
        assert_eq!(narrow.shape().unwrap(), [].into());
    }
}
