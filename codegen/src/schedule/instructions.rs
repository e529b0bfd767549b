//! Instructions by which the threads of a warp multiply small matrices together.

use super::contraction::Contraction;
use super::exact::is_exact;
use crate::DType;
use crate::ir::Kernel;

/// `sums[rows][columns] += left[rows][terms] * right[terms][columns]` by a warp: what is multiplied is narrow, the sums are
/// `F32`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Instruction {
    /// Of both factors.
    pub(crate) factors: DType,
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    pub(crate) terms: u32,
}

/// `mma.sync` of sm_80 and later; older ones have the same in two steps, or none, which the helpers know.
const INSTRUCTIONS: [Instruction; 2] = [
    Instruction { factors: DType::F16, rows: 16, columns: 8, terms: 16 },
    Instruction { factors: DType::BF16, rows: 16, columns: 8, terms: 16 },
];

impl Instruction {
    /// The one that multiplies what the factors are without rounding them.
    pub(crate) fn of(kernel: &Kernel, contraction: &Contraction) -> Option<Instruction> {
        let is_wide = |instruction: &&Instruction| {
            let of = |value| is_exact(kernel, value, instruction.factors);
            let mut products = contraction.products.iter();
            products.all(|product| product.lift.is_none() && of(product.left) && of(product.right))
        };
        (contraction.sum == DType::F32).then(|| INSTRUCTIONS.iter().find(is_wide).copied())?
    }

    /// The one for these factors.
    pub(crate) fn for_factors(factors: DType) -> Option<Instruction> {
        INSTRUCTIONS.iter().find(|instruction| instruction.factors == factors).copied()
    }
}
