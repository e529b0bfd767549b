//! Work that is divided among devices: the same function on each of them, on a part of the data.
//!
//! A GPU is not waited for, so one thread keeps several busy: each is given its work, and all compute at the same time, until
//! values are asked for. What these functions take and give are [`Tensors`]: a tensor, or arrays, vectors, tuples and types of
//! yours that are made of tensors. Names are those of `torch.nn.parallel` and `torch.cuda.comm`.
//!
//! [`Device::cpu_virtual`] gives devices to try it with where there are no GPUs.
//!
//! ```
//! use lazuli::{Device, Tensor, compile, parallel};
//! let devices = [Device::cpu(), Device::cpu_virtual(1)]; // Device::cuda(0), Device::cuda(1), …
//! let (x, y) = (Tensor::rand([100, 3], 1), Tensor::rand([100], 2));
//!
//! // One step of gradient descent: a gradient for each part of the batch, their sum, the same weights on each device.
//! let gradient = compile(|(w, x, y): (Tensor, Tensor, Tensor)| {
//!     let wrong = x.matmul(&w) - y;
//!     (x.t().matmul(&wrong), wrong.square().sum(0))
//! });
//! let mut weights = parallel::replicate(&Tensor::zeros([3], lazuli::DType::F32), &devices)?;
//! let batch = parallel::scatter(&(x, y), &devices, 0)?;
//! for _ in 0..3 {
//!     let parts = parallel::parallel_apply(
//!         |number, (x, y): (Tensor, Tensor)| gradient.call((&weights[number], &x, &y)),
//!         batch.clone(),
//!         &devices,
//!     )?;
//!     let totals = parallel::all_reduce(&parts, &devices)?;
//!     for (w, (total, _)) in weights.iter_mut().zip(&totals) {
//!         *w = &*w - total * 0.01;
//!     }
//! }
//! assert_eq!(weights[0].to_vec::<f32>()?, weights[1].to_vec::<f32>()?);
//! # Ok::<(), lazuli::Error>(())
//! ```

use crate::executor;
use crate::tensor::arguments::call::Call;
use crate::tensor::ask::evaluate::fusion;
use crate::tensor::function::compile::Traceable;
use crate::tensor::function::tree::{Leaves, Tensors};
use crate::{Device, Result, Tensor};

/// The tensors of a value.
fn leaves_of(x: &impl Tensors) -> Leaves {
    let mut leaves = Leaves::default();
    x.to_leaves(&mut leaves);
    leaves
}

/// The value with other tensors.
fn with_tensors<T: Tensors>(leaves: &Leaves, tensors: impl IntoIterator<Item = Tensor>) -> Result<T> {
    let mut leaves = Leaves::new(tensors, leaves.structure.iter().copied());
    let value = T::from_leaves(&mut leaves);
    leaves.check().map(|()| value)
}

/// The value on each device, such as a model's weights. Recorded, as [`Tensor::to`] is.
///
/// ```
/// use lazuli::{Device, Tensor, parallel};
/// let layer = (Tensor::rand([3, 3], 1), Tensor::rand([3], 2));
/// let on_each = parallel::replicate(&layer, &[Device::cpu(), Device::cpu_virtual(1)])?;
/// assert_eq!(on_each[1].0.device()?, Device::cpu_virtual(1));
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// # Errors
/// The first error in the history of one of the tensors.
#[track_caller]
pub fn replicate<T: Tensors>(x: &T, devices: &[Device]) -> Result<Vec<T>> {
    replicated(Call::here("replicate"), x, devices)
}

fn replicated<T: Tensors>(call: Call, x: &T, devices: &[Device]) -> Result<Vec<T>> {
    let leaves = leaves_of(x);
    let on = |device: &Device| {
        let there: Result<Vec<Tensor>> =
            leaves.tensors.iter().map(|tensor| call.transfer(tensor, *device)).collect();
        with_tensors(&leaves, there?)
    };
    devices.iter().map(on).collect()
}

/// A part of the value for each device: of each of its tensors the same positions along an axis. The parts' lengths differ by one
/// at most, longer ones first, so that the last are empty where there are more devices than positions. Tensors without
/// dimensions go to all devices as they are. Recorded, as [`Tensor::to`] is.
///
/// ```
/// use lazuli::{Device, Tensor, parallel};
/// let rows = Tensor::arange(0, 10, 1).reshape([5, 2]);
/// let parts = parallel::scatter(&rows, &[Device::cpu(), Device::cpu_virtual(1)], 0)?;
/// assert_eq!((parts[0].shape()?, parts[1].shape()?), ([3, 2].into(), [2, 2].into()));
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// # Errors
/// No devices; an axis that a tensor does not have; tensors that differ in length along it; the first error in the history of one.
#[track_caller]
pub fn scatter<T: Tensors>(x: &T, devices: &[Device], axis: isize) -> Result<Vec<T>> {
    let call = Call::here("scatter");
    if devices.is_empty() {
        return call.fail("there are no devices");
    }
    let leaves = leaves_of(x);
    let extent = extent_along(call, &leaves, axis)?;
    let start =
        |part: usize| (part * (extent / devices.len()) + part.min(extent % devices.len())).cast_signed();
    let part = |(number, device): (usize, &Device)| {
        let of = |tensor: &Tensor| {
            let own = match tensor.shape()?.rank() {
                0 => tensor.clone(),
                _ => call.compose(|| tensor.slice(axis, start(number)..start(number + 1))),
            };
            call.transfer(&own, *device)
        };
        with_tensors(&leaves, leaves.tensors.iter().map(of).collect::<Result<Vec<_>>>()?)
    };
    devices.iter().enumerate().map(part).collect()
}

