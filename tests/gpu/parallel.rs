//! Several devices at once, where nobody waits.

use lazuli::parallel;

use super::*;

/// All GPUs, if there are several.
fn gpus() -> Option<(Vec<Device>, MutexGuard<'static, ()>)> {
    let (first, alone) = gpu()?;
    let is_there = |device: &Device| device.information().is_ok();
    let others = (1..8).map(Device::cuda).take_while(is_there);
    let all: Vec<Device> = std::iter::once(first).chain(others).collect();
    (all.len() > 1).then_some((all, alone))
}

#[test]
fn one_thread_keeps_all_devices_busy_and_waits_for_none() {
    let Some((gpus, _alone)) = gpus() else { return };
    let is_lazy = held(0).is_some();
    let x = tensor(5000, &Device::cpu()).reshape([1000, 5]);
    let f = compile(|(x, w): (Tensor, Tensor)| (x * w).exp().sum(1));
    let weights = Tensor::from([0.1f32, -0.2, 0.3, 0.0, 0.25]);
    let on_each = parallel::replicate(&weights, &gpus).unwrap();
    let parts = parallel::scatter(&x, &gpus, 0).unwrap();
    eval(parts.iter().chain(&on_each)).unwrap();
    let streams: Vec<Stream> = gpus.iter().map(|gpu| Stream::current(gpu).unwrap()).collect();
    let run = |compiled: bool| {
        let on_part = |number: usize, x: Tensor| match compiled {
            true => f.call((&x, &on_each[number])),
            false => Ok((x * &on_each[number]).exp().sum(1)),
        };
        parallel::parallel_apply(on_part, parts.clone(), &gpus).unwrap()
    };
    let expected = (&x * &weights).exp().sum(1).to_vec::<f32>().unwrap();
    for compiled in [true, false, true] {
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
        let results = run(compiled);
        if is_lazy {
            assert!(streams.iter().all(|stream| !stream.is_idle().unwrap()));
        }
        let joined = parallel::gather(&results, &gpus[0], 0).unwrap();
        joined.eval().unwrap();
        if is_lazy {
            assert!(!streams[0].is_idle().unwrap());
        }
        let got = joined.to_vec::<f32>().unwrap();
        assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-4 * b.abs()));
    }
}

#[test]
fn results_for_the_host_are_under_way_on_all_before_the_first_is_read() {
    let Some((gpus, _alone)) = gpus() else { return };
    let x = tensor(1000, &Device::cpu());
    let on_each: Vec<Tensor> = gpus.iter().map(|gpu| x.to(gpu)).collect();
    eval(&on_each).unwrap();
    gpus.iter().for_each(|gpu| gpu.synchronize().unwrap());
    let launches = stats().launches;
    // A copy to the host waits. The first one fails, and by then the others' work has been launched.
    let wrong = Tensor::from([2000i64]).to(&gpus[0]);
    let mut results = vec![on_each[0].index_select(0, &wrong).to(&Device::cpu())];
    results.extend(on_each[1..].iter().map(|x| (x + 1.0).to(&Device::cpu()) * 2.0));
    let error = eval(&results).unwrap_err();
    assert!(matches!(error, Error::IndexOutOfRange { index: 2000, .. }), "{error}");
    assert_eq!(stats().launches - launches, gpus.len() as u64);
    for result in &results[1..] {
        let expected: Vec<f32> = numbers(1000).iter().map(|x| (x + 1.0) * 2.0).collect();
        assert_eq!(result.to_vec::<f32>().unwrap(), expected);
    }
}

#[test]
fn gradients_are_added_in_the_order_of_the_devices() {
    let Some((gpus, _alone)) = gpus() else { return };
    let values = [1e8f32, 3.0, -1e8, 0.5, 7.0, -2.0, 11.0, 0.25];
    let parts: Vec<Tensor> =
        (gpus.iter().zip(values)).map(|(gpu, value)| Tensor::from([value]).to(gpu)).collect();
    let expected = values[1..gpus.len()].iter().fold(values[0], |sum, value| sum + value);
    for total in parallel::all_reduce(&parts, &gpus).unwrap() {
        assert_eq!(total.item::<f32>().unwrap(), expected);
    }
}

#[test]
fn the_default_device_is_where_data_goes() {
    let Some((gpu, _alone)) = gpu() else { return };
    let before = stats().bytes_uploaded;
    let sum = gpu.scope(|| {
        let x = Tensor::from_vec(numbers(100), [100]);
        assert_eq!(x.device().unwrap(), gpu);
        (x + Tensor::ones([100], DType::F32)).sum(0)
    });
    assert_eq!(sum.device().unwrap(), gpu);
    assert!((sum.item::<f32>().unwrap() - sum_of(&numbers(100)) - 100.0).abs() < 1e-3);
    assert_eq!(stats().bytes_uploaded - before, 400);
}
