//! What a pooling does: its windows, and how their mean counts.

/// One number for each of `N` dimensions: from one for all, a tuple or an array.
///
/// ```
/// use lazuli::{Pair, PerAxis};
/// assert_eq!(Pair::from(2), Pair::from((2, 2)));
/// assert_eq!(Pair::from([3, 1]), Pair::from((3, 1)));
/// assert_eq!(PerAxis::<3>::from(2), PerAxis::from((2, 2, 2)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PerAxis<const N: usize>(pub(crate) [usize; N]);

/// Two numbers, for height and width.
pub type Pair = PerAxis<2>;

impl<const N: usize> From<usize> for PerAxis<N> {
    fn from(all: usize) -> PerAxis<N> {
        PerAxis([all; N])
    }
}

impl<const N: usize> From<[usize; N]> for PerAxis<N> {
    fn from(each: [usize; N]) -> PerAxis<N> {
        PerAxis(each)
    }
}

impl From<(usize, usize)> for PerAxis<2> {
    fn from((height, width): (usize, usize)) -> PerAxis<2> {
        PerAxis([height, width])
    }
}

impl From<(usize, usize, usize)> for PerAxis<3> {
    fn from((depth, height, width): (usize, usize, usize)) -> PerAxis<3> {
        PerAxis([depth, height, width])
    }
}

/// The windows of a pooling of `N` dimensions, such as those of [`Tensor::max_pool2d_with`](crate::Tensor::max_pool2d_with).
///
/// ```
/// use lazuli::{DType, Pool2d, Shape, Tensor};
/// let x = Tensor::zeros([1, 8, 32, 32], DType::F32);
/// let pool = Pool2d::new(3).stride(2).padding(1);
/// assert_eq!(x.max_pool2d_with(pool).shape()?, Shape::from([1, 8, 16, 16]));
/// assert_eq!(x.max_pool2d_with(pool.ceil_mode(true)).shape()?, Shape::from([1, 8, 17, 17]));
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pool<const N: usize> {
    pub(super) kernel: [usize; N],
    pub(super) stride: [usize; N],
    pub(super) padding: [usize; N],
    pub(super) dilation: [usize; N],
    pub(super) ceil: bool,
    pub(super) count_padding: bool,
    pub(super) divisor: Option<usize>,
}

/// The windows of a 1-d pooling.
pub type Pool1d = Pool<1>;
/// The windows of a 2-d pooling.
pub type Pool2d = Pool<2>;
/// The windows of a 3-d pooling.
pub type Pool3d = Pool<3>;

impl<const N: usize> Pool<N> {
    /// Windows of that size, side by side (the stride is the size), without padding or dilation.
    ///
    /// ```
    /// use lazuli::{Pool2d, Tensor};
    /// let x = Tensor::arange(0, 8, 1).reshape([2, 4]);
    /// assert_eq!(x.max_pool2d_with(Pool2d::new((1, 2))).to_vec::<i32>()?, [1, 3, 5, 7]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn new(kernel: impl Into<PerAxis<N>>) -> Pool<N> {
        let PerAxis(kernel) = kernel.into();
        Pool {
            kernel,
            stride: kernel,
            padding: [0; N],
            dilation: [1; N],
            ceil: false,
            count_padding: true,
            divisor: None,
        }
    }

    /// The distance between the starts of neighbouring windows.
    ///
    /// ```
    /// use lazuli::{Pool1d, Tensor};
    /// let x = Tensor::from_slice(&[1i32, 5, 2, 4], [4]);
    /// assert_eq!(x.max_pool1d_with(Pool1d::new(2).stride(1)).to_vec::<i32>()?, [5, 5, 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn stride(mut self, stride: impl Into<PerAxis<N>>) -> Pool<N> {
        self.stride = stride.into().0;
        self
    }

    /// How far windows may reach beyond each edge: at most half of their size.
    ///
    /// ```
    /// use lazuli::{Pool1d, Tensor};
    /// let x = Tensor::from_slice(&[1i32, 5, 2, 4], [4]);
    /// assert_eq!(x.max_pool1d_with(Pool1d::new(2).padding(1)).to_vec::<i32>()?, [1, 5, 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn padding(mut self, padding: impl Into<PerAxis<N>>) -> Pool<N> {
        self.padding = padding.into().0;
        self
    }

    /// The distance between neighbouring positions of one window.
    ///
    /// ```
    /// use lazuli::{Pool1d, Tensor};
    /// let x = Tensor::from_slice(&[1i32, 5, 2, 4], [4]);
    /// assert_eq!(x.max_pool1d_with(Pool1d::new(2).stride(1).dilation(2)).to_vec::<i32>()?, [2, 5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn dilation(mut self, dilation: impl Into<PerAxis<N>>) -> Pool<N> {
        self.dilation = dilation.into().0;
        self
    }

    /// Whether a last window counts that is not whole, if it starts in the input or in the padding before it.
    ///
    /// ```
    /// use lazuli::{Pool1d, Tensor};
    /// let x = Tensor::from_slice(&[1i32, 5, 2], [3]);
    /// assert_eq!(x.max_pool1d_with(Pool1d::new(2)).to_vec::<i32>()?, [5]);
    /// assert_eq!(x.max_pool1d_with(Pool1d::new(2).ceil_mode(true)).to_vec::<i32>()?, [5, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn ceil_mode(mut self, ceil: bool) -> Pool<N> {
        self.ceil = ceil;
        self
    }

    /// Whether the mean counts the padding's zeros, as it does unless told otherwise.
    ///
    /// ```
    /// use lazuli::{Pool1d, Tensor};
    /// let x = Tensor::from_slice(&[4.0f32, 6.0], [2]);
    /// let pool = Pool1d::new(2).padding(1);
    /// assert_eq!(x.avg_pool1d_with(pool).to_vec::<f32>()?, [2.0, 3.0]);
    /// assert_eq!(x.avg_pool1d_with(pool.count_include_pad(false)).to_vec::<f32>()?, [4.0, 6.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn count_include_pad(mut self, count: bool) -> Pool<N> {
        self.count_padding = count;
        self
    }

    /// The number by which the mean divides the sum, in place of the number of elements.
    ///
    /// ```
    /// use lazuli::{Pool1d, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 5.0, 2.0, 4.0], [4]);
    /// let sums = x.avg_pool1d_with(Pool1d::new(2).divisor_override(1));
    /// assert_eq!(sums.to_vec::<f32>()?, [6.0, 6.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn divisor_override(mut self, divisor: usize) -> Pool<N> {
        self.divisor = Some(divisor);
        self
    }

    /// Whether as many elements of every window count.
    pub(super) fn is_even(&self) -> bool {
        !self.ceil && (self.count_padding || self.padding == [0; N])
    }
}
