//! How tensors are shown: `Debug` says what they are, `Display` computes their values and prints them as NumPy does.

use std::fmt::{self, Write};

use crate::recording::{Tensor, TensorNode};
use crate::{DType, Result, Scalar, Shape};

/// Tensors with more elements are summarised.
const SUMMARISED: usize = 1000;

/// So many positions are shown at each end of an axis.
const EDGE: usize = 3;

/// The width of a line.
const LINE: usize = 75;

/// Digits after the point at most.
const PRECISION: usize = 8;

/// What it is, whether its values are there, and where it was recorded; evaluates nothing.
///
/// ```
/// use lazuli::{DType, Tensor};
/// let x = Tensor::zeros([2, 3], DType::F32).relu();
/// assert!(format!("{x:?}").starts_with("Tensor(f32 [2, 3] on cpu, not evaluated, relu at "));
/// ```
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TensorNode { shape, dtype, origin, location, .. } = &*self.node;
        match self.device() {
            Ok(device) => {
                let not = if self.is_evaluated() { "" } else { "not " };
                write!(f, "Tensor({dtype} {shape} on {device}, {not}evaluated, {origin} at {location})")
            }
            Err(error) => write!(f, "Tensor(invalid: {error})"),
        }
    }
}

/// The values, computed if they are not there yet, as NumPy prints them: columns aligned, each float with as many
/// digits as tell it from its neighbours, but at most 8 after the point, and the middle of more than 1000 elements
/// left out. Of a tensor that cannot be computed, the error.
///
/// ```
/// use lazuli::Tensor;
/// let x = Tensor::from_slice(&[1.0f32, 2.5, -3.25, 100.0], [2, 2]);
/// assert_eq!(x.to_string(), "[[  1.     2.5 ]\n [ -3.25 100.  ]]");
/// assert_eq!(Tensor::arange(0, 2000, 1).to_string(), "[   0    1    2 ... 1997 1998 1999]");
/// assert!(x.reshape([3]).to_string().starts_with("reshape: shape [2, 2] has 4 elements"));
/// ```
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match shown(self) {
            Ok(text) => f.write_str(&text),
            Err(error) => write!(f, "{error}"),
        }
    }
}

fn shown(x: &Tensor) -> Result<String> {
    x.compute()?;
    let (shape, dtype) = x.known()?;
    let host = x.buffer()?.to_host()?;
    let bytes = host.as_slice();
    let scalar = |position: usize| {
        let mut bits = [0; 8];
        let size = dtype.size();
        if let Some(own) = bytes.get(position * size..(position + 1) * size) {
            bits[..size].copy_from_slice(own);
        }
        Scalar::from_bits(dtype, u64::from_le_bytes(bits))
    };
    if shape.rank() == 0 {
        return Ok(if dtype.is_float() { plain(scalar(0)) } else { scalar(0).to_string() });
    }
    if shape.elements() == 0 {
        return Ok("[]".into());
    }
    let layout = Layout { shape, edge: if shape.elements() > SUMMARISED { EDGE } else { usize::MAX } };
    let mut positions = Vec::new();
    layout.positions(0, 0, &mut positions);
    let mut words = words(dtype, &positions.into_iter().map(scalar).collect::<Vec<_>>()).into_iter();
    Ok(layout.text(0, "", LINE, &mut words))
}

/// A float by itself, always with a point.
fn plain(value: Scalar) -> String {
    match Digits::of(value) {
        Some(digits) if (-5..16).contains(&digits.exponent) => {
            let text = digits.positional(usize::MAX, value.as_f64());
            if text.ends_with('.') { text + "0" } else { text }
        }
        Some(digits) => digits.scientific(0, value.as_f64()),
        None => special(value.as_f64()).into(),
    }
}

/// Which elements are shown, and in which lines.
struct Layout<'a> {
    shape: &'a Shape,
    edge: usize,
}

impl Layout<'_> {
    /// Whether an axis leaves out its middle.
    fn is_cut(&self, axis: usize) -> bool {
        self.shape[axis] > self.edge.saturating_mul(2)
    }

    /// The indices of an axis that are shown.
    fn indices(&self, axis: usize) -> impl Iterator<Item = usize> + use<> {
        let extent = self.shape[axis];
        let head = if self.is_cut(axis) { self.edge } else { extent };
        let tail = if self.is_cut(axis) { self.edge } else { 0 };
        (0..head).chain(extent - tail..extent)
    }

    /// The row-major positions of all elements that are shown.
    fn positions(&self, axis: usize, before: usize, into: &mut Vec<usize>) {
        if axis == self.shape.rank() {
            into.push(before);
            return;
        }
        for index in self.indices(axis) {
            self.positions(axis + 1, before * self.shape[axis] + index, into);
        }
    }

    /// The part of the tensor from an axis on, in brackets. `indent` stands before its lines after the first.
    fn text(
        &self,
        axis: usize,
        indent: &str,
        width: usize,
        words: &mut impl Iterator<Item = String>,
    ) -> String {
        let indent = format!("{indent} ");
        let is_last = axis + 1 == self.shape.rank();
        let count = self.indices(axis).count();
        let mut text = String::from("[");
        let mut line = indent.len();
        for number in 0..count {
            let is_middle = self.is_cut(axis) && number == self.edge;
            let mut items = Vec::new();
            if is_middle {
                items.push("...".to_string());
            }
            match is_last {
                true => items.extend(words.next()),
                false => items.push(self.text(axis + 1, &indent, width - 1, words)),
            }
            for (place, item) in items.into_iter().enumerate() {
                let is_first = number == 0 && place == 0;
                if !is_last {
                    if !is_first {
                        // Blank lines between what has more dimensions.
                        text.extend(std::iter::repeat_n('\n', self.shape.rank() - axis - 1));
                        text.push_str(&indent);
                    }
                } else if is_first {
                } else if line + 1 + item.len() > width.saturating_sub(1) {
                    text.truncate(text.trim_end().len());
                    text.push('\n');
                    text.push_str(&indent);
                    line = indent.len();
                } else {
                    text.push(' ');
                    line += 1;
                }
                line += item.len();
                text.push_str(&item);
            }
        }
        text + "]"
    }
}

