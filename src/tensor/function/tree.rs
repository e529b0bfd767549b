//! Values that are made of tensors: what a compiled function takes and gives.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::recording::{State, Tensor};
use crate::runtime::buffer::Buffer;
use crate::runtime::host::HostBuffer;
use crate::tensor::arguments::element::{self, Element};
use crate::{Error, Result, Shape, SourceLocation, bf16, f16};

/// A value that is made of tensors, such as a model's parameters: a [`Tensor`], or arrays, vectors, options and tuples of
/// such values. JAX calls it a pytree.
///
/// A type of yours becomes one by listing its fields, in the same order both times. `usize`, `bool` and `String` are such
/// values as well: a function that is called with another number, switch or name is recorded anew. (Numbers to compute with
/// are tensors; see [`Arguments`].)
///
/// ```
/// use lazuli::{Leaves, Tensor, Tensors, compile};
///
/// #[derive(Clone)]
/// struct Linear {
///     weight: Tensor,
///     bias: Option<Tensor>,
/// }
///
/// impl Tensors for Linear {
///     fn to_leaves(&self, leaves: &mut Leaves) {
///         self.weight.to_leaves(leaves);
///         self.bias.to_leaves(leaves);
///     }
///     fn from_leaves(leaves: &mut Leaves) -> Linear {
///         Linear { weight: Tensors::from_leaves(leaves), bias: Tensors::from_leaves(leaves) }
///     }
/// }
///
/// let layer = Linear { weight: Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]), bias: None };
/// let run = compile(|(layer, x): (Linear, Tensor)| x.linear(&layer.weight, layer.bias.as_ref()));
/// let x = Tensor::from([[1.0f32, 1.0]]);
/// assert_eq!(run.call((&layer, &x))?.to_vec::<f32>()?, [3.0, 7.0]);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no input or output of a compiled function",
    label = "neither a tensor nor made of tensors",
    note = "a number that is given to `call` is a `Tensor` in the closure, so that another one is no other kernel",
    note = "a type of your own that is made of tensors implements `Tensors`"
)]
pub trait Tensors: Sized {
    /// Adds the tensors, one after the other, and whatever else tells two such values apart.
    fn to_leaves(&self, leaves: &mut Leaves);

    /// The value whose leaves come next.
    fn from_leaves(leaves: &mut Leaves) -> Self;
}

/// What a compiled function that takes a `T` can be called with: a `&T`; or an array, vector, option or tuple whose parts
/// are, each on its own, such arguments; or, in the place of a tensor, a tensor that is given away, or a number.
///
/// A tensor that is given away, with no other handle anywhere, may have results written over it, as [`Tensor::donate`] says.
/// A number is a tensor without dimensions in the function, so that another one is no other kernel; beside tensors with
/// dimensions its dtype counts only if it is of a higher kind.
///
/// ```
/// use lazuli::{Tensor, compile};
/// let step = compile(|(x, [slope, offset]): (Tensor, [Tensor; 2])| x * slope + offset);
/// let x = Tensor::from([1.0f32, 2.0]);
/// assert_eq!(step.call((&x, [2.0, 0.5]))?.to_vec::<f32>()?, [2.5, 4.5]);
/// assert_eq!(step.call((x, [3.0, 0.0]))?.to_vec::<f32>()?, [3.0, 6.0]); // x is given away
/// # Ok::<(), lazuli::Error>(())
/// ```
pub trait Arguments<T: Tensors> {
    /// Adds the tensors, one after the other, as [`Tensors::to_leaves`] of the `T` would.
    fn into_leaves(self, leaves: &mut Leaves);
}

/// The tensors of a [`Tensors`] value, one after the other, and what else belongs to its structure: what
/// [`Tensors::to_leaves`] writes and [`Tensors::from_leaves`] reads.
///
/// ```
/// use lazuli::{Leaves, Tensor, Tensors};
/// let mut leaves = Leaves::default();
/// (Tensor::from([1.0f32]), vec![Tensor::from([2.0f32])]).to_leaves(&mut leaves);
/// let (x, list): (Tensor, Vec<Tensor>) = Tensors::from_leaves(&mut leaves);
/// assert_eq!((x.item::<f32>()?, list.len()), (1.0, 1));
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Default)]
pub struct Leaves {
    pub(super) tensors: SmallVec<[Tensor; 6]>,
    pub(super) structure: SmallVec<[usize; 6]>,
    next_tensor: usize,
    next_number: usize,
}

