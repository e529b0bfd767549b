//! How rows of observations vary together.

use crate::tensor::arguments::call::Call;
use crate::tensor::map::operands::float_for;
use crate::tensor::reduce::statistics::widened;
use crate::{Result, Shape, Tensor};

impl Tensor {
    /// The covariances of the rows of a matrix, of which each is a variable and its elements the observations: a matrix of all
    /// pairs, the sums of products of deviations over `count - correction`. A correction of 1 is PyTorch's and NumPy's default.
    /// Of a single row its variance, in a 0-d tensor. Floats keep their dtype, integers and bools give
    /// `F32`.
    ///
    /// Invalid for more than two dimensions.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 6.0, 4.0, 2.0], [2, 3]);
    /// assert_eq!(x.cov(1).to_vec::<f32>()?, [1.0, -2.0, -2.0, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cov(&self, correction: usize) -> Tensor {
        let call = Call::here("cov");
        call.composed(|| {
            let (rows, single) = rows(call, self)?;
            let covariance = widened(&rows, |rows| covariance(rows, correction))?;
            Ok(if single { covariance.reshape(Shape::scalar()) } else { covariance })
        })
    }

    /// Pearson's coefficients of correlation of the rows of a matrix, as [`Tensor::cov`] takes them: covariances over the
    /// deviations of both, from -1 to 1, NaN where a row does not vary.
    ///
    /// Invalid for more than two dimensions.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 6.0, 4.0, 2.0], [2, 3]);
    /// assert_eq!(x.corrcoef().to_vec::<f32>()?, [1.0, -1.0, -1.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn corrcoef(&self) -> Tensor {
        let call = Call::here("corrcoef");
        call.composed(|| {
            let (rows, single) = rows(call, self)?;
            widened(&rows, |rows| {
                let covariance = covariance(rows, 1);
                if single {
                    let variance = covariance.reshape(Shape::scalar());
                    return variance.div(&variance); // 1, or NaN of what does not vary
                }
                let deviation = covariance.diagonal(0, 0, 1).sqrt();
                (covariance / deviation.unsqueeze(1) / deviation).clamp(-1.0, 1.0)
            })
        })
    }
}

/// The variables as rows of floats, and whether there is only one, which has no dimension of its own in results.
fn rows(call: Call, x: &Tensor) -> Result<(Tensor, bool)> {
    let (shape, dtype) = x.known()?;
    match shape.rank() {
        rank @ 0..=2 => {
            let rows = if rank == 2 { shape.clone() } else { Shape::from([1, shape.elements()]) };
            let single = rows[0] == 1;
            Ok((call.reshape(x, rows)?.cast(float_for(dtype)), single))
        }
        _ => call.fail(format!("variables are the rows of a matrix, got shape {shape}")),
    }
}

fn covariance(rows: &Tensor, correction: usize) -> Tensor {
    let deviations = rows - rows.mean_keepdim(1);
    let count = rows.node.shape[1].saturating_sub(correction);
    deviations.matmul(&deviations.t()) / count as f64
}
