//! Passes along rows without conditions: where guards change from row to row, each row chooses one of several passes, and where
//! they change along the row, the pass is one of several parts. No compiler makes vectors of loads under a condition.

use super::INDEX;
use super::emitter::Emitter;
use super::interior::{bounds, decided, without};
use super::passes::Plan;
use super::segments::Segments;
use super::stmt::Arithmetic::{Less, Max, Min};
use super::stmt::{Expr, Stmt};
use crate::index::{Bound, IndexExpr};
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp};

/// More sweeps for each pass are too much text. Without them, a sum over a join tests every part at every element.
const MOST: usize = 16;

/// A kernel whose passes are peeled.
pub(super) enum Peeled {
    /// Nothing is left to decide.
    Plain(Box<Kernel>),
    /// Segments of an axis of the rows, or of the reduced one.
    Segments(Segments),
    /// Rows that are inside, and those that are not.
    Rows { bounds: Vec<Bound>, inside: Box<Peeled>, outside: Box<Peeled> },
}

/// What appends a pass of a kernel over a part of the row.
pub(super) type Part<'a, 'k> = &'a mut dyn FnMut(&mut Emitter<'k>, &'k Kernel, Expr, Expr);

impl Peeled {
    /// `None` if nothing is guarded, or if guards are of another form.
    pub(super) fn of(kernel: &Kernel, plan: &Plan) -> Option<Peeled> {
        let is_guarded = kernel.values.iter().any(|value| !bounds(&value.op).is_empty());
        if !is_guarded {
            return None;
        }
        let peeled = Peeled::segments(kernel, plan).or_else(|| Peeled::rows(kernel, plan))?;
        (peeled.sweeps() <= MOST).then_some(peeled)
    }

    fn segments(kernel: &Kernel, plan: &Plan) -> Option<Peeled> {
        let swept = if plan.axes.len() == 1 { plan.axes.first() } else { None };
        let is_cut = |axis| kernel.axis(axis).kind == AxisKind::Map || swept == Some(&axis);
        let segments = Segments::along(kernel, &is_cut)?;
        // What begins at an offset has no known order with where the row ends.
        let is_known = segments.parts.iter().all(|(start, _)| start.as_constant().is_some());
        (is_known && segments.runs.is_empty()).then_some(Peeled::Segments(segments))
    }

    /// Where all guards have the same conditions of the rows, these first.
    fn rows(kernel: &Kernel, plan: &Plan) -> Option<Peeled> {
        let is_of_row = |bound: &Bound| {
            let is_map = |axis| kernel.axis(axis).kind.is_map_or_offset();
            bound.expr.axes().into_iter().all(is_map)
        };
        let of_row = |op: &ValueOp| -> Vec<Bound> {
            bounds(op).iter().filter(|bound| is_of_row(bound)).cloned().collect()
        };
        let mut guards = kernel.values.iter().filter(|value| !bounds(&value.op).is_empty());
        let first = of_row(&guards.next()?.op);
        if first.is_empty() || guards.any(|value| of_row(&value.op) != first) {
            return None;
        }
        let inside = without(kernel, &first);
        let outside = decided(kernel, |_| false);
        let is_left = inside.values.iter().any(|value| !bounds(&value.op).is_empty());
        let inside = match is_left {
            true => Peeled::segments(&inside, plan)?,
            false => Peeled::Plain(Box::new(inside)),
        };
        let outside = Box::new(Peeled::Plain(Box::new(outside)));
        Some(Peeled::Rows { bounds: first, inside: Box::new(inside), outside })
    }

    /// Whether rows are swept in parts.
    pub(super) fn cuts_rows(&self) -> bool {
        match self {
            Peeled::Plain(_) => false,
            Peeled::Segments(segments) => kernel_of(segments).axis(segments.axis).kind != AxisKind::Map,
            Peeled::Rows { inside, outside, .. } => inside.cuts_rows() || outside.cuts_rows(),
        }
    }

    /// How many sweeps there are for one pass.
    fn sweeps(&self) -> usize {
        match self {
            Peeled::Plain(_) => 1,
            Peeled::Segments(segments) => segments.parts.len(),
            Peeled::Rows { inside, outside, .. } => inside.sweeps() + outside.sweeps(),
        }
    }

