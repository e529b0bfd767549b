//! Scans whose step is an expression of the user's: one loop in a kernel where it is elementwise.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::along::Along;
use super::apart;
use super::scans::ScanOrder;
use super::step::{Kind, Part, Step, key, number_of};
use super::unrolled::Unrolled;
use crate::graph::body::Body;
use crate::graph::op::{Constant, ConstantRole, Op, StepResult};
use crate::graph::{Graph, Node, NodeId, Operands};
use crate::recording::{Recipe, Rule, State, Tensor, TensorNode};
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::{Operand, result_type};
use crate::tensor::make::create::counting;
use crate::{Error, Result, Scalar, Shape};

/// The tensors that the step of one kernel may take: more would not be its parameters.
const MOST_TENSORS: usize = 256;

/// How many of the user's numbers in a step are the kernel's arguments, so that others are not another kernel. All
/// further ones are part of its text.
const MOST_ARGUMENTS: usize = 128;

impl Tensor {
    /// Goes along the axis step by step: the result at each position is what `step` makes of the result at the position
    /// before, the carry, and of the element. The first carry is `init`, a tensor or a number. It is for what depends on
    /// its own past, such as moving averages, filters and recurrent networks.
    /// [`scan`](crate::scan()) is the general form: several carries, several inputs, results of their own, in reverse.
    ///
    /// `step` is called once, with tensors that stand for those of any position: the element has the shape without the axis,
    /// the carry that of `init`, for a number that of the element. An elementwise step is one loop in a kernel, with what is
    /// computed before and after it; on a GPU, one thread goes along each loop: it takes many loops side by side to fill it.
    /// Then carries, elements and the other tensors that the step uses may be of any shapes that broadcast, and
    /// the results have the shape of all. Of another step, such as one with a product, all steps are recorded one after the other.
    ///
    /// Other tensors that the step uses are computed once, before the loop; but random numbers that are drawn within it, as by
    /// [`Tensor::dropout`], are others in each step. The result has the dtype of `init`, for a number the dtype in which it meets
    /// the elements; a 16-bit carry is rounded in each step.
    ///
    /// Invalid for an axis out of range; if the step gives another dtype or shape than `init` has, or uses a value of another
    /// scan's step; if it is not elementwise and all steps are more than 2^20 operations.
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
/// results, which have. As `jax.lax.scan`.
///
/// Each input has the axis as one of its own, with as many positions as the others or with one; one of too few axes for that is
/// aligned at its end with that of most axes, as in broadcasting. What is the same in each step is no input: the step uses it.
///
/// `step` is called once, with tensors that stand for those of any position: elements have the shape
/// of their input without the axis, carries that of the first ones, the `inits`; numbers that of all elements and carries
/// together. An elementwise step is one loop in a kernel, whose carries and results all have the shape of all together; of
/// another step, such as that of a recurrent network with its products, all steps are recorded one after the other, and
/// carries and results have their own. A step that joins up to 16 elements and combines them again, as
/// `Tensor::stack([a, b], 0).max(0)` does, is elementwise where carries and results have the shape of all.
///
/// Other tensors that the step uses are computed once, before the loop; random numbers that are drawn
/// within it are others in each step. A carry keeps the shape and dtype that it
/// begins with, a number the dtype in which it meets the inputs; a 16-bit carry is rounded in each step.
///
/// All results are invalid for an axis out of range, an exclusive order, or inputs that do not fit; if
/// the step gives a carry another dtype or shape, or uses a value of another scan's step; if it is not elementwise and all steps
/// are more than 2^20 operations.
///
/// ```
/// use lazuli::{DType, ScanOrder, Tensor};
/// // A recurrent network: 10 steps of 4 sequences of 3 numbers, 5 cells.
/// let (x, w, u) = (Tensor::randn([10, 4, 3], 1), Tensor::randn([3, 5], 2), Tensor::randn([5, 5], 3));
/// let begun = Tensor::zeros([4, 5], DType::F32);
/// let ([last], [each]) = lazuli::scan([&x], 0, ScanOrder::new(), [begun], |[h], [x]| {
///     let h = (x.matmul(&w) + h.matmul(&u)).tanh();
///     ([h.clone()], [h])
/// });
/// assert_eq!((last.shape()?, each.shape()?), ([4, 5].into(), [10, 4, 5].into()));
/// # Ok::<(), lazuli::Error>(())
/// ```
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
    scanned(Call::here("scan"), inputs, axis, order, inits, step)
}

