//! Loops as statements: what their variable goes over, and then their body.

use super::INDEX;
use super::emitter::Emitter;
use super::stmt::Arithmetic::{Add, Min};
use super::stmt::{Expr, LoopHint, Step, Stmt};
use super::variable::Var;
use crate::index::AxisId;

/// A loop without its body.
pub(super) struct Loop {
    var: Var,
    from: Expr,
    to: Expr,
    step: Step,
    hint: LoopHint,
}

/// `for (var = from; var < to; ++var)`.
pub(super) fn counting(
    var: impl Into<Var>,
    from: impl Into<Expr>,
    to: impl Into<Expr>,
    hint: LoopHint,
) -> Loop {
    stepping(var, (from, to), 1, hint)
}

/// `for (var = from; var < to; var += step)`.
pub(super) fn stepping(
    var: impl Into<Var>,
    (from, to): (impl Into<Expr>, impl Into<Expr>),
    step: impl Into<Expr>,
    hint: LoopHint,
) -> Loop {
    Loop { var: var.into(), from: from.into(), to: to.into(), step: Step::Add(step.into()), hint }
}

/// `for (var = from; var > 0; var /= 2)`.
pub(super) fn halving(var: Var, from: impl Into<Expr>, hint: LoopHint) -> Loop {
    Loop { var, from: from.into(), to: Expr::Int(0), step: Step::Halve, hint }
}

impl LoopHint {
    /// Whether the iterations are lanes.
    pub fn is_simd(self) -> bool {
        matches!(self, LoopHint::Simd | LoopHint::SimdSegment | LoopHint::SimdSpilling)
    }
}

impl Loop {
    /// The loop with a body.
    pub(super) fn of(self, body: Vec<Stmt>) -> Stmt {
        let Loop { var, from, to, step, hint } = self;
        Stmt::For { var, from, to, step, hint, body }
    }
}

impl<'k> Emitter<'k> {
    /// The statements that `emit` appends, in a scope of their own that binds some axes.
    pub(super) fn scope(&mut self, axes: &[AxisId], emit: impl FnOnce(&mut Emitter<'k>)) -> Vec<Stmt> {
        self.open(axes, false);
        emit(self);
        self.close()
    }

    /// The same of what must not be computed outside of them.
    pub(super) fn pinned(&mut self, emit: impl FnOnce(&mut Emitter<'k>)) -> Vec<Stmt> {
        self.open_pinned();
        emit(self);
        self.close()
    }

    /// Appends a loop over what `emit` appends.
    pub(super) fn repeat(&mut self, around: Loop, emit: impl FnOnce(&mut Emitter<'k>)) {
        self.repeat_along(&[], around, emit);
    }

    /// The same in a scope that binds some axes.
    pub(super) fn repeat_along(
        &mut self,
        axes: &[AxisId],
        around: Loop,
        emit: impl FnOnce(&mut Emitter<'k>),
    ) {
        let body = self.scope(axes, emit);
        self.push(around.of(body));
    }

    /// Appends a loop over stretches of so many positions, each of which begins at the first variable and ends at the second.
    pub(super) fn stretches(
        &mut self,
        [start, stop]: [Var; 2],
        (from, to): (impl Into<Expr>, &Expr),
        length: u64,
        emit: impl FnOnce(&mut Emitter<'k>),
    ) {
        self.repeat(stepping(start, (from, to), length, LoopHint::None), |emitter| {
            emitter.bind(stop, INDEX, start.then(Add, length).then(Min, to));
            emit(emitter);
        });
    }

    /// Appends a loop over what must not be computed outside of it.
    pub(super) fn repeat_pinned(&mut self, around: Loop, emit: impl FnOnce(&mut Emitter<'k>)) {
        let body = self.pinned(emit);
        self.push(around.of(body));
    }

    /// Appends what must not be computed elsewhere, under a condition if there is one.
    pub(super) fn under(&mut self, condition: Option<Expr>, emit: impl FnOnce(&mut Emitter<'k>)) {
        let then = self.pinned(emit);
        self.guarded(condition, then);
    }

    /// Closes the innermost scope as the body of `for (axis = 0; axis < extent; ++axis)`.
    pub(super) fn close_loop(&mut self, axis: AxisId, hint: LoopHint) {
        let (body, to) = (self.close(), self.extent(axis));
        self.push(counting(axis, 0, to, hint).of(body));
    }

    /// Appends statements.
    pub(super) fn append(&mut self, statements: Vec<Stmt>) {
        statements.into_iter().for_each(|stmt| self.push(stmt));
    }
}
