//! Partial results of a reduction: how they start, take a value, and merge.

use super::Parameter;
use super::emitter::Emitter;
use super::extremes::{POSITION, VALUE};
use super::online::{MAXIMUM, SUM};
use super::stmt::Arithmetic::{Add, Div, Equal, Mul};
use super::stmt::{Builtin, Expr, LoopHint, Step, Stmt, Type};
use super::variable::Var;
use crate::ir::{Kernel, ValueId, ValueOp};
use crate::{BinaryOp, DType, ReduceOp, Scalar};

/// The variables of one partial result: one for most reductions; mean, squared deviations and count
/// for Welford's method; maximum and sum for exponentials; value and position for extremes.
#[derive(Clone, Debug)]
pub(super) struct Accumulator {
    pub(super) op: ReduceOp,
    /// The values'.
    pub(super) dtype: DType,
    pub(super) parts: Vec<Var>,
    /// What counts positions.
    pub(super) index: DType,
    lanes: Option<u64>,
}

/// Where a partial result is: the part's name to the part's expression.
type Place<'a> = &'a dyn Fn(usize) -> Expr;

impl Accumulator {
    /// Declares the variables of a reduction, or arrays with a partial result for each lane, holding no values yet.
    pub(super) fn of(
        emitter: &mut Emitter,
        kernel: &Kernel,
        id: ValueId,
        lanes: Option<u64>,
    ) -> Option<Accumulator> {
        let ValueOp::Reduce { op, axes, operand, .. } = &kernel.value(id).op else { return None };
        let positions = axes.iter().fold(1, |n: u64, &axis| n.saturating_mul(kernel.axis(axis).extent));
        let index = if positions <= i32::MAX as u64 { DType::I32 } else { DType::I64 };
        Some(Accumulator::new(emitter, *op, kernel.value(*operand).dtype, index, lanes))
    }

    /// Takes a reduction's operand at the position that is bound.
    pub(super) fn take(
        &self,
        emitter: &mut Emitter,
        id: ValueId,
        lane: Option<&Expr>,
        weight: Option<&Expr>,
    ) {
        let ValueOp::Reduce { operand, position, .. } = emitter.kernel.value(id).op else { return };
        let value = emitter.value(operand);
        match position {
            Some(position) => {
                let position = emitter.value(position);
                self.choose(emitter, value, position, lane);
            }
            None => self.update(emitter, value, lane, weight),
        }
    }

    /// As [`Accumulator::of`], of what has no positions.
    pub(super) fn declare(
        emitter: &mut Emitter,
        op: ReduceOp,
        dtype: DType,
        lanes: Option<u64>,
    ) -> Accumulator {
        Accumulator::new(emitter, op, dtype, DType::I64, lanes)
    }

    fn new(
        emitter: &mut Emitter,
        op: ReduceOp,
        dtype: DType,
        index: DType,
        lanes: Option<u64>,
    ) -> Accumulator {
        let prefixes: &[&'static str] = match op {
            ReduceOp::Sum => &["sum"],
            ReduceOp::Prod => &["prod"],
            ReduceOp::Max => &["max"],
            ReduceOp::Min => &["min"],
            ReduceOp::SquaredDeviations => &["mean", "m2_", "count"],
            ReduceOp::SumExp => &["max", "sum"],
            ReduceOp::ArgMax => &["max", "at"],
            ReduceOp::ArgMin => &["min", "at"],
        };
        let parts: Vec<Var> = prefixes.iter().map(|prefix| emitter.fresh(prefix)).collect();
        let accumulator = Accumulator { op, dtype, parts, index, lanes };
        for part in 0..accumulator.parts.len() {
            let (var, ty) = (accumulator.parts[part], Type::Register(accumulator.part_dtype(part)));
            match lanes {
                None => emitter.variable(var, ty, accumulator.identity(part)),
                Some(lanes) => emitter.array(var, ty, lanes),
            };
        }
        if lanes.is_some() {
            accumulator.reset(emitter);
        }
        accumulator
    }

    /// Sets everything to the neutral element.
    pub(super) fn reset(&self, emitter: &mut Emitter) {
        let assign = |part: usize, lane: Option<&Expr>| Stmt::Assign {
            target: self.part(part, lane),
            value: self.identity(part),
        };
        match self.lanes {
            None => (0..self.parts.len()).for_each(|part| emitter.push(assign(part, None))),
            Some(lanes) => {
                let lane = Expr::name(Var::Lane);
                let body = (0..self.parts.len()).map(|part| assign(part, Some(&lane))).collect();
                emitter.push(for_lanes(lanes, body));
            }
        }
    }

