//! The handle: a [`Tensor`] is either data or a recipe for it.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use smallvec::SmallVec;

use super::loan::Loan;
use super::origins::Origins;
use crate::graph::infer;
use crate::graph::op::{Constant, Op};
use crate::runtime::buffer::Buffer;
use crate::runtime::routine::Invocation;
use crate::{BinaryOp, DType, Device, Error, Result, Shape, SourceLocation};

/// A lazily evaluated n-dimensional array: operations on it are recorded, and nothing runs until
/// values are asked for ([`Tensor::to_vec`], [`Tensor::item`], [`Tensor::eval`], [`eval`](crate::eval)).
///
/// A cheap handle: cloning shares. Recording never fails; an operation that does not fit makes an
/// invalid tensor, whose error is returned by whatever asks it a question.
///
/// Operations take other tensors by value or by reference (`impl AsRef<Tensor>`, or [`Operand`](crate::Operand) where a
/// number may stand too), and lists of them as arrays, slices or vectors of either. What is optional is an `Option<&Tensor>`.
///
/// ```
/// use lazuli::Tensor;
/// let x = Tensor::from_vec(vec![-1.0f32, 2.0, 3.0], [3]);
/// let y = x.relu() * 2.0;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 4.0, 6.0]);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "operations are only recorded: nothing happens until values are asked for"]
pub struct Tensor {
    pub(crate) node: Arc<TensorNode>,
}

/// What all handles of one tensor share.
pub(crate) struct TensorNode {
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    /// Where it is or will be computed; `None` if it follows from constants alone and can be anywhere.
    pub(crate) device: Option<Device>,
    pub(crate) origin: &'static str,
    pub(crate) location: SourceLocation,
    /// Whether it is made of values of a scan's step, so that it has values only there.
    pub(crate) is_of_step: bool,
    /// Whether it was recorded from floats that were data, or that follow from such.
    pub(crate) is_of_floats: bool,
    /// When it was recorded: after all that it follows from, and what this thread has recorded before.
    pub(crate) time: u64,
    /// Whether its user has given the values up, however few they are.
    pub(crate) is_donated: AtomicBool,
    /// Which evaluation has computed it first, on the way to others if its values are not there; 0 if none has.
    pub(crate) computed_in: AtomicU64,
    /// What it was met as, of those who look for tensors one after the other (`numbers`).
    pub(super) mark: AtomicU64,
    /// Whether the state is, or is about to be, an error: every operation asks for that.
    is_invalid: AtomicBool,
    state: Mutex<State>,
}

/// How a tensor's values are to be had.
#[derive(Clone)]
pub(crate) enum State {
    /// Recorded with arguments that do not fit.
    Invalid(Error),
    /// To be computed.
    Recorded(Recipe, Sources),
    /// Computed, or given by the user. Of what was computed without the user's asking for that alone, there may be what
    /// gradients need of its history.
    Evaluated(Buffer, Option<Arc<Past>>),
    /// The values are being overwritten, by the evaluation of the only ones who knew them.
    Lent(Arc<Loan>),
}

/// What is left of a computed tensor's history.
pub(crate) enum Past {
    /// As it was recorded. The generation says how many computed tensors with histories lie behind each other.
    Recorded { recipe: Recipe, sources: Sources, generation: u32 },
    /// It was let go of. What it followed from by floats alone, as far as there are handles.
    Origins(Origins<TensorNode>),
}

/// What to do with the sources.
#[derive(Clone, Debug)]
pub(crate) enum Recipe {
    /// A graph operation, on the tensor's device. An elementwise one reads its sources broadcast to the tensor's shape, and
    /// what is reduced may keep its axes with extent 1: the views of the graph that do so are not recorded.
    Op(Op),
    /// A graph operation on the source and a number, broadcast to it, which is the first or the second operand: no tensor is
    /// recorded for the number.
    WithNumber { op: BinaryOp, number: Constant, is_first: bool },
    /// A number at every position: a constant and its expansion in the graph, for half of what it takes to record these.
    Filled(Constant),
    /// The one source's elements, on this tensor's device.
    Transfer,
    /// The first source, which gradients do not go through: the rule says how they reach the others.
    Derived(Rule),
    /// The sources' elements after each other along an axis, copied: all of them are computed before.
    Join { axis: usize },
    /// The sum of the sources, each of which is computed and added to those before by a kernel of its own.
    Total,
    /// One of the results that a library makes of the sources' matrices, which are computed before.
    Routine { invocation: Arc<Invocation>, number: usize, decomposition: Arc<Decomposition> },
    /// What a scan's step gets: it stands for the value of any position.
    StepValue,
    /// What a function gets while it is traced: it stands for the input of any call.
    CallInput,
    /// It stands for data of its shape and dtype, for who looks at kernels and runs none.
    Placeholder,
}

