//! What plans depend on besides the graph.

use lazuli_codegen::Language;
use lazuli_codegen::schedule::Matrices;

use crate::fusion::Fusion;
use crate::fusion::cost::TargetFigures;
use crate::fusion::cut::Cut;
use crate::tuned::SectionId;

/// What plans depend on besides the graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Settings {
    pub(crate) language: Language,
    pub(crate) fusion: Fusion,
    /// Bytes of shared memory that a block can have (CUDA).
    pub(crate) shared_bytes: u32,
    /// What multiplies small matrices (CUDA).
    pub(crate) matrices: Matrices,
    /// A merge that is not made.
    pub(crate) undone: Option<Cut>,
    /// What was measured on the device.
    pub(crate) tuned: Option<SectionId>,
}

impl Settings {
    pub(crate) fn figures(self) -> TargetFigures {
        let figures = match self.language {
            Language::Cuda => TargetFigures::CUDA,
            Language::C => TargetFigures::CPU,
        };
        // Views are no operations.
        let divided = if self.fusion == Fusion::On { figures.divided } else { 0.0 };
        TargetFigures { shared: self.shared_bytes as usize, divided, ..figures }
    }
}

/// What multiplies small matrices on a compute capability: groups of warps on 9.0 alone.
pub(crate) fn matrices(architecture: &str) -> Matrices {
    let number = architecture.trim_start_matches(|c: char| !c.is_ascii_digit());
    match number.trim_end_matches(|c: char| !c.is_ascii_digit()).parse::<u32>() {
        Ok(..75) => Matrices::None,
        Ok(75..80) => Matrices::WarpsOfF16,
        Ok(90) => Matrices::Groups,
        Ok(_) | Err(_) => Matrices::Warps,
    }
}
