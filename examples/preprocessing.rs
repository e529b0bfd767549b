//! A PyTorch preprocessing script, ported line by line: resize, crop, flip, colour jitter, normalise, pad, one-hot.
//!
//! ```text
//! cargo run --release --example preprocessing [result.png]
//! ```
//!
//! The line that each one is ported from stands beside it. Nothing runs while they do: the batch becomes a few kernels
//! when its values are asked for, in which resizing reads the photograph's bytes and padding writes the result.
//! The picture that it writes shows the batch, with the normalisation undone.

use std::error::Error;
use std::path::{Path, PathBuf};

use image::RgbImage;
use lazuli::{DType, Device, Fusion, Interpolation, PadMode, Tensor, s, with_fusion};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const STD: [f32; 3] = [0.229, 0.224, 0.225];

/// One photograph, `[height, width, 3]` bytes, as a network wants it: `[3, 256, 256]` floats.
fn preprocess(photo: &Tensor, flip: bool) -> Tensor {
    let x = photo.permute([2, 0, 1]).cast(DType::F32) / 255.0; //     x = photo.permute(2, 0, 1).float() / 255
    let x = resize(&x, 256); //                                       x = F.resize(x, 256)
    let x = centre_crop(&x, 224); //                                  x = F.center_crop(x, 224)
    let x = if flip { x.flip(-1) } else { x }; //                     x = F.hflip(x) if flip else x
    let x = jitter(&x, 1.1, 1.2, 1.5); //                             x = jitter(x)
    let x = (x - channels(MEAN)) / channels(STD); //                  x = F.normalize(x, MEAN, STD)
    let border = [(0, 0), (16, 16), (16, 16)];
    x.pad_with(&border, PadMode::Reflect) //                          return F.pad(x, 16, padding_mode="reflect")
}

/// The shorter side becomes `size`.
fn resize(x: &Tensor, size: usize) -> Tensor {
    let [height, width] = sides(x);
    let shorter = height.min(width);
    let sides = [height, width].map(|side| side * size / shorter);
    x.interpolate(sides, Interpolation::Linear { align_corners: false })
}

fn centre_crop(x: &Tensor, size: usize) -> Tensor {
    let [top, left] = sides(x).map(|side| (side - size) / 2);
    x.i(s![.., top..top + size, left..left + size])
}

/// Brightness, contrast and saturation by these factors.
fn jitter(x: &Tensor, brightness: f64, contrast: f64, saturation: f64) -> Tensor {
    let blend = |x: &Tensor, with: Tensor, factor: f64| (x * factor + with * (1.0 - factor)).clamp(0.0, 1.0);
    let x = (x * brightness).clamp(0.0, 1.0); //                      x = F.adjust_brightness(x, brightness)
    let x = blend(&x, grey(&x).mean(..), contrast); //                x = F.adjust_contrast(x, contrast)
    blend(&x, grey(&x), saturation) //                                x = F.adjust_saturation(x, saturation)
}

fn grey(x: &Tensor) -> Tensor {
    (x * channels([0.299, 0.587, 0.114])).sum_keepdim(0) //           F.rgb_to_grayscale(x)
}

/// One number a channel, to broadcast over the pixels.
fn channels(values: [f32; 3]) -> Tensor {
    Tensor::from(values).to(&Device::best()).reshape([3, 1, 1]) //    torch.tensor(values)[:, None, None]
}

/// Height and width; of what is invalid, any, so that the mistake is told where values are asked for.
fn sides(x: &Tensor) -> [usize; 2] {
    x.shape().map_or([256, 256], |shape| [shape[1], shape[2]])
}

fn main() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = std::env::args_os().nth(1).map_or(folder.join("target/preprocessing.png"), PathBuf::from);
    let device = Device::best();
    let photo = |name: &str| -> Result<Tensor> {
        let image = image::open(folder.join("examples/data").join(name))?.to_rgb8();
        let (width, height) = image.dimensions();
        Ok(Tensor::from_vec(image.into_raw(), [height as usize, width as usize, 3]).to(&device))
    };
    let (cat, rocket) = (photo("chelsea.png")?, photo("rocket.jpg")?);
    lazuli::eval([&cat, &rocket])?; // the photographs are data from here on

    let images = [preprocess(&cat, false), preprocess(&rocket, true)];
    let batch = Tensor::stack(&[&images[0], &images[1]], 0); //       batch = torch.stack(images)
    let labels = Tensor::from([2i64, 5]).one_hot(8); //               labels = F.one_hot(torch.tensor([2, 5]), 8)

    println!("on {}\n\n{}", device.description()?, batch.explain()?);
    let unfused = with_fusion(Fusion::Off, || batch.explain())?;
    println!("one kernel an operation: {} kernels\n", unfused.kernels());

    println!("batch {}, channel means:\n{}", batch.shape()?, batch.mean([2, 3]));
    println!("labels:\n{labels}");
    write(&batch, &output)?;
    println!("\n{}", output.display());
    Ok(())
}

/// The batch side by side, as bytes again.
fn write(batch: &Tensor, path: &Path) -> Result<()> {
    let colours = (batch * channels(STD) + channels(MEAN)).clamp(0.0, 1.0) * 255.0;
    let rows = colours.round().cast(DType::U8).permute([2, 0, 3, 1]); // [height, number, width, 3]
    let shape = rows.shape()?;
    let pixels = rows.to_vec::<u8>()?;
    let image = RgbImage::from_raw((shape[1] * shape[2]) as u32, shape[0] as u32, pixels);
    Ok(image.ok_or("the picture's size does not fit its pixels")?.save(path)?)
}
