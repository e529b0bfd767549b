//! From shared memory to sums: by single elements, by small matrices, and added up where the terms are split among blocks.

use super::{Filled, Tile, Writer};
use crate::ir::ValueId;
use crate::nest::INDEX;
use crate::nest::Parameter;
use crate::nest::accumulate::{mul_add, set};
use crate::nest::emitter::Emitter;
use crate::nest::lifted::{combined, of_factor, with_lifted};
use crate::nest::loops::counting;
use crate::nest::split::{Parts, all_parts, own_part};
use crate::nest::stmt::Arithmetic::{Add, Div, Less, Min, Mul, Rem, Sub};
use crate::nest::stmt::{
    Builtin, Expr, GROUP_LINE, GROUP_ROWS, GROUP_TERMS, GroupFactor, GroupProduct, Lines, LoopHint,
    MatrixProduct, Stmt, Type,
};
use crate::nest::variable::Var;
use crate::schedule::{Contraction, Instruction, Product};
use crate::{BinaryOp, DType, ReduceOp};

/// Elements of a 16 × 16 matrix that a thread has.
const OWN_PART: u64 = 8;

/// Products of a thread's unrolled loop over the terms of a tile.
const MOST_UNROLLED: u64 = 1024;

impl<'k> Writer<'k> {
    /// Adds the products of the tiles in the slot to the sums.
    pub(super) fn multiply(&self, emitter: &mut Emitter, tiles: &[Tile], sums: &[Var], first: &Expr) {
        let (dtype, group) = (self.plan.contraction.dtype, self.plan.group());
        emitter.open(&[], false);
        let mut parts: Vec<Var> = Vec::new();
        for tile in tiles {
            let (factor, pitch) = (tile.factor, self.plan.pitch(tile.factor));
            let part = emitter.fresh(if factor.is_left { "a" } else { "b" });
            parts.push(emitter.array(part, Type::Memory(dtype), factor.of_thread));
            let own = Expr::Name(if factor.is_left { self.v.y } else { self.v.x });
            for first in (0..factor.of_thread).step_by(group as usize) {
                // A thread's vectors are as far from each other as all threads' are wide.
                let first_chunk = first * (factor.width / factor.of_thread) / group;
                let chunk = Expr::Int(first_chunk).then(Add, own.clone());
                let at = match self.plan.swaps(factor) {
                    true => self.swapped(factor, &Expr::Name(self.v.k), chunk),
                    false => Expr::Int(first_chunk * group).then(Add, own.clone().then(Mul, group)),
                };
                let at = mul_add(self.v.k, pitch, at);
                let term = || mul_add(self.v.step, self.plan.deep(), self.v.k);
                let is_computed = tile.filled == Filled::Computed;
                let index =
                    if is_computed { self.weight(factor.width, term()) } else { self.of_slot(tile, at) };
                emitter.push(Stmt::VectorLoad {
                    array: part_of(&parts),
                    at: Expr::Int(first),
                    buffer: tile.shared,
                    index,
                    dtype,
                    width: group,
                });
            }
        }
        let part = |value: ValueId, is_left: bool| {
            let is_own = |tile: &Tile| (tile.factor.value, tile.factor.is_left) == (value, is_left);
            tiles.iter().position(is_own).map(|number| parts[number])
        };
        let term = || mul_add(first.clone().then(Add, self.v.step), self.plan.deep(), self.v.k);
        let lifts = || self.plan.contraction.products.iter().filter_map(|product| product.lift);
        if lifts().any(|lift| lift.has_others) {
            let last = emitter.positions(&[self.plan.depth]).then(Sub, 1);
            emitter.bind(self.plan.depth, INDEX, term().then(Min, last));
            emitter.bind_axes(&[self.plan.depth]);
        }
        emitter.open(&[], true);
        for (product, &sums) in self.plan.contraction.products.iter().zip(sums) {
            let (Some(a), Some(b)) = (part(product.left, true), part(product.right, false)) else { continue };
            self.add_product(emitter, product, [a, b], sums);
        }
        let columns = Expr::Int(self.plan.schedule.own_columns.into());
        let body = vec![counting(self.v.j, 0, columns, LoopHint::Unroll).of(emitter.close())];
        let rows = Expr::Int(self.plan.schedule.own_rows.into());
        let body = counting(self.v.i, 0, rows, LoopHint::Unroll).of(body);
        // The product of zeros is nothing, which other lifts of them are not.
        let is_term = (lifts().next().is_some() && !self.is_whole())
            .then(|| term().then(Less, emitter.extent(self.plan.depth)));
        emitter.guarded(is_term, vec![body]);
        let body = emitter.close();
        let deep = Expr::Int(self.plan.deep());
        // All terms of a tile, so that what the next ones need is read while these are added; what is lifted is longer text.
        let operations = self.sums_of_thread() * self.plan.deep() * sums.len() as u64;
        let is_short = operations <= MOST_UNROLLED && lifts().next().is_none();
        let hint =
            if is_short || self.sums_of_thread() <= 32 { LoopHint::Unroll } else { LoopHint::UnrollBy(2) };
        emitter.push(counting(self.v.k, 0, deep, hint).of(body));
    }

