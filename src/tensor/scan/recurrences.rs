//! Scans whose step is any elementwise expression of the user's.
//!
//! The step is recorded once, on tensors that stand for the values of one position. Nothing but the step's own graph
//! ever has these as operands: [`Tensor::record`] refuses everything else that is made of them, and so does whoever
//! evaluates.

use std::cell::RefCell;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::scans::ScanOrder;
use crate::graph::body::Body;
use crate::graph::op::{Constant, ConstantRole, Op, StepResult, View};
use crate::graph::{Graph, Node, NodeId, Operands};
use crate::recording::{Recipe, Sources, State, Tensor, TensorNode};
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::{Operand, result_type};
use crate::{DType, Error, Result, Scalar, Shape};

/// The tensors that a step may take: more would not be the parameters of one kernel.
const MOST_TENSORS: usize = 256;

/// How many of the user's numbers in a step are the kernel's arguments, so that others are not another kernel. All
/// further ones are part of its text.
const MOST_ARGUMENTS: usize = 128;

impl Tensor {
    /// Goes along the axis step by step: the result at each position is what `step` makes of the result at the position
    /// before, the carry, and of the element. The first carry is `init`, a tensor or a number. It is for what depends on
    /// its own past, such as moving averages, filters and simple recurrent networks; the whole loop is one kernel.
    /// [`scan`](crate::scan()) is the general form: several carries, several inputs, results of their own, in reverse.
    ///
    /// `step` is called once, with tensors of the shape without the axis, and may use every elementwise operation.
    /// Other tensors that it uses broadcast to that shape, as `init` does, and are computed once, before the loop; but
    /// random numbers that are drawn within it, as by [`Tensor::dropout`], are others in each step. The result has the dtype of `init`, for a number the dtype in which it meets the elements; a 16-bit carry is rounded
    /// in each step. On a GPU, one thread goes along each loop: it takes many loops side by side to fill it.
    ///
    /// Invalid for an axis out of range; if `init` does not broadcast; if the step gives another dtype or shape than
    /// `init` has, moves or combines elements, or uses a value of another scan's step.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::from_slice(&[8.0f32, 0.0, 4.0, 4.0], [4]);
    /// let average = x.scan_with(0, 0.0, |average, x| average * 0.75 + x * 0.25);
    /// assert_eq!(average.to_vec::<f32>()?, [2.0, 1.5, 2.125, 2.59375]);
    ///
    /// // A recurrence h = a * h + b with tensors on both sides, in each column.
    /// let (a, b) = (Tensor::full([2], 2.0, DType::F32), Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]));
    /// let h = b.scan_with(0, 0.0, |h, b| &a * h + b);
    /// assert_eq!(h.to_vec::<f32>()?, [1.0, 2.0, 5.0, 8.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn scan_with(
        &self,
        axis: isize,
        init: impl Into<Operand>,
        step: impl FnOnce(&Tensor, &Tensor) -> Tensor,
    ) -> Tensor {
        let call = Call::here("scan_with");
        let step =
            |carries: &[Tensor], elements: &[Tensor]| (vec![step(&carries[0], &elements[0])], Vec::new());
        let recorded = Recurrence::record(call, &[self], axis, false, &[init.into()], step);
        Tensor::or_invalid(recorded.and_then(|recurrence| recurrence.result(StepResult::Each(0))))
    }
}

