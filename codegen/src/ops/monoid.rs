//! Monoids: what reductions, scans and scatters combine values by.
//!
//! Each is declared in one place, in the table: which numbers a partial result has, and what they are of no values; how it
//! takes a value, how two merge, and what remains to be done at the end. The formulas are over an [`Algebra`], so that
//! loop nests emit what constants compute.

use crate::{BinaryOp, DType, Scalar, UnaryOp};

/// What a formula is computed in, and the partial result that it changes.
pub trait Algebra {
    /// A number.
    type Value: Clone;

    /// A part of the partial result.
    fn part(&self, part: usize) -> Self::Value;
    /// Changes it.
    fn set(&mut self, part: usize, value: Self::Value);
    /// A constant.
    fn literal(&self, value: Scalar) -> Self::Value;
    /// An operation on an operand of that dtype.
    fn unary(&self, op: UnaryOp, dtype: DType, a: Self::Value) -> Self::Value;
    /// An operation on operands of that dtype.
    fn binary(&self, op: BinaryOp, dtype: DType, a: Self::Value, b: Self::Value) -> Self::Value;
    /// `condition ? a : b`.
    fn select(&self, condition: Self::Value, a: Self::Value, b: Self::Value) -> Self::Value;
    /// The same value as it is now, computed once, with a name where the algebra has names.
    fn bind(&mut self, name: &'static str, dtype: DType, value: Self::Value) -> Self::Value;
    /// As [`Algebra::bind`], if it is not as simple as a name anyway.
    fn named(&mut self, dtype: DType, value: Self::Value) -> Self::Value;
}

/// What a part of a partial result is of no values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Identity {
    Number(i64),
    /// What nothing is less than, or else what nothing exceeds; infinite if it can be.
    Least,
    Greatest,
    /// The least finite number.
    LeastFinite,
}

/// One number of a partial result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// What it is called in kernels.
    pub name: &'static str,
    /// Whether it is a position, and not of the values' dtype.
    pub is_position: bool,
    identity: Identity,
}

const fn number(name: &'static str, identity: Identity) -> Part {
    Part { name, is_position: false, identity }
}

const fn position(name: &'static str) -> Part {
    Part { name, is_position: true, identity: Identity::Number(0) }
}

impl Part {
    /// What it is of no values, as one of `dtype`.
    pub fn identity(&self, dtype: DType) -> Scalar {
        match self.identity {
            Identity::Number(number) => Scalar::from_i64(dtype, number),
            Identity::Least if dtype == DType::Bool => Scalar::from_bool(false),
            // The conversion saturates: infinity gives the extreme integers.
            Identity::Least => Scalar::from_f64(dtype, f64::NEG_INFINITY),
            Identity::Greatest => Scalar::from_f64(dtype, f64::INFINITY),
            Identity::LeastFinite if dtype == DType::F64 => Scalar::from_f64(dtype, f64::MIN),
            Identity::LeastFinite => Scalar::from_f64(dtype, f32::MIN.into()),
        }
    }
}

/// The dtypes that a monoid is defined for.
#[derive(Clone, Copy)]
enum Accepts {
    All,
    Floats,
    /// `Bool` and other integers are recorded as a cast to `I64` first.
    Sums,
    /// Integers and `Bool`.
    Bits,
}

/// How values and partial results are combined.
#[derive(Clone, Copy)]
enum Combine {
    /// By one operation.
    By(BinaryOp),
    LogSumExp,
    SquaredDeviations,
    SumExp,
    /// The better value, by this comparison and by its negation, and where it was first.
    Extreme {
        better: BinaryOp,
        not_better: BinaryOp,
    },
}

struct Declaration {
    name: &'static str,
    /// The names of a scan and of a scatter.
    scan: &'static str,
    scatter: &'static str,
    accepts: Accepts,
    parts: &'static [Part],
    /// The part that is the result.
    result: usize,
    /// Whether there is no result for no values.
    needs_values: bool,
    /// Of taking a value, in simple operations.
    cost: f64,
    combine: Combine,
}

