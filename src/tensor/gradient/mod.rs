//! Gradients: reverse-mode differentiation of what was recorded, recorded like everything else.

mod formula;
mod jacobian;
mod recurrence;
mod rules;
mod scans;
mod site;
mod sweep;
mod total;

use std::borrow::Borrow;

pub use jacobian::{hessian, jacobian, jvp};

use super::arguments::call::Call;
use super::function::tree::{Leaves, Tensors};
use crate::graph::op::ConstantRole;
use crate::recording::{Recipe, Rule, Sources, State, TensorNode};
use crate::{DType, Error, Result, Scalar, Tensor};

/// The gradients of a 0-d tensor by what it was recorded from: a value like `by`, with the derivative by each element in the
/// place of the element. PyTorch's `autograd.grad`, JAX's `grad`.
///
/// Nothing runs: gradients are recorded operations, whose neighbours fuse, and have gradients themselves. Evaluate them
/// together with what they are of ([`eval`](crate::eval)), or within [`compile`](crate::compile()): it is one plan then, which
/// computes what both need once.
///
/// `by` are tensors as they were used: `loss` is a function of the handles themselves and their clones. Asking for values
/// ([`Tensor::item`], [`Tensor::to_vec`], printing) changes no gradient, whatever is asked for, and when. What [`Tensor::eval`] or
/// [`eval`](crate::eval) has computed before the gradients were recorded is data, a constant, as is what went through [`Tensor::detach`].
/// So a loop that updates weights evaluates them in each step. How tensors were recorded whose values were only asked for is
/// remembered as long as memory allows, for the last of them: through a loop that asks for the values of each step, for eight steps
/// back. Gradients that would go through what is forgotten are invalid.
/// Where a function has no slope, the gradient is PyTorch's: 0 for `relu` and `abs` at 0, and for a norm of zeros; all of it at the limits of
/// `clamp`; halves where the operands of `maximum` are equal; of the largest of several elements, equal shares.
///
/// What reaches a tensor by eight ways and more, as it does weights in the steps of a loop, is added up in one kernel. Where a line
/// of the program has other numbers of ways each time, it is computed way by way from the third number on, as what is joined is
/// ([`Tensor::cat`]), and each added to those before: no further number is compiled then.
///
/// What `loss` follows from by operations of floats has a gradient, if only one of zeros, however these operations compute: what is
/// constant but for jumps, as `floor`, a norm of order 0 or a `grid_sample` of nearest pixels by its grid; what has a slope that is, as
/// that of `relu` or of a maximum, in its second derivative; and what has no elements. Integers and conditions between operations
/// lead to nothing: `loss` does not follow from `x` by `x.argmax(0)`, `x.gt(0.0)` or `x.cast(DType::I32)`. Nor does the slope of a line
/// follow from where it is taken: the gradient of a gradient of `x * 3.0` is invalid, though [`hessian`] has zeros.
///
/// ```
/// use lazuli::Tensor;
/// let (w, x) = (Tensor::from([2.0f32, -1.0]), Tensor::from([3.0f32, 4.0]));
/// let loss = (&w * &x - 1.0).square().sum(0);
/// let dw = lazuli::grad(&loss, &w); // 2 (w x - 1) x
/// assert_eq!(dw.to_vec::<f32>()?, [30.0, -40.0]);
///
/// // A step of gradient descent, compiled once.
/// let step = lazuli::compile(|(w, x): (Tensor, Tensor)| {
///     let loss = (&w * x - 1.0).square().sum(0);
///     let dw = lazuli::grad(&loss, &w);
///     (w - dw * 0.01, loss)
/// });
/// let (w, loss) = step.call((&w, &x))?;
/// assert_eq!((w.to_vec::<f32>()?, loss.item::<f32>()?), (vec![1.7, -0.6], 50.0));
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// All gradients are invalid if `loss` has dimensions or is no float, if it does not follow from one of `by` in this sense, and if one
/// of these is no float.
#[track_caller]
pub fn grad<T: Tensors>(loss: &Tensor, by: &T) -> T {
    let call = Call::here("grad");
    let cotangent = || {
        let (shape, dtype) = loss.known()?;
        if shape.rank() > 0 {
            return call.fail(format!(
                "is of a tensor without dimensions, got shape {shape}: reduce it first, such as with .mean(..), or use `vjp`"
            ));
        }
        call.needs_float(loss)?;
        call.constant(Scalar::from_i64(dtype, 1), ConstantRole::Literal)
    };
    pulled(call, by, || Ok(vec![(loss.clone(), cotangent()?)]))
}