    /// Adds the product of a thread's elements to one of its sums, or combines what they are lifted to with it.
    fn add_product(&self, emitter: &mut Emitter, product: &Product, [a, b]: [Var; 2], sums: Var) {
        let Contraction { dtype, sum: wide, rows, lines, column, .. } = self.plan.contraction;
        let (i, j) = (Expr::Name(self.v.i), Expr::Name(self.v.j));
        let columns = Expr::Int(self.plan.schedule.own_columns.into());
        let factor =
            |array: Var, at: &Expr| Expr::FromMemory(*dtype, Box::new(Expr::element(array, at.clone())));
        let sum = Expr::element(sums, mul_add(i.clone(), columns, j.clone()));
        let (a, b) = (factor(a, &i), factor(b, &j));
        let Some(lift) = product.lift else {
            let value = self.plus_product(sum.clone(), a, b);
            return emitter.push(set(sum, value));
        };
        let kernel = self.plan.flat;
        let mut axes = vec![*column];
        axes.extend(rows.iter().chain(lines));
        emitter.open(&axes, true);
        emitter.define(product.left, of_factor(kernel, product.left, *dtype, a));
        emitter.define(product.right, of_factor(kernel, product.right, *dtype, b));
        let value = with_lifted(emitter, lift, *wide, sum.clone());
        emitter.push(set(sum, value));
        let body = emitter.close();
        emitter.append(body);
    }

    pub(super) fn plus_product(&self, sum: Expr, a: Expr, b: Expr) -> Expr {
        let Contraction { dtype, sum: wide, .. } = *self.plan.contraction;
        if dtype == wide {
            return Expr::MulAdd(dtype, Box::new([a, b, sum]));
        }
        let product = Expr::Binary(BinaryOp::Mul, dtype, Box::new(a), Box::new(b));
        let product = Expr::Cast { from: dtype, to: wide, operand: Box::new(product) };
        Expr::Binary(BinaryOp::Add, wide, Box::new(sum), Box::new(product))
    }

    /// Every block leaves its sums; the last one of a tile adds all up in order.
    pub(super) fn merge_splits(&self, emitter: &mut Emitter, sums: &[Var]) {
        let threads = Expr::Int(self.plan.threads());
        // Neighbouring threads leave neighbouring elements.
        let place = |part: Expr, n: Expr| {
            let part = mul_add(Builtin::BlockX, all_parts(), part);
            let n = mul_add(part, self.sums_of_thread(), n);
            mul_add(n, threads.clone(), Builtin::ThreadX)
        };
        for (number, &sums) in sums.iter().enumerate() {
            let space = Parameter::Workspace(number);
            self.each_sum(emitter, |n| {
                let target = Expr::element(space, place(own_part(), n.clone()));
                vec![set(target, Expr::element(sums, n))]
            });
        }
        self.arrivals.arrive(emitter);
        let products = &self.plan.contraction.products;
        for (product, &sums) in products.iter().zip(sums) {
            self.clear(emitter, sums, product.lift);
        }
        let dtype = self.plan.contraction.sum;
        Parts::all(all_parts()).merge(emitter, |emitter, part| {
            for (number, (product, &sums)) in products.iter().zip(sums).enumerate() {
                let space = Parameter::Workspace(number);
                let op = product.lift.map_or(ReduceOp::Sum, |lift| lift.op);
                self.each_sum(emitter, |n| {
                    let part = Expr::element(space, place(part.clone(), n.clone()));
                    let sum = Expr::element(sums, n);
                    vec![set(sum.clone(), combined(op, dtype, sum, part))]
                });
            }
        });
        self.arrivals.reset_by(emitter, Expr::Builtin(Builtin::ThreadX));
    }

