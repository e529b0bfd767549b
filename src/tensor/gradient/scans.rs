//! The adjoints of scans by a monoid.

use super::site::{Site, scattered, weights};
use crate::graph::op::Op;
use crate::tensor::make::create::counting;
use crate::{ReduceOp, Result, ScanOrder, Shape, Tensor};

impl Site<'_> {
    pub(super) fn of_scan(
        &self,
        op: ReduceOp,
        x: &Tensor,
        axis: isize,
        (reverse, exclusive): (bool, bool),
    ) -> Result<Tensor> {
        let (call, g, y) = (self.call, self.cotangent, self.result);
        if g.node.shape.elements() == 0 {
            return Ok(g.clone());
        }
        if op == ReduceOp::Sum {
            let back = Op::Scan { op, axis: axis as usize, reverse: !reverse, exclusive };
            return call.record(back, &[g], g.node.shape.clone(), g.node.dtype);
        }
        let dtype = g.node.dtype;
        let ahead = |x: &Tensor| {
            let wide = x.cast(dtype.compute());
            if reverse { wide.flip(axis) } else { wide }
        };
        let (x, g, y) = (ahead(x), ahead(g), ahead(y));
        let adjoint = match op {
            ReduceOp::Prod => products(&x, &g, axis, exclusive),
            ReduceOp::LogSumExp if exclusive => log_sums(&x, &earlier(&g, axis), &x.logcumsumexp(axis), axis),
            ReduceOp::LogSumExp => log_sums(&x, &g, &y, axis),
            ReduceOp::Max | ReduceOp::Min => {
                let extent = x.known()?.0[axis as usize];
                let positions = last_best(&x, &y, axis, extent);
                scattered(call, ReduceOp::Sum, &g, &positions, axis as usize, extent)?
            }
            _ => return self.unknown(op.scan_name()),
        };
        Ok(if reverse { adjoint.flip(axis) } else { adjoint }.cast(dtype))
    }
}

/// What is at the next position; 0 behind the last one.
fn earlier(x: &Tensor, axis: isize) -> Tensor {
    let Ok((shape, _)) = x.known() else { return x.clone() };
    let mut border = vec![(0, 0); shape.rank()];
    border[axis as usize] = (0, 1);
    x.narrow(axis, 1, shape[axis as usize].saturating_sub(1)).pad(&border, 0)
}

/// The last position up to each at which the element is the extreme one, as PyTorch.
fn last_best(x: &Tensor, best: &Tensor, axis: isize, extent: usize) -> Tensor {
    let rank = best.node.shape.rank();
    let shape: Shape = (0..rank).map(|own| if own == axis as usize { extent } else { 1 }).collect();
    let is_best = x.eq(best).logical_or(x.isnan());
    is_best.where_(counting(extent).reshape(shape), 0).cummax(axis)
}

/// The product of all elements of a row but each.
pub(super) fn product_of_others(x: &Tensor, axis: isize) -> Tensor {
    let others = ScanOrder::new().exclusive();
    x.cumprod_with(axis, others) * x.cumprod_with(axis, others.reverse())
}

/// Of running products: `x[k]` is in the product up to `i` beside what was before `k` and what is after it, of which sums over `i`
/// are a recurrence from the end, `s[k] = g[k] + x[k + 1] s[k + 1]`. No quotient: elements may be 0.
fn products(x: &Tensor, g: &Tensor, axis: isize, exclusive: bool) -> Tensor {
    let before = x.cumprod_with(axis, ScanOrder::new().exclusive());
    let order = ScanOrder::new().reverse();
    let (_, [after]) =
        crate::scan([g, x], axis, order, [x.zeros_like().select(axis, 0)], |[later], [g, x]| {
            if exclusive {
                ([g + x * later], [later.clone()])
            } else {
                let sum = g + later;
                ([x * &sum], [sum])
            }
        });
    before * after
}

/// Of running logarithms of sums: with weights relative to the sum so far, which no exponential exceeds.
fn log_sums(x: &Tensor, g: &Tensor, y: &Tensor, axis: isize) -> Tensor {
    let zero = x.zeros_like().select(axis, 0);
    let infinite = &zero + f64::INFINITY;
    let order = ScanOrder::new().reverse();
    let (_, [after]) = crate::scan([g, y], axis, order, [zero, infinite], |[later, sum], [g, y]| {
        let reached = g + (y - sum).exp() * later;
        ([reached.clone(), y.clone()], [reached])
    });
    weights(x, y) * after
}
