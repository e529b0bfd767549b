//! Norms of matrices.

use super::singular::values;
use crate::tensor::arguments::call::{Call, kept};
use crate::tensor::reduce::statistics::widened;
use crate::{Result, Shape, Tensor};

/// Which norm [`Tensor::matrix_norm`] gives: PyTorch's `ord`.
///
/// ```
/// use lazuli::{MatrixNorm, Tensor};
/// let x = Tensor::from([[3.0f64, 0.0], [0.0, -4.0]]);
/// assert_eq!(x.matrix_norm(MatrixNorm::Frobenius, [-2, -1]).item::<f64>()?, 5.0);
/// assert_eq!(x.matrix_norm(MatrixNorm::Columns, [-2, -1]).item::<f64>()?, 4.0);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum MatrixNorm {
    /// The root of the sum of all squares: `"fro"`.
    Frobenius,
    /// The sum of the singular values: `"nuc"`.
    Nuclear,
    /// The largest sum of magnitudes in a column: 1.
    Columns,
    /// The smallest sum of magnitudes in a column: -1.
    LeastColumn,
    /// The largest sum of magnitudes in a row: infinity.
    Rows,
    /// The smallest sum of magnitudes in a row: minus infinity.
    LeastRow,
    /// The largest singular value: 2.
    Spectral,
    /// The smallest singular value: -2.
    LeastSingular,
}

impl Tensor {
    /// A norm of the matrices along two axes, rows and columns, which the result no longer has. Keeps the dtype; the 16-bit floats
    /// are computed in `F32` and rounded once. PyTorch's `torch.linalg.matrix_norm`. The largest of nothing is 0.
    ///
    /// Invalid for integers and bools, for an axis out of range or given twice, and for the smallest of nothing.
    ///
    /// ```
    /// use lazuli::{MatrixNorm, Tensor};
    /// let x = Tensor::from([[1.0f32, -7.0], [2.0, 3.0]]);
    /// assert_eq!(x.matrix_norm(MatrixNorm::Columns, [0, 1]).item::<f32>()?, 10.0);
    /// assert_eq!(x.matrix_norm(MatrixNorm::Rows, [0, 1]).item::<f32>()?, 8.0);
    /// assert_eq!(x.matrix_norm(MatrixNorm::LeastRow, [0, 1]).item::<f32>()?, 5.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn matrix_norm(&self, norm: MatrixNorm, axes: [isize; 2]) -> Tensor {
        let call = Call::here("matrix_norm");
        call.composed(|| Ok(matrix_norm(call, self, norm, axes)?.0))
    }

    /// [`Tensor::matrix_norm`] that keeps the axes, with extent 1.
    ///
    /// ```
    /// use lazuli::{MatrixNorm, Tensor};
    /// let x = Tensor::from([[3.0f32, 4.0], [0.0, 0.0]]);
    /// let unit = &x / x.matrix_norm_keepdim(MatrixNorm::Frobenius, [-2, -1]);
    /// assert_eq!(unit.to_vec::<f32>()?, [0.6, 0.8, 0.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn matrix_norm_keepdim(&self, norm: MatrixNorm, axes: [isize; 2]) -> Tensor {
        let call = Call::here("matrix_norm_keepdim");
        call.composed(|| {
            let (norm, kept) = matrix_norm(call, self, norm, axes)?;
            Ok(norm.reshape(kept))
        })
    }
}

/// The norm without the axes, and its shape with them.
fn matrix_norm(call: Call, x: &Tensor, norm: MatrixNorm, axes: [isize; 2]) -> Result<(Tensor, Shape)> {
    call.needs_float(x)?;
    let (shape, _) = x.known()?;
    let of = call.axes_in_order(&axes, shape)?;
    let kept = kept(shape, &of);
    let (rows, columns) = (shape[of[0]], shape[of[1]]);
    let x = x.movedim([of[0], of[1]], [-2isize, -1].as_slice());
    let batch = shape.without(&of);
    // How many numbers the largest or the smallest is of.
    let count = match norm {
        MatrixNorm::Frobenius | MatrixNorm::Nuclear => usize::MAX,
        MatrixNorm::Columns | MatrixNorm::LeastColumn => columns,
        MatrixNorm::Rows | MatrixNorm::LeastRow => rows,
        MatrixNorm::Spectral | MatrixNorm::LeastSingular => rows.min(columns),
    };
    let is_least = matches!(norm, MatrixNorm::LeastColumn | MatrixNorm::LeastRow | MatrixNorm::LeastSingular);
    match count {
        0 if is_least => {
            return call.fail(format!("no smallest of nothing: {rows}×{columns} matrices of shape {shape}"));
        }
        0 => return Ok((call.following(&Tensor::zeros(batch, x.known()?.1), &[&x]), kept)),
        _ => {}
    }
    let sums = |x: &Tensor, axis: isize| x.abs().sum(axis);
    let singular = |x: &Tensor| Tensor::or_invalid(values(call, x));
    let norm = widened(&x, |x| match norm {
        MatrixNorm::Frobenius => x.norm([-2, -1], 2.0),
        MatrixNorm::Nuclear => singular(x).sum(-1),
        MatrixNorm::Columns => sums(x, -2).max(-1),
        MatrixNorm::LeastColumn => sums(x, -2).min(-1),
        MatrixNorm::Rows => sums(x, -1).max(-1),
        MatrixNorm::LeastRow => sums(x, -1).min(-1),
        MatrixNorm::Spectral => singular(x).select(-1, 0),
        MatrixNorm::LeastSingular => singular(x).select(-1, -1),
    })?;
    Ok((norm, kept))
}
