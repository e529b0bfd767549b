//! Einstein's notation.

use std::borrow::Borrow;

use super::contraction::{Factor, Label, contract};
use crate::tensor::arguments::call::Call;
use crate::tensor::view::join::borrowed;
use crate::{Result, Tensor};

/// Labels of what `...` stands for, counted from its last axis; letters are below.
const ELLIPSIS: Label = 256;

impl Tensor {
    /// Sums of products, by naming axes: `"ij,jk->ik"` multiplies matrices. A letter names an axis of each operand that
    /// has it, all with the same extent or with 1; what the result does not have is summed. A letter that an operand has
    /// twice is its diagonal. `...` is any number of axes, which broadcast. Without `->`, the result has the letters that
    /// occur once, in alphabetical order (upper case first), after those of `...`. Spaces mean nothing.
    ///
    /// Dtypes are promoted; 16-bit floats are summed in `F32` and rounded once, integers wrap; one operand alone is summed as
    /// by [`Tensor::sum`]. Several operands are
    /// multiplied two by two, those first whose product takes the fewest multiplications.
    ///
    /// Invalid for bools, and if the equation does not fit the operands.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let a = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
    /// let b = Tensor::from_slice(&[10.0f32, 1.0], [2]);
    /// assert_eq!(Tensor::einsum("ij,j->i", &[&a, &b]).to_vec::<f32>()?, [12.0, 34.0]);
    /// assert_eq!(Tensor::einsum("ii", &[&a]).item::<f32>()?, 5.0); // the trace
    /// assert_eq!(Tensor::einsum("ij->ji", &[&a]).to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn einsum<T: Borrow<Tensor>>(equation: &str, operands: impl AsRef<[T]>) -> Tensor {
        let operands = operands.as_ref();
        let call = Call::here("einsum");
        call.composed(|| einsum(call, equation, &borrowed(operands)))
    }
}

fn einsum(call: Call, equation: &str, operands: &[&Tensor]) -> Result<Tensor> {
    let terms: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = match terms.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (terms.as_str(), None),
    };
    let inputs: Vec<&str> = inputs.split(',').collect();
    if inputs.len() != operands.len() {
        return call.fail(format!(
            "the equation {equation:?} has {} operands, got {} tensors",
            inputs.len(),
            operands.len()
        ));
    }
    let mut factors = Vec::with_capacity(operands.len());
    let mut all: Vec<Label> = Vec::new();
    for (term, &tensor) in inputs.iter().zip(operands) {
        let (shape, _) = tensor.known()?;
        let labels = labels(call, equation, term, shape.rank(), &shape.to_string())?;
        all.extend(&labels);
        factors.push(without_diagonals(call, equation, tensor, labels)?);
    }
    same_extents(call, equation, &factors)?;
    let ellipsis = all.iter().filter(|&&label| label >= ELLIPSIS).max().map_or(0, |most| most + 1 - ELLIPSIS);
    let output = match output {
        Some(term) => {
            let rank = term.chars().filter(char::is_ascii_alphabetic).count() + ellipsis as usize;
            let has_ellipsis = term.contains('.');
            let rank = if has_ellipsis { rank } else { rank - ellipsis as usize };
            labels(call, equation, term, rank, "the result")?
        }
        None => {
            let once =
                |&label: &Label| label < ELLIPSIS && all.iter().filter(|&&other| other == label).count() == 1;
            let mut letters: Vec<Label> = all.iter().copied().filter(once).collect();
            letters.sort_unstable();
            (0..ellipsis).rev().map(|back| ELLIPSIS + back).chain(letters).collect()
        }
    };
    for (place, label) in output.iter().enumerate() {
        if output[..place].contains(label) {
            return call.fail(format!("the result of {equation:?} has {} twice", name(*label)));
        }
        if *label < ELLIPSIS && !all.contains(label) {
            return call
                .fail(format!("the result of {equation:?} has {}, which no operand has", name(*label)));
        }
    }
    // One operand is not multiplied: integers are summed as by `sum`.
    if let [(tensor, labels)] = &factors[..] {
        let place = |label: &Label| labels.iter().position(|own| own == label);
        let summed: Vec<usize> = (0..labels.len()).filter(|&axis| !output.contains(&labels[axis])).collect();
        let kept: Vec<usize> = output.iter().filter_map(place).collect();
        let tensor = tensor.permute(kept.iter().chain(&summed).copied().collect::<Vec<_>>());
        let axes: Vec<usize> = (kept.len()..labels.len()).collect();
        return Ok(if axes.is_empty() { tensor } else { tensor.sum(axes) });
    }
    let factors: Vec<Factor> = factors.iter().map(|(tensor, labels)| Factor::new(tensor, labels)).collect();
    let (sum, dtype) = contract(call, &factors, &output)?;
    Ok(sum.cast(dtype))
}

