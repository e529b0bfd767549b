//! Tensors of evenly spaced numbers, identities, triangles and one-hot codes: functions of the position alone,
//! so no kernel reads them from memory.

use crate::tensor::arguments::call::Call;
use crate::{DType, Number, Result, Shape, Tensor};

impl Tensor {
    /// `steps` numbers from `start` to `end`, both included, equally far apart: computed in `F64` from the
    /// nearer end, then converted to `dtype`, which must hold both ends ([`Tensor::full`] says what it holds).
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::linspace(0.0, 1.0, 5, DType::F32);
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn linspace(start: f64, end: f64, steps: usize, dtype: DType) -> Tensor {
        let call = Call::here("linspace");
        call.composed(|| {
            let numbers = spaced(call, start, end, steps, dtype)?;
            for end in [start, end] {
                Number::from(end).held(call, dtype)?;
            }
            Ok(numbers.cast(dtype))
        })
    }

    /// `base` to the power of each number of [`Tensor::linspace`].
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::logspace(0.0, 3.0, 4, 10.0, DType::I32);
    /// assert_eq!(x.to_vec::<i32>()?, [1, 10, 100, 1000]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn logspace(start: f64, end: f64, steps: usize, base: f64, dtype: DType) -> Tensor {
        let call = Call::here("logspace");
        call.composed(|| {
            let exponents = spaced(call, start, end, steps, dtype)?;
            Ok(exponents.full_like(base).pow(&exponents).cast(dtype))
        })
    }

    /// The identity matrix.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// assert_eq!(Tensor::eye(2, DType::F32).to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn eye(n: usize, dtype: DType) -> Tensor {
        let call = Call::here("eye");
        call.composed(|| {
            call.needs_addressable(&[n, n].into())?;
            Ok(diagonal(n, n, 0).cast(dtype))
        })
    }

    /// A matrix with ones where the column is `offset` more than the row, and zeros elsewhere.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::eye_with(2, 3, 1, DType::I32);
    /// assert_eq!(x.to_vec::<i32>()?, [0, 1, 0, 0, 0, 1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn eye_with(rows: usize, columns: usize, offset: isize, dtype: DType) -> Tensor {
        let call = Call::here("eye_with");
        call.composed(|| {
            call.needs_addressable(&[rows, columns].into())?;
            Ok(diagonal(rows, columns, offset).cast(dtype))
        })
    }

    /// A matrix with ones at and below a diagonal (where the column is at most `offset` more than the row), and
    /// zeros above it, as NumPy's `tri`.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let mask = Tensor::tri(2, 3, 0, DType::Bool);
    /// assert_eq!(mask.to_vec::<bool>()?, [true, false, false, true, true, false]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn tri(rows: usize, columns: usize, offset: isize, dtype: DType) -> Tensor {
        let call = Call::here("tri");
        call.composed(|| {
            call.needs_addressable(&[rows, columns].into())?;
            Ok(below(rows, columns, offset, true).cast(dtype))
        })
    }

    /// Along a new last axis, 1 at the position that the element names and 0 elsewhere: `I64`, of `classes`
    /// positions. An element that names none is an [`IndexOutOfRange`](crate::Error::IndexOutOfRange) when the values
    /// are asked for.
    ///
    /// Invalid for floats and bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let labels = Tensor::from_slice(&[2i64, 0], [2]);
    /// assert_eq!(labels.one_hot(3).to_vec::<i64>()?, [0, 0, 1, 1, 0, 0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn one_hot(&self, classes: usize) -> Tensor {
        let call = Call::here("one_hot");
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            if !dtype.is_int() {
                return call.fail(format!("needs integers that name classes, got {dtype} {shape}"));
            }
            let result: Shape = shape.iter().copied().chain([classes]).collect();
            call.needs_addressable(&result)?;
            let classes = counting(classes).broadcast_to(result);
            // What is at a class's position among the classes is the class itself, if there is one.
            let class = classes.gather(-1, &self.cast(DType::I64).unsqueeze(-1));
            Ok(class.eq(classes).cast(DType::I64))
        })
    }
}

/// 0, 1, … as `I64`. May only be called while a call is composed.
pub(crate) fn counting(count: usize) -> Tensor {
    Tensor::arange(0, i64::try_from(count).unwrap_or(i64::MAX), 1)
}

/// Where `column - row <= diagonal` in a matrix, or, if not `lower`, where `column - row >= diagonal`.
pub(crate) fn below(rows: usize, columns: usize, diagonal: isize, lower: bool) -> Tensor {
    let limit = counting(rows).unsqueeze(1) + diagonal as i64;
    if lower { counting(columns).le(limit) } else { counting(columns).ge(limit) }
}

/// Where `column - row == offset` in a matrix.
pub(crate) fn diagonal(rows: usize, columns: usize, offset: isize) -> Tensor {
    counting(columns).eq(counting(rows).unsqueeze(1) + offset as i64)
}

fn spaced(call: Call, start: f64, end: f64, steps: usize, dtype: DType) -> Result<Tensor> {
    if !start.is_finite() || !end.is_finite() {
        return call.fail(format!("needs finite numbers, got from {start} to {end}"));
    }
    if dtype == DType::Bool {
        return call.fail("not defined for bool; use integers or floats");
    }
    call.needs_addressable(&[steps].into())?;
    let position = counting(steps).cast(DType::F64);
    if steps < 2 {
        return Ok(position + start);
    }
    // From the nearer end, as PyTorch: so both ends are exact, and so is a symmetric middle.
    let step = (end - start) / (steps - 1) as f64;
    let up = &position * step + start;
    let down = (position.full_like((steps - 1) as f64) - &position) * -step + end;
    Ok(counting(steps).lt((steps / 2) as i64).where_(up, down))
}
