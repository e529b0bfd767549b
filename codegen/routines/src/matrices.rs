//! The routines by faer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use faer::linalg::solvers::{DenseSolveCore, SolveCore, SolveLstsqCore};
use faer::traits::RealField;
use faer::{Conj, Mat, MatMut, MatRef, Side};

use crate::routine::{Matrix, Routine};

/// The results of a routine of one matrix, and of what is beside it: as many as [`Routine::parts`] says, and as long. Never
/// panics; what there is no result of is NaN.
pub fn f32(routine: Routine, x: Matrix<'_, f32>, beside: Option<Matrix<'_, f32>>, to: &mut [&mut [f32]]) {
    guarded(routine, x, beside, to);
}

/// As [`fn@f32`].
pub fn f64(routine: Routine, x: Matrix<'_, f64>, beside: Option<Matrix<'_, f64>>, to: &mut [&mut [f64]]) {
    guarded(routine, x, beside, to);
}

/// `F32` and `F64`.
trait Real: RealField + Copy {
    const NAN: Self;
    const ZERO: Self;
    const ONE: Self;
    /// The power of two below it; 1 for 0 and for what is not finite.
    fn scale(self) -> Self;
    fn magnitude(self) -> Self;
    fn root(self) -> Self;
    fn wide(self) -> f64;
    fn of(number: f64) -> Self;
}

macro_rules! real {
    ($($float:ident),*) => {$(
        impl Real for $float {
            const NAN: Self = $float::NAN;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            fn scale(self) -> Self {
                let is_usual = self > 0.0 && self.is_finite();
                // The digits are masked.
                let power = $float::from_bits(self.to_bits() & $float::INFINITY.to_bits());
                if is_usual { power.max($float::MIN_POSITIVE) } else { 1.0 }
            }
            fn magnitude(self) -> Self {
                self.abs()
            }
            fn root(self) -> Self {
                self.sqrt()
            }
            fn wide(self) -> f64 {
                self.into()
            }
            fn of(number: f64) -> Self {
                number as Self
            }
        }
    )*};
}
real!(f32, f64);

impl<'a, T> Matrix<'a, T> {
    fn view(self) -> MatRef<'a, T> {
        let [m, n] = self.shape;
        match self.is_transposed {
            true => MatRef::from_column_major_slice(self.elements, m, n),
            false => MatRef::from_row_major_slice(self.elements, m, n),
        }
    }
}

fn guarded<T: Real>(routine: Routine, x: Matrix<'_, T>, beside: Option<Matrix<'_, T>>, to: &mut [&mut [T]]) {
    // Whatever the library thinks of a matrix.
    let one = AssertUnwindSafe(|| one(routine, x.view(), beside.map(Matrix::view), to));
    if catch_unwind(one).is_err() {
        fill(to);
    }
}

/// What has no result.
fn fill<T: Real>(to: &mut [&mut [T]]) {
    to.iter_mut().for_each(|part| part.fill(T::NAN));
}

fn one<T: Real>(routine: Routine, x: MatRef<'_, T>, b: Option<MatRef<'_, T>>, to: &mut [&mut [T]]) {
    let b = || b.map_or_else(Mat::new, |b| b.to_owned());
    match (routine, &mut *to) {
        (Routine::Cholesky, [to]) => cholesky(x, to),
        (Routine::Lu, [p, l, u]) => Elimination::of(x).put(p, l, u),
        (Routine::Determinant, [value, sign, logarithm]) => {
            let done = Elimination::of(x);
            let pivots = (0..x.nrows()).map(|i| done.triangles[(i, i)].wide());
            let (mut product, mut unit, mut sum) = (done.sign, done.sign, 0.0);
            for pivot in pivots {
                product *= pivot;
                unit *= if pivot == 0.0 { 0.0 } else { pivot.signum() };
                sum += pivot.abs().ln();
            }
            [value[0], sign[0], logarithm[0]] = [product, unit, sum].map(T::of);
        }
        (Routine::Solve, [to]) => {
            let mut b = b();
            x.partial_piv_lu().solve_in_place_with_conj(Conj::No, b.as_mut());
            put(b.as_ref(), to);
        }
        (Routine::Triangle { is_upper, is_unit }, [to]) => {
            let mut b = b();
            match (is_upper, is_unit) {
                (false, false) => x.solve_lower_triangular_in_place(b.as_mut()),
                (false, true) => x.solve_unit_lower_triangular_in_place(b.as_mut()),
                (true, false) => x.solve_upper_triangular_in_place(b.as_mut()),
                (true, true) => x.solve_unit_upper_triangular_in_place(b.as_mut()),
            }
            put(b.as_ref(), to);
        }
        (Routine::LeastSquares, [to]) => least_squares(x, b(), to),
        (Routine::Inverse, [to]) => put(x.partial_piv_lu().inverse().as_ref(), to),
        (Routine::Qr, [q, r]) => {
            let columns = Columns::of(x);
            let found = columns.scaled.qr();
            put(found.compute_thin_Q().as_ref(), q);
            let triangle = found.thin_R();
            let mut r = MatMut::from_row_major_slice_mut(r, triangle.nrows(), triangle.ncols());
            for (j, &scale) in columns.scales.iter().enumerate() {
                for i in 0..triangle.nrows() {
                    r[(i, j)] = if j < i { T::ZERO } else { triangle[(i, j)] * scale };
                }
            }
        }
        (Routine::Eigenvalues | Routine::Eigenvectors, _) => {
            let lower = Mat::from_fn(x.nrows(), x.ncols(), |i, j| if j <= i { x[(i, j)] } else { T::ZERO });
            spectrum(routine, lower.as_ref(), to);
        }
        _ => spectrum(routine, x, to),
    }
}