    fn identity(&self, part: usize) -> Expr {
        match self.op {
            ReduceOp::SumExp if part == MAXIMUM => self.below_all(),
            ReduceOp::SquaredDeviations | ReduceOp::SumExp => self.number(0),
            ReduceOp::ArgMax | ReduceOp::ArgMin if part == POSITION => {
                Expr::Literal(Scalar::from_i64(self.index, 0))
            }
            ReduceOp::Sum
            | ReduceOp::Prod
            | ReduceOp::Max
            | ReduceOp::Min
            | ReduceOp::ArgMax
            | ReduceOp::ArgMin => Expr::Identity(self.op, self.dtype),
        }
    }

    /// What a part is.
    pub(super) fn part_dtype(&self, part: usize) -> DType {
        if self.op.is_position() && part == POSITION { self.index } else { self.dtype }
    }

    pub(super) fn part(&self, part: usize, lane: Option<&Expr>) -> Expr {
        match lane {
            None => Expr::Name(self.parts[part]),
            Some(lane) => Expr::element(self.parts[part], lane.clone()),
        }
    }

    pub(super) fn binary(&self, op: BinaryOp, a: Expr, b: Expr) -> Expr {
        Expr::Binary(op, self.dtype, Box::new(a), Box::new(b))
    }

    /// Takes one more value. With `weight`, one over the number of values including this one, which is
    /// the same for all lanes and therefore counted outside of them.
    pub(super) fn update(
        &self,
        emitter: &mut Emitter,
        value: Expr,
        lane: Option<&Expr>,
        weight: Option<&Expr>,
    ) {
        let value = emitter.named(value, self.dtype);
        match self.op {
            ReduceOp::SquaredDeviations => {
                // Welford: the mean moves by delta / count; both deviations have the same sign.
                let (mean, m2, count) = (self.part(0, lane), self.part(1, lane), self.part(2, lane));
                if weight.is_none() {
                    emitter.push(set(count.clone(), self.binary(BinaryOp::Add, count.clone(), self.one())));
                }
                let difference = self.binary(BinaryOp::Sub, value.clone(), mean.clone());
                let delta = emitter.fresh("delta");
                let delta = Expr::Name(emitter.bind(delta, Type::Register(self.dtype), difference));
                let share = match weight {
                    Some(weight) => self.binary(BinaryOp::Mul, delta.clone(), weight.clone()),
                    None => self.binary(BinaryOp::Div, delta.clone(), count),
                };
                emitter.push(set(mean.clone(), self.binary(BinaryOp::Add, mean.clone(), share)));
                let rest = self.binary(BinaryOp::Sub, value, mean);
                let product = self.binary(BinaryOp::Mul, delta, rest);
                emitter.push(set(m2.clone(), self.binary(BinaryOp::Add, m2, product)));
            }
            ReduceOp::SumExp => self.add_exp(emitter, value, self.number(1), lane),
            // Not without a position.
            ReduceOp::ArgMax | ReduceOp::ArgMin => {}
            ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Max | ReduceOp::Min => {
                let target = self.part(0, lane);
                let combined = Expr::Combine(self.op, self.dtype, Box::new(target.clone()), Box::new(value));
                emitter.push(set(target, combined));
            }
        }
    }

    pub(super) fn number(&self, value: i64) -> Expr {
        Expr::Literal(Scalar::from_i64(self.dtype, value))
    }

    fn one(&self) -> Expr {
        self.number(1)
    }

    /// An accumulator that counts for all that count, if they count in one type.
    pub(super) fn common_welford(accumulators: &[Accumulator]) -> Option<&Accumulator> {
        let mut counting = accumulators.iter().filter(|a| a.op == ReduceOp::SquaredDeviations);
        let first = counting.next()?;
        counting.all(|other| other.dtype == first.dtype).then_some(first)
    }

    /// A counter of values per lane, for [`Accumulator::next_step`].
    pub(super) fn declare_steps(&self, emitter: &mut Emitter) -> Expr {
        let steps = emitter.fresh("steps");
        Expr::Name(emitter.variable(steps, Type::Register(self.dtype), self.number(0)))
    }

    /// Counts a value in all lanes, and gives its weight.
    pub(super) fn next_step(&self, emitter: &mut Emitter, steps: &Expr) -> Expr {
        emitter.push(set(steps.clone(), self.binary(BinaryOp::Add, steps.clone(), self.one())));
        let weight = emitter.fresh("weight");
        let value = self.binary(BinaryOp::Div, self.one(), steps.clone());
        Expr::Name(emitter.bind(weight, Type::Register(self.dtype), value))
    }

    /// Gives all lanes the common count.
    pub(super) fn spread_steps(&self, emitter: &mut Emitter, steps: &Expr) {
        if let (ReduceOp::SquaredDeviations, Some(lanes)) = (self.op, self.lanes) {
            let body = vec![set(self.part(2, Some(&Expr::name(Var::Lane))), steps.clone())];
            emitter.push(for_lanes(lanes, body));
        }
    }

