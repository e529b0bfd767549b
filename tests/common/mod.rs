//! Comparing devices: every case is recorded once per device and fusion mode, evaluated, and compared with the
//! reference interpreter; its CUDA kernels are compiled by the real NVRTC where that is there.
//!
//! A case returns its outputs, each with the tolerance that its operations allow. NaN equals NaN. Zeros must have the
//! same sign, except where a tolerance is absolute: there a result that cancels may end on either side.

#![allow(dead_code, reason = "each test target uses its own part")]

pub mod data;
pub mod matrix;
#[cfg(feature = "cuda")]
pub mod nvrtc;

use std::fmt::Write;

use bytemuck::Pod;
use lazuli::{DType, Device, Fusion, Tensor, bf16, f16, with_fusion};

use crate::with_type;

/// How far a result may be from the interpreter's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// The same bits, also fused and unfused: integers, bools, moved elements, and IEEE arithmetic.
    Exact,
    /// So many representable numbers away: functions that are approximated, one operation each. Fused and
    /// unfused must agree to the last bit in `F32` and `F64`.
    Ulps(u64),
    /// `|result - expected| <= absolute + relative * |expected|`: reductions, whose order the schedule
    /// decides, and chains of 16-bit operations, which round less often if fused.
    Near {
        /// Of the expected magnitude.
        relative: f64,
        /// In the result's unit.
        absolute: f64,
    },
}

/// One result of a case.
pub struct Output {
    label: String,
    tensor: Tensor,
    tolerance: Tolerance,
    /// Fusing must not change a bit.
    same_unfused: bool,
}

impl Output {
    fn new(label: String, tensor: Tensor, tolerance: Tolerance) -> Output {
        let is_16_bit = tensor.dtype().is_ok_and(|dtype| matches!(dtype, DType::F16 | DType::BF16));
        let same_unfused = match tolerance {
            Tolerance::Exact => true,
            Tolerance::Ulps(_) => !is_16_bit,
            Tolerance::Near { .. } => false,
        };
        Output { label, tensor, tolerance, same_unfused }
    }

    /// What is compared.
    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// The same on a device: for results that follow from no tensor there.
    pub fn to(self, device: &Device) -> Output {
        Output { tensor: self.tensor.to(device), ..self }
    }

    /// The tolerance is for the interpreter alone: fused and unfused must agree to the last bit.
    pub fn same_unfused(mut self) -> Output {
        self.same_unfused = true;
        self
    }
}

/// A result that must be the interpreter's to the last bit.
pub fn exact(label: impl Into<String>, tensor: Tensor) -> Output {
    Output::new(label.into(), tensor, Tolerance::Exact)
}

/// A result within some units in the last place.
pub fn ulps(label: impl Into<String>, tensor: Tensor, ulps: u64) -> Output {
    Output::new(label.into(), tensor, Tolerance::Ulps(ulps))
}

/// A result within `absolute + relative * |expected|`.
pub fn near(label: impl Into<String>, tensor: Tensor, relative: f64, absolute: f64) -> Output {
    Output::new(label.into(), tensor, Tolerance::Near { relative, absolute })
}

/// By how much results of a few roundings may differ, relative to numbers near 1.
pub fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::BF16 => 1e-2,
        DType::F16 => 2e-3,
        DType::F64 => 1e-12,
        _ => 1e-5,
    }
}

/// The elements of one output, as they lie in memory.
#[derive(PartialEq)]
struct Elements {
    dtype: DType,
    bytes: Vec<u8>,
}

/// The same as numbers, which is what takes the time: only where the bytes differ.
enum Values {
    /// Integers and bools.
    Whole(Vec<i64>),
    /// Floats, with the bits that they have in their dtype.
    Float(Vec<(u64, f64)>),
}

fn elements(tensor: &Tensor) -> lazuli::Result<Elements> {
    let dtype = tensor.dtype()?;
    let bytes = with_type!(dtype, T => bytemuck::cast_slice(&tensor.to_vec::<T>()?).to_vec());
    Ok(Elements { dtype, bytes })
}

