//! [`compile`]: a function of tensors as an object.

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, PoisonError, RwLock};

use smallvec::SmallVec;

use super::tree::{Arguments, Leaves, Tensors};
use crate::compiler::Settings;
use crate::compiler::explain::Explanation;
use crate::executor::donation::LEAST_BYTES;
use crate::executor::stages::Stages;
use crate::executor::traced::Slots;
use crate::executor::{self, settings};
use crate::inspect::program::Program;
use crate::inspect::target::Target;
use crate::recording::build::build_decomposed;
use crate::recording::{Recipe, Sources, State, Tensor};
use crate::runtime::buffer::Buffer;
use crate::tensor::arguments::call::trace;
use crate::tensor::ask::evaluate::external;
use crate::tensor::ask::evaluate::fusion;
use crate::tuned::{self, SectionId};
use crate::{DType, Device, Error, Fusion, Result, Shape, SourceLocation, compiler};

/// Executables that a function keeps, the one called least recently out first.
const MOST_EXECUTABLES: usize = 64;

/// Makes a function of tensors an object that is recorded once, not in each call: a call looks up what to run, and runs it.
/// As `jax.jit`, or `torch.compile`.
///
/// At the first call with tensors of certain shapes, dtypes and device, `f` is called with stand-ins that have no values, and
/// what it records is planned and compiled: an [`Executable`]. From then on, such calls do not call `f`. So `f` must
/// compute nothing but what follows from its inputs. Other tensors that it uses, such as weights that it has captured, are what
/// they were at that time (if they were evaluated; else they are computed in each call); so are seeds of random numbers.
/// Results are, bit by bit, those of the same operations without `compile`.
///
/// On a GPU, calls that launch several kernels become one graph, which is started again with other addresses
/// (`LAZULI_CUDA_GRAPHS=off` launches them one by one).
///
/// `f` takes a [`Tensors`] and gives another one, or a `Result` of one. A call takes [`Arguments`].
///
/// ```
/// use lazuli::{Tensor, compile};
/// let normalise = compile(|x: Tensor| (&x - x.mean_keepdim(1)) / (x.var_keepdim(1, 0) + 1e-5).sqrt());
/// let x = Tensor::rand([4, 8], 1);
/// let y = normalise.call(&x)?; // recorded, compiled and run
/// let z = normalise.call(&y)?; // run
/// assert!(z.is_evaluated());
///
/// // Several inputs, several outputs, and a state that is given away and comes back in the same memory.
/// let adam = compile(|(m, g, rate): (Tensor, Tensor, Tensor)| {
///     let m = m * 0.9 + g * 0.1;
///     let step = &m * rate;
///     (m, step)
/// });
/// let (mut m, g) = (Tensor::zeros([1000], lazuli::DType::F32), Tensor::rand([1000], 2));
/// for epoch in 0..3 {
///     let step;
///     (m, step) = adam.call((m, &g, 0.1 / (1.0 + epoch as f64)))?;
///     assert!(step.is_evaluated());
/// }
/// # Ok::<(), lazuli::Error>(())
/// ```
#[track_caller]
pub fn compile<I: Tensors, O: Traceable>(
    f: impl Fn(I) -> O + Send + Sync + 'static,
) -> Compiled<I, O::Tensors> {
    let f = move |inputs: I| f(inputs).into_result();
    Compiled { f: Box::new(f), location: SourceLocation::caller(), executables: RwLock::default() }
}

/// What a function that [`compile`] takes may return: [`Tensors`], or a `Result` of them.
///
/// ```
/// use lazuli::{Tensor, compile};
/// let halves = compile(|x: Tensor| {
///     let parts = x.chunk(2, 0)?;
///     Ok(&parts[0] * &parts[1])
/// });
/// assert_eq!(halves.call(&Tensor::from([1.0f32, 2.0, 3.0, 4.0]))?.to_vec::<f32>()?, [3.0, 8.0]);
/// # Ok::<(), lazuli::Error>(())
/// ```
pub trait Traceable {
    /// What calls give.
    type Tensors: Tensors;

    /// The tensors, or why there are none.
    ///
    /// # Errors
    /// The function's own.
    fn into_result(self) -> Result<Self::Tensors>;
}

