//! What a lane's expressions are as vectors: loads, operations on them, positions.

use super::super::Printer;
use super::whole::Room;
use super::{DISTANCES, Held, LEFT, Loop, MASKED_DISTANCES, OF_HALF};
use crate::index::{Atom, AxisId, AxisRanges, Bound, IndexExpr};
use crate::intrinsics::lanes::SPREAD;
use crate::intrinsics::lanes::{Kind, Lanes, Value};
use crate::intrinsics::{self, Helpers, SortPart, parenthesise};
use crate::ir::{AxisKind, Kernel};
use crate::nest::compared;
use crate::nest::stmt::{Arithmetic, Expr, Type};
use crate::nest::variable::Var;
use crate::{BinaryOp, DType, Language};

/// Lanes whose elements are further from each other count in 64 bits.
const MOST_AFTER: u64 = 1 << 26;

/// Whether 32 bits hold positions from the least to the most.
pub(in crate::text) fn are_short((least, most): (i64, i64)) -> bool {
    // Lanes beyond the last position too.
    let furthest = i64::from(i32::MAX) - 1024;
    least > -furthest && most < furthest
}

/// Whether this is an element of memory as it is there: under a condition, what is beyond a border is not read.
fn is_element(expr: &Expr) -> bool {
    match expr {
        Expr::FromMemory(_, element) => is_element(element),
        Expr::Element(Var::Parameter(_), _) => true,
        _ => false,
    }
}

/// The same of what is compared with bounds, which have at least one limit each and positions between the two.
pub(in crate::text) fn bounds_are_short(bounds: &[Bound], ranges: &AxisRanges) -> bool {
    bounds.iter().all(|bound| {
        let limits = [(bound.has_lo(), bound.lo), (bound.has_hi(), bound.hi)];
        let limits = || limits.into_iter().filter(|(is_one, _)| *is_one).map(|(_, limit)| limit);
        let (least, most) = bound.expr.range(ranges);
        let is_empty = bound.has_lo() && bound.has_hi() && bound.hi < bound.lo;
        !is_empty
            && limits().count() > 0
            && are_short((least, most))
            && limits().all(|limit| are_short((least - limit, most - limit)))
    })
}

/// Positions beyond a border: as windows of 9 reach.
const NARROW: i64 = 4;

/// Whether no position is far beyond these bounds, so that what is next to a border is memory of the same tensor nearly
/// always.
fn are_near(bounds: &[Bound], ranges: &AxisRanges) -> bool {
    bounds.iter().all(|bound| {
        let (least, most) = bound.expr.range(ranges);
        (!bound.has_lo() || least.saturating_add(NARROW) >= bound.lo)
            && (!bound.has_hi() || most.saturating_sub(NARROW) < bound.hi)
    })
}

/// The axes' ranges, with extents that are arguments as this launch has them: where 32 bits do not hold them, the text is
/// another one. Offsets are unbounded.
pub(in crate::text) fn launched_ranges(kernel: &Kernel) -> AxisRanges {
    let mut ranges = kernel.ranges();
    for (number, axis) in kernel.axes.iter().enumerate() {
        if axis.is_argument && matches!(axis.kind, AxisKind::Map | AxisKind::Reduce) {
            ranges.set(AxisId(number as u32), axis.extent);
        }
    }
    ranges
}

/// Whether 32 bits hold what one comparison of numbers decides this by.
pub(in crate::text) fn is_compared_short(bound: &Bound, ranges: &AxisRanges) -> bool {
    let (added, subtracted) = compared(bound).by_sign();
    let width = bound.hi.saturating_sub(bound.lo);
    bounds_are_short(std::slice::from_ref(bound), ranges)
        && (bound.has_lo() != bound.has_hi() || width <= i64::from(i32::MAX))
        && [added, subtracted].iter().all(|part| are_short(part.range(ranges)))
}

