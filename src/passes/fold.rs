//! Constant folding: an operation on constants becomes a constant, if its result is exactly defined
//! (see [`exact`]): the same bits that a kernel would compute. What has no elements is any constant.

use std::cell::Cell;

use super::exact;
use super::rule::{Rule, Site, Step, rewrite};
use crate::Scalar;
use crate::graph::Graph;
use crate::graph::op::{Constant, ConstantRole, Op, View};

thread_local! {
    /// Whether something was computed from an argument since somebody asked.
    static COMPUTES: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn run(graph: &Graph) -> Option<Graph> {
    rewrite(graph, rules_for)
}

pub(crate) fn noting_arguments<T>(f: impl FnOnce() -> T) -> (T, bool) {
    COMPUTES.set(false);
    let result = f();
    (result, COMPUTES.get())
}

/// The constant, whose value is then looked at.
fn looked_at(site: &Site<'_>, n: usize) -> Option<Constant> {
    let constant = site.splat(n)?;
    if constant.role == ConstantRole::Argument {
        COMPUTES.set(true);
    }
    Some(constant)
}

const EMPTY: Rule =
    Rule { name: "empty", statement: "what has no elements is a constant", apply: |site| empty(site) };
const UNARY: [Rule; 2] =
    [EMPTY, Rule { name: "unary", statement: "f(c) is a constant", apply: |site| unary(site) }];
const BINARY: [Rule; 2] =
    [EMPTY, Rule { name: "binary", statement: "f(c, d) is a constant", apply: |site| binary(site) }];
const CAST: [Rule; 2] =
    [EMPTY, Rule { name: "cast", statement: "c as T is a constant", apply: |site| cast(site) }];

fn rules_for(op: &Op) -> &'static [Rule] {
    match op {
        Op::Unary(_) => &UNARY,
        Op::Binary(_) => &BINARY,
        Op::Cast => &CAST,
        Op::Input(_) | Op::Constant(_) => &[],
        // A select between constants, or by a constant, is a law of `simplify`.
        _ => &[EMPTY],
    }
}

/// In an empty batch all shapes have equally many elements, none, by which fusion could not tell them apart.
fn empty(site: &mut Site<'_>) -> Option<Step> {
    let node = site.node;
    let is_done = matches!(node.op, Op::View(View::Expand)) && site.splat(0).is_some();
    if node.shape.elements() > 0 || is_done {
        return None;
    }
    site.become_constant(Scalar::from_f64(node.dtype, 0.0), ConstantRole::Literal)
}

fn unary(site: &mut Site<'_>) -> Option<Step> {
    let Op::Unary(op) = site.node.op else { return None };
    if !exact::has_unary(op, site.splat(0)?.value.dtype()) {
        return None;
    }
    let x = looked_at(site, 0)?;
    site.become_constant(exact::unary(op, x.value)?, x.role)
}

fn binary(site: &mut Site<'_>) -> Option<Step> {
    let Op::Binary(op) = site.node.op else { return None };
    if !exact::has_binary(op, site.splat(0)?.value.dtype()) {
        return None;
    }
    site.splat(1)?;
    let (a, b) = (looked_at(site, 0)?, looked_at(site, 1)?);
    site.become_constant(exact::binary(op, a.value, b.value)?, joined(a.role, b.role))
}

fn cast(site: &mut Site<'_>) -> Option<Step> {
    let x = looked_at(site, 0)?;
    site.become_constant(exact::cast(x.value, site.node.dtype)?, x.role)
}

/// What follows from an argument is an argument.
fn joined(a: ConstantRole, b: ConstantRole) -> ConstantRole {
    match (a, b) {
        (ConstantRole::Literal, ConstantRole::Literal) => ConstantRole::Literal,
        (ConstantRole::Argument, _) | (_, ConstantRole::Argument) => ConstantRole::Argument,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::sketch::Sketch;
    use crate::graph::text::{Locations, text};
    use crate::{BinaryOp, DType, UnaryOp};

    #[test]
    fn chains_of_constants_fold_in_one_pass_and_keep_the_stronger_role() {
        let mut s = Sketch::new();
        let x = s.input([3], DType::F32);
        let three = s.splat_as(Scalar::from_f64(DType::I32, 3.0), ConstantRole::Literal, [3]);
        let two = s.splat(Scalar::from_f64(DType::F32, 2.0), [3]);
        let three = s.cast(three, DType::F32);
        let sum = s.binary(BinaryOp::Add, three, two);
        let root = s.unary(UnaryOp::Sqrt, sum);
        let y = s.binary(BinaryOp::Mul, x, root);
        let folded = run(&s.outputs([y, three])).unwrap();
        let expected = "\
%0 = input slot=0 : f32 [3]
%1 = constant 3.0 literal : f32 []  # cast
%2 = expand(%1) : f32 [3]  # cast
%3 = constant 2.236068 argument : f32 []  # sqrt
%4 = expand(%3) : f32 [3]  # sqrt
%5 = mul(%0, %4) : f32 [3]
return %5, %2
";
        assert_eq!(text(&folded, Locations::Hidden), expected);
        assert!(run(&folded).is_none());
    }

    #[test]
    fn what_has_no_elements_needs_no_operands() {
        let mut s = Sketch::new();
        let x = s.input([0, 3], DType::F32);
        let wide = s.cast(x, DType::F64);
        let root = s.unary(UnaryOp::Sqrt, wide);
        let folded = run(&s.outputs([root, x])).unwrap();
        let expected = "\
%0 = input slot=0 : f32 [0, 3]
%1 = constant 0.0 literal : f64 []  # sqrt
%2 = expand(%1) : f64 [0, 3]  # sqrt
return %2, %0
";
        assert_eq!(text(&folded, Locations::Hidden), expected);
        assert!(run(&folded).is_none());
    }

    #[test]
    fn what_is_not_exactly_defined_is_left_to_the_kernel() {
        let mut s = Sketch::new();
        let one = s.splat(Scalar::from_f64(DType::F32, 1.0), [3]);
        let half = s.splat(Scalar::from_f64(DType::F16, 0.5), [3]);
        let exp = s.unary(UnaryOp::Exp, one);
        let pow = s.binary(BinaryOp::Pow, one, one);
        // Not rounded to f16 in a register: there is no constant for it.
        let more = s.splat(Scalar::from_f64(DType::F16, 1.5), [3]);
        let third = s.binary(BinaryOp::Div, half, more);
        assert!(run(&s.outputs([exp, pow, third])).is_none());
        let mut s = Sketch::new();
        let half = s.splat(Scalar::from_f64(DType::F16, 0.5), [3]);
        let one = s.binary(BinaryOp::Div, half, half);
        assert!(run(&s.outputs([one])).is_some());
    }
}
