//! Programs that do the same at another place, or to one more row, each time: what a loop over a data set, over time or
//! over the tokens of a text calls.

use lazuli::{Attention, DType, Device, Tensor, s};

/// A program by name, and what its n-th call computes.
pub struct Program {
    pub name: &'static str,
    pub call: fn(&Data, usize) -> Tensor,
}

/// Numbers of tensors that one program joins.
pub const NUMBERS: usize = 100;

/// Calls of one program: each `n` is less.
pub const CALLS: usize = 1000;

/// What the programs read; evaluated.
pub struct Data {
    /// Rows of features, of which each call takes some.
    pub rows: Tensor,
    /// Channels over time.
    pub channels: Tensor,
    /// Frames of a film.
    pub frames: Tensor,
    /// Keys of [position, head, feature], and those of one position.
    pub keys: Tensor,
    pub key: Tensor,
    pub query: Tensor,
    /// What comes to a cache of [batch, head, position, feature].
    pub token: Tensor,
    /// What makes the features of a frame of such a token.
    pub weights: Tensor,
    /// What a program has computed in so many steps.
    pub steps: Vec<Tensor>,
    device: Device,
}

fn tensor(device: &Device, shape: &[usize], seed: usize) -> Tensor {
    let length: usize = shape.iter().product();
    let data: Vec<f32> = (0..length).map(|i| ((i * 7 + seed) % 101) as f32 / 25.0 - 2.0).collect();
    Tensor::from_vec(data, shape.to_vec()).to(device)
}

impl Data {
    pub fn new(device: &Device) -> lazuli::Result<Data> {
        let tensor = |shape: &[usize], seed: usize| tensor(device, shape, seed);
        let data = Data {
            rows: tensor(&[32 * CALLS, 24], 1),
            channels: tensor(&[6, CALLS + 128], 2),
            frames: tensor(&[4, CALLS, 30], 3),
            keys: tensor(&[CALLS + 1, 4, 16], 4),
            key: tensor(&[1, 4, 16], 5),
            query: tensor(&[4, 16], 6),
            token: tensor(&[2, 4, 1, 16], 7),
            weights: tensor(&[128, 120], 8),
            steps: (0..NUMBERS).map(|step| tensor(&[200], step)).collect(),
            device: *device,
        };
        let Data { rows, channels, frames, keys, key, query, token, weights, steps, device: _ } = &data;
        lazuli::eval([rows, channels, frames, keys, key, query, token, weights].into_iter().chain(steps))?;
        Ok(data)
    }

    /// A cache of n positions.
    fn cache(&self, n: usize, seed: usize) -> Tensor {
        tensor(&self.device, &[2, 4, n, 16], seed)
    }
}

/// Programs that do the same at another place.
pub const PROGRAMS: &[Program] = &[
    Program {
        name: "minibatches",
        call: |data, n| {
            let n = n as isize;
            data.rows.slice(0, n * 32..(n + 1) * 32).relu().mean(1)
        },
    },
    Program {
        name: "normalised minibatches",
        call: |data, n| {
            let batch = data.rows.narrow(0, n * 32, 32);
            batch.layer_norm([24], None, None, 1e-5) * 0.5
        },
    },
    Program { name: "window over time", call: |data, n| data.channels.narrow(1, n, 64).std(1, 1) },
    Program {
        name: "changes within a window",
        call: |data, n| {
            let window = data.channels.narrow(1, n, 100);
            (window.slice(1, 1..) - window.slice(1, ..-1)).abs()
        },
    },
    Program {
        name: "every third, backwards",
        call: |data, n| data.channels.slice_step(1, n as isize + 90, n as isize, -3).exp(),
    },
    Program { name: "select of a middle axis", call: |data, n| data.frames.select(1, n as isize) * 2.0 },
    Program { name: "a row over the mean", call: |data, n| data.frames.select(1, n as isize).sum(0) / 4.0 },
    Program { name: "roll", call: |data, n| data.channels.roll(n as isize, 1).tanh() },
    Program {
        name: "changing numbers",
        call: |data, n| (&data.query * (1.0 + n as f64)).sin() + (n as f64 + 0.5),
    },
    Program {
        name: "placed in a row of zeros",
        call: |data, n| data.query.pad(&[(0, 0), (n, CALLS - n)], 0.0) * 3.0,
    },
    Program {
        name: "random crops of images with a border",
        call: |data, n| {
            let crop = |image: usize| {
                let image_of = data.frames.select(0, image as isize).slice(0, 0..20);
                let bordered = image_of.pad(&[(3, 3), (2, 2)], 0.0);
                let (a, b) = ((n * (image + 5) % 7) as isize, (n / 7 + image) as isize % 5);
                bordered.slice(0, a..a + 20).slice(1, b..b + 30)
            };
            let images: Vec<Tensor> = (0..4).map(crop).collect();
            (Tensor::stack(&images.iter().collect::<Vec<_>>(), 0) - 0.45) / 0.22
        },
    },
    Program {
        name: "one position of a cache",
        call: |data, n| data.keys.slice_assign(s![n as isize..n as isize + 1, .., ..], &data.key * 2.0),
    },
    Program {
        name: "one position of a cache, of heads of a product",
        call: |data, n| {
            let frame = data.token.reshape([1, 128]).matmul(&data.weights).reshape([4, 1, 30]);
            data.frames.slice_assign(s![.., n as isize..n as isize + 1, ..], &frame * 2.0)
        },
    },
    Program {
        name: "a part of a table, normalised",
        call: |data, n| {
            let (row, column) = (n as isize, (n % 4 * 2 + 1) as isize);
            let part = s![row..row + 1, .., column..column + 4];
            data.keys.slice_assign(part, data.keys.i(part).softmax(2))
        },
    },
    Program {
        name: "an element of a table",
        call: |data, n| {
            data.channels.slice_assign(s![(n / 400 + 1) as isize, n as isize + 1], data.query.sum([0, 1]))
        },
    },
];

