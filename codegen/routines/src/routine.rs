//! What can be asked for, and of what.

use smallvec::{SmallVec, smallvec};

use crate::transform::Transform;

/// What is made of each matrix `[m, n]` of a batch, and of the `[m, w]` that may be beside it. `k` is the smaller of `m` and `n`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Routine {
    /// Cholesky's lower triangle, `[n, n]`: NaN from the first column on whose pivot is not positive.
    Cholesky,
    /// A permutation, `[m, m]`, a lower triangle, `[m, k]`, and an upper one, `[k, n]`.
    Lu,
    /// The determinant, its sign, and the logarithm of its magnitude: `[]` each.
    Determinant,
    /// The solutions of square systems, `[n, w]`.
    Solve,
    /// The same of a triangle, whose diagonal may count as ones. Beyond it nothing is read.
    Triangle {
        /// Which of its halves.
        is_upper: bool,
        /// Whether nothing is read of the diagonal either.
        is_unit: bool,
    },
    /// The least solutions, or those of least error, `[n, w]`.
    LeastSquares,
    /// The inverse, `[n, n]`.
    Inverse,
    /// Orthonormal columns, `[m, k]`, and an upper triangle, `[k, n]`.
    Qr,
    /// Of a symmetric matrix, whose lower triangle is read: the eigenvalues in ascending order, `[n]`, and their vectors as
    /// columns, `[n, n]`.
    Eigenvectors,
    /// The eigenvalues alone.
    Eigenvalues,
    /// Left vectors as columns, `[m, k]`, the singular values in descending order, `[k]`, and right vectors as rows, `[k, n]`.
    SingularVectors,
    /// The singular values alone.
    SingularValues,
    /// A Fourier transform of each row, or, if it goes `along_columns`, of each column. What is beside the real parts are the imaginary ones;
    /// so are the results, of which real numbers are one.
    Fourier {
        /// Which.
        transform: Transform,
        /// Along which axis.
        along_columns: bool,
    },
}

/// The shape of one matrix, of a row, or of a number.
pub type MatrixShape = SmallVec<[usize; 2]>;

impl Routine {
    /// Whether this build has the libraries.
    pub const IS_AVAILABLE: bool = cfg!(feature = "libraries");

    /// The shapes of what is made of a matrix `[m, n]` and a `[m, w]`.
    pub fn parts(self, [m, n]: [usize; 2], w: usize) -> SmallVec<[MatrixShape; 3]> {
        let k = m.min(n);
        match self {
            Routine::Cholesky | Routine::Inverse => smallvec![smallvec![n, n]],
            Routine::Lu => smallvec![smallvec![m, m], smallvec![m, k], smallvec![k, n]],
            Routine::Determinant => smallvec![MatrixShape::new(); 3],
            Routine::Solve | Routine::Triangle { .. } | Routine::LeastSquares => {
                smallvec![smallvec![n, w]]
            }
            Routine::Qr => smallvec![smallvec![m, k], smallvec![k, n]],
            Routine::Eigenvectors => smallvec![smallvec![n], smallvec![n, n]],
            Routine::Eigenvalues => smallvec![smallvec![n]],
            Routine::SingularVectors => smallvec![smallvec![m, k], smallvec![k], smallvec![k, n]],
            Routine::SingularValues => smallvec![smallvec![k]],
            Routine::Fourier { transform, along_columns } => {
                let shape = match along_columns {
                    true => [transform.results(m), n],
                    false => [m, transform.results(n)],
                };
                let parts = if matches!(transform, Transform::ComplexToReal { .. }) { 1 } else { 2 };
                smallvec![MatrixShape::from(shape); parts]
            }
        }
    }
}

/// A matrix in memory, row by row, or column by column.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a, T> {
    /// As many as it has.
    pub elements: &'a [T],
    /// Rows and columns.
    pub shape: [usize; 2],
    /// Whether it lies there as its transpose.
    pub is_transposed: bool,
}
