//! Values as expressions: each is computed once, in the outermost scope that binds all of its axes.

use crate::cost::WORTH_KEEPING;
use crate::index::{AxisId, IndexExpr};
use crate::ir::{AxisKind, BufferId, Kernel, ValueId, ValueOp};
use crate::nest::accumulate::Accumulator;
use crate::nest::stmt::{Expr, LoopHint, Stmt, Type};
use crate::nest::variable::Var;
use crate::ops::Spelling;
use crate::schedule::operations;
use crate::{BinaryOp, DType, Language, Scalar, UnaryOp};

use super::{Emitter, Scope};

/// A divisor's reciprocal is worth its test and its own division for so many elements.
const SHARE_DIVISOR: u64 = 8;

/// Stack that one step of the recursion may need, and what is added when it runs out.
const STACK_RESERVE: usize = 128 << 10;

const STACK_STEP: usize = 2 << 20;

/// Single-use expressions of at most this many operations stand where they are used.
const INLINE_LIMIT: usize = 3;

/// In-thread reductions with at most this many positions are unrolled: a 5×5 window.
const UNROLL_LIMIT: u64 = 25;

/// In C, unrolled loops in each other make at most this many copies: compilers take long over more.
const MOST_COPIES: u64 = 64;

/// Simple operations of all copies of the functions in such a loop, on the CPU: they are pasted.
const MOST_OF_FUNCTIONS: f64 = 256.0;

/// Reductions of one loop: their partial results stay in registers.
pub(in crate::nest) const MOST_IN_LOOP: usize = 4;

/// Candidates for one loop that are compared: what each is computed from is searched.
const MOST_COMPARED: usize = 8;

