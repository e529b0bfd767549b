//! Laws that hold for every value: NaN, infinities, signed zeros, subnormals and wrapping integers
//! (payloads and signs of NaNs aside). The table is the documentation; the tests check every law on
//! special values, and that look-alikes which do *not* hold are left alone: x + 0 (makes +0 of -0),
//! x * 0, x - x, x / x and x == x (NaN, infinities), any reassociation or contraction, sqrt(x²),
//! 1 / (1 / x), pow(x, 0.5) and roundings through a narrower type.

use super::rule::{Rule, Site, Step, rewrite};
use crate::graph::op::{ConstantRole, Op};
use crate::graph::{Graph, NodeId};
use crate::{BinaryOp, DType, Scalar, UnaryOp};

pub(super) fn run(graph: &Graph) -> Option<Graph> {
    rewrite(graph, rules_for)
}

pub(super) fn rules_for(op: &Op) -> &'static [Rule] {
    match op {
        Op::Unary(_) => &UNARY,
        Op::Binary(op) => match op {
            BinaryOp::Add => &ADD,
            BinaryOp::Sub => &SUB,
            BinaryOp::Mul => &MUL,
            BinaryOp::Div => &DIV,
            BinaryOp::Pow => &POW,
            BinaryOp::Maximum | BinaryOp::Minimum => &EXTREMA,
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => &BITWISE,
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                &COMPARISONS
            }
            _ => &[],
        },
        Op::Select => &SELECT,
        Op::Cast => &CAST,
        _ => &[],
    }
}

pub(super) const UNARY: [Rule; 6] = [
    Rule {
        name: "involution",
        statement: "-(-x), not(not(x)) and bitnot(bitnot(x)) are x",
        apply: |site| match site.node.op {
            Op::Unary(op @ (UnaryOp::Neg | UnaryOp::Not | UnaryOp::BitNot)) => {
                Some(Step::Existing(of_unary(site, 0, |inner, outer| inner == outer, op)?))
            }
            _ => None,
        },
    },
    Rule {
        name: "idempotence",
        statement: "abs(abs(x)), relu(relu(x)) and sign(sign(x)) are the inner one",
        apply: |site| match site.node.op {
            Op::Unary(op @ (UnaryOp::Abs | UnaryOp::Relu | UnaryOp::Sign)) => {
                of_unary(site, 0, |inner, outer| inner == outer, op)?;
                site.become_operand(0)
            }
            _ => None,
        },
    },
    Rule {
        name: "round_of_integral",
        statement: "floor, ceil, round and trunc leave what one of them has rounded as it is",
        apply: |site| match site.node.op {
            Op::Unary(op @ (UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc)) => {
                of_unary(site, 0, |inner, _| rounds(inner), op)?;
                site.become_operand(0)
            }
            _ => None,
        },
    },
    Rule {
        name: "even_of_neg",
        statement: "abs(-x), abs(x)² and (-x)² do not see the sign: abs(x), x² and x²; abs(-x) of unsigned integers does",
        apply: |site| match site.node.op {
            Op::Unary(UnaryOp::Abs) if site.node.dtype.is_unsigned() => None,
            Op::Unary(op @ (UnaryOp::Abs | UnaryOp::Square)) => {
                let x = of_unary(
                    site,
                    0,
                    |inner, outer| inner == UnaryOp::Neg || inner == UnaryOp::Abs && outer == UnaryOp::Square,
                    op,
                )?;
                site.become_op(Op::Unary(op), &[x])
            }
            _ => None,
        },
    },
    Rule {
        name: "not_of_equality",
        statement: "not(a == b) is a != b and the reverse, for NaN too",
        apply: |site| {
            let (Op::Unary(UnaryOp::Not), Op::Binary(inner)) = (&site.node.op, &site.operand(0).op) else {
                return None;
            };
            let opposite = match inner {
                BinaryOp::Eq => BinaryOp::Ne,
                BinaryOp::Ne => BinaryOp::Eq,
                _ => return None,
            };
            site.become_op(Op::Binary(opposite), &site.inner(0))
        },
    },
    Rule {
        name: "not_of_order",
        statement: "not(a < b) is a >= b and so on, for integers and bools (NaN is neither)",
        apply: |site| {
            let (Op::Unary(UnaryOp::Not), Op::Binary(inner)) = (&site.node.op, &site.operand(0).op) else {
                return None;
            };
            let opposite = match inner {
                BinaryOp::Lt => BinaryOp::Ge,
                BinaryOp::Ge => BinaryOp::Lt,
                BinaryOp::Gt => BinaryOp::Le,
                BinaryOp::Le => BinaryOp::Gt,
                _ => return None,
            };
            let operands = site.inner(0);
            let float = site.graph.node(*operands.first()?).dtype.is_float();
            (!float).then(|| site.become_op(Op::Binary(opposite), &operands))?
        },
    },
];

