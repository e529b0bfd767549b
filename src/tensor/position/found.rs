//! Results whose extents follow from the elements: how many there are must be known before anything can be recorded of them,
//! so that these evaluate.

use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::{DType, Result, Shape, Tensor};

impl Tensor {
    /// The positions of all elements that are not 0 (NaN is not), in order: `I64` of shape `[count, rank]`, as PyTorch's.
    ///
    /// **Evaluates** how many there are, which decides the result's shape; so it is an error for an invalid tensor, and within
    /// what is recorded once ([`compile`](crate::compile), [`scan`](crate::scan)). Where a mask does as well
    /// ([`Tensor::where_`], sums with weights of 0), prefer it: everything stays in one kernel.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0i32, 7, 5, 0], [2, 2]);
    /// assert_eq!(x.nonzero()?.to_vec::<i64>()?, [0, 1, 1, 0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn nonzero(&self) -> Result<Tensor> {
        let call = Call::here("nonzero");
        call.compose(|| {
            let (shape, _) = self.known()?;
            let places = Places::of(call, &self.cast(DType::Bool).ravel())?;
            let flat = places.positions();
            match shape.rank() {
                0 => Ok(Tensor::zeros([places.count, 0], DType::I64)),
                _ => {
                    let along =
                        (0..shape.rank()).map(|axis| positions_along(shape, axis).index_select(0, &flat));
                    Ok(Tensor::stack(&along.collect::<Vec<_>>(), 1))
                }
            }
        })
    }

    /// [`Tensor::nonzero`] under NumPy's name, which PyTorch has too.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0i32, 7], [2]);
    /// assert_eq!(x.argwhere()?.to_vec::<i64>()?, [1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn argwhere(&self) -> Result<Tensor> {
        let call = Call::here("argwhere");
        call.compose(|| self.nonzero())
    }

    /// The elements where a mask holds, in order, with one dimension; mask and tensor broadcast. PyTorch's `masked_select`,
    /// NumPy's `x[mask]`.
    ///
    /// **Evaluates** how many there are; see [`Tensor::nonzero`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3.0f32, -1.0, 2.0, -5.0], [2, 2]);
    /// assert_eq!(x.masked_select(&x.gt(0.0))?.to_vec::<f32>()?, [3.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn masked_select(&self, mask: impl AsRef<Tensor>) -> Result<Tensor> {
        let mask = mask.as_ref();
        let call = Call::here("masked_select");
        call.compose(|| {
            let ((shape, _), (of_mask, dtype)) = (self.known()?, mask.known()?);
            if dtype != DType::Bool {
                return call.fail(format!("the mask must be bool, got {dtype} {of_mask}"));
            }
            let shape = call.broadcast(&[shape, of_mask])?;
            let places = Places::of(call, &mask.broadcast_to(&shape).ravel())?;
            Ok(self.broadcast_to(&shape).ravel().index_select(0, &places.positions()))
        })
    }

    /// The different elements in ascending order, with one dimension; NaN last, each for itself. PyTorch's and NumPy's `unique`
    /// of all elements.
    ///
    /// **Evaluates** how many there are; see [`Tensor::nonzero`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3i32, 1, 3, 2, 1], [5]);
    /// assert_eq!(x.unique()?.to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn unique(&self) -> Result<Tensor> {
        let call = Call::here("unique");
        call.compose(|| Ok(Distinct::of(call, self)?.values()))
    }

    /// [`Tensor::unique`], and where each element is among its results: `I64` of this tensor's shape.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[30i32, 10, 30, 20], [2, 2]);
    /// let (values, positions) = x.unique_inverse()?;
    /// assert_eq!(positions.to_vec::<i64>()?, [2, 0, 2, 1]);
    /// assert_eq!(values.take(&positions).to_vec::<i32>()?, x.to_vec::<i32>()?);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn unique_inverse(&self) -> Result<(Tensor, Tensor)> {
        let call = Call::here("unique_inverse");
        call.compose(|| {
            let distinct = Distinct::of(call, self)?;
            Ok((distinct.values(), distinct.inverse().reshape(self.known()?.0)))
        })
    }

    /// [`Tensor::unique`], and how often each of its results occurs: `I64`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (values, counts) = Tensor::from_slice(&[3i32, 1, 3, 2, 1, 3], [6]).unique_counts()?;
    /// lazuli::eval([&values, &counts])?;
    /// assert_eq!((values.to_vec::<i32>()?, counts.to_vec::<i64>()?), (vec![1, 2, 3], vec![2, 1, 3]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn unique_counts(&self) -> Result<(Tensor, Tensor)> {
        let call = Call::here("unique_counts");
        call.compose(|| {
            let distinct = Distinct::of(call, self)?;
            Ok((distinct.values(), distinct.runs.lengths()))
        })
    }

    /// [`Tensor::unique`], where each element is among its results, and how often each of these occurs: [`Tensor::unique_inverse`]
    /// and [`Tensor::unique_counts`] of one sort. PyTorch's `unique` with `return_inverse` and `return_counts`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (values, positions, counts) = Tensor::from_slice(&[30i32, 10, 30], [3]).unique_inverse_counts()?;
    /// assert_eq!(values.to_vec::<i32>()?, [10, 30]);
    /// assert_eq!((positions.to_vec::<i64>()?, counts.to_vec::<i64>()?), (vec![1, 0, 1], vec![1, 2]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn unique_inverse_counts(&self) -> Result<(Tensor, Tensor, Tensor)> {
        let call = Call::here("unique_inverse_counts");
        call.compose(|| {
            let distinct = Distinct::of(call, self)?;
            let inverse = distinct.inverse().reshape(self.known()?.0);
            Ok((distinct.values(), inverse, distinct.runs.lengths()))
        })
    }

    /// Each position of an axis as many times in a row as a tensor of integers says for it, or, if that has one element, for all.
    /// PyTorch's and NumPy's `repeat_interleave` and `repeat` with a tensor of `repeats`.
    ///
    /// **Evaluates** the counts, whose sum decides the result's shape; see [`Tensor::nonzero`]. An error for a negative count, for
    /// floats and bools, and for another number of counts than there are positions.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 6, 1).reshape([3, 2]);
    /// let rows = x.repeat_interleave_counts(&Tensor::from([2, 0, 1]), 0)?;
    /// assert_eq!(rows.to_vec::<i32>()?, [0, 1, 0, 1, 4, 5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn repeat_interleave_counts(&self, counts: impl AsRef<Tensor>, axis: isize) -> Result<Tensor> {
        let (call, counts) = (Call::here("repeat_interleave_counts"), counts.as_ref());
        call.compose(|| {
            let ((shape, _), (own, dtype)) = (self.known()?, counts.known()?);
            let axis = call.axis(axis, shape)?;
            let extent = shape[axis];
            if !dtype.is_int() || own.rank() > 1 || (own.elements() != extent && own.elements() != 1) {
                return call.fail(format!(
                    "axis {axis} of shape {shape} takes {extent} integers, one a position, or one for all, got {dtype} {own}"
                ));
            }
            let counts = counts.cast(DType::I64).ravel().broadcast_to([extent]);
            let ends = counts.cumsum(0);
            let total = match extent {
                0 => 0,
                _ => {
                    let least = counts.min(..);
                    let total = ends.narrow(0, extent - 1, 1);
                    crate::eval([&least, &total, &ends])?;
                    let least = least.item::<i64>()?;
                    call.needs(least >= 0, "counts must not be negative", least)?;
                    let total = total.item::<i64>()?;
                    usize::try_from(total).map_err(|_| call.error(format!("{total} positions are too many")))?
                }
            };
            call.needs_addressable(&shape.with_extent(axis, total))?;
            let from = match extent {
                0 => Tensor::zeros([0], DType::I64),
                _ => {
                    // Where a position has ended, the next begins: as often as positions end there, as many further.
                    let dtype = if i32::try_from(extent).is_ok() { DType::I32 } else { DType::I64 };
                    let ended = Tensor::ones([extent], dtype);
                    let all = Tensor::zeros([total + 1], dtype).scatter_add(0, &ends, ended);
                    all.narrow(0, 0, total).cumsum(0)
                }
            };
            let repeated = self.index_select(axis as isize, &from);
            repeated.validity().map(|()| repeated)
        })
    }

    /// How often each number from 0 to the largest of these integers occurs, and at least each below `minlength`: PyTorch's and
    /// NumPy's `bincount`. `I64`, or with weights what [`Tensor::bincount_with`] gives.
    ///
    /// **Evaluates** the largest number; see [`Tensor::nonzero`], and [`Tensor::bincount`] for a number of counts that is known. An
    /// error for a negative number, and for what [`Tensor::bincount`] refuses.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1u8, 3, 1, 0], [4]);
    /// assert_eq!(x.bincount_all(None, 0)?.to_vec::<i64>()?, [1, 2, 0, 1]);
    /// assert_eq!(x.bincount_all(None, 5)?.to_vec::<i64>()?, [1, 2, 0, 1, 0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn bincount_all(&self, weights: Option<&Tensor>, minlength: usize) -> Result<Tensor> {
        let call = Call::here("bincount_all");
        call.compose(|| {
            let count = |bins: usize| match weights {
                None => self.bincount(bins),
                Some(weights) => self.bincount_with(bins, weights),
            };
            let none = count(minlength.max(1));
            none.validity()?;
            let mut bins = minlength;
            if self.known()?.0.elements() > 0 {
                let (least, most) = self.cast(DType::I64).aminmax(..);
                crate::eval([&least, &most])?;
                let (least, most) = (least.item::<i64>()?, most.item::<i64>()?);
                call.needs(least >= 0, "numbers must not be negative", least)?;
                bins = bins.max(usize::try_from(most).unwrap_or(usize::MAX).saturating_add(1));
            }
            let counts = if bins == 0 { none.narrow(0, 0, 0) } else { count(bins) };
            counts.validity().map(|()| counts)
        })
    }

    /// The elements in row-major order without those that are equal to the one before them, with one dimension: PyTorch's
    /// `unique_consecutive` of all elements.
    ///
    /// **Evaluates** how many there are; see [`Tensor::nonzero`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1i32, 1, 2, 2, 1], [5]);
    /// assert_eq!(x.unique_consecutive()?.to_vec::<i32>()?, [1, 2, 1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn unique_consecutive(&self) -> Result<Tensor> {
        let call = Call::here("unique_consecutive");
        call.compose(|| Ok(Runs::of(call, &self.ravel())?.values()))
    }

    /// [`Tensor::unique_consecutive`], and how many equal elements each of its results stands for: `I64`, the lengths of runs.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (values, lengths) = Tensor::from_slice(&[7u8, 7, 7, 5, 7], [5]).unique_consecutive_counts()?;
    /// lazuli::eval([&values, &lengths])?;
    /// assert_eq!((values.to_vec::<u8>()?, lengths.to_vec::<i64>()?), (vec![7, 5, 7], vec![3, 1, 1]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn unique_consecutive_counts(&self) -> Result<(Tensor, Tensor)> {
        let call = Call::here("unique_consecutive_counts");
        call.compose(|| {
            let runs = Runs::of(call, &self.ravel())?;
            Ok((runs.values(), runs.lengths()))
        })
    }
}