/// Goes along an axis of several tensors step by step: each step makes of the carries and the elements at its position
/// the carries of the next step, and results. Gives the carries after the last step, which have no axis, and all steps'
/// results, which have. As `jax.lax.scan`, for elementwise steps; the whole loop is one kernel.
///
/// The inputs broadcast; the axis is one of the shape that they have together. `step` is called once, with tensors of
/// the shape without the axis, broadcast with those of the first carries, and may use every elementwise operation. Other tensors that it uses broadcast to that
/// shape, as the first carries, the `inits`, and are computed once, before the loop; random numbers that are drawn
/// within it are others in each step. A carry keeps the dtype that it
/// begins with, for a number the one in which it meets the inputs; a 16-bit carry is rounded in each step.
///
/// All results are invalid for an axis out of range, an exclusive order, or inputs or inits that do not broadcast; if
/// the step gives a carry another dtype or shape, moves or combines elements, or uses a value of another scan's step.
///
/// ```
/// use lazuli::{ScanOrder, Tensor};
/// // Running mean and variance, by Welford's method.
/// let x = Tensor::from_slice(&[1.0f32, 3.0, 5.0, 7.0], [4]);
/// let count = Tensor::arange(1.0f32, 5.0, 1.0);
/// let ([mean, _], [means, variances]) =
///     lazuli::scan([&x, &count], 0, ScanOrder::new(), [0.0, 0.0], |[mean, m2], [x, count]| {
///         let delta = x - mean;
///         let mean = mean + &delta / count;
///         let m2 = m2 + delta * (x - &mean);
///         let variance = &m2 / count;
///         ([mean.clone(), m2], [mean, variance])
///     });
/// assert_eq!(means.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
/// assert_eq!(variances.to_vec::<f32>()?, [0.0, 1.0, 8.0 / 3.0, 5.0]);
/// assert_eq!(mean.item::<f32>()?, 4.0);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[track_caller]
pub fn scan<const INPUTS: usize, const CARRIES: usize, const RESULTS: usize>(
    inputs: [&Tensor; INPUTS],
    axis: isize,
    order: ScanOrder,
    inits: [impl Into<Operand>; CARRIES],
    step: impl FnOnce([&Tensor; CARRIES], [&Tensor; INPUTS]) -> ([Tensor; CARRIES], [Tensor; RESULTS]),
) -> ([Tensor; CARRIES], [Tensor; RESULTS]) {
    let call = Call::here("scan");
    let (reverse, exclusive) = order.parts();
    let inits = inits.map(Into::into);
    let step = |carries: &[Tensor], elements: &[Tensor]| {
        let (carries, results) =
            step(std::array::from_fn(|n| &carries[n]), std::array::from_fn(|n| &elements[n]));
        (Vec::from(carries), Vec::from(results))
    };
    let recorded = match exclusive {
        true => {
            call.fail("a step says itself what it results in: for an exclusive order, the carry that it gets")
        }
        false => Recurrence::record(call, &inputs, axis, reverse, &inits, step),
    };
    let result = |result: StepResult| {
        Tensor::or_invalid(
            recorded.as_ref().map_err(Error::clone).and_then(|recorded| recorded.result(result)),
        )
    };
    (
        std::array::from_fn(|n| result(StepResult::Last(n))),
        std::array::from_fn(|n| result(StepResult::Each(CARRIES + n))),
    )
}

/// A recorded loop, before it is known which of its results are wanted.
pub(crate) struct Recurrence {
    call: Call,
    axis: usize,
    reverse: bool,
    body: Arc<Body>,
    /// What the carries begin as, of the shape of a step.
    inits: Vec<Tensor>,
    /// The elements of all steps.
    elements: Vec<Tensor>,
    full: Shape,
}