/// Goes so many steps, each of which makes of the carries and its own number, a 0-d `I64` from 0 on, the carries of the next step, and
/// results. Gives the carries after the last step, and all steps' results along a new first axis: [`scan`] along nothing but the numbers
/// of steps, for what depends on its own past alone, such as a simulation or a fixed number of rounds of a method. JAX's `fori_loop`, and
/// its `scan` with a `length`.
///
/// All else is as for [`scan`]: an elementwise step is one loop in a kernel, the steps of another are recorded one after the other. A carry
/// that begins as a number has the shape of all carries together, and is `F32` for a float, `I64` for an integer or a `bool`.
///
/// ```
/// use lazuli::Tensor;
/// // Square roots by Heron's method.
/// let x = Tensor::from([2.0f32, 9.0]);
/// let ([root], []) = lazuli::iterate(20, [&x], |[root], _| ([(root + &x / root) / 2.0], []));
/// assert_eq!(root.to_vec::<f32>()?, [1.414_213_5, 3.0]);
///
/// // Factorials: each step's number is one less than what it multiplies with.
/// let ([_], [all]) = lazuli::iterate(5, [1], |[product], number| {
///     let product = product * (number + 1);
///     ([product.clone()], [product])
/// });
/// assert_eq!(all.to_vec::<i64>()?, [1, 2, 6, 24, 120]);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[track_caller]
pub fn iterate<const CARRIES: usize, const RESULTS: usize>(
    steps: usize,
    inits: [impl Into<Operand>; CARRIES],
    step: impl FnOnce([&Tensor; CARRIES], &Tensor) -> ([Tensor; CARRIES], [Tensor; RESULTS]),
) -> ([Tensor; CARRIES], [Tensor; RESULTS]) {
    let call = Call::here("iterate");
    let numbers = call.compose(|| counting(steps));
    scanned(call, [&numbers], 0, ScanOrder::new(), inits, |carries, [number]| step(carries, number))
}

fn scanned<const INPUTS: usize, const CARRIES: usize, const RESULTS: usize>(
    call: Call,
    inputs: [&Tensor; INPUTS],
    axis: isize,
    order: ScanOrder,
    inits: [impl Into<Operand>; CARRIES],
    step: impl FnOnce([&Tensor; CARRIES], [&Tensor; INPUTS]) -> ([Tensor; CARRIES], [Tensor; RESULTS]),
) -> ([Tensor; CARRIES], [Tensor; RESULTS]) {
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
pub(crate) struct Recurrence(Form);

enum Form {
    Kernel(Loop),
    Steps(Unrolled),
}

/// A loop of one kernel.
struct Loop {
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
        let along = Along::of(call, inputs, axis)?;
        let slice = along.with_carries(inits)?;
        let inits: Vec<Tensor> = inits
            .iter()
            .map(|init| first_carry(call, init, inputs, slice.as_ref()))
            .collect::<Result<_>>()?;
        let elements: Vec<(&Tensor, Shape)> =
            along.inputs.iter().map(|input| (&input.tensor, input.shape.clone())).collect();
        let step = Step::record(call, &inits, &elements, step)?;
        for (init, result) in inits.iter().zip(&step.outputs) {
            let (begun, dtype) = (init.node.dtype, result.node.dtype);
            if begun != dtype {
                return call.fail(format!(
                    "the step gives {dtype} for a carry that begins as {begun}: cast one to the other"
                ));
            }
        }
        if let Some(slice) = &slice {
            // What has its own shape in each step keeps it.
            let is_whole = || inits.iter().chain(&step.outputs).all(|x| x.node.shape == *slice);
            let apart = match !step.is_elementwise(slice) && is_whole() {
                true => apart::outputs(&step).map(|outputs| step.with_outputs(outputs)).transpose()?,
                false => None,
            };
            let step = apart.as_ref().unwrap_or(&step);
            if step.is_elementwise(slice)
                && step.outputs.iter().all(|output| output.node.shape.broadcasts_to(slice))
                && let Some(own) = Loop::of(call, step, &inits, &along, slice, reverse)?
            {
                return Ok(Recurrence(Form::Kernel(own)));
            }
        }
        Ok(Recurrence(Form::Steps(Unrolled::record(call, step, &inits, along, reverse)?)))
    }

    pub(crate) fn result(&self, result: StepResult) -> Result<Tensor> {
        match &self.0 {
            Form::Kernel(own) => own.result(result),
            Form::Steps(steps) => steps.result(result),
        }
    }
}