pub(crate) type Sources = SmallVec<[Tensor; 3]>;

/// The operations that make a routine's results where no library does: recorded when they are asked for.
pub(crate) struct Decomposition {
    record: Arc<DecompositionFn>,
    recorded: OnceLock<Result<Results>>,
}

type DecompositionFn = dyn Fn(&[Tensor]) -> Result<Results> + Send + Sync;

/// Of a routine.
pub(crate) type Results = SmallVec<[Tensor; 3]>;

impl Decomposition {
    pub(crate) fn new(
        record: impl Fn(&[Tensor]) -> Result<Results> + Send + Sync + 'static,
    ) -> Decomposition {
        Decomposition { record: Arc::new(record), recorded: OnceLock::new() }
    }

    /// The same of other sources.
    pub(crate) fn again(&self) -> Decomposition {
        Decomposition { record: self.record.clone(), recorded: OnceLock::new() }
    }

    /// One of the results, of a routine's sources.
    pub(crate) fn result(&self, number: usize, sources: &[Tensor]) -> Result<Tensor> {
        let results = self.recorded.get_or_init(|| (self.record)(sources)).as_ref().map_err(Error::clone)?;
        let result = results.get(number).cloned();
        result.ok_or_else(|| Error::internal("graph building", "a routine has not so many results"))
    }
}

impl fmt::Debug for Decomposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Decomposition")
    }
}

/// What reaches the sources but the first, of what reaches the result and of all sources.
#[derive(Clone)]
pub(crate) struct Rule(pub(crate) Arc<RuleFn>);

type RuleFn = dyn Fn(&Tensor, &[Tensor]) -> Result<Vec<Tensor>> + Send + Sync;

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rule")
    }
}

impl Recipe {
    /// Whether a library makes it.
    pub(crate) fn is_routine(&self) -> bool {
        matches!(self, Recipe::Routine { .. })
    }

    /// Whether no kernel makes it, but a copy of what is computed before, not that of constants, which are anywhere; several; or a library.
    pub(crate) fn is_external(&self, sources: &Sources) -> bool {
        match self {
            Recipe::Transfer => sources.iter().all(|source| source.node.device.is_some()),
            Recipe::Join { .. } | Recipe::Total | Recipe::Routine { .. } => true,
            Recipe::Op(_)
            | Recipe::WithNumber { .. }
            | Recipe::Derived(_)
            | Recipe::Filled(_)
            | Recipe::StepValue
            | Recipe::CallInput
            | Recipe::Placeholder => false,
        }
    }
}

/// The shape in the graph of a reduction whose axes stay, with extent 1.
pub(super) fn reduced_shape(op: &Op, source: &Shape, shape: &Shape) -> Option<Shape> {
    match op {
        Op::Reduce { axes, .. } if shape.rank() == source.rank() => Some(shape.without(axes)),
        _ => None,
    }
}

/// Whether offsets, strides and bytes of such a tensor fit an `i64`, whatever its dtype. Extents of 0 count
/// as 1, as they do in [`Shape::strides`].
pub(crate) fn is_addressable(shape: &[usize]) -> bool {
    let elements = shape.iter().try_fold(1usize, |elements, &extent| elements.checked_mul(extent.max(1)));
    elements.is_some_and(|elements| elements <= i64::MAX as usize / 16)
}

/// The device of what is computed on this one and of another operand; an error if they are on two.
pub(crate) fn together(device: Option<Device>, operand: &Tensor) -> Result<Option<Device>, String> {
    match (device, operand.node.device) {
        (Some(a), Some(b)) if a != b => {
            Err(format!("operands are on {a} and {b}; move one with .to(&device)"))
        }
        (None, own) => Ok(own),
        (Some(_), _) => Ok(device),
    }
}

impl TensorNode {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// From now on the tensor stands for an error.
    pub(crate) fn fail(&self, error: Error) {
        self.is_invalid.store(true, Ordering::Release);
        *self.state() = State::Invalid(error);
    }
}

impl Drop for TensorNode {
    /// Lets go of the history with a loop: a chain of a million operations must not recurse.
    fn drop(&mut self) {
        let mut orphans = Sources::new();
        move_sources(&mut self.state, &mut orphans);
        while let Some(source) = orphans.pop() {
            let mut source = source.node;
            // Where it is, if nobody else lets go of it at this moment: there is much to move.
            match Arc::get_mut(&mut source) {
                Some(node) => {
                    move_sources(&mut node.state, &mut orphans);
                    node.state = Mutex::new(State::Recorded(Recipe::StepValue, Sources::new()));
                    keep(source);
                }
                None => {
                    if let Some(mut node) = Arc::into_inner(source) {
                        move_sources(&mut node.state, &mut orphans);
                    }
                }
            }
        }
    }
}

