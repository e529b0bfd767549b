//! The adjoint of each operation of the graph.

use super::scans::product_of_others;
use super::site::{Adjoints, Site, scattered, weights};
use crate::graph::op::{Axes, Constant, Op, Sorted, View};
use crate::recording::{Recipe, Rule};
use crate::tensor::arguments::call::kept;
use crate::tensor::make::create::counting;
use crate::tensor::view::overlap::overlapped;
use crate::{BinaryOp, DType, ReduceOp, Result, Shape, Tensor};

impl Site<'_> {
    pub(super) fn adjoints(&self, recipe: &Recipe) -> Result<Adjoints> {
        let g = self.cotangent;
        match (recipe, self.sources) {
            (Recipe::Op(op), _) => self.of_operation(op),
            (&Recipe::WithNumber { op, number, is_first }, [x]) => {
                self.beside_number(op, x, number, is_first)
            }
            (Recipe::Derived(Rule(rule)), sources) => {
                let all: Vec<Tensor> = std::iter::once(self.result).chain(sources).cloned().collect();
                let adjoints = rule(g, &all)?;
                Ok(adjoints.into_iter().map(Some).collect())
            }
            (Recipe::Transfer, [x]) => {
                Ok(only(x.node.device.map_or(Ok(g.clone()), |device| self.call.transfer(g, device))?))
            }
            (&Recipe::Join { axis }, parts) => {
                let mut first = 0;
                let part = |part: &Tensor| {
                    let extent = part.node.shape[axis];
                    first += extent;
                    Some(g.narrow(axis as isize, first - extent, extent))
                };
                Ok(parts.iter().map(part).collect())
            }
            (Recipe::Total, terms) => Ok(terms.iter().map(|_| Some(g.clone())).collect()),
            _ => Ok(Adjoints::new()),
        }
    }

    fn of_operation(&self, op: &Op) -> Result<Adjoints> {
        let (call, g) = (self.call, self.cotangent);
        match (op, self.sources) {
            (&Op::Unary(op), _) => self.unary(op),
            (&Op::Binary(op), operands) => self.binary(op, operands, self.wants),
            (Op::Select, [condition, ..]) => {
                let zero = g.zeros_like();
                Ok(Adjoints::from_iter([
                    None,
                    Some(self.choice(condition, g, &zero)?),
                    Some(self.choice(condition, &zero, g)?),
                ]))
            }
            (Op::Cast, [x]) => Ok(only(call.cast(g, x.node.dtype)?)),
            (Op::View(view), [x]) => self.of_view(view, x).map(only),
            (Op::Reduce { op, axes }, [x]) => self.of_reduction(*op, axes, x),
            (&Op::Scan { op, axis, reverse, exclusive }, [x]) => {
                self.of_scan(op, x, axis as isize, (reverse, exclusive)).map(only)
            }
            (&Op::Gather { axis, .. }, [x, index]) => self.of_gather(x, index, axis).map(only),
            (&Op::Scatter { op, axis, .. }, [x, index]) => self.of_scatter(op, x, index, axis).map(only),
            (&Op::Sort { axis, extent, descending, result: Sorted::Values }, [x]) => {
                let op = Op::Sort { axis, extent, descending, result: Sorted::Positions };
                let positions = call.record(op, &[x], self.result.node.shape.clone(), DType::I64)?;
                scattered(call, ReduceOp::Sum, g, &positions, axis, x.node.shape[axis]).map(only)
            }
            _ => Ok(Adjoints::new()),
        }
    }

    fn beside_number(&self, op: BinaryOp, x: &Tensor, number: Constant, is_first: bool) -> Result<Adjoints> {
        let number = self.call.filled(number.value, number.role, &x.node.shape)?;
        let place = usize::from(is_first);
        let operands = if is_first { [number, x.clone()] } else { [x.clone(), number] };
        let mut adjoints = self.binary(op, &operands, |operand| operand == place)?;
        Ok(adjoints.drain(..).skip(place).take(1).collect())
    }

    fn of_view(&self, view: &View, x: &Tensor) -> Result<Tensor> {
        let (call, g, shape) = (self.call, self.cotangent, &x.node.shape);
        match view {
            View::Reshape => call.reshape(g, shape.clone()),
            // `summed_to` does it.
            View::Expand => Ok(g.clone()),
            View::Permute(permutation) => {
                let mut inverse = vec![0; permutation.len()];
                permutation.iter().enumerate().for_each(|(to, &from)| inverse[from] = to as isize);
                Ok(g.permute(inverse))
            }
            View::Pad { before, .. } => {
                let slices: Vec<_> = before
                    .iter()
                    .zip(shape.iter())
                    .map(|(&first, &extent)| (first, 1, extent))
                    .enumerate()
                    .collect();
                call.slice(g, &slices)
            }
            View::Slice { starts, steps } => {
                let mut back = g.clone();
                let mut border = Vec::with_capacity(shape.rank());
                for (axis, (&start, &step)) in starts.iter().zip(steps).enumerate() {
                    let (count, step_over) = (g.node.shape[axis], step.unsigned_abs() as usize);
                    let reach = count.saturating_sub(1) * step_over;
                    if step < 0 {
                        back = back.flip(axis as isize);
                    }
                    if step_over > 1 && count > 1 {
                        back = with_gaps(&back, axis as isize, step_over);
                    }
                    let first = if step < 0 { start as usize - reach } else { start as usize };
                    let length = if count == 0 { 0 } else { reach + 1 };
                    let first = if count == 0 { 0 } else { first };
                    border.push((first, shape[axis] - first - length));
                }
                Ok(back.pad(&border, 0))
            }
            &View::Window { axis, stride, dilation, .. } => {
                let windows = g.movedim(axis as isize, -2);
                let sum = overlapped(call, &windows, stride, dilation)?;
                let reached = sum.known()?.0[shape.rank() - 1];
                let mut border = vec![(0, 0); shape.rank()];
                border[shape.rank() - 1] = (0, shape[axis] - reached);
                Ok(sum.pad(&border, 0).movedim(-1, axis as isize))
            }
        }
    }

    fn of_reduction(&self, op: ReduceOp, axes: &Axes, x: &Tensor) -> Result<Adjoints> {
        let (call, shape) = (self.call, &x.node.shape);
        let narrow = kept(shape, axes);
        let g = call.expand(&call.reshape(self.cotangent, narrow.clone())?, shape)?;
        let y = call.expand(&call.reshape(self.result, narrow)?, shape)?;
        let list: Vec<isize> = axes.iter().map(|&axis| axis as isize).collect();
        Ok(only(match op {
            ReduceOp::Sum => g,
            ReduceOp::Max | ReduceOp::Min => {
                let is_best = x.eq(&y);
                let count = is_best.cast(g.node.dtype.compute()).sum_keepdim(list);
                is_best.where_(g / count, 0).cast(x.node.dtype)
            }
            ReduceOp::Prod => {
                // What is multiplied goes last, as one axis; each element's share is the product of all others.
                let behind: Vec<isize> = (1..=axes.len() as isize).rev().map(|back| -back).collect();
                let whole = x.movedim(list.clone(), behind.clone());
                let rank = shape.rank() - axes.len();
                let row = whole.flatten(rank as isize..);
                let others = product_of_others(&row, -1);
                let others = call.reshape(&others, whole.known()?.0.clone())?;
                g * others.movedim(behind, list)
            }
            ReduceOp::LogSumExp => g * weights(x, &y),
            ReduceOp::SquaredDeviations => (x - x.mean_keepdim(list)) * g * 2.0,
            _ => return self.unknown(op.name()),
        }))
    }

    fn of_gather(&self, x: &Tensor, index: &Tensor, axis: usize) -> Result<Tensor> {
        let (call, g, extent) = (self.call, self.cotangent, x.node.shape[axis]);
        if index.node.shape[axis] == 1 {
            // One of each row: no elements meet.
            let is_taken = along(extent, axis, x.node.shape.rank()).eq(index);
            return self.choice(&is_taken, g, &g.zeros_like());
        }
        scattered(call, ReduceOp::Sum, g, index, axis, extent)
    }

    fn of_scatter(&self, op: ReduceOp, x: &Tensor, index: &Tensor, axis: usize) -> Result<Tensor> {
        let (call, shape) = (self.call, &x.node.shape);
        let gathered = |from: &Tensor| {
            call.record(Op::Gather { axis, is_checked: true }, &[from, index], shape.clone(), from.node.dtype)
        };
        let (g, y) = (gathered(self.cotangent)?, gathered(self.result)?);
        let extent = self.result.node.shape[axis];
        let sums = |of: &Tensor| scattered(call, ReduceOp::Sum, of, index, axis, extent);
        Ok(match op {
            ReduceOp::Sum => g,
            ReduceOp::Max | ReduceOp::Min => {
                let is_best = x.eq(&y);
                let count = gathered(&sums(&is_best.cast(x.node.dtype))?)?;
                is_best.where_(g / count, 0)
            }
            ReduceOp::Prod => {
                // Without a quotient by 0: the product of all but the zeros, where there is no other one.
                let is_zero = x.eq(0);
                let zeros = gathered(&sums(&is_zero.cast(x.node.dtype))?)?;
                let others = is_zero.where_(1, x);
                let rest = gathered(&scattered(call, ReduceOp::Prod, &others, index, axis, extent)?)?;
                // Of two zeros each is multiplied with the other: that is 0, but has a slope.
                let other = gathered(&sums(&is_zero.where_(x, 0))?)? - x;
                let of_zero = zeros.eq(1).where_(&rest, zeros.eq(2).where_(other * &rest, 0));
                g * is_zero.where_(of_zero, y / others)
            }
            ReduceOp::LogSumExp => g * weights(x, &y),
            _ => return self.unknown(op.scatter_name()),
        })
    }
}

fn only(adjoint: Tensor) -> Adjoints {
    Adjoints::from_iter([Some(adjoint)])
}

/// 0, 1, … along an axis.
fn along(extent: usize, axis: usize, rank: usize) -> Tensor {
    let shape: Shape = (0..rank).map(|own| if own == axis { extent } else { 1 }).collect();
    counting(extent).reshape(shape)
}

/// The positions along an axis, `step` apart, with zeros between them.
fn with_gaps(x: &Tensor, axis: isize, step: usize) -> Tensor {
    let Ok((shape, _)) = x.known() else { return x.clone() };
    let mut border = vec![(0, 0); shape.rank() + 1];
    border[axis as usize + 1] = (0, step - 1);
    let reach = (shape[axis as usize] - 1) * step + 1;
    x.unsqueeze(axis + 1).pad(&border, 0).flatten(axis..axis + 2).narrow(axis, 0, reach)
}