/// What a carry begins as: a number has the shape of a step.
fn first_carry(call: Call, init: &Operand, inputs: &[&Tensor], slice: Option<&Shape>) -> Result<Tensor> {
    match (init, slice) {
        (Operand::Tensor(tensor), _) => {
            tensor.validity()?;
            Ok(tensor.clone())
        }
        (Operand::Number(number), Some(slice)) => {
            let met: Vec<Operand> = inputs.iter().map(|&x| x.into()).chain([init.clone()]).collect();
            let begun = call.constant(number.held(call, result_type(&met)?)?, ConstantRole::Argument)?;
            call.expand(&begun, slice)
        }
        (Operand::Number(_), None) => call.fail(
            "a carry that begins as a number has the shape of the elements and of the other carries together, and these do \
             not broadcast: begin with a tensor",
        ),
    }
}

impl Loop {
    /// An elementwise step, if one kernel takes all tensors that it uses.
    fn of(
        call: Call,
        step: &Step,
        inits: &[Tensor],
        along: &Along,
        slice: &Shape,
        reverse: bool,
    ) -> Result<Option<Loop>> {
        let (axis, full) = (along.axis_beside(slice.rank()), along.of_all_steps(slice));
        call.needs_addressable(&full)?;
        let inits: Vec<Tensor> = inits.iter().map(|init| call.expand(init, slice)).collect::<Result<_>>()?;
        let mut elements = along.elements(call, slice, (axis, &full))?;
        let mut trace = Trace::new(call, &step.given, axis, &full);
        for part in &step.parts {
            trace.add(part)?;
        }
        elements.append(&mut trace.elements);
        if inits.len() + elements.len() - trace.arguments > MOST_TENSORS {
            return Ok(None);
        }
        let outputs = step.outputs.iter().map(|output| trace.done[&key(output)]).collect();
        let dtypes = inits.iter().chain(&elements).map(|x| x.node.dtype).collect();
        trace.graph.set_outputs(outputs);
        let mut body = Body::new(trace.graph, inits.len(), dtypes);
        body.rules = (!trace.derived.is_empty()).then(|| Arc::new(DerivedNodes(trace.derived)) as _);
        let body = Arc::new(body);
        Ok(Some(Loop { call, axis, reverse, body, inits, elements, full }))
    }

    fn result(&self, result: StepResult) -> Result<Tensor> {
        let Loop { call, axis, reverse, ref body, ref inits, ref elements, ref full } = *self;
        let (shape, number) = match result {
            StepResult::Each(number) => (full.clone(), number),
            StepResult::Last(number) => (full.without(&[axis]), number),
        };
        let Some(dtype) = body.output(number) else { return call.fail("the step has no such result") };
        let sources: Vec<&Tensor> = inits.iter().chain(elements).collect();
        if full[axis] == 0 {
            // There are no steps: the carries stay what they were.
            let device = sources.iter().find_map(|x| x.node.device);
            let result = match (result, device) {
                (StepResult::Last(carry), Some(device)) => call.transfer(&inits[carry], device),
                (StepResult::Last(carry), None) => Ok(inits[carry].clone()),
                (StepResult::Each(_), _) => {
                    call.filled_on(device, Scalar::from_i64(dtype, 0), ConstantRole::Literal, &shape)
                }
            };
            return Ok(call.following(&result?, &sources));
        }
        call.record(Op::Recurrence { axis, reverse, body: body.clone(), result }, &sources, shape, dtype)
    }
}

