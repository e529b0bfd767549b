//! One pipeline of each kind on every device.
use lazuli::*;
fn devices() -> Vec<Device> {
    vec![Device::interpreter(), Device::cpu(), Device::cuda_emulated()]
}
fn data(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919 % 1000) as f32 - 500.0) / 100.0).collect()
}
fn check(name: &str, f: impl Fn(&Device) -> Tensor) {
    let mut first: Option<Vec<f32>> = None;
    for fusion in [Fusion::On, Fusion::Off] {
        for d in devices() {
            let y = f(&d);
            let v = with_fusion(fusion, || y.to_vec::<f32>())
                .unwrap_or_else(|e| panic!("{name} {d} {fusion:?}: {e}"));
            match &first {
                None => first = Some(v),
                Some(r) => {
                    let err = v
                        .iter()
                        .zip(r)
                        .map(|(a, b)| {
                            if a == b || a.is_nan() && b.is_nan() {
                                0.0
                            } else {
                                (a - b).abs() / b.abs().max(1.0)
                            }
                        })
                        .fold(0.0f32, f32::max);
                    println!("{name} {d} {fusion:?}: max rel err {err:e}");
                    assert!(
                        err < 1e-4,
                        "{name} {d} {fusion:?}: {err} {:?} {:?}",
                        &v[..v.len().min(8)],
                        &r[..r.len().min(8)]
                    );
                }
            }
        }
    }
}
#[test]
fn smoke() {
    check("relu_pool", |d| {
        Tensor::from_vec(data(2 * 3 * 16 * 16), [2, 3, 16, 16]).to(d).relu().max_pool2d(2, 2)
    });
    check("relu_pool_pad", |d| {
        Tensor::from_vec(data(2 * 3 * 15 * 17), [2, 3, 15, 17])
            .to(d)
            .relu()
            .max_pool2d_with(Pool2d::new(3).stride(2).padding(1))
    });
    check("where_mul", |d| {
        let x = Tensor::from_vec(data(1003), [1003]).to(d);
        let y = &x * 3.0;
        x.gt(0.5).where_(&x * 2.0, &x / 2.0) * y
    });
    check("bias_relu", |d| {
        (Tensor::from_vec(data(1000 * 20), [1000, 20]).to(d) + Tensor::from_vec(data(20), [20]).to(d)).relu()
    });
    check("gelu", |d| (Tensor::from_vec(data(5000), [50, 100]).to(d) * 1.5 + 0.25).gelu());
    check("normalise", |d| {
        let x = Tensor::from_vec(data(50 * 300), [50, 300]).to(d);
        (&x - x.mean_keepdim(1)) / (x.var_keepdim(1, 0) + 1e-5).sqrt()
    });
    check("normalise_all", |d| {
        let x = Tensor::from_vec(data(300 * 451 * 3), [300, 451, 3]).to(d);
        (&x - x.mean(..)) / (x.var(.., 0) + 1e-5).sqrt()
    });
    check("sum_cols", |d| Tensor::from_vec(data(1000 * 37), [1000, 37]).to(d).sum(0));
    check("mid", |d| Tensor::from_vec(data(10 * 100 * 32), [10, 100, 32]).to(d).max(1));
    check("softmax", |d| Tensor::from_vec(data(64 * 100), [64, 100]).to(d).softmax(-1));
    check("layer_norm", |d| {
        Tensor::from_vec(data(64 * 100), [64, 100]).to(d).layer_norm([100], None, None, 1e-5)
    });
    check("transposed", |d| Tensor::from_vec(data(64 * 100), [64, 100]).to(d).t().exp());
    check("sum_t", |d| (Tensor::from_vec(data(8 * 16 * 100), [8, 16, 100]).to(d).sum(2).t() + 1.0).exp());
    check("rand", |d| Tensor::rand([1000], 42).to(d) + Tensor::ones([1000], DType::F32).to(d));
    check("flip", |d| {
        Tensor::from_vec(data(64 * 100), [64, 100]).to(d).flip([0, 1]).pad(&[(1, 2), (3, 0)], 7.0)
    });
}
#[test]
fn show() {
    let x = Tensor::from_vec(data(2 * 3 * 16 * 16), [2, 3, 16, 16]);
    let n = {
        let x = Tensor::from_vec(data(300 * 451 * 3), [300, 451, 3]);
        (&x - x.mean(..)) / (x.var(.., 0) + 1e-5).sqrt()
    };
    for y in [x.relu().max_pool2d(2, 2), (&x * 2.0 + 1.0).gelu(), n, x.softmax(-1)] {
        println!("{}", y.explain().unwrap());
        println!("{}", y.compile_for(&Target::cuda("sm_90")).unwrap().source());
    }
}
