//! Transposed convolutions by polyphase: the results at each place in a stride are a convolution with the weights at that place.

use super::correlation::{Fitted, correlated, fitted, of_weight, with_bias};
use super::settings::{Conv, Padding};
use crate::tensor::arguments::call::Call;
use crate::tensor::product::matmul::beside_bias;
use crate::{DType, Result, Shape, Tensor};

/// Convolutions, at most, that a transposed one is taken apart into.
const MOST_PARTS: usize = 8;

/// How the results of each dimension are computed. Where the stride divides the kernel, the weights at all places in a stride are as
/// long as each other, and one convolution has outputs for each; else the places are parts, or, if these were many, there are zeros
/// between the elements.
struct Polyphase<const N: usize> {
    /// Places in a stride that are outputs of one convolution.
    phases: [usize; N],
    /// Places in a stride that have a convolution each.
    parts: [usize; N],
    /// Zeros before and after the input; before the weights at a place are cut out, less as many as these.
    border: [(isize, isize); N],
    /// The first of the results, and how many there are.
    results: [(usize, usize); N],
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
    let (x, polyphase) = Polyphase::new(call, &fitted, conv)?;
    let whole = weight.clone();
    let weight = weight.unflatten(0, [conv.groups, channels]).transpose(1, 2);
    let plain = Conv { stride: [1; N], padding: Padding::Zeros([0; N]), output_padding: [0; N], ..*conv };
    let outputs = conv.groups * own[1];
    let part = |number: usize| -> Result<(Tensor, DType)> {
        let (weight, border) = polyphase.part(number, &weight)?;
        let x = x.pad(&border, 0.0);
        x.validity()?;
        let (sum, dtype) = correlated(call, &x, &weight, &[(0, 0); N], &plain)?;
        let places: Shape = std::iter::once(outputs).chain(polyphase.phases).collect();
        Ok((sum.unflatten(1, &places), dtype))
    };
    let (first, dtype) = part(0)?;
    let mut sums = vec![first];
    for number in 1..polyphase.parts.iter().product() {
        sums.push(part(number)?.0);
    }
    let own = *conv;
    let sum = call.derived(&polyphase.interleaved(&sums), &[&fitted.x, &whole], move |g, all| {
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

impl<const N: usize> Polyphase<N> {
    /// With the input, which has zeros between its elements along some dimensions.
    fn new(call: Call, fitted: &Fitted<N>, conv: &Conv<N>) -> Result<(Tensor, Polyphase<N>)> {
        let Padding::Zeros(padding) = conv.padding else {
            return call.fail("'same' is for convolutions that are not transposed");
        };
        let mut x = fitted.x.clone();
        let mut all = Polyphase { phases: [1; N], parts: [1; N], border: [(0, 0); N], results: [(0, 0); N] };
        for d in 0..N {
            let (axis, extent, kernel) = (d as isize + 2, x.node.shape[d + 2], fitted.kernel[d]);
            let (stride, more) = (conv.stride[d], conv.output_padding[d]);
            if more >= stride.max(conv.dilation[d]) && more > 0 {
                return call.fail(format!(
                    "the output padding {more} must be below the stride {stride} or the dilation"
                ));
            }
            let reach = conv.dilation[d].saturating_mul(kernel - 1);
            let spread = extent.saturating_sub(1).saturating_mul(stride).saturating_add(1);
            let given = spread.saturating_add(reach).saturating_add(more);
            if extent == 0 || given <= padding[d].saturating_mul(2) {
                return call.fail(format!(
                    "the padding {} leaves nothing of {given} elements along dimension {axis}; input {}",
                    padding[d], x.node.shape
                ));
            }
            let count = given - 2 * padding[d];
            let is_even = kernel.is_multiple_of(stride);
            let is_few = || {
                let parts = all.parts.iter().fold(stride, |product, &own| product.saturating_mul(own));
                kernel >= stride && parts <= MOST_PARTS
            };
            if stride > 1 && conv.dilation[d] == 1 && (is_even || is_few()) {
                *if is_even { &mut all.phases[d] } else { &mut all.parts[d] } = stride;
                let (first, end) = (padding[d] / stride, (padding[d] + count).div_ceil(stride));
                all.border[d] = (-1 - first as isize, end as isize - extent as isize);
                all.results[d] = (padding[d] % stride, count);
                continue;
            }
            all.results[d] = (0, count);
            if stride > 1 {
                let mut zeros = vec![(0, 0); x.node.shape.rank() + 1];
                zeros[d + 3] = (0, stride as isize - 1);
                x = x.unsqueeze(axis + 1).pad(&zeros, 0.0).flatten(axis..axis + 2).narrow(axis, 0, spread);
                x.validity()?;
            }
            all.border[d] =
                (reach as isize - padding[d] as isize, (reach + more) as isize - padding[d] as isize);
        }
        Ok((x, all))
    }

    /// The weight of one part, the other way round, and the border that its input needs. The weight has groups, outputs of a group,
    /// places in the strides, channels of a group, and how many strides.
    fn part(&self, number: usize, weight: &Tensor) -> Result<(Tensor, Vec<(isize, isize)>)> {
        let (mut weight, mut rest) = (weight.clone(), number);
        for d in (0..N).rev().filter(|&d| self.parts[d] > 1) {
            let (from, stride) = ((rest % self.parts[d]) as isize, self.parts[d] as isize);
            weight = weight.slice_step(3 + d as isize, from, None, stride);
            rest /= self.parts[d];
        }
        let mut full = vec![(0, 0); 2];
        for d in 0..N {
            let (place, strides) = (2 + d as isize, 4 + 2 * d as isize);
            let length = weight.known()?.0[3 + 2 * d] / self.phases[d];
            weight =
                weight.unflatten(strides - 1, [length, self.phases[d]]).movedim(strides, place).flip(strides);
            let (before, after) = self.border[d];
            let is_polyphase = self.phases[d] * self.parts[d] > 1;
            full.push((if is_polyphase { before + length as isize } else { before }, after));
        }
        let weight = weight.flatten(..2 + N as isize);
        weight.validity()?;
        Ok((weight, full))
    }

    /// The results in their order, of the sums of each part.
    fn interleaved(&self, sums: &[Tensor]) -> Tensor {
        let sum = if let [sum] = sums { sum.unsqueeze(2) } else { Tensor::stack(sums, 2) };
        let mut sum = sum.unflatten(2, self.parts);
        for d in 0..N as isize {
            // Of a dimension's parts and phases there is one.
            sum = sum.movedim(2 + N as isize, 3 + d).flatten(2 + d..4 + d);
        }
        for (first, count) in self.results {
            // The places of this dimension go behind its positions, and become one with them.
            let position = 1 + N as isize;
            sum = sum.movedim(2, position + 1).flatten(position..position + 2).narrow(position, first, count);
        }
        sum
    }
}
