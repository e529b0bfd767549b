//! Sizes that grow evenly.

use lazuli_codegen::index::gcd;

use crate::graph::sizes::{ends_of_class, is_special};
use crate::{DType, Scalar};

/// Sizes on a line: where it begins, how each grows from step to step, and how many steps there are.
#[derive(Debug)]
pub(super) struct Line {
    first: Vec<i64>,
    by: Vec<i64>,
    pub(super) steps: i64,
}

/// A stretch is of so many plans at least: three are made for it.
const LEAST_STEPS: i64 = 12;

/// How often an end of a stretch is moved inwards, where a size is a special one there.
const MOST_MOVES: i64 = 4;

impl Line {
    /// Through two points, from the first of which on there is no known end; `None` if they are one.
    pub(super) fn new(a: &[i64], b: &[i64]) -> Option<Line> {
        let by: Vec<i64> = a.iter().zip(b).map(|(a, b)| b.checked_sub(*a)).collect::<Option<_>>()?;
        let common = by.iter().fold(0, |common, &by| gcd(common, by));
        (common > 0).then(|| Line {
            first: b.to_vec(),
            by: by.into_iter().map(|by| by / common).collect(),
            steps: 0,
        })
    }

    /// The part within the classes of the sizes where it begins, and where on it that is: `is_alike` says whether a point is
    /// of that structure. `None` if it is short.
    pub(super) fn stretch(self, is_alike: impl Fn(&[i64]) -> bool) -> Option<(Line, i64)> {
        let (mut from, mut to) = (i64::MIN / 4, i64::MAX / 4);
        for (&number, &by) in self.first.iter().zip(&self.by).filter(|(_, by)| **by != 0) {
            let (least, most) = ends_of_class(number);
            let (a, b) = ((least - number) / by, (most - number) / by);
            (from, to) = (from.max(a.min(b)), to.min(a.max(b)));
        }
        let is_good = |step: i64| is_alike(&self.at(step));
        let first = (from..).take(MOST_MOVES as usize).find(|&step| is_good(step) && is_good(step + 1))?;
        let last = (0..MOST_MOVES).map(|moved| to - moved).find(|&step| is_good(step))?;
        let is_long = last - first >= LEAST_STEPS && (first..=last).contains(&0);
        is_long.then(|| (Line { first: self.at(first), by: self.by, steps: last - first }, -first))
    }

    /// From a step on; `None` if that is short.
    pub(super) fn from(&self, step: i64) -> Option<Line> {
        let steps = self.steps - step;
        (steps >= LEAST_STEPS).then(|| Line { first: self.at(step), by: self.by.clone(), steps })
    }

    pub(super) fn at(&self, step: i64) -> Vec<i64> {
        self.first.iter().zip(&self.by).map(|(first, by)| first + by * step).collect()
    }

    /// Where on the stretch these sizes are, if they are.
    pub(super) fn step_of(&self, numbers: &[i64]) -> Option<i64> {
        let (at, &by) = self.by.iter().enumerate().find(|(_, by)| **by != 0)?;
        let distance = numbers.get(at)?.checked_sub(self.first[at])?;
        let step = distance / by;
        let is_there = (0..=self.steps).contains(&step)
            && numbers.len() == self.first.len()
            && numbers
                .iter()
                .zip(&self.first)
                .zip(&self.by)
                .all(|((own, first), by)| *own == first + by * step);
        is_there.then_some(step)
    }
}

/// Others in the place of the user's numbers, as general as these and all different.
pub(super) fn other_scalars(scalars: &[Scalar]) -> Vec<Scalar> {
    let other = |(at, scalar): (usize, &Scalar)| {
        let dtype = scalar.dtype();
        let candidates = (1..64).map(|attempt| {
            let by = (at + 1 + attempt * scalars.len()) as i64;
            match dtype {
                DType::I32 | DType::U32 | DType::I64 => {
                    let value = scalar.as_i64();
                    Scalar::from_i64(
                        dtype,
                        if value < 0 { value.wrapping_sub(by) } else { value.wrapping_add(by) },
                    )
                }
                _ => Scalar::from_f64(dtype, scalar.as_f64() * (1.0 + by as f64 / 128.0)),
            }
        });
        let is_like = |other: &Scalar| {
            let is_same_side = (other.as_f64() < 0.0) == (scalar.as_f64() < 0.0);
            !is_special(*other) && is_same_side && !scalars.contains(other)
        };
        candidates.into_iter().find(is_like).unwrap_or(*scalar)
    };
    scalars.iter().enumerate().map(other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_ends_where_a_class_does() {
        let line = Line::new(&[40, 41, 16], &[42, 43, 16]).unwrap();
        let (line, at) = line.stretch(|_| true).unwrap();
        // From 33 and 34 up to 63 and 64.
        assert_eq!((line.at(0), line.at(line.steps), at), (vec![33, 34, 16], vec![63, 64, 16], 9));
        assert_eq!(line.step_of(&[50, 51, 16]), Some(17));
        for elsewhere in [[50, 52, 16], [50, 51, 17], [64, 65, 16], [32, 33, 16]] {
            assert_eq!(line.step_of(&elsewhere), None);
        }
    }

    #[test]
    fn a_stretch_has_no_special_end() {
        let stretch = |is_alike: fn(&[i64]) -> bool| {
            let (line, _) = Line::new(&[40], &[41])?.stretch(is_alike)?;
            Some((line.at(0)[0], line.at(line.steps)[0]))
        };
        assert_eq!(stretch(|_| true), Some((33, 64)));
        assert_eq!(stretch(|numbers| ![34, 64].contains(&numbers[0])), Some((35, 63)));
        assert_eq!(stretch(|numbers| numbers[0] < 50), None);
        assert!(Line::new(&[9], &[10]).unwrap().stretch(|_| true).is_none(), "too short");
        assert!(Line::new(&[9, 3], &[9, 3]).is_none());
    }

    #[test]
    fn other_numbers_are_as_general() {
        let scalars = [
            Scalar::from_f64(DType::F32, 0.3),
            Scalar::from_f64(DType::F32, -7.5),
            Scalar::from_f64(DType::F16, 0.1),
            Scalar::from_i64(DType::I64, 300),
            Scalar::from_i64(DType::I32, -77),
        ];
        let others = other_scalars(&scalars);
        for (scalar, other) in scalars.iter().zip(&others) {
            assert!(scalar != other && scalar.dtype() == other.dtype() && !is_special(*other));
        }
    }
}
