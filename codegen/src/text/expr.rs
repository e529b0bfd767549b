//! Expressions as text, with no more parentheses than needed.

use super::Printer;
use super::lanes::{is_compared_short, launched_ranges};
use crate::index::{AxisId, Bound, IndexExpr};
use crate::intrinsics::{self, parenthesise};
use crate::nest::stmt::{Arithmetic, Builtin, Expr};
use crate::nest::{compared, is_one_comparison};
use crate::{DType, Language};

/// How tightly an operator binds, as in C.
fn precedence(op: Arithmetic) -> u8 {
    match op {
        Arithmetic::Min | Arithmetic::Max => 0,
        Arithmetic::And | Arithmetic::Xor => 1,
        Arithmetic::Equal => 2,
        Arithmetic::Less | Arithmetic::LessEqual => 3,
        Arithmetic::Add | Arithmetic::Sub => 4,
        Arithmetic::Mul | Arithmetic::Div | Arithmetic::Rem => 5,
    }
}

impl Printer<'_> {
    fn suffix(&self) -> &'static str {
        match (self.language, self.is_wide) {
            (Language::Cuda, false) => "u",
            (Language::Cuda, true) => "ull",
            (Language::C, _) => "",
        }
    }

    /// An index as the number that it is, also where a part of it is negative.
    ///
    /// CUDA's 32-bit indices are unsigned, and NVRTC (seen with 13.0 and 13.5) computes `in0[c - i]` as an offset
    /// of `c` from `in0 + (unsigned)-i`, 2^34 bytes away. Differences are therefore taken of signed numbers.
    fn index(&mut self, index: &IndexExpr) -> String {
        let (added, subtracted) = index.by_sign();
        if self.language == Language::C {
            return self.index_in_segment(index).unwrap_or_else(|| self.wrapping_index(index));
        }
        if self.is_wide || subtracted == IndexExpr::zero() {
            return self.wrapping_index(index);
        }
        let signed = |part: &IndexExpr| match part.as_constant() {
            Some(constant) => constant.to_string(),
            None => format!("(int){}", parenthesise(&self.wrapping_index(part))),
        };
        match added == IndexExpr::zero() {
            true => format!("-{}", signed(&subtracted)),
            false => format!("{} - {}", signed(&added), signed(&subtracted)),
        }
    }

    /// An index in unsigned arithmetic: negative numbers wrap.
    pub(super) fn wrapping_index(&self, index: &IndexExpr) -> String {
        let name = |axis: AxisId| {
            let name = &self.kernel.axis(axis).name;
            match self.language == Language::Cuda && self.is_wide && !self.wide_index {
                true => format!("(unsigned long long){name}"),
                false => name.clone(),
            }
        };
        index.to_text(&name, self.suffix())
    }

    /// A text whose indices are 64-bit numbers.
    fn in_64_bits(&mut self, print: impl FnOnce(&mut Self) -> String) -> String {
        let is_wide = std::mem::replace(&mut self.is_wide, true);
        let text = print(self);
        self.is_wide = is_wide;
        text
    }

    /// An operand of an operator: parenthesised if it binds less than `level`.
    pub(super) fn operand(&mut self, expr: &Expr, level: u8) -> String {
        let own = match expr {
            Expr::Arithmetic(op, ..) => precedence(*op),
            Expr::Wide(a) if matches!(**a, Expr::Index(_)) => {
                return self.in_64_bits(|printer| printer.operand(a, level));
            }
            Expr::Index(index) if index.terms().len() + usize::from(index.constant_term() != 0) > 1 => 4,
            Expr::Index(index) if self.is_of_segment(index) => 4,
            Expr::Index(_) => 5,
            _ => return self.primary(expr),
        };
        let text = self.expr(expr);
        if own < level { format!("({text})") } else { text }
    }

    fn primary(&mut self, expr: &Expr) -> String {
        let text = self.expr(expr);
        parenthesise(&text)
    }

    fn arithmetic(&mut self, op: Arithmetic, a: &Expr, b: &Expr) -> String {
        let comparison = match op {
            Arithmetic::Min => "<",
            Arithmetic::Max => ">",
            _ => {
                // Nobody knows by heart what binds less than `^`.
                let level = if op == Arithmetic::Xor { 6 } else { precedence(op) };
                return format!("{} {} {}", self.operand(a, level), op.sign(), self.operand(b, level + 1));
            }
        };
        let (a, b) = (self.operand(a, 4), self.operand(b, 4));
        format!("{a} {comparison} {b} ? {a} : {b}")
    }

    pub(super) fn expr(&mut self, expr: &Expr) -> String {
        let language = self.language;
        match expr {
            Expr::Name(var) => self.name(*var),
            Expr::Int(value) => format!("{value}{}", self.suffix()),
            Expr::Index(index) => self.index(index),
            Expr::Wide(a) => self.in_64_bits(|printer| printer.expr(a)),
            Expr::Arithmetic(op, a, b) => self.arithmetic(*op, a, b),
            Expr::Builtin(builtin) => self.builtin(*builtin),
            Expr::Literal(value) => intrinsics::literal(language, *value),
            Expr::Position(index) => format!("(long long)({})", self.index(index)),
            Expr::InBounds(bounds) => {
                let bounds: Vec<String> = bounds.iter().map(|bound| self.bound(bound)).collect();
                bounds.join(" && ")
            }
            Expr::Random { dtype, seed, index } => {
                let seed = format!("((unsigned long long){})", self.name(*seed));
                let index = format!("((unsigned long long)({}))", self.index(index));
                intrinsics::random_uniform(language, *dtype, &seed, &index, &mut self.helpers)
            }
            Expr::Checked { position, extent, check } => {
                let position = self.expr(position);
                let Some(check) = *check else { return position };
                let extent = self.expr(extent);
                intrinsics::checked_position(language, &position, &extent, check, &mut self.helpers)
            }
            Expr::ToIndex(a) => format!("({}){}", self.type_name(super::Type::Index), self.primary(a)),
            Expr::Sort { part, dtype, descending, operands } => {
                let [a, b] = &**operands;
                let (a, b) = (self.expr(a), self.expr(b));
                intrinsics::sort_part(language, *part, (*dtype, *descending), [&a, &b], &mut self.helpers)
            }
            Expr::Unary(op, dtype, a) => {
                let a = self.primary(a);
                intrinsics::unary(language, *op, *dtype, &a, &mut self.helpers)
            }
            Expr::Binary(op, dtype, a, b) => {
                let (a, b) = (self.primary(a), self.primary(b));
                intrinsics::binary(language, *op, *dtype, &a, &b, &mut self.helpers)
            }
            Expr::BriefExp(a) => {
                let a = self.primary(a);
                intrinsics::brief_exp(&a, &mut self.helpers)
            }
            Expr::ZeroTimes(dtype, first, count) => {
                let first = format!("&{}", self.expr(first));
                intrinsics::zero_times(*dtype, &first, *count, &mut self.helpers)
            }
            Expr::MulAdd(dtype, operands) => {
                let [a, b, c] = [0, 1, 2].map(|n| self.primary(&operands[n]));
                intrinsics::mul_add(language, *dtype, [&a, &b, &c], &mut self.helpers)
            }
            Expr::Quotient(dtype, operands) => {
                let [a, b] = &**operands;
                let (a, b) = (self.primary(a), self.primary(b));
                intrinsics::quotient(*dtype, &a, &b, &mut self.helpers)
            }
            Expr::Select(condition, a, b) => {
                let condition = self.primary(condition);
                let (a, b) = (self.primary(a), self.primary(b));
                intrinsics::select(language, &condition, &a, &b)
            }
            Expr::Cast { from, to, operand } => {
                let operand = self.primary(operand);
                intrinsics::cast(language, *from, *to, &operand, &mut self.helpers)
            }
            Expr::Element(array, index) => format!("{}[{}]", self.name(*array), self.expr(index)),
            Expr::FromMemory(dtype, raw) => {
                intrinsics::from_memory(language, *dtype, &self.expr(raw), &mut self.helpers)
            }
            Expr::ToMemory(dtype, value) => {
                let value = match converts(*dtype) {
                    true => self.primary(value),
                    false => self.expr(value),
                };
                intrinsics::to_memory(language, *dtype, &value, &mut self.helpers)
            }
            Expr::Votes(condition) => format!("__popc(__ballot_sync(0xffffffffu, {}))", self.expr(condition)),
            Expr::VotesBefore(condition) => {
                intrinsics::votes_before(language, &self.expr(condition), &mut self.helpers)
            }
            Expr::ShuffleUp { value, delta } => {
                format!("__shfl_up_sync(0xffffffffu, {}, {})", self.expr(value), self.expr(delta))
            }
            Expr::ShuffleXor { value, mask, width } => {
                let width = if *width == 32 { String::new() } else { format!(", {width}") };
                format!("__shfl_xor_sync(0xffffffffu, {}, {}{width})", self.expr(value), self.expr(mask))
            }
        }
    }

    /// `lo <= expr < hi` as one comparison: below `lo`, unsigned arithmetic wraps to above `hi`.
    fn bound(&mut self, bound: &Bound) -> String {
        if bound.has_lo() != bound.has_hi() {
            return self.one_sided(bound);
        }
        let (shifted, suffix) = (self.compared_index(&compared(bound)), self.suffix());
        let extent = bound.hi.saturating_sub(bound.lo);
        match (self.language, is_one_comparison(bound)) {
            (Language::Cuda, true) => format!("{shifted} < {extent}{suffix}"),
            (Language::C, true) if self.is_short(bound) => format!("(unsigned)({shifted}) < {extent}"),
            (Language::C, true) => format!("(unsigned long long)({shifted}) < {extent}"),
            (_, false) => {
                let plain = self.index(&bound.expr);
                format!("(long long)({plain}) >= {}ll && (long long)({plain}) < {}ll", bound.lo, bound.hi)
            }
        }
    }

    /// A condition with one limit, as a comparison of numbers that are not negative.
    fn one_sided(&mut self, bound: &Bound) -> String {
        let (added, subtracted) = compared(bound).by_sign();
        let is_short = self.is_short(bound);
        let [added, subtracted] = [added, subtracted].map(|part| {
            let text = self.compared_index(&part);
            if is_short && part.as_constant().is_none() { format!("(int)({text})") } else { text }
        });
        format!("{added} {} {subtracted}", if bound.has_lo() { ">=" } else { "<" })
    }

    /// A part of a comparison, whose numbers are not negative or wrap.
    fn compared_index(&mut self, index: &IndexExpr) -> String {
        match self.language {
            Language::C => self.index(index),
            Language::Cuda => self.wrapping_index(index),
        }
    }

    /// Whether C compares in 32 bits, as wide as most of what conditions guard: vectors of positions in 64 bits are compared in
    /// two halves, and masks that are one half of another are what gcc 12 stores and loads again in different widths.
    fn is_short(&self, bound: &Bound) -> bool {
        self.language == Language::C && is_compared_short(bound, &launched_ranges(self.kernel))
    }

    fn builtin(&self, builtin: Builtin) -> String {
        let name = match (self.language, builtin) {
            (Language::Cuda, Builtin::ThreadX) => "threadIdx.x",
            (Language::Cuda, Builtin::ThreadY) => "threadIdx.y",
            (Language::Cuda, Builtin::BlockX) => self.block,
            (Language::Cuda, Builtin::BlockY) => "blockIdx.y",
            (Language::Cuda, Builtin::GridY) => "gridDim.y",
            (Language::C, Builtin::BlockX) => "block",
            (Language::C, Builtin::ThreadX | Builtin::ThreadY | Builtin::BlockY) => "0",
            (Language::C, Builtin::GridY) => "1",
        };
        match (self.language, self.wide_index) {
            (Language::Cuda, true) => format!("(unsigned long long){name}"),
            (Language::Cuda, false) | (Language::C, _) => name.to_string(),
        }
    }
}

/// Whether storing an element of this dtype converts the value.
fn converts(dtype: DType) -> bool {
    dtype != dtype.compute() || dtype == DType::Bool
}
