//! Questions that need values or kernels: the only places where anything runs or is compiled.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use crate::compiler;
use crate::compiler::explain::{Explanation, bytes};
use crate::executor::{self, settings};
use crate::inspect::program::Program;
use crate::inspect::target::Target;
use crate::recording::build::{build_decomposed, build_inspected};
use crate::recording::{Recipe, State, Tensor, TensorNode};
use crate::runtime::buffer::Buffer;
use crate::tensor::arguments::element::{self, Element};
use crate::{Device, Error, Fusion, Result, SourceLocation};

thread_local! {
    static FUSION: Cell<Option<Fusion>> = const { Cell::new(None) };
}

/// Evaluates, explains and compiles with the given fusion while `f` runs on this thread.
///
/// ```
/// use lazuli::{Fusion, Tensor};
/// let y = (Tensor::from_vec(vec![0.5f32; 8], [8]) + 1.0).exp();
/// let unfused = lazuli::with_fusion(Fusion::Off, || y.explain())?;
/// assert_eq!((unfused.kernels(), y.explain()?.kernels()), (2, 1));
/// # Ok::<(), lazuli::Error>(())
/// ```
pub fn with_fusion<T>(fusion: Fusion, f: impl FnOnce() -> T) -> T {
    /// Restores the setting also if `f` panics.
    struct Restore(Option<Fusion>);
    impl Drop for Restore {
        fn drop(&mut self) {
            FUSION.set(self.0);
        }
    }
    let _restore = Restore(FUSION.replace(Some(fusion)));
    f()
}

/// The fusion in force: set by [`with_fusion`], else by the scope's settings, else by `LAZULI_FUSION=off`, else on.
pub(crate) fn fusion() -> Fusion {
    let set = || if crate::settings::is_fused() { Fusion::On } else { Fusion::Off };
    FUSION.get().unwrap_or_else(set)
}

/// Computes several tensors in one plan, so that they share work and kernels. Those that are computed
/// already cost nothing.
///
/// ```
/// use lazuli::Tensor;
/// let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0], [3]);
/// let (sum, product) = (x.sum(..), x.prod(..));
/// lazuli::eval([&sum, &product])?;
/// assert_eq!((sum.item::<f32>()?, product.item::<f32>()?), (6.0, 6.0));
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// # Errors
/// The first error in the tensors' histories; an unavailable device or compiler; out of memory; on the CPU, an
/// [`IndexOutOfRange`](crate::Error::IndexOutOfRange).
pub fn eval<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<()> {
    let tensors: Vec<Tensor> = tensors.into_iter().cloned().collect();
    executor::evaluate_to_data(&tensors, fusion())
}

impl Tensor {
    /// Computes the values, if they are not there yet. The tensor keeps them and lets go of its history: it is data, a constant for
    /// [gradients](crate::grad). What lies on the way keeps its values too, if an evaluation has computed it before and there is
    /// a handle of it, unless it is larger than 1 MiB and than all that the evaluation reads or gives.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::ones([3], DType::F32) + 1.0;
    /// x.eval()?;
    /// assert!(x.is_evaluated());
    /// let error = x.reshape([7]).eval().unwrap_err();
    /// assert!(error.to_string().starts_with("reshape: shape [3] has 3 elements, but [7] takes 7, at "));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`eval`].
    pub fn eval(&self) -> Result<()> {
        executor::evaluate_to_data(std::slice::from_ref(self), fusion())
    }

