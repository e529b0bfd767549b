//! From memory to shared memory: a tile's elements are loaded, and what a factor is computed from them is put into a slot.

use super::plan::Factor;
use super::{Filled, Tile, WARP, Writer};
use crate::Scalar;
use crate::index::{AxisId, IndexExpr};
use crate::ir::{Kernel, ValueOp};
use crate::nest::INDEX;
use crate::nest::accumulate::{mul_add, set};
use crate::nest::emitter::Emitter;
use crate::nest::pointwise::unrolled_lanes;
use crate::nest::stmt::Arithmetic::{Add, Div, Less, Min, Mul, Rem, Sub, Xor};
use crate::nest::stmt::{Builtin, Copying, Expr, GROUP_LINE, Stmt, Type};
use crate::nest::variable::Var;
use crate::schedule::Unit;

/// Chunks of 16 bytes that all banks of shared memory hold: 32 of 4 bytes.
const BANK_CHUNKS: u64 = 8;

/// Terms of neighbouring threads that copy single elements.
const TERMS_OF_WARP: u64 = 8;

impl<'k> Writer<'k> {
    /// A loop over the thread's vectors of a step's tile. Each has bound its positions: `along` the terms, `across` the
    /// factor's own axes, and the axes themselves.
    pub(super) fn each_vector(
        &self,
        emitter: &mut Emitter<'k>,
        factor: &'k Factor,
        step: &Expr,
        body: impl FnOnce(&mut Emitter<'k>),
    ) {
        let (vector, one) = (Expr::Int(factor.vector), Expr::Int(1));
        let (of_term, of_own) = if factor.is_along { (vector, one) } else { (one, vector) };
        let deep = Expr::Int(self.plan.deep()).then(Div, of_term.clone());
        let width = Expr::Int(factor.width).then(Div, of_own.clone());
        emitter.using(&factor.kernel, |emitter| {
            emitter.open_pinned();
            let turn = self.turn(factor).then(Mul, self.plan.threads());
            emitter.bind(self.v.at, INDEX, Builtin::ThreadX.then(Add, turn));
            let at = |op, by: &Expr| self.v.at.then(op, by.clone());
            let (along, across) = match factor.is_along {
                // A warp has eight terms of four neighbours: in different banks.
                true if factor.is_copied && factor.vector == 1 && self.plan.deep() > TERMS_OF_WARP => {
                    let terms = Expr::Int(TERMS_OF_WARP);
                    let rest = self.v.at.then(Div, TERMS_OF_WARP * factor.width);
                    let (first, across) = (at(Rem, &terms), at(Div, &terms).then(Rem, width.clone()));
                    (first.then(Add, rest.then(Mul, terms)), across)
                }
                true => (at(Rem, &deep), at(Div, &deep)),
                false => (at(Div, &width), at(Rem, &width)),
            };
            emitter.bind(self.v.along, INDEX, along);
            emitter.bind(self.v.across, INDEX, across);
            // Beyond the last row, column or term is that one again.
            let within = |emitter: &Emitter, position: Expr, axes: &[AxisId], of: &Expr| {
                let last = emitter.positions(axes).then(Div, of.clone()).then(Sub, 1);
                position.then(Min, last)
            };
            let first = Expr::Name(if factor.is_left { self.v.row0 } else { self.v.column0 });
            let position = first.then(Div, of_own.clone()).then(Add, self.v.across);
            let position = within(emitter, position, &factor.axes, &of_own);
            emitter.bind(self.v.position, INDEX, position);
            emitter.unflatten(self.v.position, &factor.axes, if factor.is_along { 1 } else { factor.vector });
            emitter.bind(self.v.term, INDEX, mul_add(step.clone(), deep, self.v.along));
            let term = within(emitter, Expr::Name(self.v.term), &[self.plan.depth], &of_term);
            emitter.bind(self.plan.depth, INDEX, term.then(Mul, of_term));
            emitter.bind_axes(&[self.plan.depth]);
            if factor.is_along {
                emitter.multiples.insert(self.plan.depth, factor.vector as i64);
            }
            body(emitter);
            let body = emitter.close();
            let body = used(&factor.kernel, body);
            self.repeated(emitter, self.v.turn, factor.turns, body);
        });
    }

    /// Loads of a tile that nothing waits for yet.
    pub(super) fn fetch(&self, emitter: &mut Emitter<'k>, tile: &Tile<'k>, step: &Expr) {
        let factor = tile.factor;
        if factor.early.is_empty() {
            return;
        }
        self.each_vector(emitter, factor, step, |emitter| {
            let at = self.turn(factor).then(Mul, factor.vector);
            for (&id, &array) in factor.early.iter().zip(&tile.next) {
                match &factor.kernel.value(id).op {
                    ValueOp::Load { buffer, index, .. } if factor.vector > 1 => {
                        let lane = self.plan.lane();
                        let first = index.substitute(lane, &IndexExpr::zero(), &factor.kernel.ranges());
                        emitter.push(Stmt::VectorLoad {
                            array,
                            at: at.clone(),
                            buffer: (*buffer).into(),
                            index: Expr::Index(first),
                            dtype: factor.kernel.buffers[buffer.index()].dtype,
                            width: factor.vector,
                        });
                    }
                    _ => {
                        let value = emitter.value(id);
                        emitter.push(set(Expr::element(array, at.clone()), value));
                    }
                }
            }
        });
    }

    /// Begins to copy a tile into its slot of the shared memory, the first one without a name; terms beyond the last are zeros.
    pub(super) fn copy(&self, emitter: &mut Emitter<'k>, tile: &Tile<'k>, step: &Expr, slot: Option<Var>) {
        let factor = tile.factor;
        let ValueOp::Load { buffer, index, .. } = &factor.kernel.value(factor.value).op else { return };
        let first = index.substitute(self.plan.lane(), &IndexExpr::zero(), &factor.kernel.ranges());
        self.each_vector(emitter, factor, step, |emitter| {
            let copying = Copying {
                shared: tile.shared,
                at: self.in_slot(tile, slot, self.slot_of(factor, None)),
                buffer: (*buffer).into(),
                index: Expr::Index(first),
                dtype: self.plan.dtype(),
                width: factor.vector,
                condition: self.is_term(emitter, factor),
            };
            emitter.push(Stmt::BeginCopy(Box::new(copying)));
        });
    }

    fn in_slot(&self, tile: &Tile, slot: Option<Var>, at: Expr) -> Expr {
        let len = self.plan.tile_len(tile.factor);
        let at = match slot {
            Some(slot) => mul_add(slot, len, at),
            None => at,
        };
        match tile.filled {
            Filled::Ahead { steps } => mul_add(self.v.other, steps * len, at),
            _ => at,
        }
    }

    /// Whether the thread's vector is none beyond the last term, where that is not known.
    fn is_term(&self, emitter: &Emitter<'k>, factor: &Factor) -> Option<Expr> {
        if self.is_whole() {
            return None;
        }
        let of = if factor.is_along { factor.vector } else { 1 };
        let terms = emitter.extent(self.plan.depth).then(Div, of);
        Some(self.v.term.then(Less, terms))
    }

    /// Computes a tile of what has been loaded, and puts it into its slot of the shared memory, the first one without a
    /// name.
    pub(super) fn place(&self, emitter: &mut Emitter<'k>, tile: &Tile<'k>, step: &Expr, slot: Option<Var>) {
        let (factor, dtype) = (tile.factor, self.plan.dtype());
        let in_slot = |at: Expr| self.in_slot(tile, slot, at);
        self.each_vector(emitter, factor, step, |emitter| {
            let at = self.turn(factor).then(Mul, factor.vector);
            if factor.vector == 1 {
                let value = self.tile_value(emitter, tile, &at, None);
                emitter.push(set(Expr::element(tile.shared, in_slot(self.slot_of(factor, None))), value));
                return;
            }
            let width = factor.vector;
            // Whether a vector stays one.
            let is_line = !factor.is_along || self.plan.schedule.unit != Unit::Thread;
            let row = in_slot(self.slot_of(factor, None));
            let copy = |array, at| {
                let index = row.clone();
                Stmt::VectorStore { array, at, buffer: tile.shared, index, dtype, width }
            };
            if is_line && self.is_plain(factor) {
                return emitter.push(copy(tile.next[0], at));
            }
            let packed = is_line.then(|| {
                let var = emitter.fresh("packed");
                emitter.array(var, Type::Memory(dtype), width)
            });
            let lane = Expr::name(Var::Lane);
            emitter.open(&[self.plan.lane()], true);
            let value = self.tile_value(emitter, tile, &at, Some(&lane));
            let target = match packed {
                Some(packed) => Expr::element(packed, lane),
                None => Expr::element(tile.shared, in_slot(self.slot_of(factor, Some(lane)))),
            };
            emitter.push(set(target, value));
            let body = emitter.close();
            emitter.push(unrolled_lanes(width, body));
            if let Some(packed) = packed {
                emitter.push(copy(packed, Expr::Int(0)));
            }
        });
    }

    /// Where a thread's vector is in a tile, or an element of it.
    pub(super) fn slot_of(&self, factor: &Factor, lane: Option<Expr>) -> Expr {
        let (along, across) = (Expr::Name(self.v.along), Expr::Name(self.v.across));
        let width = Expr::Int(factor.vector);
        if self.plan.schedule.unit != Unit::Thread {
            let (line, vector) = if factor.is_along { (across, along) } else { (along, across) };
            if factor.vector == self.plan.group() {
                return self.chunk(factor, line, vector);
            }
            let (first, group) = (vector.then(Mul, width), Expr::Int(self.plan.group()));
            let chunk = first.clone().then(Div, group.clone());
            return self.chunk(factor, line, chunk).then(Add, first.then(Rem, group));
        }
        let pitch = Expr::Int(self.plan.pitch(factor));
        if self.plan.swaps(factor) {
            let (first, group) = (along.then(Mul, width), Expr::Int(self.plan.group()));
            let term = lane.map_or(first.clone(), |lane| first.then(Add, lane));
            let at = self.swapped(factor, &term, across.clone().then(Div, group.clone()));
            return mul_add(term, pitch, at.then(Add, across.then(Rem, group)));
        }
        match (factor.is_along, lane) {
            (true, Some(lane)) => mul_add(along.then(Mul, width).then(Add, lane), pitch, across),
            (true, None) => mul_add(along.then(Mul, width), pitch, across),
            (false, _) => mul_add(along, pitch, across.then(Mul, width)),
        }
    }

    /// Where a chunk of a term's line is in it, if chunks change places.
    pub(super) fn swapped(&self, factor: &Factor, term: &Expr, chunk: Expr) -> Expr {
        let group = self.plan.group();
        // Neighbouring threads have some terms of a chunk or two.
        let of_vector = (WARP * factor.vector / self.plan.deep() / group).max(1);
        let turn = term.clone().then(Div, factor.vector).then(Mul, of_vector);
        let turn = turn.then(Rem, BANK_CHUNKS.min(factor.width / group));
        Expr::Arithmetic(Xor, Box::new(chunk), Box::new(turn)).then(Mul, group)
    }

    /// Where a chunk of 16 bytes of a line of a tile of matrices is. Eight neighbouring lines have theirs in different banks:
    /// chunks change places within a line.
    pub(super) fn chunk(&self, factor: &Factor, line: Expr, chunk: Expr) -> Expr {
        if self.plan.schedule.unit.is_group() && !factor.is_along {
            // Lines of 64 elements, of all terms before those of the next 64.
            let of_line = GROUP_LINE / self.plan.group();
            let tile = chunk.clone().then(Div, of_line).then(Mul, self.plan.deep() * GROUP_LINE);
            return tile.then(Add, self.chunk_of(GROUP_LINE, line, chunk.then(Rem, of_line)));
        }
        self.chunk_of(self.plan.pitch(factor), line, chunk)
    }

    /// The same of lines of so many elements.
    pub(in crate::nest) fn chunk_of(&self, pitch: u64, line: Expr, chunk: Expr) -> Expr {
        let group = self.plan.group();
        let chunks = pitch / group;
        // Lines of fewer than eight chunks follow each other in a row of banks.
        let in_row = (BANK_CHUNKS / chunks).max(1);
        let turn = line.clone().then(Div, in_row).then(Rem, chunks.min(BANK_CHUNKS));
        let place = Expr::Arithmetic(Xor, Box::new(chunk), Box::new(turn));
        mul_add(line, pitch, place.then(Mul, group))
    }

    /// Whether what is loaded is the factor, and no term of a tile is beyond the last.
    pub(super) fn is_plain(&self, factor: &Factor) -> bool {
        let is_same = |id| match factor.kernel.value(id).op {
            ValueOp::Load { buffer, .. } => factor.kernel.buffers[buffer.index()].dtype == self.plan.dtype(),
            _ => false,
        };
        self.is_whole() && factor.early == [factor.value] && is_same(factor.value)
    }

    /// Whether the terms are whole tiles.
    pub(super) fn is_whole(&self) -> bool {
        let terms = self.plan.flat.axis(self.plan.depth);
        !terms.is_argument && terms.extent.is_multiple_of(self.plan.deep())
    }

    /// An element of the factor as it is in shared memory: 0 beyond the last term.
    pub(super) fn tile_value(
        &self,
        emitter: &mut Emitter<'k>,
        tile: &Tile<'k>,
        at: &Expr,
        lane: Option<&Expr>,
    ) -> Expr {
        let (factor, dtype) = (tile.factor, self.plan.contraction.dtype);
        for (&id, &array) in factor.early.iter().zip(&tile.next) {
            let element = match lane {
                Some(lane) => Expr::element(array, at.clone().then(Add, lane.clone())),
                None => Expr::element(array, at.clone()),
            };
            let value = match (&factor.kernel.value(id).op, lane) {
                (ValueOp::Load { buffer, .. }, Some(_)) => {
                    Expr::FromMemory(factor.kernel.buffers[buffer.index()].dtype, Box::new(element))
                }
                _ => element,
            };
            emitter.define(id, value);
        }
        let mut value = emitter.value(factor.value);
        let from = factor.kernel.value(factor.value).dtype;
        if from != dtype {
            value = Expr::Cast { from, to: dtype, operand: Box::new(value) };
        }
        if let Some(is_term) = self.is_term(emitter, factor) {
            let zero = Expr::Literal(Scalar::from_i64(dtype, 0));
            let named = emitter.named(value, dtype);
            value = Expr::Select(Box::new(is_term), Box::new(named), Box::new(zero));
        }
        Expr::ToMemory(self.plan.dtype(), Box::new(value))
    }
}

/// Without the variables at the beginning of a block that nothing in it uses.
fn used(kernel: &Kernel, body: Vec<Stmt>) -> Vec<Stmt> {
    let mut kept: Vec<Stmt> = Vec::with_capacity(body.len());
    for stmt in body.into_iter().rev() {
        match &stmt {
            Stmt::Let { var, .. } if !kept.iter().any(|user| uses(kernel, user, *var)) => {}
            _ => kept.push(stmt),
        }
    }
    kept.reverse();
    kept
}

fn uses(kernel: &Kernel, stmt: &Stmt, var: Var) -> bool {
    let of_index = |index: &IndexExpr| index.axes().iter().any(|&axis| kernel.position(axis) == var);
    let mut found = stmt.vars().contains(&&var);
    for expr in stmt.expressions() {
        expr.visit(&mut |expr| {
            found |= expr.var() == Some(&var)
                || match expr {
                    Expr::Index(index) | Expr::Position(index) | Expr::Random { index, .. } => {
                        of_index(index)
                    }
                    Expr::InBounds(bounds) => bounds.iter().any(|bound| of_index(&bound.expr)),
                    _ => false,
                };
        });
    }
    found || stmt.bodies().into_iter().any(|body| body.iter().any(|stmt| uses(kernel, stmt, var)))
}