impl Loop<'_, '_> {
    /// What an expression is whose lanes are the same.
    pub(super) fn kind_of(&self, expr: &Expr) -> Option<Kind> {
        Some(match expr {
            Expr::Wide(a) => return self.kind_of(a),
            Expr::Name(var) => match self.type_of(*var)? {
                Type::Index => Kind::I64,
                _ => self.kind_of_var(*var)?,
            },
            Expr::Literal(value) => Kind::of(value.dtype()),
            Expr::Int(_) | Expr::Index(_) | Expr::Builtin(_) | Expr::Position(_) => Kind::I64,
            Expr::Checked { .. } | Expr::ToIndex(_) => Kind::I64,
            Expr::Arithmetic(op, ..) => {
                if op.is_truth() {
                    Kind::Mask
                } else {
                    Kind::I64
                }
            }
            Expr::InBounds(_) => Kind::Mask,
            Expr::Random { dtype, .. } | Expr::FromMemory(dtype, _) => Kind::of(*dtype),
            Expr::Unary(op, dtype, _) => Kind::of(op.result(*dtype)),
            Expr::Binary(op, dtype, ..) => Kind::of(op.result(*dtype)),
            Expr::Select(_, a, b) => self.kind_of(a)?.max(self.kind_of(b)?),
            Expr::Cast { to, .. } => Kind::of(*to),
            Expr::Element(array, _) => Lanes::load(self.memory(*array)?).1,
            Expr::ToMemory(dtype, _) => Lanes::load(*dtype).1,
            Expr::MulAdd(dtype, _) => Kind::of(*dtype),
            Expr::Sort { .. }
            | Expr::Quotient(..)
            | Expr::BriefExp(_)
            | Expr::ZeroTimes(..)
            | Expr::Votes(_)
            | Expr::VotesBefore(_)
            | Expr::ShuffleUp { .. }
            | Expr::ShuffleXor { .. } => {
                return None;
            }
        })
    }

    /// A value, of vectors where it differs among lanes; `None` if it is none of vectors.
    pub(super) fn value(&mut self, expr: &Expr) -> Option<Value> {
        if !self.varies(expr) {
            let kind = self.kind_of(expr)?;
            return Some(Value::scalar(self.printer.expr(expr), kind));
        }
        const C: Language = Language::C;
        let mut none = Helpers::new();
        match expr {
            Expr::Name(var) => match self.varying.get(var)? {
                Held::Numbers(kind) => Some(Value::vector(self.printer.name(*var), *kind)),
                Held::Index(_) => None,
            },
            Expr::Position(index) => {
                let step = self.index_step(index)?;
                let first = self.printer.expr(&Expr::Index(index.clone()));
                Some(Value::vector(format!("lz_positions({first}, {step})"), Kind::I64))
            }
            Expr::Element(array, index) => self.element(*array, index),
            Expr::Binary(op, DType::I64, a, b) if self.is_short_position(a) || self.is_short_position(b) => {
                self.short_comparison(*op, a, b).or_else(|| {
                    let text = intrinsics::binary(C, *op, DType::I64, "a", "b", &mut none);
                    self.of(&text, &[("a", a), ("b", b)])
                })
            }
            Expr::Cast { from: DType::I64, to, operand } if self.is_short_position(operand) => {
                let position = self.short_position(operand)?;
                let text = intrinsics::cast(C, DType::I32, *to, "a", &mut none);
                self.translated(&text, &[("a", position)])
            }
            Expr::Unary(op, dtype, a) => {
                self.operations += op.cost();
                let text = intrinsics::unary(C, *op, *dtype, "a", &mut none);
                self.of(&text, &[("a", a)])
            }
            Expr::Binary(op, dtype, a, b) => {
                self.operations += op.cost();
                let text = intrinsics::binary(C, *op, *dtype, "a", "b", &mut none);
                self.of(&text, &[("a", a), ("b", b)])
            }
            Expr::MulAdd(dtype, operands) => {
                let [a, b, c] = &**operands;
                let text = intrinsics::mul_add(C, *dtype, ["a", "b", "c"], &mut none);
                self.of(&text, &[("a", a), ("b", b), ("c", c)])
            }
            Expr::Select(condition, a, b) if self.varies(condition) && is_element(a) => {
                match self.varies(a) {
                    true => self.guarded(condition, a),
                    false => self.guarded_one(condition, a, b),
                }
            }
            Expr::Select(condition, a, b) => {
                self.selects += 1.0;
                let text = intrinsics::select(C, "c", "a", "b");
                self.of(&text, &[("c", condition), ("a", a), ("b", b)])
            }
            Expr::Cast { from, to, operand } => {
                let text = intrinsics::cast(C, *from, *to, "a", &mut none);
                self.of(&text, &[("a", operand)])
            }
            Expr::FromMemory(DType::F16 | DType::BF16, _) | Expr::ToMemory(DType::F16 | DType::BF16, _) => {
                self.converted(expr)
            }
            // The same in registers.
            Expr::FromMemory(_, value) | Expr::ToMemory(_, value) => self.value(value),
            Expr::Random { dtype, seed, index } => self.random(*dtype, *seed, index),
            // Wide items are two numbers each, and put one by one.
            Expr::Sort { part: SortPart::Item, dtype, descending, operands } => {
                let [a, place] = &**operands;
                let of = (*dtype, *descending);
                let text = intrinsics::sort_part(C, SortPart::Item, of, ["a", "place"], &mut none);
                let (a, place) = (self.value(a)?, self.place(place)?);
                self.translated(&text, &[("a", a), ("place", place)])
            }
            Expr::Wide(a) => self.value(a),
            Expr::InBounds(bounds) => self.in_bounds(bounds),
            Expr::Int(_)
            | Expr::Index(_)
            | Expr::Arithmetic(..)
            | Expr::Builtin(_)
            | Expr::Literal(_)
            | Expr::Checked { .. }
            | Expr::ToIndex(_)
            | Expr::Sort { .. }
            | Expr::Quotient(..)
            | Expr::BriefExp(_)
            | Expr::ZeroTimes(..)
            | Expr::Votes(_)
            | Expr::VotesBefore(_)
            | Expr::ShuffleUp { .. }
            | Expr::ShuffleXor { .. } => None,
        }
    }