    /// The values, row-major, computed if they are not there yet.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0i32, 6, 1).reshape([2, 3]);
    /// assert_eq!(x.t().to_vec::<i32>()?, [0, 3, 1, 4, 2, 5]);
    /// assert!(x.to_vec::<f32>().is_err()); // no silent conversion: x.cast(DType::F32) says it
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`eval`]; if `T` is not the tensor's dtype; an index out of range that a GPU has met meanwhile.
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.elements("to_vec", SourceLocation::caller())
    }

    fn elements<T: Element>(&self, op: &'static str, location: SourceLocation) -> Result<Vec<T>> {
        let (shape, dtype) = self.known()?;
        if dtype != T::DTYPE {
            let message =
                format!("the tensor is {dtype} {shape}, not {}; convert it with .cast(DType::...)", T::DTYPE);
            return Err(Error::InvalidOperation { op, message, location });
        }
        self.compute()?;
        element::from_bytes(self.buffer()?.to_host()?.as_slice())
    }

    /// The one value of a tensor with one element.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_vec(vec![2.0f32, 4.0], [2]).mean(..).item::<f32>()?, 3.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::to_vec`]; if there is not exactly one element.
    #[track_caller]
    pub fn item<T: Element>(&self) -> Result<T> {
        let location = SourceLocation::caller();
        let shape = self.shape()?;
        let several = || Error::InvalidOperation {
            op: "item",
            message: format!("shape {shape} has {} elements, not one; use to_vec", shape.elements()),
            location,
        };
        if shape.elements() != 1 {
            return Err(several());
        }
        self.elements::<T>("item", location)?.first().copied().ok_or_else(several)
    }

    /// The kernels that evaluation would run, and why. Runs nothing.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_vec(vec![0.0f32; 1000], [10, 100]);
    /// let plan = (x.exp() * 2.0).sum(1).explain()?;
    /// assert_eq!((plan.kernels(), plan.unfused_kernels()), (1, 3));
    /// println!("{plan}");
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error in the tensor's history.
    pub fn explain(&self) -> Result<Explanation> {
        explain([self])
    }

    /// The kernels for a target, without a device: nothing runs, and no GPU is needed. Nor is data: see [`Tensor::placeholder`].
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let x = Tensor::from_vec(vec![0.0f32; 1000], [1000]);
    /// let program = x.relu().compile_for(&Target::cpu())?;
    /// assert!(program.source().contains("void relu_f32"));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error in the tensor's history; [`Unavailable`](crate::Error::Unavailable) for an architecture that is none.
    pub fn compile_for(&self, target: &Target) -> Result<Program> {
        compile_for([self], target)
    }

    /// Gives the values up: a result may be written over them when they are read for the last time, in place, as if the
    /// two were one variable.
    ///
    /// That happens only if nobody else can ask for the values: no other handle of this tensor is left, and no tensor that
    /// is still to be computed from it, but those that the evaluation computes. Results of a megabyte and more are written
    /// over such tensors without being told, where all handles were dropped or moved into operators; `donate` does it for
    /// fewer values too, which is worth a kernel of its own if it is done again and again.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let mut average = Tensor::from_vec(vec![0.0f32; 1000], [1000]);
    /// for _ in 0..3 {
    ///     let value = Tensor::from_vec(vec![8.0f32; 1000], [1000]);
    ///     average = average.donate() * 0.5 + value * 0.5;
    ///     average.eval()?; // in the memory of the average before
    /// }
    /// assert_eq!(average.to_vec::<f32>()?[0], 7.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn donate(self) -> Tensor {
        self.node.is_donated.store(true, Ordering::Relaxed);
        self
    }

    /// Computes the values, for who wants to see them: the tensor becomes no constant for gradients.
    pub(crate) fn compute(&self) -> Result<()> {
        executor::evaluate(std::slice::from_ref(self), fusion())
    }

    /// The memory of an evaluated tensor.
    pub(crate) fn buffer(&self) -> Result<Buffer> {
        match &*self.node.state() {
            State::Evaluated(buffer, _) => Ok(buffer.clone()),
            State::Invalid(error) => Err(error.clone()),
            State::Recorded(..) | State::Lent(_) => {
                Err(Error::internal("evaluation", "a tensor was not computed"))
            }
        }
    }
}

/// The kernels of several tensors for a target, as one program. What a library makes on the CPU ([`Tensor::solve`] and its like) is
/// not among those of the CPU.
///
/// ```
/// use lazuli::{Target, Tensor};
/// let x = Tensor::from_vec(vec![0.0f32; 1000], [10, 100]);
/// let (mean, variance) = (x.mean(1), x.var(1, 0));
/// let program = lazuli::compile_for([&mean, &variance], &Target::cuda("sm_90"))?;
/// assert_eq!(program.kernels().len(), 1); // one sweep along each row for both
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// # Errors
/// The first error in the tensors' histories; [`Unavailable`](crate::Error::Unavailable) for an architecture that is none.
pub fn compile_for<'a>(tensors: impl IntoIterator<Item = &'a Tensor>, target: &Target) -> Result<Program> {
    target.check()?;
    let target = target.clone();
    let tensors: Vec<Tensor> = tensors.into_iter().cloned().collect();
    // What a library makes on a CPU is made by kernels elsewhere.
    let recording = match target == Target::cpu() {
        true => build_inspected(&tensors)?,
        false => build_decomposed(&tensors, &[])?,
    };
    Ok(Program::new(compiler::plan(&recording.graph, target.settings(fusion()))?, target))
}