/// How many nodes a thread keeps: those of a history such as a small model's, 300 KB.
const MOST_SPARE: usize = 1024;

thread_local! {
    /// When this thread has recorded last (Lamport, "Time, clocks, and the ordering of events in a distributed system", 1978).
    static LAST: Cell<u64> = const { Cell::new(0) };
    /// Nodes that nobody has any more, without what they held. Recording and dropping a history would take a third longer with
    /// an allocation for each node.
    static SPARE: Cell<Vec<Arc<TensorNode>>> = const { Cell::new(Vec::new()) };
}

/// Keeps a node that nobody else has.
fn keep(node: Arc<TensorNode>) {
    let mut node = Some(node);
    // A thread that ends keeps none.
    let _ = SPARE.try_with(|cell| {
        let mut spare = cell.take();
        if spare.len() < MOST_SPARE {
            spare.extend(node.take());
        }
        cell.set(spare);
    });
}

/// The node where it stays: in the place of one that was kept, if there is one.
fn placed(node: TensorNode) -> Arc<TensorNode> {
    let spare = SPARE.try_with(|cell| {
        let mut spare = cell.take();
        let last = spare.pop();
        cell.set(spare);
        last
    });
    if let Ok(Some(mut spare)) = spare
        && let Some(place) = Arc::get_mut(&mut spare)
    {
        *place = node;
        return spare;
    }
    Arc::new(node)
}

/// Moves what a node holds to the others.
#[inline(always)]
fn move_sources(state: &mut Mutex<State>, orphans: &mut Sources) {
    let state = state.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
    match state {
        State::Recorded(_, sources) => move_all(sources, orphans),
        State::Evaluated(_, past @ Some(_)) => {
            if let Some(Past::Recorded { mut sources, .. }) = past.take().and_then(Arc::into_inner) {
                move_all(&mut sources, orphans);
            }
        }
        State::Invalid(_) | State::Evaluated(_, None) | State::Lent(_) => {}
    }
}

#[inline(always)]
fn move_all(sources: &mut Sources, orphans: &mut Sources) {
    while let Some(source) = sources.pop() {
        orphans.push(source);
    }
}

impl Tensor {
    /// Records `op`; an invalid tensor if a source is invalid (its first error is passed on), if the
    /// sources are on different devices, or if the types do not fit.
    pub(crate) fn record(
        op: Op,
        sources: &[&Tensor],
        shape: Shape,
        dtype: DType,
        origin: &'static str,
        location: SourceLocation,
    ) -> Tensor {
        match Tensor::checked(&op, sources, &shape, dtype, origin, location) {
            Err(error) => Tensor::invalid(error),
            Ok(device) => {
                let mut own = Sources::new();
                sources.iter().for_each(|&source| own.push(source.clone()));
                let state = State::Recorded(Recipe::Op(op), own);
                Tensor::from_parts(shape, dtype, device, origin, location, state)
            }
        }
    }

    fn checked(
        op: &Op,
        sources: &[&Tensor],
        shape: &Shape,
        dtype: DType,
        origin: &'static str,
        location: SourceLocation,
    ) -> Result<Option<Device>> {
        let invalid = |message: String| Error::InvalidOperation { op: origin, message, location };
        let is_elementwise = op.is_elementwise();
        let mut device: Option<Device> = None;
        let mut types = SmallVec::<[infer::Type; 3]>::new();
        for source in sources {
            source.validity()?;
            let own = &source.node.shape;
            let is_broadcast = is_elementwise && own != shape && own.broadcasts_to(shape);
            types.push((if is_broadcast { shape } else { own }, source.node.dtype));
            device = together(device, source).map_err(invalid)?;
        }
        if !is_addressable(shape) {
            return Err(invalid(format!("shape {shape} has more elements than can be addressed")));
        }
        let reduced = sources.first().and_then(|source| reduced_shape(op, &source.node.shape, shape));
        infer::check(op, &types, (reduced.as_ref().unwrap_or(shape), dtype)).map_err(invalid)?;
        Ok(device)
    }

    /// A tensor that stands for an error.
    pub(crate) fn invalid(error: Error) -> Tensor {
        let location = match &error {
            Error::InvalidOperation { location, .. } => *location,
            _ => SourceLocation { file: "", line: 0, column: 0 },
        };
        Tensor::from_parts(Shape::scalar(), DType::F32, None, "invalid", location, State::Invalid(error))
    }

