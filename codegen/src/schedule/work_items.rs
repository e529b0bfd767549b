//! How many work items a launch has, and how that follows from its kernel's extents.

use std::fmt;

use crate::index::AxisId;
use crate::ir::Kernel;

/// A product of numbers, of extents that are arguments, and of quotients of such products, rounded up. It prints as text over
/// the kernel's arguments, such as `ceil(n_i0 / 32) * 5`.
///
/// ```
/// use lazuli_codegen::schedule::WorkItems;
/// let items = WorkItems::number(40).divided(32) * WorkItems::named("parts", 5);
/// assert_eq!((items.count(), items.to_string()), (10, "2 * parts".to_string()));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkItems {
    count: u64,
    /// None of them is the number 1.
    factors: Vec<Factor>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Factor {
    Number(u64),
    /// A number of the schedule, by its name.
    Named(String, u64),
    /// The extent of an axis, by its name.
    Extent(String, AxisId),
    Quotient(WorkItems, u64),
}

impl WorkItems {
    /// So many.
    pub fn number(count: u64) -> WorkItems {
        WorkItems { count, factors: if count == 1 { Vec::new() } else { vec![Factor::Number(count)] } }
    }

    /// So many, by this name.
    pub fn named(name: impl Into<String>, count: u64) -> WorkItems {
        WorkItems { count, factors: vec![Factor::Named(name.into(), count)] }
    }

    /// The positions of some axes.
    pub(crate) fn of(kernel: &Kernel, axes: &[AxisId]) -> WorkItems {
        let is_argument = |axis: &&AxisId| kernel.axis(**axis).is_argument;
        let fixed = axes.iter().filter(|axis| !is_argument(axis));
        let fixed = fixed.fold(1u64, |product, &axis| product.saturating_mul(kernel.axis(axis).extent));
        let named = axes.iter().filter(is_argument).map(|&axis| {
            let extent = Factor::Extent(kernel.extent_name(axis), axis);
            WorkItems { count: kernel.axis(axis).extent, factors: vec![extent] }
        });
        named.fold(WorkItems::number(1), |product, extent| product * extent) * WorkItems::number(fixed)
    }

    /// How many these are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// So many at a time; the last ones may be fewer.
    ///
    /// # Panics
    /// If `by` is 0.
    #[must_use]
    pub fn divided(self, by: u64) -> WorkItems {
        match self.factors.split_last() {
            _ if by == 1 => self,
            None | Some((Factor::Number(_), [])) => WorkItems::number(self.count.div_ceil(by)),
            Some((Factor::Number(last), others)) if last % by == 0 => {
                let count = self.count / by;
                let factors = [others, &WorkItems::number(last / by).factors].concat();
                WorkItems { count, factors }
            }
            Some(_) => {
                WorkItems { count: self.count.div_ceil(by), factors: vec![Factor::Quotient(self, by)] }
            }
        }
    }

    /// The same product for another kernel's extents.
    pub(crate) fn at(&self, kernel: &Kernel) -> WorkItems {
        let factors = self.factors.iter().map(|factor| match factor {
            Factor::Number(_) | Factor::Named(..) => factor.clone(),
            Factor::Extent(_, axis) => Factor::Extent(kernel.extent_name(*axis), *axis),
            Factor::Quotient(dividend, by) => Factor::Quotient(dividend.at(kernel), *by),
        });
        let count = |factor: &Factor| match factor {
            Factor::Number(count) | Factor::Named(_, count) => *count,
            Factor::Extent(_, axis) => kernel.axis(*axis).extent,
            Factor::Quotient(dividend, by) => dividend.count.div_ceil(*by),
        };
        let factors: Vec<Factor> = factors.collect();
        WorkItems { count: factors.iter().map(count).fold(1, u64::saturating_mul), factors }
    }
}

impl std::ops::Mul for WorkItems {
    type Output = WorkItems;

    fn mul(mut self, other: WorkItems) -> WorkItems {
        self.factors.extend(other.factors);
        WorkItems { count: self.count.saturating_mul(other.count), factors: self.factors }
    }
}

impl fmt::Display for WorkItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, factor) in self.factors.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { " * " })?;
            match factor {
                Factor::Number(number) => write!(f, "{number}"),
                Factor::Named(name, _) | Factor::Extent(name, _) => f.write_str(name),
                Factor::Quotient(dividend, by) => write!(f, "ceil({dividend} / {by})"),
            }?;
        }
        if self.factors.is_empty() { f.write_str("1") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(n: usize) -> Kernel {
        let text = format!(
            "\
kernel rows
  map i0 < n_i0 = {n}
  map i1 < 24
  input in0: f32 [{all}]
  output out0: f32 [{all}]
  v0: f32 = load in0[i0 * 24 + i1]
  store out0[i0 * 24 + i1] = v0
",
            all = n * 24
        );
        text.parse().unwrap()
    }

    #[test]
    fn a_product_is_that_of_other_extents_too() {
        let (small, large) = (kernel(40), kernel(100));
        let [rows, columns] = [AxisId(0), AxisId(1)].map(|axis| WorkItems::of(&small, &[axis]));
        for (items, text, counts) in [
            (rows.clone() * columns.clone(), "n_i0 * 24", [960, 2400]),
            (WorkItems::of(&small, &[AxisId(1), AxisId(0)]).divided(8), "n_i0 * 3", [120, 300]),
            ((rows.clone() * columns.clone()).divided(32), "ceil(n_i0 * 24 / 32)", [30, 75]),
            (rows.clone().divided(32) * WorkItems::named("parts", 5), "ceil(n_i0 / 32) * parts", [10, 20]),
            (columns.divided(32) * rows, "n_i0", [40, 100]),
            (WorkItems::of(&small, &[]), "1", [1, 1]),
        ] {
            assert_eq!((items.to_string().as_str(), items.count()), (text, counts[0]));
            assert_eq!((items.at(&large).to_string().as_str(), items.at(&large).count()), (text, counts[1]));
        }
    }
}
