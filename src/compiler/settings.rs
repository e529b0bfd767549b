//! What plans depend on besides the graph.

use lazuli_codegen::Language;

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
    /// Whether groups of four warps multiply matrices in shared memory (CUDA, sm_90 alone).
    pub(crate) warp_groups: bool,
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

/// Whether groups of four warps multiply matrices in shared memory: on compute capability 9.0 alone.
pub(crate) fn has_warp_groups(architecture: &str) -> bool {
    architecture.strip_prefix("sm_").is_some_and(|rest| rest.trim_end_matches('a') == "90")
}