/// The gradients of the sum of `outputs` times `cotangents`, element by element: what reaches each of `by` of what reaches each
/// output. PyTorch's `autograd.grad` with `grad_outputs`, JAX's `vjp`. All else is as for [`grad`].
///
/// ```
/// use lazuli::Tensor;
/// let x = Tensor::from([1.0f32, 2.0, 3.0]);
/// let y = x.square();
/// let dx = lazuli::vjp(&[&y], &[Tensor::from([1.0f32, 0.0, 10.0])], &x);
/// assert_eq!(dx.to_vec::<f32>()?, [2.0, 0.0, 60.0]);
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// All gradients are invalid if there are not as many cotangents as outputs, if one has another shape than its output, if an output or
/// one of `by` is no float, and if no output follows from one of `by`.
#[track_caller]
pub fn vjp<T: Tensors>(outputs: &[impl Borrow<Tensor>], cotangents: &[impl Borrow<Tensor>], by: &T) -> T {
    let call = Call::here("vjp");
    pulled(call, by, || {
        if outputs.len() != cotangents.len() {
            return call.fail(format!(
                "there are {} outputs and {} cotangents",
                outputs.len(),
                cotangents.len()
            ));
        }
        let pair = |(output, cotangent): (&Tensor, &Tensor)| {
            let ((shape, dtype), (given, _)) = (output.known()?, cotangent.known()?);
            call.needs_float(output)?;
            if shape != given {
                return call.fail(format!(
                    "the output has shape {shape}, its cotangent {given}: they must be equal"
                ));
            }
            Ok((output.clone(), call.cast(cotangent, dtype)?))
        };
        outputs.iter().map(Borrow::borrow).zip(cotangents.iter().map(Borrow::borrow)).map(pair).collect()
    })
}

/// A value of gradients, which are all invalid if one is.
fn pulled<T: Tensors>(call: Call, by: &T, outputs: impl FnOnce() -> Result<Vec<(Tensor, Tensor)>>) -> T {
    let mut leaves = Leaves::default();
    by.to_leaves(&mut leaves);
    let gradients = |by: &[Tensor]| -> Result<Vec<Tensor>> {
        by.iter().try_for_each(|x| call.needs_float(x))?;
        let outputs = outputs()?;
        let gradients = sweep::sweep(&outputs, by)?;
        let of = |(x, gradient): (&Tensor, Option<Tensor>)| match gradient {
            Some(gradient) => Ok(gradient),
            // Zeros that follow from it, as the slopes of zeros are zeros too.
            None if sweep::follow(&outputs, x)? => Ok(call.following(&call.compose(|| x.zeros_like()), &[x])),
            None => Err(unrelated(call, &outputs, x)),
        };
        by.iter().zip(gradients).map(of).collect()
    };
    leaves.replace(|tensors| {
        gradients(tensors).unwrap_or_else(|error: Error| vec![Tensor::invalid(error); tensors.len()])
    });
    T::from_leaves(&mut leaves)
}

fn unrelated(call: Call, outputs: &[(Tensor, Tensor)], x: &Tensor) -> Error {
    let named = |tensor: &Tensor| {
        let TensorNode { shape, dtype, origin, location, .. } = &*tensor.node;
        format!("the {dtype} {shape} of `{origin}` at {location}")
    };
    let why = match sweep::data_between(outputs, x) {
        Some(data) => format!(
            "what follows from it may have gone into {}, which `eval` has made data, a constant; record gradients before, or ask \
             for values with `item` or `to_vec`",
            named(&data)
        ),
        None => "it was not used on the way".to_owned(),
    };
    call.error(format!("was not recorded from {}: {why}", named(x)))
}