    /// Begins to add the products of the tiles in the slot to the sums, as a group of warps.
    pub(super) fn multiply_groups(&self, emitter: &mut Emitter, tiles: &[Tile], sums: &[Var]) {
        let schedule = self.plan.schedule;
        let Some(dtype) = schedule.unit.matrices() else { return };
        let factor = |tile: &Tile| {
            let factor = tile.factor;
            if tile.filled == Filled::Computed {
                return GroupFactor { array: tile.shared, at: self.own_part(), lines: Lines::Own };
            }
            let turned = !factor.is_along;
            // The warp's own is a quarter of the group's rows.
            let own = match factor.is_left {
                true => self.v.warp_row.then(Div, GROUP_ROWS),
                false => self.v.warp_column.then(Div, GROUP_ROWS),
            };
            let term = self.v.k.then(Mul, if turned { GROUP_TERMS * GROUP_LINE } else { GROUP_TERMS });
            let at = mul_add(own, GROUP_ROWS * self.plan.deep(), term);
            let lines = if turned { Lines::Turned } else { Lines::Along };
            GroupFactor { array: tile.shared, at: self.of_slot(tile, at), lines }
        };
        let of = |value: ValueId, is_left: bool| {
            let is_own = move |tile: &&Tile| (tile.factor.value, tile.factor.is_left) == (value, is_left);
            tiles.iter().filter(is_own).map(factor)
        };
        let mut body = Vec::new();
        for (product, &sums) in self.plan.contraction.products.iter().zip(sums) {
            let Some(right) = of(product.right, false).next() else { continue };
            // One, or those that a factor is the sum of.
            for left in of(product.left, true) {
                let (columns, right, sums_at) = (schedule.own_columns, right.clone(), Expr::Int(0));
                let product = GroupProduct { dtype, columns, left, right, sums, sums_at };
                body.push(Stmt::MultiplyGroup(Box::new(product)));
            }
        }
        let terms = Expr::Int(self.plan.deep() / GROUP_TERMS);
        emitter.push(counting(self.v.k, 0, terms, LoopHint::Unroll).of(body));
    }

    /// Where the terms at hand are among those that a thread has itself.
    fn own_part(&self) -> Expr {
        mul_add(self.v.step, self.plan.deep() / GROUP_TERMS, self.v.k).then(Mul, OWN_PART)
    }

    /// A place in the tile of the step at hand.
    fn of_slot(&self, tile: &Tile, at: Expr) -> Expr {
        let len = self.plan.tile_len(tile.factor);
        match tile.filled {
            Filled::InTurns => mul_add(self.v.slot, len, at),
            Filled::Before | Filled::Computed => mul_add(self.v.step, len, at),
            Filled::Ahead { steps } => mul_add(self.v.slot, steps * len, mul_add(self.v.step, len, at)),
        }
    }