    /// A tensor with data.
    pub(crate) fn from_buffer(
        buffer: Buffer,
        shape: Shape,
        dtype: DType,
        device: Device,
        origin: &'static str,
        location: SourceLocation,
    ) -> Tensor {
        buffer.hold(origin, location);
        Tensor::from_parts(shape, dtype, Some(device), origin, location, State::Evaluated(buffer, None))
    }

    /// Inlined, so that the parts are written where they stay.
    #[inline(always)]
    pub(crate) fn from_parts(
        shape: Shape,
        dtype: DType,
        device: Option<Device>,
        origin: &'static str,
        location: SourceLocation,
        state: State,
    ) -> Tensor {
        let (mut is_of_step, mut is_of_floats, mut time) = (false, false, LAST.get());
        if let State::Recorded(recipe, sources) = &state {
            is_of_step = matches!(recipe, Recipe::StepValue);
            for source in sources {
                is_of_step |= source.node.is_of_step;
                // What has a device is no constant; of what is evaluated anywhere only the state knows.
                is_of_floats |= source.node.dtype.is_float()
                    && (source.node.is_of_floats || source.node.device.is_some() || source.is_evaluated());
                time = time.max(source.node.time);
            }
        }
        time += 1;
        LAST.set(time);
        let is_invalid = AtomicBool::new(matches!(state, State::Invalid(_)));
        let state = Mutex::new(state);
        let is_donated = AtomicBool::new(false);
        Tensor {
            node: placed(TensorNode {
                shape,
                dtype,
                device,
                origin,
                location,
                is_of_step,
                is_of_floats,
                time,
                is_donated,
                computed_in: AtomicU64::new(0),
                mark: AtomicU64::new(0),
                is_invalid,
                state,
            }),
        }
    }

    /// The tensor, or one that stands for the error.
    pub(crate) fn or_invalid(result: Result<Tensor>) -> Tensor {
        result.unwrap_or_else(Tensor::invalid)
    }

    /// Shape and dtype of a valid tensor.
    pub(crate) fn known(&self) -> Result<(&Shape, DType)> {
        self.validity().map(|()| (&self.node.shape, self.node.dtype))
    }

    /// The error, if this tensor stands for one.
    #[inline]
    pub(crate) fn validity(&self) -> Result<()> {
        if self.node.is_invalid.load(Ordering::Acquire) { self.error() } else { Ok(()) }
    }

    #[cold]
    fn error(&self) -> Result<()> {
        match &*self.node.state() {
            State::Invalid(error) => Err(error.clone()),
            State::Recorded(..) | State::Evaluated(..) | State::Lent(_) => Ok(()),
        }
    }

    /// The extents.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let (x, y) = (Tensor::ones([2, 1], DType::F32), Tensor::ones([3], DType::F32));
    /// assert_eq!((&x + y).shape()?, Shape::from([2, 3]));
    /// assert!((x.reshape([7]) + 1.0).shape().unwrap_err().to_string().starts_with("reshape: "));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error in its history, if the tensor is invalid.
    pub fn shape(&self) -> Result<Shape> {
        self.validity().map(|()| self.node.shape.clone())
    }

    /// The element type.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::from_slice(&[1u8, 2], [2]);
    /// assert_eq!((&x + 1).dtype()?, DType::U8);
    /// assert_eq!((&x + 0.5).dtype()?, DType::F32);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error in its history, if the tensor is invalid.
    pub fn dtype(&self) -> Result<DType> {
        self.validity().map(|()| self.node.dtype)
    }

    /// Where the tensor is or will be computed. What follows from constants alone, such as ones or random numbers, is nowhere
    /// in particular: it goes with what it is used beside, and alone to the thread's [default device](Device::set_default).
    ///
    /// ```
    /// use lazuli::{Device, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [2]);
    /// assert_eq!(x.device()?, Device::cpu());
    /// assert_eq!((x.to(&Device::cuda(0)) + 1.0).device()?, Device::cuda(0)); // recorded, with or without a GPU
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error in its history, if the tensor is invalid.
    pub fn device(&self) -> Result<Device> {
        self.validity().map(|()| self.node.device.unwrap_or_default())
    }

    /// Whether the values are there already.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-1.0f32, 2.0], [2]);
    /// let y = x.relu();
    /// assert!(x.is_evaluated() && !y.is_evaluated());
    /// y.to_vec::<f32>()?;
    /// assert!(y.is_evaluated());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn is_evaluated(&self) -> bool {
        matches!(&*self.node.state(), State::Evaluated(..))
    }
}
