//! Positions side by side: an axis of fewer positions, at each of which a kernel has what neighbours are.

use rustc_hash::FxHashMap;

use super::{AxisKind, Kernel, ValueId, ValueOp};
use crate::index::{Atom, AxisId, BoundTruth, IndexExpr};
use crate::{DType, Scalar};

/// More values of all neighbours together are too much text.
const MOST_VALUES: usize = 512;

/// The most parts of a join that are spelled out.
const MOST_PARTS: u64 = 16;

impl Kernel {
    /// Whether so many neighbours side by side are not too much text.
    pub(crate) fn fits_neighbours(&self, together: u64) -> bool {
        self.values.len().saturating_mul(together as usize) <= MOST_VALUES
    }

    /// The kernel with so many neighbours along the axis side by side. What reduces the axis combines them before.
    pub(crate) fn with_neighbours(&self, row: AxisId, together: u64) -> Kernel {
        let empty = Kernel { values: Vec::new(), stores: Vec::new(), ..self.clone() };
        let mut result = Parts { kernel: empty, known: FxHashMap::default() };
        let is_whole = self.axis(row).extent == together;
        result.kernel.axes[row.0 as usize].extent /= together;
        let ranges = result.kernel.ranges();
        let away = AxisId(self.axes.len() as u32);
        let renamed = |id: AxisId| if id == row { away } else { id };
        let at = |place: u64| IndexExpr::axis(row).scale(together as i64).offset(place as i64);
        // Of each value what it is at each of the neighbours: once for what does not vary along the row.
        let mut parts: Vec<Vec<ValueId>> = Vec::with_capacity(self.values.len());
        for value in &self.values {
            let varies = value.axes.contains(&row);
            let own = (0..if varies { together } else { 1 }).map(|place| {
                let mut op = value.op.clone();
                for index in op.indices_mut() {
                    *index = index.renamed(&renamed).substitute(away, &at(place), &ranges);
                }
                if let ValueOp::Reduce { op: reduction, axes, operand, .. } = &mut op
                    && let (Some(by), true) = (reduction.plain(), axes.contains(&row))
                {
                    let (all, dtype) = (&parts[operand.index()], self.value(*operand).dtype);
                    let mut both = |a, b| result.add(ValueOp::Binary(by, a, b), dtype);
                    let whole = (1..together as usize).fold(all[0], |a, n| both(a, all[n % all.len()]));
                    axes.retain(|axis| *axis != row || !is_whole);
                    if axes.is_empty() {
                        // A sum of nothing but negative zeros is zero.
                        let none = result.add(ValueOp::Literal(reduction.identity(dtype)), dtype);
                        return result.add(ValueOp::Binary(by, none, whole), dtype);
                    }
                    *operand = whole;
                } else {
                    for id in op.named_operands_mut() {
                        let of = &parts[id.index()];
                        *id = of[place as usize % of.len()];
                    }
                }
                result.decided(op, value.dtype)
            });
            let own = own.collect();
            parts.push(own);
        }
        let mut result = result.kernel;
        for store in &self.stores {
            let parts = &parts[store.value.index()];
            let varies = store.index.uses(row) || parts.len() > 1;
            for place in 0..if varies { together } else { 1 } {
                let index = store.index.renamed(&renamed).substitute(away, &at(place), &ranges);
                result.store(store.buffer, index, parts[place as usize % parts.len()]);
            }
        }
        result
    }

    /// A reduced axis at each of whose positions another part of a join is, which conditions tell apart; one that is an argument,
    /// or one that is none.
    pub fn joined_axis(&self, is_argument: bool) -> Option<AxisId> {
        let is_joined = |row: &AxisId| {
            let own = self.axis(*row);
            let mut ends: Vec<i64> = Vec::new();
            for value in &self.values {
                let ValueOp::InBounds(bounds) = &value.op else { continue };
                let of_row = bounds.iter().filter(|bound| {
                    bound.expr.terms() == [(Atom::Axis(*row), 1)] && bound.expr.constant_term() == 0
                });
                ends.extend(of_row.flat_map(|bound| [bound.lo, bound.hi]));
            }
            ends.retain(|&end| 0 < end && end < own.extent as i64);
            ends.sort_unstable();
            ends.dedup();
            own.is_argument == is_argument
                && (2..=MOST_PARTS).contains(&own.extent)
                && ends.len() as u64 + 1 == own.extent
                && self.is_combined_in_place(*row)
                && self.fits_neighbours(own.extent)
        };
        self.axes_of_kind(AxisKind::Reduce).into_iter().find(is_joined)
    }

    /// Whether neighbours along a reduced axis may be combined as values are: by one operation, without rounding.
    fn is_combined_in_place(&self, row: AxisId) -> bool {
        let mut is_reduced = false;
        let is_plain = self.values.iter().all(|value| match &value.op {
            ValueOp::Reduce { op, axes, operand, position } if axes.contains(&row) => {
                is_reduced = true;
                let dtype = self.value(*operand).dtype;
                op.is_plain() && position.is_none() && dtype == value.dtype && dtype.compute() == dtype
            }
            ValueOp::Scan { .. }
            | ValueOp::Carry { .. }
            | ValueOp::Last { .. }
            | ValueOp::Scatter { .. }
            | ValueOp::Sort { .. } => false,
            _ => true,
        });
        is_plain && is_reduced && !self.has_computed_axes()
    }

    /// Has all positions along an axis side by side, in place of a loop.
    pub fn spell_out(&mut self, row: AxisId) {
        *self = self.with_neighbours(row, self.axis(row).extent);
    }
}

/// A kernel that has each value once, whose conditions are decided where they can be.
struct Parts {
    kernel: Kernel,
    known: FxHashMap<(ValueOp, DType), ValueId>,
}

impl Parts {
    fn add(&mut self, op: ValueOp, dtype: DType) -> ValueId {
        let Parts { kernel, known } = self;
        *known.entry((op, dtype)).or_insert_with_key(|(op, _)| kernel.add(op.clone(), dtype))
    }

    fn decided(&mut self, op: ValueOp, dtype: DType) -> ValueId {
        let truth = |kernel: &Kernel, id: ValueId| match kernel.value(id).op {
            ValueOp::Literal(scalar) => Some(scalar.as_f64() != 0.0),
            _ => None,
        };
        match op {
            ValueOp::InBounds(bounds) => {
                let ranges = self.kernel.ranges();
                let truths: Vec<BoundTruth> = bounds.iter().map(|bound| bound.simplify(&ranges)).collect();
                match () {
                    () if truths.contains(&BoundTruth::Never) => {
                        self.add(ValueOp::Literal(Scalar::from_bool(false)), DType::Bool)
                    }
                    () if truths.iter().all(|truth| *truth == BoundTruth::Always) => {
                        self.add(ValueOp::Literal(Scalar::from_bool(true)), DType::Bool)
                    }
                    () => self.add(ValueOp::InBounds(bounds), dtype),
                }
            }
            ValueOp::Load { buffer, index, guard: Some(guard) } => match truth(&self.kernel, guard) {
                Some(true) => self.add(ValueOp::Load { buffer, index, guard: None }, dtype),
                Some(false) => self.add(ValueOp::Literal(Scalar::from_i64(dtype, 0)), dtype),
                None => self.add(ValueOp::Load { buffer, index, guard: Some(guard) }, dtype),
            },
            ValueOp::Select(condition, a, b) => match truth(&self.kernel, condition) {
                Some(holds) => {
                    if holds {
                        a
                    } else {
                        b
                    }
                }
                None => self.add(ValueOp::Select(condition, a, b), dtype),
            },
            op => self.add(op, dtype),
        }
    }
}