/// Eigenvalues and singular values, which there are of what is finite.
fn spectrum<T: Real>(routine: Routine, x: MatRef<'_, T>, to: &mut [&mut [T]]) {
    if !x.is_all_finite() {
        return fill(to);
    }
    // So that squares are in range.
    let scale = x.norm_max().scale();
    let scaled = Mat::from_fn(x.nrows(), x.ncols(), |i, j| x[(i, j)] / scale);
    let all = |to: &mut [T], values: &mut dyn Iterator<Item = T>| {
        to.iter_mut().zip(values).for_each(|(to, value)| *to = value * scale);
    };
    let is_found = match (routine, &mut *to) {
        (Routine::Eigenvalues, [to]) => scaled
            .self_adjoint_eigenvalues(Side::Lower)
            .map(|values| all(to, &mut values.into_iter()))
            .is_ok(),
        (Routine::SingularValues, [to]) => {
            scaled.singular_values().map(|values| all(to, &mut values.into_iter())).is_ok()
        }
        (Routine::Eigenvectors, [values, vectors]) => scaled
            .self_adjoint_eigen(Side::Lower)
            .map(|found| {
                all(values, &mut found.S().column_vector().iter().copied());
                put(found.U(), vectors);
            })
            .is_ok(),
        (Routine::SingularVectors, [left, values, right]) => scaled
            .thin_svd()
            .map(|found| {
                put(found.U(), left);
                all(values, &mut found.S().column_vector().iter().copied());
                put(found.V().transpose(), right);
            })
            .is_ok(),
        _ => false,
    };
    if !is_found {
        fill(to);
    }
}

/// Row by row.
fn put<T: Real>(x: MatRef<'_, T>, to: &mut [T]) {
    MatMut::from_row_major_slice_mut(to, x.nrows(), x.ncols()).copy_from(x);
}

/// A matrix whose columns are divided by powers of two, so that squares are in range.
struct Columns<T> {
    scaled: Mat<T>,
    scales: Vec<T>,
}

impl<T: Real> Columns<T> {
    fn of(x: MatRef<'_, T>) -> Columns<T> {
        let scales: Vec<T> = x.col_iter().map(|column| column.norm_max().scale()).collect();
        Columns { scaled: Mat::from_fn(x.nrows(), x.ncols(), |i, j| x[(i, j)] / scales[j]), scales }
    }
}

fn least_squares<T: Real>(x: MatRef<'_, T>, mut b: Mat<T>, to: &mut [T]) {
    let (m, n) = x.shape();
    if m >= n {
        let columns = Columns::of(x);
        columns.scaled.qr().solve_lstsq_in_place_with_conj(Conj::No, b.as_mut());
        let mut to = MatMut::from_row_major_slice_mut(to, n, b.ncols());
        for (i, &scale) in columns.scales.iter().enumerate() {
            (0..b.ncols()).for_each(|j| to[(i, j)] = b[(i, j)] / scale);
        }
        return;
    }
    // The least of all solutions is made of the rows.
    let rows = Columns::of(x.transpose());
    for (i, &scale) in rows.scales.iter().enumerate() {
        (0..b.ncols()).for_each(|j| b[(i, j)] /= scale);
    }
    let found = rows.scaled.qr();
    found.thin_R().transpose().solve_lower_triangular_in_place(b.as_mut());
    put((found.compute_thin_Q() * b).as_ref(), to);
}