macro_rules! monoids {
    ($(
        $(#[$meta:meta])*
        $op:ident = $name:literal, scan: $scan:literal, scatter: $scatter:literal {
            $($field:ident: $value:expr),* $(,)?
        }
    )*) => {
        /// How values are combined: along reduced axes, up to each of a scan, and where a scatter's index says. All are
        /// associative, up to rounding, so that threads can share the work.
        ///
        /// ```
        /// use lazuli_codegen::{DType, ReduceOp};
        /// assert_eq!((ReduceOp::Sum.name(), ReduceOp::Sum.scan_name()), ("sum", "cumsum"));
        /// assert_eq!(ReduceOp::Prod.identity(DType::F32).as_f64(), 1.0);
        /// assert!(ReduceOp::Max.accepts(DType::U8) && !ReduceOp::LogSumExp.accepts(DType::I64));
        /// ```
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum ReduceOp {
            $($(#[$meta])* $op,)*
        }

        impl ReduceOp {
            /// Every monoid.
            pub const ALL: [ReduceOp; [$($name),*].len()] = [$(ReduceOp::$op),*];

            const fn declaration(self) -> &'static Declaration {
                match self {
                    $(ReduceOp::$op => &const {
                        Declaration { name: $name, scan: $scan, scatter: $scatter, $($field: $value),* }
                    },)*
                }
            }
        }
    };
}

// Parts of partial results.
const MEAN: usize = 0;
const DEVIATIONS: usize = 1;
const COUNT: usize = 2;
/// Of `SumExp`: the largest value.
pub(crate) const MAXIMUM: usize = 0;
const SUM: usize = 1;
const VALUE: usize = 0;
const POSITION: usize = 1;

monoids! {
    /// Sum; 0 for no values.
    Sum = "sum", scan: "cumsum", scatter: "scatter_sum" {
        accepts: Accepts::Sums, parts: &[number("sum", Identity::Number(0))], result: 0,
        needs_values: false, cost: 1.0, combine: Combine::By(BinaryOp::Add),
    }
    /// Product; 1 for no values.
    Prod = "prod", scan: "cumprod", scatter: "scatter_prod" {
        accepts: Accepts::Sums, parts: &[number("prod", Identity::Number(1))], result: 0,
        needs_values: false, cost: 1.0, combine: Combine::By(BinaryOp::Mul),
    }
    /// The largest value; NaN if any is NaN; logical or for `Bool`.
    Max = "max", scan: "cummax", scatter: "scatter_max" {
        accepts: Accepts::All, parts: &[number("max", Identity::Least)], result: 0,
        needs_values: true, cost: 1.0, combine: Combine::By(BinaryOp::Maximum),
    }
    /// The smallest value; NaN if any is NaN; logical and for `Bool`.
    Min = "min", scan: "cummin", scatter: "scatter_min" {
        accepts: Accepts::All, parts: &[number("min", Identity::Greatest)], result: 0,
        needs_values: true, cost: 1.0, combine: Combine::By(BinaryOp::Minimum),
    }
    /// The bits that all values have; logical and for `Bool`; all ones for no values.
    And = "reduce_and", scan: "cumulative_and", scatter: "scatter_and" {
        accepts: Accepts::Bits, parts: &[number("bits", Identity::Number(-1))], result: 0,
        needs_values: false, cost: 1.0, combine: Combine::By(BinaryOp::And),
    }
    /// The bits that any value has; logical or for `Bool`; 0 for no values.
    Or = "reduce_or", scan: "cumulative_or", scatter: "scatter_or" {
        accepts: Accepts::Bits, parts: &[number("bits", Identity::Number(0))], result: 0,
        needs_values: false, cost: 1.0, combine: Combine::By(BinaryOp::Or),
    }
    /// The bits that an odd number of values has; 0 for no values.
    Xor = "reduce_xor", scan: "cumulative_xor", scatter: "scatter_xor" {
        accepts: Accepts::Bits, parts: &[number("bits", Identity::Number(0))], result: 0,
        needs_values: false, cost: 1.0, combine: Combine::By(BinaryOp::Xor),
    }
    /// `log(sum(exp(x)))` without overflow on the way; NaN if any is NaN; -infinity for no values.
    LogSumExp = "log_sum_exp", scan: "logcumsumexp", scatter: "scatter_log_sum_exp" {
        accepts: Accepts::Floats, parts: &[number("logsum", Identity::Least)], result: 0,
        needs_values: false, cost: 40.0, combine: Combine::LogSumExp,
    }
    /// The sum of squared deviations from the mean, by Welford's method; floats only; 0 for no values.
    /// B. P. Welford, Technometrics 4(3), 1962; merged as in Chan, Golub, LeVeque, 1979.
    SquaredDeviations = "squared_deviations", scan: "running_deviations", scatter: "scatter_deviations" {
        accepts: Accepts::Floats,
        parts: &[
            number("mean", Identity::Number(0)),
            number("m2_", Identity::Number(0)),
            number("count", Identity::Number(0)),
        ],
        result: DEVIATIONS,
        needs_values: false, cost: 12.0, combine: Combine::SquaredDeviations,
    }
    /// The sum of `exp(x - max)` in one pass, where max is the largest value, known at its end: what was summed up to a
    /// new maximum is scaled to it. Floats only; NaN if the maximum is NaN or infinite.
    /// M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018.
    SumExp = "sum_exp", scan: "running_sum_exp", scatter: "scatter_sum_exp" {
        accepts: Accepts::Floats,
        // Not -infinity: differences from the least finite number are numbers. Values of -infinity add nothing then, and
        // a sum of 0 says that there was nothing else.
        parts: &[number("max", Identity::LeastFinite), number("sum", Identity::Number(0))],
        result: SUM,
        needs_values: true, cost: 22.0, combine: Combine::SumExp,
    }
    /// The position of the largest value, an `I64`: that of the first NaN, or else of the first of equal ones.
    ArgMax = "argmax", scan: "running_argmax", scatter: "scatter_argmax" {
        accepts: Accepts::All, parts: &[number("max", Identity::Least), position("at")], result: POSITION,
        needs_values: true, cost: 4.0,
        combine: Combine::Extreme { better: BinaryOp::Gt, not_better: BinaryOp::Le },
    }
    /// The position of the smallest value, an `I64`: that of the first NaN, or else of the first of equal ones.
    ArgMin = "argmin", scan: "running_argmin", scatter: "scatter_argmin" {
        accepts: Accepts::All, parts: &[number("min", Identity::Greatest), position("at")], result: POSITION,
        needs_values: true, cost: 4.0,
        combine: Combine::Extreme { better: BinaryOp::Lt, not_better: BinaryOp::Ge },
    }
}

impl ReduceOp {
    /// The name of the reduction in dumps and messages.
    pub const fn name(self) -> &'static str {
        self.declaration().name
    }

    /// The name of the scan.
    pub const fn scan_name(self) -> &'static str {
        self.declaration().scan
    }

    /// The name of the scatter.
    pub const fn scatter_name(self) -> &'static str {
        self.declaration().scatter
    }

    /// Whether it is defined for values of `dtype`. `Sum` and `Prod` of `Bool` and integers are recorded as a cast to `I64`
    /// first.
    pub const fn accepts(self, dtype: DType) -> bool {
        match self.declaration().accepts {
            Accepts::All => true,
            Accepts::Floats => dtype.is_float(),
            Accepts::Sums => dtype.is_float() || matches!(dtype, DType::I64),
            Accepts::Bits => !dtype.is_float(),
        }
    }

    /// The operation that takes a value and merges partial results, where these are one number of the values' kind.
    pub const fn plain(self) -> Option<BinaryOp> {
        match self.declaration().combine {
            Combine::By(op) => Some(op),
            _ => None,
        }
    }

    /// Whether there is such an operation.
    pub const fn is_plain(self) -> bool {
        self.plain().is_some()
    }

    /// Whether a scan can combine by it: a partial result is one number, and the result of what there is so far.
    pub const fn is_scan(self) -> bool {
        self.parts().len() == 1
    }

    /// Whether the result is the position of a value.
    pub const fn is_position(self) -> bool {
        let declaration = self.declaration();
        declaration.parts[declaration.result].is_position
    }

    /// The result's dtype for values of `dtype`.
    pub const fn result(self, dtype: DType) -> DType {
        if self.is_position() { DType::I64 } else { dtype }
    }

    /// Whether there is no result for no values.
    pub const fn needs_values(self) -> bool {
        self.declaration().needs_values
    }

    /// What taking a value costs, in simple operations.
    pub const fn cost(self) -> f64 {
        self.declaration().cost
    }

    /// The numbers of a partial result.
    pub const fn parts(self) -> &'static [Part] {
        self.declaration().parts
    }

    /// Which of them is the result.
    pub const fn result_part(self) -> usize {
        self.declaration().result
    }

    /// What nothing combines to: merged with it, everything stays what it is.
    pub fn identity(self, dtype: DType) -> Scalar {
        self.parts()[self.result_part()].identity(dtype)
    }

    /// Values combined in order; the position of each is its number.
    ///
    /// ```
    /// use lazuli_codegen::{DType, ReduceOp, Scalar};
    /// let x = [3.0, 9.0, 5.0, 9.0].map(|x| Scalar::from_f64(DType::F64, x));
    /// assert_eq!(ReduceOp::Sum.fold(DType::F64, x).as_f64(), 26.0);
    /// assert_eq!(ReduceOp::ArgMax.fold(DType::F64, x).as_i64(), 1);
    /// assert_eq!(ReduceOp::SquaredDeviations.fold(DType::F64, x).as_f64(), 27.0);
    /// ```
    pub fn fold(self, dtype: DType, values: impl IntoIterator<Item = Scalar>) -> Scalar {
        let dtype = dtype.compute();
        let mut partial = Partial::new(self, dtype);
        for (number, value) in values.into_iter().enumerate() {
            let position = Scalar::from_i64(DType::I64, number as i64);
            self.take(&mut partial, dtype, Taken { value, position: Some(position), weight: None });
        }
        self.settle(&mut partial, dtype);
        partial.parts[self.result_part()]
    }
}

