//! The same model in plain loops, in double precision: slow, and easy to believe.

use lazuli::{Result, Tensor};

use crate::model::{EPSILON, HEAD, HEADS, Model, VOCABULARY, WIDTH};

/// A list of vectors: one for each token.
type Vectors = Vec<Vec<f64>>;

/// The logits of what follows the last token.
pub fn logits(model: &Model, tokens: &[i64]) -> Result<Vec<f64>> {
    let embedding = numbers(&model.embedding)?;
    let row = |token: &i64| embedding[*token as usize * WIDTH..][..WIDTH].to_vec();
    let mut x: Vectors = tokens.iter().map(row).collect();
    for block in &model.blocks {
        let normal = norm(&x, &block.attention_norm)?;
        let attended = attention(
            &turned(linear(&normal, &block.query)?),
            &turned(linear(&normal, &block.key)?),
            &linear(&normal, &block.value)?,
        );
        add(&mut x, &linear(&attended, &block.out)?);
        let normal = norm(&x, &block.feed_norm)?;
        let (mut hidden, up) = (linear(&normal, &block.gate)?, linear(&normal, &block.up)?);
        for (gate, up) in hidden.iter_mut().flatten().zip(up.iter().flatten()) {
            *gate = *gate / (1.0 + (-*gate).exp()) * up;
        }
        add(&mut x, &linear(&hidden, &block.down)?);
    }
    let last = norm(&x[x.len() - 1..], &model.norm)?;
    let logits = linear(&last, &model.embedding)?.remove(0);
    assert_eq!(logits.len(), VOCABULARY);
    Ok(logits)
}

fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    Ok(tensor.to_vec::<f32>()?.into_iter().map(f64::from).collect())
}

fn linear(x: &[Vec<f64>], weight: &Tensor) -> Result<Vectors> {
    let weight = numbers(weight)?;
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum();
    Ok(x.iter().map(|x| weight.chunks(x.len()).map(|row| dot(row, x)).collect()).collect())
}

fn norm(x: &[Vec<f64>], weight: &Tensor) -> Result<Vectors> {
    let weight = numbers(weight)?;
    let normal = |x: &Vec<f64>| -> Vec<f64> {
        let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        x.iter().zip(&weight).map(|(x, weight)| x / (mean + EPSILON).sqrt() * weight).collect()
    };
    Ok(x.iter().map(normal).collect())
}

fn add(x: &mut [Vec<f64>], more: &[Vec<f64>]) {
    x.iter_mut().flatten().zip(more.iter().flatten()).for_each(|(x, more)| *x += more);
}

/// Rotary positions.
fn turned(mut x: Vectors) -> Vectors {
    let half = HEAD / 2;
    for (position, x) in x.iter_mut().enumerate() {
        for head in x.chunks_mut(HEAD) {
            for pair in 0..half {
                let angle = position as f64 * 10_000f64.powf(-(pair as f64) / half as f64);
                let (a, b) = (head[pair], head[pair + half]);
                head[pair] = a * angle.cos() - b * angle.sin();
                head[pair + half] = a * angle.sin() + b * angle.cos();
            }
        }
    }
    x
}

/// Each token's mean of the values up to its own, weighted by how well the keys match its query.
fn attention(queries: &Vectors, keys: &Vectors, values: &Vectors) -> Vectors {
    let mut result = vec![vec![0.0; WIDTH]; queries.len()];
    for (at, query) in queries.iter().enumerate() {
        for head in (0..HEADS).map(|head| head * HEAD..(head + 1) * HEAD) {
            let score = |key: &Vec<f64>| {
                let products = query[head.clone()].iter().zip(&key[head.clone()]).map(|(q, k)| q * k);
                products.sum::<f64>() / (HEAD as f64).sqrt()
            };
            let scores: Vec<f64> = keys[..=at].iter().map(score).collect();
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
            let sum: f64 = weights.iter().sum();
            for (weight, value) in weights.iter().zip(values) {
                for n in head.clone() {
                    result[at][n] += weight / sum * value[n];
                }
            }
        }
    }
    result
}
