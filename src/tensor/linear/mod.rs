//! Linear algebra under the names of `torch.linalg`: compositions, of matrices that are the last two axes.
//!
//! Nothing is known of the numbers while a factorisation is recorded, so that each is a fixed list of steps: pivots are chosen by
//! `where_`, and what other libraries refuse (a matrix that is singular, or not positive definite) results in NaN or infinities.
//! Up to [`parts::UNROLLED`] rows all steps are one formula of the entries. Above, there is one kernel for all steps of a loop,
//! which goes over the whole matrix each time: few kernels to compile, and one launch for a row; from [`parts::MANY`] rows on over a
//! panel of columns, after which all others have a product subtracted. Triangles are solved for by products alone, with inverses of
//! the blocks on their diagonals.
//!
//! On a CPU a library makes the same of each matrix (`routine`), without kernels to compile, unless there are many small matrices.

mod adjoint;
mod cholesky;
mod complete;
mod determinant;
mod elimination;
mod exponential;
mod inverse;
mod least_squares;
mod lu;
pub(crate) mod norms;
mod parts;
mod qr;
mod reflection;
mod routine;
mod singular;
mod substitution;
mod symmetric;
mod triangular;
mod tridiagonal;

use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::promote;
use crate::{DType, Result, Shape, Tensor};

/// What a batch of matrices is.
struct Matrices {
    batch: Shape,
    rows: usize,
    columns: usize,
    dtype: DType,
}

impl Matrices {
    /// The shape of a batch of such matrices.
    fn of(&self, rows: usize, columns: usize) -> Shape {
        self.batch.iter().copied().chain([rows, columns]).collect()
    }
}

/// A tensor as matrices; an error for what is none, or of another dtype than `F32` and `F64`.
fn matrices(call: Call, x: &Tensor) -> Result<Matrices> {
    let (shape, dtype) = x.known()?;
    if !matches!(dtype, DType::F32 | DType::F64) {
        return call.fail(format!(
            "needs F32 or F64, got {dtype} {shape}; cast it first, such as with .cast(DType::F32)"
        ));
    }
    let [batch @ .., rows, columns] = &shape[..] else {
        return call.fail(format!("needs matrices, of 2 dimensions or more, got {dtype} {shape}"));
    };
    Ok(Matrices { batch: batch.to_vec().into(), rows: *rows, columns: *columns, dtype })
}

/// Matrices that are square.
fn square(call: Call, x: &Tensor) -> Result<Matrices> {
    let of = matrices(call, x)?;
    match of.rows == of.columns {
        true => Ok(of),
        false => call.fail(format!("needs square matrices, got shape {}", x.node.shape)),
    }
}

/// Two batches of matrices of one dtype, each broadcast to the batch of both.
fn together(call: Call, a: &Tensor, b: &Tensor) -> Result<[Tensor; 2]> {
    let (own, other) = (matrices(call, a)?, matrices(call, b)?);
    let dtype = promote(own.dtype, other.dtype);
    let Some(batch) = own.batch.broadcast(&other.batch) else {
        return call.fail(format!("the batches of {} and {} do not broadcast", a.node.shape, b.node.shape));
    };
    let whole = |x: &Tensor, of: &Matrices| {
        x.cast(dtype).broadcast_to(Matrices { batch: batch.clone(), ..*of }.of(of.rows, of.columns))
    };
    Ok([whole(a, &own), whole(b, &other)])
}

/// A right-hand side as matrices with so many rows, and whether it is vectors: one, or one for each of the matrices.
fn right_hand_side(call: Call, a: &Tensor, b: &Tensor, rows: usize) -> Result<(Tensor, bool)> {
    let ((own, _), (other, _)) = (a.known()?, b.known()?);
    let is_vector = other.rank() == 1 || (own.rank() == other.rank() + 1 && own.starts_with(&other[..]));
    let whole = if is_vector { b.unsqueeze(-1) } else { b.clone() };
    match matrices(call, &whole)?.rows == rows {
        true => Ok((whole, is_vector)),
        false => call.fail(format!("shapes {own} and {other} do not fit: the matrix has {rows} rows")),
    }
}
