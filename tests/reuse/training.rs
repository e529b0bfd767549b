//! Training steps of which each has another size: sentences of other lengths, images of other extents.

use lazuli::{
    Attention, Conv2d, DType, Interpolation, PadMode, Reduction, ScanOrder, Tensor, grad, scan, stats,
};

use super::{Device, alone, ramp};

/// Kernels compiled by the last of some steps.
fn compiled_by_last(steps: &[(usize, usize)], step: impl Fn(usize, usize) -> Vec<Tensor>) -> u64 {
    let mut compiled = 0;
    for &(batch, size) in steps {
        let before = stats();
        lazuli::eval(&step(batch, size)).unwrap();
        compiled = stats().kernels_compiled + stats().disk_hits - before.kernels_compiled - before.disk_hits;
    }
    compiled
}

/// A loss of classes, and each weight after a step.
fn after_step(logits: &Tensor, classes: &Tensor, weights: &[Tensor]) -> Vec<Tensor> {
    let loss = logits.cross_entropy(classes, Reduction::Mean);
    let gradients = grad(&loss, &weights.to_vec());
    let step = |(weight, gradient): (&Tensor, &Tensor)| weight - gradient * 0.01;
    weights.iter().zip(&gradients).map(step).chain([loss]).collect()
}

/// In the gradient of a layer that heads share, positions are divided by the length of a sentence.
#[test]
fn few_kernels_serve_sentences_of_every_length() {
    let _alone = alone();
    let weights: Vec<Tensor> =
        [[48, 16], [16, 16], [11, 16]].iter().map(|shape| ramp(&Device::cpu(), shape) * 0.01).collect();
    lazuli::eval(&weights).unwrap();
    let step = |batch: usize, length: usize| {
        let x = ramp(&Device::cpu(), &[batch, length, 16]) * 0.01;
        let classes = Tensor::randint(0, 11, [batch * length], 1);
        lazuli::eval([&x, &classes]).unwrap();
        let heads = x.linear(&weights[0], None).reshape([batch, length, 3, 4, 4]).permute([2, 0, 3, 1, 4]);
        let [q, k, v] = [0, 1, 2].map(|part| heads.select(0, part));
        let y = q.scaled_dot_product_attention(&k, &v, &Attention::new().causal(true));
        let y = &x + y.transpose(1, 2).reshape([batch, length, 16]).linear(&weights[1], None);
        after_step(&y.linear(&weights[2], None).reshape([-1, 11]), &classes, &weights)
    };
    let steps = [(3, 33), (3, 47), (5, 41), (3, 60), (5, 35), (5, 57), (3, 53), (5, 45)];
    let compiled = compiled_by_last(&steps, step);
    assert_eq!(compiled, 0);
}

/// In the gradient of a filter, terms are the positions of an image, which its conditions divide.
#[test]
fn few_kernels_serve_images_of_every_size() {
    let _alone = alone();
    let weights: Vec<Tensor> = [vec![8, 3, 3, 3], vec![8, 8, 3, 3], vec![5, 8]]
        .iter()
        .map(|s| ramp(&Device::cpu(), s) * 0.01)
        .collect();
    lazuli::eval(&weights).unwrap();
    let step = |batch: usize, size: usize| {
        let x = ramp(&Device::cpu(), &[batch, 3, size, size]) * 0.01;
        let classes = Tensor::randint(0, 5, [batch], 1);
        lazuli::eval([&x, &classes]).unwrap();
        let y = x.conv2d(&weights[0], None, 1, 1).relu().conv2d(&weights[1], None, 1, 1).relu();
        after_step(&y.mean([2, 3]).linear(&weights[2], None), &classes, &weights)
    };
    let steps = [(4, 34), (4, 38), (4, 46), (4, 42), (4, 54), (4, 50), (4, 36), (4, 44)];
    let compiled = compiled_by_last(&steps, step);
    assert_eq!(compiled, 0);
}

/// Windows over a border of an image's own elements, which is stored before them.
#[test]
fn few_kernels_serve_filters_with_reflected_borders() {
    let _alone = alone();
    let filter = ramp(&Device::cpu(), &[3, 1, 5, 5]) * 0.01;
    filter.eval().unwrap();
    let step = |batch: usize, size: usize| {
        let x = ramp(&Device::cpu(), &[batch, 3, size, size + 3]) * 0.01;
        x.eval().unwrap();
        let around = x.pad_with([(0, 0), (0, 0), (2, 2), (2, 2)], PadMode::Reflect);
        let mean = around.unfold(2, 5, 1).unfold(3, 5, 1).mean([-1, -2]);
        vec![mean, around.conv2d_with(&filter, None, Conv2d::new().groups(3))]
    };
    let steps = [(1, 40), (1, 41), (1, 42), (1, 43), (1, 50), (1, 45), (1, 51), (1, 57)];
    assert_eq!(compiled_by_last(&steps, step), 0);
}