impl Elements {
    fn values(&self) -> Values {
        fn whole<T: Pod + Into<i64>>(bytes: &[u8]) -> Values {
            Values::Whole(bytemuck::pod_collect_to_vec::<u8, T>(bytes).into_iter().map(Into::into).collect())
        }
        fn float<T: Pod + Into<f64>>(bytes: &[u8], bits: fn(T) -> u64) -> Values {
            let elements = bytemuck::pod_collect_to_vec::<u8, T>(bytes);
            Values::Float(elements.into_iter().map(|x| (bits(x), x.into())).collect())
        }
        match self.dtype {
            DType::Bool | DType::U8 => whole::<u8>(&self.bytes),
            DType::I8 => whole::<i8>(&self.bytes),
            DType::I16 => whole::<i16>(&self.bytes),
            DType::I32 => whole::<i32>(&self.bytes),
            DType::U32 => whole::<u32>(&self.bytes),
            DType::I64 => whole::<i64>(&self.bytes),
            DType::F16 => float::<f16>(&self.bytes, |x| x.to_bits().into()),
            DType::BF16 => float::<bf16>(&self.bytes, |x| x.to_bits().into()),
            DType::F32 => float::<f32>(&self.bytes, |x| x.to_bits().into()),
            DType::F64 => float::<f64>(&self.bytes, f64::to_bits),
        }
    }
}

/// How many representable numbers lie between two, of the same dtype, none of which is NaN.
fn distance(dtype: DType, a: u64, b: u64) -> u64 {
    let sign = 1u64 << (dtype.size() * 8 - 1);
    let position = |bits: u64| {
        let magnitude = (bits & (sign - 1)) as i128;
        if bits & sign == 0 { magnitude } else { -magnitude }
    };
    u64::try_from((position(a) - position(b)).unsigned_abs()).unwrap_or(u64::MAX)
}

fn float_fits(dtype: DType, tolerance: Tolerance, (bits, value): (u64, f64), expected: (u64, f64)) -> bool {
    if value.is_nan() || expected.1.is_nan() {
        return value.is_nan() && expected.1.is_nan();
    }
    if bits == expected.0 {
        return true;
    }
    match tolerance {
        Tolerance::Exact => false,
        // Zeros of different signs are no numbers apart, and yet different.
        Tolerance::Ulps(ulps) => {
            let steps = distance(dtype, bits, expected.0);
            steps <= ulps && (steps > 0 || value != 0.0)
        }
        Tolerance::Near { relative, absolute } => {
            (value - expected.1).abs() <= absolute + relative * expected.1.abs() && expected.1.is_finite()
        }
    }
}

/// The greatest difference, in words; of floats, without the elements (position, got, expected) that are meant to differ.
fn difference(
    dtype: DType,
    tolerance: Tolerance,
    got: &Elements,
    expected: &Elements,
    is_meant: &dyn Fn(usize, f64, f64) -> bool,
) -> Option<String> {
    if got == expected {
        return None;
    }
    match (&got.values(), &expected.values()) {
        (Values::Whole(got), Values::Whole(expected)) => {
            if got.len() != expected.len() {
                return Some(format!("{} elements instead of {}", got.len(), expected.len()));
            }
            let wrong: Vec<usize> = (0..got.len()).filter(|&i| got[i] != expected[i]).collect();
            wrong.first().map(|&i| {
                format!(
                    "{} of {} differ: [{i}] is {} instead of {}",
                    wrong.len(),
                    got.len(),
                    got[i],
                    expected[i]
                )
            })
        }
        (Values::Float(got), Values::Float(expected)) => {
            if got.len() != expected.len() {
                return Some(format!("{} elements instead of {}", got.len(), expected.len()));
            }
            let differs = |&i: &usize| {
                !float_fits(dtype, tolerance, got[i], expected[i]) && !is_meant(i, got[i].1, expected[i].1)
            };
            let wrong: Vec<usize> = (0..got.len()).filter(differs).collect();
            let steps = |&i: &usize| distance(dtype, got[i].0, expected[i].0);
            let &i = wrong.iter().max_by_key(|&i| steps(i))?;
            let ((bits, value), (expected_bits, expected)) = (got[i], expected[i]);
            Some(format!(
                "{} of {} differ by more than {tolerance:?}: [{i}] is {value:e} ({bits:#x}) instead of {expected:e} \
                 ({expected_bits:#x}), {} ulps",
                wrong.len(),
                got.len(),
                steps(&i)
            ))
        }
        _ => Some("a float instead of an integer, or the reverse".into()),
    }
}

