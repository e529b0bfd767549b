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

/// The windows of the padded input, `[batch, groups × channels, …]`, contracted with the weight.
pub(super) fn correlated<const N: usize>(
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
