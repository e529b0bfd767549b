//! What a profile says of a GPU's kernels.

use super::*;

#[test]
fn kernels_have_registers_and_occupancy() {
    let Some((gpu, _alone)) = gpu() else { return };
    let (x, y) = (tensor(1 << 16, &gpu), tensor(1 << 12, &gpu).reshape([64, 64]));
    eval([&x, &y]).unwrap();
    let (result, profile) = lazuli::profile(|| x.exp().eval().and_then(|()| y.matmul(&y).eval()));
    result.unwrap();
    assert_eq!(profile.kernels().len(), 2);
    for kernel in profile.kernels() {
        assert!(kernel.registers.is_some_and(|registers| (8..=255).contains(&registers)), "{profile}");
        assert!(kernel.occupancy.is_some_and(|share| share > 0.0 && share <= 1.0), "{profile}");
    }
    let text = profile.to_string();
    assert!(text.contains(" registers occupancy  kernel"), "{text}");
    let trace: serde_json::Value = serde_json::from_str(&profile.chrome_trace()).unwrap();
    let last = trace["traceEvents"].as_array().unwrap().last().unwrap();
    assert!(last["args"]["registers"].as_u64().is_some_and(|registers| registers > 0), "{trace}");
    // Shared memory and threads of a block say how many blocks a multiprocessor of the driver for tests has room for.
    if held(0).is_some() {
        let of = |name: &str| profile.kernels().iter().find(|kernel| kernel.name.starts_with(name)).unwrap();
        assert_eq!(of("exp").occupancy, Some(0.75));
    }
}

#[test]
fn kernels_of_the_cpu_have_neither() {
    let _alone = alone();
    let (result, profile) = lazuli::profile(|| Tensor::rand([100], 1).exp().eval());
    result.unwrap();
    assert!(profile.kernels().iter().all(|kernel| kernel.registers.is_none() && kernel.occupancy.is_none()));
    assert!(!profile.to_string().contains("occupancy"));
}
