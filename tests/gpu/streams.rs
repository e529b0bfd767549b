//! What one stream leaves to another one, and events.

use super::*;

#[test]
fn a_tensor_is_used_on_another_stream_when_it_is_there() {
    let Some((gpu, _alone)) = gpu() else { return };
    let [first, second] = [Stream::new(&gpu).unwrap(), Stream::with_priority(&gpu, -1).unwrap()];
    for n in 0..3 {
        // Filled on the device's own stream, summed on one side, and that on another one.
        let x = tensor(70_000, &gpu) + f64::from(n);
        x.eval().unwrap();
        let y = first.scope(|| {
            let y = &x * 2.0;
            y.eval().map(|()| y)
        });
        let y = y.unwrap();
        let sum = second.scope(|| y.reshape([100, 700]).sum(0).to_vec::<f32>()).unwrap();
        let expected = &numbers(70_000).iter().map(|x| (x + n as f32) * 2.0).collect::<Vec<_>>();
        let expected = (0..700).map(|at| (0..100).map(|row| expected[row * 700 + at]).sum::<f32>());
        assert!(sum.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-3 * b.abs().max(1.0)));
        // And back, as a transfer, an upload and a copy do.
        let back = second.scope(|| tensor(10, &gpu).to(&Device::cpu()).to(&gpu) * 3.0);
        second.scope(|| back.eval()).unwrap();
        assert_eq!(back.to_vec::<f32>().unwrap()[1], numbers(2)[1] * 3.0);
    }
}

#[test]
fn memory_is_released_after_all_streams_that_use_it() {
    let Some((gpu, _alone)) = gpu() else { return };
    let sides = [Stream::new(&gpu).unwrap(), Stream::new(&gpu).unwrap()];
    let before = held(0);
    let x = tensor(5000, &gpu);
    x.eval().unwrap();
    let results = sides.each_ref().map(|side| {
        let y = &x + 1.0;
        side.scope(|| y.eval()).unwrap();
        y
    });
    drop(x);
    // The device's own stream goes on, and has other values in the memory that was released there.
    let others: Vec<Tensor> =
        (0..3).map(|n| Tensor::from_vec(vec![n as f32; 5000], [5000]).to(&gpu) + 0.5).collect();
    for (n, other) in others.iter().enumerate() {
        assert_eq!(other.to_vec::<f32>().unwrap(), [n as f32 + 0.5; 5000]);
    }
    drop(others);
    let expected: Vec<f32> = numbers(5000).iter().map(|x| x + 1.0).collect();
    for result in results {
        assert_eq!(result.to_vec::<f32>().unwrap(), expected);
    }
    assert_eq!(held(0), before);
}

#[test]
fn what_another_stream_reads_is_overwritten_later() {
    let Some((gpu, _alone)) = gpu() else { return };
    let side = Stream::new(&gpu).unwrap();
    let mut state = tensor(1 << 20, &gpu);
    state.eval().unwrap();
    let before = side.scope(|| {
        let before = &state * 2.0;
        before.eval().map(|()| before)
    });
    let in_place = stats().in_place;
    state = state * 0.5;
    state.eval().unwrap();
    assert_eq!(stats().in_place, in_place + 1);
    assert_eq!(state.slice(0, ..2).to_vec::<f32>().unwrap()[1], numbers(2)[1] * 0.5);
    let expected: Vec<f32> = numbers(1 << 20).iter().map(|x| x * 2.0).collect();
    assert_eq!(before.unwrap().to_vec::<f32>().unwrap(), expected);
}

#[test]
fn streams_share_no_counters_and_no_notes() {
    let Some((gpu, _alone)) = gpu() else { return };
    let sides = [Stream::new(&gpu).unwrap(), Stream::new(&gpu).unwrap()];
    let x = tensor(1 << 18, &gpu);
    x.eval().unwrap();
    // Long sums, whose blocks count who comes last.
    let sums = sides.each_ref().map(|side| {
        side.scope(|| {
            let sum = (&x * 1.0).sum(0);
            sum.eval().map(|()| sum).unwrap()
        })
    });
    let expected = sum_of(&numbers(1 << 18));
    for sum in &sums {
        assert!((sum.item::<f32>().unwrap() - expected).abs() < 1e-3 * expected.abs());
    }
    let at = |index: i64| Tensor::from_vec(vec![index], [1]).to(&gpu);
    let [wrong, right] = [sides[0].scope(|| x.index_select(0, &at(-1))), x.index_select(0, &at(1))];
    sides[0].scope(|| wrong.eval()).unwrap();
    sides[1].scope(|| right.eval()).unwrap();
    assert_eq!(right.item::<f32>().unwrap(), numbers(2)[1]);
    assert!(matches!(wrong.item::<f32>(), Err(Error::IndexOutOfRange { index: -1, .. })));
}

#[test]
fn events_order_and_time_streams() {
    let Some((gpu, _alone)) = gpu() else { return };
    let [first, second] = [Stream::new(&gpu).unwrap(), Stream::new(&gpu).unwrap()];
    let start = first.record().unwrap();
    let x = tensor(1000, &gpu).exp();
    first.scope(|| x.eval()).unwrap();
    let end = first.record().unwrap();
    second.wait(&end).unwrap();
    second.synchronize().unwrap();
    assert!(end.is_reached().unwrap() && second.is_idle().unwrap());
    assert!((0.0..10.0).contains(&end.seconds_since(&start).unwrap()));
    // Handles that are dropped are had again, with the priority that was asked for.
    let priority = driver::<unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int>("cuStreamGetPriority");
    for asked in [0, -1, 0, -1, 1] {
        let stream = Stream::with_priority(&gpu, asked).unwrap();
        let mut got = 7;
        // SAFETY: the handle is the stream's, and the number this function's.
        assert_eq!(unsafe { priority(stream.as_raw(), &mut got) }, 0);
        assert_eq!(got, asked.min(0));
    }
    let other = Device::cuda(1);
    if let Ok(elsewhere) = Stream::new(&other) {
        let there = elsewhere.record().unwrap();
        first.wait(&there).unwrap();
        let error = there.seconds_since(&start).unwrap_err().to_string();
        assert!(error.contains("cuda:0") && error.contains("cuda:1"), "{error}");
    }
}

#[test]
fn streams_of_others_may_go_before_the_tensors() {
    let Some((gpu, _alone)) = gpu() else { return };
    let create = driver::<unsafe extern "C" fn(*mut *mut c_void, c_uint) -> c_int>("cuStreamCreate");
    let destroy = driver::<unsafe extern "C" fn(*mut c_void) -> c_int>("cuStreamDestroy_v2");
    let x = tensor(1000, &gpu);
    x.eval().unwrap();
    let mut raw = std::ptr::null_mut();
    // SAFETY: the device's context is current, since x was computed.
    assert_eq!(unsafe { create(&mut raw, 1) }, 0);
    // SAFETY: the stream is destroyed after the handle is dropped.
    let stream = unsafe { Stream::external(&gpu, raw) }.unwrap();
    let (y, sum) = stream.scope(|| {
        assert_eq!(Stream::current(&gpu).unwrap().as_raw(), raw);
        let (y, sum) = (&x + 1.0, tensor(1 << 18, &gpu).sum(0));
        eval([&y, &sum]).map(|()| (y, sum)).unwrap()
    });
    drop(stream);
    // SAFETY: nobody uses it any more.
    assert_eq!(unsafe { destroy(raw) }, 0);
    drop(x);
    let z = &y * 2.0;
    drop(sum);
    assert_eq!(z.to_vec::<f32>().unwrap()[1], (numbers(2)[1] + 1.0) * 2.0);
}
