//! The sum that all convolutions are: windows of the input, contracted with the weight.

use super::super::contraction::{Factor, Label, contract};
use super::super::matmul::biased;
use super::settings::Conv;
use crate::graph::infer::window_count;
use crate::tensor::arguments::call::Call;
use crate::{DType, Result, Shape, Tensor};

/// What fits: the input with a batch, whether that is of the user's, and the groups' outputs.
pub(super) struct Fitted<const N: usize> {
    pub(super) x: Tensor,
    pub(super) is_batch: bool,
    /// Channels of the input in a group.
    pub(super) channels: usize,
    pub(super) kernel: [usize; N],
}

pub(super) fn fitted<const N: usize>(
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

// Labels of a convolution's axes.
const BATCH: Label = 0;
const GROUPS: Label = 1;
/// Of a group.
const OUTPUTS: Label = 2;
/// Of a group.
const CHANNELS: Label = 3;
/// One for each dimension, from this on.
const POSITIONS: Label = 16;
/// In the window; one for each dimension, from this on.
const PLACES: Label = 32;

/// The labels of all dimensions, of which this is the first.
fn each<const N: usize>(first: Label) -> impl Iterator<Item = Label> {
    (0..N as Label).map(move |d| first + d)
}

/// The windows of the padded input, `[batch, groups × channels, …]`, contracted with the weight.
pub(super) fn correlated<const N: usize>(
    call: Call,
    x: &Tensor,
    weight: &Tensor,
    border: &[(usize, usize); N],
    conv: &Conv<N>,
) -> Result<(Tensor, DType)> {
    let own = &weight.node.shape;
    let windows = windows(call, x, own, border, conv)?;
    let of_weight: Vec<Label> = [GROUPS, OUTPUTS, CHANNELS].into_iter().chain(each::<N>(PLACES)).collect();
    let output: Vec<Label> = [BATCH, GROUPS, OUTPUTS].into_iter().chain(each::<N>(POSITIONS)).collect();
    let weight = weight.unflatten(0, [conv.groups, own[0] / conv.groups]);
    let (sum, dtype) = contract(call, &[windows, Factor::new(&weight, &of_weight)], &output)?;
    Ok((sum.flatten(1..3), dtype))
}

/// What reaches the weight, of this shape, of an input and of what reaches the sums, or the other way round of a transposed
/// convolution.
pub(super) fn of_weight<const N: usize>(
    call: Call,
    x: &Tensor,
    sums: &Tensor,
    weight: &Tensor,
    border: &[(usize, usize); N],
    conv: &Conv<N>,
) -> Result<Tensor> {
    let own = &weight.node.shape;
    let mut windows = windows(call, x, own, border, conv)?;
    for d in 0..N {
        windows = windows.narrowed(POSITIONS + d as Label, sums.node.shape[d + 2]);
    }
    let sums = sums.unflatten(1, [conv.groups, own[0] / conv.groups]);
    let of_sums: Vec<Label> = [BATCH, GROUPS, OUTPUTS].into_iter().chain(each::<N>(POSITIONS)).collect();
    // Outputs last: they are many, and places few.
    let output: Vec<Label> =
        [GROUPS, CHANNELS].into_iter().chain(each::<N>(PLACES)).chain([OUTPUTS]).collect();
    let (sum, _) = contract(call, &[windows, Factor::new(&sums, &of_sums)], &output)?;
    Ok(sum.movedim(-1, 1).flatten(..2).cast(weight.node.dtype))
}

/// The windows of the padded input.
fn windows<const N: usize>(
    call: Call,
    x: &Tensor,
    own: &Shape,
    border: &[(usize, usize); N],
    conv: &Conv<N>,
) -> Result<Factor> {
    let shape = &x.node.shape;
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
    let labels: Vec<Label> =
        [BATCH, GROUPS, CHANNELS].into_iter().chain(each::<N>(POSITIONS)).chain(each::<N>(PLACES)).collect();
    Ok(Factor::new(&windows, &labels))
}

/// The sums of a convolution, `[batch, outputs, …]`, as its result.
pub(super) fn with_bias(
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