    /// The pass from one position to another.
    pub(super) fn emit<'k>(
        &'k self,
        emitter: &mut Emitter<'k>,
        (from, to): (&Expr, &Expr),
        part: Part<'_, 'k>,
    ) {
        let mut left = Left { before: there(emitter), after: None };
        match self {
            Peeled::Plain(kernel) => left.part(emitter, kernel, (from.clone(), to.clone()), true, part),
            Peeled::Segments(segments) if !self.cuts_rows() => {
                let mut choice: Vec<Stmt> = Vec::new();
                for (number, (_, kernel)) in segments.parts.iter().enumerate().rev() {
                    emitter.open(&[], false);
                    left.part(emitter, kernel, (from.clone(), to.clone()), true, part);
                    let body = emitter.close();
                    choice = match segments.parts.get(number + 1) {
                        None => body,
                        Some((end, _)) => vec![Stmt::If {
                            condition: Expr::name(segments.axis).then(Less, position(end)),
                            then: body,
                            otherwise: choice,
                        }],
                    };
                }
                emitter.append(choice);
            }
            Peeled::Segments(segments) => {
                let whole = *from == Expr::Int(0) && matches!(to, Expr::Int(_));
                let mut start = from.clone();
                for (number, (_, kernel)) in segments.parts.iter().enumerate() {
                    let end = match segments.parts.get(number + 1).map(|(end, _)| position(end)) {
                        None => to.clone(),
                        Some(end) if whole => end,
                        Some(end) => {
                            let name = emitter.fresh("segment");
                            let end = from.clone().then(Max, end).then(Min, to.clone());
                            Expr::Name(emitter.bind(name, INDEX, end))
                        }
                    };
                    left.part(emitter, kernel, (start, end.clone()), false, part);
                    start = end;
                }
            }
            Peeled::Rows { bounds, inside, outside } => {
                let [then, otherwise] = [inside, outside].map(|peeled| {
                    left.begin(emitter);
                    emitter.open(&[], false);
                    peeled.emit(emitter, (from, to), part);
                    left.end(emitter);
                    emitter.close()
                });
                emitter.push(Stmt::If { condition: Expr::InBounds(bounds.clone()), then, otherwise });
            }
        }
        left.leave(emitter);
    }
}

fn kernel_of(segments: &Segments) -> &Kernel {
    &segments.parts[0].1
}

fn position(at: &IndexExpr) -> Expr {
    Expr::Int(at.as_constant().unwrap_or(0) as u64)
}

fn there(emitter: &Emitter) -> Vec<ValueId> {
    emitter.cached.as_ref().map_or_else(Vec::new, |kept| kept.there.clone())
}

/// What passes leave to each other: later ones find what all parts of an earlier one have left.
struct Left {
    before: Vec<ValueId>,
    after: Option<Vec<ValueId>>,
}

impl Left {
    fn begin(&self, emitter: &mut Emitter) {
        if let Some(kept) = &mut emitter.cached {
            kept.there.clone_from(&self.before);
        }
    }

    fn end(&mut self, emitter: &Emitter) {
        let there = there(emitter);
        match &mut self.after {
            None => self.after = Some(there),
            Some(after) => after.retain(|id| there.contains(id)),
        }
    }

    fn leave(self, emitter: &mut Emitter) {
        if let (Some(kept), Some(after)) = (&mut emitter.cached, self.after) {
            kept.there = after;
        }
    }

    fn part<'k>(
        &mut self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        (from, to): (Expr, Expr),
        is_branch: bool,
        part: Part<'_, 'k>,
    ) {
        self.begin(emitter);
        // What is computed once a row is right in this part alone.
        emitter.open_pinned();
        emitter.using(kernel, |emitter| part(emitter, kernel, from, to));
        let body = emitter.close();
        match is_branch || body.len() < 2 {
            true => emitter.append(body),
            false => emitter.push(Stmt::Block(body)),
        }
        self.end(emitter);
    }
}