impl<T: Tensors> Traceable for T {
    type Tensors = T;

    fn into_result(self) -> Result<T> {
        Ok(self)
    }
}

impl<T: Tensors> Traceable for Result<T> {
    type Tensors = T;

    fn into_result(self) -> Result<T> {
        self
    }
}

/// A function of tensors that is recorded once for inputs of the same shapes, dtypes and device; made by [`compile`].
///
/// ```
/// use lazuli::{Compiled, Tensor, compile};
/// struct Server {
///     predict: Compiled<Tensor, Tensor>,
/// }
/// let server = Server { predict: compile(|x: Tensor| x.softmax(-1)) };
/// std::thread::scope(|scope| {
///     for rows in 1..3 {
///         let predict = &server.predict;
///         scope.spawn(move || predict.call(Tensor::rand([rows, 10], 1)).and_then(|y| y.to_vec::<f32>()));
///     }
/// });
/// ```
pub struct Compiled<I, O> {
    f: Box<dyn Fn(I) -> Result<O> + Send + Sync>,
    location: SourceLocation,
    executables: RwLock<Vec<Executable<I, O>>>,
}

impl<I, O> fmt::Debug for Compiled<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let executables = self.executables.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Compiled").field("at", &self.location).field("executables", &*executables).finish()
    }
}

impl<I: Tensors, O: Tensors> Compiled<I, O> {
    /// The results for these inputs, computed now. On a GPU they may be under way when this returns.
    ///
    /// ```
    /// use lazuli::{Tensor, compile};
    /// let f = compile(|[x, y]: [Tensor; 2]| x.maximum(y));
    /// let (x, y) = (Tensor::from([1, 5]), Tensor::from([2, 4]));
    /// assert_eq!(f.call([&x, &y])?.to_vec::<i32>()?, [2, 5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the function itself fails with; an operation in it that does not fit, at the line where it was recorded; as
    /// [`eval`](crate::eval).
    #[track_caller]
    pub fn call(&self, inputs: impl Arguments<I>) -> Result<O> {
        let mut leaves = Leaves::default();
        inputs.into_leaves(&mut leaves);
        let executable = self.find(&leaves)?;
        executable.run(leaves, SmallVec::new())
    }

    /// As [`Compiled::call`], with results in the memory of `outputs`, where nobody else has a handle of these and they have
    /// the results' size; else in other memory.
    ///
    /// ```
    /// use lazuli::{Tensor, compile};
    /// let double = compile(|x: Tensor| x * 2.0);
    /// let mut y = double.call(&Tensor::from([1.0f32, 2.0]))?;
    /// y = double.call_into(&Tensor::from([3.0f32, 4.0]), y)?;
    /// assert_eq!(y.to_vec::<f32>()?, [6.0, 8.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Compiled::call`]; `outputs` of another structure than the function's.
    #[track_caller]
    pub fn call_into(&self, inputs: impl Arguments<I>, outputs: impl Arguments<O>) -> Result<O> {
        let (mut leaves, mut into) = (Leaves::default(), Leaves::default());
        inputs.into_leaves(&mut leaves);
        outputs.into_leaves(&mut into);
        let executable = self.find(&leaves)?;
        executable.run_into(leaves, into)
    }

    /// What calls with such inputs run: recorded and compiled now, unless it was before. The inputs' values do not matter, and
    /// are not computed.
    ///
    /// ```
    /// use lazuli::{DType, Tensor, compile};
    /// let predict = compile(|x: Tensor| x.softmax(-1));
    /// let batches = predict.executable(Tensor::zeros([32, 10], DType::F32))?; // before the first request
    /// println!("{}", batches.explain()?);
    /// assert!(batches.call(Tensor::rand([32, 10], 1)).is_ok());
    /// let error = batches.call(Tensor::rand([33, 10], 1)).unwrap_err(); // never anything else
    /// assert!(error.to_string().contains("input 0 is f32 [33, 10]"));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Compiled::call`].
    #[track_caller]
    pub fn executable(&self, inputs: impl Arguments<I>) -> Result<Executable<I, O>> {
        let mut leaves = Leaves::default();
        inputs.into_leaves(&mut leaves);
        self.find(&leaves)
    }

