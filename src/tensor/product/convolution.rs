//! Convolutions, as cross-correlations: windows of the input, contracted with the weight.

use super::contraction::{Factor, Label, contract};
use super::matmul::biased;
use crate::graph::infer::window_count;
use crate::tensor::arguments::call::Call;
use crate::tensor::layer::pool::PerAxis;
use crate::{DType, Result, Shape, Tensor};

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
    stride: [usize; N],
    padding: Padding<N>,
    dilation: [usize; N],
    groups: usize,
    output_padding: [usize; N],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Padding<const N: usize> {
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

macro_rules! conv_methods {
    ($($(#[$meta:meta])* $name:ident, $name_with:ident = $conv:ident, $n:literal, $example:literal;)*) => {
        impl Tensor {
            $(
                $(#[$meta])*
                #[track_caller]
                pub fn $name(
                    &self,
                    weight: impl AsRef<Tensor>,
                    bias: Option<&Tensor>,
                    stride: impl Into<PerAxis<$n>>,
                    padding: impl Into<PerAxis<$n>>,
                ) -> Tensor {
                    let weight = weight.as_ref();
                    let call = Call::here(stringify!($name));
                    let settings = Conv::new().stride(stride).padding(padding);
                    call.composed(|| $conv(call, self, weight, bias, &settings))
                }

                #[doc = concat!(
                    "[`Tensor::", stringify!($name), "`] with dilation, groups and more.\n\n",
                    "```\n",
                    "use lazuli::{Conv, Tensor};\n",
                    $example,
                    "let y = x.", stringify!($name_with), "(&weight, None, Conv::new().dilation(2));\n",
                    "assert!(y.shape()?.elements() > 0);\n",
                    "# Ok::<(), lazuli::Error>(())\n",
                    "```"
                )]
                #[track_caller]
                pub fn $name_with(&self, weight: impl AsRef<Tensor>, bias: Option<&Tensor>, conv: Conv<$n>) -> Tensor {
                    let weight = weight.as_ref();
                    let call = Call::here(stringify!($name_with));
                    call.composed(|| $conv(call, self, weight, bias, &conv))
                }
            )*
        }
    };
}

conv_methods! {
    /// The convolution of the last dimension; see [`Tensor::conv2d`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 4.0, 8.0], [1, 1, 4]);
    /// let weight = Tensor::from_slice(&[1.0f32, 1.0, 1.0], [1, 1, 3]);
    /// assert_eq!(x.conv1d(&weight, None, 1, 1).to_vec::<f32>()?, [3.0, 7.0, 14.0, 12.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    conv1d, conv1d_with = convolved, 1,
        "let (x, weight) = (Tensor::rand([1, 2, 9], 1), Tensor::rand([3, 2, 3], 2));\n";
    /// Sums of the elements of all windows of the last two dimensions, each times its weight; windows begin `stride`
    /// apart, and the input is surrounded by `padding` zeros. From images `[batch, channels, height, width]`, or one
    /// without a batch, and a weight `[outputs, channels, height, width]`, `[batch, outputs, …]`, plus a bias for each
    /// output. As in all such libraries, the weight is not flipped. Dilation, groups and more are settings of
    /// [`Tensor::conv2d_with`], which takes a [`Conv2d`](crate::Conv2d) in place of stride and padding.
    ///
    /// Dtypes are promoted; 16-bit floats are summed in `F32` and rounded once, after the bias; integers wrap.
    ///
    /// Invalid for bools, and for a weight or a bias that does not fit the input.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::arange(0, 9, 1).cast(DType::F32).reshape([1, 1, 3, 3]);
    /// let weight = Tensor::ones([1, 1, 2, 2], DType::F32);
    /// assert_eq!(x.conv2d(&weight, None, 1, 0).to_vec::<f32>()?, [8.0, 12.0, 20.0, 24.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    conv2d, conv2d_with = convolved, 2,
        "let (x, weight) = (Tensor::rand([1, 2, 9, 9], 1), Tensor::rand([3, 2, 3, 3], 2));\n";
    /// The convolution of the last three dimensions; see [`Tensor::conv2d`].
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let (x, weight) = (Tensor::ones([1, 1, 2, 2, 2], DType::F32), Tensor::ones([1, 1, 2, 2, 2], DType::F32));
    /// assert_eq!(x.conv3d(&weight, None, 1, 0).to_vec::<f32>()?, [8.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    conv3d, conv3d_with = convolved, 3,
        "let (x, weight) = (Tensor::rand([1, 2, 5, 5, 5], 1), Tensor::rand([3, 2, 2, 2, 2], 2));\n";
    /// The transposed convolution of the last dimension; see [`Tensor::conv_transpose2d`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [1, 1, 2]);
    /// let weight = Tensor::from_slice(&[1.0f32, 10.0, 100.0], [1, 1, 3]);
    /// assert_eq!(x.conv_transpose1d(&weight, None, 2, 0).to_vec::<f32>()?, [1.0, 10.0, 102.0, 20.0, 200.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    conv_transpose1d, conv_transpose1d_with = transposed, 1,
        "let (x, weight) = (Tensor::rand([1, 2, 9], 1), Tensor::rand([2, 3, 3], 2));\n";
    /// What a convolution goes back by: each element of the input is added to the window that it is the sum of, times the
    /// weight, `[channels, outputs, height, width]`. `padding` elements are cut off at each edge.
    ///
    /// Dtypes and errors are those of [`Tensor::conv2d`].
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [1, 1, 1, 2]);
    /// let weight = Tensor::ones([1, 1, 1, 2], DType::F32);
    /// assert_eq!(x.conv_transpose2d(&weight, None, 1, 0).to_vec::<f32>()?, [1.0, 3.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    conv_transpose2d, conv_transpose2d_with = transposed, 2,
        "let (x, weight) = (Tensor::rand([1, 2, 9, 9], 1), Tensor::rand([2, 3, 3, 3], 2));\n";
    /// The transposed convolution of the last three dimensions; see [`Tensor::conv_transpose2d`].
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let (x, weight) = (Tensor::ones([1, 1, 2, 2, 2], DType::F32), Tensor::ones([1, 1, 2, 2, 2], DType::F32));
    /// assert_eq!(x.conv_transpose3d(&weight, None, 2, 0).shape()?, Shape::from([1, 1, 4, 4, 4]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    conv_transpose3d, conv_transpose3d_with = transposed, 3,
        "let (x, weight) = (Tensor::rand([1, 2, 5, 5, 5], 1), Tensor::rand([2, 3, 2, 2, 2], 2));\n";
}

/// What fits: the input with a batch, whether that is of the user's, and the groups' outputs.
struct Fitted<const N: usize> {
    x: Tensor,
    is_batch: bool,
    /// Channels of the input in a group.
    channels: usize,
    kernel: [usize; N],
}

fn fitted<const N: usize>(
    call: Call,
    x: &Tensor,
    weight: &Tensor,
    conv: &Conv<N>,
    form: &str,
) -> Result<Fitted<N>> {
    let ((shape, _), (own, _)) = (x.known()?, weight.known()?);
    let is_batch = shape.rank() == N + 2;
    if !is_batch && shape.rank() != N + 1 || own.rank() != N + 2 {
        return call.fail(format!(
            "needs [batch, channels] or [channels] and {N} more dimensions, and a weight {form}, got shapes {shape} and {own}"
        ));
    }
    if conv.groups == 0 || conv.stride.contains(&0) || conv.dilation.contains(&0) {
        return call.fail(format!(
            "groups, stride and dilation must be at least 1, got {}, {:?}, {:?}",
            conv.groups, conv.stride, conv.dilation
        ));
    }
    let channels = shape[shape.rank() - N - 1];
    if channels % conv.groups != 0 || own[0] % conv.groups != 0 {
        return call.fail(format!(
            "the {channels} channels of the input and the {} of the weight must be multiples of the {} groups",
            own[0], conv.groups
        ));
    }
    let mut kernel = [0; N];
    kernel.copy_from_slice(&own[2..]);
    if kernel.contains(&0) {
        return call.fail(format!("the weight {own} has an empty kernel"));
    }
    let x = if is_batch { x.clone() } else { x.unsqueeze(0) };
    Ok(Fitted { x, is_batch, channels: channels / conv.groups, kernel })
}

fn convolved<const N: usize>(
    call: Call,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    conv: &Conv<N>,
) -> Result<Tensor> {
    let Fitted { x, is_batch, channels, kernel } =
        fitted(call, x, weight, conv, "[outputs, channels / groups, kernel…]")?;
    if conv.output_padding != [0; N] {
        return call.fail("only transposed convolutions have an output padding");
    }
    let own = &weight.node.shape;
    if own[1] != channels {
        return call.fail(format!(
            "the weight {own} is for {} channels a group, the input {} has {channels}",
            own[1], x.node.shape
        ));
    }
    let mut border = [(0, 0); N];
    for d in 0..N {
        let reach = conv.dilation[d].saturating_mul(kernel[d] - 1);
        border[d] = match conv.padding {
            Padding::Zeros(padding) => (padding[d], padding[d]),
            Padding::Same if conv.stride[d] == 1 => (reach / 2, reach - reach / 2),
            Padding::Same => return call.fail(format!("'same' needs a stride of 1, got {:?}", conv.stride)),
        };
    }
    let (sum, dtype) = correlated(call, &x, weight, &border, conv)?;
    with_bias(call, sum, dtype, (is_batch, bias))
}

/// Convolutions, at most, that a transposed one is taken apart into.
const MOST_PARTS: usize = 8;

fn transposed<const N: usize>(
    call: Call,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    conv: &Conv<N>,
) -> Result<Tensor> {
    let Fitted { x, is_batch, channels, kernel } =
        fitted(call, x, weight, conv, "[channels, outputs / groups, kernel…]")?;
    let own = weight.node.shape.clone();
    if own[0] != channels * conv.groups {
        return call.fail(format!(
            "the weight {own} is for {} channels, the input {} has another number",
            own[0], x.node.shape
        ));
    }
    let Padding::Zeros(padding) = conv.padding else {
        return call.fail("'same' is for convolutions that are not transposed");
    };
    // Polyphase: the results at each place in a stride are a convolution with the weights at that place. Where a stride divides
    // the kernel, these are as long as each other, and one convolution with more outputs; else they are parts, or if these
    // were many, there are zeros between the elements. The weight goes the other way round.
    let mut x = x;
    let mut border = [(0, 0); N];
    let (mut phases, mut parts) = ([1; N], [1; N]);
    // The first of the results, and how many there are.
    let mut results = [(0, 0); N];
    for d in 0..N {
        let (axis, extent) = (d as isize + 2, x.node.shape[d + 2]);
        let (stride, more) = (conv.stride[d], conv.output_padding[d]);
        if more >= stride.max(conv.dilation[d]) && more > 0 {
            return call.fail(format!(
                "the output padding {more} must be below the stride {stride} or the dilation"
            ));
        }
        let reach = conv.dilation[d].saturating_mul(kernel[d] - 1);
        let spread = extent.saturating_sub(1).saturating_mul(stride).saturating_add(1);
        let given = spread.saturating_add(reach).saturating_add(more);
        if extent == 0 || given <= padding[d].saturating_mul(2) {
            return call.fail(format!(
                "the padding {} leaves nothing of {given} elements along dimension {axis}; input {}",
                padding[d], x.node.shape
            ));
        }
        let count = given - 2 * padding[d];
        let is_even = kernel[d].is_multiple_of(stride);
        let is_few = || {
            kernel[d] >= stride
                && parts.iter().fold(stride, |all, &own| all.saturating_mul(own)) <= MOST_PARTS
        };
        if stride > 1 && conv.dilation[d] == 1 && (is_even || is_few()) {
            *if is_even { &mut phases[d] } else { &mut parts[d] } = stride;
            let (first, end) = (padding[d] / stride, (padding[d] + count).div_ceil(stride));
            // Before the first, as many as the weights at a place, which are not known yet, less one.
            border[d] = (-1 - first as isize, end as isize - extent as isize);
            results[d] = (padding[d] % stride, count);
            continue;
        }
        results[d] = (0, count);
        if stride > 1 {
            let mut zeros = vec![(0, 0); x.node.shape.rank() + 1];
            zeros[d + 3] = (0, stride as isize - 1);
            x = x.unsqueeze(axis + 1).pad(&zeros, 0.0).flatten(axis..axis + 2).narrow(axis, 0, spread);
            x.validity()?;
        }
        border[d] = (reach as isize - padding[d] as isize, (reach + more) as isize - padding[d] as isize);
    }
    let weight = weight.unflatten(0, [conv.groups, channels]).transpose(1, 2);
    let plain = Conv { stride: [1; N], padding: Padding::Zeros([0; N]), output_padding: [0; N], ..*conv };
    let part = |number: usize| -> Result<(Tensor, DType)> {
        let (mut weight, mut full) = (weight.clone(), vec![(0, 0); 2]);
        let mut rest = number;
        for d in (0..N).rev().filter(|&d| parts[d] > 1) {
            let (from, stride) = ((rest % parts[d]) as isize, parts[d] as isize);
            weight = weight.slice_step(3 + d as isize, from, None, stride);
            rest /= parts[d];
        }
        // Groups, outputs of a group, places in the strides, channels of a group, and how many strides.
        for d in 0..N {
            let (place, strides) = (2 + d as isize, 4 + 2 * d as isize);
            let length = weight.known()?.0[3 + 2 * d] / phases[d];
            weight = weight.unflatten(strides - 1, [length, phases[d]]).movedim(strides, place).flip(strides);
            let (before, after) = border[d];
            full.push((if phases[d] * parts[d] > 1 { before + length as isize } else { before }, after));
        }
        let (x, weight) = (x.pad(&full, 0.0), weight.flatten(..2 + N as isize));
        x.validity()?;
        weight.validity()?;
        let (sum, dtype) = correlated(call, &x, &weight, &[(0, 0); N], &plain)?;
        let places: Vec<usize> = std::iter::once(conv.groups * own[1]).chain(phases).collect();
        Ok((sum.unflatten(1, places), dtype))
    };
    let (first, dtype) = part(0)?;
    let mut sums = vec![first];
    for number in 1..parts.iter().product() {
        sums.push(part(number)?.0);
    }
    let sum = if let [sum] = &sums[..] { sum.unsqueeze(2) } else { Tensor::stack(&sums, 2) };
    let mut sum = sum.unflatten(2, parts);
    for d in 0..N as isize {
        // Of a dimension's parts and phases there is one.
        sum = sum.movedim(2 + N as isize, 3 + d).flatten(2 + d..4 + d);
    }
    for (first, count) in results {
        // The places of this dimension go behind its positions, and become one with them.
        let position = 1 + N as isize;
        sum = sum.movedim(2, position + 1).flatten(position..position + 2).narrow(position, first, count);
    }
    with_bias(call, sum, dtype, (is_batch, bias))
}

/// The windows of the padded input, `[batch, groups × channels, …]`, contracted with the weight.
fn correlated<const N: usize>(
    call: Call,
    x: &Tensor,
    weight: &Tensor,
    border: &[(usize, usize); N],
    conv: &Conv<N>,
) -> Result<(Tensor, DType)> {
    let (shape, own) = (&x.node.shape, &weight.node.shape);
    let mut windows = x.unflatten(1, [conv.groups, own[1]]);
    if border.iter().any(|&sides| sides != (0, 0)) {
        let mut sides = vec![(0, 0); 3];
        sides.extend(border);
        windows = windows.pad(&sides, 0.0);
    }
    for d in 0..N {
        let padded = shape[d + 2].saturating_add(border[d].0).saturating_add(border[d].1);
        if window_count(padded, own[d + 2], conv.stride[d], conv.dilation[d]).is_none() {
            return call.fail(format!(
                "the kernel of the weight {own} with dilation {:?} exceeds the padded input {shape}, padding {border:?}",
                conv.dilation
            ));
        }
        windows = windows.window(d as isize + 3, own[d + 2], conv.stride[d], conv.dilation[d]);
    }
    windows.validity()?;
    // Labels: batch, groups, outputs of a group, channels of a group, positions, and places in the window.
    let (positions, places) = (16, 32);
    let each = |first: Label| (0..N as Label).map(move |d| first + d);
    let of_windows: Vec<Label> = [0, 1, 3].into_iter().chain(each(positions)).chain(each(places)).collect();
    let of_weight: Vec<Label> = [1, 2, 3].into_iter().chain(each(places)).collect();
    let output: Vec<Label> = [0, 1, 2].into_iter().chain(each(positions)).collect();
    let outputs = own[0];
    let weight = weight.unflatten(0, [conv.groups, outputs / conv.groups]);
    let factors = [Factor::new(&windows, &of_windows), Factor::new(&weight, &of_weight)];
    let (sum, dtype) = contract(call, &factors, &output)?;
    Ok((sum.flatten(1..3), dtype))
}

/// The sums of a convolution, `[batch, outputs, …]`, as its result.
fn with_bias(
    call: Call,
    sum: Tensor,
    dtype: DType,
    (is_batch, bias): (bool, Option<&Tensor>),
) -> Result<Tensor> {
    let outputs = sum.known()?.0[1];
    let dimensions = sum.node.shape.rank() - 2;
    let sum = if is_batch { sum } else { sum.squeeze(0) };
    sum.validity()?;
    let Some(bias) = bias else { return biased(call, sum, dtype, None) };
    let (given, _) = bias.known()?;
    if *given != Shape::from([outputs]) {
        return call.fail(format!("the bias must have {outputs} elements, got shape {given}"));
    }
    let beside: Shape = std::iter::once(outputs).chain(std::iter::repeat_n(1, dimensions)).collect();
    biased(call, sum, dtype, Some(&bias.reshape(&beside)))
}
