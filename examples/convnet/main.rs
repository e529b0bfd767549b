//! A convolution net over the photographs: three times conv, relu and pool, then ten numbers for each photograph.
//!
//! ```text
//! cargo run --release --example convnet
//! ```
//!
//! Its weights are random numbers from seeds: it names no cats. The same net in plain loops, below, gives the same numbers.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use lazuli::{DType, Device, Fusion, Tensor, with_fusion};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// Pixels of a side that each photograph is resized to.
const SIDE: usize = 96;

/// Channels before and after each layer.
const CHANNELS: [usize; 4] = [3, 16, 32, 64];

/// What each photograph becomes.
const CLASSES: usize = 10;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("convnet: {error}");
            ExitCode::FAILURE
        }
    }
}

// ---- The net -------------------------------------------------------------------------------------------

/// Weights and biases: [out, in, 3, 3] and [out] of each layer, [classes, channels] and [classes] of the last.
struct Net {
    layers: Vec<(Tensor, Tensor)>,
    head: (Tensor, Tensor),
}

impl Net {
    fn seeded(device: &Device) -> Result<Net> {
        // He's scale: what goes through relu keeps its size.
        let weight = |shape: &[usize], seed: u64| {
            let inputs: usize = shape[1..].iter().product();
            (Tensor::randn(shape, seed) * (2.0 / inputs as f64).sqrt()).to(device)
        };
        let bias = |count: usize, seed: u64| (Tensor::randn([count], seed) * 0.1).to(device);
        let layer = |n: usize| {
            let (from, to, seed) = (CHANNELS[n], CHANNELS[n + 1], 10 * n as u64);
            (weight(&[to, from, 3, 3], seed), bias(to, seed + 1))
        };
        let net = Net {
            layers: (0..3).map(layer).collect(),
            head: (weight(&[CLASSES, CHANNELS[3]], 50), bias(CLASSES, 51)),
        };
        lazuli::eval(net.layers.iter().chain([&net.head]).flat_map(|(weight, bias)| [weight, bias]))?;
        Ok(net)
    }

    /// Photographs [count, 3, side, side] to [count, classes]. Recorded: nothing runs.
    fn forward(&self, photos: &Tensor) -> Tensor {
        let mut x = photos.clone();
        for (weight, bias) in &self.layers {
            x = x.conv2d(weight, Some(bias), 1, 1).relu().max_pool2d(2, 2);
        }
        // The mean over all places, then a linear layer.
        x.mean([-2, -1]).linear(&self.head.0, Some(&self.head.1))
    }
}

// ---- The same in plain loops ---------------------------------------------------------------------------

/// Channels of planes, row by row.
struct Planes {
    channels: usize,
    side: usize,
    pixels: Vec<f64>,
}

impl Planes {
    /// The pixel, 0 beyond the border.
    fn at(&self, channel: usize, row: isize, column: isize) -> f64 {
        let is_inside = |at: isize| at >= 0 && at < self.side as isize;
        match is_inside(row) && is_inside(column) {
            true => self.pixels[(channel * self.side + row as usize) * self.side + column as usize],
            false => 0.0,
        }
    }

    /// A convolution, relu, and the largest of each square of four.
    fn layer(&self, weight: &[f64], bias: &[f64]) -> Planes {
        let result = |channel: usize, row: usize, column: usize| {
            let mut sum = bias[channel];
            for (n, weight) in weight[channel * self.channels * 9..][..self.channels * 9].iter().enumerate() {
                let (down, right) = ((n % 9 / 3) as isize - 1, (n % 3) as isize - 1);
                sum += weight * self.at(n / 9, row as isize + down, column as isize + right);
            }
            sum.max(0.0)
        };
        let side = self.side / 2;
        let mut pixels = Vec::with_capacity(bias.len() * side * side);
        for n in 0..bias.len() * side * side {
            let (channel, row, column) = (n / (side * side), n / side % side * 2, n % side * 2);
            let square = [(0, 0), (0, 1), (1, 0), (1, 1)];
            let of = square.map(|(down, right)| result(channel, row + down, column + right));
            pixels.push(of.into_iter().fold(f64::NEG_INFINITY, f64::max));
        }
        Planes { channels: bias.len(), side, pixels }
    }
}

fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    Ok(tensor.to_vec::<f32>()?.into_iter().map(f64::from).collect())
}

/// What the net gives for the first photograph.
fn reference(net: &Net, photos: &Tensor) -> Result<Vec<f64>> {
    let mut x = Planes { channels: CHANNELS[0], side: SIDE, pixels: numbers(&photos.select(0, 0))? };
    for (weight, bias) in &net.layers {
        x = x.layer(&numbers(weight)?, &numbers(bias)?);
    }
    let mean = |plane: &[f64]| plane.iter().sum::<f64>() / plane.len() as f64;
    let means: Vec<f64> = x.pixels.chunks(x.side * x.side).map(mean).collect();
    let (weight, bias) = (numbers(&net.head.0)?, numbers(&net.head.1)?);
    let dot = |row: &[f64]| row.iter().zip(&means).map(|(a, b)| a * b).sum::<f64>();
    Ok(weight.chunks(means.len()).zip(bias).map(|(row, bias)| dot(row) + bias).collect())
}

// ---- Both ----------------------------------------------------------------------------------------------

/// A photograph as [3, side, side], each pixel from 0 to 1.
fn photograph(name: &str) -> Result<Tensor> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data").join(name);
    let image = image::open(path)?.to_rgb8();
    let image =
        image::imageops::resize(&image, SIDE as u32, SIDE as u32, image::imageops::FilterType::Triangle);
    let pixels = Tensor::from_vec(image.into_raw(), [SIDE, SIDE, 3]);
    Ok(pixels.permute([2, 0, 1]).cast(DType::F32) / 255.0)
}

fn quickest(mut run: impl FnMut() -> Result<()>) -> Result<Duration> {
    run()?; // The kernels are compiled, or found in the cache.
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

fn run() -> Result<()> {
    let device = Device::best();
    let names = ["chelsea.png", "rocket.jpg"];
    let photos = names.into_iter().map(photograph).collect::<Result<Vec<_>>>()?;
    let photos = Tensor::stack(&photos.iter().collect::<Vec<_>>(), 0).to(&device);
    photos.eval()?;
    let net = Net::seeded(&device)?;

    let scores = net.forward(&photos);
    println!("{}", scores.explain()?);
    let (best, classes) = scores.softmax(-1).topk(3, -1, true);
    lazuli::eval([&scores, &best, &classes])?;
    let (best, classes): (Vec<f32>, Vec<i64>) = (best.to_vec()?, classes.to_vec()?);
    for ((name, best), classes) in names.into_iter().zip(best.chunks(3)).zip(classes.chunks(3)) {
        println!("{name}: classes {classes:?}, by {best:.2?}");
    }

    let (got, expected) = (numbers(&scores.select(0, 0))?, reference(&net, &photos)?);
    let error = got.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!("at most {error:.1e} from plain loops");
    assert!(error < 1e-3, "the net does not compute what plain loops do");

    let time = |fusion| quickest(|| Ok(with_fusion(fusion, || net.forward(&photos).eval())?));
    let (fused, unfused) = (time(Fusion::On)?, time(Fusion::Off)?);
    println!("{device}: {fused:.2?} fused, {unfused:.2?} unfused");
    Ok(())
}
