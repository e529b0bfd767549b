//! Kernels that differ in nothing but extents that are arguments, and so have one text.
//!
//! The text of a kernel holds for every extent that it gets as an argument. What else an emission gives follows from these
//! extents by the product that its launches' work items are. So an emission serves all sizes of a kernel that have its schedule and its text. Which
//! these are is found out: extents are of a class, from above one power of two up to the next, and the kernel is emitted at
//! both ends of it. They have different remainders by every power of two, lie on both sides of any limit between, and are
//! equal to different numbers by chance: a text that is the same there and in between asks for none of that.

use crate::emit::{chosen, emit_under, emit_unverified};
use crate::ir::{AxisKind, Kernel};
use crate::nest::is_verified;
use crate::schedule::{Figures, Schedule};
use crate::{Emitted, Language, Refusal, Scalar};

/// A kernel with the schedule that is chosen for it.
pub struct Choice<'k> {
    kernel: &'k Kernel,
    language: Language,
    schedule: Schedule,
}

/// What emissions have in common that may have one text: equal for kernels that differ in numbers of a launch within a class
/// of sizes, and have one schedule.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Class {
    kernel: Kernel,
    language: Language,
    schedule: Schedule,
}

/// An emission that serves all kernels of a class.
#[derive(Debug)]
pub struct Sizes {
    of: Emitted,
}

impl<'k> Choice<'k> {
    /// What [`emit`](crate::emit) chooses.
    ///
    /// # Errors
    /// Why no schedule can run the kernel.
    pub fn of(kernel: &'k Kernel, language: Language, figures: &Figures) -> Result<Choice<'k>, Refusal> {
        let schedule = chosen(kernel, language, figures)?;
        Ok(Choice { kernel, language, schedule })
    }

    /// The class of the kernel; `None` where its text is one size's, or needs scratch memory of that size.
    pub fn class(&self) -> Option<Class> {
        let is_any = self.kernel.axes.iter().any(|axis| axis.is_argument && axis.extent > 1);
        let is_plain = match self.schedule {
            Schedule::Pointwise(_)
            | Schedule::Rows(_)
            | Schedule::Columns(_)
            | Schedule::Scan(_)
            | Schedule::Contraction(_)
            | Schedule::Product(_) => true,
            Schedule::Tiled(_)
            | Schedule::Scatter(_)
            | Schedule::Sort(_)
            | Schedule::RowContraction(_)
            | Schedule::RowProduct(_) => false,
        };
        (is_any && is_plain).then(|| {
            let mut kernel = at_end(self.kernel, End::Last);
            kernel.buffers.iter_mut().for_each(|buffer| buffer.elements = 0);
            for argument in &mut kernel.arguments {
                argument.value = Scalar::from_i64(argument.value.dtype(), 0);
            }
            for axis in &mut kernel.axes {
                if let AxisKind::Offset { number } = &mut axis.kind {
                    *number = 0;
                }
            }
            Class { kernel, language: self.language, schedule: self.schedule }
        })
    }

    /// The emission.
    ///
    /// # Errors
    /// Why the kernel has none.
    pub fn emit(&self) -> Result<Emitted, Refusal> {
        emit_under(self.kernel, self.language, self.schedule)
    }

    /// What serves the class, one of whose emissions this is; `None` if the text asks which of its sizes it is for.
    pub fn sizes(&self, emitted: &Emitted) -> Option<Sizes> {
        let is_same = |end| {
            let kernel = at_end(self.kernel, end);
            let other = emit_unverified(&kernel, self.language, self.schedule).ok()?;
            (with_items(emitted, &kernel) == other).then_some(())
        };
        emitted.workspaces.is_empty().then_some(())?;
        is_same(End::First)?;
        is_same(End::Last)?;
        Some(Sizes { of: emitted.clone() })
    }
}

impl Sizes {
    /// The emission of a kernel of the class; as [`Choice::emit`] gives it.
    pub fn emitted(&self, choice: &Choice) -> Emitted {
        let emitted = with_items(&self.of, choice.kernel);
        if is_verified() {
            debug_assert_eq!(Ok(&emitted), choice.emit().as_ref(), "{}", choice.kernel);
        }
        emitted
    }
}

/// The least of a class of extents, or the largest.
#[derive(Clone, Copy, PartialEq)]
enum End {
    First,
    Last,
}

/// The kernel with extents at the end of their class.
fn at_end(kernel: &Kernel, end: End) -> Kernel {
    let mut kernel = kernel.clone();
    for axis in kernel.axes.iter_mut().filter(|axis| axis.is_argument && axis.extent > 1) {
        let last = axis.extent.checked_next_power_of_two().unwrap_or(axis.extent);
        axis.extent = if end == End::First { last / 2 + 1 } else { last };
    }
    kernel
}

/// The same emission for this kernel's extents.
fn with_items(emitted: &Emitted, kernel: &Kernel) -> Emitted {
    let mut result = emitted.clone();
    for (_, launch) in &mut result.launches {
        launch.items = launch.items.at(kernel);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Matrices;

    const FIGURES: Figures =
        Figures { processors: 2, is_low_pressure: false, shared_bytes: 0, matrices: Matrices::Warps };

    fn rows(n: usize, columns: usize) -> Kernel {
        let all = n * columns;
        let text = format!(
            "\
kernel rows
  map i0 < n_i0 = {n}
  reduce r0 < {columns}
  input in0: f32 [{all}]
  output out0: f32 [{all}]
  v0: f32 = load in0[i0 * {columns} + r0]
  v1: f32 = reduce max over r0 of v0
  v2: f32 = sub v0 v1
  store out0[i0 * {columns} + r0] = v2
"
        );
        text.parse().unwrap()
    }

    #[test]
    fn sizes_of_a_class_have_one_emission() {
        for language in [Language::C, Language::Cuda] {
            let kernel = rows(40, 24);
            let choice = Choice::of(&kernel, language, &FIGURES).unwrap();
            let sizes = choice.sizes(&choice.emit().unwrap()).unwrap();
            for n in [33, 41, 63, 64] {
                let kernel = rows(n, 24);
                let other = Choice::of(&kernel, language, &FIGURES).unwrap();
                assert_eq!(other.class(), choice.class());
                assert_eq!(Ok(sizes.emitted(&other)), other.emit());
            }
            for kernel in [rows(65, 24), rows(32, 24), rows(40, 25), rows(1, 24)] {
                let other = Choice::of(&kernel, language, &FIGURES).unwrap();
                assert_ne!(other.class(), choice.class());
            }
        }
    }

    /// The last of so many positions is special where their number is text.
    #[test]
    fn what_asks_for_the_size_is_no_class() {
        let kernel = rows(40, 24);
        let choice = Choice::of(&kernel, Language::C, &FIGURES).unwrap();
        let mut emitted = choice.emit().unwrap();
        emitted.source = emitted.source.replace("n_i0", "40").into();
        assert!(choice.sizes(&emitted).is_none());
        let mut emitted = choice.emit().unwrap();
        emitted.launches[0].1.items = crate::schedule::WorkItems::number(40);
        assert!(choice.sizes(&emitted).is_none());
    }
}
