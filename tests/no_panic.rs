//! What goes wrong is an error that says what to do; the process goes on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

mod workloads;

use lazuli::{DType, Device, Error, Target, Tensor, compile_for, eval};
use workloads::{child_succeeds, tensor};

#[test]
fn child() {
    let Some(scenario) = workloads::scenario() else { return };
    match scenario.as_str() {
        "relu" => assert!((-(-tensor([100]))).relu().sum(..).item::<f32>().unwrap() > 0.0),
        #[cfg(feature = "cuda")]
        "no_nvrtc" => {
            let program = tensor([4]).relu().compile_for(&Target::cuda("sm_90")).unwrap();
            assert_unavailable(&program.kernels()[0].compile().unwrap_err(), "NVRTC");
            assert_unavailable(&program.kernels()[0].compile().unwrap_err(), "NVRTC");
        }
        "out_of_memory" => out_of_memory(),
        other => panic!("no scenario {other}"),
    }
}

#[track_caller]
fn assert_unavailable(error: &Error, wanted: &str) {
    let Error::Unavailable { what, reason, hint } = error else { panic!("{error}") };
    assert!(what.contains(wanted), "{error}");
    assert!(!reason.is_empty() && !hint.is_empty(), "{error}");
    assert!(hint.starts_with(char::is_uppercase), "{error}");
}

/// Every way to ask for something that runs on a device.
#[track_caller]
fn assert_unusable(device: &Device) {
    let x = tensor([4]);
    let there = x.to(device);
    for tensor in
        [&there, &there.relu(), &there.to(&Device::cpu()), &Tensor::ones([2], DType::F32).to(device)]
    {
        assert_unavailable(&tensor.eval().unwrap_err(), &device.to_string());
        assert_unavailable(&eval([&x.exp(), tensor]).unwrap_err(), &device.to_string());
        assert!(!tensor.is_evaluated());
    }
    assert_unavailable(&there.to_vec::<f32>().unwrap_err(), &device.to_string());
    assert_unavailable(&there.sum(..).item::<f32>().unwrap_err(), &device.to_string());
    assert_unavailable(&device.description().unwrap_err(), &device.to_string());
    assert_unavailable(&device.synchronize().unwrap_err(), &device.to_string());
    assert_unavailable(&device.time(|| Ok(())).unwrap_err(), &device.to_string());
    // Asking what would run needs no device.
    assert_eq!(there.relu().explain().unwrap().kernels(), 1);
    assert_eq!(there.device().unwrap(), *device);
}

#[test]
fn a_device_that_is_not_there_is_an_error_with_a_hint() {
    assert_unusable(&Device::cuda(999));
    if !lazuli::cuda_is_available() {
        assert_unusable(&Device::cuda(0));
        assert_eq!(Device::best(), Device::cpu());
    }
    if !cfg!(feature = "emulate") {
        assert_unusable(&Device::cuda_emulated());
    }
}

#[test]
fn the_first_mistake_is_what_every_question_answers() {
    let x = tensor([3, 4]);
    let wrong = x.reshape([5]).relu().sum(7).to(&Device::cuda(999));
    let message = wrong.eval().unwrap_err().to_string();
    assert!(
        message.starts_with("reshape: shape [3, 4] has 12 elements, but [5] takes 5, at tests/no_panic.rs:")
    );
    let answers = [
        wrong.shape().map(drop),
        wrong.dtype().map(drop),
        wrong.device().map(drop),
        wrong.numel().map(drop),
        wrong.ndim().map(drop),
        wrong.size(0).map(drop),
        wrong.explain().map(drop),
        wrong.compile_for(&Target::cuda("sm_90")).map(drop),
        compile_for([&x, &wrong], &Target::cpu()).map(drop),
        wrong.to_vec::<f32>().map(drop),
        wrong.item::<f32>().map(drop),
        eval([&x.exp(), &wrong]),
        (&wrong + &x).eval(),
    ];
    for answer in answers {
        assert_eq!(answer.unwrap_err().to_string(), message);
    }
    assert!(!wrong.is_evaluated());
}

#[test]
fn values_of_another_kind_or_number_are_an_error() {
    let x = tensor([3, 4]);
    let error = x.relu().to_vec::<i32>().unwrap_err();
    assert!(error.to_string().starts_with("to_vec: the tensor is f32 [3, 4], not i32"), "{error}");
    let error = x.relu().item::<f32>().unwrap_err();
    assert!(error.to_string().starts_with("item: shape [3, 4] has 12 elements, not one"), "{error}");
    let empty = Tensor::from_vec(Vec::<f32>::new(), [0]);
    let error = empty.item::<f32>().unwrap_err();
    assert!(error.to_string().starts_with("item: shape [0] has 0 elements, not one"), "{error}");
    assert_eq!(empty.to_vec::<f32>().unwrap(), [0.0f32; 0]);
    assert!(tensor([1]).item::<f64>().unwrap_err().to_string().contains("not f64"));
}

