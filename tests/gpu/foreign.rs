//! Memory that is somebody else's, or becomes it: pointers, DLPack.

use super::*;

/// Memory that a program got from the driver itself.
struct Foreign {
    address: u64,
    idle: Option<(Stream, Arc<AtomicBool>)>,
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if let Some((stream, was_idle)) = &self.idle {
            was_idle.store(stream.is_idle().unwrap(), Ordering::Relaxed);
        }
        let free = driver::<unsafe extern "C" fn(u64) -> c_int>("cuMemFree_v2");
        // SAFETY: allocated by the test, and nobody else's.
        assert_eq!(unsafe { free(self.address) }, 0);
    }
}

#[test]
fn memory_of_others_is_used_in_its_place() {
    let Some((gpu, _alone)) = gpu() else { return };
    let allocate = driver::<unsafe extern "C" fn(*mut u64, usize) -> c_int>("cuMemAlloc_v2");
    let copy = driver::<unsafe extern "C" fn(u64, *const c_void, usize, *mut c_void) -> c_int>(
        "cuMemcpyHtoDAsync_v2",
    );
    let side = Stream::new(&gpu).unwrap();
    tensor(1, &gpu).eval().unwrap(); // the context is current
    let values = numbers(1000);
    let mut address = 0;
    // SAFETY: the address is this function's.
    assert_eq!(unsafe { allocate(&mut address, 4000) }, 0);
    // SAFETY: the memory has so many bytes, and the values are there until the end.
    assert_eq!(unsafe { copy(address, values.as_ptr().cast(), 4000, side.as_raw()) }, 0);
    let was_idle = Arc::new(AtomicBool::new(false));
    let keeper = Foreign { address, idle: Some((side.clone(), was_idle.clone())) };
    // SAFETY: the elements are written in the order of the side, and kept by the keeper.
    let x = side.scope(|| unsafe {
        Tensor::from_raw_parts(address as *const c_void, DType::F32, [1000], &gpu, Arc::new(keeper))
    });
    assert_eq!(x.as_ptr().unwrap() as u64, address);
    let twice = &x * 2.0;
    twice.eval().unwrap();
    let thrice = x.slice(0, 1..).donate() * 3.0;
    side.scope(|| thrice.eval()).unwrap();
    drop(x);
    assert!(was_idle.load(Ordering::Relaxed), "it is given back when the kernels are done");
    assert_eq!(twice.to_vec::<f32>().unwrap(), values.iter().map(|x| x * 2.0).collect::<Vec<_>>());
    assert_eq!(thrice.to_vec::<f32>().unwrap()[0], values[1] * 3.0);
}

#[test]
#[cfg(feature = "dlpack")]
fn dlpack_shares_a_gpus_memory() {
    let Some((gpu, _alone)) = gpu() else { return };
    let before = held(0);
    let side = Stream::new(&gpu).unwrap();
    let x = tensor(1 << 20, &gpu) + 1.0;
    // Made and used by the consumer on the side.
    let shared = side.scope(|| x.to_dlpack()).unwrap();
    let view = shared.validate().unwrap();
    assert_eq!(
        (view.device().device_id, view.shape(), view.data_ptr()),
        (0, &[1 << 20][..], x.as_ptr().unwrap())
    );
    // SAFETY: the memory is x's, and nobody writes to it.
    let y = side.scope(|| unsafe { Tensor::from_dlpack(shared) });
    assert_eq!((y.device().unwrap(), y.as_ptr().unwrap()), (gpu, x.as_ptr().unwrap()));
    let (address, thrice) = (y.as_ptr().unwrap(), y.donate() * 3.0);
    drop(x);
    side.scope(|| thrice.eval()).unwrap();
    assert_ne!(thrice.as_ptr().unwrap(), address);
    // Memory that is released is there for others.
    let others = tensor(1 << 20, &gpu) * 2.0;
    others.eval().unwrap();
    let expected: Vec<f32> = numbers(1 << 20).iter().map(|x| (x + 1.0) * 3.0).collect();
    assert_eq!(thrice.to_vec::<f32>().unwrap(), expected);
    // Columns of a matrix of others are read where they are.
    let matrix = tensor(35, &gpu).reshape([5, 7]);
    let mut transposed = matrix.to_dlpack().unwrap();
    // SAFETY: extents and strides are those of the transposed matrix.
    unsafe {
        let descriptor = &mut (*transposed.as_ptr()).dl_tensor;
        for part in [descriptor.shape, descriptor.strides] {
            std::ptr::swap(part, part.add(1));
        }
        *transposed.flags_mut() = dlpark::DlpackFlags::empty();
    }
    // SAFETY: the memory is the matrix's, and nobody writes to it.
    let transposed = unsafe { Tensor::from_dlpack(transposed) };
    assert_eq!(transposed.to_vec::<f32>().unwrap(), matrix.t().to_vec::<f32>().unwrap());
    drop((transposed, matrix, thrice, others));
    assert_eq!(held(0), before);
}