    /// Of 16-bit floats in memory, and to them.
    fn converted(&mut self, expr: &Expr) -> Option<Value> {
        let (Expr::FromMemory(dtype, operand) | Expr::ToMemory(dtype, operand)) = expr else { return None };
        let operand = self.value(operand)?;
        if *dtype == DType::F16 && self.gathered > 0.0 {
            self.operations += OF_HALF;
        }
        let Printer { lanes, helpers, .. } = &mut *self.printer;
        match expr {
            Expr::FromMemory(..) => lanes.widen(*dtype, &operand, helpers),
            _ => lanes.narrow(*dtype, &operand, helpers),
        }
    }

    /// Elements of memory at the lanes' distance.
    fn element(&mut self, array: Var, index: &Expr) -> Option<Value> {
        let dtype = self.memory(array)?;
        if let Some(spread) = self.spread(dtype, array, index) {
            return Some(spread);
        }
        let Some(step) = self.step(index) else { return self.gathered(dtype, array, index) };
        self.see(dtype);
        if self.folded.is_some() {
            return self.folded_element(array, index);
        }
        let from = self.printer.element_of(array, index);
        let (text, kind) = match step {
            1 => {
                let (load, kind) = Lanes::load(dtype);
                let (load, count) = match self.room(array, index) {
                    Room::Whole => (load, "LANES"),
                    Room::Vector if self.count == LEFT => (Lanes::load_first(dtype).0, self.count()),
                    Room::Vector | Room::Counted => (load, self.count()),
                };
                (format!("{load}({from}, {count})"), kind)
            }
            _ if let Some((first, offset)) = self.group_of(array, step, index) => {
                let ((pick, kind), count) = (Lanes::pick(dtype), self.count());
                let from = self.printer.element_of(array, &Expr::Index(first));
                (format!("{pick}({from}, {step}, {offset}, {count})"), kind)
            }
            _ => {
                self.far += if DISTANCES.contains(&step) { 0.0 } else { 1.0 };
                let ((gather, kind), count) = (Lanes::gather(dtype), self.count());
                (format!("{gather}({from}, {step}, {count})"), kind)
            }
        };
        Some(Value::vector(text, kind))
    }

