//! Reading photographs, and writing several of them as one picture. Nothing here uses Lazuli.

use std::error::Error;
use std::path::Path;

pub use image::RgbImage;
use image::{Rgb, imageops};

/// A PNG or JPEG file.
pub fn read(path: &Path) -> Result<RgbImage, Box<dyn Error>> {
    let image = image::open(path).map_err(|error| format!("could not read {}: {error}", path.display()))?;
    Ok(image.to_rgb8())
}

const MARGIN: u32 = 16;
const CAPTION: u32 = 26;
const BACKGROUND: Rgb<u8> = Rgb([24, 26, 32]);
const INK: Rgb<u8> = Rgb([226, 228, 234]);
/// Pixels of the picture for one of a letter.
const LETTER_SCALE: u32 = 2;

/// Panels of one size in two columns, each with its name below.
pub struct Picture {
    width: u32,
    height: u32,
    panels: Vec<(String, RgbImage)>,
}

impl Picture {
    /// Without panels yet; each will be of this size.
    pub fn new(width: u32, height: u32) -> Picture {
        Picture { width, height, panels: Vec::new() }
    }

    /// Adds a panel, enlarged or reduced to the size of all.
    pub fn add(&mut self, name: &str, image: &RgbImage) {
        let image = imageops::resize(image, self.width, self.height, imageops::FilterType::Triangle);
        self.panels.push((name.to_string(), image));
    }

    /// Writes the picture; the file's name decides the format.
    pub fn write(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let (cell_width, cell_height) = (self.width + MARGIN, self.height + CAPTION);
        let rows = (self.panels.len() as u32).div_ceil(2);
        let size = (MARGIN + 2 * cell_width, MARGIN + rows * cell_height);
        let mut canvas = RgbImage::from_pixel(size.0, size.1, BACKGROUND);
        for (number, (name, image)) in (0..).zip(&self.panels) {
            let (left, top) = (MARGIN + number % 2 * cell_width, MARGIN + number / 2 * cell_height);
            imageops::replace(&mut canvas, image, left.into(), top.into());
            write_text(&mut canvas, name, left, top + self.height + 8);
        }
        canvas.save(path).map_err(|error| format!("could not write {}: {error}", path.display()).into())
    }
}

/// Writes small letters; what has no picture below is left blank.
fn write_text(canvas: &mut RgbImage, text: &str, left: u32, top: u32) {
    for (number, letter) in (0..).zip(text.bytes()) {
        let rows = LETTERS.iter().find(|(name, _)| *name == letter).map_or([0; 5], |(_, rows)| *rows);
        for (y, row) in (0..).zip(rows) {
            for x in (0..3).filter(|x| row >> (2 - x) & 1 == 1) {
                for (dx, dy) in (0..LETTER_SCALE * LETTER_SCALE).map(|n| (n % LETTER_SCALE, n / LETTER_SCALE))
                {
                    let place = (left + (number * 4 + x) * LETTER_SCALE + dx, top + y * LETTER_SCALE + dy);
                    if let Some(pixel) = canvas.get_pixel_mut_checked(place.0, place.1) {
                        *pixel = INK;
                    }
                }
            }
        }
    }
}

/// Capitals of 3 × 5 dots, a row a number, for the names that are used.
const LETTERS: [(u8, [u8; 5]); 14] = [
    (b'a', [0b010, 0b101, 0b111, 0b101, 0b101]),
    (b'd', [0b110, 0b101, 0b101, 0b101, 0b110]),
    (b'e', [0b111, 0b100, 0b110, 0b100, 0b111]),
    (b'g', [0b011, 0b100, 0b101, 0b101, 0b011]),
    (b'h', [0b101, 0b101, 0b111, 0b101, 0b101]),
    (b'i', [0b111, 0b010, 0b010, 0b010, 0b111]),
    (b'l', [0b100, 0b100, 0b100, 0b100, 0b111]),
    (b'm', [0b101, 0b111, 0b111, 0b101, 0b101]),
    (b'n', [0b110, 0b101, 0b101, 0b101, 0b101]),
    (b'o', [0b010, 0b101, 0b101, 0b101, 0b010]),
    (b'p', [0b110, 0b101, 0b110, 0b100, 0b100]),
    (b'r', [0b110, 0b101, 0b110, 0b101, 0b101]),
    (b's', [0b011, 0b100, 0b010, 0b001, 0b110]),
    (b't', [0b111, 0b010, 0b010, 0b010, 0b010]),
];