/// A value that a partial result takes.
pub(crate) struct Taken<V> {
    pub(crate) value: V,
    /// After those of all values before.
    pub(crate) position: Option<V>,
    /// One over the number of values including this one, where that is known: it is the same for all lanes.
    pub(crate) weight: Option<V>,
}

/// The formulas. `dtype` is that of the values, `index` that of positions.
impl ReduceOp {
    /// Two numbers, combined, of monoids whose partial results are one.
    pub(crate) fn combined<A: Algebra>(self, a: &mut A, dtype: DType, x: A::Value, y: A::Value) -> A::Value {
        if let Some(op) = self.plain() {
            return a.binary(op, dtype, x, y);
        }
        // The larger, and how much the smaller adds to it. Infinities of one sign are no distance apart.
        let less = a.binary(BinaryOp::Minimum, dtype, x.clone(), y.clone());
        let less = a.named(dtype, less);
        let more = a.binary(BinaryOp::Maximum, dtype, x, y);
        let more = a.named(dtype, more);
        let same = a.binary(BinaryOp::Eq, dtype, less.clone(), more.clone());
        let apart = a.binary(BinaryOp::Sub, dtype, less, more.clone());
        let distance = a.select(same, a.literal(Scalar::from_i64(dtype, 0)), apart);
        let share = a.unary(UnaryOp::Exp, dtype, distance);
        let added = a.unary(UnaryOp::Log1p, dtype, share);
        a.binary(BinaryOp::Add, dtype, more, added)
    }

