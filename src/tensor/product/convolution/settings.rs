//! How a convolution goes over its input.

use crate::Result;
use crate::tensor::arguments::call::Call;
use crate::tensor::layer::pool::PerAxis;

/// How a convolution of `N` dimensions goes over its input.
///
/// ```
/// use lazuli::{Conv2d, DType, Shape, Tensor};
/// let (x, weight) = (Tensor::zeros([1, 8, 32, 32], DType::F32), Tensor::zeros([16, 8, 3, 3], DType::F32));
/// let halved = x.conv2d_with(&weight, None, Conv2d::new().stride(2).padding(1));
/// assert_eq!(halved.shape()?, Shape::from([1, 16, 16, 16]));
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Conv<const N: usize> {
    pub(super) stride: [usize; N],
    pub(super) padding: Padding<N>,
    pub(super) dilation: [usize; N],
    pub(super) groups: usize,
    pub(super) output_padding: [usize; N],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Padding<const N: usize> {
    Zeros([usize; N]),
    Same,
}

/// How a 1-d convolution goes over its input.
pub type Conv1d = Conv<1>;
/// How a 2-d convolution goes over its input.
pub type Conv2d = Conv<2>;
/// How a 3-d convolution goes over its input.
pub type Conv3d = Conv<3>;

impl<const N: usize> Default for Conv<N> {
    fn default() -> Conv<N> {
        Conv {
            stride: [1; N],
            padding: Padding::Zeros([0; N]),
            dilation: [1; N],
            groups: 1,
            output_padding: [0; N],
        }
    }
}

impl<const N: usize> Conv<N> {
    /// Stride 1, no padding, no dilation, one group.
    ///
    /// ```
    /// use lazuli::{Conv1d, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 4.0], [1, 3]);
    /// let weight = Tensor::from_slice(&[-1.0f32, 1.0], [1, 1, 2]);
    /// assert_eq!(x.conv1d_with(&weight, None, Conv1d::new()).to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn new() -> Conv<N> {
        Conv::default()
    }

    /// The distance between neighbouring windows.
    ///
    /// ```
    /// use lazuli::{Conv1d, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 4.0, 8.0], [1, 4]);
    /// let weight = Tensor::from_slice(&[1.0f32, 1.0], [1, 1, 2]);
    /// assert_eq!(x.conv1d_with(&weight, None, Conv1d::new().stride(2)).to_vec::<f32>()?, [3.0, 12.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn stride(mut self, stride: impl Into<PerAxis<N>>) -> Conv<N> {
        self.stride = stride.into().0;
        self
    }

    /// How many zeros there are beyond each edge.
    ///
    /// ```
    /// use lazuli::{Conv1d, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [1, 2]);
    /// let weight = Tensor::from_slice(&[1.0f32, 1.0], [1, 1, 2]);
    /// assert_eq!(x.conv1d_with(&weight, None, Conv1d::new().padding(1)).to_vec::<f32>()?, [1.0, 3.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn padding(mut self, padding: impl Into<PerAxis<N>>) -> Conv<N> {
        self.padding = Padding::Zeros(padding.into().0);
        self
    }

    /// As many zeros as give the result the input's extents; of an odd number, one more at the end. PyTorch's
    /// `padding='same'`: the stride must be 1.
    ///
    /// ```
    /// use lazuli::{Conv1d, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [1, 2]);
    /// let weight = Tensor::from_slice(&[1.0f32, 1.0], [1, 1, 2]);
    /// assert_eq!(x.conv1d_with(&weight, None, Conv1d::new().same()).to_vec::<f32>()?, [3.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn same(mut self) -> Conv<N> {
        self.padding = Padding::Same;
        self
    }

    /// The distance between neighbouring positions of one window.
    ///
    /// ```
    /// use lazuli::{Conv1d, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 4.0], [1, 3]);
    /// let weight = Tensor::from_slice(&[-1.0f32, 1.0], [1, 1, 2]);
    /// assert_eq!(x.conv1d_with(&weight, None, Conv1d::new().dilation(2)).to_vec::<f32>()?, [3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn dilation(mut self, dilation: impl Into<PerAxis<N>>) -> Conv<N> {
        self.dilation = dilation.into().0;
        self
    }

    /// How many groups of channels there are, each with results of its own: as many as channels for a depthwise one.
    ///
    /// ```
    /// use lazuli::{Conv1d, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
    /// let weight = Tensor::from_slice(&[10.0f32, 100.0], [2, 1, 1]);
    /// let y = x.conv1d_with(&weight, None, Conv1d::new().groups(2));
    /// assert_eq!(y.to_vec::<f32>()?, [10.0, 20.0, 300.0, 400.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn groups(mut self, groups: usize) -> Conv<N> {
        self.groups = groups;
        self
    }

    /// How many more elements the result of a transposed convolution has at the end: of the inputs that stride to one
    /// extent, it says which. Below the stride or the dilation; 0 for other convolutions.
    ///
    /// ```
    /// use lazuli::{Conv1d, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [1, 2]);
    /// let weight = Tensor::from_slice(&[1.0f32], [1, 1, 1]);
    /// let conv = Conv1d::new().stride(2);
    /// let spread = |conv| x.conv_transpose1d_with(&weight, None, conv).to_vec::<f32>();
    /// assert_eq!(spread(conv)?, [1.0, 0.0, 2.0]);
    /// assert_eq!(spread(conv.output_padding(1))?, [1.0, 0.0, 2.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn output_padding(mut self, more: impl Into<PerAxis<N>>) -> Conv<N> {
        self.output_padding = more.into().0;
        self
    }
}

impl<const N: usize> Conv<N> {
    /// Stride, padding and dilation of windows alone, which have no groups and no result.
    pub(crate) fn windows(&self, call: Call) -> Result<[[usize; N]; 3]> {
        match self.padding {
            Padding::Zeros(padding) if self.groups == 1 && self.output_padding == [0; N] => {
                Ok([self.stride, padding, self.dilation])
            }
            _ => {
                call.fail("windows have a stride, a padding in numbers and a dilation, and no other settings")
            }
        }
    }
}