/// How a tensor differs from an expected one, in words, if it does.
pub fn mismatch(got: &Tensor, expected: &Tensor, tolerance: Tolerance) -> Option<String> {
    mismatch_but(got, expected, tolerance, &|_, _, _| false)
}

/// As [`mismatch`], but for the floats (position, got, expected) that are meant to differ.
pub fn mismatch_but(
    got: &Tensor,
    expected: &Tensor,
    tolerance: Tolerance,
    is_meant: &dyn Fn(usize, f64, f64) -> bool,
) -> Option<String> {
    let types = [got, expected].map(|tensor| (tensor.dtype().unwrap(), tensor.shape().unwrap()));
    if types[0] != types[1] {
        let [(dtype, shape), (expected_dtype, expected_shape)] = types;
        return Some(format!("{dtype} {shape} instead of {expected_dtype} {expected_shape}"));
    }
    difference(types[0].0, tolerance, &elements(got).unwrap(), &elements(expected).unwrap(), is_meant)
}

/// Devices that need no compiler.
const INTERPRETED: [fn() -> Device; 2] = [Device::cpu_interpreted, Device::cuda_interpreted];

/// The devices under test.
pub fn devices() -> Vec<Device> {
    if matrix::is_cuda() {
        return vec![Device::cuda(0)];
    }
    let mut devices = INTERPRETED.map(|device| device()).to_vec();
    if matrix::is_fast() {
        return devices;
    }
    devices.push(Device::cpu());
    #[cfg(feature = "emulate")]
    devices.push(Device::cuda_emulated());
    if lazuli::cuda_is_available() {
        devices.push(Device::cuda(0));
    }
    devices
}

fn is_interpreted(device: &Device) -> bool {
    INTERPRETED.iter().any(|interpreted| *device == interpreted())
}

fn is_emulated(device: &Device) -> bool {
    cfg!(feature = "emulate") && *device == Device::cuda_emulated()
}

/// What a case is checked with, besides fused kernels on every device.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Also unfused, on every device.
    pub unfused: bool,
    /// Also unfused, on the CPU.
    pub unfused_on_cpu: bool,
    /// In the interpreter of kernels, which needs no compiler.
    pub interpreted: bool,
    /// Compiled for the CPU, and for a GPU if there is one.
    pub compiled: bool,
    /// On the emulated device too.
    pub emulated: bool,
    /// CUDA kernels are compiled by NVRTC.
    pub nvrtc: bool,
}

/// Everything: fused and unfused on every device.
pub const EVERYTHING: Scope = Scope {
    unfused: true,
    unfused_on_cpu: true,
    interpreted: true,
    compiled: true,
    emulated: true,
    nvrtc: true,
};

/// Fused alone: where the same operations are checked unfused at other shapes.
pub const FUSED: Scope = Scope { unfused: false, unfused_on_cpu: false, ..EVERYTHING };

impl Scope {
    /// The interpreter of kernels alone, unfused too.
    pub const fn interpreted(self) -> Scope {
        Scope { unfused_on_cpu: true, compiled: false, emulated: false, nvrtc: false, ..self }
    }

    /// Without the interpreter of kernels.
    pub const fn compiled(self) -> Scope {
        Scope { interpreted: false, ..self }
    }

    fn has(self, device: &Device) -> bool {
        match (is_interpreted(device), is_emulated(device)) {
            (true, _) => self.interpreted,
            (false, true) => self.emulated,
            (false, false) => self.compiled,
        }
    }
}

/// Evaluates all outputs in one plan, and reads them.
fn evaluated(outputs: &[Output]) -> lazuli::Result<Vec<Elements>> {
    lazuli::eval(outputs.iter().map(|output| &output.tensor))?;
    outputs.iter().map(|output| elements(&output.tensor)).collect()
}