    /// Takes another partial result. The formulas are symmetric, so that two threads that exchange
    /// their partial results get the same bits.
    pub(super) fn merge(&self, emitter: &mut Emitter, lane: Option<&Expr>, other: Place) {
        match self.op {
            ReduceOp::SquaredDeviations => {
                let own = |part| self.part(part, lane);
                let names = ["other_mean", "other_m2_", "other_count"];
                let others: Vec<Expr> = (0..3)
                    .map(|part| {
                        let name = emitter.fresh(names[part]);
                        Expr::Name(emitter.bind(name, Type::Register(self.dtype), other(part)))
                    })
                    .collect();
                let total = emitter.fresh("total");
                let one = self.one();
                let sum = self.binary(BinaryOp::Add, own(2), others[2].clone());
                let total = Expr::Name(emitter.bind(total, Type::Register(self.dtype), sum));
                let divisor = emitter.fresh("divisor");
                let empty = self.binary(BinaryOp::Lt, total.clone(), one.clone());
                let nonzero = Expr::Select(Box::new(empty), Box::new(one), Box::new(total.clone()));
                let divisor = Expr::Name(emitter.bind(divisor, Type::Register(self.dtype), nonzero));
                let distance = emitter.fresh("distance");
                let apart = self.binary(BinaryOp::Sub, others[0].clone(), own(0));
                let distance = Expr::Name(emitter.bind(distance, Type::Register(self.dtype), apart));
                let weight = self.binary(
                    BinaryOp::Div,
                    self.binary(BinaryOp::Mul, own(2), others[2].clone()),
                    divisor.clone(),
                );
                let between = self.binary(
                    BinaryOp::Mul,
                    self.binary(BinaryOp::Mul, distance.clone(), distance),
                    weight,
                );
                let within = self.binary(BinaryOp::Add, own(1), others[1].clone());
                emitter.push(set(own(1), self.binary(BinaryOp::Add, within, between)));
                let fraction = |count: Expr| self.binary(BinaryOp::Div, count, divisor.clone());
                let share = self.binary(BinaryOp::Mul, own(0), fraction(own(2)));
                let other_share = self.binary(BinaryOp::Mul, others[0].clone(), fraction(others[2].clone()));
                emitter.push(set(own(0), self.binary(BinaryOp::Add, share, other_share)));
                emitter.push(set(own(2), total));
            }
            ReduceOp::SumExp => {
                let max = emitter.named(other(MAXIMUM), self.dtype);
                let sum = emitter.named(other(SUM), self.dtype);
                self.add_exp(emitter, max, sum, lane);
            }
            ReduceOp::ArgMax | ReduceOp::ArgMin => {
                let value = emitter.named(other(VALUE), self.dtype);
                let position = emitter.named(other(POSITION), self.index);
                self.choose_partial(emitter, value, position, lane);
            }
            ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Max | ReduceOp::Min => {
                let target = self.part(0, lane);
                // Maxima may be spelled with the operand twice, and a shuffle must happen once.
                let other = match self.op {
                    ReduceOp::Max | ReduceOp::Min => emitter.named(other(0), self.dtype),
                    ReduceOp::Sum
                    | ReduceOp::Prod
                    | ReduceOp::SquaredDeviations
                    | ReduceOp::SumExp
                    | ReduceOp::ArgMax
                    | ReduceOp::ArgMin => other(0),
                };
                let combined = Expr::Combine(self.op, self.dtype, Box::new(target.clone()), Box::new(other));
                emitter.push(set(target, combined));
            }
        }
    }

    /// Whether something remains to be done when all values have been taken and merged.
    pub(super) fn settles(&self) -> bool {
        self.op == ReduceOp::SumExp
    }

    /// Does it.
    pub(super) fn settle(&self, emitter: &mut Emitter, lane: Option<&Expr>) {
        if self.settles() {
            self.settle_exp(emitter, lane);
        }
    }

    /// The reduction's result.
    pub(super) fn result(&self, lane: Option<&Expr>) -> Expr {
        match self.op {
            ReduceOp::SquaredDeviations => self.part(1, lane),
            ReduceOp::SumExp => self.part(SUM, lane),
            ReduceOp::ArgMax | ReduceOp::ArgMin => self.position(lane),
            ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Max | ReduceOp::Min => self.part(0, lane),
        }
    }