    /// Takes one more value.
    pub(crate) fn take<A: Algebra>(self, a: &mut A, dtype: DType, taken: Taken<A::Value>) {
        let value = a.named(dtype, taken.value);
        match self.declaration().combine {
            Combine::By(_) | Combine::LogSumExp => {
                let combined = self.combined(a, dtype, a.part(0), value);
                a.set(0, combined);
            }
            Combine::SquaredDeviations => {
                // Welford: the mean moves by delta / count; both deviations have the same sign.
                if taken.weight.is_none() {
                    let one = a.literal(Scalar::from_i64(dtype, 1));
                    a.set(COUNT, a.binary(BinaryOp::Add, dtype, a.part(COUNT), one));
                }
                let apart = a.binary(BinaryOp::Sub, dtype, value.clone(), a.part(MEAN));
                let delta = a.bind("delta", dtype, apart);
                let share = match taken.weight {
                    Some(weight) => a.binary(BinaryOp::Mul, dtype, delta.clone(), weight),
                    None => a.binary(BinaryOp::Div, dtype, delta.clone(), a.part(COUNT)),
                };
                a.set(MEAN, a.binary(BinaryOp::Add, dtype, a.part(MEAN), share));
                let rest = a.binary(BinaryOp::Sub, dtype, value, a.part(MEAN));
                let product = a.binary(BinaryOp::Mul, dtype, delta, rest);
                a.set(DEVIATIONS, a.binary(BinaryOp::Add, dtype, a.part(DEVIATIONS), product));
            }
            Combine::SumExp => add_exp(a, dtype, value, None),
            Combine::Extreme { not_better, .. } => {
                // Not without a position. It is the last: the value must be better than all others are.
                let Some(position) = taken.position else { return };
                let better = self.is_better(a, dtype, &value, not_better);
                replace(a, better, value, position);
            }
        }
    }

