//! Which numbers take 64 bits on their way, though loops count in 32 (CUDA): indices far into an array, or sums that only
//! a division or a difference brings back.

use super::stmt::{Arithmetic, Expr, Stmt};
use super::{Nest, Workspace, needs_wide_index};
use crate::Language;
use crate::index::{AxisRanges, Bound, IndexExpr};
use crate::ir::Kernel;

impl Nest {
    /// Decides it of a nest of this kernel.
    pub(super) fn decide_widths(&mut self, kernel: &Kernel, language: Language) {
        let is_long = |space: &Workspace| space.elements > i32::MAX as u64;
        self.wide_index = needs_wide_index(kernel) || self.workspaces.iter().any(is_long);
        if let Some(narrow) = Narrow::of(self, language) {
            self.functions.iter_mut().for_each(|function| narrow.widen_all(&mut function.body.statements));
        }
    }
}

/// Where loops count in 32 bits.
pub(super) struct Narrow {
    ranges: AxisRanges,
}

impl Narrow {
    pub(super) fn of(nest: &Nest, language: Language) -> Option<Narrow> {
        let is_narrow = language == Language::Cuda && !nest.wide_index;
        is_narrow.then(|| Narrow { ranges: nest.kernel.launch_ranges() })
    }

    fn holds(&self, index: &IndexExpr) -> bool {
        index.largest_part(&self.ranges) <= i64::from(i32::MAX)
    }

    fn widen_all(&self, statements: &mut [Stmt]) {
        for stmt in statements {
            stmt.expressions_mut().into_iter().for_each(|expr| self.widen(expr));
            stmt.bodies_mut().into_iter().for_each(|body| self.widen_all(body));
        }
    }

    fn widen(&self, expr: &mut Expr) {
        match expr {
            Expr::Wide(_) => {}
            Expr::Index(index) | Expr::Position(index) | Expr::Random { index, .. } => {
                if !self.holds(index) {
                    *expr = Expr::Wide(Box::new(expr.clone()));
                }
            }
            Expr::InBounds(bounds) => {
                let runs = bounds.chunk_by(|a, b| self.holds(&compared(a)) == self.holds(&compared(b)));
                let run = |bounds: &[Bound]| match bounds.iter().all(|bound| self.holds(&compared(bound))) {
                    true => Expr::InBounds(bounds.to_vec()),
                    false => Expr::Wide(Box::new(Expr::InBounds(bounds.to_vec()))),
                };
                if let Some(all) = runs.map(run).reduce(|all, next| all.then(Arithmetic::And, next)) {
                    *expr = all;
                }
            }
            _ => expr.operands_mut().into_iter().for_each(|operand| self.widen(operand)),
        }
    }

    /// An index in the statements that is computed in 32 bits, which do not hold it.
    pub(super) fn too_narrow(&self, statements: &[Stmt]) -> Option<IndexExpr> {
        statements.iter().find_map(|stmt| {
            let own = stmt.expressions().into_iter().find_map(|expr| self.unheld(expr));
            own.or_else(|| stmt.bodies().into_iter().find_map(|body| self.too_narrow(body)))
        })
    }

    fn unheld(&self, expr: &Expr) -> Option<IndexExpr> {
        match expr {
            Expr::Wide(_) => None,
            Expr::Index(index) | Expr::Position(index) | Expr::Random { index, .. } => {
                (!self.holds(index)).then(|| index.clone())
            }
            Expr::InBounds(bounds) => bounds.iter().map(compared).find(|index| !self.holds(index)),
            _ => expr.operands().into_iter().find_map(|operand| self.unheld(operand)),
        }
    }
}

/// Whether both limits are far from the ends of what 64 bits hold, so that one comparison checks both.
pub(crate) fn is_one_comparison(bound: &Bound) -> bool {
    bound.lo > i64::MIN / 4 && bound.hi < i64::MAX / 4
}

/// What a bound compares with a constant: how far the index is from the lower limit, or from the only one.
pub(crate) fn compared(bound: &Bound) -> IndexExpr {
    let limit = match bound.has_lo() != bound.has_hi() {
        true if bound.has_hi() => bound.hi,
        false if !is_one_comparison(bound) => 0,
        _ => bound.lo,
    };
    bound.expr.offset(limit.saturating_neg())
}