impl Emitter<'_> {
    /// A name for the expression: its own, or that of a new variable.
    pub(in crate::nest) fn named(&mut self, expr: Expr, dtype: DType) -> Expr {
        if let Expr::Name(_) | Expr::Literal(_) = expr {
            return expr;
        }
        let var = self.fresh("v");
        Expr::Name(self.bind(var, Type::Register(dtype), expr))
    }

    /// The expression without calls of the vectorised functions: with one, it gets a name.
    fn called_before(&mut self, expr: Expr, dtype: DType) -> Expr {
        if calls(&expr) { self.named(expr, dtype) } else { expr }
    }

    /// States what a value is that a schedule has computed by other means.
    pub(in crate::nest) fn define(&mut self, id: ValueId, expr: Expr) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.values.insert(id, expr);
        }
    }

    /// Whether it is known what a value is, without computing it.
    pub(in crate::nest) fn is_defined(&self, id: ValueId) -> bool {
        self.scopes.iter().any(|scope| scope.values.contains_key(&id))
    }

    /// States where the elements are that loops before this one have left: they vary in the innermost scope.
    pub(in crate::nest) fn define_elements(&mut self) {
        let elements = self.elements.clone();
        self.find(&elements);
    }

    /// Arrays of so many elements, one for each of these values: the element that is at a slot.
    pub(in crate::nest) fn elements_of(
        &mut self,
        ids: &[ValueId],
        name: &'static str,
        length: u64,
        slot: &Expr,
    ) -> Vec<(ValueId, Expr)> {
        let element = |&id: &ValueId| {
            let (name, ty) = (self.fresh(name), Type::Register(self.kernel.value(id).dtype));
            (id, Expr::element(self.array(name, ty, length), slot))
        };
        ids.iter().map(element).collect()
    }

    /// Leaves values in elements of arrays, for a loop further on.
    pub(in crate::nest) fn leave(&mut self, elements: &[(ValueId, Expr)]) {
        self.expecting(elements.iter().map(|(id, _)| *id), |emitter| {
            for (id, target) in elements {
                let value = emitter.value(*id);
                emitter.push(Stmt::Assign { target: target.clone(), value });
            }
        });
    }

    /// States where values are that a loop before has left.
    pub(in crate::nest) fn find(&mut self, elements: &[(ValueId, Expr)]) {
        elements.iter().for_each(|(id, element)| self.define(*id, element.clone()));
    }

    /// Appends all stores of a kernel.
    pub(in crate::nest) fn store_all(&mut self, kernel: &Kernel) {
        self.expecting(kernel.stores.iter().map(|store| store.value), |emitter| {
            kernel.stores.iter().for_each(|store| emitter.store(store));
        });
    }

    /// Emits what asks for these values, so that reductions beside each other go through one loop.
    pub(in crate::nest) fn expecting(
        &mut self,
        ids: impl IntoIterator<Item = ValueId>,
        emit: impl FnOnce(&mut Self),
    ) {
        let kernel = self.kernel;
        let is_reduction = |id: &ValueId| matches!(kernel.value(*id).op, ValueOp::Reduce { .. });
        let reductions = kernel.down_from(ids).into_iter().filter(is_reduction).collect();
        let before = std::mem::replace(&mut self.reductions, reductions);
        emit(self);
        self.reductions = before;
    }

    /// An expression for a value, valid in the innermost scope; what it needs is computed before.
    pub(in crate::nest) fn value(&mut self, id: ValueId) -> Expr {
        if let Some(expr) = self.scopes.iter().rev().find_map(|scope| scope.values.get(&id)) {
            return expr.clone();
        }
        let kernel = self.kernel;
        let home = self.home(&kernel.value(id).axes);
        let deeper = self.scopes.split_off(home + 1);
        // As deep as the kernel's longest chain of operations: on whatever stack the caller has.
        let is_swept = self.is_swept(id);
        let cache = self.cached_value(id).filter(|_| is_swept);
        let is_to_keep = is_swept && self.is_to_keep(id);
        let is_there = cache.is_some();
        let expr =
            cache.unwrap_or_else(|| stacker::maybe_grow(STACK_RESERVE, STACK_STEP, || self.compute(id)));
        let keep = deeper.is_empty() && self.uses[id.index()] <= 1 && size(&expr) <= INLINE_LIMIT;
        let simple = matches!(expr, Expr::Name(_) | Expr::Literal(_));
        let is_named = is_there || is_to_keep || matches!(kernel.value(id).op, ValueOp::Load { .. });
        let expr = match simple || keep && !is_named {
            true => expr,
            false => {
                let var = self.fresh(prefix(&kernel.value(id).op));
                Expr::Name(self.bind(var, Type::Register(kernel.value(id).dtype), expr))
            }
        };
        if is_to_keep {
            self.keep_value(id, &expr);
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.values.insert(id, expr.clone());
        }
        self.scopes.extend(deeper);
        expr
    }

    fn compute(&mut self, id: ValueId) -> Expr {
        let kernel = self.kernel;
        let value = kernel.value(id);
        // What copied an element asked for its position.
        if self.staged_element(id).is_none() {
            value.op.indices().into_iter().for_each(|index| self.bind_computed(index));
        }
        if let (ValueOp::Select(..), Some(staged)) = (&value.op, self.staged_element(id)) {
            return staged;
        }
        match &value.op {
            ValueOp::Load { buffer, index, guard } => self.load(id, *buffer, index, *guard),
            ValueOp::Literal(scalar) => Expr::Literal(*scalar),
            ValueOp::Argument(argument) => Expr::name(*argument),
            ValueOp::Position(index) => Expr::Position(index.clone()),
            ValueOp::InBounds(bounds) => Expr::InBounds(bounds.to_vec()),
            ValueOp::Random { seed, index } => {
                Expr::Random { dtype: value.dtype, seed: Var::from(*seed), index: index.clone() }
            }
            ValueOp::Unary(op, a) => {
                let dtype = kernel.value(*a).dtype;
                let operand = self.value(*a);
                // Spelled with the operand twice: it gets a name.
                let repeats = matches!(op, UnaryOp::Relu | UnaryOp::Square | UnaryOp::Abs | UnaryOp::Sign);
                let operand = if repeats { self.named(operand, dtype) } else { operand };
                Expr::Unary(*op, dtype, Box::new(operand))
            }
            ValueOp::Binary(op, a, b) => {
                let (dtype, divisor) = (kernel.value(*a).dtype, *b);
                let (a, b) = (self.value(*a), self.value(*b));
                let repeats = match op {
                    BinaryOp::Maximum | BinaryOp::Minimum | BinaryOp::Shl | BinaryOp::Shr => true,
                    BinaryOp::Fmax | BinaryOp::Fmin => dtype.is_int(),
                    _ => false,
                };
                let (a, b) = match repeats {
                    true => (self.named(a, dtype), self.named(b, dtype)),
                    false => (a, b),
                };
                match *op == BinaryOp::Div && self.shares_divisor(id, divisor) {
                    true => Expr::Quotient(dtype, Box::new([a, b])),
                    false => Expr::Binary(*op, dtype, Box::new(a), Box::new(b)),
                }
            }
            ValueOp::Select(condition, a, b) if self.is_guarded_already(*condition, *a, *b) => self.value(*a),
            ValueOp::Select(condition, a, b) => {
                let condition = self.value(*condition);
                let (a, b) = (self.value(*a), self.value(*b));
                // No vector calls a function in a branch.
                let (a, b) = match self.language == Language::C {
                    true => (self.called_before(a, value.dtype), self.called_before(b, value.dtype)),
                    false => (a, b),
                };
                Expr::Select(Box::new(condition), Box::new(a), Box::new(b))
            }
            ValueOp::Cast(to, a) => {
                Expr::Cast { from: kernel.value(*a).dtype, to: *to, operand: Box::new(self.value(*a)) }
            }
            // Schedules define these before anything asks for them.
            ValueOp::Scan { .. } | ValueOp::Carry { .. } | ValueOp::Last { .. } => {
                self.misfit("a scan outside of its loop")
            }
            ValueOp::Scatter { .. } => self.misfit("a scatter outside of its loop"),
            ValueOp::Sort { .. } => self.misfit("a sort outside of its loop"),
            ValueOp::Reduce { axes, .. } => self.reduce_in_thread(id, axes),
        }
    }

    /// Whether a choice between what is loaded under that condition and zero is the load: what it leaves out is zero.
    fn is_guarded_already(&self, condition: ValueId, a: ValueId, b: ValueId) -> bool {
        let is_zero = |id: ValueId| match self.kernel.value(id).op {
            ValueOp::Literal(scalar) => scalar == Scalar::from_i64(self.kernel.value(a).dtype, 0),
            _ => false,
        };
        let is_guarded = match self.kernel.value(a).op {
            ValueOp::Load { guard, .. } => guard == Some(condition),
            _ => false,
        };
        is_guarded && is_zero(b) && !self.staged.contains_key(&a)
    }

    /// Whether a thread divides element after element of a row by what is the same for the row.
    fn shares_divisor(&self, id: ValueId, divisor: ValueId) -> bool {
        let is_text = matches!(self.kernel.value(divisor).op, ValueOp::Literal(_));
        let dtype = self.kernel.value(divisor).dtype.compute();
        self.language == Language::Cuda
            && dtype == DType::F32
            && !is_text
            && self.is_swept(id)
            && !self.is_swept(divisor)
            && self.swept_by_thread().is_none_or(|elements| elements >= SHARE_DIVISOR)
    }

    /// An element of a buffer, or of the array that has it already.
    fn load(&mut self, id: ValueId, buffer: BufferId, index: &IndexExpr, guard: Option<ValueId>) -> Expr {
        let kernel = self.kernel;
        let condition = guard.map(|guard| self.value(guard));
        if let Some(element) = self.cached_load(id, buffer, index) {
            return element;
        }
        if let Some(staged) = self.staged_element(id) {
            return staged;
        }
        let in_tile = match self.language {
            Language::Cuda => self.tile_load(buffer, index, guard),
            Language::C => None,
        };
        let element = in_tile.unwrap_or_else(|| {
            let raw = Expr::element(buffer, Expr::Index(index.clone()));
            Expr::FromMemory(kernel.buffers[buffer.index()].dtype, Box::new(raw))
        });
        match condition {
            None => element,
            Some(guard) => {
                let zero = Expr::Literal(Scalar::from_i64(kernel.value(id).dtype, 0));
                Expr::Select(Box::new(guard), Box::new(element), Box::new(zero))
            }
        }
    }

    /// The element of a staged array that a value is.
    fn staged_element(&self, id: ValueId) -> Option<Expr> {
        let staged = self.staged.get(&id)?;
        let slot = staged.slot.as_ref().or(self.staged_slot.as_ref())?;
        let element = Expr::element(staged.array, slot.clone());
        Some(Expr::FromMemory(staged.dtype, Box::new(element)))
    }

    /// Variables for the computed axes in an index: each is bound in the outermost scope that knows its value.
    pub(in crate::nest) fn bind_computed(&mut self, index: &IndexExpr) {
        let kernel = self.kernel;
        for (axis, value) in kernel.computed_axes(index) {
            let AxisKind::Computed { check, .. } = kernel.axis(axis).kind else { continue };
            if self.scopes.iter().any(|scope| scope.computed.contains(&axis)) {
                continue;
            }
            let home = self.home(&kernel.value(value).axes);
            let deeper = self.scopes.split_off(home + 1);
            let position = Box::new(self.value(value));
            let extent = Box::new(self.extent(axis));
            self.bind(axis, Type::Index, Expr::Checked { position, extent, check });
            if let Some(scope) = self.scopes.last_mut() {
                scope.computed.push(axis);
            }
            self.scopes.extend(deeper);
        }
    }

    /// Leaves positions that are looked up in elements of arrays, for a loop further on.
    pub(in crate::nest) fn leave_positions(&mut self, positions: &[(AxisId, Expr)]) {
        for (axis, target) in positions {
            self.bind_computed(&IndexExpr::axis(*axis));
            self.push(Stmt::Assign { target: target.clone(), value: Expr::name(*axis) });
        }
    }

    /// States where positions are that a loop before has looked up.
    pub(in crate::nest) fn find_positions(&mut self, positions: &[(AxisId, Expr)]) {
        for (axis, element) in positions {
            self.bind(*axis, Type::Index, element.clone());
            if let Some(scope) = self.scopes.last_mut() {
                scope.computed.push(*axis);
            }
        }
    }

    /// Simple operations of the functions that a step of such a loop has.
    fn functions(&self, id: ValueId, axes: &[AxisId]) -> f64 {
        let varies = |id: &ValueId| self.kernel.value(*id).axes.iter().any(|axis| axes.contains(axis));
        let is_function =
            |id: &ValueId| matches!(self.kernel.value(*id).op, ValueOp::Unary(..) | ValueOp::Binary(..));
        let below = self.kernel.down_from([id]).into_iter().filter(|id| varies(id) && is_function(id));
        below.map(|id| operations(self.kernel, id)).filter(|&each| each >= WORTH_KEEPING).sum()
    }

    /// A loop of this thread alone, unrolled if it is short.
    fn reduce_in_thread(&mut self, id: ValueId, axes: &[AxisId]) -> Expr {
        let kernel = self.kernel;
        let positions: u64 = axes.iter().map(|&axis| kernel.axis(axis).extent).product();
        let around = self.scopes.iter().filter(|scope| scope.unrolled).flat_map(Scope::axes);
        let copies = around.map(|&axis| kernel.axis(axis).extent).fold(positions, u64::saturating_mul);
        let unrolled = positions <= UNROLL_LIMIT
            && !axes.iter().any(|&axis| kernel.axis(axis).is_argument)
            && (self.language == Language::Cuda
                || !self.rolled
                    && copies <= MOST_COPIES
                    && self.functions(id, axes) * copies as f64 <= MOST_OF_FUNCTIONS);
        let together = self.beside_in_loop(id, axes);
        let accumulators: Vec<(ValueId, Accumulator)> = together
            .into_iter()
            .filter_map(|id| Accumulator::of(self, kernel, id, None).map(|accumulator| (id, accumulator)))
            .collect();
        for &axis in axes {
            self.open(&[axis], unrolled);
        }
        let outside = self.reducing.len();
        self.reducing.extend(accumulators.iter().map(|(id, _)| *id));
        for (id, accumulator) in &accumulators {
            accumulator.take(self, *id, None, None);
        }
        self.reducing.truncate(outside);
        for &axis in axes.iter().rev() {
            self.close_loop(axis, if unrolled { LoopHint::Unroll } else { LoopHint::None });
        }
        let mut result = None;
        for (own, accumulator) in accumulators {
            accumulator.settle(self, None);
            let value = accumulator.result(None);
            match own == id {
                true => result = Some(value),
                false => self.define(own, value),
            }
        }
        result.unwrap_or_else(|| self.misfit("no reduction"))
    }

    /// A reduction and those beside it that go along the same axes, read the same elements, and are asked for here too: one loop
    /// computes what they have in common once. None of them waits for one whose loop is being made.
    fn beside_in_loop(&self, id: ValueId, axes: &[AxisId]) -> Vec<ValueId> {
        let kernel = self.kernel;
        let is_beside = |other: &ValueId| {
            let value = kernel.value(*other);
            let goes_along = matches!(&value.op, ValueOp::Reduce { axes: own, .. } if own[..] == *axes);
            let is_there = || self.is_defined(*other) || self.is_to_keep(*other);
            *other != id && goes_along && value.axes == kernel.value(id).axes && !is_there()
        };
        let candidates: Vec<ValueId> =
            self.reductions.iter().copied().filter(is_beside).take(MOST_COMPARED).collect();
        if candidates.is_empty() {
            return vec![id];
        }
        let below = |id: ValueId| kernel.down_from(kernel.operands(&kernel.value(id).op));
        let mut together = vec![(id, below(id))];
        for other in candidates {
            if together.len() == MOST_IN_LOOP {
                break;
            }
            let of_other = below(other);
            if self.reducing.iter().any(|one| *one == other || of_other.contains(one)) {
                continue;
            }
            let is_apart =
                together.iter().all(|(one, of_one)| !of_one.contains(&other) && !of_other.contains(one));
            let shares = |id: &ValueId| {
                let value = kernel.value(*id);
                of_other.contains(id)
                    && matches!(value.op, ValueOp::Load { .. })
                    && axes.iter().any(|axis| value.axes.contains(axis))
            };
            if is_apart && together[0].1.iter().any(shares) {
                together.push((other, of_other));
            }
        }
        together.sort_by_key(|(id, _)| *id);
        together.into_iter().map(|(id, _)| id).collect()
    }

    /// Appends `buffer[index] = value` for one store.
    pub(in crate::nest) fn store(&mut self, store: &crate::ir::Store) {
        let value = self.stored(store);
        let target = Expr::element(store.buffer, Expr::Index(store.index.clone()));
        self.push(Stmt::Assign { target, value });
    }

    /// The value that a store takes.
    pub(in crate::nest) fn stored_value(&self, store: &crate::ir::Store) -> ValueId {
        let kernel = self.kernel;
        let dtype = kernel.buffers[store.buffer.index()].dtype;
        match kernel.value(store.value).op {
            // Storing rounds to a 16-bit float by itself.
            ValueOp::Cast(to, operand)
                if to == dtype
                    && to != to.compute()
                    && kernel.value(operand).dtype == to.compute()
                    && self.uses[store.value.index()] == 1 =>
            {
                operand
            }
            _ => store.value,
        }
    }

    /// A store's value as it is in memory.
    pub(in crate::nest) fn stored(&mut self, store: &crate::ir::Store) -> Expr {
        let dtype = self.kernel.buffers[store.buffer.index()].dtype;
        let value = self.stored_value(store);
        Expr::ToMemory(dtype, Box::new(self.value(value)))
    }
}

