//! Transposed convolutions by polyphase: the results at each place in a stride are a convolution with the weights that reach it.
//!
//! An input `i` and a weight `k` reach the result `stride * i + dilation * k`. With `g`, the greatest common divisor of stride and
//! dilation, every `stride / g`-th weight reaches the same place in a stride: these weights are a class. A class is a convolution of stride 1
//! and dilation `dilation / g`, and no zeros are multiplied.

use super::correlation::{Fitted, correlated, fitted, of_weight, with_bias};
use super::settings::{Conv, Padding};
use crate::tensor::arguments::call::Call;
use crate::tensor::layer::pool::gcd;
use crate::tensor::product::matmul::beside_bias;
use crate::{DType, Error, Result, Shape, Tensor};

/// Convolutions, at most, that a transposed one is taken apart into.
const MOST_PARTS: usize = 8;

/// How the results along one dimension are computed.
#[derive(Clone, Copy)]
struct Dimension {
    stride: usize,
    kernel: usize,
    /// Elements of the input, and how many results there are.
    extent: usize,
    count: usize,
    padding: usize,
    /// Between weights, and between the weights of a class as its convolution sees them.
    dilation: usize,
    own_dilation: usize,
    /// Classes, which are the first weights of each; and how many weights further the next one of a class is.
    classes: usize,
    step: usize,
    /// Whether each class has a convolution of its own. Else they are outputs of one, and reach places in the order of the classes.
    is_apart: bool,
}

pub(super) fn transposed<const N: usize>(
    call: Call,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    conv: &Conv<N>,
) -> Result<Tensor> {
    let [x, weight] = &beside_bias([x, weight], bias)?;
    let fitted = fitted(call, x, weight, conv, "[channels, outputs / groups, kernel…]")?;
    let (own, channels) = (&weight.node.shape, fitted.channels);
    if own[0] != channels * conv.groups {
        return call.fail(format!(
            "the weight {own} is for {} channels, the input {} has another number",
            own[0], fitted.x.node.shape
        ));
    }
    let (x, dimensions) = dimensions(call, &fitted, conv)?;
    let whole = weight.clone();
    let weight = weight.unflatten(0, [conv.groups, channels]).transpose(1, 2);
    let plain = Conv {
        stride: [1; N],
        padding: Padding::Zeros([0; N]),
        output_padding: [0; N],
        dilation: dimensions.map(|dimension| dimension.own_dilation),
        ..*conv
    };
    let outputs = conv.groups * own[1];
    let (mut sums, mut dtype) = (Vec::new(), x.node.dtype);
    for number in 0..dimensions.iter().map(Dimension::parts).product() {
        let classes = numbers_of(number, dimensions.map(|dimension| dimension.parts()));
        let (weight, border) = part(&dimensions, &classes, &weight)?;
        let x = x.pad(&border, 0.0);
        x.validity()?;
        let (sum, own_dtype): (Tensor, DType) = correlated(call, &x, &weight, &[(0, 0); N], &plain)?;
        let places: Shape =
            std::iter::once(outputs).chain(dimensions.map(|dimension| dimension.together())).collect();
        sums.push(sum.unflatten(1, &places));
        dtype = own_dtype;
    }
    let own = *conv;
    let result = in_order(&dimensions, sums)?;
    let sum = call.derived(&result, &[&fitted.x, &whole], move |g, all| {
        let (call, [_, x, weight]) = (Call::here("conv_transpose"), all) else { return Ok(Vec::new()) };
        let Padding::Zeros(padding) = own.padding else { return Ok(Vec::new()) };
        let border = padding.map(|padding| (padding, padding));
        let g = g.cast(x.node.dtype);
        let mut of_x = correlated(call, &g, weight, &border, &own)?.0;
        for d in 2..N + 2 {
            of_x = of_x.narrow(d as isize, 0, x.node.shape[d]);
        }
        Ok(vec![of_x.cast(x.node.dtype), of_weight(call, &g, x, weight, &border, &own)?])
    });
    with_bias(call, sum, dtype, (fitted.is_batch, bias))
}

/// The digits of a number, of which the last changes first.
fn numbers_of<const N: usize>(mut number: usize, bases: [usize; N]) -> [usize; N] {
    let mut digits = [0; N];
    for d in (0..N).rev() {
        digits[d] = number % bases[d];
        number /= bases[d];
    }
    digits
}

