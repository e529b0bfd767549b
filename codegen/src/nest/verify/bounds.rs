//! Every element that is read or written is one of its array's, as far as the index is known.
//!
//! An index becomes a sum over unknowns (block, thread, loops' variables, what a minimum comes to), each between bounds
//! that are sums over earlier ones; bounding a sum means to put bounds in place of unknowns, the latest first. So
//! `i - start` is known where `i` ends below `start + 256`. What stands under a condition that says nothing of an
//! unknown is taken as guarded.

use rustc_hash::FxHashMap;

use super::error::{NestError, array, name};
use crate::index::{Atom, AxisId, IndexExpr, gcd};
use crate::nest::stmt::{Arithmetic, Builtin, BulkStep, Expr, GROUP_ROWS, GROUP_THREADS, Step, Stmt, Type};
use crate::nest::text::expression;
use crate::nest::variable::Var;
use crate::nest::{Function, Nest, Parameter};
use crate::schedule::TensorMap;

/// Different sums that are bounded for one.
const MOST_STEPS: usize = 20_000;

pub(super) fn check(nest: &Nest, function: &Function) -> Result<(), NestError> {
    // Nothing runs.
    if nest.kernel.axes.iter().any(|axis| axis.extent == 0) {
        return Ok(());
    }
    let mut traversal = Traversal {
        nest,
        function,
        unknowns: Vec::new(),
        values: FxHashMap::default(),
        builtins: FxHashMap::default(),
        open: Vec::new(),
        parts: Vec::new(),
        is_guarded: false,
    };
    let [x, y, _] = function.launch.block;
    let [blocks, splits, _] = function.launch.grid();
    let sizes = [
        (Builtin::BlockX, blocks),
        (Builtin::BlockY, splits),
        (Builtin::ThreadX, x.into()),
        (Builtin::ThreadY, y.into()),
    ];
    for (builtin, size) in sizes {
        let unknown = traversal.between(0, size as i64 - 1);
        traversal.builtins.insert(builtin, unknown);
    }
    traversal.builtins.insert(Builtin::GridY, IndexExpr::constant(splits as i64));
    traversal.statements(&function.body.statements)
}

/// Bounds of an unknown: `factor * unknown` is at least, or at most, the sum.
#[derive(Default)]
struct Unknown {
    least: Vec<(i64, IndexExpr)>,
    most: Vec<(i64, IndexExpr)>,
}

struct Traversal<'a> {
    nest: &'a Nest,
    function: &'a Function,
    /// By number: the axis of that number in a sum.
    unknowns: Vec<Unknown>,
    /// What variables are, if that is known.
    values: FxHashMap<Var, IndexExpr>,
    builtins: FxHashMap<Builtin, IndexExpr>,
    /// The unknowns that are the launch's offsets, maxima, or follow from these.
    open: Vec<AxisId>,
    /// Arrays of unknown length.
    parts: Vec<Var>,
    is_guarded: bool,
}

