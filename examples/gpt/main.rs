//! A small GPT, complete: embedding, rotary positions, RMS norm, attention over a cache, SwiGLU, logits, sampling.
//!
//! ```text
//! cargo run --release --example gpt
//! ```
//!
//! Its weights are random numbers from seeds, so what it writes means nothing; that it computes the right thing shows a
//! second forward pass in plain loops, `reference.rs`. The text that it begins with is `examples/data/sonnet.txt`.

mod model;
mod reference;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use lazuli::{Device, Tensor};
use model::{Cache, LAYERS, Model, VOCABULARY};

/// What the model continues: bytes are its tokens.
const TEXT: &str = include_str!("../data/sonnet.txt");

/// Tokens that it writes.
const WRITTEN: usize = 48;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gpt: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> lazuli::Result<()> {
    let device = Device::best();
    let model = Model::seeded(&device, LAYERS)?;
    let prompt: Vec<i64> = TEXT.bytes().map(i64::from).take(96).collect();

    // The prompt goes through the model at once, and leaves its keys and values in the cache.
    let mut cache = Cache::new(&model);
    let logits = model.forward(&prompt, &mut cache).select(0, -1);
    lazuli::eval([&logits].into_iter().chain(cache.tensors()))?;

    let expected = reference::logits(&model, &prompt)?;
    let got: Vec<f32> = logits.to_vec()?;
    let error = got.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
    println!("logits: {VOCABULARY}, at most {error:.1e} from those of plain loops");
    assert!(error < 1e-3, "the model does not compute what its reference does");

    // Then token after token. Where a token goes in the cache is an argument of the kernels: all steps are one plan.
    let mut next = sample(&logits, 0).item::<i64>()?;
    let mut written = vec![next];
    let mut quickest = Duration::MAX;
    for step in 1..WRITTEN {
        let start = Instant::now();
        let logits = model.forward(&[next], &mut cache).select(0, 0);
        let token = sample(&logits, step as u64);
        lazuli::eval([&token].into_iter().chain(cache.tensors()))?;
        next = token.item()?;
        written.push(next);
        quickest = quickest.min(start.elapsed());
    }
    let text: String =
        written.iter().map(|&token| char::from(token as u8).escape_default().to_string()).collect();
    println!("it goes on: {text}");
    println!("{device}: {:.0} tokens a second", 1.0 / quickest.as_secs_f64());

    println!("\none block, for the prompt:\n");
    println!("{}", model.explain_block(&prompt)?);
    Ok(())
}

/// One token of the 20 most likely ones. The largest of logits with Gumbel noise is a sample of their softmax, so that it
/// needs no sum, and no loop.
fn sample(logits: &Tensor, seed: u64) -> Tensor {
    let temperature = 0.8;
    let (likely, tokens) = (logits / temperature).topk(20, -1, true);
    let gumbel = -(-Tensor::rand([20], seed).log()).log();
    tokens.take(&(likely + gumbel).argmax(-1))
}
