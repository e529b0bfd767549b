//! Linear algebra.

use super::row::Accuracy::{Exact, Near};
use super::row::Gives::{Fixed, Same};
use super::row::{Accuracy, Group, Input, SMALL, UNIT, operations};
use crate::{DType, MatrixNorm, Tensor};

const SQUARE: Input = SMALL.shape(&[2, 3, 3]);
/// Few rows, where all devices compile many kernels.
const PAIR: Input = SMALL.shape(&[2, 2]);
const SIDES: Input = SMALL.shape(&[3, 2]);

/// What rounding makes of systems as the tests have them, whose conditions are some hundreds.
const SOLVED: Accuracy = Near { relative: 512.0, absolute: 512.0 };

/// Of any matrix a positive definite one.
fn positive(x: &Tensor) -> Tensor {
    x.matmul(x.transpose(-1, -2)) + one(x)
}

/// The identity, in the same dtype.
fn one(x: &Tensor) -> Tensor {
    Tensor::eye(3, x.dtype().unwrap_or(DType::F32))
}

/// The eigenvalues, and the matrix that they and the vectors are of: vectors have either sign.
fn rebuilt((values, vectors): (Tensor, Tensor)) -> (Tensor, Tensor) {
    let whole = (&vectors * values.unsqueeze(-2)).matmul(vectors.transpose(-1, -2));
    (values, whole)
}

/// The matrix that singular values and vectors are of, and the values.
fn multiplied((u, s, vh): (Tensor, Tensor, Tensor)) -> (Tensor, Tensor) {
    ((u * &s).matmul(vh), s)
}

/// The matrix that singular values and the first two of a basis are of, what the basis is with itself, and the values.
fn whole((u, s, vh): (Tensor, Tensor, Tensor)) -> (Tensor, Tensor, Tensor) {
    ((u.slice(-1, ..2) * &s).matmul(vh), u.matmul(u.transpose(-1, -2)), s)
}

fn whole_rows((u, s, vh): (Tensor, Tensor, Tensor)) -> (Tensor, Tensor, Tensor) {
    ((u * &s).matmul(vh.slice(-2, ..2)), vh.matmul(vh.transpose(-1, -2)), s)
}