/// The operand of operand `n`, if that is a unary operation that fits the outer one.
fn of_unary(site: &Site<'_>, n: usize, fits: fn(UnaryOp, UnaryOp) -> bool, outer: UnaryOp) -> Option<NodeId> {
    match site.operand(n).op {
        Op::Unary(inner) if fits(inner, outer) => site.inner(n).first().copied(),
        _ => None,
    }
}

fn rounds(op: UnaryOp) -> bool {
    matches!(op, UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc)
}

pub(super) const ADD: [Rule; 2] = [
    Rule {
        name: "add_neutral",
        statement: "x + 0 is x for integers and bools; x + (-0.0) is x for floats",
        apply: |site| {
            site.splat_of(1, |c| is_negative_zero(c) || is_integer(c, 0))?;
            site.become_operand(0)
        },
    },
    Rule {
        name: "add_neg",
        statement: "a + (-b) is a - b, and (-a) + b is b - a",
        apply: |site| {
            let neg = |n| of_unary(site, n, |inner, _| inner == UnaryOp::Neg, UnaryOp::Neg);
            match (neg(1), neg(0)) {
                (Some(b), _) => site.become_op(Op::Binary(BinaryOp::Sub), &[site.operands[0], b]),
                (None, Some(a)) => site.become_op(Op::Binary(BinaryOp::Sub), &[site.operands[1], a]),
                (None, None) => None,
            }
        },
    },
];

pub(super) const SUB: [Rule; 3] = [
    Rule {
        name: "sub_zero",
        statement: "x - 0 is x; not x - (-0.0), which makes +0 of -0",
        apply: |site| {
            site.splat_of(1, |c| is_positive_zero(c) || is_integer(c, 0))?;
            site.become_operand(0)
        },
    },
    Rule {
        name: "sub_neg",
        statement: "a - (-b) is a + b",
        apply: |site| {
            let b = of_unary(site, 1, |inner, _| inner == UnaryOp::Neg, UnaryOp::Neg)?;
            site.become_op(Op::Binary(BinaryOp::Add), &[site.operands[0], b])
        },
    },
    Rule {
        name: "sub_itself",
        statement: "x - x is 0 for integers",
        apply: |site| {
            let applies = site.operands[0] == site.operands[1] && !site.node.dtype.is_float();
            applies.then(|| site.become_constant(integer(site.node.dtype, 0), ConstantRole::Literal))?
        },
    },
];

pub(super) const MUL: [Rule; 3] = [
    Rule {
        name: "mul_one",
        statement: "x * 1 is x, and x and true is x",
        apply: |site| {
            site.splat_of(1, is_one)?;
            site.become_operand(0)
        },
    },
    Rule {
        name: "mul_minus_one",
        statement: "x * (-1) is -x",
        apply: |site| {
            site.splat_of(1, |c| is_integer(c, -1) || c.dtype().is_float() && c.as_f64() == -1.0)?;
            site.become_op(Op::Unary(UnaryOp::Neg), &[site.operands[0]])
        },
    },
    Rule {
        name: "mul_zero",
        statement: "x * 0 is 0 for integers and bools",
        apply: |site| {
            site.splat_of(1, |c| is_integer(c, 0))?;
            site.become_operand(1)
        },
    },
];

