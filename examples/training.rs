//! Trains a small transformer, which reads eight digits and says them in order, and tells how many it has right.
//!
//! ```sh
//! cargo run --release --example training           # 400 steps
//! cargo run --release --example training -- 1000
//! ```
//!
//! The whole step is one plan: forward, backward and AdamW. It is recorded once, by `compile`.

use std::time::Instant;

use lazuli::{Attention, DType, Leaves, Reduction, Result, Tensor, Tensors, compile, grad, tree_map};

const BATCH: usize = 64;
const DIGITS: usize = 8;
/// What the model reads: the digits, a sign that they end, and of the answer all but the last.
const LENGTH: usize = 2 * DIGITS;
const SIGNS: usize = 11;
const WIDTH: usize = 64;
const HEADS: usize = 4;
const LAYERS: usize = 2;

#[derive(Clone)]
struct Layer {
    norms: [Tensor; 2],
    qkv: Tensor,
    out: Tensor,
    up: Tensor,
    down: Tensor,
}

#[derive(Clone)]
struct Model {
    signs: Tensor,
    places: Tensor,
    layers: Vec<Layer>,
    last: Tensor,
}

impl Tensors for Layer {
    fn to_leaves(&self, leaves: &mut Leaves) {
        self.norms.to_leaves(leaves);
        [&self.qkv, &self.out, &self.up, &self.down].iter().for_each(|weight| weight.to_leaves(leaves));
    }

    fn from_leaves(leaves: &mut Leaves) -> Layer {
        let norms = Tensors::from_leaves(leaves);
        let [qkv, out, up, down] = Tensors::from_leaves(leaves);
        Layer { norms, qkv, out, up, down }
    }
}

impl Tensors for Model {
    fn to_leaves(&self, leaves: &mut Leaves) {
        self.signs.to_leaves(leaves);
        self.places.to_leaves(leaves);
        self.layers.to_leaves(leaves);
        self.last.to_leaves(leaves);
    }

    fn from_leaves(leaves: &mut Leaves) -> Model {
        let [signs, places] = Tensors::from_leaves(leaves);
        Model { signs, places, layers: Tensors::from_leaves(leaves), last: Tensors::from_leaves(leaves) }
    }
}

impl Model {
    fn new() -> Model {
        let weight = |from: usize, to: usize, seed: usize| Tensor::randn([from, to], seed as u64) * 0.1;
        let layer = |number: usize| Layer {
            norms: [0, 1].map(|_| Tensor::ones([WIDTH], DType::F32)),
            qkv: weight(WIDTH, 3 * WIDTH, 10 * number + 3),
            out: weight(WIDTH, WIDTH, 10 * number + 4),
            up: weight(WIDTH, 4 * WIDTH, 10 * number + 5),
            down: weight(4 * WIDTH, WIDTH, 10 * number + 6),
        };
        Model {
            signs: weight(SIGNS, WIDTH, 0),
            places: weight(LENGTH, WIDTH, 1),
            layers: (0..LAYERS).map(layer).collect(),
            last: weight(WIDTH, SIGNS, 2),
        }
    }

    /// For each place, how likely each sign is to be the next one.
    fn logits(&self, read: &Tensor) -> Tensor {
        let mut x = read.embedding(&self.signs) + &self.places;
        for layer in &self.layers {
            let heads = x.rms_norm([WIDTH], Some(&layer.norms[0]), 1e-5).matmul(&layer.qkv);
            let heads = heads.reshape([BATCH, LENGTH, 3, HEADS, WIDTH / HEADS]).permute([2, 0, 3, 1, 4]);
            let [q, k, v] = [0, 1, 2].map(|part| heads.select(0, part));
            let mixed = q.scaled_dot_product_attention(k, v, &Attention::new().causal(true));
            x = x + mixed.transpose(1, 2).reshape([BATCH, LENGTH, WIDTH]).matmul(&layer.out);
            let hidden = x.rms_norm([WIDTH], Some(&layer.norms[1]), 1e-5).matmul(&layer.up).gelu();
            x = x + hidden.matmul(&layer.down);
        }
        x.matmul(&self.last)
    }
}

/// Digits with what the model is to say of them.
fn batch(number: u64) -> (Tensor, Tensor) {
    let digits = Tensor::randint(0, 10, [BATCH, DIGITS], number);
    let sorted = digits.sort(1, false).0;
    let end = Tensor::full([BATCH, 1], 10, DType::I64);
    (Tensor::cat([&digits, &end, &sorted.slice(1, ..DIGITS as i64 - 1)], 1), sorted)
}

fn main() -> Result<()> {
    let steps = std::env::args().nth(1).and_then(|steps| steps.parse().ok()).unwrap_or(400);
    let mut model = Model::new();
    let zeros = tree_map([&model], |[weight]| weight.zeros_like());
    let mut moments = [zeros.clone(), zeros];
    let train = compile(|(model, [m, v], read, sorted): (Model, [Model; 2], Tensor, Tensor)| {
        let logits = model.logits(&read).slice(1, DIGITS as i64..);
        let loss = logits.flatten(..2).cross_entropy(sorted.flatten(..), Reduction::Mean);
        let right = logits.argmax(-1).eq(&sorted).cast(DType::F32).mean(..);
        let gradients = grad(&loss, &model);
        // AdamW.
        let m = tree_map([&m, &gradients], |[m, g]| m * 0.9 + g * 0.1);
        let v = tree_map([&v, &gradients], |[v, g]| v * 0.99 + g.square() * 0.01);
        let model =
            tree_map([&model, &m, &v], |[weight, m, v]| weight * (1.0 - 1e-4) - m / (v.sqrt() + 1e-8) * 3e-3);
        (model, [m, v], [loss, right])
    });
    let start = Instant::now();
    for step in 0..steps {
        let (read, sorted) = batch(step);
        lazuli::eval([&read, &sorted])?;
        let result;
        (model, moments, result) = train.call((&model, &moments, read, sorted))?;
        if step % 50 == 0 || step + 1 == steps {
            let [loss, right] = [result[0].item::<f32>()?, result[1].item::<f32>()?];
            let seconds = start.elapsed().as_secs_f64();
            println!("step {step:4}: loss {loss:.3}, {:5.1} % right, {seconds:.1} s", 100.0 * right);
        }
    }
    Ok(())
}
