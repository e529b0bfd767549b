//! Narrow columns on the CPU: a few columns alone fill no vector, but several positions of them are neighbours in memory. Lanes
//! hold all columns of some positions, one position after the other, and what these come to is combined at the end.
//!
//! What does not vary along the columns is computed once for each of these positions and spread over the lanes; what does not
//! vary along the positions is in an array that repeats the columns as the lanes do.

use super::INDEX;
use super::accumulate::{Accumulator, mul_add, set};
use super::emitter::Emitter;
use super::loops::counting;
use super::passes::{Pass, Plan};
use super::stmt::Arithmetic::{Add, Div, Min, Mul, Sub};
use super::stmt::{Expr, LoopHint, Stmt, Type};
use super::variable::Var;
use crate::index::{AxisId, IndexExpr};
use crate::intrinsics::lanes::SPREAD;
use crate::ir::{Kernel, ValueId, ValueOp};
use crate::{BinaryOp, DType, Scalar};

/// Positions side by side: so many fill whole vectors, however few the columns are.
const SIDE_BY_SIDE: u64 = SPREAD;

/// As many columns fill the lanes themselves.
const WIDE: u64 = 16;

/// Arrays of such values, at most: some kilobytes of the stack.
const MOST: usize = 12;

/// Columns as they go side by side.
pub(super) struct Narrow {
    /// The kernel whose swept axis counts groups of positions, and whose innermost axis what is in one of them.
    kernel: Kernel,
    inner: AxisId,
    axis: AxisId,
    /// What the values of the lanes are computed from: of each pass, what varies along the positions alone, and along the
    /// columns alone.
    of_positions: Vec<Vec<ValueId>>,
    of_columns: Vec<Vec<ValueId>>,
}

impl Narrow {
    /// `None` if there are columns enough, or they are no neighbours.
    pub(super) fn of(kernel: &Kernel, plan: &Plan, inner: AxisId) -> Option<Narrow> {
        let &[axis] = &plan.axes[..] else { return None };
        let (columns, length) = (kernel.axis(inner), kernel.axis(axis));
        let is_narrow = !columns.is_argument && (2..WIDE).contains(&columns.extent);
        let is_long = length.is_argument || length.extent >= 4 * SIDE_BY_SIDE;
        if !is_narrow || !is_long {
            return None;
        }
        let mut own =
            Narrow { kernel: kernel.clone(), inner, axis, of_positions: Vec::new(), of_columns: Vec::new() };
        for pass in &plan.passes {
            own.fold(kernel, pass)?;
        }
        Some(own)
    }

    /// Has a pass go along groups of positions, if what it computes can.
    fn fold(&mut self, kernel: &Kernel, pass: &Pass) -> Option<()> {
        let operand = |id: &ValueId| match kernel.value(*id).op {
            ValueOp::Reduce { operand, .. } => Some(operand),
            _ => None,
        };
        let stored = pass.stores.iter().map(|&store| kernel.stores[store].value);
        let mut pending: Vec<ValueId> = pass.reductions.iter().filter_map(operand).chain(stored).collect();
        let (mut of_positions, mut of_columns, mut met) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(id) = pending.pop() {
            if met.contains(&id) {
                continue;
            }
            met.push(id);
            let value = kernel.value(id);
            match (value.axes.contains(&self.axis), value.axes.contains(&self.inner)) {
                (false, false) => {}
                (true, false) => of_positions.push(id),
                (false, true) => of_columns.push(id),
                (true, true) => {
                    match &value.op {
                        ValueOp::Unary(..)
                        | ValueOp::Binary(..)
                        | ValueOp::Select(..)
                        | ValueOp::Cast(..) => {}
                        ValueOp::Load { index, guard: None, .. }
                            if kernel.computed_axes(index).is_empty() =>
                        {
                            let folded = self.folded(index)?;
                            if let ValueOp::Load { index, .. } = &mut self.kernel.values[id.index()].op {
                                *index = folded;
                            }
                        }
                        ValueOp::Random { index, .. } => {
                            let folded = self.folded(index)?;
                            if let ValueOp::Random { index, .. } = &mut self.kernel.values[id.index()].op {
                                *index = folded;
                            }
                        }
                        _ => return None,
                    }
                    pending.extend(kernel.operands(&value.op));
                }
            }
        }
        for &store in &pass.stores {
            self.kernel.stores[store].index = self.folded(&kernel.stores[store].index)?;
        }
        of_positions.sort_unstable();
        of_columns.sort_unstable();
        // Of groups, while they are swept.
        let is_of_group = |id: &ValueId| match kernel.value(*id).op {
            ValueOp::Reduce { position: Some(position), .. } => {
                let own = IndexExpr::axis(self.axis);
                matches!(&kernel.value(position).op, ValueOp::Position(index) if *index == own)
                    && !of_positions.contains(&position)
            }
            _ => true,
        };
        if !pass.reductions.iter().all(is_of_group) {
            return None;
        }
        if of_positions.len() + of_columns.len() > MOST {
            return None;
        }
        self.of_positions.push(of_positions);
        self.of_columns.push(of_columns);
        Some(())
    }