    #[track_caller]
    fn find(&self, leaves: &Leaves) -> Result<Executable<I, O>> {
        let location = SourceLocation::caller();
        let fusion = fusion();
        {
            let executables = self.executables.read().unwrap_or_else(PoisonError::into_inner);
            let is_it = |executable: &&Executable<I, O>| {
                executable.parts.is_for(leaves, fusion) && executable.parts.is_of_now()
            };
            let found = executables.iter().rev().find(is_it);
            if let Some(found) = found {
                return Ok(found.clone());
            }
        }
        let made = Executable::new(&self.f, leaves, fusion, self.location, location)?;
        let mut executables = self.executables.write().unwrap_or_else(PoisonError::into_inner);
        if executables.len() == MOST_EXECUTABLES {
            executables.remove(0);
        }
        executables.push(made.clone());
        Ok(made)
    }
}

/// A compiled function for inputs of certain shapes, dtypes and a device; made by [`Compiled::executable`]. Cheap to clone.
///
/// It is never recorded anew: other inputs are an error.
///
/// ```
/// use lazuli::{DType, Executable, Tensor, compile};
/// let shapes = [8, 16, 32].map(|rows| Tensor::zeros([rows, 10], DType::F32));
/// let softmax = compile(|x: Tensor| x.softmax(-1));
/// let by_size = shapes.iter().map(|x| softmax.executable(x)).collect::<lazuli::Result<Vec<Executable<_, _>>>>()?;
/// assert_eq!(format!("{:?}", by_size[0]), "Executable((f32 [8, 10]) -> (f32 [8, 10] on cpu))");
/// # Ok::<(), lazuli::Error>(())
/// ```
pub struct Executable<I, O> {
    parts: Arc<Parts>,
    signature: PhantomData<fn(I) -> O>,
}

impl<I, O> Clone for Executable<I, O> {
    fn clone(&self) -> Executable<I, O> {
        Executable { parts: self.parts.clone(), signature: PhantomData }
    }
}

impl<I, O> fmt::Debug for Executable<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |types: &mut dyn Iterator<Item = String>| types.collect::<Vec<_>>().join(", ");
        let inputs = show(&mut self.parts.inputs.iter().map(Type::to_string));
        let outputs = show(&mut self.parts.outputs.iter().map(|(ty, _, _)| ty.to_string()));
        write!(f, "Executable(({inputs}) -> ({outputs}))")
    }
}

/// What is known of a tensor before it has values.
#[derive(PartialEq, Eq)]
struct Type {
    shape: Shape,
    dtype: DType,
    /// `None` if it follows from constants alone.
    device: Option<Device>,
}

impl Type {
    fn of(tensor: &Tensor) -> Type {
        let node = &*tensor.node;
        Type { shape: node.shape.clone(), dtype: node.dtype, device: node.device }
    }

    fn is_of(&self, tensor: &Tensor) -> bool {
        let node = &*tensor.node;
        self.shape == node.shape && self.dtype == node.dtype && self.device == node.device
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.dtype, self.shape)?;
        self.device.map_or(Ok(()), |device| write!(f, " on {device}"))
    }
}

/// What an executable is, whatever Rust types its inputs and outputs are put together to.
struct Parts {
    inputs: Vec<Type>,
    structure: Vec<usize>,
    fusion: Fusion,
    tuned: Option<SectionId>,
    device: Device,
    /// The thread's when it was recorded: where tensors go that have no device.
    default_device: Device,
    stages: Stages,
    /// What the function made, and of what, if libraries make some of it: for programs that are to run where there are none.
    recorded: Option<(Vec<Tensor>, Vec<Tensor>)>,
    /// With the name and place of the operation that made each.
    outputs: Vec<(Type, &'static str, SourceLocation)>,
    output_structure: Vec<usize>,
    compiled_at: SourceLocation,
}

impl Parts {
    fn is_for(&self, leaves: &Leaves, fusion: Fusion) -> bool {
        self.inputs.len() == leaves.tensors.len()
            && self.fusion == fusion
            && self.structure[..] == leaves.structure[..]
            && self.inputs.iter().zip(&leaves.tensors).all(|(ty, tensor)| ty.is_of(tensor))
    }