pub(super) const DIV: [Rule; 2] = [
    Rule {
        name: "div_one",
        statement: "x / 1 is x",
        apply: |site| {
            site.splat_of(1, is_one)?;
            site.become_operand(0)
        },
    },
    Rule {
        name: "div_power_of_two",
        statement: "x / 2^k is x * 2^-k, where both are normal; for numbers printed in the kernel's text",
        apply: |site| {
            // Not for arguments: a mean of 32 and one of 33 elements are to be the same kernel.
            let divisor = site.splat(1).filter(|c| c.role == ConstantRole::Literal)?;
            let factor = reciprocal_of_power_of_two(divisor.value)?;
            let factor = site.constant(factor, divisor.role);
            site.become_op(Op::Binary(BinaryOp::Mul), &[site.operands[0], factor])
        },
    },
];

/// The reciprocal, if the value is plus or minus a power of two, and both are normal numbers.
fn reciprocal_of_power_of_two(value: Scalar) -> Option<Scalar> {
    let (mantissa_bits, exponent_bits) = match value.dtype() {
        DType::F16 => (10, 5),
        DType::BF16 => (7, 8),
        DType::F32 => (23, 8),
        DType::F64 => (52, 11),
        DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::U32 | DType::I64 => {
            return None;
        }
    };
    let bias = (1u64 << (exponent_bits - 1)) - 1;
    let exponent = value.to_bits() >> mantissa_bits & (2 * bias + 1);
    let is_power = value.to_bits() & ((1 << mantissa_bits) - 1) == 0;
    // The exponent of the reciprocal is mirrored at the bias; 0 and the largest are no normal numbers.
    let mirrored = (2 * bias).checked_sub(exponent).filter(|&mirrored| mirrored > 0 && exponent > 0)?;
    let sign = value.to_bits() >> (mantissa_bits + exponent_bits);
    let bits = (sign << exponent_bits | mirrored) << mantissa_bits;
    is_power.then(|| Scalar::from_bits(value.dtype(), bits))
}

pub(super) const POW: [Rule; 4] = [
    Rule {
        name: "pow_zero",
        statement: "pow(x, 0) is 1, for NaN too",
        apply: |site| {
            let zero = site.splat_of(1, |c| !c.is_nonzero())?;
            site.become_constant(integer(site.node.dtype, 1), zero.role)
        },
    },
    Rule {
        name: "pow_one",
        statement: "pow(x, 1) is x",
        apply: |site| {
            site.splat_of(1, is_one)?;
            site.become_operand(0)
        },
    },
    Rule {
        name: "pow_two",
        statement: "pow(x, 2) is x * x",
        apply: |site| {
            site.splat_of(1, |c| c.as_f64() == 2.0)?;
            site.become_op(Op::Unary(UnaryOp::Square), &[site.operands[0]])
        },
    },
    Rule {
        name: "pow_minus_one",
        statement: "pow(x, -1) is 1 / x for floats",
        apply: |site| {
            site.splat_of(1, |c| c.dtype().is_float() && c.as_f64() == -1.0)?;
            site.become_op(Op::Unary(UnaryOp::Reciprocal), &[site.operands[0]])
        },
    },
];

pub(super) const EXTREMA: [Rule; 2] = [
    Rule {
        name: "extremum_with_itself",
        statement: "max(x, x) and min(x, x) are x",
        apply: |site| (site.operands[0] == site.operands[1]).then(|| site.become_operand(0))?,
    },
    Rule {
        name: "extremum_with_bound",
        statement: "max(x, the least value) and min(x, the greatest) are x; for floats these are ±infinity",
        apply: |site| {
            match site.node.op {
                Op::Binary(BinaryOp::Maximum) => site.splat_of(1, |c| c == bound(c.dtype(), false))?,
                Op::Binary(BinaryOp::Minimum) => site.splat_of(1, |c| c == bound(c.dtype(), true))?,
                _ => return None,
            };
            site.become_operand(0)
        },
    },
];