/// How many positions all tensors with dimensions have along an axis.
fn extent_along(call: Call, leaves: &Leaves, axis: isize) -> Result<usize> {
    let mut known: Option<usize> = None;
    for tensor in &leaves.tensors {
        let (shape, _) = tensor.known()?;
        if shape.rank() == 0 {
            continue;
        }
        let extent = shape[call.axis(axis, shape)?];
        match known {
            Some(other) if other != extent => {
                return call.fail(format!(
                    "a tensor has {extent} positions along axis {axis}, and another one {other}"
                ));
            }
            _ => known = Some(extent),
        }
    }
    match known {
        Some(extent) => Ok(extent),
        None => call.fail("no tensor has dimensions to be divided along; replicate gives it to each device"),
    }
}

/// What the parts' tensors are, one list for each tensor of such a value, on a device.
fn brought_together(
    call: Call,
    parts: &[impl Tensors],
    device: Device,
) -> Result<(Leaves, Vec<Vec<Tensor>>)> {
    let all: Vec<Leaves> = parts.iter().map(leaves_of).collect();
    let Some(first) = all.first() else { return call.fail("there are no parts") };
    let is_alike = |other: &Leaves| {
        other.tensors.len() == first.tensors.len() && other.structure[..] == first.structure[..]
    };
    if !all.iter().all(is_alike) {
        return call.fail("the parts are not of one structure");
    }
    let of = |number: usize| all.iter().map(|part| call.transfer(&part.tensors[number], device)).collect();
    let lists = (0..first.tensors.len()).map(of).collect::<Result<_>>()?;
    Ok((leaves_of(&parts[0]), lists))
}

/// The parts joined along an axis, on a device: what [`scatter`] divided. Tensors without dimensions become a vector of one
/// element for each part. Recorded, as [`Tensor::cat`] is.
///
/// ```
/// use lazuli::{Device, Tensor, parallel};
/// let x = Tensor::arange(0, 10, 1);
/// let parts = parallel::scatter(&x, &[Device::cpu(), Device::cpu_virtual(1)], 0)?;
/// let joined = parallel::gather(&parts, &Device::cpu(), 0)?;
/// assert_eq!(joined.to_vec::<i32>()?, x.to_vec::<i32>()?);
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// # Errors
/// No parts, or parts of several structures; tensors that cannot be joined; the first error in the history of one.
#[track_caller]
pub fn gather<T: Tensors>(parts: &[T], device: &Device, axis: isize) -> Result<T> {
    gathered(Call::here("gather"), parts, *device, axis)
}

fn gathered<T: Tensors>(call: Call, parts: &[T], device: Device, axis: isize) -> Result<T> {
    let (leaves, lists) = brought_together(call, parts, device)?;
    let join = |parts: &Vec<Tensor>| {
        let are_scalars = parts.iter().all(|part| part.known().is_ok_and(|(shape, _)| shape.rank() == 0));
        let joined = call.compose(|| match are_scalars {
            true => Tensor::stack(parts, 0),
            false => Tensor::cat(parts, axis),
        });
        joined.validity().map(|()| joined)
    };
    with_tensors(&leaves, lists.iter().map(join).collect::<Result<Vec<_>>>()?)
}

/// The parts added up on a device, the first one first: the order does not depend on which device is done when, so that sums are
/// the same in every run. (They depend on how many parts there are.) Recorded, as additions are.
///
/// ```
/// use lazuli::{Device, Tensor, parallel};
/// let devices = [Device::cpu(), Device::cpu_virtual(1)];
/// let gradients = parallel::replicate(&Tensor::from([1.0f32, 2.0]), &devices)?;
/// let sum = parallel::reduce_add(&gradients, &devices[1])?;
/// assert_eq!((sum.to_vec::<f32>()?, sum.device()?), (vec![2.0, 4.0], devices[1]));
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// # Errors
/// No parts, or parts of several structures; tensors of several shapes or dtypes; the first error in the history of one.
#[track_caller]
pub fn reduce_add<T: Tensors>(parts: &[T], device: &Device) -> Result<T> {
    added(Call::here("reduce_add"), parts, *device)
}

fn added<T: Tensors>(call: Call, parts: &[T], device: Device) -> Result<T> {
    let (leaves, lists) = brought_together(call, parts, device)?;
    let add = |parts: &Vec<Tensor>| {
        let mut parts = parts.iter();
        let Some(first) = parts.next() else { return call.fail("there are no parts") };
        let ty = first.known()?;
        parts.try_fold(first.clone(), |sum, part| {
            let own = part.known()?;
            if own != ty {
                return call.fail(format!("parts are {} {} and {} {}", ty.1, ty.0, own.1, own.0));
            }
            let sum = call.compose(|| sum + part);
            sum.validity().map(|()| sum)
        })
    };
    with_tensors(&leaves, lists.iter().map(add).collect::<Result<Vec<_>>>()?)
}