#[test]
fn an_architecture_that_does_not_exist_is_an_error() {
    let y = tensor([4]).relu();
    let function = lazuli::compile(|x: Tensor| x.relu()).executable(tensor([4])).unwrap();
    for architecture in
        ["sm_banana", "", "sm_1", "sm_90; rm -rf", "90", "SM_90", "gfx90a", "sm_90f", "sm_10", "compute_90\0"]
    {
        let target = Target::cuda(architecture);
        for program in
            [y.compile_for(&target), lazuli::compile_for([&y], &target), function.compile_for(&target)]
        {
            let error = program.unwrap_err();
            assert_unavailable(&error, &format!("{architecture:?}"));
            assert!(error.to_string().contains("sm_90"), "{error}");
        }
    }
}

/// What is later than this crate may be known to the compiler that is there.
#[test]
#[cfg(feature = "cuda")]
fn a_later_architecture_is_for_nvrtc_to_know() {
    let program = tensor([4]).relu().compile_for(&Target::cuda("sm_998")).unwrap();
    assert!(program.source().contains("__global__"));
    let error = program.kernels()[0].compile().unwrap_err();
    // Without NVRTC nobody knows architectures.
    assert_unavailable(&error, if has_nvrtc() { "sm_998" } else { "NVRTC" });
    assert!(!has_nvrtc() || error.to_string().contains("sm_90"), "{error}");
}

/// Whether kernels can be compiled for CUDA here.
#[cfg(feature = "cuda")]
fn has_nvrtc() -> bool {
    let program = tensor([4]).relu().compile_for(&Target::cuda("sm_90")).unwrap();
    match program.kernels()[0].compile() {
        Ok(_) => true,
        Err(error) => {
            assert_unavailable(&error, "NVRTC");
            false
        }
    }
}

#[test]
#[cfg(feature = "cuda")]
fn without_nvrtc_compilation_is_an_error() {
    child_succeeds("no_nvrtc", &[("LAZULI_NVRTC", "/nonexistent")]);
}

#[test]
fn out_of_memory_is_an_error_and_the_process_goes_on() {
    child_succeeds("out_of_memory", &[]);
    child_succeeds("out_of_memory", &[("LAZULI_CC", "/nonexistent")]);
}

fn out_of_memory() {
    let mut devices = vec![Device::cpu(), Device::interpreter()];
    if cfg!(feature = "emulate") {
        devices.push(Device::cuda_emulated());
    }
    for device in devices {
        // More than a process can address, so that no overcommitment helps; and more than a machine has.
        for elements in [1usize << 50, 1 << 58] {
            let x = Tensor::zeros([elements], DType::F32).to(&device);
            for wanted in [&x, &x.exp(), &tensor([1]).to(&device).expand([elements as isize]).exp()] {
                let error = wanted.eval().unwrap_err();
                let Error::OutOfMemory { requested, .. } = &error else { panic!("{device}: {error}") };
                assert_eq!(*requested, 4 * elements as u64);
                assert!(error.to_string().contains("smaller parts"), "{error}");
                assert!(!wanted.is_evaluated());
            }
        }
        let y = (tensor([1000]).to(&device) + 1.0).sum(..).item::<f32>().unwrap();
        assert!(y.is_finite());
    }
}

#[test]
fn each_debug_level_prints_its_part_and_those_before() {
    let folder = tempfile::tempdir().unwrap();
    let cache = ("LAZULI_CACHE_DIR", folder.path().to_str().unwrap());
    // What each level adds.
    let parts: [&[&str]; 5] = [
        &["cpu: evaluated 1 tensors in ", "relu_sum_f32 ", " GB/s"],
        &["planned in ", "1 kernel instead of 2, ", "computes  relu, sum"],
        &["relu_sum_f32: row_reduce(", "grid = "],
        &["void relu_sum_f32("],
        &["graph as recorded:\n", "after simplify:\n", "kernel relu_sum_f32"],
    ];
    for level in 0..=5 {
        let said = if level == 0 { "off".to_owned() } else { level.to_string() };
        let (_, stderr) = child_succeeds("relu", &[cache, ("LAZULI_DEBUG", &said)]);
        for (number, part) in parts.iter().enumerate() {
            // A name of a schedule is part of the plan too.
            for text in part.iter().filter(|text| !text.contains("row_reduce") || level != 2) {
                assert_eq!(stderr.contains(text), number < level, "level {level}: {text:?} in\n{stderr}");
            }
        }
    }
    for nonsense in ["", "all", "-1", "6"] {
        let (_, stderr) = child_succeeds("relu", &[cache, ("LAZULI_DEBUG", nonsense)]);
        let warning = format!("lazuli: LAZULI_DEBUG={nonsense} is not `off` or a number from 1 to 5\n");
        assert_eq!(stderr, if nonsense.is_empty() { "" } else { &warning });
    }
}