/// The greatest or the least value.
fn bound(dtype: DType, greatest: bool) -> Scalar {
    match dtype {
        DType::Bool => Scalar::from_bool(greatest),
        // Saturates: the extreme integers.
        _ => Scalar::from_f64(dtype, if greatest { f64::INFINITY } else { f64::NEG_INFINITY }),
    }
}

pub(super) const BITWISE: [Rule; 4] = [
    Rule {
        name: "bitwise_with_itself",
        statement: "x and x, x or x are x; x xor x is 0",
        apply: |site| {
            if site.operands[0] != site.operands[1] {
                return None;
            }
            match site.node.op {
                Op::Binary(BinaryOp::Xor) => {
                    site.become_constant(integer(site.node.dtype, 0), ConstantRole::Literal)
                }
                _ => site.become_operand(0),
            }
        },
    },
    Rule {
        name: "bitwise_neutral",
        statement: "x and all ones, x or 0, x xor 0 are x",
        apply: |site| {
            match site.node.op {
                Op::Binary(BinaryOp::And) => site.splat_of(1, is_all_ones)?,
                _ => site.splat_of(1, |c| is_integer(c, 0))?,
            };
            site.become_operand(0)
        },
    },
    Rule {
        name: "bitwise_absorbing",
        statement: "x and 0 is 0, x or all ones is all ones",
        apply: |site| {
            match site.node.op {
                Op::Binary(BinaryOp::And) => site.splat_of(1, |c| is_integer(c, 0))?,
                Op::Binary(BinaryOp::Or) => site.splat_of(1, is_all_ones)?,
                _ => return None,
            };
            site.become_operand(1)
        },
    },
    Rule {
        name: "xor_all_ones",
        statement: "x xor all ones is not(x)",
        apply: |site| {
            let Op::Binary(BinaryOp::Xor) = site.node.op else { return None };
            let ones = site.splat_of(1, is_all_ones)?;
            let op = if ones.value.dtype() == DType::Bool { UnaryOp::Not } else { UnaryOp::BitNot };
            site.become_op(Op::Unary(op), &[site.operands[0]])
        },
    },
];

pub(super) const COMPARISONS: [Rule; 1] = [Rule {
    name: "compare_with_itself",
    statement: "x == x, x <= x and x >= x are true, the others false, for integers and bools",
    apply: |site| {
        let Op::Binary(op) = site.node.op else { return None };
        let applies = site.operands[0] == site.operands[1] && !site.operand(0).dtype.is_float();
        let value = Scalar::from_bool(matches!(op, BinaryOp::Eq | BinaryOp::Le | BinaryOp::Ge));
        applies.then(|| site.become_constant(value, ConstantRole::Literal))?
    },
}];

pub(super) const SELECT: [Rule; 4] = [
    Rule {
        name: "select_by_constant",
        statement: "where(true, a, b) is a, where(false, a, b) is b",
        apply: |site| {
            let condition = site.splat(0)?;
            site.become_operand(if condition.value.is_nonzero() { 1 } else { 2 })
        },
    },
    Rule {
        name: "select_between_same",
        statement: "where(c, x, x) is x",
        apply: |site| {
            let same = site.operands[1] == site.operands[2]
                || matches!((site.splat(1), site.splat(2)), (Some(a), Some(b)) if a == b);
            same.then(|| site.become_operand(1))?
        },
    },
    Rule {
        name: "select_by_not",
        statement: "where(not(c), a, b) is where(c, b, a)",
        apply: |site| {
            let c = of_unary(site, 0, |inner, _| inner == UnaryOp::Not, UnaryOp::Not)?;
            site.become_op(Op::Select, &[c, site.operands[2], site.operands[1]])
        },
    },
    Rule {
        name: "select_of_bools",
        statement: "where(c, true, false) is c, where(c, false, true) is not(c)",
        apply: |site| {
            let (Some(a), Some(b)) = (site.splat(1), site.splat(2)) else { return None };
            match (site.node.dtype, a.value.is_nonzero(), b.value.is_nonzero()) {
                (DType::Bool, true, false) => site.become_operand(0),
                (DType::Bool, false, true) => site.become_op(Op::Unary(UnaryOp::Not), &[site.operands[0]]),
                _ => None,
            }
        },
    },
];