    /// Whether it would be the same, recorded now: with the thread's default device and the schedules that are in force.
    fn is_of_now(&self) -> bool {
        self.default_device == Device::default() && self.tuned == tuned::in_force(self.device)
    }

    /// Why inputs are not those that it was made for.
    fn misfit(&self, leaves: &Leaves) -> Option<String> {
        let (own, given) = (self.inputs.len(), leaves.tensors.len());
        if own != given {
            return Some(format!("{given} tensors are given, and {own} were when the function was recorded"));
        }
        if self.structure[..] != leaves.structure[..] {
            return Some(
                "lengths, options or switches are others than when the function was recorded".into(),
            );
        }
        let mut inputs = self.inputs.iter().zip(&leaves.tensors).enumerate();
        inputs.find(|(_, (ty, tensor))| !ty.is_of(tensor)).map(|(number, (ty, tensor))| {
            format!("input {number} is {}, and was {ty} when the function was recorded", Type::of(tensor))
        })
    }

    /// Runs it in the memory of `given`, where that is whose turn it is.
    fn run(&self, leaves: Leaves, into: SmallVec<[Option<Buffer>; 4]>) -> Result<Leaves> {
        let Leaves { tensors, .. } = leaves;
        let mut inputs: SmallVec<[Buffer; 8]> = SmallVec::new();
        let mut given = Slots::new();
        if !tensors.iter().all(Tensor::is_evaluated) {
            executor::evaluate(&tensors, self.fusion)?;
        }
        for (slot, tensor) in tensors.into_iter().enumerate() {
            let mut buffer = tensor.buffer()?;
            // No other handle, and what follows from it was computed: nobody can come to have one.
            let is_last = Arc::strong_count(&tensor.node) == 1;
            let is_donated = tensor.node.is_donated.load(Ordering::Relaxed);
            drop(tensor);
            if !self.stages.backend().holds(&buffer) {
                buffer = self.stages.backend().import(&buffer)?;
            } else if is_last && (is_donated || buffer.bytes() >= LEAST_BYTES) && buffer.owners() == 1 {
                given.push(slot);
            }
            inputs.push(buffer);
        }
        // What others did with the values, before they let go of them, comes before what is done now.
        fence(Ordering::Acquire);
        let results = self.stages.run(inputs, &given, into)?;
        let tensors = results.into_iter().zip(&self.outputs).map(|(buffer, (ty, origin, location))| {
            Tensor::from_buffer(buffer, ty.shape.clone(), ty.dtype, self.device, origin, *location)
        });
        Ok(Leaves::new(tensors, self.output_structure.iter().copied()))
    }
}

impl<I: Tensors, O: Tensors> Executable<I, O> {
    /// The results for these inputs, as [`Compiled::call`].
    ///
    /// ```
    /// use lazuli::{Tensor, compile};
    /// let x = Tensor::from([3.0f32, 4.0]);
    /// let norm = compile(|x: Tensor| x.square().sum(..).sqrt()).executable(&x)?;
    /// assert_eq!(norm.call(&x)?.item::<f32>()?, 5.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// Inputs of another number, shape, dtype or device; as [`eval`](crate::eval).
    #[track_caller]
    pub fn call(&self, inputs: impl Arguments<I>) -> Result<O> {
        self.run(self.checked(inputs)?, SmallVec::new())
    }

    /// As [`Executable::call`], with results in the memory of `outputs`; see [`Compiled::call_into`].
    ///
    /// ```
    /// use lazuli::{Tensor, compile};
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// let half = compile(|x: Tensor| (&x / 2.0, x.sum(..))).executable(&x)?;
    /// let mut results = half.call(&x)?;
    /// results = half.call_into(&x, results)?;
    /// assert_eq!(results.0.to_vec::<f32>()?, [0.5, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Executable::call`]; `outputs` of another structure than the function's.
    #[track_caller]
    pub fn call_into(&self, inputs: impl Arguments<I>, outputs: impl Arguments<O>) -> Result<O> {
        let mut into = Leaves::default();
        outputs.into_leaves(&mut into);
        self.run_into(self.checked(inputs)?, into)
    }