fn name(label: Label) -> String {
    match char::from_u32(label) {
        Some(letter) if label < ELLIPSIS => format!("'{letter}'"),
        _ => "'...'".into(),
    }
}

/// What the axes of an operand with this term stand for.
fn labels(call: Call, equation: &str, term: &str, rank: usize, of: &str) -> Result<Vec<Label>> {
    let (before, after) = match term.split_once("...") {
        Some((before, after)) => (before, Some(after)),
        None => (term, None),
    };
    let letters: Vec<char> = before.chars().chain(after.unwrap_or_default().chars()).collect();
    if let Some(wrong) = letters.iter().find(|letter| !letter.is_ascii_alphabetic()) {
        return call.fail(format!("'{wrong}' in the equation {equation:?} is no letter, '...', ',' or '->'"));
    }
    let Some(others) = rank.checked_sub(letters.len()).filter(|&others| others == 0 || after.is_some())
    else {
        let or_more = if after.is_some() { " or more" } else { "" };
        return call.fail(format!(
            "{term:?} in the equation {equation:?} names {}{or_more} axes, but {of} has {rank}",
            letters.len()
        ));
    };
    let mut labels: Vec<Label> = letters.iter().map(|&letter| letter as Label).collect();
    let place = before.chars().count();
    labels.splice(place..place, (0..others as Label).rev().map(|back| ELLIPSIS + back));
    Ok(labels)
}

/// The diagonals of labels that are there twice.
fn without_diagonals(
    call: Call,
    equation: &str,
    tensor: &Tensor,
    mut labels: Vec<Label>,
) -> Result<(Tensor, Vec<Label>)> {
    let mut tensor = tensor.clone();
    while let Some((first, second)) = repeated(&labels) {
        let (a, b) = (tensor.node.shape[first], tensor.node.shape[second]);
        let label = labels[first];
        if a != b {
            return call.fail(format!(
                "{} in the equation {equation:?} names two axes of one operand, of {a} and {b} elements",
                name(label)
            ));
        }
        tensor = tensor.diagonal(0, first as isize, second as isize);
        tensor.validity()?;
        labels.remove(second);
        labels.remove(first);
        labels.push(label);
    }
    Ok((tensor, labels))
}

fn repeated(labels: &[Label]) -> Option<(usize, usize)> {
    (1..labels.len())
        .find_map(|second| Some((labels[..second].iter().position(|&l| l == labels[second])?, second)))
}

fn same_extents(call: Call, equation: &str, factors: &[(Tensor, Vec<Label>)]) -> Result<()> {
    let mut extents: Vec<(Label, usize)> = Vec::new();
    for (tensor, labels) in factors {
        for (&label, &extent) in labels.iter().zip(tensor.node.shape.iter()) {
            match extents.iter().find(|(other, _)| *other == label) {
                _ if extent == 1 => {}
                Some(&(_, other)) if other == extent => {}
                Some((_, other)) => {
                    return call.fail(format!(
                        "{} in the equation {equation:?} has {other} elements in one operand and {extent} in another",
                        name(label)
                    ));
                }
                None => extents.push((label, extent)),
            }
        }
    }
    Ok(())
}