    /// Elements of memory at an index that each lane has computed.
    fn gathered(&mut self, dtype: DType, array: Var, index: &Expr) -> Option<Value> {
        let Expr::Index(index) = index else { return None };
        let mut indices = Vec::new();
        let mut first = index.clone();
        for (atom, factor) in index.terms() {
            let Atom::Axis(axis) = atom else { continue };
            let axis = *axis;
            let var = self.printer.kernel.position(axis);
            if let Some(Held::Numbers(_)) = self.varying.get(&var) {
                let name = self.printer.name(var);
                indices.push(if *factor == 1 { name } else { format!("{name} * {factor}") });
                first = first.sub(&IndexExpr::axis(axis).scale(*factor));
            }
        }
        let step = self.index_step(&first)?;
        if step != 0 {
            indices.push(format!("lz_positions(0, {step})"));
        }
        self.see(dtype);
        // The indices are.
        self.is_wide = true;
        self.gathered += 1.0;
        let ((gather, kind), count) = (Lanes::gather_at(dtype), self.count());
        let from = self.printer.element_of(array, &Expr::Index(first));
        Some(Value::vector(format!("{gather}({from}, {}, {count})", indices.join(" + ")), kind))
    }

    /// Positions that each lane has computed, all of which are some.
    pub(super) fn checked(&mut self, position: &Expr, extent: &Expr, check: Option<u32>) -> Option<Value> {
        let position = self.value(position)?;
        let position = self.vector(position, Kind::I64);
        let Some(check) = check else { return Some(Value::vector(position, Kind::I64)) };
        let (extent, count) = (self.printer.expr(extent), self.count());
        let helpers = &mut self.printer.helpers;
        let text = intrinsics::checked_positions((&position, count), &extent, check, helpers);
        Some(Value::vector(text, Kind::I64))
    }

    /// Elements of a small array, each for as many neighbouring lanes.
    fn spread(&mut self, dtype: DType, array: Var, index: &Expr) -> Option<Value> {
        let Expr::Arithmetic(Arithmetic::Div, lane, each) = index else { return None };
        let (&Expr::Name(var), &Expr::Int(each)) = (&**lane, &**each) else { return None };
        let is_lane = matches!(self.varying.get(&var), Some(Held::Index(1)));
        if !is_lane || self.folded.is_some() || self.printer.local(array)?.len != Some(SPREAD) {
            return None;
        }
        self.see(dtype);
        let (spread, kind) = Lanes::spread(dtype);
        let (array, first) = (self.printer.name(array), self.printer.name(var));
        Some(Value::vector(format!("{spread}({array}, {first}, {each})"), kind))
    }

    /// Neighbouring elements of memory, and zeros in lanes where a guard does not hold.
    fn guarded(&mut self, condition: &Expr, element: &Expr) -> Option<Value> {
        match element {
            Expr::FromMemory(dtype @ (DType::F16 | DType::BF16), raw) => {
                let raw = self.guarded(condition, raw)?;
                let Printer { lanes, helpers, .. } = &mut *self.printer;
                lanes.widen(*dtype, &raw, helpers)
            }
            Expr::FromMemory(_, element) => self.guarded(condition, element),
            Expr::Element(array, index)
                if self.folded.is_none() && MASKED_DISTANCES.contains(&self.step(index)?) =>
            {
                let is_near = self.nearness(condition)?;
                let dtype = self.memory(*array)?;
                self.see(dtype);
                let condition = self.value(condition)?;
                let inside = self.vector(condition, Kind::Mask);
                let from = self.printer.element_of(*array, index);
                let (text, kind) = match self.step(index)? {
                    1 => {
                        let (load, kind) = Lanes::inside(dtype, is_near);
                        (format!("{load}({from}, {inside})"), kind)
                    }
                    step => {
                        let (gather, kind) = Lanes::gather_inside(dtype);
                        (format!("{gather}({from}, {step}, {inside})"), kind)
                    }
                };
                Some(Value::vector(text, kind))
            }
            _ => None,
        }
    }