/// The elements as words of one width.
fn words(dtype: DType, values: &[Scalar]) -> Vec<String> {
    let words: Vec<String> = match dtype.is_float() {
        true => float_words(values),
        false => values.iter().map(Scalar::to_string).collect(),
    };
    let width = words.iter().map(String::len).max().unwrap_or(0);
    words.into_iter().map(|word| format!("{word:>width$}")).collect()
}

/// The fewest decimal digits that tell a float from its neighbours: 0.digits × 10^(exponent + 1).
struct Digits {
    negative: bool,
    digits: String,
    exponent: i32,
}

fn special(value: f64) -> &'static str {
    match value {
        _ if value.is_nan() => "nan",
        _ if value > 0.0 => "inf",
        _ => "-inf",
    }
}

impl Digits {
    /// `None` for what is not finite.
    fn of(value: Scalar) -> Option<Digits> {
        let number = value.as_f64();
        if !number.is_finite() {
            return None;
        }
        let exact = |precision: usize| {
            let text = format!("{:.precision$e}", number.abs());
            let same = text.parse::<f64>().is_ok_and(|back| {
                Scalar::from_f64(value.dtype(), back) == Scalar::from_f64(value.dtype(), number.abs())
            });
            same.then_some(text)
        };
        let text = (0..17).find_map(exact).unwrap_or_else(|| format!("{:e}", number.abs()));
        let (mantissa, exponent) = text.split_once('e')?;
        let digits = mantissa.replace('.', "");
        Some(Digits { negative: number.is_sign_negative(), digits, exponent: exponent.parse().ok()? })
    }

    fn sign(&self) -> &'static str {
        if self.negative { "-" } else { "" }
    }

    /// `12.5`, with at most so many digits after the point and no zeros at the end.
    fn positional(&self, precision: usize, value: f64) -> String {
        let fraction = (self.digits.len() as i32 - 1 - self.exponent).max(0) as usize;
        let magnitude = match fraction <= precision {
            true => {
                let point = self.exponent + 1;
                let padded = match point {
                    ..=0 => format!("{}{}", "0".repeat((1 - point) as usize), self.digits),
                    _ => format!("{:0<width$}", self.digits, width = point as usize),
                };
                let at = point.max(1) as usize;
                format!("{}.{}", &padded[..at], &padded[at..])
            }
            false => format!("{:.precision$}", value.abs()),
        };
        format!("{}{}", self.sign(), magnitude.trim_end_matches('0'))
    }

    /// How many digits stand after the point in scientific notation.
    fn decimals(&self) -> usize {
        self.digits.trim_end_matches('0').len().saturating_sub(1).min(PRECISION)
    }

    /// `1.25e-07`, with at least so many digits after the point.
    fn scientific(&self, decimals: usize, value: f64) -> String {
        let decimals = decimals.max(self.decimals());
        let text = format!("{:.decimals$e}", value.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let point = if decimals == 0 { "." } else { "" };
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        format!("{}{mantissa}{point}e{exponent_sign}{:02}", self.sign(), exponent.abs())
    }
}