/// The position along an axis of each element, with one dimension.
fn positions_along(shape: &Shape, axis: usize) -> Tensor {
    let mut own = vec![1; shape.rank()];
    own[axis] = shape[axis];
    counting(shape[axis]).reshape(Shape::from(own)).broadcast_to(shape).ravel()
}

/// Where a mask of one dimension holds.
struct Places {
    /// How many positions up to each hold.
    running: Tensor,
    mask: Tensor,
    count: usize,
}

impl Places {
    /// Evaluates the mask and how many of it hold.
    fn of(call: Call, mask: &Tensor) -> Result<Places> {
        let (shape, _) = mask.known()?;
        let running = mask.cumsum(0);
        let count = match shape.elements() {
            0 => 0,
            length => {
                crate::eval([mask, &running])?;
                let count = running.narrow(0, length - 1, 1).item::<i64>()?;
                usize::try_from(count).map_err(|_| call.error(format!("counted {count} elements")))?
            }
        };
        Ok(Places { running, mask: mask.clone(), count })
    }

    /// The positions that hold, ascending.
    fn positions(&self) -> Tensor {
        let length = self.mask.node.shape.elements();
        // What does not hold goes to a place behind the others.
        let place = self.mask.where_(&self.running - 1, self.count as i64);
        let all = Tensor::zeros([self.count + 1], DType::I64).scatter_add(0, &place, counting(length));
        all.narrow(0, 0, self.count)
    }
}