    /// Where it runs.
    ///
    /// ```
    /// use lazuli::{Device, Tensor, compile};
    /// let f = compile(|x: Tensor| x.exp());
    /// let x = Tensor::from([0.0f32]).to(&Device::interpreter());
    /// assert_eq!(f.executable(&x)?.device(), Device::interpreter());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn device(&self) -> Device {
        self.parts.device
    }

    /// The kernels that calls run, and why.
    ///
    /// ```
    /// use lazuli::{DType, Tensor, compile};
    /// let f = compile(|x: Tensor| (x.exp() * 2.0).sum(1));
    /// let plan = f.executable(Tensor::zeros([10, 100], DType::F32))?.explain()?;
    /// assert_eq!((plan.kernels(), plan.unfused_kernels()), (1, 3));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// An unavailable device.
    pub fn explain(&self) -> Result<Explanation> {
        let settings =
            Settings { tuned: self.parts.tuned, ..settings::of(self.parts.device, self.parts.fusion) };
        let plan = compiler::plan(self.parts.stages.graph(), settings)?;
        Ok(Explanation::of(&plan).after(self.parts.stages.made_before().filter_map(external).collect()))
    }

    /// The kernels for a target, without a device; as [`compile_for`](crate::compile_for).
    ///
    /// ```
    /// use lazuli::{DType, Target, Tensor, compile};
    /// let f = compile(|x: Tensor| x.relu());
    /// let program = f.executable(Tensor::zeros([1000], DType::F32))?.compile_for(&Target::cuda("sm_90"))?;
    /// assert!(program.source().contains("__global__ void"));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// Kernels that no schedule can run there; [`Unavailable`](crate::Error::Unavailable) for an architecture that is none.
    pub fn compile_for(&self, target: &Target) -> Result<Program> {
        target.check()?;
        let settings = target.settings(self.parts.fusion);
        let plan = match &self.parts.recorded {
            Some((results, stand_ins)) if *target != Target::cpu() => {
                compiler::plan(&build_decomposed(results, stand_ins)?.graph, settings)?
            }
            _ => compiler::plan(self.parts.stages.graph(), settings)?,
        };
        Ok(Program::new(plan, target.clone()))
    }

    #[track_caller]
    fn checked(&self, inputs: impl Arguments<I>) -> Result<Leaves> {
        let location = SourceLocation::caller();
        let mut leaves = Leaves::default();
        inputs.into_leaves(&mut leaves);
        if self.parts.is_for(&leaves, self.parts.fusion) {
            return Ok(leaves);
        }
        leaves.tensors.iter().try_for_each(Tensor::validity)?;
        let message = self.parts.misfit(&leaves).unwrap_or_default();
        let message = format!("{message} (compile, at {})", self.parts.compiled_at);
        Err(Error::InvalidOperation { op: "call", message, location })
    }

    fn run(&self, leaves: Leaves, into: SmallVec<[Option<Buffer>; 4]>) -> Result<O> {
        let mut results = self.parts.run(leaves, into)?;
        Ok(O::from_leaves(&mut results))
    }

    #[track_caller]
    fn run_into(&self, leaves: Leaves, into: Leaves) -> Result<O> {
        let (own, given) = (self.parts.outputs.len(), into.tensors.len());
        if own != given || self.parts.output_structure[..] != into.structure[..] {
            let message = format!(
                "the function has {own} results, and memory is given for {given} or of another structure"
            );
            return Err(Error::InvalidOperation {
                op: "call_into",
                message,
                location: SourceLocation::caller(),
            });
        }
        let backend = self.parts.stages.backend();
        let memory = |tensor: Tensor| {
            let is_last = tensor.is_evaluated() && Arc::strong_count(&tensor.node) == 1;
            let buffer = tensor.buffer().ok()?;
            drop(tensor);
            (is_last && buffer.owners() == 1 && backend.holds(&buffer)).then_some(buffer)
        };
        let into = into.tensors.into_iter().map(memory).collect();
        self.run(leaves, into)
    }

