//! Graphs that differ in the user's numbers alone: what a plan of one of them says about the others.
//!
//! Kernels get the user's numbers and seeds as arguments, and nothing after the passes looks at their values. The passes do in
//! three ways: laws are about few values, equal numbers become one, and constants are computed with. So a graph becomes the
//! same with others in their place if no law is about any of them, the same ones are equal, and nothing is computed of one.

use smallvec::SmallVec;

use super::op::{Constant, ConstantRole, Op, View};
use crate::{DType, Scalar};

/// Different numbers of one graph. Those after them are what they are.
const MOST: usize = 128;

/// What a kernel gets as an argument.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Number {
    /// The user's own.
    Value(Scalar),
    Seed(u64),
}

/// Those of a graph that others can stand for, each once, in the order in which they come up.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Numbers(SmallVec<[Number; 4]>);

/// What of an operation matters, but for which number it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Numbered {
    /// All of it.
    Fixed,
    /// It is the number with this place.
    Argument(usize),
    /// All of it, and which numbers are equal to the one that it pads with.
    Padded(usize),
}

impl Number {
    pub(crate) fn of(op: &Op) -> Option<Number> {
        match op {
            Op::Constant(Constant { value, role: ConstantRole::Argument }) => Some(Number::Value(*value)),
            Op::Random { seed } => Some(Number::Seed(*seed)),
            _ => None,
        }
    }

    /// What the kernel gets: the bits of its value in the compute dtype.
    pub(crate) fn bits(self) -> u64 {
        match self {
            Number::Value(value) => value.cast(value.dtype().compute()).to_bits(),
            Number::Seed(seed) => seed,
        }
    }

    /// Whether a law of the passes may be about it: neutral and absorbing values, exponents, and the ends of a dtype.
    pub(crate) fn has_laws(self) -> bool {
        let Number::Value(value) = self else { return false };
        let dtype = value.dtype();
        if dtype.is_float() {
            let size = value.as_f64().abs();
            return !size.is_finite() || [0.0, 1.0, 2.0].contains(&size);
        }
        // Saturates: the extreme integers.
        let ends = [f64::NEG_INFINITY, f64::INFINITY].map(|end| Scalar::from_f64(dtype, end));
        let all_ones = Scalar::from_i64(dtype, -1);
        let is_small = value.as_i64().unsigned_abs() <= 2;
        dtype == DType::Bool || is_small || ends.contains(&value) || value == all_ones
    }
}

impl Numbers {
    /// Of the next operation of a graph.
    #[inline]
    pub(crate) fn note(&mut self, op: &Op) -> Numbered {
        let place = match (Number::of(op), op) {
            (Some(number), _) => return self.place_for(number).map_or(Numbered::Fixed, Numbered::Argument),
            (None, Op::View(View::Pad { value, .. })) => self.place_for(Number::Value(*value)),
            (None, _) => None,
        };
        place.map_or(Numbered::Fixed, Numbered::Padded)
    }

    fn place_for(&mut self, number: Number) -> Option<usize> {
        if number.has_laws() {
            return None;
        }
        self.place_of(number).or_else(|| {
            let place = self.0.len();
            (place < MOST).then(|| self.0.push(number)).map(|()| place)
        })
    }

    pub(crate) fn place_of(&self, number: Number) -> Option<usize> {
        self.0.iter().position(|other| *other == number)
    }

    pub(crate) fn get(&self, place: usize) -> Option<Number> {
        self.0.get(place).copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Number> {
        self.0.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_are_about_few_numbers() {
        let has_laws = |dtype, value| Number::Value(Scalar::from_f64(dtype, value)).has_laws();
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            for value in [0.0, -0.0, 1.0, -1.0, 2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                assert!(has_laws(dtype, value), "{dtype} {value}");
            }
            assert!(![0.5, -0.25, 3.0, 0.3].iter().any(|&value| has_laws(dtype, value)), "{dtype}");
        }
        for dtype in [DType::I64, DType::I32, DType::I16, DType::I8, DType::U32, DType::U8] {
            for value in [0.0, 1.0, -1.0, 2.0, f64::INFINITY, f64::NEG_INFINITY] {
                assert!(has_laws(dtype, value), "{dtype} {value}");
            }
            assert!(Number::Value(Scalar::from_i64(dtype, -1)).has_laws());
            assert!(![3.0, 100.0].iter().any(|&value| has_laws(dtype, value)), "{dtype}");
        }
        assert!(has_laws(DType::Bool, 1.0) && !Number::Seed(0).has_laws());
    }
}
