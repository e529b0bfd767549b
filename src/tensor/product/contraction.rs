//! Contractions: sums of products over axes that operands share. Everything that multiplies matrices is one.
//!
//! A contraction is recorded as what it is: operands that broadcast, a product, and a sum. Nothing below recording tells
//! `matmul` from the same written by hand. On the 16-bit floats it is computed in `F32`; integers wrap.

use smallvec::SmallVec;

use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::{Operand, result_type};
use crate::{DType, Result, Shape, Tensor};

/// What an axis stands for: axes with the same label have the same positions.
pub(super) type Label = u32;

/// An operand, and what its axes stand for: each label at most once.
#[derive(Clone)]
pub(super) struct Factor {
    tensor: Tensor,
    labels: SmallVec<[Label; 8]>,
}

impl Factor {
    pub(super) fn new(tensor: &Tensor, labels: &[Label]) -> Factor {
        Factor { tensor: tensor.clone(), labels: labels.into() }
    }

    /// With the first positions of an axis alone.
    pub(super) fn narrowed(&self, label: Label, extent: usize) -> Factor {
        let axis = self.labels.iter().position(|&own| own == label);
        let tensor = axis.map_or(self.tensor.clone(), |axis| self.tensor.narrow(axis as isize, 0, extent));
        Factor { tensor, labels: self.labels.clone() }
    }

    fn has(&self, label: Label) -> bool {
        self.labels.contains(&label)
    }

    fn extent(&self, label: Label) -> usize {
        let axis = self.labels.iter().position(|&own| own == label);
        axis.map_or(1, |axis| self.tensor.node.shape[axis])
    }

    /// Without axes of one element, which broadcast, and summed over the axes that are not wanted.
    fn reduced(&self, wanted: impl Fn(Label) -> bool) -> Factor {
        let axes = |leaves: &dyn Fn(Label) -> bool| -> Vec<usize> {
            (0..self.labels.len()).filter(|&axis| leaves(self.labels[axis])).collect()
        };
        let is_unit = |label| self.extent(label) == 1;
        if self.labels.iter().all(|&label| wanted(label) && !is_unit(label)) {
            return self.clone();
        }
        let summed = axes(&|label| !is_unit(label) && !wanted(label));
        let mut tensor = self.tensor.clone();
        if !summed.is_empty() {
            tensor = tensor.sum_keepdim(summed).cast(self.tensor.node.dtype);
        }
        let labels = self.labels.iter().copied().filter(|&label| wanted(label) && !is_unit(label)).collect();
        let gone = axes(&|label| is_unit(label) || !wanted(label));
        Factor { tensor: tensor.squeeze(gone), labels }
    }

    /// With its axes in this order, and with one element along those that it does not have.
    fn arranged(&self, order: &[Label]) -> Tensor {
        if self.labels[..] == *order {
            return self.tensor.clone();
        }
        let axes: Vec<usize> =
            order.iter().filter_map(|label| self.labels.iter().position(|own| own == label)).collect();
        let shape: Shape = order.iter().map(|&label| self.extent(label)).collect();
        if axes.is_sorted() {
            return self.tensor.reshape(shape);
        }
        self.tensor.permute(axes).reshape(shape)
    }
}

