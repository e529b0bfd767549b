//! Factors that are multiplied as memory has them.

use super::super::stmt::Arithmetic::{Add, Mul};
use super::super::stmt::Expr;
use super::super::variable::Var;
use super::{Columns, LANES, Rows, Writer, plus};
use crate::DType;
use crate::index::{AxisId, IndexExpr};
use crate::ir::{ValueId, ValueOp};
use crate::schedule::{Contraction, FEW_TERMS};

impl Writer<'_> {
    /// A right factor in memory that so few rows are multiplied with that packing it does not pay.
    pub(super) fn in_place(&self, value: ValueId) -> Option<Columns> {
        let Contraction { column, lines, .. } = self.contraction;
        let (buffer, index, first) = self.plain(value, &[*column, self.depth])?;
        let columns = self.kernel.axis(*column);
        let is_whole = columns.extent.is_multiple_of(LANES) && !columns.is_argument;
        let is_few = self.contraction.is_few;
        let fits = (is_few || self.schedule.depth <= FEW_TERMS as u32) && lines.is_empty() && is_whole;
        let row = u64::try_from(index.coefficient(self.depth)?).ok()?;
        let at = self.term.then(Mul, row).then(Add, self.columns.first);
        let at = plus(first, at);
        let fits = fits && (is_few || !self.contraction.is_paired);
        (fits && index.coefficient(*column) == Some(1)).then_some(Columns { array: buffer, at, row })
    }

    /// What is read from memory as it is multiplied, where each element is, and where it begins where these axes begin.
    pub(super) fn plain(&self, mut value: ValueId, axes: &[AxisId]) -> Option<(Var, &IndexExpr, IndexExpr)> {
        let is_paired = self.contraction.is_paired;
        while let ValueOp::Cast(DType::F32, narrow) = self.kernel.value(value).op
            && is_paired
        {
            value = narrow;
        }
        let ValueOp::Load { buffer, index, guard: None } = &self.kernel.value(value).op else { return None };
        let stored = if is_paired { DType::BF16 } else { self.contraction.dtype };
        let is_plain = self.kernel.buffers[buffer.index()].dtype == stored
            && self.kernel.computed_axes(index).is_empty();
        let ranges = self.kernel.ranges();
        let first = axes
            .iter()
            .fold(index.clone(), |index, axis| index.substitute(*axis, &IndexExpr::zero(), &ranges));
        is_plain.then_some(((*buffer).into(), index, first))
    }

    /// A left factor in memory whose lines of terms are as packing would leave them, from a row of the block on.
    pub(super) fn unpacked(&self, value: ValueId, from: impl Into<Expr>) -> Option<Rows> {
        let &[axis] = self.contraction.rows.as_slice() else { return None };
        let (array, index, first) = self.plain(value, &[axis, self.depth])?;
        let row = u64::try_from(index.coefficient(axis)?).ok().filter(|&row| self.has_whole_pairs(row))?;
        let at_row = self.rows.first.then(Add, from);
        let at = at_row.then(Mul, row).then(Add, self.term);
        let at = plus(first, at);
        (index.coefficient(self.depth) == Some(1)).then_some(Rows { array, at, row, term: 1 })
    }

    /// Whether lines of terms so many elements apart are whole pairs, if terms are multiplied so.
    pub(super) fn has_whole_pairs(&self, row: u64) -> bool {
        let depth = self.kernel.axis(self.depth);
        let is_even = row.is_multiple_of(2) && !depth.is_argument && depth.extent.is_multiple_of(2);
        !self.contraction.is_paired
            || self.contraction.is_few
            || is_even && self.schedule.depth.is_multiple_of(2)
    }
}