fn prefix(op: &ValueOp) -> &'static str {
    match op {
        ValueOp::Load { .. } => "x",
        ValueOp::InBounds(_) => "inside",
        ValueOp::Literal(_)
        | ValueOp::Argument(_)
        | ValueOp::Position(_)
        | ValueOp::Random { .. }
        | ValueOp::Unary(..)
        | ValueOp::Binary(..)
        | ValueOp::Select(..)
        | ValueOp::Cast(..)
        | ValueOp::Scan { .. }
        | ValueOp::Carry { .. }
        | ValueOp::Last { .. }
        | ValueOp::Scatter { .. }
        | ValueOp::Sort { .. }
        | ValueOp::Reduce { .. } => "v",
    }
}

/// Operations in an expression.
fn size(expr: &Expr) -> usize {
    match expr {
        Expr::Name(_) | Expr::Int(_) | Expr::Literal(_) | Expr::Builtin(_) => 0,
        Expr::Index(_) | Expr::Position(_) => 1,
        Expr::InBounds(bounds) => bounds.len() * 2,
        Expr::Random { .. } | Expr::Checked { .. } | Expr::Sort { .. } | Expr::ZeroTimes(..) => 4,
        Expr::Unary(_, _, a) | Expr::BriefExp(a) | Expr::Cast { operand: a, .. } | Expr::Element(_, a) => {
            1 + size(a)
        }
        Expr::FromMemory(_, a) | Expr::ToMemory(_, a) | Expr::Wide(a) | Expr::ToIndex(a) => size(a),
        Expr::Binary(_, _, a, b) | Expr::Arithmetic(_, a, b) => 1 + size(a) + size(b),
        Expr::Quotient(_, operands) => 1 + operands.iter().map(size).sum::<usize>(),
        Expr::MulAdd(_, operands) => 1 + operands.iter().map(size).sum::<usize>(),
        Expr::Select(condition, a, b) => 1 + size(condition) + size(a) + size(b),
        Expr::Votes(condition) | Expr::VotesBefore(condition) => 1 + size(condition),
        Expr::ShuffleXor { value, .. } | Expr::ShuffleUp { value, .. } => 1 + size(value),
    }
}

/// Whether the expression calls a function that may be one of the text's own.
fn calls(expr: &Expr) -> bool {
    match expr {
        Expr::Unary(op, _, a) => op.spelling() == Spelling::Vectorised || calls(a),
        Expr::Binary(op, _, a, b) => op.spelling() == Spelling::Vectorised || calls(a) || calls(b),
        Expr::Select(condition, a, b) => calls(condition) || calls(a) || calls(b),
        Expr::Cast { operand, .. } => calls(operand),
        _ => false,
    }
}