    /// Adds the products of the tiles in the slot to the sums, a small matrix of each at a time.
    pub(super) fn multiply_matrices(&self, emitter: &mut Emitter, tiles: &[Tile], sums: &[Var]) {
        let Some(of) = self.plan.schedule.unit.matrices().and_then(Instruction::for_factors) else { return };
        let int = |n: u32| Expr::Int(n.into());
        emitter.open(&[], false);
        let mut part = |tile: &Tile| match tile.filled {
            Filled::Computed => tile.shared,
            _ => self.load_matrices(emitter, tile, of),
        };
        let parts: Vec<(Var, Filled)> = tiles.iter().map(|tile| (part(tile), tile.filled)).collect();
        let parts_of = |value: ValueId, is_left: bool| {
            let is_own = move |tile: &Tile| (tile.factor.value, tile.factor.is_left) == (value, is_left);
            tiles.iter().zip(&parts).filter(move |(tile, _)| is_own(tile)).map(|(_, &part)| part)
        };
        let (i, j) = (Expr::Name(self.v.i), Expr::Name(self.v.j));
        let [of_row, _, of_column] = self.layout.sum_steps;
        let mut body = Vec::new();
        for (product, &sums) in self.plan.contraction.products.iter().zip(sums) {
            let Some((right, _)) = parts_of(product.right, false).next() else { continue };
            // One, or those that a factor is the sum of.
            for (left, filled) in parts_of(product.left, true) {
                let is_computed = filled == Filled::Computed;
                body.push(Stmt::MultiplyMatrices(Box::new(MatrixProduct {
                    dtype: of.factors,
                    left,
                    left_at: if is_computed { self.own_part() } else { i.clone().then(Mul, 4) },
                    right,
                    right_at: j.clone().then(Mul, 2),
                    sums,
                    sums_at: mul_add(i.clone(), of_row, j.clone().then(Mul, of_column)),
                })));
            }
        }
        let schedule = self.plan.schedule;
        let columns = int(schedule.own_columns / of.columns);
        let body = vec![counting(self.v.j, 0, columns, LoopHint::Unroll).of(body)];
        let rows = int(schedule.own_rows / of.rows);
        emitter.push(counting(self.v.i, 0, rows, LoopHint::Unroll).of(body));
        let body = emitter.close();
        let terms = int(schedule.depth / of.terms);
        emitter.push(counting(self.v.k, 0, terms, LoopHint::Unroll).of(body));
    }

    /// Loads a thread's parts of a factor's matrices, four matrices at a time: of one small one of the left, or of two of the
    /// right.
    fn load_matrices(&self, emitter: &mut Emitter, tile: &Tile, of: Instruction) -> Var {
        let (group, deep) = (self.plan.group(), u64::from(of.terms));
        let factor = tile.factor;
        let wide = u64::from(of.rows);
        let count = factor.of_thread / wide;
        let part = emitter.fresh(if factor.is_left { "a" } else { "b" });
        let part = emitter.array(part, Type::Register(DType::U32), count * 4);
        // Lane 8 n + i names row i of matrix n: which half of the factor's own axis that is in, and which of the terms.
        let lane = |op, by| self.v.lane.then(op, by);
        let (low, high) = (lane(Div, 8).then(Rem, 2), lane(Div, 16));
        let (of_own, of_terms) = if factor.is_left { (low, high) } else { (high, low) };
        let own = Expr::Name(if factor.is_left { self.v.warp_row } else { self.v.warp_column });
        let own = own.then(Add, self.v.i.then(Mul, wide));
        let term = self.v.k.then(Mul, deep);
        let row = |first: Expr, half: Expr| first.then(Add, half.then(Mul, 8)).then(Add, lane(Rem, 8));
        let chunk = |first: Expr, half: Expr| first.then(Div, group).then(Add, half);
        let (line, chunk) = match factor.is_along {
            true => (row(own, of_own), chunk(term, of_terms)),
            false => (row(term, of_terms), chunk(own, of_own)),
        };
        emitter.repeat(counting(self.v.i, 0, count, LoopHint::Unroll), |emitter| {
            let line = Expr::Name(emitter.bind("line", INDEX, line));
            let index = self.of_slot(tile, self.chunk(factor, line, chunk));
            let load = Stmt::LoadMatrices {
                parts: part,
                at: self.v.i.then(Mul, 4),
                shared: tile.shared,
                index,
                dtype: of.factors,
                // A part has neighbouring terms.
                turns: !factor.is_along,
            };
            emitter.push(load);
        });
        part
    }
}

fn part_of(parts: &[Var]) -> Var {
    parts.last().copied().unwrap_or(Var::Lane)
}
