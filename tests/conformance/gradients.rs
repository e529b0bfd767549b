//! Proves the kernels of gradients right on every device: products over several axes of which the first is an argument, windows
//! that go from line to line while they are packed, sums of what was broadcast, loops the other way.

use lazuli::{Attention, Conv2d, DType, Device, Reduction, Tensor, grad};

use crate::common::data::floats;
use crate::common::{check_fused, check_on_cpu, near};

fn of(device: &Device, shape: &[usize], seed: u64) -> Tensor {
    floats(device, DType::F32, shape.to_vec(), 1.0, seed)
}

#[test]
fn of_products_with_heads() {
    for batch in [3, 8] {
        check_fused("heads", |device| {
            let (x, v) = (of(device, &[batch, 20, 48], 1), of(device, &[48, 40], 2) * 0.2);
            let w = of(device, &[48, 48], 3) * 0.2;
            let heads = x.matmul(&w).reshape([batch, 20, 4, 12]).transpose(1, 2);
            let mixed = heads.scaled_dot_product_attention(&heads, &heads, &Attention::new().causal(true));
            let loss = mixed.transpose(1, 2).reshape([batch, 20, 48]).matmul(&v).square().mean(..);
            let [dx, dw, dv] = grad(&loss, &[x, w, v]);
            vec![near("x", dx, 1e-4, 1e-6), near("w", dw, 1e-4, 1e-5), near("v", dv, 1e-4, 1e-5)]
        });
    }
}

#[test]
fn of_convolutions() {
    check_fused("convolutions", |device| {
        let (x, w) = (of(device, &[3, 24, 14, 11], 1), of(device, &[40, 24, 3, 3], 2) * 0.1);
        let narrow = of(device, &[12, 12, 3, 3], 3) * 0.1;
        let settings = Conv2d::new().stride(2).padding(1).groups(2);
        let wide = x.conv2d(&w, None, 1, 1).relu().max_pool2d(2, 2).square().mean(..);
        let strided = x.conv2d_with(&narrow, None, settings).square().mean(..);
        let [dx, dw] = grad(&wide, &[x.clone(), w]);
        let [dy, dn] = grad(&strided, &[x, narrow]);
        let all = [("wide, x", dx), ("wide, w", dw), ("strided, x", dy), ("strided, w", dn)];
        all.map(|(name, of)| near(name, of, 1e-4, 1e-5)).into()
    });
}

#[test]
fn of_norms_losses_and_loops() {
    check_fused("norms", |device| {
        let (x, w) = (of(device, &[13, 37], 1), of(device, &[37], 2));
        let labels = Tensor::arange(0, 13, 1).cast(DType::I64).to(device);
        let loss = x.layer_norm([37], Some(&w), None, 1e-5).gelu().cross_entropy(&labels, Reduction::Mean);
        let [dx, dw] = grad(&loss, &[x.clone(), w.clone()]);
        let looped = x.scan_with(0, 0.0, |h, x| (h * &w + x).tanh()).square().sum(..);
        let [lx, lw] = grad(&looped, &[x.clone(), w]);
        let gated = (x.narrow(1, 0, 18).sigmoid() * x.narrow(1, 18, 18).tanh()).sum(..);
        let sorted = x.sort(1, false).0.cumsum(1).square().sum(..);
        vec![
            near("x", dx, 1e-4, 1e-6),
            near("w", dw, 1e-4, 1e-6),
            near("loop, x", lx, 1e-4, 1e-5),
            near("loop, w", lw, 1e-4, 1e-5),
            near("gated", grad(&gated, &x), 1e-5, 1e-6),
            near("sorted", grad(&sorted, &x), 1e-4, 1e-5),
        ]
    });
}

/// More products than one kernel has sums for: a layer that is used again and again.
#[test]
fn of_a_layer_in_many_steps() {
    check_on_cpu("steps", |device| {
        let (x, w) = (of(device, &[12, 24], 1), of(device, &[24, 24], 2) * 0.2);
        let mut h = x.clone();
        for _ in 0..11 {
            h = (h.matmul(&w) + &x).tanh();
        }
        let [dx, dw] = grad(&h.square().mean(..), &[x, w]);
        vec![near("x", dx, 1e-4, 1e-6), near("w", dw, 1e-4, 1e-5)]
    });
}