    /// Merges across a group of `width` neighbouring threads; all of them get the result.
    pub(super) fn merge_by_shuffles(&self, emitter: &mut Emitter, width: u32) {
        if width <= 1 {
            return;
        }
        let step = emitter.index("step");
        emitter.open(&[], false);
        self.merge(emitter, None, &|part| Expr::ShuffleXor {
            value: Box::new(self.part(part, None)),
            mask: Box::new(Expr::Name(step)),
            width,
        });
        let body = emitter.close();
        emitter.push(Stmt::For {
            var: step,
            from: Expr::Int(u64::from(width / 2)),
            to: Expr::Int(0),
            step: Step::Halve,
            hint: LoopHint::Unroll,
            body,
        });
    }

    /// Merges across a block of `warps` warps in which each warp holds one partial result in all of
    /// its lanes; all threads get the result. The prefix names the shared arrays.
    pub(super) fn merge_by_shared_memory(&self, emitter: &mut Emitter, warps: u32, prefix: &str) {
        if warps <= 1 {
            return;
        }
        let thread = || Expr::Builtin(Builtin::ThreadX);
        let shared = self.declare_shared(emitter, prefix, u64::from(warps));
        let warp = thread().then(Div, Expr::Int(32));
        let writes = (0..shared.len())
            .map(|part| set(Expr::element(shared[part], warp.clone()), self.part(part, None)))
            .collect();
        let first_lane = thread().then(super::stmt::Arithmetic::Rem, Expr::Int(32)).then(Equal, Expr::Int(0));
        emitter.push(Stmt::If { condition: first_lane, then: writes, otherwise: Vec::new() });
        emitter.push(Stmt::Barrier);
        let slot = thread().then(super::stmt::Arithmetic::Rem, Expr::Int(u64::from(warps)));
        for (part, array) in shared.iter().enumerate() {
            emitter.push(set(self.part(part, None), Expr::element(array, slot.clone())));
        }
        self.merge_by_shuffles(emitter, warps);
    }

    /// Arrays in shared memory for partial results.
    pub(super) fn declare_shared(&self, emitter: &mut Emitter, prefix: &str, len: u64) -> Vec<Var> {
        let parts = self.parts.iter().enumerate();
        parts
            .map(|(n, &part)| emitter.shared(prefix, part, Type::Register(self.part_dtype(n)), len))
            .collect()
    }

    /// Merges the lanes of arrays into lane 0, halving: the same order on every machine.
    pub(super) fn merge_lanes(&self, emitter: &mut Emitter) {
        let Some(lanes) = self.lanes.filter(|&lanes| lanes > 1) else { return };
        let lane = Expr::name(Var::Lane);
        let step = emitter.index("step");
        emitter.open(&[], false);
        let partner = lane.clone().then(Add, Expr::Name(step));
        self.merge(emitter, Some(&lane), &|part| self.part(part, Some(&partner)));
        let body = emitter.close();
        let inner = Stmt::For {
            var: Var::Lane,
            from: Expr::Int(0),
            to: Expr::Name(step),
            step: Step::Add(Expr::Int(1)),
            hint: LoopHint::Simd,
            body,
        };
        emitter.push(Stmt::For {
            var: step,
            from: Expr::Int(lanes / 2),
            to: Expr::Int(0),
            step: Step::Halve,
            hint: LoopHint::None,
            body: vec![inner],
        });
    }
}

/// The place in the n-th workspace.
fn workspace(number: usize, at: &Expr) -> Expr {
    Expr::element(Parameter::Workspace(number), at.clone())
}

/// Writes partial results to the workspaces, which have one for each part of them in this order.
pub(super) fn save(emitter: &mut Emitter, accumulators: &[Accumulator], lane: Option<&Expr>, at: &Expr) {
    let parts =
        accumulators.iter().flat_map(|own| (0..own.parts.len()).map(move |part| own.part(part, lane)));
    parts.enumerate().for_each(|(number, part)| emitter.push(set(workspace(number, at), part)));
}

/// Lets accumulators take partial results from the workspaces.
pub(super) fn load(emitter: &mut Emitter, accumulators: &[Accumulator], lane: Option<&Expr>, at: &Expr) {
    let mut first = 0;
    for accumulator in accumulators {
        accumulator.merge(emitter, lane, &|part| workspace(first + part, at));
        first += accumulator.parts.len();
    }
}

/// `target = value`.
pub(super) fn set(target: Expr, value: Expr) -> Stmt {
    Stmt::Assign { target, value }
}

/// `for (l = 0; l < lanes; ++l)`, vectorised or unrolled.
pub(super) fn for_lanes(lanes: u64, body: Vec<Stmt>) -> Stmt {
    Stmt::For {
        var: Var::Lane,
        from: Expr::Int(0),
        to: Expr::Int(lanes),
        step: Step::Add(Expr::Int(1)),
        hint: LoopHint::Simd,
        body,
    }
}

/// `a * b + c` on indices.
pub(super) fn mul_add(a: Expr, b: Expr, c: Expr) -> Expr {
    a.then(Mul, b).then(Add, c)
}