/// The kernels that [`eval`] of these tensors would run together, and why. Runs nothing. What comes from other devices, is
/// [joined](Tensor::cat) by copies, or made by a library is there before, by kernels of its own, which are not among these.
///
/// ```
/// use lazuli::Tensor;
/// let x = Tensor::from_vec(vec![0.0f32; 1000], [10, 100]);
/// let (mean, variance) = (x.mean(1), x.var(1, 0));
/// assert_eq!(lazuli::explain([&mean, &variance])?.kernels(), 1);
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// # Errors
/// The first error in the tensors' histories; tensors of different devices, which do not share a plan.
#[track_caller]
pub fn explain<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<Explanation> {
    let location = SourceLocation::caller();
    let tensors: Vec<Tensor> = tensors.into_iter().cloned().collect();
    let mut devices = tensors.iter().map(Tensor::device);
    let device = devices.next().unwrap_or(Ok(Device::default()))?;
    for other in devices {
        let other = other?;
        if other != device {
            return Err(Error::InvalidOperation {
                op: "explain",
                message: format!(
                    "tensors on {device} and on {other} do not share a plan; explain them apart"
                ),
                location,
            });
        }
    }
    let recording = build_inspected(&tensors)?;
    let plan = compiler::plan(&recording.graph, settings::of(device, fusion()))?;
    let mut before: Vec<String> = executor::pending(&tensors).iter().flatten().filter_map(external).collect();
    // Several results of one routine are made together.
    before.dedup();
    Ok(Explanation::of(&plan).after(before))
}

/// What is made apart from kernels: a join by copies, or what a library does.
pub(crate) fn external(tensor: &Tensor) -> Option<String> {
    let TensorNode { shape, dtype, origin, location, .. } = &*tensor.node;
    match &*tensor.node.state() {
        State::Recorded(Recipe::Join { .. }, parts) => {
            let (parts, size) = (parts.len(), bytes((shape.elements() * dtype.size()) as u64));
            Some(format!(
                "{origin} {dtype} {shape} ({size}), at {location}: {parts} parts, computed one after the other by kernels \
                 of their own, and joined by copies"
            ))
        }
        State::Recorded(Recipe::Total, terms) => {
            let (terms, size) = (terms.len(), bytes((shape.elements() * dtype.size()) as u64));
            Some(format!(
                "{origin} {dtype} {shape} ({size}), at {location}: {terms} terms, each computed and added to those before by \
                 a kernel of its own"
            ))
        }
        State::Recorded(Recipe::Routine { .. }, matrices) => {
            let of: Vec<String> = matrices.iter().map(|x| format!("{dtype} {}", x.node.shape)).collect();
            Some(format!("{origin} of {}, at {location}: by a library", of.join(" and ")))
        }
        _ => None,
    }
}

/// Whether a CUDA driver and at least one GPU are there.
///
/// ```
/// use lazuli::Device;
/// let device = if lazuli::cuda_is_available() { Device::cuda(0) } else { Device::cpu() };
/// assert_eq!(device, Device::best());
/// ```
pub fn cuda_is_available() -> bool {
    #[cfg(feature = "cuda")]
    let count = crate::runtime::cuda::driver::device_count().unwrap_or(0);
    #[cfg(not(feature = "cuda"))]
    let count = 0;
    count > 0
}

impl Device {
    /// The first GPU where there is one, else the CPU.
    ///
    /// ```
    /// use lazuli::{Device, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [2]).to(&Device::best());
    /// assert_eq!((x + 1.0).to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn best() -> Device {
        if cuda_is_available() { Device::cuda(0) } else { Device::cpu() }
    }
}