    /// An element that is the same for all lanes where a guard holds, read if it holds for any; else another value.
    fn guarded_one(&mut self, condition: &Expr, element: &Expr, other: &Expr) -> Option<Value> {
        self.nearness(condition)?;
        let kind = self.kind_of(element)?;
        let condition = self.value(condition)?;
        let inside = self.vector(condition, Kind::Mask);
        let element = self.printer.expr(element);
        let element = Value::scalar(format!("lz_all(~({inside})) ? 0 : {element}"), kind);
        let operands = [("c", Value::vector(inside, Kind::Mask)), ("a", element), ("b", self.value(other)?)];
        self.translated(&intrinsics::select(Language::C, "c", "a", "b"), &operands)
    }

    /// Whether all positions are near a guard's bounds; `None` if it does not say that lanes beyond the last position have
    /// nothing to read, as only bounds do.
    pub(super) fn nearness(&self, condition: &Expr) -> Option<bool> {
        match condition {
            Expr::InBounds(bounds) => Some(are_near(bounds, &self.printer.kernel.ranges())),
            Expr::Name(var) => self.bounds.get(var).copied(),
            _ => None,
        }
    }

    /// In which of the lanes that are left positions are within bounds, in 32 bits.
    fn in_bounds(&mut self, bounds: &[Bound]) -> Option<Value> {
        let (varying, same): (Vec<Bound>, Vec<Bound>) =
            bounds.iter().cloned().partition(|bound| self.index_step(&bound.expr) != Some(0));
        let mut all = Vec::new();
        if !bounds_are_short(&varying, &self.printer.kernel.ranges()) {
            return None;
        }
        for bound in &varying {
            let Bound { expr, lo, hi } = bound;
            let step = self.index_step(expr)?;
            let mut positions = |offset: i64| {
                let first = self.printer.expr(&Expr::Index(expr.offset(-offset)));
                format!("lz_short_positions({first}, {step})")
            };
            all.push(match (bound.has_lo(), bound.has_hi()) {
                (true, true) => format!("lz_lt_u32v((u32v){}, lz_splat_u32v({}))", positions(*lo), hi - lo),
                (true, false) => format!("lz_lt_i32v(lz_splat_i32v(-1), {})", positions(*lo)),
                (false, _) => format!("lz_lt_i32v({}, lz_splat_i32v(0))", positions(*hi)),
            });
        }
        if self.count() == LEFT {
            all.push(format!("lz_first_lanes({LEFT})"));
        }
        if !same.is_empty() {
            all.push(format!("lz_splat_mask({})", self.printer.expr(&Expr::InBounds(same))));
        }
        Some(Value::vector(all.join(" & "), Kind::Mask))
    }

    fn random(&mut self, dtype: DType, seed: Var, index: &IndexExpr) -> Option<Value> {
        let step = self.index_step(index)?;
        let (seed, first) = (self.printer.name(seed), self.printer.expr(&Expr::Index(index.clone())));
        let mut none = Helpers::new();
        (self.is_worth_it, self.is_wide) = (true, true);
        if dtype == DType::F32 && step.unsigned_abs() <= MOST_AFTER {
            let same = |text: &str| Value::scalar(format!("(unsigned long long)({text})"), Kind::U64);
            let after = Value::vector(format!("lz_short_positions(0, {step})"), Kind::I32);
            let operands = [same(&seed), same(&first), after];
            let names = ["s", "i", "n"];
            let text = intrinsics::random_uniform_after(names, &mut none);
            let scope: Vec<(&str, &Value)> = names.into_iter().zip(&operands).collect();
            let Printer { lanes, helpers, .. } = &mut *self.printer;
            return lanes.translate(&text, &scope, helpers);
        }
        let seed = Value::scalar(format!("(unsigned long long){seed}"), Kind::U64);
        let index = Value::vector(format!("(u64v)lz_positions({first}, {step})"), Kind::U64);
        let text = intrinsics::random_uniform(Language::C, dtype, "s", "i", &mut none);
        let Printer { lanes, helpers, .. } = &mut *self.printer;
        lanes.translate(&text, &[("s", &seed), ("i", &index)], helpers)
    }