/// Programs whose outermost extent is another each time.
pub const GROWING: &[Program] = &[
    Program {
        name: "a cache that grows",
        call: |data, n| Tensor::cat(&[&data.keys.narrow(0, 0, n + 1), &(&data.key * 2.0)], 0),
    },
    Program {
        name: "attention over a growing cache",
        call: |data, n| {
            let keys = data.keys.narrow(0, 0, n + 1);
            let weights = (&keys * &data.query).sum(2).softmax(0);
            (weights.unsqueeze(2) * &keys).sum(0)
        },
    },
    Program {
        name: "minibatches of another size each",
        call: |data, n| {
            let rows = data.rows.narrow(0, n * 31, n % 24 + 9).layer_norm([24], None, None, 1e-5);
            rows.relu().mean(0)
        },
    },
    Program { name: "a batch that grows", call: |data, n| data.rows.narrow(0, 0, n + 1).softmax(1) },
];

/// Programs of which an inner extent is another each time: it is part of what is emitted.
pub const GROWING_INSIDE: &[Program] = &[
    Program {
        name: "a cache that grows in the middle",
        call: |data, n| Tensor::cat(&[&data.cache(n + 1, 8), &data.token], 2),
    },
    Program {
        name: "attention of one query, growing",
        call: |data, n| {
            let keys = Tensor::cat(&[&data.cache(n + 1, 8), &data.token], 2);
            let values = Tensor::cat(&[&data.cache(n + 1, 9), &(&data.token * 0.5)], 2);
            data.token.scaled_dot_product_attention(&keys, &values, &Attention::default())
        },
    },
    Program {
        name: "a bias by distance, growing",
        call: |data, n| {
            let (heads, features) = (8, 32);
            let cache = |n: usize, seed| tensor(&data.device, &[1, heads, n, features], seed);
            let [keys, values] =
                [10, 11].map(|seed| Tensor::cat(&[&cache(n + 1, seed), &(cache(1, seed) * 0.5)], 2));
            let distance = Tensor::arange(0, n as i64 + 2, 1).cast(DType::F32) - (n as f64 + 1.0);
            let slopes =
                (Tensor::arange(0, heads as i64, 1).cast(DType::F32) * -1.0).exp2().reshape([heads, 1, 1]);
            let scores = cache(1, 12).matmul(&keys.transpose(2, 3)) / (features as f64).sqrt();
            (scores + distance * slopes).softmax(-1).matmul(&values)
        },
    },
    Program {
        name: "causal attention of another length each",
        call: |data, n| {
            let x = tensor(&data.device, &[1, n % 200 + 33, 16], 13);
            x.scaled_dot_product_attention(&x, &x, &Attention::default().causal(true))
        },
    },
    Program {
        name: "noise behind what grows",
        call: |data, n| {
            let noise = Tensor::rand([2, 4, 1, 16], n as u64);
            Tensor::cat(&[&data.cache(n + 1, 8), &noise], 2) * &data.token
        },
    },
    Program {
        name: "normalised rows that grow",
        call: |data, n| tensor(&data.device, &[6, n + 1], 10).layer_norm([n + 1], None, None, 1e-5) * 2.0,
    },
];

/// How many tensors a call joins: each number is that of some call.
pub fn number(n: usize) -> usize {
    n * 37 % NUMBERS + 1
}

/// Programs that join another number of tensors each time.
pub const JOINING: &[Program] = &[
    Program {
        name: "steps so far, stacked",
        call: |data, n| Tensor::stack(&data.steps[..number(n)], 0).sum(0),
    },
    Program {
        name: "steps so far, as columns",
        call: |data, n| Tensor::stack(&data.steps[..number(n)], 1) * 2.0,
    },
    Program {
        name: "steps of a loop, stacked",
        call: |data, n| {
            let mut state = data.query.clone();
            let mut states = Vec::new();
            for _ in 0..number(n) {
                state = (&state * 0.9 + &data.query).tanh();
                states.push(state.clone());
            }
            Tensor::stack(&states, 0)
        },
    },
    Program {
        name: "steps with two states",
        call: |data, n| {
            let (mut fast, mut slow) = (data.query.clone(), data.query.abs());
            let mut states = Vec::new();
            for _ in 0..number(n) {
                slow = &slow * 0.9 + &fast * 0.1;
                fast = (slow.sum_keepdim(1) * 0.1 + &fast).tanh();
                states.push(fast.clone());
            }
            Tensor::cat(&states, 0)
        },
    },
    Program {
        name: "chunks, joined again",
        call: |data, n| {
            let chunks: Vec<Tensor> = (0..number(n)).map(|n| data.rows.narrow(0, n * 40, 32)).collect();
            Tensor::cat(&chunks, 0).relu().mean(1)
        },
    },
    Program {
        name: "basis so far, projected",
        call: |data, n| {
            let basis = Tensor::stack(&data.steps[..number(n)], 1);
            let v = &data.steps[0];
            v - basis.matmul(&(basis.t().matmul(v) / 200.0))
        },
    },
];
