//! Determinants, from the pivots of an elimination.

use smallvec::SmallVec;

use super::elimination::Elimination;
use super::parts::{UNROLLED, column, columns, entries, row_numbers, swapped};
use super::{routine, square};
use crate::runtime::routine::Routine;
use crate::tensor::arguments::call::Call;
use crate::{Result, Tensor};

impl Tensor {
    /// The determinant of a square matrix, or of each of a batch, in `F32` or `F64`; 1 of no rows, 0 of a singular matrix.
    /// PyTorch's `torch.linalg.det`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([[0.0f32, 2.0], [4.0, 1.0]]).det().item::<f32>()?, -8.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn det(&self) -> Tensor {
        let call = Call::here("det");
        call.composed(|| {
            if let Some([value, ..]) = by_library(call, self)? {
                return Ok(value);
            }
            let (sign, pivots) = pivots(call, self)?;
            Ok(sign * pivots.prod(-1))
        })
    }

    /// The determinant's sign and the logarithm of its magnitude, where the determinant itself would overflow or vanish: 0 and
    /// -infinity of a singular matrix. PyTorch's `torch.linalg.slogdet`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (sign, log) = Tensor::from([[0.0f32, 1.0], [1.0, 5.0]]).slogdet();
    /// assert_eq!((sign.item::<f32>()?, log.item::<f32>()?), (-1.0, 0.0));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn slogdet(&self) -> (Tensor, Tensor) {
        let call = Call::here("slogdet");
        match call.compose(|| signed_logarithm(call, self)) {
            Ok(parts) => parts,
            Err(error) => (Tensor::invalid(error.clone()), Tensor::invalid(error)),
        }
    }

    /// The logarithm of the determinant: NaN if that is negative, -infinity if it is 0.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from([[2.0f64, 1.0], [0.0, 3.0]]).logdet();
    /// assert!((x.item::<f64>()? - 6f64.ln()).abs() < 1e-15);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn logdet(&self) -> Tensor {
        let call = Call::here("logdet");
        call.composed(|| {
            let (sign, logarithm) = signed_logarithm(call, self)?;
            Ok(sign.lt(0.0).where_(f64::NAN, logarithm))
        })
    }
}

fn signed_logarithm(call: Call, x: &Tensor) -> Result<(Tensor, Tensor)> {
    if let Some([_, sign, logarithm]) = by_library(call, x)? {
        return Ok((sign, logarithm));
    }
    let [_, sign, logarithm] = decomposed(call, x)?;
    sign.validity()?;
    logarithm.validity()?;
    Ok((sign, logarithm))
}

/// The determinant, its sign, and the logarithm of its magnitude.
fn decomposed(call: Call, x: &Tensor) -> Result<[Tensor; 3]> {
    let (sign, pivots) = pivots(call, x)?;
    Ok([&sign * pivots.prod(-1), &sign * pivots.sign().prod(-1), pivots.abs().log().sum(-1)])
}

/// The same, if a library makes them.
fn by_library(call: Call, x: &Tensor) -> Result<Option<[Tensor; 3]>> {
    let n = square(call, x)?.rows;
    if n == 0 || !routine::takes_of(x, n) {
        return Ok(None);
    }
    let made = routine::record(call, Routine::Determinant, &[x], move |x| {
        decomposed(call, &x[0]).map(SmallVec::from)
    })?;
    let [value, sign, logarithm] = &made[..] else { return call.fail("has no determinant") };
    let decomposition = move |x: &Tensor| decomposed(call, x).map(|[value, _, logarithm]| [value, logarithm]);
    let [value, logarithm] = routine::differentiable(call, [value, logarithm], x, decomposition);
    Ok(Some([value, call.detached(sign), logarithm]))
}

/// What the exchanges of an elimination make of the sign, and its pivots along a new last axis.
fn pivots(call: Call, x: &Tensor) -> Result<(Tensor, Tensor)> {
    let of = square(call, x)?;
    let (n, dtype) = (of.rows, of.dtype);
    if (2..=UNROLLED).contains(&n) {
        let all = Elimination { rows: n, passive: 0, pivots: n, width: n };
        let (done, exchanges) = all.of_entries(entries(x, n, n));
        let pivots: Vec<&Tensor> = done.iter().enumerate().map(|(i, line)| &line[i]).collect();
        // Each step exchanges with one row or none.
        let is_odd = exchanges.into_iter().reduce(|odd, one| odd.logical_xor(one));
        let sign = is_odd.map(|is_odd| is_odd.where_(-1.0, pivots[0].ones_like()));
        return Ok((sign.unwrap_or_else(|| pivots[0].ones_like()), Tensor::stack(&pivots, -1)));
    }
    let order = row_numbers(n).cast(dtype).broadcast_to(of.of(n, 1));
    let all = Elimination { rows: n, passive: 1, pivots: n, width: n + 1 };
    let done = all.run(&Tensor::cat([&order, x], -1));
    let order = column(&done, 0);
    // A permutation is odd if the pairs of rows in the wrong order are an odd number.
    let is_wrong = order.gt(swapped(&order)).triu(1);
    let is_odd = is_wrong.sum([-2, -1]) % 2;
    let sign = (is_odd * -2 + 1).cast(dtype);
    Ok((sign, columns(&done, 1, n + 1).diagonal(0, -2, -1)))
}
