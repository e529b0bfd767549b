//! A GPT that generates a text, whose cache grows by a token at a time: what a token costs whose length is new, and what one of
//! a length that was there before does.

use std::time::Instant;

use lazuli::{Attention, Device, Result, Tensor, eval};

/// How large a model is.
pub struct Size {
    pub name: &'static str,
    width: usize,
    heads: usize,
    hidden: usize,
    layers: usize,
}

pub const SIZES: &[Size] = &[
    Size { name: "GPT of 12 layers, 128 wide", width: 128, heads: 4, hidden: 352, layers: 12 },
    Size { name: "GPT of 12 layers, 512 wide", width: 512, heads: 8, hidden: 1408, layers: 12 },
];

const VOCABULARY: usize = 128;
/// Tokens that there are before the first is generated, and that are generated.
const PROMPT: usize = 20;
pub const TOKENS: usize = 100;

/// The weights of a block; rows are outputs.
struct Block {
    /// Of queries, keys, values and what comes of them.
    attention: [Tensor; 4],
    /// Up, gate and down.
    feed: [Tensor; 3],
    norms: [Tensor; 2],
}

pub struct Model {
    heads: usize,
    embedding: Tensor,
    blocks: Vec<Block>,
    device: Device,
}

/// Keys and values of all tokens so far, of each block: [1, heads, tokens, numbers of a head], as PyTorch's models have them.
#[derive(Clone)]
pub struct Cache(Vec<[Tensor; 2]>);

impl Model {
    pub fn new(size: &Size, device: &Device) -> Result<Model> {
        let &Size { width, heads, hidden, layers, name: _ } = size;
        let mut seed = 0;
        let mut matrix = |rows: usize, columns: usize| {
            seed += 1;
            (Tensor::randn([rows, columns], seed) / (columns as f64).sqrt()).to(device)
        };
        let blocks: Vec<Block> = (0..layers)
            .map(|_| Block {
                attention: [(); 4].map(|()| matrix(width, width)),
                feed: [matrix(hidden, width), matrix(hidden, width), matrix(width, hidden)],
                norms: [(); 2].map(|()| matrix(1, width).abs().reshape([width])),
            })
            .collect();
        let model = Model { heads, embedding: matrix(VOCABULARY, width), blocks, device: *device };
        let weights = model.blocks.iter().flat_map(|b| b.attention.iter().chain(&b.feed).chain(&b.norms));
        eval(weights.chain([&model.embedding]))?;
        Ok(model)
    }

    /// A cache of a prompt.
    fn cache(&self) -> Result<Cache> {
        let width = self.embedding.shape()?[1];
        let of = |seed: usize| {
            let shape = [1, self.heads, PROMPT, width / self.heads];
            Tensor::randn(shape, seed as u64).to(&self.device)
        };
        let cache = Cache((0..self.blocks.len()).map(|n| [of(2 * n), of(2 * n + 1)]).collect());
        eval(cache.0.iter().flatten())?;
        Ok(cache)
    }

    /// The most likely token behind this one, at a position, which joins the cache.
    fn next(&self, token: i64, position: usize, cache: &mut Cache) -> Result<i64> {
        let width = self.embedding.shape()?[1];
        let token = Tensor::from_slice(&[token], [1]).to(&self.device);
        let mut x = token.embedding(&self.embedding);
        for (block, cache) in self.blocks.iter().zip(&mut cache.0) {
            let normal = x.rms_norm([width], Some(&block.norms[0]), 1e-5);
            let [queries, keys, values, out] = &block.attention;
            let heads = |weight: &Tensor| {
                let x = normal.linear(weight, None).reshape([1, 1, self.heads, width / self.heads]);
                x.transpose(1, 2)
            };
            let key = rotated(&heads(keys), position);
            cache[0] = Tensor::cat(&[&cache[0], &key], 2);
            cache[1] = Tensor::cat(&[&cache[1], &heads(values)], 2);
            let attended = rotated(&heads(queries), position).scaled_dot_product_attention(
                &cache[0],
                &cache[1],
                &Attention::default(),
            );
            x = x + attended.transpose(1, 2).reshape([1, width]).linear(out, None);
            let normal = x.rms_norm([width], Some(&block.norms[1]), 1e-5);
            let [up, gate, down] = &block.feed;
            x = &x + (normal.linear(gate, None).silu() * normal.linear(up, None)).linear(down, None);
        }
        let best = x.rms_norm([width], None, 1e-5).linear(&self.embedding, None).argmax(1);
        eval(cache.0.iter().flatten().chain([&best]))?;
        Ok(best.to_vec::<i64>()?[0])
    }

    /// Seconds of each token of a text.
    pub fn generate(&self) -> Result<Vec<f64>> {
        let (mut cache, mut token) = (self.cache()?, 1);
        let mut times = Vec::with_capacity(TOKENS);
        for position in PROMPT..PROMPT + TOKENS {
            let start = Instant::now();
            token = self.next(token, position, &mut cache)?;
            times.push(start.elapsed().as_secs_f64());
        }
        Ok(times)
    }
}

/// Rotary positions: pairs of numbers turn by an angle that grows with the position.
fn rotated(x: &Tensor, position: usize) -> Tensor {
    let half = x.shape().map_or(0, |shape| shape[3]) / 2;
    let speeds = (Tensor::arange(0, half as i64, 1).cast(lazuli::DType::F32) * (-9.2 / half as f64)).exp();
    let angles = speeds * position as f64;
    let (cos, sin) = (angles.cos(), angles.sin());
    let (a, b) = (x.slice(-1, ..half as isize), x.slice(-1, half as isize..));
    Tensor::cat(&[&(&a * &cos - &b * &sin), &(&a * &sin + &b * &cos)], -1)
}