impl Recurrence {
    pub(crate) fn record(
        call: Call,
        inputs: &[&Tensor],
        axis: isize,
        reverse: bool,
        inits: &[Operand],
        step: impl FnOnce(&[Tensor], &[Tensor]) -> (Vec<Tensor>, Vec<Tensor>),
    ) -> Result<Recurrence> {
        let shapes: Vec<&Shape> = inputs.iter().map(|x| Ok(x.known()?.0)).collect::<Result<_>>()?;
        if shapes.is_empty() {
            return call.fail("goes along its inputs, and there are none");
        }
        let full = call.broadcast(&shapes)?;
        let axis = call.axis(axis, &full)?;
        let narrow = full.without(&[axis]);
        let slice = widened(call, &narrow, inits)?;
        let inits: Vec<Tensor> =
            inits.iter().map(|init| first_carry(call, init, inputs, &slice)).collect::<Result<_>>()?;
        let mut elements: Vec<Tensor> =
            inputs.iter().map(|x| call.expand(x, &full)).collect::<Result<_>>()?;
        let mut full = full;
        if slice != narrow {
            elements = call.compose(|| elements.iter().map(|x| repeated(x, axis, &narrow, &slice)).collect());
            let (before, after) = slice.split_at(axis);
            full = [before, &[full[axis]], after].concat().into();
            call.needs_addressable(&full)?;
        }

        let device = inits.iter().chain(&elements).find_map(|x| x.node.device);
        let stand_in = |x: &Tensor| {
            let state = State::Recorded(Recipe::StepValue, Sources::new());
            let (name, location) = (call.name(), call.location());
            Tensor::from_parts(slice.clone(), x.node.dtype, device, name, location, state)
        };
        let [carried, given] =
            [&inits, &elements].map(|list| list.iter().map(stand_in).collect::<Vec<Tensor>>());
        let ((carries, results), draws) = Draws::during(|| step(&carried, &given));
        let mut trace = Trace::new(call, carried.iter().chain(&given), draws, axis, &full);
        let mut outputs = Vec::new();
        for (number, result) in carries.iter().chain(&results).enumerate() {
            let (shape, dtype) = result.known()?;
            if shape.broadcast(&slice).as_ref() != Some(&slice) {
                return call
                    .fail(format!("the step gives shape {shape}, which is not that of a step, {slice}"));
            }
            if let Some(init) = inits.get(number).filter(|init| init.node.dtype != dtype) {
                return call.fail(format!(
                    "the step gives {dtype} for a carry that begins as {}: cast one to the other",
                    init.node.dtype
                ));
            }
            outputs.push(trace.add(&call.expand(result, &slice)?)?);
        }
        elements.append(&mut trace.elements);
        let tensors = inits.len() + elements.len() - trace.arguments;
        if tensors > MOST_TENSORS {
            return call.fail(format!("the step uses {tensors} tensors, and {MOST_TENSORS} are the most"));
        }
        let dtypes = inits.iter().chain(&elements).map(|x| x.node.dtype).collect();
        trace.graph.set_outputs(outputs);
        let body = Arc::new(Body::new(trace.graph, inits.len(), dtypes));
        Ok(Recurrence { call, axis, reverse, body, inits, elements, full })
    }

    pub(crate) fn result(&self, result: StepResult) -> Result<Tensor> {
        let Recurrence { call, axis, reverse, ref body, ref inits, ref elements, ref full } = *self;
        let (shape, number) = match result {
            StepResult::Each(number) => (full.clone(), number),
            StepResult::Last(number) => (full.without(&[axis]), number),
        };
        let Some(dtype) = body.output(number) else { return call.fail("the step has no such result") };
        let sources: Vec<&Tensor> = inits.iter().chain(elements).collect();
        if full[axis] == 0 {
            // There are no steps: the carries stay what they were.
            let device = sources.iter().find_map(|x| x.node.device);
            return match (result, device) {
                (StepResult::Last(carry), Some(device)) => call.transfer(&inits[carry], device),
                (StepResult::Last(carry), None) => Ok(inits[carry].clone()),
                (StepResult::Each(_), _) => {
                    call.filled_on(device, Scalar::from_i64(dtype, 0), ConstantRole::Literal, &shape)
                }
            };
        }
        call.record(Op::Recurrence { axis, reverse, body: body.clone(), result }, &sources, shape, dtype)
    }
}

/// The shape of a step, whose elements have one shape and whose carries may have more: a carry of many beside one input.
fn widened(call: Call, narrow: &Shape, inits: &[Operand]) -> Result<Shape> {
    inits.iter().try_fold(narrow.clone(), |slice, init| match init {
        Operand::Number(_) => Ok(slice),
        Operand::Tensor(tensor) => {
            let shape = tensor.known()?.0;
            slice.broadcast(shape).ok_or_else(|| {
                call.error(format!(
                    "the first carry has shape {shape}, which does not broadcast to that of a step, {narrow}"
                ))
            })
        }
    })
}

/// Elements of steps of one shape for steps of a wider one. May only be called while a call is composed.
fn repeated(x: &Tensor, axis: usize, narrow: &Shape, wide: &Shape) -> Tensor {
    let ones = std::iter::repeat_n(1, wide.rank() - narrow.rank());
    let steps = x.node.shape[axis];
    let apart: Vec<usize> = [steps].into_iter().chain(ones).chain(narrow.iter().copied()).collect();
    let all: Vec<usize> = [steps].into_iter().chain(wide.iter().copied()).collect();
    x.movedim(axis as isize, 0).reshape(apart).broadcast_to(all).movedim(0, axis as isize)
}