    /// Takes another partial result. The formulas are symmetric, so that two threads that exchange theirs get the same
    /// bits.
    pub(crate) fn merge<A: Algebra>(self, a: &mut A, dtype: DType, index: DType, other: &[A::Value]) {
        match self.declaration().combine {
            Combine::By(_) | Combine::LogSumExp => {
                // What is spelled with the operand twice takes a name: a shuffle must happen once.
                let other = match self.repeats() {
                    true => a.named(dtype, other[0].clone()),
                    false => other[0].clone(),
                };
                let combined = self.combined(a, dtype, a.part(0), other);
                a.set(0, combined);
            }
            Combine::SquaredDeviations => {
                let names = ["other_mean", "other_m2_", "other_count"];
                let [mean, deviations, count] =
                    [MEAN, DEVIATIONS, COUNT].map(|part| a.bind(names[part], dtype, other[part].clone()));
                let one = a.literal(Scalar::from_i64(dtype, 1));
                let total = a.binary(BinaryOp::Add, dtype, a.part(COUNT), count.clone());
                let total = a.bind("total", dtype, total);
                let empty = a.binary(BinaryOp::Lt, dtype, total.clone(), one.clone());
                let divisor = a.bind("divisor", dtype, a.select(empty, one, total.clone()));
                let apart = a.binary(BinaryOp::Sub, dtype, mean.clone(), a.part(MEAN));
                let distance = a.bind("distance", dtype, apart);
                let counts = a.binary(BinaryOp::Mul, dtype, a.part(COUNT), count.clone());
                let weight = a.binary(BinaryOp::Div, dtype, counts, divisor.clone());
                let square = a.binary(BinaryOp::Mul, dtype, distance.clone(), distance);
                let between = a.binary(BinaryOp::Mul, dtype, square, weight);
                let within = a.binary(BinaryOp::Add, dtype, a.part(DEVIATIONS), deviations);
                a.set(DEVIATIONS, a.binary(BinaryOp::Add, dtype, within, between));
                let of = |a: &A, mean, count| {
                    let fraction = a.binary(BinaryOp::Div, dtype, count, divisor.clone());
                    a.binary(BinaryOp::Mul, dtype, mean, fraction)
                };
                let (own, others) = (of(a, a.part(MEAN), a.part(COUNT)), of(a, mean, count));
                a.set(MEAN, a.binary(BinaryOp::Add, dtype, own, others));
                a.set(COUNT, total);
            }
            Combine::SumExp => {
                let max = a.named(dtype, other[MAXIMUM].clone());
                let sum = a.named(dtype, other[SUM].clone());
                add_exp(a, dtype, max, Some(sum));
            }
            Combine::Extreme { not_better, .. } => {
                let value = a.named(dtype, other[VALUE].clone());
                let position = a.named(index, other[POSITION].clone());
                // A total order: of equals the first, and NaN equals NaN.
                let own = a.part(VALUE);
                let mut same = a.binary(BinaryOp::Eq, dtype, value.clone(), own.clone());
                if dtype.is_float() {
                    let is_nan = |x: &A::Value| a.binary(BinaryOp::Ne, dtype, x.clone(), x.clone());
                    let both = a.binary(BinaryOp::And, DType::Bool, is_nan(&value), is_nan(&own));
                    same = a.binary(BinaryOp::Or, DType::Bool, same, both);
                }
                let before = a.binary(BinaryOp::Lt, index, position.clone(), a.part(POSITION));
                let first = a.binary(BinaryOp::And, DType::Bool, same, before);
                let better = self.is_better(a, dtype, &value, not_better);
                let better = a.binary(BinaryOp::Or, DType::Bool, better, first);
                replace(a, better, value, position);
            }
        }
    }

    /// Whether one number is spelled more than once where two are combined.
    pub(crate) const fn repeats(self) -> bool {
        !matches!(self.declaration().combine, Combine::By(BinaryOp::Add | BinaryOp::Mul))
    }

    /// Whether something remains to be done when all values have been taken and merged.
    pub(crate) const fn settles(self) -> bool {
        matches!(self.declaration().combine, Combine::SumExp)
    }

    /// Makes the parts what they stand for, once they hold all values.
    pub(crate) fn settle<A: Algebra>(self, a: &mut A, dtype: DType) {
        if !self.settles() {
            return;
        }
        // A sum of 0: nothing exceeded -infinity. Below an infinite maximum the sum is NaN.
        let zero = a.literal(Scalar::from_i64(dtype, 0));
        let nothing = a.binary(BinaryOp::Eq, dtype, a.part(SUM), zero);
        let infinity = a.literal(Scalar::from_f64(dtype, f64::NEG_INFINITY));
        a.set(MAXIMUM, a.select(nothing, infinity, a.part(MAXIMUM)));
        let zero = a.binary(BinaryOp::Sub, dtype, a.part(MAXIMUM), a.part(MAXIMUM));
        a.set(SUM, a.binary(BinaryOp::Add, dtype, a.part(SUM), zero));
    }