/// The sum of the products of the factors over all labels that are not in the output, in the dtype of their arithmetic:
/// the output's axes are in its order. Extents of equal labels are equal, or 1 and broadcast. Also the dtype that the
/// factors promote to.
pub(super) fn contract(call: Call, factors: &[Factor], output: &[Label]) -> Result<(Tensor, DType)> {
    let operands: Vec<Operand> = factors.iter().map(|factor| Operand::from(&factor.tensor)).collect();
    let dtype = result_type(&operands)?;
    if dtype == DType::Bool {
        return call
            .fail("products of bool tensors have no sum; cast them first, such as with .cast(DType::I64)");
    }
    let extents: Shape = output.iter().map(|&label| extent(factors, label)).collect();
    call.needs_addressable(&extents)?;
    let mut left: Vec<Factor> = Vec::with_capacity(factors.len());
    for (number, factor) in factors.iter().enumerate() {
        let elsewhere =
            |label| factors.iter().enumerate().any(|(other, f)| other != number && f.extent(label) > 1);
        let tensor = factor.tensor.cast(dtype.compute());
        let factor = Factor { tensor, labels: factor.labels.clone() };
        left.push(factor.reduced(|label| output.contains(&label) || elsewhere(label)));
    }
    while let Some((first, second)) = cheapest(&left, output) {
        let b = left.remove(second);
        let a = left.remove(first);
        let kept = |label| output.contains(&label) || left.iter().any(|factor| factor.has(label));
        let order: Vec<Label> = match left.is_empty() {
            true => output.to_vec(),
            false => a.labels.iter().chain(&b.labels).copied().filter(|&label| kept(label)).collect(),
        };
        let product = pair(call, &a, &b, &without_repeats(order))?;
        left.insert(first, product);
    }
    let Some(last) = left.first() else { return call.fail("there is nothing to multiply") };
    Ok((last.arranged(output).broadcast_to(&extents), dtype))
}

fn extent(factors: &[Factor], label: Label) -> usize {
    let extents = factors.iter().filter(|factor| factor.has(label)).map(|factor| factor.extent(label));
    extents.reduce(|a, b| if a == 1 { b } else { a }).unwrap_or(1)
}

fn without_repeats(mut labels: Vec<Label>) -> Vec<Label> {
    let mut seen = SmallVec::<[Label; 8]>::new();
    labels.retain(|label| {
        !seen.contains(label) && {
            seen.push(*label);
            true
        }
    });
    labels
}

/// The two factors, by place, whose product takes the fewest multiplications; of equal ones the first.
fn cheapest(factors: &[Factor], output: &[Label]) -> Option<(usize, usize)> {
    if factors.len() == 2 {
        return Some((0, 1));
    }
    let mut best = None;
    for second in 1..factors.len() {
        for first in 0..second {
            let pair = [factors[first].clone(), factors[second].clone()];
            let labels = pair.iter().flat_map(|factor| factor.labels.iter().copied()).collect();
            let labels = without_repeats(labels);
            let cost = |labels: &mut dyn Iterator<Item = Label>| {
                labels.fold(1.0, |cost: f64, label| cost * extent(&pair, label) as f64)
            };
            let kept = |label: &Label| {
                let others =
                    factors.iter().enumerate().filter(|&(place, _)| place != first && place != second);
                output.contains(label) || others.into_iter().any(|(_, factor)| factor.has(*label))
            };
            let multiplications = cost(&mut labels.iter().copied());
            let result = cost(&mut labels.iter().copied().filter(kept));
            let cost = (multiplications, result);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, (first, second)));
            }
        }
    }
    best.map(|(_, pair)| pair)
}

/// The product of two, summed over what is not kept; its axes are in the order of what is kept.
fn pair(call: Call, a: &Factor, b: &Factor, kept: &[Label]) -> Result<Factor> {
    let dtype = a.tensor.node.dtype;
    let of_both = |label: &Label| !kept.contains(label) && b.has(*label);
    let summed: Vec<Label> = a.labels.iter().copied().filter(of_both).collect();
    let present = kept.iter().copied().filter(|&label| a.has(label) || b.has(label));
    let mut order: Vec<Label> = present.collect();
    // What neighbours along the innermost axis share is read once for them: sums go down columns where an operand has
    // the result's innermost axis innermost, and along rows elsewhere.
    let innermost = order.last().copied();
    let columns =
        innermost.is_some_and(|last| [a, b].iter().any(|factor| factor.labels.last() == Some(&last)));
    let place = if columns { order.len() - 1 } else { order.len() };
    order.splice(place..place, summed.iter().copied());
    let product = a.arranged(&order) * b.arranged(&order);
    product.validity()?;
    let axes: Vec<usize> = (place..place + summed.len()).collect();
    let tensor = if summed.is_empty() { product } else { product.sum(axes).cast(dtype) };
    tensor.validity()?;
    call.needs_addressable(&tensor.node.shape)?;
    order.drain(place..place + summed.len());
    Ok(Factor { tensor, labels: order.into() })
}