    /// An index that goes on from column to column and from position to position without a gap, along groups.
    fn folded(&self, index: &IndexExpr) -> Option<IndexExpr> {
        let width = self.columns() as i64;
        let is_consecutive =
            index.coefficient(self.inner) == Some(1) && index.coefficient(self.axis) == Some(width);
        let further = || IndexExpr::axis(self.axis).scale((SIDE_BY_SIDE as i64 - 1) * width);
        is_consecutive.then(|| index.add(&further()))
    }

    fn columns(&self) -> u64 {
        self.kernel.axis(self.inner).extent
    }

    /// Sweeps down narrow columns: as many positions side by side as fill vectors, then those that are left.
    pub(super) fn sweep<'k>(
        &'k self,
        emitter: &mut Emitter<'k>,
        (plan, number): (&Plan, usize),
        flat: Var,
        (from, to): (Expr, Expr),
    ) -> Vec<Accumulator> {
        let (pass, columns) = (&plan.passes[number], self.columns());
        let accumulators = pass.declare(emitter, &self.kernel, Some(columns * SIDE_BY_SIDE));
        let mut group = Group {
            own: self,
            pass,
            accumulators: &accumulators,
            weight: None,
            of_positions: &self.of_positions[number],
            // The swept axis itself counts groups, unless positions of theirs are to be told.
            counter: if self.of_positions[number].is_empty() { flat } else { emitter.index("group") },
            flat,
            elements: self.leave_columns(emitter, number),
        };
        let welford = Accumulator::common_welford(&accumulators);
        let steps = welford.map(|accumulator| accumulator.declare_steps(emitter));
        let groups = to.clone().then(Div, SIDE_BY_SIDE);
        let groups = match groups {
            Expr::Int(_) => groups,
            groups => {
                let name = emitter.fresh("groups");
                Expr::Name(emitter.bind(name, INDEX, groups))
            }
        };
        let start = from.clone();
        let from = from.then(Div, SIDE_BY_SIDE);
        let left = to.clone().then(Sub, groups.clone().then(Mul, SIDE_BY_SIDE));
        emitter.repeat(counting(group.counter, from, groups.clone(), LoopHint::None), |emitter| {
            group.weight =
                welford.zip(steps.as_ref()).map(|(accumulator, steps)| accumulator.next_step(emitter, steps));
            group.emit(emitter, &Expr::Int(SIDE_BY_SIDE));
        });
        if let Some(steps) = &steps {
            accumulators.iter().for_each(|accumulator| accumulator.spread_steps(emitter, steps));
        }
        if left != Expr::Int(0) {
            emitter.open(&[], false);
            emitter.bind(group.counter, INDEX, groups);
            group.weight = None;
            group.emit(emitter, &left);
            let body = emitter.close();
            emitter.push(Stmt::Block(body));
        }
        for accumulator in &accumulators {
            let count = to.clone().then(Sub, start.clone()).then(Min, SIDE_BY_SIDE);
            self.tell_positions(emitter, accumulator, flat, count);
        }
        if !accumulators.is_empty() {
            let lane = Expr::name(Var::Lane);
            let k = emitter.index("k");
            let other = mul_add(k, columns, lane.clone());
            emitter.open(&[], false);
            for accumulator in &accumulators {
                accumulator.merge(emitter, Some(&lane), &|part| accumulator.part(part, Some(&other)));
            }
            let body = emitter.close();
            let body = vec![counting(Var::Lane, 0, columns, LoopHint::Simd).of(body)];
            emitter.push(counting(k, 1, SIDE_BY_SIDE, LoopHint::None).of(body));
        }
        accumulators
    }

    /// The positions of what was found in groups, of so many positions side by side that have met any.
    fn tell_positions(&self, emitter: &mut Emitter, accumulator: &Accumulator, flat: Var, count: Expr) {
        let Some(part) = accumulator.position() else { return };
        let (lane, dtype) = (Expr::name(Var::Lane), accumulator.part_dtype(part));
        let at = accumulator.part(part, Some(&mul_add(Expr::Name(flat), self.columns(), lane)));
        let own = Expr::Position(IndexExpr::axis(self.axis));
        let own = match dtype {
            DType::I64 => own,
            to => Expr::Cast { from: DType::I64, to, operand: Box::new(own) },
        };
        let groups = Expr::Literal(Scalar::from_i64(dtype, SIDE_BY_SIDE as i64));
        let first = Expr::Binary(BinaryOp::Mul, dtype, Box::new(at.clone()), Box::new(groups));
        let position = Expr::Binary(BinaryOp::Add, dtype, Box::new(first), Box::new(own));
        let body = vec![counting(Var::Lane, 0, self.columns(), LoopHint::Simd).of(vec![set(at, position)])];
        emitter.push(counting(flat, 0, count, LoopHint::None).of(body));
    }

    /// Leaves what varies along the columns alone, as often as positions go side by side.
    fn leave_columns<'k>(&'k self, emitter: &mut Emitter<'k>, number: usize) -> Vec<(ValueId, Expr)> {
        let ids = &self.of_columns[number];
        if ids.is_empty() {
            return Vec::new();
        }
        let (columns, lane, k) = (self.columns(), Expr::name(Var::Lane), emitter.index("k"));
        let elements = self.arrays(emitter, ids, "column", columns * SIDE_BY_SIDE);
        let at = mul_add(k, columns, lane.clone());
        emitter.repeat(counting(k, 0, SIDE_BY_SIDE, LoopHint::None), |emitter| {
            let columns = counting(Var::Lane, 0, columns, LoopHint::Simd);
            emitter.repeat_along(&[self.inner], columns, |emitter| {
                emitter.bind(self.inner, INDEX, lane.clone());
                emitter.leave(&slots(&elements, &at));
            });
        });
        slots(&elements, &lane)
    }

    /// Arrays of so many elements, one for each of these values.
    fn arrays(
        &self,
        emitter: &mut Emitter,
        ids: &[ValueId],
        name: &'static str,
        length: u64,
    ) -> Vec<(ValueId, Var)> {
        let array = |&id: &ValueId| {
            // Bytes would have as many lanes as a vector has of them, in several vectors of all else.
            let dtype = match self.kernel.value(id).dtype {
                DType::Bool | DType::U8 | DType::I8 | DType::I16 => DType::I32,
                dtype => dtype,
            };
            let name = emitter.fresh(name);
            (id, emitter.array(name, Type::Register(dtype), length))
        };
        ids.iter().map(array).collect()
    }
}