/// What [`reduce_add`] gives, on each device: computed on the first of them, and copied from there.
///
/// ```
/// use lazuli::{Device, Tensor, parallel};
/// let devices = [Device::cpu(), Device::cpu_virtual(1)];
/// let gradients = parallel::replicate(&Tensor::from([1.0f32, 2.0]), &devices)?;
/// let sums = parallel::all_reduce(&gradients, &devices)?;
/// assert_eq!(sums[1].to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// # Errors
/// As [`reduce_add`]; no devices.
#[track_caller]
pub fn all_reduce<T: Tensors>(parts: &[T], devices: &[Device]) -> Result<Vec<T>> {
    let call = Call::here("all_reduce");
    let Some(first) = devices.first() else { return call.fail("there are no devices") };
    let sum = added(call, parts, *first)?;
    replicated(call, &sum, devices)
}

/// The results of a function for each part, computed on its device, all at the same time. `f` gets the part and its number, by which
/// it finds that device's weights, as [`replicate`] gives them. It is called on this thread, for GPUs first, with the part's device as
/// the [default one](Device::scope), and records or calls what is [compiled](crate::compile()); what it reads, it waits for.
///
/// ```
/// use lazuli::{Device, Tensor, parallel};
/// let devices = [Device::cpu(), Device::cpu_virtual(1)];
/// let parts = parallel::scatter(&Tensor::arange(0, 5, 1), &devices, 0)?;
/// let sums = parallel::parallel_apply(|_, part: Tensor| part.sum(0), parts, &devices)?;
/// assert_eq!((sums[0].item::<i64>()?, sums[1].item::<i64>()?), (3, 7));
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// # Errors
/// Not as many parts as devices; what `f` fails with; as [`eval`](crate::eval) of the results.
#[track_caller]
pub fn parallel_apply<T: Tensors, O: Traceable>(
    f: impl FnMut(usize, T) -> O,
    parts: Vec<T>,
    devices: &[Device],
) -> Result<Vec<O::Tensors>> {
    let call = Call::here("parallel_apply");
    if parts.len() != devices.len() {
        return call.fail(format!("{} parts are given for {} devices", parts.len(), devices.len()));
    }
    let parts = parts.into_iter().zip(devices).enumerate();
    applied(f, parts.map(|(number, (part, device))| (number, part, *device)).collect())
}

fn applied<T: Tensors, O: Traceable>(
    mut f: impl FnMut(usize, T) -> O,
    mut parts: Vec<(usize, T, Device)>,
) -> Result<Vec<O::Tensors>> {
    parts.sort_by_key(|(_, _, device)| !device.runs_ahead());
    let mut results = Vec::with_capacity(parts.len());
    let mut tensors = Vec::new();
    for (number, part, device) in parts {
        let result = device.scope(|| f(number, part)).into_result()?;
        tensors.extend(leaves_of(&result).tensors);
        results.push((number, result));
    }
    executor::evaluate(&tensors, fusion())?;
    results.sort_by_key(|(number, _)| *number);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// The results of a function for parts of a batch, each computed on a device of its own at the same time, and joined on the first
/// of them: [`scatter`], [`parallel_apply`] and [`gather`]. Devices that there is no part for do nothing.
///
/// ```
/// use lazuli::{Device, Tensor, parallel};
/// let devices = [Device::cpu(), Device::cpu_virtual(1)];
/// let (x, weights) = (Tensor::rand([7, 3], 1), Tensor::rand([3, 2], 2));
/// let on_each = parallel::replicate(&weights, &devices)?;
/// let y = parallel::data_parallel(|number, rows: Tensor| rows.matmul(&on_each[number]), &x, &devices, 0)?;
/// assert_eq!((y.shape()?, y.device()?), ([7, 2].into(), Device::cpu()));
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// # Errors
/// As the three.
#[track_caller]
pub fn data_parallel<T: Tensors, O: Traceable>(
    f: impl FnMut(usize, T) -> O,
    x: &T,
    devices: &[Device],
    axis: isize,
) -> Result<O::Tensors> {
    let call = Call::here("data_parallel");
    let leaves = leaves_of(x);
    // Computed once, and not for each part.
    executor::evaluate(&leaves.tensors, fusion())?;
    let parts = call.compose(|| scatter(x, devices, axis))?;
    let extent = extent_along(call, &leaves, axis)?;
    let used = extent.clamp(1, devices.len().max(1));
    let parts = parts.into_iter().zip(devices).enumerate().take(used);
    let results = applied(f, parts.map(|(number, (part, device))| (number, part, *device)).collect())?;
    let joined = gathered(call, &results, devices.first().copied().unwrap_or_default(), axis)?;
    executor::evaluate(&leaves_of(&joined).tensors, fusion())?;
    Ok(joined)
}