    /// Records the function.
    fn new(
        f: &(dyn Fn(I) -> Result<O> + Send + Sync),
        leaves: &Leaves,
        fusion: Fusion,
        compiled_at: SourceLocation,
        called_at: SourceLocation,
    ) -> Result<Executable<I, O>> {
        leaves.tensors.iter().try_for_each(Tensor::validity)?;
        let inputs: Vec<Type> = leaves.tensors.iter().map(Type::of).collect();
        let stand_in = |ty: &Type| {
            let state = State::Recorded(Recipe::CallInput, Sources::new());
            Tensor::from_parts(ty.shape.clone(), ty.dtype, ty.device, "compile", called_at, state)
        };
        let stand_ins: Vec<Tensor> = inputs.iter().map(stand_in).collect();
        let mut given = Leaves::new(stand_ins.iter().cloned(), leaves.structure.iter().copied());
        let arguments = I::from_leaves(&mut given);
        given.check()?;
        let mut results = Leaves::default();
        trace(|| f(arguments))?.to_leaves(&mut results);
        results.tensors.iter().try_for_each(Tensor::validity)?;
        let devices = results.tensors.iter().chain(&leaves.tensors);
        let device = devices.filter_map(|tensor| tensor.node.device).next().unwrap_or_default();
        let elsewhere = |tensor: &&Tensor| tensor.node.device.is_some_and(|other| other != device);
        if let Some(other) = results.tensors.iter().find(elsewhere) {
            let other = other.device()?;
            let message = format!("results on {device} and on {other} are not one function's; compile two");
            return Err(Error::InvalidOperation { op: "compile", message, location: compiled_at });
        }
        let stages = Stages::new(&results.tensors, &stand_ins, device, fusion)?;
        let is_made = stages.made_before().next().is_some();
        let output = |tensor: &Tensor| {
            let ty = Type { device: Some(device), ..Type::of(tensor) };
            (ty, tensor.node.origin, tensor.node.location)
        };
        let parts = Parts {
            inputs,
            structure: leaves.structure.to_vec(),
            fusion,
            tuned: tuned::in_force(device),
            device,
            default_device: Device::default(),
            recorded: is_made.then(|| (results.tensors.to_vec(), stand_ins)),
            stages,
            outputs: results.tensors.iter().map(output).collect(),
            output_structure: results.structure.to_vec(),
            compiled_at,
        };
        Ok(Executable { parts: Arc::new(parts), signature: PhantomData })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(tensor: &Tensor) -> usize {
        tensor.buffer().unwrap().pointer() as usize
    }

    #[test]
    fn results_are_in_the_memory_that_is_given() {
        let f = compile(|x: Tensor| (&x * 2.0, x.sum(0)));
        let x = Tensor::from_vec((0..1000).map(|n| n as f32).collect(), [1000]);
        let (mut y, mut sum) = f.call(&x).unwrap();
        let (first, second) = (address(&y), address(&sum));
        for _ in 0..3 {
            // Whatever is free in the pool.
            let between = [Tensor::from_vec(vec![0.0f32; 1000], [1000]), Tensor::from_vec(vec![0.0f32], [1])];
            (y, sum) = f.call_into(&x, (y, sum)).unwrap();
            assert_eq!((address(&y), address(&sum)), (first, second));
            assert_eq!(between[0].to_vec::<f32>().unwrap(), [0.0; 1000]);
        }
        // Not in that of a tensor that somebody holds, and not where there is no room.
        let held = y.clone();
        let (other, larger) = f.call_into(&x, (y, Tensor::from_vec(vec![7.0f32; 3], [3]))).unwrap();
        assert_ne!(address(&other), address(&held));
        assert_eq!(held.to_vec::<f32>().unwrap(), other.to_vec::<f32>().unwrap());
        assert_eq!(larger.item::<f32>().unwrap(), 499_500.0);
        // Nor in that of an input.
        let output = f.call_into(&other, (&other, &sum)).unwrap().0;
        assert_ne!(address(&output), address(&other));
        assert_eq!(other.to_vec::<f32>().unwrap()[1], 2.0);
    }
}
