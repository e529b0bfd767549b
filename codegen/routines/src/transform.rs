//! Fourier transforms of lines.

/// A discrete Fourier transform of `n` numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transform {
    /// `Σ x[t] * exp(-2πi * k * t / n)`, of complex numbers.
    Forward,
    /// `Σ x[k] * exp(2πi * k * t / n) / n`.
    Back,
    /// `Forward` of real numbers, of whose results the first `n / 2 + 1` say all.
    Half,
    /// `Back` of these.
    HalfBack {
        /// As many real numbers as there were.
        n: usize,
    },
}

impl Transform {
    /// How many results there are for a line of this length.
    pub fn results(self, length: usize) -> usize {
        match self {
            Transform::Forward | Transform::Back => length,
            Transform::Half => length / 2 + 1,
            Transform::HalfBack { n } => n,
        }
    }
}