/// How each dimension is computed, of the input: it has zeros between its elements where classes would be too many.
fn dimensions<const N: usize>(
    call: Call,
    fitted: &Fitted<N>,
    conv: &Conv<N>,
) -> Result<(Tensor, [Dimension; N])> {
    let Padding::Zeros(padding) = conv.padding else {
        return call.fail("'same' is for convolutions that are not transposed");
    };
    let mut x = fitted.x.clone();
    let mut parts = 1usize;
    let mut all = Vec::new();
    for d in 0..N {
        let (axis, extent, kernel) = (d as isize + 2, x.node.shape[d + 2], fitted.kernel[d]);
        let (stride, dilation, more) = (conv.stride[d], conv.dilation[d], conv.output_padding[d]);
        if more >= stride.max(dilation) && more > 0 {
            return call.fail(format!(
                "the output padding {more} must be below the stride {stride} or the dilation"
            ));
        }
        let spread = extent.saturating_sub(1).saturating_mul(stride).saturating_add(1);
        let given = spread.saturating_add(dilation.saturating_mul(kernel - 1)).saturating_add(more);
        if extent == 0 || given <= padding[d].saturating_mul(2) {
            return call.fail(format!(
                "the padding {} leaves nothing of {given} elements along dimension {axis}; input {}",
                padding[d], x.node.shape
            ));
        }
        // Positions are signed.
        if given > isize::MAX as usize / 4 {
            return call.fail(format!("{given} elements along dimension {axis} are too many"));
        }
        // One element goes nowhere.
        let stride = if extent == 1 { stride.min(given) } else { stride };
        let mut own = Dimension::new(stride, dilation, kernel);
        (own.extent, own.padding, own.count) = (extent, padding[d], given - 2 * padding[d]);
        own.is_apart = !(own.is_in_order() && own.is_even());
        if parts.saturating_mul(own.parts()) > MOST_PARTS {
            own.is_apart = false;
            if !own.is_in_order() {
                let mut zeros = vec![(0, 0); x.node.shape.rank() + 1];
                zeros[d + 3] = (0, stride as isize - 1);
                x = x.unsqueeze(axis + 1).pad(&zeros, 0.0).flatten(axis..axis + 2).narrow(axis, 0, spread);
                x.validity()?;
                let (padding, count) = (own.padding, own.count);
                own = Dimension { extent: spread, padding, count, ..Dimension::new(1, dilation, kernel) };
            }
        }
        parts *= own.parts();
        all.push(own);
    }
    match <[Dimension; N]>::try_from(all) {
        Ok(all) => Ok((x, all)),
        Err(_) => call.fail("dimensions are missing"),
    }
}

/// The weight of one part, the other way round, and the border that its input needs. The weight has groups, outputs of a group,
/// channels of a group, and the kernel; the result the classes after the outputs.
fn part<const N: usize>(
    dimensions: &[Dimension; N],
    classes: &[usize; N],
    weight: &Tensor,
) -> Result<(Tensor, Vec<(isize, isize)>)> {
    let mut weight = weight.clone();
    let mut border = vec![(0, 0); 2];
    for (d, (dimension, &class)) in dimensions.iter().zip(classes).enumerate() {
        let (place, axis) = (2 + d as isize, 3 + 2 * d as isize);
        let length = dimension.length(class);
        if dimension.is_apart {
            weight = weight.slice_step(axis, class as isize, None, dimension.step as isize);
        } else if dimension.classes == dimension.step {
            let mut sides = vec![(0, 0); weight.node.shape.rank()];
            sides[axis as usize] = (0, (length * dimension.step - dimension.kernel) as isize);
            weight = weight.pad(&sides, 0.0);
        }
        // Classes go to the outputs; what remains is how many weights a class has.
        weight =
            weight.unflatten(axis, [length, dimension.together()]).movedim(axis + 1, place).flip(axis + 1);
        border.push(dimension.border(class));
    }
    let weight = weight.flatten(..2 + N as isize);
    weight.validity()?;
    Ok((weight, border))
}