impl Tensor {
    /// The same values, which are a constant for gradients: PyTorch's `detach`, JAX's `stop_gradient`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from(3.0f32);
    /// let y = &x * x.detach();
    /// assert_eq!(lazuli::grad(&y, &x).item::<f32>()?, 3.0); // not 6
    ///
    /// // Rounded on the way forward, as it is on the way back: a straight-through estimator.
    /// let rounded = &x + (x.round() - &x).detach();
    /// assert_eq!(lazuli::grad(&rounded, &x).item::<f32>()?, 1.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn detach(&self) -> Tensor {
        Call::here("detach").detached(self)
    }

    /// The same values, whose gradients by the sources follow from a rule of yours instead of from how they were recorded: of what
    /// reaches this tensor, of the sources, and of this tensor, what reaches each source. PyTorch's `autograd.Function`, JAX's
    /// `custom_vjp`. It is for functions whose gradient is another one on purpose, or whose parts have no finite slope where they have
    /// one together. Nothing else is followed on the way back: the result follows from the sources that are floats, and from nothing
    /// else. The rule's operations have gradients themselves.
    ///
    /// What the rule needs of the way forward is a source: within the step of a [`scan`](crate::scan()), it gets those of each position.
    /// What it gives for a source that is no float is not looked at. It is called when gradients are recorded.
    ///
    /// Invalid for integers and bools, and without a source that is a float. Gradients are invalid if the rule's result for a source is
    /// no float, or has a shape that neither broadcasts to the source's nor is one that the source broadcasts to.
    ///
    /// ```
    /// use lazuli::{Tensor, grad};
    /// // A straight-through estimator: steps forward, a line back.
    /// let steps = |x: &Tensor| x.round().with_gradient([x], |g, [_], _| [g.clone()]);
    /// // Gradient reversal: nothing forward, the other direction back.
    /// let reversed = |x: &Tensor| x.with_gradient([x], |g, [_], _| [-g]);
    ///
    /// let x = Tensor::from([0.4f32, 1.6]);
    /// assert_eq!(steps(&x).to_vec::<f32>()?, [0.0, 2.0]);
    /// assert_eq!(grad(&(steps(&x) * 3.0).sum(..), &x).to_vec::<f32>()?, [3.0, 3.0]);
    /// assert_eq!(grad(&reversed(&x).square().sum(..), &x).to_vec::<f32>()?, [-0.8, -3.2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn with_gradient<const N: usize>(
        &self,
        sources: [&Tensor; N],
        rule: impl Fn(&Tensor, [&Tensor; N], &Tensor) -> [Tensor; N] + Send + Sync + 'static,
    ) -> Tensor {
        let call = Call::here("with_gradient");
        let recorded = || {
            call.needs_float(self)?;
            let dtypes: Vec<DType> =
                sources.iter().map(|source| Ok(source.known()?.1)).collect::<Result<_>>()?;
            if !dtypes.iter().any(|dtype| dtype.is_float()) {
                return call.fail("needs a source that is a float; see `detach` for a constant");
            }
            Ok(call.derived(self, &sources, move |g, all| {
                let adjoints = rule(g, std::array::from_fn(|n| &all[n + 1]), &all[0]);
                adjoints.into_iter().zip(&all[1..]).map(|(adjoint, x)| given(call, adjoint, x)).collect()
            }))
        };
        Tensor::or_invalid(recorded())
    }
}

/// What a rule of the user's gives for a source, in the source's dtype.
fn given(call: Call, adjoint: Tensor, source: &Tensor) -> Result<Tensor> {
    let ((shape, dtype), (of, wanted)) = (adjoint.known()?, source.known()?);
    if !wanted.is_float() {
        return Ok(adjoint);
    }
    if !dtype.is_float() {
        return call.fail(format!(
            "the rule gives {dtype} {shape} for the source {wanted} {of}: a gradient is a float"
        ));
    }
    let adjoint = call.cast(&adjoint, wanted)?;
    match () {
        _ if of.broadcasts_to(shape) => Ok(adjoint),
        _ if shape.broadcasts_to(of) => call.expand(&adjoint, of),
        _ => call
            .fail(format!("the rule gives shape {shape} for the source of shape {of}: they must broadcast")),
    }
}

impl Call {
    /// The tensor as a constant for gradients.
    pub(crate) fn detached(self, x: &Tensor) -> Tensor {
        self.derived(x, &[], |_, _| Ok(Vec::new()))
    }

    /// A result that is the same whatever values some sources have, of which it may be the only one: it follows from them, with
    /// gradients of zeros. Its own gradients stay.
    pub(crate) fn following(self, x: &Tensor, sources: &[&Tensor]) -> Tensor {
        let floats = sources.iter().copied().filter(|source| source.node.dtype.is_float());
        let all: Vec<&Tensor> = std::iter::once(x).chain(floats).collect();
        if all.len() == 1 || !x.node.dtype.is_float() {
            return x.clone();
        }
        self.derived(x, &all, |g, _| Ok(vec![g.clone()]))
    }

    /// The tensor, whose gradients by the sources follow from a rule instead of from how it was recorded: given what reaches
    /// the tensor, and the tensor and the sources, what reaches each source.
    pub(crate) fn derived(
        self,
        x: &Tensor,
        sources: &[&Tensor],
        rule: impl Fn(&Tensor, &[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
    ) -> Tensor {
        if x.validity().is_err() {
            return x.clone();
        }
        let all: Sources = std::iter::once(x).chain(sources.iter().copied()).cloned().collect();
        let recipe = Recipe::Derived(Rule(std::sync::Arc::new(rule)));
        let (shape, dtype, device) = (x.node.shape.clone(), x.node.dtype, x.node.device);
        let (name, location) = (self.name(), self.location());
        Tensor::from_parts(shape, dtype, device, name, location, State::Recorded(recipe, all))
    }
}