impl Leaves {
    pub(super) fn new(
        tensors: impl IntoIterator<Item = Tensor>,
        structure: impl IntoIterator<Item = usize>,
    ) -> Leaves {
        let (tensors, structure) = (tensors.into_iter().collect(), structure.into_iter().collect());
        Leaves { tensors, structure, next_tensor: 0, next_number: 0 }
    }

    /// Other tensors in the places of these.
    pub(in crate::tensor) fn replace(&mut self, others: impl FnOnce(&[Tensor]) -> Vec<Tensor>) {
        self.tensors = others(&self.tensors).into();
    }

    fn tensor(&mut self) -> Tensor {
        let tensor = self.tensors.get(self.next_tensor).cloned();
        self.next_tensor += 1;
        tensor.unwrap_or_else(|| Tensor::invalid(uneven()))
    }

    fn number(&mut self) -> usize {
        let number = self.structure.get(self.next_number).copied().unwrap_or_default();
        self.next_number += 1;
        number
    }

    /// Whether all were asked for, and no more.
    pub(super) fn check(&self) -> Result<()> {
        let are_read = (self.next_tensor, self.next_number) == (self.tensors.len(), self.structure.len());
        if are_read { Ok(()) } else { Err(uneven()) }
    }
}

/// A value like the given ones, which are alike: each of its tensors is what `f` makes of theirs. So one line is a step of an
/// optimiser, whatever a model's parameters are. JAX's `tree_map`.
///
/// ```
/// use lazuli::{Tensor, tree_map};
/// let weights = (Tensor::from([1.0f32, 2.0]), vec![Tensor::from(3.0f32)]);
/// let gradients = (Tensor::from([10.0f32, 0.0]), vec![Tensor::from(20.0f32)]);
/// let (a, b) = tree_map([&weights, &gradients], |[w, g]| w - g * 0.1);
/// assert_eq!((a.to_vec::<f32>()?, b[0].item::<f32>()?), (vec![0.0, 2.0], 1.0));
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// Its tensors are invalid if the given values are not alike: of one structure, with as many tensors.
pub fn tree_map<T: Tensors, const N: usize>(values: [&T; N], mut f: impl FnMut([&Tensor; N]) -> Tensor) -> T {
    let all = values.map(|value| {
        let mut leaves = Leaves::default();
        value.to_leaves(&mut leaves);
        leaves
    });
    let [first, ..] = &all[..] else { return T::from_leaves(&mut Leaves::default()) };
    let alike =
        |other: &Leaves| (other.tensors.len(), &other.structure) == (first.tensors.len(), &first.structure);
    let are_alike = all.iter().all(alike);
    let made = (0..first.tensors.len()).map(|number| match are_alike {
        true => f(std::array::from_fn(|value| &all[value].tensors[number])),
        false => Tensor::invalid(uneven()),
    });
    let tensors: Vec<Tensor> = made.collect();
    T::from_leaves(&mut Leaves::new(tensors, first.structure.iter().copied()))
}

fn uneven() -> Error {
    Error::InvalidOperation {
        op: "from_leaves",
        message: "asks for other leaves than `to_leaves` has added; both must go through the same fields in the same order"
            .into(),
        location: SourceLocation::caller(),
    }
}

impl Tensors for Tensor {
    fn to_leaves(&self, leaves: &mut Leaves) {
        leaves.tensors.push(self.clone());
    }

    fn from_leaves(leaves: &mut Leaves) -> Tensor {
        leaves.tensor()
    }
}

impl<T: Tensors, const N: usize> Tensors for [T; N] {
    fn to_leaves(&self, leaves: &mut Leaves) {
        self.iter().for_each(|part| part.to_leaves(leaves));
    }

    fn from_leaves(leaves: &mut Leaves) -> [T; N] {
        std::array::from_fn(|_| T::from_leaves(leaves))
    }
}

impl<T: Tensors> Tensors for Vec<T> {
    fn to_leaves(&self, leaves: &mut Leaves) {
        leaves.structure.push(self.len());
        self.iter().for_each(|part| part.to_leaves(leaves));
    }

    fn from_leaves(leaves: &mut Leaves) -> Vec<T> {
        (0..leaves.number()).map(|_| T::from_leaves(leaves)).collect()
    }
}

impl<T: Tensors> Tensors for Option<T> {
    fn to_leaves(&self, leaves: &mut Leaves) {
        leaves.structure.push(usize::from(self.is_some()));
        self.iter().for_each(|part| part.to_leaves(leaves));
    }

    fn from_leaves(leaves: &mut Leaves) -> Option<T> {
        (leaves.number() != 0).then(|| T::from_leaves(leaves))
    }
}

