//! Driver tests: against a GPU where there is one, else against its absence.

use super::*;
use crate::runtime::cuda::nvrtc::{default_options, tests as nvrtc};

/// The first device, or `None` with a note on standard error where there is none.
fn device_or_note(test: &str) -> Option<Arc<CudaDevice>> {
    match CudaDevice::open(0) {
        Ok(device) => Some(device),
        Err(error) => {
            eprintln!("not checked: there is no CUDA device, so {test} did not run ({error})");
            None
        }
    }
}

fn scale_kernel(device: &Arc<CudaDevice>) -> Option<CudaKernel> {
    let compiler = nvrtc::nvrtc_or_note("a kernel on the device")?;
    let architecture = device.architecture();
    let cubin = compiler.compile("scale", nvrtc::SCALE, architecture, default_options()).unwrap();
    device.load(&cubin.bytes, &["scale"], false).unwrap().pop()
}

fn scale(kernel: &CudaKernel, buffer: &CudaBuffer, factor: f32, shared: u32) -> Result<()> {
    let mut pointer = buffer.device_pointer();
    let mut factor = factor;
    let mut count = u32::try_from(buffer.bytes() / 4).unwrap();
    let mut arguments: [*mut c_void; 3] =
        [(&raw mut pointer).cast(), (&raw mut factor).cast(), (&raw mut count).cast()];
    // SAFETY: the arguments are those of the kernel `scale`, which stays within `count` elements.
    unsafe {
        let (device, stream) = (buffer.device(), buffer.device().stream());
        device.launch(kernel, &stream, [count.div_ceil(256), 1, 1], [256, 1, 1], shared, &mut arguments)
    }
}

fn floats(buffer: &CudaBuffer) -> Vec<f32> {
    let mut values = vec![0.0f32; buffer.bytes() / 4];
    buffer.device().download(buffer, bytemuck::cast_slice_mut(&mut values)).unwrap();
    values
}

#[test]
fn a_missing_device_is_an_error() {
    let count = device_count();
    let missing = count.unwrap_or(0);
    let Err(error) = CudaDevice::open(missing) else { panic!("device {missing} of {missing}") };
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().starts_with(&format!("cuda:{missing} is not available: ")), "{error}");
    // Asking again is answered again.
    assert!(CudaDevice::open(missing).is_err());
}

#[test]
fn values_are_shared_between_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<CudaDevice>();
    is_send_and_sync::<CudaBuffer>();
    is_send_and_sync::<CudaKernel>();
}

#[test]
fn a_device_describes_itself_and_is_opened_once() {
    let Some(device) = device_or_note("its description") else { return };
    assert!(Arc::ptr_eq(&device, &CudaDevice::open(0).unwrap()));
    assert_eq!(device.ordinal(), 0);
    assert!(!device.name().is_empty());
    assert!(device.architecture().starts_with("sm_"), "{}", device.architecture());
    assert!(device.multiprocessors() > 0);
    assert!(device.total_memory() > 0);
    assert!(device.shared_bytes_per_block() >= DEFAULT_SHARED_BYTES);
}

#[test]
fn bytes_go_there_and_back() {
    let Some(device) = device_or_note("copying") else { return };
    let values: Vec<u8> = (0..100_003u32).map(|i| (i * 7 % 251) as u8).collect();
    let first = device.allocate(values.len()).unwrap();
    let second = device.allocate(values.len()).unwrap();
    device.upload(&first, &values).unwrap();
    device.copy(&first, &second).unwrap();
    device.fill(&first, 9).unwrap();
    let mut back = vec![0; values.len()];
    device.download(&second, &mut back).unwrap();
    assert_eq!(back, values);
    device.download(&first, &mut back).unwrap();
    assert!(back.iter().all(|&byte| byte == 9));
    let zeros = device.allocate_zeroed(values.len()).unwrap();
    device.download(&zeros, &mut back).unwrap();
    assert!(back.iter().all(|&byte| byte == 0));
    // Released on another thread.
    std::thread::spawn(move || drop((first, second))).join().unwrap();
    device.synchronize().unwrap();
}

#[test]
fn no_bytes_are_a_buffer_too() {
    let Some(device) = device_or_note("an empty buffer") else { return };
    let buffer = device.allocate(0).unwrap();
    assert_eq!((buffer.bytes(), buffer.device_pointer()), (0, 0));
    device.upload(&buffer, &[]).unwrap();
    device.fill(&buffer, 1).unwrap();
    device.copy(&buffer, &device.allocate_zeroed(0).unwrap()).unwrap();
    device.download(&buffer, &mut []).unwrap();
}

#[test]
fn lengths_must_match() {
    let Some(device) = device_or_note("the check of lengths") else { return };
    let buffer = device.allocate(8).unwrap();
    assert!(matches!(device.upload(&buffer, &[0; 9]), Err(Error::Internal { .. })));
    assert!(matches!(device.download(&buffer, &mut [0; 7]), Err(Error::Internal { .. })));
    let longer = device.allocate(16).unwrap();
    assert!(matches!(device.copy(&buffer, &longer), Err(Error::Internal { .. })));
}

#[test]
fn too_much_memory_is_an_error_and_leaves_the_device_usable() {
    let Some(device) = device_or_note("running out of memory") else { return };
    let kept = device.allocate_zeroed(1 << 20).unwrap();
    let requested = usize::try_from(device.total_memory()).unwrap() * 4;
    let Err(error) = device.allocate(requested) else { panic!("{requested} bytes allocated") };
    assert!(matches!(&error, Error::OutOfMemory { requested: r, .. } if *r == requested as u64), "{error}");
    assert!(floats(&kept).iter().all(|&value| value == 0.0));
}

#[test]
fn a_kernel_runs_and_is_timed() {
    let Some(device) = device_or_note("a launch") else { return };
    let Some(kernel) = scale_kernel(&device) else { return };
    assert_eq!(kernel.name(), "scale");
    let values: Vec<f32> = (0..1000u16).map(f32::from).collect();
    let buffer = device.allocate(values.len() * 4).unwrap();
    device.upload(&buffer, bytemuck::cast_slice(&values)).unwrap();
    scale(&kernel, &buffer, 2.0, 0).unwrap();
    let seconds = device.time(|| scale(&kernel, &buffer, 4.0, 0)).unwrap();
    assert!((0.0..1.0).contains(&seconds), "{seconds}");
    // More than 48 KB of shared memory has to be asked for.
    scale(&kernel, &buffer, 0.5, device.shared_bytes_per_block()).unwrap();
    drop(kernel);
    let expected: Vec<f32> = values.iter().map(|value| value * 4.0).collect();
    assert_eq!(floats(&buffer), expected);
}

#[test]
fn a_refused_launch_says_what_was_asked() {
    let Some(device) = device_or_note("a refused launch") else { return };
    let Some(kernel) = scale_kernel(&device) else { return };
    let buffer = device.allocate_zeroed(1024).unwrap();
    let Err(error) = scale(&kernel, &buffer, 2.0, 1 << 30) else { panic!("1 GB of shared memory") };
    assert!(
        error.to_string().contains("launch of kernel scale (grid [1, 1, 1], block [256, 1, 1]"),
        "{error}"
    );
    scale(&kernel, &buffer, 2.0, 0).unwrap();
    device.synchronize().unwrap();
}

#[test]
fn garbage_is_not_loaded() {
    let Some(device) = device_or_note("loading garbage") else { return };
    for bytes in [&b""[..], b"\x7fELF", b"no kernel"] {
        assert!(matches!(device.load(bytes, &["scale"], false), Err(Error::Device { .. })));
    }
    device.synchronize().unwrap();
}