/// Elements along the first axis, or whole positions of it, and which of them differ from the one before.
pub(super) struct Runs {
    elements: Tensor,
    first: Places,
    length: usize,
}

impl Runs {
    fn of(call: Call, elements: &Tensor) -> Result<Runs> {
        let (shape, _) = elements.known()?;
        let length = shape[0];
        let is_new = match length {
            0 => Tensor::zeros(Shape::from([0]), DType::Bool),
            _ => {
                let differs = elements.narrow(0, 1, length - 1).ne(elements.narrow(0, 0, length - 1));
                let inner: Vec<usize> = (1..shape.rank()).collect();
                let differs = if inner.is_empty() { differs } else { differs.any(inner) };
                Tensor::cat(&[&Tensor::ones([1], DType::Bool), &differs], 0)
            }
        };
        Ok(Runs { elements: elements.clone(), first: Places::of(call, &is_new)?, length })
    }

    /// The first of each run.
    fn values(&self) -> Tensor {
        self.elements.index_select(0, &self.first.positions())
    }

    pub(super) fn lengths(&self) -> Tensor {
        let end = Tensor::full([1], self.length as i64, DType::I64);
        let ends = Tensor::cat(&[&self.first.positions(), &end], 0);
        if self.length == 0 { ends.narrow(0, 0, 0) } else { ends.diff(0) }
    }
}