operations! {
    /// Factorisations and what is solved by them.
    LINEAR: Group::Linear;
    cholesky(a: SQUARE) Wide -> Same, SOLVED, "The triangle of a positive definite matrix.": "torch.linalg.cholesky(a @ a.mT + torch.eye(3))" => positive(a).cholesky(false), "torch.linalg.cholesky(a @ a.mT + torch.eye(3), upper=True)" => positive(a).cholesky(true);
    cholesky_solve(a: SQUARE, b: SIDES) Wide -> Same, SOLVED, "A system by a matrix's triangle.": "torch.cholesky_solve(b, a.tril(-1) + 4 * torch.eye(3, dtype=dtype))" => b.cholesky_solve(a.tril(-1) + one(a) * 4, false);
    cholesky_inverse(a: SQUARE) Wide -> Same, SOLVED, "The inverse by a matrix's triangle.": "torch.cholesky_inverse(a.triu(1) + 4 * torch.eye(3, dtype=dtype), upper=True)" => (a.triu(1) + one(a) * 4).cholesky_inverse(true);
    solve_triangular(a: SQUARE, b: SIDES) Wide -> Same, SOLVED, "A system of a triangle.": "torch.linalg.solve_triangular(a.tril(-1) + 4 * torch.eye(3, dtype=dtype), b, upper=False)" => (a.tril(-1) + one(a) * 4).solve_triangular(b, false, true, false), "torch.linalg.solve_triangular(a, b.mT, upper=True, left=False, unitriangular=True)" => a.solve_triangular(b.t(), true, false, true);
    lu(a: SMALL.shape(&[3, 4])) Wide -> Same, SOLVED, "A permutation and two triangles.": "torch.linalg.lu(a)" => a.lu(), "torch.linalg.lu(a.mT)" => a.t().lu();
    lu_factor(a: SMALL.shape(&[3, 4])) Wide -> Same, SOLVED, "Both triangles in one matrix, and the order of rows.": "(torch.linalg.lu_factor(a)[0], torch.linalg.lu(a)[0].argmax(-2))" => a.lu_factor(), "(torch.linalg.lu_factor(a.mT)[0], torch.linalg.lu(a.mT)[0].argmax(-2))" => a.t().lu_factor();
    lu_solve(a: SQUARE, b: SIDES) Wide -> Same, SOLVED, "A system of equations by `lu_factor`.": "(lambda s: torch.linalg.solve_triangular(s.triu(), torch.linalg.solve_triangular(s.tril(-1), b.flip(0), upper=False, unitriangular=True), upper=True))(a + 9 * torch.eye(3, dtype=a.dtype))" => (a + one(a) * 9).lu_solve(Tensor::arange(2, -1, -1).expand([2, 3]), b);
    solve(a: SQUARE, b: SIDES) Wide -> Same, SOLVED, "A system of equations.": "torch.linalg.solve(a, b)" => a.solve(b), "torch.linalg.solve(a[0], b[:, 1])" => a.select(0, 0).solve(b.select(1, 1));
    solve_right(a: SQUARE, b: SMALL.shape(&[2, 3])) Wide -> Same, SOLVED, "A system of equations from the other side.": "torch.linalg.solve(a, b[None], left=False)" => a.solve_right(b), "torch.linalg.solve(a[0], b, left=False)" => a.select(0, 0).solve_right(b);
    inv(a: SQUARE) Wide -> Same, SOLVED, "The inverse.": "torch.linalg.inv(a)" => a.inv();
    det(a: SQUARE) Wide -> Same, SOLVED, "The determinant.": "torch.linalg.det(a)" => a.det();
    slogdet(a: SQUARE) Wide -> Same, SOLVED, "The determinant's sign, and its magnitude's logarithm.": "torch.linalg.slogdet(a)" => a.slogdet();
    logdet(a: SQUARE) Wide -> Same, SOLVED, "The determinant's logarithm.": "torch.logdet(a)" => a.logdet();
    qr(a: SMALL.shape(&[4, 3])) Wide -> Same, SOLVED, "Orthonormal columns and a triangle.": "torch.linalg.qr(a)" => a.qr(), "torch.linalg.qr(a.mT)" => a.t().qr();
    qr_complete(a: SMALL.shape(&[4, 2])) Wide -> Same, SOLVED, "`qr` with a whole basis.": "torch.linalg.qr(a, mode='complete')" => a.qr_complete(), "torch.linalg.qr(a.mT, mode='complete')" => a.t().qr_complete(), "torch.linalg.qr(a[:, :0], mode='complete')" => a.slice(1, ..0).qr_complete();
    lstsq(a: SMALL.shape(&[4, 3]), b: SMALL.shape(&[4, 2])) Wide -> Same, SOLVED, "Unknowns with the least squares left.": "torch.linalg.lstsq(a, b).solution" => a.lstsq(b), "torch.linalg.lstsq(a.mT, b[:3]).solution" => a.t().lstsq(b.slice(0, ..3));
    eigvalsh(a: PAIR) Wide -> Same, SOLVED, "The eigenvalues of a symmetric matrix.": "torch.linalg.eigvalsh(a)" => a.eigvalsh();
    eigh(a: PAIR) Wide -> Same, SOLVED, "Eigenvalues and vectors of a symmetric matrix.": "(lambda l, v: (l, (v * l.unsqueeze(-2)) @ v.mT))(*torch.linalg.eigh(a))" => rebuilt(a.eigh());
    svd(a: PAIR) Wide -> Same, SOLVED, "Singular values and vectors.": "(lambda u, s, v: ((u * s) @ v, s))(*torch.linalg.svd(a, full_matrices=False))" => multiplied(a.svd());
    svd_full(a: SMALL.shape(&[4, 2])) Wide -> Same, SOLVED, "`svd` with whole bases.": "(lambda u, s, v: ((u[:, :2] * s) @ v, u @ u.mT, s))(*torch.linalg.svd(a))" => whole(a.svd_full()), "(lambda u, s, v: ((u * s) @ v[:2], v @ v.mT, s))(*torch.linalg.svd(a.mT))" => whole_rows(a.t().svd_full());
    cond(a: PAIR) Wide -> Same, SOLVED, "The greatest singular value over the least.": "torch.linalg.cond(a)" => a.cond();
    svdvals(a: PAIR) Wide -> Same, SOLVED, "Singular values.": "torch.linalg.svdvals(a)" => a.svdvals();
    matrix_norm(a: PAIR) Floats -> Same, SOLVED, "A norm of a matrix.": "torch.linalg.matrix_norm(a, 'fro')" => a.matrix_norm(MatrixNorm::Frobenius, [-2, -1]), "torch.linalg.matrix_norm(a, 'nuc')" => a.matrix_norm(MatrixNorm::Nuclear, [-2, -1]), "torch.linalg.matrix_norm(a, 1)" => a.matrix_norm(MatrixNorm::Columns, [-2, -1]), "torch.linalg.matrix_norm(a, -1)" => a.matrix_norm(MatrixNorm::LeastColumn, [-2, -1]), "torch.linalg.matrix_norm(a, np.inf)" => a.matrix_norm(MatrixNorm::Rows, [-2, -1]), "torch.linalg.matrix_norm(a, -np.inf)" => a.matrix_norm(MatrixNorm::LeastRow, [-2, -1]), "torch.linalg.matrix_norm(a, 2)" => a.matrix_norm(MatrixNorm::Spectral, [-2, -1]), "torch.linalg.matrix_norm(a, -2)" => a.matrix_norm(MatrixNorm::LeastSingular, [-2, -1]), "torch.linalg.matrix_norm(a.unsqueeze(1).expand(2, 3, 2), 1, dim=(2, 0))" => a.unsqueeze(1).expand([2, 3, 2]).matrix_norm(MatrixNorm::Columns, [2, 0]), "torch.linalg.matrix_norm(a[:0], 1)" => a.slice(0, ..0).matrix_norm(MatrixNorm::Columns, [0, 1]), "torch.linalg.matrix_norm(a[:, :0], 2)" => a.slice(1, ..0).matrix_norm(MatrixNorm::Spectral, [0, 1]);
    matrix_norm_keepdim(a: PAIR) Floats -> Same, SOLVED, "`matrix_norm` that keeps the axes.": "torch.linalg.matrix_norm(a, np.inf, keepdim=True)" => a.matrix_norm_keepdim(MatrixNorm::Rows, [-2, -1]);
    pinv(a: SMALL.shape(&[3, 2])) Wide -> Same, SOLVED, "The pseudoinverse.": "torch.linalg.pinv(a)" => a.pinv();
    pinv_with(a: SMALL.shape(&[3, 2])) Wide -> Same, SOLVED, "The pseudoinverse, by tolerances.": "torch.linalg.pinv(a, rtol=0.9)" => a.pinv_with(None, 0.9);
    matrix_rank(a: PAIR) Wide -> Fixed(DType::I64), Exact, "How many rows are independent.": "torch.linalg.matrix_rank(a)" => a.matrix_rank();
    matrix_rank_with(a: PAIR) Wide -> Fixed(DType::I64), Exact, "How many rows are independent, by tolerances.": "torch.linalg.matrix_rank(a, atol=3.0, rtol=0.1)" => a.matrix_rank_with(3.0, 0.1);
    matrix_exp(a: UNIT.shape(&[2, 3, 3])) Wide -> Same, SOLVED, "The exponential of a matrix.": "torch.linalg.matrix_exp(a * 2)" => (a * 2).matrix_exp();
}