/// What a carry begins as, of the shape of a step.
fn first_carry(call: Call, init: &Operand, inputs: &[&Tensor], slice: &Shape) -> Result<Tensor> {
    let own = match init {
        Operand::Tensor(tensor) => {
            tensor.validity()?;
            tensor.clone()
        }
        Operand::Number(number) => {
            let met: Vec<Operand> = inputs.iter().map(|&x| x.into()).chain([init.clone()]).collect();
            call.constant(number.to_scalar(result_type(&met)?), ConstantRole::Argument)?
        }
    };
    let shape = &own.node.shape;
    debug_assert_eq!(shape.broadcast(slice).as_ref(), Some(slice));
    call.expand(&own, slice)
}

thread_local! {
    /// What the steps that are being recorded have drawn, the innermost last.
    static DRAWN: RefCell<Vec<Draws>> = const { RefCell::new(Vec::new()) };
}

/// Random numbers that a step has drawn: what stands for them in it, and the seeds.
#[derive(Default)]
struct Draws(Vec<(Tensor, u64)>);

impl Draws {
    /// What a step gives, and what it has drawn on the way.
    fn during<T>(step: impl FnOnce() -> T) -> (T, Draws) {
        /// Also if the step panics.
        struct Ended;
        impl Drop for Ended {
            fn drop(&mut self) {
                DRAWN.with_borrow_mut(|steps| steps.truncate(steps.len().saturating_sub(1)));
            }
        }
        DRAWN.with_borrow_mut(|steps| steps.push(Draws::default()));
        let _ended = Ended;
        let given = step();
        (given, DRAWN.with_borrow_mut(|steps| steps.last_mut().map(std::mem::take)).unwrap_or_default())
    }
}

/// Random numbers, and within a step what stands for those of any position.
pub(crate) fn random(call: Call, shape: Shape, dtype: DType, seed: u64) -> Result<Tensor> {
    let is_step = DRAWN.with_borrow(|steps| !steps.is_empty());
    if !is_step {
        return call.record(Op::Random { seed }, &[], shape, dtype);
    }
    call.needs_addressable(&shape)?;
    let state = State::Recorded(Recipe::StepValue, Sources::new());
    let drawn = Tensor::from_parts(shape, dtype, None, call.name(), call.location(), state);
    DRAWN.with_borrow_mut(|steps| {
        steps.iter_mut().last().into_iter().for_each(|step| step.0.push((drawn.clone(), seed)));
    });
    Ok(drawn)
}

/// The number that is the same at every position of a tensor.
fn number_of(tensor: &Tensor) -> Option<Constant> {
    let sources = match &*tensor.node.state() {
        State::Recorded(Recipe::Filled(constant), _) => return Some(*constant),
        State::Recorded(Recipe::Op(Op::View(View::Expand)), sources) => sources.clone(),
        _ => return None,
    };
    let state = sources.first()?.node.state();
    match &*state {
        State::Recorded(Recipe::Filled(constant), _) => Some(*constant),
        _ => None,
    }
}

/// The graph of a step, made of the tensors that it has recorded.
struct Trace<'a> {
    call: Call,
    graph: Graph,
    done: FxHashMap<*const TensorNode, NodeId>,
    draws: Draws,
    /// What is not of the step, or drawn in it: further elements of all steps.
    elements: Vec<Tensor>,
    /// How many of them are the user's numbers.
    arguments: usize,
    inputs: usize,
    axis: usize,
    full: &'a Shape,
}