pub(super) const CAST: [Rule; 1] = [Rule {
    name: "cast_through_wider",
    statement: "(x as W) as T is x as T, if every x is a W",
    apply: |site| {
        let Op::Cast = site.operand(0).op else { return None };
        let x = *site.inner(0).first()?;
        let (from, through, to) = (site.graph.node(x).dtype, site.operand(0).dtype, site.node.dtype);
        if !casts_merge(from, through, to) {
            return None;
        }
        site.become_op(Op::Cast, &[x])
    },
}];

/// Whether a cast `from` → `through` → `to` is the same as the direct one, for every value.
fn casts_merge(from: DType, through: DType, to: DType) -> bool {
    // A 16-bit float is rounded by the first cast.
    if !is_lossless(from, through) || from == through && from.compute() != from {
        return false;
    }
    match (from.is_float(), through.is_float(), to.is_float()) {
        // An integer that has become a float saturates where it would have wrapped.
        (false, true, false) => to == DType::Bool || is_lossless(from, to),
        // There are two ways to round an i32 to 16 bits: through f32 or not.
        (false, true, true) => through != DType::F64 || !matches!(to, DType::F16 | DType::BF16),
        (true, false, _) => false,
        (true, true, _) | (false, false, _) => true,
    }
}

/// Whether every value of `from` is a value of `to`.
fn is_lossless(from: DType, to: DType) -> bool {
    match from {
        DType::Bool => true,
        DType::U8 => !matches!(to, DType::Bool | DType::I8),
        DType::I8 => !matches!(to, DType::Bool | DType::U8 | DType::U32),
        DType::I16 => matches!(to, DType::I16 | DType::I32 | DType::I64 | DType::F32 | DType::F64),
        DType::I32 => matches!(to, DType::I32 | DType::I64 | DType::F64),
        DType::U32 => matches!(to, DType::U32 | DType::I64 | DType::F64),
        DType::I64 => to == DType::I64,
        DType::F16 => matches!(to, DType::F16 | DType::F32 | DType::F64),
        DType::BF16 => matches!(to, DType::BF16 | DType::F32 | DType::F64),
        DType::F32 => matches!(to, DType::F32 | DType::F64),
        DType::F64 => to == DType::F64,
    }
}

fn integer(dtype: DType, value: i64) -> Scalar {
    Scalar::from_i64(dtype, value)
}

/// An integer or bool constant of this value.
fn is_integer(c: Scalar, value: i64) -> bool {
    !c.dtype().is_float() && c == integer(c.dtype(), value) && (c.dtype() != DType::Bool || value >= 0)
}

fn is_all_ones(c: Scalar) -> bool {
    is_integer(c, if c.dtype() == DType::Bool { 1 } else { -1 })
}

fn is_one(c: Scalar) -> bool {
    c == integer(c.dtype(), 1)
}

fn is_positive_zero(c: Scalar) -> bool {
    c.dtype().is_float() && c == Scalar::from_f64(c.dtype(), 0.0)
}

fn is_negative_zero(c: Scalar) -> bool {
    c.dtype().is_float() && c == Scalar::from_f64(c.dtype(), -0.0)
}