/// Checks a case on every device, fused and unfused.
///
/// # Panics
/// With all outputs that differ, and how.
pub fn check(name: &str, build: impl Fn(&Device) -> Vec<Output>) {
    check_scope(name, EVERYTHING, build);
}

/// As [`check`], but [`FUSED`] alone.
pub fn check_fused(name: &str, build: impl Fn(&Device) -> Vec<Output>) {
    check_scope(name, FUSED, build);
}

/// As [`check_fused`], but without the emulated device and NVRTC: for what kernels of the CPU alone do.
///
/// # Panics
/// As [`check`].
pub fn check_on_cpu(name: &str, build: impl Fn(&Device) -> Vec<Output>) {
    check_scope(name, Scope { emulated: false, nvrtc: false, ..FUSED }, build);
}

fn check_scope(name: &str, scope: Scope, build: impl Fn(&Device) -> Vec<Output>) {
    let report = differences(name, scope, build);
    assert!(report.is_empty(), "\n{report}");
}

/// The error without the source of the kernel that a compiler refused.
fn brief(error: &lazuli::Error) -> String {
    let text = error.to_string();
    text.split("--- source ---").next().unwrap_or_default().trim_end().to_string()
}

/// What differs from the interpreter, a line each; empty if nothing does.
pub fn differences(name: &str, scope: Scope, build: impl Fn(&Device) -> Vec<Output>) -> String {
    let mut report = String::new();
    let reference = build(&Device::interpreter());
    let expected = match evaluated(&reference) {
        Ok(expected) => expected,
        Err(error) => return format!("{name}: the interpreter fails: {}\n", brief(&error)),
    };
    // Strings are written to without failing.
    let mut compare =
        |context: &str, outputs: &[Output], got: &[Elements], expected: &[Elements], strict: bool| {
            for ((output, got), expected) in outputs.iter().zip(got).zip(expected) {
                let dtype = output.tensor.dtype().unwrap();
                let tolerance = if strict { Tolerance::Exact } else { output.tolerance };
                if strict && !output.same_unfused {
                    continue;
                }
                if let Some(difference) = difference(dtype, tolerance, got, expected, &|_, _, _| false) {
                    let _ = writeln!(report, "{name}, {}: {dtype} on {context}: {difference}", output.label);
                }
            }
        };
    let mut failures = String::new();
    for device in devices() {
        if !scope.has(&device) {
            continue;
        }
        let unfused =
            scope.unfused || scope.unfused_on_cpu && (device == Device::cpu() || is_interpreted(&device));
        let modes = if unfused { &[Fusion::On, Fusion::Off][..] } else { &[Fusion::On] };
        let mut fused: Option<Vec<Elements>> = None;
        for &fusion in modes {
            let outputs = build(&device);
            let context = format!("{device}, fusion {fusion:?}");
            match with_fusion(fusion, || evaluated(&outputs)) {
                Err(error) => {
                    let _ = writeln!(failures, "{name} on {context}: {}", brief(&error));
                }
                Ok(got) => {
                    compare(&context, &outputs, &got, &expected, false);
                    if let Some(fused) = &fused {
                        compare(&format!("{device}, unfused against fused"), &outputs, &got, fused, true);
                    }
                    fused = fused.or(Some(got));
                }
            }
        }
    }
    #[cfg(feature = "cuda")]
    if scope.nvrtc && !matrix::is_fast() && !matrix::is_cuda() {
        let modes = if scope.unfused { &[Fusion::On, Fusion::Off][..] } else { &[Fusion::On] };
        let program = |&fusion: &Fusion| {
            let outputs = build(&Device::cpu());
            let tensors = outputs.iter().map(|output| &output.tensor);
            with_fusion(fusion, || lazuli::compile_for(tensors, &lazuli::Target::cuda("sm_90")))
        };
        let programs: lazuli::Result<Vec<lazuli::Program>> = modes.iter().map(program).collect();
        let compiled = programs.map_err(|error| brief(&error)).and_then(|programs| nvrtc::compile(&programs));
        if let Err(error) = compiled {
            let _ = writeln!(failures, "{name}, NVRTC: {error}");
        }
    }
    report + &failures
}