/// The elements in order, in which equal ones are runs.
pub(super) struct Distinct {
    pub(super) runs: Runs,
    order: Tensor,
}

impl Distinct {
    fn of(call: Call, x: &Tensor) -> Result<Distinct> {
        let (sorted, order) = x.ravel().sort(0, false);
        Distinct::ordered(call, &sorted, order)
    }

    /// Of what is in order already, and of the order that it came from.
    pub(super) fn ordered(call: Call, sorted: &Tensor, order: Tensor) -> Result<Distinct> {
        crate::eval([sorted, &order])?;
        Ok(Distinct { runs: Runs::of(call, sorted)?, order })
    }

    pub(super) fn values(&self) -> Tensor {
        self.runs.values()
    }

    /// At each element's own position, the number of its kind.
    pub(super) fn inverse(&self) -> Tensor {
        let numbers = &self.runs.first.running - 1;
        Tensor::zeros([self.runs.length], DType::I64).scatter(0, &self.order, &numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    #[test]
    fn positions_repeat_as_often_as_their_counts_say() {
        let rows = |counts: &[u8], extent: i64| {
            let x = counting(extent as usize).unsqueeze(1).to(&Device::interpreter());
            let counts = Tensor::from_slice(counts, [counts.len()]).to(&Device::interpreter());
            let repeated = x.repeat_interleave_counts(&counts, 0).unwrap();
            assert_eq!(repeated.known().unwrap().0.rank(), 2);
            repeated.to_vec::<i64>().unwrap()
        };
        assert_eq!(rows(&[0, 0, 2, 0, 0, 3, 1, 0], 8), [2, 2, 5, 5, 5, 6]);
        assert_eq!(rows(&[1, 0, 0, 255], 4)[..3], [0, 3, 3]);
        assert_eq!(rows(&[2], 3), [0, 0, 1, 1, 2, 2]);
        assert_eq!(rows(&[0, 0], 2), [0; 0]);
        assert_eq!(rows(&[], 0), [0; 0]);
        assert_eq!(rows(&[7], 0), [0; 0]);
    }

    #[test]
    fn runs_of_nothing_one_and_nan() {
        let of = |elements: &[f32]| {
            let x = Tensor::from_slice(elements, [elements.len()]).to(&Device::interpreter());
            let (values, lengths) = x.unique_consecutive_counts().unwrap();
            (values.to_vec::<f32>().unwrap(), lengths.to_vec::<i64>().unwrap())
        };
        assert_eq!(of(&[]), (vec![], vec![]));
        assert_eq!(of(&[0.0, -0.0]), (vec![0.0], vec![2]));
        assert_eq!(of(&[1.0, f32::NAN, f32::NAN, 1.0, 1.0]).1, [1, 1, 1, 2]);
    }
}
