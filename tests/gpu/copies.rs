//! Copies that nobody waits for, and how much they copy.

use super::*;

#[test]
fn copies_to_and_from_the_host_are_not_waited_for() {
    let Some((gpu, _alone)) = gpu() else { return };
    let marker = Stream::current(&gpu).unwrap();
    let before = stats();
    let x = tensor(1000, &Device::cpu()).pin().unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), numbers(1000));
    tensor(1, &gpu).to_vec::<f32>().unwrap(); // the device is idle
    let is_lazy = held(0).is_some(); // the driver for tests does nothing before somebody waits, as this does
    marker.synchronize().unwrap();
    let uploads: Vec<Tensor> = (0..5).map(|_| x.to(&gpu)).collect();
    eval(&uploads).unwrap();
    drop(x);
    let downloads: Vec<_> = (0..5).map(|n| (&uploads[n] * n as f64).download().unwrap()).collect();
    drop(uploads);
    if is_lazy {
        assert!(!marker.is_idle().unwrap() && !downloads[0].is_ready().unwrap());
    }
    for (n, download) in downloads.into_iter().enumerate() {
        if n == 3 {
            continue; // nobody waits for it
        }
        let y = download.wait().unwrap();
        assert_eq!(y.device().unwrap(), Device::cpu());
        // Used as any other tensor.
        let expected: Vec<f32> = numbers(1000).iter().map(|x| x * n as f32 + 1.0).collect();
        assert_eq!((y + 1.0).to_vec::<f32>().unwrap(), expected);
    }
    let after = stats();
    assert_eq!(after.bytes_uploaded - before.bytes_uploaded, 4 + 5 * 4000);
    assert_eq!(after.bytes_downloaded - before.bytes_downloaded, 4 + 4 * 4000);
    let at = Tensor::from_vec(vec![10i64], [1]).to(&gpu);
    let wrong = tensor(10, &gpu).index_select(0, &at).download().unwrap();
    assert!(matches!(wrong.wait(), Err(Error::IndexOutOfRange { index: 10, .. })));
}

#[test]
fn one_element_is_read_by_a_copy_of_one() {
    let Some((gpu, _alone)) = gpu() else { return };
    let x = tensor(1 << 18, &gpu);
    x.eval().unwrap();
    let before = stats().bytes_downloaded;
    assert_eq!(x.slice(0, 7..8).item::<f32>().unwrap(), numbers(8)[7]);
    assert_eq!(stats().bytes_downloaded - before, 4);
}