/// The results, of the sums of each part: `[batch, outputs, classes…, positions…]`.
fn in_order<const N: usize>(dimensions: &[Dimension; N], mut sums: Vec<Tensor>) -> Result<Tensor> {
    for (d, dimension) in dimensions.iter().enumerate().rev() {
        // Later dimensions have no axis of classes any more.
        let (classes, positions) = (2 + d as isize, 3 + 2 * d as isize);
        let parts = sums.chunks(dimension.parts());
        sums = parts.map(|sums| dimension.in_order(sums, classes, positions)).collect();
    }
    match sums.pop() {
        Some(sum) => sum.validity().map(|()| sum),
        None => Err(Error::internal("conv_transpose", "there are no parts")),
    }
}

impl Dimension {
    fn new(stride: usize, dilation: usize, kernel: usize) -> Dimension {
        let common = gcd(stride, dilation);
        let step = stride / common;
        Dimension {
            stride,
            kernel,
            extent: 0,
            count: 0,
            padding: 0,
            dilation,
            own_dilation: dilation / common,
            classes: kernel.min(step),
            step,
            is_apart: false,
        }
    }

    /// Whether classes reach places in their order, in the same stride.
    fn is_in_order(&self) -> bool {
        self.dilation.saturating_mul(self.classes - 1) < self.stride
    }

    /// Whether classes have as many weights as each other.
    fn is_even(&self) -> bool {
        self.kernel <= self.step || self.kernel.is_multiple_of(self.step)
    }

    /// Convolutions, and the classes that are outputs of each.
    fn parts(&self) -> usize {
        if self.is_apart { self.classes } else { 1 }
    }

    fn together(&self) -> usize {
        if self.is_apart { 1 } else { self.classes }
    }

    /// How many weights a class has.
    fn length(&self, class: usize) -> usize {
        if self.is_apart {
            (self.kernel - class).div_ceil(self.step)
        } else {
            self.kernel.div_ceil(self.step)
        }
    }

    /// The strides that results are in: counted from the first result on for a class that is apart, else from where inputs are.
    fn strides(&self) -> (usize, usize) {
        match self.is_apart {
            true => (0, self.count.div_ceil(self.stride)),
            false => (self.padding / self.stride, (self.padding + self.count).div_ceil(self.stride)),
        }
    }

    /// The place in a stride that a class reaches which is apart, and how many strides after the input's.
    fn place(&self, class: usize) -> (usize, isize) {
        let at = (class * self.dilation) as isize - self.padding as isize;
        let stride = self.stride as isize;
        (at.rem_euclid(stride) as usize, at.div_euclid(stride))
    }

    /// Zeros before and after the input; less than none cut elements off.
    fn border(&self, class: usize) -> (isize, isize) {
        let carried = if self.is_apart { self.place(class).1 } else { 0 };
        let (first, end) = self.strides();
        let (extent, reach) = (self.extent as isize, ((self.length(class) - 1) * self.own_dilation) as isize);
        let (before, after) = (carried + reach - first as isize, end as isize - carried - extent);
        // Nothing of the input is reached.
        if before < -extent || after < -extent { (-extent, before + extent + after) } else { (before, after) }
    }

    /// Sums by class and position, one tensor for each part, as the results along this dimension.
    fn in_order(&self, sums: &[Tensor], classes: isize, positions: isize) -> Tensor {
        let places = if self.is_apart {
            let mut places = vec![None; self.stride];
            for (class, sum) in sums.iter().enumerate() {
                places[self.place(class).0] = Some(sum.squeeze(classes));
            }
            let zeros = sums[0].squeeze(classes).zeros_like();
            let places: Vec<Tensor> =
                places.into_iter().map(|sum| sum.unwrap_or_else(|| zeros.clone())).collect();
            Tensor::stack(&places, positions)
        } else {
            let sum = sums[0].movedim(classes, positions);
            let along = |axis: isize, after: usize| {
                let mut sides = vec![(0, 0); sums[0].node.shape.rank() + usize::from(axis > positions)];
                sides[axis as usize] = (0, after as isize);
                sides
            };
            let reached = self.dilation * (self.classes - 1) + 1;
            let spread = match self.classes {
                1 => sum,
                _ => sum
                    .unsqueeze(positions + 1)
                    .pad(&along(positions + 1, self.dilation - 1), 0.0)
                    .flatten(positions..positions + 2)
                    .narrow(positions, 0, reached),
            };
            spread.pad(&along(positions, self.stride - reached), 0.0)
        };
        // Places in a stride become one with the strides.
        let first = if self.is_apart { 0 } else { self.padding % self.stride };
        places.flatten(positions - 1..positions + 1).narrow(positions - 1, first, self.count)
    }
}
