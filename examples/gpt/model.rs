//! The model, as one would write it in PyTorch. Calling it computes nothing: it records what the kernels are made of.

use lazuli::{DType, Device, Explanation, Result, Tensor, s};

/// Tokens that there are: bytes of ASCII.
pub const VOCABULARY: usize = 128;
/// Numbers of a token's vector.
pub const WIDTH: usize = 128;
/// Heads of attention, and numbers of each.
pub const HEADS: usize = 4;
pub const HEAD: usize = WIDTH / HEADS;
/// Numbers between the two halves of a feed-forward layer.
pub const HIDDEN: usize = 352;
/// Blocks.
pub const LAYERS: usize = 4;
/// Tokens that the cache has room for.
pub const CONTEXT: usize = 256;
/// What keeps the norm of zeros finite.
pub const EPSILON: f64 = 1e-5;

/// The weights of one block; rows are outputs, as in PyTorch's `Linear`.
pub struct Block {
    pub attention_norm: Tensor,
    pub query: Tensor,
    pub key: Tensor,
    pub value: Tensor,
    pub out: Tensor,
    pub feed_norm: Tensor,
    pub gate: Tensor,
    pub up: Tensor,
    pub down: Tensor,
}

pub struct Model {
    pub embedding: Tensor,
    pub blocks: Vec<Block>,
    pub norm: Tensor,
    device: Device,
}

/// The keys and values of all tokens so far, [heads, context, numbers of a head] for each block.
pub struct Cache {
    keys: Vec<Tensor>,
    values: Vec<Tensor>,
    tokens: usize,
}

impl Cache {
    /// Without tokens.
    pub fn new(model: &Model) -> Cache {
        let zeros = |_: &Block| Tensor::zeros([HEADS, CONTEXT, HEAD], DType::F32).to(&model.device);
        let empty = || model.blocks.iter().map(zeros).collect();
        Cache { keys: empty(), values: empty(), tokens: 0 }
    }

    /// What a step has to leave behind for the next one.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.keys.iter().chain(&self.values)
    }
}

impl Model {
    /// Random weights, of a size that keeps what goes through them near 1.
    pub fn seeded(device: &Device, layers: usize) -> Result<Model> {
        let mut seed = 0;
        let mut matrix = |rows: usize, columns: usize| {
            seed += 1;
            (Tensor::randn([rows, columns], seed) / (columns as f64).sqrt()).to(device)
        };
        let ones = || Tensor::ones([WIDTH], DType::F32).to(device);
        let blocks: Vec<Block> = (0..layers)
            .map(|_| Block {
                attention_norm: ones(),
                query: matrix(WIDTH, WIDTH),
                key: matrix(WIDTH, WIDTH),
                value: matrix(WIDTH, WIDTH),
                out: matrix(WIDTH, WIDTH),
                feed_norm: ones(),
                gate: matrix(HIDDEN, WIDTH),
                up: matrix(HIDDEN, WIDTH),
                down: matrix(WIDTH, HIDDEN),
            })
            .collect();
        let model =
            Model { embedding: matrix(VOCABULARY, WIDTH) * 4.0, blocks, norm: ones(), device: *device };
        lazuli::eval(model.weights())?;
        Ok(model)
    }

    fn weights(&self) -> impl Iterator<Item = &Tensor> {
        let blocks = self.blocks.iter().flat_map(|b| {
            [&b.attention_norm, &b.query, &b.key, &b.value, &b.out, &b.feed_norm, &b.gate, &b.up, &b.down]
        });
        blocks.chain([&self.embedding, &self.norm])
    }

    /// The logits of what follows each of the tokens, [tokens, vocabulary], which join those in the cache.
    pub fn forward(&self, tokens: &[i64], cache: &mut Cache) -> Tensor {
        let tokens = Tensor::from_slice(tokens, [tokens.len()]).to(&self.device);
        let mut x = tokens.embedding(&self.embedding);
        for number in 0..self.blocks.len() {
            x = self.block(number, &x, cache);
        }
        cache.tokens += x.shape().map_or(0, |shape| shape[0]);
        x.rms_norm([WIDTH], Some(&self.norm), EPSILON).linear(&self.embedding, None)
    }

    fn block(&self, number: usize, x: &Tensor, cache: &mut Cache) -> Tensor {
        let block = &self.blocks[number];
        let x = x + self.attention(number, &x.rms_norm([WIDTH], Some(&block.attention_norm), EPSILON), cache);
        let normal = x.rms_norm([WIDTH], Some(&block.feed_norm), EPSILON);
        // SwiGLU: one half of the layer opens and closes the other.
        let hidden = normal.linear(&block.gate, None).silu() * normal.linear(&block.up, None);
        x + hidden.linear(&block.down, None)
    }

    fn attention(&self, number: usize, x: &Tensor, cache: &mut Cache) -> Tensor {
        let (block, start) = (&self.blocks[number], cache.tokens as i64);
        let count = x.shape().map_or(0, |shape| shape[0]);
        let positions = Tensor::arange(0, count as i64, 1) + start;
        let heads = |weight: &Tensor| x.linear(weight, None).reshape([count, HEADS, HEAD]).transpose(0, 1);
        let queries = rotated(&heads(&block.query), &positions);
        let keys = rotated(&heads(&block.key), &positions);
        let values = heads(&block.value);

        // Each token's keys and values stand at its place. Where that is, is no part of the kernels.
        let (from, to) = (start as isize, start as isize + count as isize);
        cache.keys[number] = cache.keys[number].slice_assign(s![.., from..to], keys);
        cache.values[number] = cache.values[number].slice_assign(s![.., from..to], values);

        let scores = queries.matmul(&cache.keys[number].transpose(1, 2)) / (HEAD as f64).sqrt();
        let is_known = Tensor::arange(0, CONTEXT as i64, 1).le(positions.unsqueeze(1)); // no token sees a later one
        let weights = is_known.where_(scores, f64::NEG_INFINITY).softmax(-1);
        let attended = weights.matmul(&cache.values[number]);
        attended.transpose(0, 1).reshape([count, WIDTH]).linear(&block.out, None)
    }

    /// Which kernels one block is, and why no fewer.
    pub fn explain_block(&self, tokens: &[i64]) -> Result<Explanation> {
        let mut cache = Cache::new(self);
        let x = Tensor::from_slice(tokens, [tokens.len()]).to(&self.device).embedding(&self.embedding);
        lazuli::eval([&x].into_iter().chain(cache.tensors()))?;
        let y = self.block(0, &x, &mut cache);
        lazuli::explain([&y, &cache.keys[0], &cache.values[0]])
    }
}

/// Rotary positions: pairs of numbers turn by an angle that grows with the position, each pair at a speed of its own. So
/// the product of a query and a key depends on how far apart they are.
fn rotated(x: &Tensor, positions: &Tensor) -> Tensor {
    let half = HEAD / 2;
    let speeds =
        (Tensor::arange(0, half as i64, 1).cast(DType::F32) * (-(10_000f64.ln()) / half as f64)).exp();
    let angles = positions.cast(DType::F32).unsqueeze(1) * speeds;
    let (cos, sin) = (angles.cos(), angles.sin());
    let (a, b) = (x.slice(-1, ..half as isize), x.slice(-1, half as isize..));
    Tensor::cat(&[&(&a * &cos - &b * &sin), &(&a * &sin + &b * &cos)], -1)
}
