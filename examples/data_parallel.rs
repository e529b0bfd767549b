//! Trains a small classifier on all GPUs of the machine, or on the CPU under four names where there are none: each device has the
//! weights and a part of every batch, and the gradients are added up in the order of the devices.
//!
//! ```sh
//! cargo run --release --example data_parallel
//! cargo run --release --example data_parallel -- cuda:0 cuda:1 cpu    # devices of your choice
//! ```

use std::time::Instant;

use lazuli::{DType, Device, Reduction, Result, Tensor, compile, eval, grad, parallel, tree_map};

const BATCH: usize = 4096;
const FEATURES: usize = 64;
const HIDDEN: usize = 128;
const CLASSES: usize = 10;
const STEPS: usize = 60;

/// Two layers: weights and biases.
type Weights = [Tensor; 4];

fn devices() -> Result<Vec<Device>> {
    let named = std::env::args().skip(1).map(|name| name.parse()).collect::<Result<Vec<Device>>>()?;
    let gpus: Vec<Device> = (0..).map(Device::cuda).take_while(|gpu| gpu.information().is_ok()).collect();
    Ok(match (named.is_empty(), gpus.is_empty()) {
        (false, _) => named,
        (true, false) => gpus,
        (true, true) => (0..4).map(Device::cpu_virtual).collect(),
    })
}

/// The sums, over a part of a batch, of the losses, of the right answers, and of the gradients.
fn gradients((weights, x, labels): (Weights, Tensor, Tensor)) -> (Weights, [Tensor; 2]) {
    let [w1, b1, w2, b2] = &weights;
    let logits = (x.matmul(w1) + b1).relu().matmul(w2) + b2;
    let loss = logits.cross_entropy(&labels, Reduction::Sum);
    let right = logits.argmax(1).eq(&labels).cast(DType::F32).sum(..);
    (grad(&loss, &weights), [loss, right])
}

/// Points around the classes' centres.
fn batch(number: u64, centres: &Tensor) -> (Tensor, Tensor) {
    let labels = (Tensor::rand([BATCH], 2 * number) * CLASSES as f64).cast(DType::I64);
    let noise = Tensor::randn([BATCH, FEATURES], 2 * number + 1);
    (centres.index_select(0, &labels) + noise, labels)
}

fn main() -> Result<()> {
    let devices = devices()?;
    for device in &devices {
        println!("{}", device.description()?);
    }
    let layer =
        |from: usize, to: usize, seed: u64| Tensor::randn([from, to], seed) * (2.0 / from as f64).sqrt();
    let zeros = |extent: usize| Tensor::zeros([extent], DType::F32);
    let weights = [layer(FEATURES, HIDDEN, 1), zeros(HIDDEN), layer(HIDDEN, CLASSES, 2), zeros(CLASSES)];
    let mut on_each = parallel::replicate(&weights, &devices)?;
    let centres = Tensor::randn([CLASSES, FEATURES], 3) * 0.4;

    let gradients = compile(gradients);
    let descend = compile(|(weights, gradients): (Weights, Weights)| {
        tree_map([&weights, &gradients], |[weight, gradient]| weight - gradient * (0.5 / BATCH as f64))
    });
    let start = Instant::now();
    for step in 0..STEPS {
        let (x, labels) = batch(step as u64, &centres);
        eval([&x, &labels])?;
        let parts = parallel::scatter(&(x, labels), &devices, 0)?;
        let of_parts = parallel::parallel_apply(
            |number, (x, labels): (Tensor, Tensor)| gradients.call((&on_each[number], &x, &labels)),
            parts,
            &devices,
        )?;
        let totals = parallel::all_reduce(&of_parts, &devices)?;
        let both = on_each.iter().zip(&totals).map(|(weights, (gradients, _))| (weights, gradients));
        on_each = both.map(|both| descend.call(both)).collect::<Result<_>>()?;
        if step % 10 == 9 {
            let [loss, right] = &totals[0].1;
            let mean = |sum: &Tensor| Ok(sum.item::<f32>()? / BATCH as f32);
            println!("step {:3}: loss {:.4}, {:.1} % right", step + 1, mean(loss)?, 100.0 * mean(right)?);
        }
    }
    println!("{:.1} ms a step", start.elapsed().as_secs_f64() * 1e3 / STEPS as f64);
    for (device, weights) in devices.iter().zip(&on_each) {
        for (own, first) in weights.iter().zip(&on_each[0]) {
            assert_eq!(own.to_vec::<f32>()?, first.to_vec::<f32>()?, "the weights of {device}");
        }
    }
    println!("the weights are the same on all {} devices, bit by bit", devices.len());
    Ok(())
}