impl Tensors for usize {
    fn to_leaves(&self, leaves: &mut Leaves) {
        leaves.structure.push(*self);
    }

    fn from_leaves(leaves: &mut Leaves) -> usize {
        leaves.number()
    }
}

impl Tensors for bool {
    fn to_leaves(&self, leaves: &mut Leaves) {
        leaves.structure.push(usize::from(*self));
    }

    fn from_leaves(leaves: &mut Leaves) -> bool {
        leaves.number() != 0
    }
}

impl Tensors for String {
    fn to_leaves(&self, leaves: &mut Leaves) {
        leaves.structure.push(self.len());
        leaves.structure.extend(self.bytes().map(usize::from));
    }

    fn from_leaves(leaves: &mut Leaves) -> String {
        let bytes: Vec<u8> = (0..leaves.number()).map(|_| leaves.number() as u8).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl<T: Tensors> Arguments<T> for &T {
    fn into_leaves(self, leaves: &mut Leaves) {
        self.to_leaves(leaves);
    }
}

impl Arguments<Tensor> for Tensor {
    fn into_leaves(self, leaves: &mut Leaves) {
        leaves.tensors.push(self);
    }
}

impl<T: Tensors, A: Arguments<T>, const N: usize> Arguments<[T; N]> for [A; N] {
    fn into_leaves(self, leaves: &mut Leaves) {
        self.into_iter().for_each(|part| part.into_leaves(leaves));
    }
}

impl<T: Tensors, A: Arguments<T>> Arguments<Vec<T>> for Vec<A> {
    fn into_leaves(self, leaves: &mut Leaves) {
        leaves.structure.push(self.len());
        self.into_iter().for_each(|part| part.into_leaves(leaves));
    }
}

impl<T: Tensors, A: Arguments<T>> Arguments<Option<T>> for Option<A> {
    fn into_leaves(self, leaves: &mut Leaves) {
        leaves.structure.push(usize::from(self.is_some()));
        self.into_iter().for_each(|part| part.into_leaves(leaves));
    }
}

macro_rules! by_value {
    ($($ty:ty)*) => {$(
        impl Arguments<$ty> for $ty {
            fn into_leaves(self, leaves: &mut Leaves) {
                self.to_leaves(leaves);
            }
        }
    )*};
}

by_value!(usize bool String);

macro_rules! numbers {
    ($($ty:ty)*) => {$(
        impl Arguments<Tensor> for $ty {
            fn into_leaves(self, leaves: &mut Leaves) {
                leaves.tensors.push(number(self));
            }
        }
    )*};
}

numbers!(bool u8 i8 i16 i32 u32 i64 f16 bf16 f32 f64);

/// A number that no device has yet.
fn number<T: Element>(value: T) -> Tensor {
    let location = SourceLocation::caller();
    Tensor::or_invalid(HostBuffer::from_bytes(element::to_bytes(&[value])).map(|buffer| {
        let state = State::Evaluated(Buffer::Host(Arc::new(buffer)), None);
        Tensor::from_parts(Shape::scalar(), T::DTYPE, None, "number", location, state)
    }))
}

macro_rules! tuples {
    ($(($($part:ident $argument:ident $number:tt),*))*) => {$(
        impl<$($part: Tensors),*> Tensors for ($($part,)*) {
            #[allow(unused_variables, reason = "of none")]
            fn to_leaves(&self, leaves: &mut Leaves) {
                $(self.$number.to_leaves(leaves);)*
            }

            #[allow(unused_variables, clippy::unused_unit, reason = "of none")]
            fn from_leaves(leaves: &mut Leaves) -> ($($part,)*) {
                ($($part::from_leaves(leaves),)*)
            }
        }

        impl<$($part: Tensors, $argument: Arguments<$part>),*> Arguments<($($part,)*)> for ($($argument,)*) {
            #[allow(unused_variables, reason = "of none")]
            fn into_leaves(self, leaves: &mut Leaves) {
                $(self.$number.into_leaves(leaves);)*
            }
        }
    )*};
}

tuples! {
    ()
    (A P 0)
    (A P 0, B Q 1)
    (A P 0, B Q 1, C R 2)
    (A P 0, B Q 1, C R 2, D S 3)
    (A P 0, B Q 1, C R 2, D S 3, E T 4)
    (A P 0, B Q 1, C R 2, D S 3, E T 4, F U 5)
    (A P 0, B Q 1, C R 2, D S 3, E T 4, F U 5, G V 6)
    (A P 0, B Q 1, C R 2, D S 3, E T 4, F U 5, G V 6, H W 7)
}