impl Traversal<'_> {
    fn unknown(&mut self, unknown: Unknown) -> IndexExpr {
        self.unknowns.push(unknown);
        IndexExpr::axis(AxisId(self.unknowns.len() as u32 - 1))
    }

    fn between(&mut self, least: i64, most: i64) -> IndexExpr {
        let bound = |value| vec![(1, IndexExpr::constant(value))];
        self.unknown(Unknown { least: bound(least), most: bound(most) })
    }

    fn statements(&mut self, statements: &[Stmt]) -> Result<(), NestError> {
        let outside = self.limits();
        statements.iter().try_for_each(|stmt| self.statement(stmt))?;
        self.forget(outside);
        Ok(())
    }

    fn statement(&mut self, stmt: &Stmt) -> Result<(), NestError> {
        stmt.expressions().into_iter().try_for_each(|expr| self.expression(expr))?;
        match stmt {
            Stmt::Let { var, value } => match self.sum(value) {
                Some(value) => drop(self.values.insert(*var, value)),
                None => drop(self.values.remove(var)),
            },
            Stmt::For { var, from, to, step, body, .. } => return self.for_loop(*var, from, to, step, body),
            Stmt::If { condition, then, otherwise } => {
                self.under(condition, true, |traversal| traversal.statements(then))?;
                self.under(condition, false, |traversal| traversal.statements(otherwise))?;
                // Whoever goes on has not returned.
                if let [.., Stmt::Return] = otherwise.as_slice() {
                    self.suppose(condition, true);
                }
                return Ok(());
            }
            Stmt::VectorLoad { array, at, buffer, index, width, .. }
            | Stmt::VectorStore { array, at, buffer, index, width, .. } => {
                let width = IndexExpr::constant(*width as i64);
                self.elements(*array, at, &width)?;
                self.elements(*buffer, index, &width)?;
            }
            Stmt::LoadMatrices { parts, at, shared, index, .. } => {
                self.elements(*parts, at, &IndexExpr::constant(4))?;
                self.elements(*shared, index, &IndexExpr::constant(8))?;
            }
            Stmt::BeginCopy(copying) => {
                let width = IndexExpr::constant(copying.width as i64);
                self.elements(copying.shared, &copying.at, &width)?;
                self.elements(copying.buffer, &copying.index, &width)?;
            }
            Stmt::Bulk(BulkStep::Begin(copy)) => {
                let len = self.nest.maps.get(copy.map as usize).map_or(0, TensorMap::tile_elements);
                self.elements(copy.shared, &copy.at, &IndexExpr::constant(len as i64))?;
                self.elements(copy.arrived, &copy.slot, &IndexExpr::constant(1))?;
            }
            Stmt::Bulk(BulkStep::Await(of)) => {
                self.elements(of.arrived, &of.slot, &IndexExpr::constant(1))?;
            }
            Stmt::Bulk(BulkStep::Expect { arrived, slots, .. }) => {
                self.elements(*arrived, &Expr::Int(0), &IndexExpr::constant((*slots).into()))?;
            }
            Stmt::MultiplyMatrices(product) => {
                let is_own =
                    matches!(array(self.nest, self.function, product.left), Some((Type::Memory(_), _)));
                let parts = if is_own { 8 } else { 4 };
                self.elements(product.left, &product.left_at, &IndexExpr::constant(parts))?;
                self.elements(product.right, &product.right_at, &IndexExpr::constant(2))?;
                self.elements(product.sums, &product.sums_at, &IndexExpr::constant(4))?;
            }
            Stmt::MultiplyGroup(product) => {
                let columns = u64::from(product.columns);
                for (own, factor) in [(GROUP_ROWS, &product.left), (columns, &product.right)] {
                    self.elements(factor.array, &factor.at, &IndexExpr::constant(factor.len(own) as i64))?;
                }
                let sums = columns * GROUP_ROWS / GROUP_THREADS;
                self.elements(product.sums, &product.sums_at, &IndexExpr::constant(sums as i64))?;
            }
            // Which buffer it is, and how long, is not known.
            Stmt::Part { part, .. } => self.parts.push(*part),
            _ => {}
        }
        stmt.bodies().into_iter().try_for_each(|body| self.statements(body))
    }

    fn for_loop(
        &mut self,
        var: Var,
        from: &Expr,
        to: &Expr,
        step: &Step,
        body: &[Stmt],
    ) -> Result<(), NestError> {
        let was_guarded = self.is_guarded;
        let (first, end) = (self.sum(from), self.sum(to));
        let zero = (1, IndexExpr::zero());
        let rounds = self.unknown(Unknown { least: vec![zero], most: Vec::new() });
        let value = match (step, first, end) {
            (Step::Halve, Some(first), _) => {
                let least = vec![(1, IndexExpr::constant(1))];
                self.unknown(Unknown { least, most: vec![(1, first)] })
            }
            (Step::Add(step), Some(first), Some(end)) => {
                if self.most(&end.sub(&first)).is_some_and(|length| length <= 0) {
                    return Ok(());
                }
                let step = self.sum(step).and_then(|step| step.as_constant()).unwrap_or(1);
                let value = first.add(&rounds.scale(step.max(1)));
                self.not_above_zero(&value.sub(&end).offset(1));
                value
            }
            _ => {
                self.is_guarded = true;
                rounds
            }
        };
        let before = self.values.insert(var, value);
        self.statements(body)?;
        match before {
            Some(value) => self.values.insert(var, value),
            None => self.values.remove(&var),
        };
        self.is_guarded = was_guarded;
        Ok(())
    }

    fn expression(&mut self, expr: &Expr) -> Result<(), NestError> {
        if let Expr::Select(condition, a, b) = expr {
            self.expression(condition)?;
            self.under(condition, true, |traversal| traversal.expression(a))?;
            return self.under(condition, false, |traversal| traversal.expression(b));
        }
        if let Expr::Element(array, at) = expr {
            self.elements(*array, at, &IndexExpr::constant(1))?;
        }
        expr.operands().into_iter().try_for_each(|operand| self.expression(operand))
    }

    /// Elements from an index on are the array's.
    fn elements(&mut self, var: Var, at: &Expr, count: &IndexExpr) -> Result<(), NestError> {
        // Kernels with nothing to read or write are not launched.
        let known = array(self.nest, self.function, var).filter(|(_, len)| *len > 0 && !self.is_guarded);
        let Some((_, len)) = known.filter(|_| !self.parts.contains(&var)) else { return Ok(()) };
        let Some(first) = self.sum(at) else { return Ok(()) };
        let last = first.add(count).offset(-1);
        let (Some(least), Some(most)) = (self.least(&first), self.most(&last)) else { return Ok(()) };
        if least >= 0 && most < len as i64 {
            return Ok(());
        }
        let array = name(self.nest, self.function, var);
        let index = expression(self.nest, self.function, at);
        Err(NestError::OutOfBounds { array, index, range: (least, most), len })
    }

    /// The expression as a sum over unknowns, if it is one.
    fn sum(&mut self, expr: &Expr) -> Option<IndexExpr> {
        match expr {
            Expr::Int(value) => i64::try_from(*value).ok().map(IndexExpr::constant),
            Expr::Name(var) => self.value(*var),
            Expr::Index(index) => self.index(index),
            Expr::Wide(a) => self.sum(a),
            Expr::Builtin(builtin) => self.builtins.get(builtin).cloned(),
            Expr::Checked { extent, .. } => {
                let extent = self.sum(extent)?;
                Some(self.unknown(Unknown {
                    least: vec![(1, IndexExpr::zero())],
                    most: vec![(1, extent.offset(-1))],
                }))
            }
            Expr::Arithmetic(op, a, b) => {
                let (a, b) = (self.sum(a)?, self.sum(b)?);
                match (op, a.as_constant(), b.as_constant()) {
                    (Arithmetic::Add, ..) => Some(a.add(&b)),
                    (Arithmetic::Sub, ..) => Some(a.sub(&b)),
                    (Arithmetic::Mul, _, Some(by)) => Some(a.scale(by)),
                    (Arithmetic::Mul, Some(by), _) => Some(b.scale(by)),
                    (Arithmetic::Div, _, Some(by)) if by > 0 => Some(self.divided(&a, by).0),
                    (Arithmetic::Rem, _, Some(by)) if by > 0 => Some(self.divided(&a, by).1),
                    (Arithmetic::Min | Arithmetic::Max, ..) => {
                        // What divides both divides the result.
                        let by = gcd(a.gcd_of_coefficients(), b.gcd_of_coefficients()).max(1);
                        let is_min = *op == Arithmetic::Min;
                        let own_is_open = self.is_open(&a) || self.is_open(&b);
                        let other = match is_min {
                            true => self.least(&a)?.min(self.least(&b)?),
                            false => self.most(&a)?.max(self.most(&b)?),
                        };
                        let (own, other) = (vec![(by, a), (by, b)], vec![(by, IndexExpr::constant(other))]);
                        let (least, most) = if is_min { (other, own) } else { (own, other) };
                        let is_open = !is_min || own_is_open;
                        let value = self.unknown(Unknown { least, most });
                        self.open.extend(value.axes().into_iter().filter(|_| is_open));
                        Some(value.scale(by))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Quotient and remainder of what is not below 0.
    fn divided(&mut self, sum: &IndexExpr, by: i64) -> (IndexExpr, IndexExpr) {
        if let Some(value) = sum.as_constant() {
            return (IndexExpr::constant(value / by), IndexExpr::constant(value % by));
        }
        let (zero, most) = ((1, IndexExpr::zero()), self.most(sum));
        if most.is_some_and(|most| most < by) {
            return (IndexExpr::zero(), sum.clone());
        }
        let mut quotient = vec![(by, sum.clone())];
        quotient.extend(most.map(|most| (1, IndexExpr::constant(most / by))));
        let least = vec![(by, sum.offset(1 - by)), zero.clone()];
        let quotient = self.unknown(Unknown { least, most: quotient });
        // What divides both divides the remainder.
        let whole = gcd(by, sum.gcd_of_coefficients());
        let remainder = vec![(1, IndexExpr::constant(by - whole)), (1, sum.clone())];
        (quotient, self.unknown(Unknown { least: vec![zero], most: remainder }))
    }

    fn value(&mut self, var: Var) -> Option<IndexExpr> {
        match var {
            Var::Parameter(Parameter::Extent(axis)) => {
                Some(IndexExpr::constant(self.nest.kernel.axis(axis).extent as i64))
            }
            Var::Parameter(Parameter::Offset(axis)) if !self.values.contains_key(&var) => {
                let value = self.between(0, self.nest.kernel.axis(axis).extent as i64 - 1);
                self.open.extend(value.axes());
                self.values.insert(var, value.clone());
                Some(value)
            }
            _ => self.values.get(&var).cloned(),
        }
    }

    fn index(&mut self, index: &IndexExpr) -> Option<IndexExpr> {
        // What is taken of quotients of one number needs to know how they belong together.
        if index.terms().iter().any(|(_, factor)| *factor < 0)
            && !index.terms().iter().all(|(atom, _)| matches!(atom, Atom::Axis(_)))
        {
            return None;
        }
        let mut sum = IndexExpr::constant(index.constant_term());
        for (atom, factor) in index.terms() {
            let atom = match atom {
                // How far from an offset on: the loop's bounds say that by way of minima.
                Atom::Axis(axis) if *factor < 0 && self.nest.kernel.is_offset(*axis) => return None,
                Atom::Axis(axis) if self.nest.kernel.is_offset(*axis) => {
                    self.value(Parameter::Offset(*axis).into())?
                }
                Atom::Axis(axis) => self.value(self.nest.kernel.position(*axis))?,
                Atom::Div(numerator, by) => {
                    let numerator = self.index(numerator)?;
                    self.divided(&numerator, *by).0
                }
                Atom::Mod(numerator, by) => {
                    let numerator = self.index(numerator)?;
                    self.divided(&numerator, *by).1
                }
            };
            sum = sum.add(&atom.scale(*factor));
        }
        Some(sum)
    }

    /// Goes on where a condition holds, or where it does not.
    fn under(
        &mut self,
        condition: &Expr,
        holds: bool,
        go_on: impl FnOnce(&mut Self) -> Result<(), NestError>,
    ) -> Result<(), NestError> {
        let (outside, was_guarded) = (self.limits(), self.is_guarded);
        self.suppose(condition, holds);
        go_on(self)?;
        self.forget(outside);
        self.is_guarded = was_guarded;
        Ok(())
    }

    /// Takes a condition as bounds of the unknowns; what is none counts as a guard.
    fn suppose(&mut self, condition: &Expr, holds: bool) {
        let below = match condition {
            Expr::Arithmetic(Arithmetic::And, a, b) if holds => {
                self.suppose(a, true);
                return self.suppose(b, true);
            }
            Expr::Arithmetic(op @ (Arithmetic::Less | Arithmetic::LessEqual), a, b) => {
                let (Some(a), Some(b)) = (self.sum(a), self.sum(b)) else {
                    self.is_guarded = true;
                    return;
                };
                let strictly = i64::from((*op == Arithmetic::Less) == holds);
                if holds { a.sub(&b).offset(strictly) } else { b.sub(&a).offset(strictly) }
            }
            Expr::Arithmetic(Arithmetic::Equal, ..) => return,
            _ => {
                self.is_guarded = true;
                return;
            }
        };
        self.not_above_zero(&below);
        // What is below something that is not above a limit is below the limit.
        let Some((number, -1)) = latest(&below) else { return };
        let rest = below.add(&IndexExpr::axis(AxisId(number)));
        let limits = self.unknowns[number as usize].most.iter().filter(|(factor, _)| *factor == 1);
        let limits: Vec<IndexExpr> = limits.map(|(_, limit)| rest.sub(limit)).collect();
        limits.iter().for_each(|below| self.not_above_zero(below));
    }

    /// Where something begins at an offset, which positions there are is the launch's; and a loop up to a maximum may be
    /// one that ends before it begins.
    fn is_open(&self, sum: &IndexExpr) -> bool {
        self.open.iter().any(|unknown| sum.uses(*unknown))
    }

    /// Takes the sum, which is not above 0, as a bound of its latest unknown. Its unknowns come to a multiple of whatever
    /// divides their factors, so that the constant does as well.
    fn not_above_zero(&mut self, sum: &IndexExpr) {
        self.is_guarded |= self.is_open(sum);
        let by = sum.without_constant().gcd_of_coefficients().max(1);
        let sum = sum.offset((-sum.constant_term()).rem_euclid(by));
        let Some((number, factor)) = latest(&sum) else { return };
        let rest = sum.sub(&IndexExpr::axis(AxisId(number)).scale(factor));
        let unknown = &mut self.unknowns[number as usize];
        match factor > 0 {
            true => unknown.most.push((factor, rest.scale(-1))),
            false => unknown.least.push((-factor, rest)),
        }
    }

    /// How much is known now.
    fn limits(&self) -> (Vec<(usize, usize)>, bool) {
        (
            self.unknowns.iter().map(|unknown| (unknown.least.len(), unknown.most.len())).collect(),
            self.is_guarded,
        )
    }

    /// Forgets what has been supposed since.
    fn forget(&mut self, (limits, is_guarded): (Vec<(usize, usize)>, bool)) {
        for (unknown, (least, most)) in self.unknowns.iter_mut().zip(limits) {
            unknown.least.truncate(least);
            unknown.most.truncate(most);
        }
        self.is_guarded = is_guarded;
    }

    /// The most that a sum can be. Unknown if that takes too many steps: what they have come to by then may be too much.
    fn most(&self, sum: &IndexExpr) -> Option<i64> {
        let mut known = FxHashMap::default();
        self.bound(sum, &mut known).filter(|_| known.len() < MOST_STEPS)
    }

    fn least(&self, sum: &IndexExpr) -> Option<i64> {
        self.most(&sum.scale(-1)).map(|most| -most)
    }

    /// Bounds in place of the latest unknown come to the same sums in many ways: `known` has what each can be at most.
    fn bound(&self, sum: &IndexExpr, known: &mut FxHashMap<IndexExpr, Option<i64>>) -> Option<i64> {
        let Some((unknown, factor)) = latest(sum) else { return sum.as_constant() };
        if let Some(most) = known.get(sum) {
            return *most;
        }
        if known.len() >= MOST_STEPS {
            return None;
        }
        let rest = sum.sub(&IndexExpr::axis(AxisId(unknown)).scale(factor));
        let Unknown { least, most } = &self.unknowns[unknown as usize];
        let bounds = if factor > 0 { most } else { least };
        let mut most = None;
        for (by, bound) in bounds.iter().map(|(by, bound)| (*by, bound)) {
            let mut take = |other: Option<i64>| most = most.into_iter().chain(other).min();
            if factor % by == 0 {
                take(self.bound(&rest.add(&bound.scale(factor / by)), known));
            }
            if by > 1 {
                let whole = match factor > 0 {
                    true => self.bound(bound, known).map(|most| most.div_euclid(by)),
                    false => self.bound(&bound.scale(-1), known).map(|most| -most.div_euclid(by)),
                };
                take(whole.and_then(|whole| self.bound(&rest.offset(factor * whole), known)));
            }
        }
        known.insert(sum.clone(), most);
        most
    }
}

/// The latest unknown of a sum, and its factor.
fn latest(sum: &IndexExpr) -> Option<(u32, i64)> {
    let terms = sum.terms().iter().filter_map(|(atom, factor)| match atom {
        Atom::Axis(axis) => Some((axis.0, *factor)),
        Atom::Div(..) | Atom::Mod(..) => None,
    });
    terms.max()
}
