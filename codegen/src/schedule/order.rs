//! The order of loops.

use std::fmt;

use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel};

/// Axes in the order of their loops, the outermost first.
///
/// ```
/// use lazuli_codegen::index::AxisId;
/// use lazuli_codegen::schedule::AxisOrder;
/// let order = AxisOrder::new(&[AxisId(2), AxisId(0)]).unwrap();
/// assert_eq!(order.to_string(), "a2+a0");
/// assert!(order.axes().eq([AxisId(2), AxisId(0)]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AxisOrder {
    axes: [u8; AxisOrder::MOST],
    count: u8,
}

impl AxisOrder {
    /// More loops cannot be named.
    pub const MOST: usize = 8;

    /// The order; `None` if there are more axes than [`AxisOrder::MOST`], or one whose number is above 255.
    pub fn new(axes: &[AxisId]) -> Option<AxisOrder> {
        let mut order = AxisOrder { axes: [0; AxisOrder::MOST], count: u8::try_from(axes.len()).ok()? };
        for (number, axis) in axes.iter().enumerate() {
            *order.axes.get_mut(number)? = u8::try_from(axis.0).ok()?;
        }
        Some(order)
    }

    /// The axes, the outermost first.
    pub fn axes(&self) -> impl Iterator<Item = AxisId> + '_ {
        self.axes[..usize::from(self.count)].iter().map(|&number| AxisId(number.into()))
    }

    /// Whether the loops of the kernel's results can be in this order: each is there once, and one whose extent is an argument
    /// is the outermost, since positions are numbered with the others' extents.
    pub(super) fn fits(&self, kernel: &Kernel) -> bool {
        let mut sorted: Vec<AxisId> = self.axes().collect();
        sorted.sort_unstable();
        sorted == kernel.axes_of_kind(AxisKind::Map)
            && !self.axes().skip(1).any(|axis| kernel.axis(axis).is_argument)
    }
}

impl fmt::Display for AxisOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, axis) in self.axes().enumerate() {
            write!(f, "{}{axis}", if number > 0 { "+" } else { "" })?;
        }
        Ok(())
    }
}