/// What is at a slot of arrays.
fn slots(arrays: &[(ValueId, Var)], slot: &Expr) -> Vec<(ValueId, Expr)> {
    arrays.iter().map(|&(id, array)| (id, Expr::element(array, slot.clone()))).collect()
}

/// What is done with a group of positions.
struct Group<'a, 'k> {
    own: &'k Narrow,
    pass: &'a Pass,
    accumulators: &'a [Accumulator],
    weight: Option<Expr>,
    of_positions: &'a [ValueId],
    counter: Var,
    flat: Var,
    /// What varies along the columns alone.
    elements: Vec<(ValueId, Expr)>,
}

impl<'k> Group<'_, 'k> {
    /// Of so many positions.
    fn emit(&self, emitter: &mut Emitter<'k>, positions: &Expr) {
        let (own, columns, lane) = (self.own, self.own.columns(), Expr::name(Var::Lane));
        let mut elements = self.elements.clone();
        if self.of_positions.is_empty() {
            emitter.bind_axes(&[own.axis]);
        } else {
            elements.extend(self.leave_positions(emitter, positions));
        }
        let lanes = positions.clone().then(Mul, columns);
        emitter.using(&own.kernel, |emitter| {
            let lanes = counting(Var::Lane, 0, lanes, LoopHint::Simd);
            emitter.repeat_along(&[own.inner], lanes, |emitter| {
                if self.counter != self.flat {
                    emitter.bind(self.flat, INDEX, Expr::Name(self.counter));
                    emitter.bind_axes(&[own.axis]);
                }
                emitter.bind(own.inner, INDEX, lane.clone());
                emitter.find(&elements);
                for (&id, accumulator) in self.pass.reductions.iter().zip(self.accumulators) {
                    accumulator.take(emitter, id, Some(&lane), self.weight.as_ref());
                }
                for &number in &self.pass.stores {
                    emitter.store(&own.kernel.stores[number]);
                }
            });
        });
    }

    /// Computes what varies along the positions alone, once for all columns.
    fn leave_positions(&self, emitter: &mut Emitter<'k>, positions: &Expr) -> Vec<(ValueId, Expr)> {
        let (own, lane) = (self.own, Expr::name(Var::Lane));
        let once = own.arrays(emitter, self.of_positions, "position", SIDE_BY_SIDE);
        let lanes = counting(Var::Lane, 0, positions.clone(), LoopHint::Simd);
        emitter.repeat_along(&[own.axis], lanes, |emitter| {
            let first = Expr::Name(self.counter).then(Mul, SIDE_BY_SIDE);
            emitter.bind(self.flat, INDEX, first.then(Add, lane.clone()));
            emitter.leave(&slots(&once, &lane));
        });
        slots(&once, &lane.then(Div, own.columns()))
    }
}
