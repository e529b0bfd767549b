//! Convolutions, as cross-correlations: windows of the input, contracted with the weight.

mod correlation;
mod settings;
mod transposed;

use correlation::{Fitted, correlated, fitted, of_weight, with_bias};
use settings::Padding;
pub use settings::{Conv, Conv1d, Conv2d, Conv3d};
use transposed::transposed;

use crate::tensor::arguments::call::Call;
use crate::tensor::layer::pool::PerAxis;
use crate::tensor::product::matmul::beside_bias;
use crate::{Result, Tensor};

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
    /// Dtypes are promoted, that of the bias too; 16-bit floats are summed in `F32` and rounded once, after the bias; integers wrap.
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

fn convolved<const N: usize>(
    call: Call,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    conv: &Conv<N>,
) -> Result<Tensor> {
    let [x, weight] = &beside_bias([x, weight], bias)?;
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
    let conv = *conv;
    let sum = call.derived(&sum, &[&x, weight], move |g, all| {
        let (call, [_, x, weight]) = (Call::here("conv"), all) else { return Ok(Vec::new()) };
        let of_x = of_input(call, x, weight, g, (&border, &conv))?;
        Ok(vec![of_x, of_weight(call, x, &g.cast(x.node.dtype), weight, &border, &conv)?])
    });
    with_bias(call, sum, dtype, (is_batch, bias))
}

/// What reaches the input: the transposed convolution of what reaches the sums.
fn of_input<const N: usize>(
    call: Call,
    x: &Tensor,
    weight: &Tensor,
    sums: &Tensor,
    (border, conv): (&[(usize, usize); N], &Conv<N>),
) -> Result<Tensor> {
    let (shape, g) = (&x.node.shape, sums.cast(x.node.dtype));
    let mut own = Conv { padding: Padding::Zeros(border.map(|(before, _)| before)), ..*conv };
    let mut fits = true;
    for d in 0..N {
        let reach = conv.dilation[d] * (weight.node.shape[d + 2] - 1) + 1;
        let reached = (g.node.shape[d + 2] - 1) * conv.stride[d] + reach;
        let more = (shape[d + 2] + 2 * border[d].0).checked_sub(reached);
        fits &= more.is_some_and(|more| more == 0 || more < conv.stride[d].max(conv.dilation[d]));
        own.output_padding[d] = more.unwrap_or(0);
    }
    if fits {
        return Ok(transposed(call, &g, weight, None, &own)?.cast(x.node.dtype));
    }
    // Unequal borders: all that windows reach, and of that the input.
    let whole = Conv { padding: Padding::Zeros([0; N]), output_padding: [0; N], ..*conv };
    let back = transposed(call, &g, weight, None, &whole)?;
    let reached = back.known()?.0;
    let mut sides = vec![(0, 0); N + 2];
    for d in 0..N {
        let before = border[d].0 as isize;
        sides[d + 2] = (-before, shape[d + 2] as isize + before - reached[d + 2] as isize);
    }
    Ok(back.pad(&sides, 0).cast(x.node.dtype))
}