/// Images of every size become images of one, and windows of one number, at positions from tables.
#[test]
fn few_kernels_serve_resizing_from_every_size() {
    let _alone = alone();
    let step = |batch: usize, size: usize| {
        let x = ramp(&Device::cpu(), &[batch, 3, size, size + 7]) * 0.01;
        x.eval().unwrap();
        let linear = Interpolation::Linear { align_corners: false };
        let square = x.interpolate([24, 24], linear).square().sum(..);
        vec![grad(&square, &x), x.adaptive_max_pool2d([5, 5])]
    };
    let steps = [53, 55, 59, 61, 67, 65, 71, 63, 57, 69, 73, 58].map(|size| (1, size));
    assert_eq!(compiled_by_last(&steps, step), 0);
}

/// What reaches the weights of a loop's steps is as many terms as there are steps, and what reaches its inputs as many parts.
#[test]
fn few_kernels_serve_recurrences_of_every_length() {
    let _alone = alone();
    let cpu = Device::cpu();
    let weights: Vec<Tensor> = [vec![3, 5], vec![5, 5], vec![5]]
        .iter()
        .map(|shape| ramp(&cpu, shape).cast(DType::F64) * 0.01)
        .collect();
    lazuli::eval(&weights).unwrap();
    let loss = |weights: &[Tensor], steps: usize| {
        let x = (ramp(&cpu, &[steps, 2, 3]) * 0.01).cast(DType::F64);
        let begun = Tensor::zeros([2, 5], DType::F64);
        let inputs = x.matmul(&weights[0]) + &weights[2];
        let (_, [states]) = scan([&inputs], 0, ScanOrder::new(), [begun], |[h], [x]| {
            let h = (x + h.matmul(&weights[1])).tanh();
            ([h.clone()], [h])
        });
        (states.square() * (x.sum_keepdim(2) + 1.0)).sum(..)
    };
    let step = |steps: usize| {
        let gradients = grad(&loss(&weights, steps), &weights);
        lazuli::eval(&gradients).unwrap();
        gradients
    };
    let mut compiled = 0;
    for steps in [9, 11, 14, 12, 30, 23] {
        let before = stats();
        let gradients = step(steps);
        compiled =
            stats().kernels_compiled + stats().plans_made - before.kernels_compiled - before.plans_made;
        for (number, gradient) in gradients.iter().enumerate() {
            // Central differences along a ramp.
            let along = ramp(&cpu, &gradient.shape().unwrap()).cast(DType::F64) * 1e-5;
            let at = |by: f64| {
                let mut moved = weights.clone();
                moved[number] = &weights[number] + &along * by;
                loss(&moved, steps).item::<f64>().unwrap()
            };
            let (slope, expected) =
                ((gradient * &along).sum(..).item::<f64>().unwrap(), (at(1.0) - at(-1.0)) / 2.0);
            assert!(
                (slope - expected).abs() <= 1e-6 * expected.abs(),
                "{steps} steps: {slope} is not {expected}"
            );
        }
    }
    assert_eq!(compiled, 0);
}

/// What is added up term by term is differentiated again as what is added up at once.
#[test]
fn second_gradients_of_many_ways() {
    let _alone = alone();
    let w = (ramp(&Device::cpu(), &[5]) * 0.1).cast(DType::F64);
    w.eval().unwrap();
    let slope = |w: &Tensor, steps: usize| {
        let x = (0..steps).fold(Tensor::full([5], 0.5, DType::F64), |x, _| (x * w + 0.25).tanh());
        grad(&x.sum(..), w)
    };
    for steps in [8, 9, 10, 14, 12, 27] {
        let second = grad(&slope(&w, steps).sum(..), &w).to_vec::<f64>().unwrap();
        let at = |by: f64| slope(&(&w + by), steps).to_vec::<f64>().unwrap();
        for ((second, after), before) in second.iter().zip(at(1e-5)).zip(at(-1e-5)) {
            let expected = (after - before) / 2e-5;
            assert!((second - expected).abs() <= 1e-7, "{steps} steps: {second} is not {expected}");
        }
    }
}