fn cholesky<T: Real>(x: MatRef<'_, T>, to: &mut [T]) {
    let n = x.nrows();
    let mut to = MatMut::from_row_major_slice_mut(to, n, n);
    if let Ok(found) = x.llt(Side::Lower) {
        let lower = found.L();
        for i in 0..n {
            (0..n).for_each(|j| to[(i, j)] = if j <= i { lower[(i, j)] } else { T::ZERO });
        }
        return;
    }
    // The columns that there are, one after the other: the library stops at the first that it has no root for.
    for j in 0..n {
        (0..j).for_each(|i| to[(i, j)] = T::ZERO);
        for i in j..n {
            let rest = (0..j).fold(x[(i, j)], |rest, before| rest - to[(i, before)] * to[(j, before)]);
            to[(i, j)] = match i == j {
                true if rest > T::ZERO => rest.root(),
                true => T::NAN,
                false => rest / to[(j, j)],
            };
        }
    }
}

/// Of a permutation: each cycle of an even length exchanges an odd number of times.
fn sign(order: &[usize]) -> f64 {
    let (mut sign, mut is_seen) = (1.0, vec![false; order.len()]);
    for start in 0..order.len() {
        let mut at = start;
        while !is_seen[at] {
            is_seen[at] = true;
            at = order[at];
            if at != start {
                sign = -sign;
            }
        }
    }
    sign
}

/// A matrix with its rows exchanged as triangles: below the diagonal the factors, whose diagonal is ones.
struct Elimination<T> {
    triangles: Mat<T>,
    /// Of each row, which one of the matrix it is.
    order: Vec<usize>,
    /// What the exchanges make of a determinant's sign.
    sign: f64,
}

impl<T: Real> Elimination<T> {
    fn of(x: MatRef<'_, T>) -> Elimination<T> {
        let (m, n) = x.shape();
        let found = x.partial_piv_lu();
        let (lower, upper) = (found.L(), found.U());
        let entry = |i: usize, j: usize| if j < i { lower[(i, j)] } else { upper[(i, j)] };
        let triangles = Mat::from_fn(m, n, entry);
        // A pivot of 0, which has only zeros below it, divides nothing. To the library it does.
        if !triangles.is_all_finite() {
            return Elimination::by_columns(x);
        }
        let order = found.P().arrays().0.to_vec();
        let sign = sign(&order);
        Elimination { triangles, order, sign }
    }

    /// Column by column, with the first of the greatest entries as pivot.
    fn by_columns(x: MatRef<'_, T>) -> Elimination<T> {
        let ((m, n), mut triangles) = (x.shape(), x.to_owned());
        let (mut order, mut sign): (Vec<usize>, f64) = ((0..m).collect(), 1.0);
        for k in 0..m.min(n) {
            let magnitude = |i: usize| triangles[(i, k)].magnitude();
            let pivot = (k + 1..m).fold(k, |most, i| if magnitude(i) > magnitude(most) { i } else { most });
            if pivot != k {
                order.swap(k, pivot);
                sign = -sign;
                for j in 0..n {
                    let top = triangles[(k, j)];
                    triangles[(k, j)] = triangles[(pivot, j)];
                    triangles[(pivot, j)] = top;
                }
            }
            let pivot = triangles[(k, k)];
            if pivot == T::ZERO {
                continue;
            }
            (k + 1..m).for_each(|i| triangles[(i, k)] /= pivot);
            // Columns lie one after the other.
            for j in k + 1..n {
                let top = triangles[(k, j)];
                for i in k + 1..m {
                    let part = triangles[(i, k)] * top;
                    triangles[(i, j)] -= part;
                }
            }
        }
        Elimination { triangles, order, sign }
    }

    fn put(&self, p: &mut [T], l: &mut [T], u: &mut [T]) {
        let (m, n) = self.triangles.shape();
        let k = m.min(n);
        p.fill(T::ZERO);
        for (i, &number) in self.order.iter().enumerate() {
            p[number * m + i] = T::ONE;
        }
        for i in 0..m {
            for j in 0..k {
                l[i * k + j] = match j.cmp(&i) {
                    std::cmp::Ordering::Less => self.triangles[(i, j)],
                    std::cmp::Ordering::Equal => T::ONE,
                    std::cmp::Ordering::Greater => T::ZERO,
                };
            }
        }
        for i in 0..k {
            (0..n).for_each(|j| u[i * n + j] = if j < i { T::ZERO } else { self.triangles[(i, j)] });
        }
    }
}
