//! Sums of products, in windows and in heads: their gradients are such sums again.

use lazuli::{Conv1d, Conv2d, Device, Tensor};

use super::{checked, numbers};

#[test]
fn convolutions_go_back() {
    let of = |count: usize, shape: &[usize]| {
        Tensor::from_vec(numbers(count, shape.iter().product(), -1.0, 1.0), shape.to_vec())
            .to(&Device::interpreter())
    };
    let squares = |x: Tensor| (x.square() * 0.5 + x).sum(..);
    let settings = [
        (Conv2d::new().stride((2, 1)).padding((1, 2)), 1),
        (Conv2d::new().stride((2, 3)).padding((2, 0)).dilation((1, 2)).groups(2), 2),
        (Conv2d::new().same().dilation((1, 1)), 1),
    ];
    for (number, (conv, groups)) in settings.into_iter().enumerate() {
        let kernel = if number == 2 { [2, 4] } else { [3, 2] };
        let (xs, ws) = ([1, 4, 5, 6], [2, 4 / groups, kernel[0], kernel[1]]);
        let (x, w) = (of(number, &xs), of(number + 1, &ws));
        let x_values = numbers(2, 120, -1.0, 1.0);
        checked(|x| squares(x.conv2d_with(&w, None, conv)), &x_values, &xs);
        let count = ws.iter().product();
        checked(|w| squares(x.conv2d_with(w, None, conv)), &numbers(3, count, -1.0, 1.0), &ws);
    }
    let conv = Conv1d::new().stride(3).padding(1).output_padding(2).groups(2);
    let (x, w) = (of(4, &[2, 4, 3]), of(5, &[4, 3, 4]));
    checked(|x| squares(x.conv_transpose1d_with(&w, None, conv)), &numbers(6, 24, -1.0, 1.0), &[2, 4, 3]);
    checked(|w| squares(x.conv_transpose1d_with(w, None, conv)), &numbers(7, 48, -1.0, 1.0), &[4, 3, 4]);
}

/// Of sizes at which products are packed: windows in rows whose terms go from line to line, and from image to image.
#[test]
fn packed_convolutions_go_back() {
    let run = |device: &Device| {
        let (x, w) = (
            Tensor::randn([3, 24, 14, 11], 1).to(device),
            (Tensor::randn([40, 24, 3, 3], 2) * 0.1).to(device),
        );
        let loss = x.conv2d(&w, None, 1, 1).relu().max_pool2d(2, 2).square().mean(..);
        let [dx, dw] = lazuli::grad(&loss, &[x, w]);
        lazuli::eval([&dx, &dw]).unwrap();
        [dx, dw].map(|t| t.to_vec::<f32>().unwrap())
    };
    let (own, expected) = (run(&Device::cpu()), run(&Device::interpreter()));
    for (own, expected) in own.iter().flatten().zip(expected.iter().flatten()) {
        assert!((own - expected).abs() <= 1e-5 * (1e-3 + expected.abs()), "{own}, not {expected}");
    }
}

/// Heads apart, and a batch whose size is an argument: products over both are packed like others.
#[test]
fn products_of_heads_go_back() {
    let run = |device: &Device, batch: usize| {
        let x = Tensor::randn([batch, 20, 48], 1).to(device);
        let (w, v) =
            ((Tensor::randn([48, 48], 2) * 0.1).to(device), (Tensor::randn([48, 40], 3) * 0.1).to(device));
        let heads = x.matmul(&w).reshape([batch, 20, 4, 12]).transpose(1, 2).tanh();
        let loss = heads.transpose(1, 2).reshape([batch, 20, 48]).matmul(&v).square().mean(..);
        let gradients = lazuli::grad(&loss, &[w, v]);
        let text = lazuli::explain(&gradients).unwrap().to_string();
        lazuli::eval(&gradients).unwrap();
        (gradients.map(|t| t.to_vec::<f32>().unwrap()), text)
    };
    for batch in [4, 7] {
        let ((own, text), (expected, _)) = (run(&Device::cpu(), batch), run(&Device::interpreter(), batch));
        assert!(!text.contains("column_reduce("), "{text}");
        for (own, expected) in own.iter().flatten().zip(expected.iter().flatten()) {
            assert!((own - expected).abs() <= 1e-5 * (1e-3 + expected.abs()), "{own}, not {expected}");
        }
    }
}

/// A layer of many steps: the sum of all their products is cut into kernels that pack them.
#[test]
fn sums_of_many_products_stay_products() {
    let (x, w) =
        (Tensor::rand([32, 128], 1).to(&Device::cpu()), Tensor::rand([128, 128], 2).to(&Device::cpu()));
    let mut h = x.clone();
    for _ in 0..30 {
        h = (h.matmul(&w) + &x).tanh();
    }
    let text = lazuli::explain([&lazuli::grad(&h.sum(..), &w)]).unwrap().to_string();
    assert!(!text.contains("column_reduce("), "{text}");
}
