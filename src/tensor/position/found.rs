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
            let mut stride = 1;
            let mut columns: Vec<Tensor> = Vec::new();
            for &extent in shape.iter().rev() {
                columns.push(flat.floor_divide(stride as i64).remainder(extent.max(1) as i64));
                stride *= extent.max(1);
            }
            match columns.is_empty() {
                true => Ok(Tensor::zeros([places.count, 0], DType::I64)),
                false => Ok(Tensor::stack(&columns.iter().rev().collect::<Vec<_>>(), 1)),
            }
        })
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
    pub fn masked_select(&self, mask: &Tensor) -> Result<Tensor> {
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
            let ends = Tensor::cat(
                &[&distinct.first.positions(), &Tensor::full([1], distinct.length as i64, DType::I64)],
                0,
            );
            let counts = if distinct.length == 0 { ends.narrow(0, 0, 0) } else { ends.diff(0) };
            Ok((distinct.values(), counts))
        })
    }
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
        let all = Tensor::zeros([self.count + 1], DType::I64).scatter(0, &place, counting(length));
        all.narrow(0, 0, self.count)
    }
}

/// The elements in order, and which of them are the first of their kind.
struct Distinct {
    sorted: Tensor,
    order: Tensor,
    first: Places,
    length: usize,
}

impl Distinct {
    fn of(call: Call, x: &Tensor) -> Result<Distinct> {
        let flat = x.ravel();
        let length = flat.known()?.0.elements();
        let (sorted, order) = flat.sort(0, false);
        crate::eval([&sorted, &order])?;
        let is_new = match length {
            0 => Tensor::zeros(Shape::from([0]), DType::Bool),
            _ => {
                let differs = sorted.narrow(0, 1, length - 1).ne(sorted.narrow(0, 0, length - 1));
                Tensor::cat(&[&Tensor::ones([1], DType::Bool), &differs], 0)
            }
        };
        Ok(Distinct { sorted, order, first: Places::of(call, &is_new)?, length })
    }

    fn values(&self) -> Tensor {
        self.sorted.index_select(0, &self.first.positions())
    }

    /// At each element's own position, the number of its kind.
    fn inverse(&self) -> Tensor {
        Tensor::zeros([self.length], DType::I64).scatter(0, &self.order, &(&self.first.running - 1))
    }
}