/// The nodes of a body whose gradients follow from rules instead of from what they are: conversions of the first operand to its
/// own dtype.
pub(crate) struct DerivedNodes(Vec<Derived>);

/// Such a node.
pub(crate) struct Derived {
    node: NodeId,
    pub(crate) rule: Rule,
    /// The nodes that the rule says the gradients of.
    pub(crate) by: Operands,
}

impl DerivedNodes {
    /// How gradients go through a node of a body, if by a rule.
    pub(crate) fn of(body: &Body, node: NodeId) -> Option<&Derived> {
        let DerivedNodes(nodes) = body.rules.as_ref()?.downcast_ref()?;
        let at = nodes.binary_search_by_key(&node, |derived| derived.node).ok()?;
        nodes.get(at)
    }
}

/// The graph of an elementwise step, made of its parts.
struct Trace<'a> {
    call: Call,
    graph: Graph,
    done: FxHashMap<*const TensorNode, NodeId>,
    /// What is not of the step, or drawn in it: further elements of all steps.
    elements: Vec<Tensor>,
    /// How many of them are the user's numbers.
    arguments: usize,
    inputs: usize,
    derived: Vec<Derived>,
    axis: usize,
    full: &'a Shape,
}

impl<'a> Trace<'a> {
    fn new(call: Call, given: &[Tensor], axis: usize, full: &'a Shape) -> Trace<'a> {
        let (graph, done) = (Graph::default(), FxHashMap::default());
        let (elements, arguments, inputs, derived) = (Vec::new(), 0, 0, Vec::new());
        let mut trace = Trace { call, graph, done, elements, arguments, inputs, derived, axis, full };
        given.iter().for_each(|x| trace.add_input(x));
        trace
    }

    fn add_input(&mut self, x: &Tensor) {
        let id = self.graph.add(zero_dimensional(&x.node, Op::Input(self.inputs)), &[]);
        self.inputs += 1;
        self.done.insert(key(x), id);
    }

    /// What the step uses from outside: the same at every position. The formulas' own numbers, and more of the user's
    /// than a kernel takes, become part of the step.
    fn add_captured(&mut self, x: &Tensor) -> Result<()> {
        if let Some(constant) = number_of(x) {
            let is_argument = constant.role == ConstantRole::Argument;
            if !is_argument || self.arguments == MOST_ARGUMENTS {
                let literal = Op::Constant(Constant { role: ConstantRole::Literal, ..constant });
                let id = self.graph.add(zero_dimensional(&x.node, literal), &[]);
                self.done.insert(key(x), id);
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

    fn add(&mut self, Part { tensor, kind }: &Part) -> Result<()> {
        let node = &tensor.node;
        let mut rule = None;
        let (op, sources) = match *kind {
            Kind::Captured => return self.add_captured(tensor),
            Kind::Drawn(seed) => {
                // The numbers of all steps.
                let (op, shape) = (Op::Random { seed }, self.full.clone());
                self.elements.push(Tensor::record(op, &[], shape, node.dtype, node.origin, node.location));
                self.add_input(tensor);
                return Ok(());
            }
            Kind::Made => match node.state().clone() {
                State::Recorded(Recipe::Op(op), sources) => (op, sources),
                State::Recorded(Recipe::Derived(own), sources) => {
                    rule = Some(own);
                    (Op::Cast, sources)
                }
                _ => return self.call.fail("a value of a step was computed"),
            },
        };
        let (sources, by) = sources.split_at(if rule.is_some() { 1 } else { sources.len() });
        let places = |sources: &[Tensor]| sources.iter().map(|source| self.done[&key(source)]).collect();
        let (operands, by): (Operands, Operands) = (places(sources), places(by));
        let id = self.graph.add(zero_dimensional(node, op), &operands);
        self.derived.extend(rule.map(|rule| Derived { node: id, rule, by }));
        self.done.insert(key(tensor), id);
        Ok(())
    }
}

fn zero_dimensional(tensor: &TensorNode, op: Op) -> Node {
    let TensorNode { dtype, origin, location, .. } = *tensor;
    Node { op, shape: Shape::scalar(), dtype, origin, location }
}
