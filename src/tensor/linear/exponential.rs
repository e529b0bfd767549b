//! The exponential of a matrix.

use super::parts::{lengthened, rows, swapped};
use super::square;
use crate::tensor::arguments::call::Call;
use crate::{DType, Tensor};

/// A matrix is halved at most so often, and its exponential squared as often.
const SQUARINGS: i32 = 20;

/// So many powers are computed, and others from the last of them.
const POWERS: usize = 4;

impl Tensor {
    /// `1 + x + x @ x / 2 + x @ x @ x / 6 + …` of a square matrix, or of each of a batch, in `F32` or `F64`: what solves linear
    /// differential equations. PyTorch's `torch.linalg.matrix_exp`.
    ///
    /// By 17 terms of the matrix, halved until it is small enough, and the result squared as often: 20 times at most, as that is a
    /// part of the recorded graph. Where the largest sum of a column's magnitudes is beyond 2,000,000 (`F64`: 500,000), the
    /// result is NaN.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let turn = Tensor::from([[0.0f64, -1.0], [1.0, 0.0]]) * std::f64::consts::FRAC_PI_2;
    /// let quarter = Tensor::from([[0.0f64, -1.0], [1.0, 0.0]]);
    /// assert!((turn.matrix_exp() - quarter).abs().max(..).item::<f64>()? < 1e-15);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn matrix_exp(&self) -> Tensor {
        let call = Call::here("matrix_exp");
        call.composed(|| {
            let of = square(call, self)?;
            let n = of.rows;
            if n == 0 {
                return Ok(self.clone());
            }
            // Zeros beside a matrix make a 1 each of its exponential.
            let x = lengthened(&swapped(&lengthened(&swapped(self), n)), n);
            let exponential = exponential(&x);
            Ok(rows(&swapped(&rows(&swapped(&exponential), 0, n)), 0, n))
        })
    }
}

fn exponential(x: &Tensor) -> Tensor {
    // Up to this sum of magnitudes 17 terms are all that can be told from more.
    let small = if x.node.dtype == DType::F64 { 0.5 } else { 2.0 };
    let norm = x.abs().sum_keepdim(-2).max_keepdim(-1);
    let halvings = (norm / small).log2().ceil().clamp(0.0, f64::from(SQUARINGS) + 1.0);
    let halvings = halvings.gt(f64::from(SQUARINGS)).where_(f64::NAN, halvings);
    let mut result = series(&(x * (-&halvings).exp2()));
    for number in 0..SQUARINGS {
        result = halvings.gt(f64::from(number)).where_(result.matmul(&result), result);
    }
    result
}

/// Terms up to the power 16, in six products (Paterson and Stockmeyer).
fn series(x: &Tensor) -> Tensor {
    let square = x.matmul(x);
    let one = Tensor::eye(x.node.shape[x.node.shape.rank() - 1], x.node.dtype);
    let powers: [Tensor; POWERS] = [one, x.clone(), square.clone(), square.matmul(x)];
    let fourth = square.matmul(&square);
    let inverse_factorial = |k: usize| 1.0 / (1..=k).map(|k| k as f64).product::<f64>();
    let part = |first: usize| {
        let terms = powers.iter().enumerate().map(|(k, power)| power * inverse_factorial(POWERS * first + k));
        terms.fold(Tensor::scalar(0.0).cast(x.node.dtype), |sum, term| sum + term)
    };
    let last = part(3) + &fourth * inverse_factorial(4 * POWERS);
    [2, 1, 0].into_iter().fold(last, |sum, first| part(first) + fourth.matmul(&sum))
}
