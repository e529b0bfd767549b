//! A photograph through three pipelines: what is recorded, which kernels it becomes, what fusing saves.
//!
//! ```text
//! cargo run --release --example quickstart [photo.png|photo.jpg] [result.png]
//! ```
//!
//! It runs on the first CUDA GPU or, without one, on the CPU (which needs a C compiler). The picture that it
//! writes shows the photograph and the three results.

mod picture;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use lazuli::{DType, Device, Fusion, Shape, Target, Tensor, with_fusion};
use picture::{Picture, RgbImage};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quickstart: {error}");
            ExitCode::FAILURE
        }
    }
}

// ---- The pipelines -------------------------------------------------------------------------------------
//
// Each is a plain function from tensor to tensor. Calling one computes nothing: every operation is
// recorded, and what was recorded becomes kernels when somebody asks for values. Nor can calling one fail.
// An operation that does not fit gives an invalid tensor, and whoever asks it for values gets the error,
// with the line that caused it.

/// Edges: Sobel's gradients of the grey picture, a noise floor taken off, and the strongest of each 2×2.
fn edges(photo: &Tensor) -> Tensor {
    // [3, height, width] to [height, width]. `select` is a view: it copies nothing.
    let [red, green, blue] = [0, 1, 2].map(|channel| photo.select(0, channel));
    let grey = red * 0.299 + green * 0.587 + blue * 0.114;

    // One neighbour of every inner pixel is the picture without a border: slices, and views again.
    let shape = photo.shape().unwrap_or_else(|_| Shape::from([3, 4, 4]));
    let (height, width) = (shape[1] as isize - 2, shape[2] as isize - 2);
    let neighbour = |down, right| grey.slice(0, down..down + height).slice(1, right..right + width);
    let column = |right| neighbour(0, right) + neighbour(1, right) * 2.0 + neighbour(2, right);
    let row = |down| neighbour(down, 0) + neighbour(down, 1) * 2.0 + neighbour(down, 2);
    let (horizontal, vertical) = (column(2) - column(0), row(2) - row(0));
    let strength = (horizontal.square() + vertical.square()).sqrt();

    (strength - 0.12).relu().max_pool2d(2, 2)
}

/// Contrast: what is bright is doubled, what is dark is halved, and the corners are darkened.
fn threshold(photo: &Tensor) -> Tensor {
    photo.gt(0.4).where_(photo * 2.0, photo / 2.0) * vignette(photo)
}

/// 1 in the middle, 0.3 in the corners. No data: it follows from positions, and is computed inside
/// of whichever kernel uses it.
fn vignette(photo: &Tensor) -> Tensor {
    // The shape of an invalid tensor is an error. Any shape will do then: the result is invalid too.
    let shape = photo.shape().unwrap_or_else(|_| Shape::from([3, 1, 1]));
    let from_centre = |extent: usize| {
        let middle = (extent as f32 - 1.0) / 2.0;
        (Tensor::arange(0, extent as i64, 1).cast(DType::F32) - middle) * (1.0 / middle)
    };
    let (y, x) = (from_centre(shape[1]).unsqueeze(1), from_centre(shape[2]));
    1.0 - (y.square() + x.square()) * 0.35
}

/// Each colour channel with mean 0 and variance 1.
fn normalise(photo: &Tensor) -> Tensor {
    let (mean, variance) = (photo.mean_keepdim([1, 2]), photo.var_keepdim([1, 2], 0));
    (photo - mean) / (variance + 1e-5).sqrt()
}

/// A pipeline with its name, and what of its results is shown as black and as white.
struct Pipeline {
    name: &'static str,
    record: fn(&Tensor) -> Tensor,
    black: f64,
    white: f64,
}

const PIPELINES: [Pipeline; 3] = [
    Pipeline { name: "edges", record: edges, black: 0.0, white: 1.1 },
    Pipeline { name: "threshold", record: threshold, black: 0.0, white: 1.7 },
    Pipeline { name: "normalise", record: normalise, black: -2.0, white: 2.4 },
];

// ---- What is done with them ----------------------------------------------------------------------------

fn run() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let input = arguments.next().unwrap_or_else(|| folder.join("examples/data/chelsea.png"));
    let output = arguments.next().unwrap_or_else(|| folder.join("target/quickstart.png"));

    let device = Device::best();
    let image = picture::read(&input)?;
    heading("Device and photograph");
    println!("{}", device.description()?);
    println!("{}: {} × {} pixels", input.display(), image.width(), image.height());
    if image.width() < 4 || image.height() < 4 {
        return Err("the photograph is too small for edges: at least 4 × 4 pixels are needed".into());
    }

    let photo = to_tensor(&image, &device);
    photo.eval()?; // the pipelines shall start from data

    explain(&photo)?;
    show_cuda(&photo)?;
    measure(&photo, &device)?;

    let mut result = Picture::new(image.width(), image.height());
    result.add("photograph", &image);
    for pipeline in &PIPELINES {
        // Values are asked for here: this runs the kernels.
        result.add(pipeline.name, &to_image(pipeline, &photo)?);
    }
    result.write(&output)?;
    heading("Picture");
    println!("{}: the photograph and the three results", output.display());
    Ok(())
}

