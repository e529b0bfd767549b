//! What computing costs beside the scalar operations, in simple ones: an addition is 1. It only ranks choices.

/// What a random number costs.
pub const RANDOM: f64 = 60.0;

/// What is worth a register, that it need not be computed again.
pub const WORTH_KEEPING: f64 = 8.0;