    /// Whether a value is more extreme than the partial result's; NaN is more extreme than any number.
    fn is_better<A: Algebra>(self, a: &A, dtype: DType, value: &A::Value, not_better: BinaryOp) -> A::Value {
        let own = a.part(VALUE);
        if let (false, Combine::Extreme { better, .. }) = (dtype.is_float(), self.declaration().combine) {
            return a.binary(better, dtype, value.clone(), own);
        }
        let worse = a.binary(not_better, dtype, value.clone(), own.clone());
        let not_worse = a.unary(UnaryOp::Not, DType::Bool, worse);
        let number = a.binary(BinaryOp::Eq, dtype, own.clone(), own);
        a.binary(BinaryOp::And, DType::Bool, not_worse, number)
    }
}

/// Adds `sum` times the exponential of `value`: of one value if there is no sum, or else of another partial result. One
/// exponential does, that of the distance between the maxima, by which the lower side is scaled. Exchanging the sides
/// exchanges the operands of an addition.
fn add_exp<A: Algebra>(a: &mut A, dtype: DType, value: A::Value, sum: Option<A::Value>) {
    let apart = a.binary(BinaryOp::Sub, dtype, value.clone(), a.part(MAXIMUM));
    let distance = a.bind("distance", dtype, apart);
    let below = a.unary(UnaryOp::Neg, dtype, a.unary(UnaryOp::Abs, dtype, distance.clone()));
    let scale = a.bind("scale", dtype, a.unary(UnaryOp::Exp, dtype, below));
    let scaled = |a: &A, sum| a.binary(BinaryOp::Mul, dtype, sum, scale.clone());
    let (own, other) = (a.part(SUM), sum.clone().unwrap_or(a.literal(Scalar::from_i64(dtype, 1))));
    let raised = a.binary(BinaryOp::Add, dtype, scaled(a, own.clone()), other);
    let added = sum.map_or(scale.clone(), |sum| scaled(a, sum));
    let kept = a.binary(BinaryOp::Add, dtype, own, added);
    let exceeds = a.binary(BinaryOp::Gt, dtype, distance, a.literal(Scalar::from_i64(dtype, 0)));
    a.set(SUM, a.select(exceeds, raised, kept));
    a.set(MAXIMUM, a.binary(BinaryOp::Maximum, dtype, a.part(MAXIMUM), value));
}

fn replace<A: Algebra>(a: &mut A, condition: A::Value, value: A::Value, position: A::Value) {
    // Twice the comparison and no variable: lanes of conditions are then as wide as those of values.
    for (part, new) in [(POSITION, position), (VALUE, value)] {
        a.set(part, a.select(condition.clone(), new, a.part(part)));
    }
}

/// A partial result of constants.
struct Partial {
    parts: Vec<Scalar>,
}

impl Partial {
    fn new(op: ReduceOp, dtype: DType) -> Partial {
        let of = |part: &Part| part.identity(if part.is_position { DType::I64 } else { dtype });
        Partial { parts: op.parts().iter().map(of).collect() }
    }
}

impl Algebra for Partial {
    type Value = Scalar;

    fn part(&self, part: usize) -> Scalar {
        self.parts[part]
    }

    fn set(&mut self, part: usize, value: Scalar) {
        self.parts[part] = value;
    }

    fn literal(&self, value: Scalar) -> Scalar {
        value
    }

    fn unary(&self, op: UnaryOp, _dtype: DType, a: Scalar) -> Scalar {
        op.apply(a).unwrap_or(a)
    }

    fn binary(&self, op: BinaryOp, _dtype: DType, a: Scalar, b: Scalar) -> Scalar {
        op.apply(a, b).unwrap_or(a)
    }

    fn select(&self, condition: Scalar, a: Scalar, b: Scalar) -> Scalar {
        if condition.is_nonzero() { a } else { b }
    }

    fn bind(&mut self, _name: &'static str, _dtype: DType, value: Scalar) -> Scalar {
        value
    }

    fn named(&mut self, _dtype: DType, value: Scalar) -> Scalar {
        value
    }
}