/// Which kernels each pipeline becomes, and why. Nothing runs.
fn explain(photo: &Tensor) -> Result<()> {
    for pipeline in &PIPELINES {
        heading(&format!("Kernels of {}", pipeline.name));
        print!("{}", (pipeline.record)(photo).explain()?);
    }
    Ok(())
}

/// The CUDA C of one pipeline. Emitting it needs neither a GPU nor a CUDA installation.
fn show_cuda(photo: &Tensor) -> Result<()> {
    heading("CUDA C of threshold for sm_90");
    let program = threshold(photo).compile_for(&Target::cuda("sm_90"))?;
    print!("{}", program.source());
    Ok(())
}

/// Fused against unfused on this device, for a picture of several megapixels: the photograph, tiled.
fn measure(photo: &Tensor, device: &Device) -> Result<()> {
    const PIXELS: usize = 4_000_000;
    let shape = photo.shape()?;
    let (height, width) = (shape[1], shape[2]);
    let tiles = ((PIXELS as f64 / (height * width) as f64).sqrt().round() as usize).max(1);
    let large = photo.reshape([3, 1, height, 1, width]).expand([3, tiles, height, tiles, width]).reshape([
        3,
        tiles * height,
        tiles * width,
    ]);
    large.eval()?;

    heading("Fused against unfused");
    let (large_width, large_height) = (tiles * width, tiles * height);
    println!(
        "On {device}, {large_width} × {large_height} pixels in f32. Timed: one evaluation, from recorded"
    );
    println!("tensors to values in the device's memory; kernels are compiled before. Median of the runs.");
    println!();
    println!(
        "{:<10} {:>12} {:>12} {:>9} {:>10} {:>14}",
        "pipeline", "fused", "unfused", "faster", "kernels", "MB moved"
    );
    for pipeline in &PIPELINES {
        let fused = median(Fusion::On, pipeline, &large, device)?;
        let unfused = median(Fusion::Off, pipeline, &large, device)?;
        let plan = (pipeline.record)(&large).explain()?;
        println!(
            "{:<10} {:>9.3} ms {:>9.3} ms {:>8.1}× {:>10} {:>14}",
            pipeline.name,
            fused * 1e3,
            unfused * 1e3,
            unfused / fused,
            format!("{} for {}", plan.kernels(), plan.unfused_kernels()),
            format!("{:.0} for {:.0}", plan.bytes_moved() as f64 / 1e6, plan.unfused_bytes() as f64 / 1e6),
        );
    }
    Ok(())
}

/// The median time of an evaluation, in seconds.
fn median(fusion: Fusion, pipeline: &Pipeline, photo: &Tensor, device: &Device) -> Result<f64> {
    const RUNS: usize = 51;
    const SECONDS: f64 = 1.5; // enough: slow machines make fewer runs
    let one = || {
        // Recorded anew for each run: an evaluated tensor keeps its values, and has nothing left to do.
        let result = (pipeline.record)(photo);
        device.time(|| with_fusion(fusion, || result.eval()))
    };
    for _ in 0..2 {
        one()?; // compiles the kernels, fills the memory pool
    }
    let mut times = Vec::new();
    while times.len() < RUNS && (times.len() < 5 || times.iter().sum::<f64>() < SECONDS) {
        times.push(one()?);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

// ---- From and to pictures ------------------------------------------------------------------------------

/// Interleaved bytes as planes of numbers in [0, 1]. This is recorded as well, and runs on the device.
fn to_tensor(image: &RgbImage, device: &Device) -> Tensor {
    let shape = [image.height() as usize, image.width() as usize, 3];
    let bytes = Tensor::from_slice(image.as_raw(), shape).to(device);
    bytes.permute([2, 0, 1]).cast(DType::F32) / 255.0
}

/// A pipeline's result as interleaved bytes. All of it fuses with the pipeline's last kernel.
fn to_image(pipeline: &Pipeline, photo: &Tensor) -> Result<RgbImage> {
    let values = (pipeline.record)(photo);
    let scale = 255.0 / (pipeline.white - pipeline.black);
    let bytes = ((values - pipeline.black) * scale).round().clamp(0.0, 255.0).cast(DType::U8);
    let shape = bytes.shape()?;
    let (height, width) = (shape[shape.rank() - 2], shape[shape.rank() - 1]);
    // A grey result gets three equal channels.
    let pixels = bytes.broadcast_to([3, height, width]).permute([1, 2, 0]).to_vec::<u8>()?;
    let image = RgbImage::from_raw(width as u32, height as u32, pixels);
    image.ok_or_else(|| "the result does not fill the picture".into())
}

fn heading(text: &str) {
    println!("\n=== {text} ===\n");
}