impl<'a> Trace<'a> {
    fn new<'b>(
        call: Call,
        stand_ins: impl Iterator<Item = &'b Tensor>,
        draws: Draws,
        axis: usize,
        full: &'a Shape,
    ) -> Trace<'a> {
        let (graph, done) = (Graph::default(), FxHashMap::default());
        let (elements, arguments, inputs) = (Vec::new(), 0, 0);
        let mut trace = Trace { call, graph, done, draws, elements, arguments, inputs, axis, full };
        stand_ins.for_each(|x| trace.add_input(x));
        trace
    }

    fn add_input(&mut self, x: &Tensor) {
        let id = self.graph.add(zero_dimensional(&x.node, Op::Input(self.inputs)), &[]);
        self.inputs += 1;
        self.done.insert(Arc::as_ptr(&x.node), id);
    }

    /// What the step uses from outside: the same at every position. The formulas' own numbers, and more of the user's
    /// than a kernel takes, become part of the step.
    fn add_captured(&mut self, x: &Tensor) -> Result<()> {
        if let Some(constant) = number_of(x) {
            let is_argument = constant.role == ConstantRole::Argument;
            if !is_argument || self.arguments == MOST_ARGUMENTS {
                let literal = Op::Constant(Constant { role: ConstantRole::Literal, ..constant });
                let id = self.graph.add(zero_dimensional(&x.node, literal), &[]);
                self.done.insert(Arc::as_ptr(&x.node), id);
                return Ok(());
            }
            self.arguments += 1;
        }
        let slice = self.call.expand(x, &self.full.without(&[self.axis]))?;
        let kept = self.full.with_extent(self.axis, 1);
        self.elements.push(self.call.expand(&self.call.reshape(&slice, kept)?, self.full)?);
        self.add_input(x);
        Ok(())
    }

    /// What the step has drawn itself: the numbers of all steps.
    fn add_drawn(&mut self, x: &Tensor, seed: u64) -> Result<()> {
        let Tensor { node } = x;
        let slice = self.full.without(&[self.axis]);
        if node.shape != slice {
            return self.call.fail(format!(
                "the step draws random numbers of shape {}, which is not that of a step, {slice}",
                node.shape
            ));
        }
        let (op, shape) = (Op::Random { seed }, self.full.clone());
        self.elements.push(Tensor::record(op, &[], shape, node.dtype, node.origin, node.location));
        self.add_input(x);
        Ok(())
    }

    /// The node of a tensor of the shape of a step. A loop, as the step may be a long chain.
    fn add(&mut self, tensor: &Tensor) -> Result<NodeId> {
        let mut pending = vec![tensor.clone()];
        while let Some(tensor) = pending.last().cloned() {
            let key = Arc::as_ptr(&tensor.node);
            if self.done.contains_key(&key) {
                pending.pop();
            } else if !tensor.node.is_of_step {
                self.add_captured(&tensor)?;
                pending.pop();
            } else {
                let state = tensor.node.state().clone();
                let (op, sources) = match state {
                    State::Recorded(Recipe::Op(op), sources) => (op, sources),
                    // A constant for gradients, which is what a conversion to its own dtype stands for in a body.
                    State::Recorded(Recipe::Derived(_), mut sources) => {
                        sources.truncate(1);
                        (Op::Cast, sources)
                    }
                    _ => {
                        let drawn = self.draws.0.iter().find(|(own, _)| Arc::ptr_eq(&own.node, &tensor.node));
                        let Some(&(_, seed)) = drawn else {
                            return self
                                .call
                                .fail("the step uses a value of another scan's step, which has none here");
                        };
                        self.add_drawn(&tensor, seed)?;
                        pending.pop();
                        continue;
                    }
                };
                let missing: Vec<Tensor> = sources
                    .iter()
                    .filter(|s| !self.done.contains_key(&Arc::as_ptr(&s.node)))
                    .cloned()
                    .collect();
                if missing.is_empty() {
                    let operands: Operands =
                        sources.iter().map(|s| self.done[&Arc::as_ptr(&s.node)]).collect();
                    let id = self.graph.add(zero_dimensional(&tensor.node, op), &operands);
                    self.done.insert(key, id);
                    pending.pop();
                } else {
                    pending.extend(missing.into_iter().rev());
                }
            }
        }
        Ok(self.done[&Arc::as_ptr(&tensor.node)])
    }
}

fn zero_dimensional(tensor: &TensorNode, op: Op) -> Node {
    let TensorNode { dtype, origin, location, .. } = *tensor;
    Node { op, shape: Shape::scalar(), dtype, origin, location }
}
