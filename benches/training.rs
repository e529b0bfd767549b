//! Whole training steps: forward, backward and update, in one plan each. `training.py` times the same in PyTorch.
//!
//! ```sh
//! cargo bench --bench training              # all, or the names of some
//! target/peers/venv/bin/python benches/training.py
//! ```
//!
//! Prints the first call, which compiles what the cache does not have (`LAZULI_CACHE_DIR=` an empty folder for all), and the least and the median of 15 further ones, in milliseconds.

use std::time::Instant;

use lazuli::{Attention, DType, Reduction, Result, Tensor, compile, grad, tree_map};

/// A step, which gives the loss.
type Step = Box<dyn FnMut() -> Result<f32>>;

/// The weights, and both moments of Adam.
type State = [Vec<Tensor>; 3];

/// Makes weights and a batch.
type Program = fn() -> Result<Step>;

const PROGRAMS: [(&str, Program); 5] = [
    ("mlp", mlp),
    ("convnet", convnet),
    ("batch_norm", batch_norm),
    ("transformer", transformer),
    ("lstm", lstm),
];

fn main() -> Result<()> {
    let named: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    println!("{:12} {:>9} {:>9} {:>9}  ms", "step", "first", "least", "median");
    for (name, program) in PROGRAMS {
        if !named.is_empty() && !named.iter().any(|own| own == name) {
            continue;
        }
        let mut step = program()?;
        let mut time = || -> Result<f64> {
            let start = Instant::now();
            step()?;
            Ok(start.elapsed().as_secs_f64() * 1e3)
        };
        let first = time()?;
        time()?;
        let mut further = (0..15).map(|_| time()).collect::<Result<Vec<f64>>>()?;
        further.sort_by(f64::total_cmp);
        println!("{name:12} {first:9.1} {:9.2} {:9.2}", further[0], further[7]);
    }
    Ok(())
}

fn weight(shape: &[usize], scale: f64, seed: u64) -> Tensor {
    Tensor::randn(shape.to_vec(), seed) * scale
}

fn constant(extent: usize, value: f64) -> Tensor {
    Tensor::full([extent], value, DType::F32)
}

fn labels(shape: &[usize], end: i64) -> Tensor {
    Tensor::randint(0, end, shape.to_vec(), 7)
}

/// Steps of one model on one batch, by Adam or plainly.
fn steps(
    weights: Vec<Tensor>,
    batch: [Tensor; 2],
    is_adam: bool,
    loss: impl Fn(&[Tensor], &[Tensor; 2]) -> Tensor + Send + Sync + 'static,
) -> Result<Step> {
    let zeros = tree_map([&weights], |[weight]| weight.zeros_like());
    let mut state: State = [weights, zeros.clone(), zeros];
    lazuli::eval(state.iter().flatten().chain(&batch))?;
    let step = compile(move |([weights, m, v], batch): (State, [Tensor; 2])| {
        let loss = loss(&weights, &batch);
        let gradients = grad(&loss, &weights);
        if !is_adam {
            return ([tree_map([&weights, &gradients], |[w, g]| w - g * 0.01), m, v], loss);
        }
        let m = tree_map([&m, &gradients], |[m, g]| m * 0.9 + g * 0.1);
        let v = tree_map([&v, &gradients], |[v, g]| v * 0.999 + g.square() * 0.001);
        let weights = tree_map([&weights, &m, &v], |[w, m, v]| w - m / (v.sqrt() + 1e-8) * 1e-3);
        ([weights, m, v], loss)
    });
    Ok(Box::new(move || {
        let (next, loss) = step.call((&state, &batch))?;
        state = next;
        loss.item::<f32>()
    }))
}

/// 784 to 512 to 256 to 10 with a batch of 256.
fn mlp() -> Result<Step> {
    let sizes = [784, 512, 256, 10];
    let layer = |n: usize| [weight(&[sizes[n], sizes[n + 1]], 0.05, n as u64), constant(sizes[n + 1], 0.0)];
    let weights = (0..3).flat_map(layer).collect();
    steps(weights, [weight(&[256, 784], 1.0, 9), labels(&[256], 10)], true, |w, [x, y]| {
        let hidden = (x.matmul(&w[0]) + &w[1]).relu();
        let hidden = (hidden.matmul(&w[2]) + &w[3]).relu();
        (hidden.matmul(&w[4]) + &w[5]).cross_entropy(y, Reduction::Mean)
    })
}