    /// Whether these are positions that 32 bits hold, so that what they are compared with need not halve all lanes.
    fn is_short_position(&self, expr: &Expr) -> bool {
        let Expr::Position(index) = expr else { return false };
        self.varies(expr) && are_short(index.range(&self.printer.kernel.ranges()))
    }

    fn short_position(&mut self, expr: &Expr) -> Option<Value> {
        let Expr::Position(index) = expr else { return None };
        let step = self.index_step(index)?;
        let first = self.printer.expr(&Expr::Index(index.clone()));
        Some(Value::vector(format!("lz_short_positions({first}, {step})"), Kind::I32))
    }

    /// Where an element of a sorted row is.
    fn place(&mut self, expr: &Expr) -> Option<Value> {
        let Expr::Name(Var::Axis(axis)) = expr else { return None };
        let step = self.index_step(&IndexExpr::axis(*axis))?;
        let first = self.printer.expr(expr);
        let text = format!("(u32v)lz_short_positions({first}, {step})");
        Some(Value::vector(text, Kind::U32))
    }

    /// Positions compared in 32 bits, with each other or with what is the same for all lanes: that is cut off where no position
    /// is.
    fn short_comparison(&mut self, op: BinaryOp, a: &Expr, b: &Expr) -> Option<Value> {
        if !op.is_comparison() {
            return None;
        }
        let mut short = |expr: &Expr| match () {
            () if self.is_short_position(expr) => self.short_position(expr),
            () if self.varies(expr) => None,
            () => Some(Value::scalar(format!("lz_cut({})", self.printer.expr(expr)), Kind::I32)),
        };
        let (a, b) = (short(a)?, short(b)?);
        let text = intrinsics::binary(Language::C, op, DType::I32, "a", "b", &mut Helpers::new());
        self.translated(&text, &[("a", a), ("b", b)])
    }

    /// What an array has at the lane, or so many lanes further on, in its vector.
    fn folded_element(&self, array: Var, index: &Expr) -> Option<Value> {
        let folded = self.folded.as_ref()?;
        let (_, kind) = *folded.arrays.iter().find(|(own, _)| *own == array)?;
        let name = format!("{}v", self.printer.name(array));
        let is_lane = |expr: &Expr| matches!(expr, Expr::Name(var) if self.varying.contains_key(var));
        match index {
            index if is_lane(index) => Some(Value::vector(name, kind)),
            Expr::Arithmetic(Arithmetic::Add, lane, step)
                if is_lane(lane)
                    && **step == Expr::Name(folded.step)
                    && !folded.assigned.contains(&array) =>
            {
                let step = self.printer.name(folded.step);
                Some(Value::vector(format!("{}({name}, {step})", Lanes::shift(kind)), kind))
            }
            _ => None,
        }
    }

    /// The vectors for an operation in C on these operands.
    fn of(&mut self, text: &str, operands: &[(&str, &Expr)]) -> Option<Value> {
        let values = operands.iter().map(|(name, operand)| Some((*name, self.value(operand)?)));
        let values: Vec<(&str, Value)> = values.collect::<Option<_>>()?;
        self.translated(text, &values)
    }

    fn translated(&mut self, text: &str, operands: &[(&str, Value)]) -> Option<Value> {
        let mut values = operands.to_vec();
        values.iter_mut().for_each(|(_, value)| value.text = parenthesise(&value.text));
        let scope: Vec<(&str, &Value)> = values.iter().map(|(name, value)| (*name, value)).collect();
        let Printer { lanes, helpers, .. } = &mut *self.printer;
        let value = lanes.translate(text, &scope, helpers)?;
        self.is_worth_it |= !matches!(value.kind, Kind::Mask | Kind::I32);
        Some(value)
    }
}