/// Floats with aligned points, or all in scientific notation where magnitudes differ by more than 1000, or are
/// very large or small.
fn float_words(values: &[Scalar]) -> Vec<String> {
    let magnitudes = || values.iter().map(|x| x.as_f64().abs()).filter(|x| x.is_finite() && *x != 0.0);
    let most = magnitudes().fold(0.0, f64::max);
    let least = magnitudes().fold(f64::INFINITY, f64::min);
    let is_scientific = most > 0.0 && (most >= 1e8 || least < 1e-4 || most / least > 1000.0);
    let digits: Vec<Option<Digits>> = values.iter().map(|&value| Digits::of(value)).collect();
    let decimals = digits.iter().flatten().map(Digits::decimals).max().unwrap_or(0);
    let texts: Vec<String> = digits
        .iter()
        .zip(values)
        .map(|(digits, value)| match digits {
            None => special(value.as_f64()).into(),
            Some(digits) if is_scientific => digits.scientific(decimals, value.as_f64()),
            Some(digits) => digits.positional(PRECISION, value.as_f64()),
        })
        .collect();
    if is_scientific {
        return texts;
    }
    let after_point = |text: &str| text.split_once('.').map(|(_, fraction)| fraction.len());
    let fraction = texts.iter().filter_map(|text| after_point(text)).max().unwrap_or(0);
    let pad = |mut text: String| {
        if let Some(own) = after_point(&text) {
            // Writing to a string does not fail.
            let _ = write!(text, "{}", " ".repeat(fraction - own));
        }
        text
    };
    texts.into_iter().map(pad).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, f16};

    fn shown<T: Element>(values: &[T], shape: impl Into<Shape>) -> String {
        Tensor::from_slice(values, shape).to_string()
    }

    /// Printed by NumPy 2.4; which, unlike its predecessors, takes to scientific notation at 10^6 for `F32`.
    #[test]
    fn floats_are_numpys() {
        assert_eq!(shown(&[1.0f64, 2.5, -3.25], [3]), "[ 1.    2.5  -3.25]");
        assert_eq!(shown(&[0.1f32, 0.2, 0.3], [3]), "[0.1 0.2 0.3]");
        assert_eq!(shown(&[0.1f64 + 0.2, 1.0 / 3.0], [2]), "[0.3        0.33333333]");
        assert_eq!(shown(&[1e-5f64, 1.0], [2]), "[1.e-05 1.e+00]");
        assert_eq!(shown(&[1.5e10f64, -2.25], [2]), "[ 1.50e+10 -2.25e+00]");
        assert_eq!(shown(&[f64::NAN, 1.0, f64::INFINITY], [3]), "[nan  1. inf]");
        assert_eq!(shown(&[f64::NEG_INFINITY, 0.5], [2]), "[-inf  0.5]");
        assert_eq!(shown(&[0.0f64, -0.0], [2]), "[ 0. -0.]");
        assert_eq!(shown(&[f16::from_f32(0.1), f16::from_f32(3.0)], [2]), "[0.1 3. ]");
        assert_eq!(
            shown(&[9998.297f32, 0.43103415, -65091.29], [3]),
            "[ 9.9982969e+03  4.3103415e-01 -6.5091289e+04]"
        );
        assert_eq!(shown(&[1e8f64], [1]), "[1.e+08]");
        assert_eq!(shown(&[99999.0f64, 100.0], [2]), "[99999.   100.]");
        assert_eq!(shown(&[123456789.123f64], [1]), "[1.23456789e+08]");
        assert_eq!(shown(&[0.0001f64, 0.1], [2]), "[0.0001 0.1   ]");
    }

    #[test]
    fn everything_else_is_aligned() {
        assert_eq!(shown(&[true, false], [2]), "[ true false]");
        assert_eq!(shown(&[1i32, -10, 100], [3]), "[  1 -10 100]");
        assert_eq!(shown(&[1u8, 2, 3, 4], [2, 2]), "[[1 2]\n [3 4]]");
        assert_eq!(shown(&[1i64; 8], [2, 2, 2]), "[[[1 1]\n  [1 1]]\n\n [[1 1]\n  [1 1]]]");
        assert_eq!(shown::<f32>(&[], [0, 3]), "[]");
        assert_eq!(shown(&[1.0f32], []), "1.0");
        assert_eq!(shown(&[0.1f32], []), "0.1");
        assert_eq!(shown(&[f32::NAN], []), "nan");
        assert_eq!(shown(&[1e-20f32], []), "1.e-20");
        assert_eq!(shown(&[-3i32], []), "-3");
    }

    #[test]
    fn long_lines_are_wrapped_and_large_tensors_summarised() {
        let lines = Tensor::arange(0, 40, 1).to_string();
        assert_eq!(
            lines,
            "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n \
             24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39]"
        );
        let large = Tensor::arange(0, 1200, 1).reshape([30, 40]).to_string();
        assert_eq!(
            large,
            "[[   0    1    2 ...   37   38   39]\n [  40   41   42 ...   77   78   79]\n \
             [  80   81   82 ...  117  118  119]\n ...\n [1080 1081 1082 ... 1117 1118 1119]\n \
             [1120 1121 1122 ... 1157 1158 1159]\n [1160 1161 1162 ... 1197 1198 1199]]"
        );
        let narrow = Tensor::arange(0, 2002, 1).reshape([1001, 2]).to_string();
        assert_eq!(narrow.lines().count(), 7);
    }

    #[test]
    fn displaying_evaluates_and_a_mistake_is_shown() {
        let x = Tensor::arange(0, 3, 1) + 1;
        assert!(!x.is_evaluated());
        assert_eq!(x.to_string(), "[1 2 3]");
        assert!(x.is_evaluated());
        assert!(
            x.reshape([7]).to_string().starts_with("reshape: shape [3] has 3 elements, but [7] takes 7, at")
        );
        assert!(format!("{x:?}").starts_with("Tensor(i32 [3] on cpu, evaluated, add at "));
    }
}
