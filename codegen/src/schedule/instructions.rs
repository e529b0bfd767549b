//! Instructions by which the threads of a warp multiply small matrices together.

use super::contraction::Contraction;
use super::exact::is_exact;
use super::facts::{Figures, Matrices};
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

/// `mma.sync` of sm_80 and later, which sm_75 has in two steps for `F16`, and what a GPU needs to have for each.
const INSTRUCTIONS: [(Instruction, Matrices); 2] = [
    (Instruction { factors: DType::F16, rows: 16, columns: 8, terms: 16 }, Matrices::WarpsOfF16),
    (Instruction { factors: DType::BF16, rows: 16, columns: 8, terms: 16 }, Matrices::Warps),
];

impl Instruction {
    /// The one of the target that multiplies what the factors are without rounding them.
    pub(crate) fn of(kernel: &Kernel, contraction: &Contraction, figures: &Figures) -> Option<Instruction> {
        let is_wide = |(instruction, least): &&(Instruction, Matrices)| {
            let of = |value| is_exact(kernel, value, instruction.factors);
            let mut products = contraction.products.iter();
            figures.matrices >= *least
                && products.all(|product| product.lift.is_none() && of(product.left) && of(product.right))
        };
        let found = || INSTRUCTIONS.iter().find(is_wide).map(|(instruction, _)| *instruction);
        if contraction.sum == DType::F32 { found() } else { None }
    }

    /// The one for these factors.
    pub(crate) fn for_factors(factors: DType) -> Option<Instruction> {
        let mut instructions = INSTRUCTIONS.iter().map(|(instruction, _)| *instruction);
        instructions.find(|instruction| instruction.factors == factors)
    }
}