/// Two convolutions with pools, on 64 images of 32 × 32.
fn convnet() -> Result<Step> {
    let weights = vec![
        weight(&[32, 3, 3, 3], 0.1, 1),
        constant(32, 0.0),
        weight(&[64, 32, 3, 3], 0.05, 2),
        constant(64, 0.0),
        weight(&[4096, 10], 0.01, 3),
        constant(10, 0.0),
    ];
    steps(weights, [weight(&[64, 3, 32, 32], 1.0, 9), labels(&[64], 10)], false, |w, [x, y]| {
        let x = x.conv2d(&w[0], Some(&w[1]), 1, 1).relu().max_pool2d(2, 2);
        let x = x.conv2d(&w[2], Some(&w[3]), 1, 1).relu().max_pool2d(2, 2);
        (x.flatten(1..).matmul(&w[4]) + &w[5]).cross_entropy(y, Reduction::Mean)
    })
}

/// Convolution, batch norm, relu and what is carried past them, on 32 images of 64 channels of 28 × 28.
fn batch_norm() -> Result<Step> {
    let weights = vec![weight(&[64, 64, 3, 3], 0.05, 1), constant(64, 1.0), constant(64, 0.0)];
    steps(weights, [weight(&[32, 64, 28, 28], 1.0, 9), constant(1, 0.0)], false, |w, [x, _]| {
        let y = x.conv2d(&w[0], None, 1, 1);
        let each = |of: &Tensor| of.reshape([1, 64, 1, 1]);
        let (mean, variance) = (y.mean_keepdim([0, 2, 3]), y.var_keepdim([0, 2, 3], 0));
        let y = (&y - mean) / (variance + 1e-5).sqrt() * each(&w[1]) + each(&w[2]);
        (y.relu() + x).square().mean(..)
    })
}

/// Two layers of 256 with 8 heads, over 8 texts of 128 words, of 1,000.
fn transformer() -> Result<Step> {
    const BATCH: usize = 8;
    const LENGTH: usize = 128;
    const WIDTH: usize = 256;
    let layer = |n: u64| {
        [
            constant(WIDTH, 1.0),
            constant(WIDTH, 0.0),
            weight(&[WIDTH, 3 * WIDTH], 0.02, 10 * n),
            weight(&[WIDTH, WIDTH], 0.02, 10 * n + 1),
            constant(WIDTH, 1.0),
            constant(WIDTH, 0.0),
            weight(&[WIDTH, 4 * WIDTH], 0.02, 10 * n + 2),
            weight(&[4 * WIDTH, WIDTH], 0.02, 10 * n + 3),
        ]
    };
    let words = [weight(&[1000, WIDTH], 0.02, 1), weight(&[LENGTH, WIDTH], 0.02, 2)];
    let weights = words.into_iter().chain((1..3).flat_map(layer)).collect();
    let batch = [labels(&[BATCH, LENGTH], 1000), labels(&[BATCH, LENGTH], 1000)];
    steps(weights, batch, true, |w, [read, next]| {
        let mut x = read.embedding(&w[0]) + &w[1];
        for w in w[2..].chunks(8) {
            let heads = x.layer_norm([WIDTH], Some(&w[0]), Some(&w[1]), 1e-5).matmul(&w[2]);
            let heads = heads.reshape([BATCH, LENGTH, 3, 8, WIDTH / 8]).permute([2, 0, 3, 1, 4]);
            let [q, k, v] = [0, 1, 2].map(|part| heads.select(0, part));
            let mixed = q.scaled_dot_product_attention(k, v, &Attention::new().causal(true));
            x = x + mixed.transpose(1, 2).reshape([BATCH, LENGTH, WIDTH]).matmul(&w[3]);
            let hidden = x.layer_norm([WIDTH], Some(&w[4]), Some(&w[5]), 1e-5).matmul(&w[6]).gelu();
            x = x + hidden.matmul(&w[7]);
        }
        x.matmul(w[0].t()).flatten(..2).cross_entropy(next.flatten(..), Reduction::Mean)
    })
}

/// 50 steps of an LSTM of 128 cells, with a batch of 32.
fn lstm() -> Result<Step> {
    const CELLS: usize = 128;
    let weights = vec![
        weight(&[CELLS, 4 * CELLS], 0.05, 1),
        weight(&[CELLS, 4 * CELLS], 0.05, 2),
        constant(4 * CELLS, 0.0),
    ];
    let batch = [weight(&[50, 32, CELLS], 1.0, 8), weight(&[32, CELLS], 1.0, 9)];
    steps(weights, batch, false, |w, [x, y]| {
        let given = x.matmul(&w[0]) + &w[2];
        let [mut h, mut c] = [0, 1].map(|_| y.zeros_like());
        for time in 0..50 {
            let gates = given.select(0, time) + h.matmul(&w[1]);
            let gate = |n: usize| gates.narrow(1, n * CELLS, CELLS);
            c = gate(1).sigmoid() * c + gate(0).sigmoid() * gate(2).tanh();
            h = gate(3).sigmoid() * c.tanh();
        }
        (h - y).square().mean(..)
    })
}
