//! Loops from whose first position to their last quotients by constants stay, in C: remainders grow there with what is divided, so
//! that what they begin as is computed before the loop, and not at every position.

use super::Printer;
use crate::Language;
use crate::index::{Atom, AxisId, IndexExpr};
use crate::nest::stmt::{Expr, LoopHint, Stmt};
use crate::nest::variable::Var;

/// Such a loop.
pub(super) struct Segment {
    axis: AxisId,
    /// Its first position.
    first: String,
    /// Axes that have positions inside of it.
    inside: Vec<AxisId>,
    /// Sums of quotients and remainders, and the name of what each begins as.
    parts: Vec<(IndexExpr, String)>,
}

impl Segment {
    /// The quotients and remainders of an index that stay or grow along the loop, and the rest.
    fn parts_of(&self, index: &IndexExpr) -> Option<(IndexExpr, IndexExpr)> {
        let (mut parts, mut rest) = (IndexExpr::zero(), index.clone());
        for (atom, factor) in index.terms() {
            if matches!(atom, Atom::Div(of, _) | Atom::Mod(of, _) if of.uses(self.axis)) {
                let term = IndexExpr::atom(atom.clone()).scale(*factor);
                (parts, rest) = (parts.add(&term), rest.sub(&term));
            }
        }
        let is_known = !self.inside.iter().any(|&axis| parts.uses(axis));
        (is_known && parts != IndexExpr::zero()).then_some((parts, rest))
    }
}

/// By how much an index grows from one position to the next, where quotients stay.
fn growth(index: &IndexExpr, axis: AxisId) -> i64 {
    let own = |atom: &Atom| match atom {
        Atom::Axis(own) => i64::from(*own == axis),
        Atom::Div(..) => 0,
        Atom::Mod(of, _) => growth(of, axis),
    };
    index.terms().iter().map(|(atom, factor)| factor * own(atom)).sum()
}

/// The axes whose positions statements say.
fn bound(body: &[Stmt], axes: &mut Vec<AxisId>) {
    for stmt in body {
        if let Stmt::Let { var: Var::Axis(axis), .. } | Stmt::For { var: Var::Axis(axis), .. } = stmt {
            axes.push(*axis);
        }
        stmt.bodies().into_iter().for_each(|body| bound(body, axes));
    }
}

impl Printer<'_> {
    /// What was the segment before, where the loop that is printed next is one.
    pub(super) fn enter_segment(
        &mut self,
        var: Var,
        from: &Expr,
        hint: LoopHint,
        body: &[Stmt],
    ) -> Option<Option<Segment>> {
        let (Var::Axis(axis), LoopHint::SimdSegment, Language::C) = (var, hint, self.language) else {
            return None;
        };
        let (first, mut inside) = (self.operand(from, 6), Vec::new());
        bound(body, &mut inside);
        Some(self.segment.replace(Segment { axis, first, inside, parts: Vec::new() }))
    }

    /// Has what the segment's indices begin as stand before it, where its text does.
    pub(super) fn leave_segment(&mut self, outer: Option<Option<Segment>>, at: usize) {
        let Some(outer) = outer else { return };
        let Some(segment) = std::mem::replace(&mut self.segment, outer) else { return };
        let text = self.text.split_off(at);
        for (parts, name) in &segment.parts {
            let name_of = |axis: AxisId| match axis == segment.axis {
                true => segment.first.clone(),
                false => self.kernel.axis(axis).name.clone(),
            };
            let begin = parts.to_text(&name_of, "");
            let grown = match growth(parts, segment.axis) {
                0 => String::new(),
                1 => format!(" - {}", segment.first),
                step => format!(" - {} * {step}", segment.first),
            };
            self.line(&format!("const idx {name} = {begin}{grown};"));
        }
        self.text += &text;
    }

    /// An index in a segment, where some of it is computed before.
    pub(super) fn index_in_segment(&mut self, index: &IndexExpr) -> Option<String> {
        let segment = self.segment.as_mut()?;
        let (parts, rest) = segment.parts_of(index)?;
        let name = match segment.parts.iter().find(|(known, _)| *known == parts) {
            Some((_, name)) => name.clone(),
            None => {
                let name = format!("from{}", self.begun);
                self.begun += 1;
                segment.parts.push((parts.clone(), name.clone()));
                name
            }
        };
        let grown = IndexExpr::axis(segment.axis).scale(growth(&parts, segment.axis));
        let rest = rest.add(&grown);
        if rest == IndexExpr::zero() {
            return Some(name);
        }
        let rest = self.wrapping_index(&rest);
        Some(if rest.starts_with('-') { format!("{name} + ({rest})") } else { format!("{rest} + {name}") })
    }

    /// Whether an index is a sum in this segment, though it has one term.
    pub(super) fn is_of_segment(&self, index: &IndexExpr) -> bool {
        self.segment.as_ref().is_some_and(|segment| segment.parts_of(index).is_some())
    }
}
