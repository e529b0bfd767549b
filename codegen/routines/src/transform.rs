//! Fourier transforms of lines.

/// A discrete Fourier transform of `n` numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transform {
    /// `Σ x[t] * exp(-2πi * k * t / n)`, of complex numbers.
    Forward,
    /// `Σ x[k] * exp(2πi * k * t / n) / n`.
    Inverse,
    /// `Forward` of real numbers, of whose results the first `n / 2 + 1` say all.
    RealToComplex,
    /// `Inverse` of these.
    ComplexToReal {
        /// As many real numbers as there were.
        n: usize,
    },
}

impl Transform {
    /// How many results there are for a line of this length.
    pub fn results(self, length: usize) -> usize {
        match self {
            Transform::Forward | Transform::Inverse => length,
            Transform::RealToComplex => length / 2 + 1,
            Transform::ComplexToReal { n } => n,
        }
    }
}
