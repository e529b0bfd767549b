//! Elements as they lie in memory, seen as those of another dtype.

use crate::graph::op::Op;
use crate::tensor::arguments::call::Call;
use crate::{DType, Result, Shape, Tensor, UnaryOp};

impl Tensor {
    /// The bits of the elements as elements of another dtype, little-endian: PyTorch's `view(dtype)`, NumPy's `view`. Of a dtype of the
    /// same size the shape stays. Smaller ones are as many times more along the last axis, larger ones as many times fewer.
    ///
    /// It is computed, and fuses like any other operation on elements. `F32` and `F64` keep every bit, those of NaN too.
    /// The 16-bit floats are computed with in `F32`: a NaN of theirs stays one, whose bits are `0x7fff`.
    ///
    /// Invalid to `Bool` from another dtype (`ne(0)` asks which elements are not zero), and to a dtype of another size for a 0-d
    /// tensor, or where the last axis is no whole number of elements.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::from([1.0f32, -2.0]);
    /// assert_eq!(x.view_dtype(DType::I32).to_vec::<i32>()?, [0x3f80_0000, -0x4000_0000]);
    /// let bytes = x.view_dtype(DType::U8);
    /// assert_eq!(bytes.to_vec::<u8>()?, [0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]);
    /// assert_eq!(bytes.view_dtype(DType::F32).to_vec::<f32>()?, [1.0, -2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn view_dtype(&self, dtype: DType) -> Tensor {
        let call = Call::here("view_dtype");
        call.composed(|| view_dtype(call, self, dtype))
    }
}

/// Which of eight elements is a byte's first bit: NumPy's `bitorder`.
///
/// ```
/// use lazuli::{BitOrder, Tensor};
/// let x = Tensor::from([true, false, false]);
/// assert_eq!(x.packbits(0, BitOrder::Big).to_vec::<u8>()?, [0b1000_0000]);
/// assert_eq!(x.packbits(0, BitOrder::Little).to_vec::<u8>()?, [0b0000_0001]);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum BitOrder {
    /// The first element is the highest bit.
    #[default]
    Big,
    /// The first element is the lowest bit.
    Little,
}

impl BitOrder {
    /// How far each of eight bits is shifted, along the first of so many axes.
    fn shifts(self, axes: usize) -> Tensor {
        let shifts = match self {
            BitOrder::Big => Tensor::arange_with(7, -1, -1, DType::U8),
            BitOrder::Little => Tensor::arange_with(0, 8, 1, DType::U8),
        };
        let extents: Shape = (0..axes).map(|axis| if axis == 0 { 8 } else { 1 }).collect();
        shifts.reshape(extents)
    }
}

impl Tensor {
    /// Eight elements along an axis as the bits of one byte, 1 where they are not zero: `U8`, and an eighth as many along the axis, rounded
    /// up; further bits of the last byte are 0. NumPy's `packbits`. The inverse is [`Tensor::unpackbits`].
    ///
    /// Invalid for floats, and for an axis out of range.
    ///
    /// ```
    /// use lazuli::{BitOrder, Tensor};
    /// let x = Tensor::from([1, 0, 1, 1, 0, 0, 0, 0, 0, 7]);
    /// assert_eq!(x.packbits(0, BitOrder::Big).to_vec::<u8>()?, [0b1011_0000, 0b0100_0000]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn packbits(&self, axis: isize, order: BitOrder) -> Tensor {
        let call = Call::here("packbits");
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            if dtype.is_float() {
                return call.fail(format!(
                    "needs integers or bools, got {dtype} {shape}; compare first, such as with .ne(0)"
                ));
            }
            let axis = call.axis(axis, shape)?;
            let (count, rank) = (shape[axis].div_ceil(8), shape.rank());
            let border: Vec<(usize, usize)> = (0..rank)
                .map(|own| if own == axis { (0, count * 8 - shape[axis]) } else { (0, 0) })
                .collect();
            let bits = self.cast(DType::Bool).cast(DType::U8).pad(&border, 0);
            let eights = bits.reshape([&shape[..axis], &[count, 8], &shape[axis + 1..]].concat());
            let placed = eights << order.shifts(rank - axis);
            let along = axis as isize + 1;
            let parts = (0..8).map(|bit| placed.select(along, bit));
            Ok(parts.reduce(|low, high| low | high).unwrap_or(bits))
        })
    }

    /// The bits of bytes along an axis, 0 or 1: `U8`, and eight times as many along the axis. NumPy's `unpackbits`; for its `count`,
    /// [`Tensor::narrow`].
    ///
    /// Invalid for other dtypes than `U8`, and for an axis out of range.
    ///
    /// ```
    /// use lazuli::{BitOrder, Tensor};
    /// let x = Tensor::from([0b1011_0000u8]);
    /// assert_eq!(x.unpackbits(0, BitOrder::Big).to_vec::<u8>()?, [1, 0, 1, 1, 0, 0, 0, 0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn unpackbits(&self, axis: isize, order: BitOrder) -> Tensor {
        let call = Call::here("unpackbits");
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            if dtype != DType::U8 {
                return call
                    .fail(format!("needs u8, got {dtype} {shape}; see `view_dtype` for bytes of others"));
            }
            let axis = call.axis(axis, shape)?;
            let bits = self.unsqueeze(axis as isize + 1) >> order.shifts(shape.rank() - axis) & 1;
            Ok(bits.reshape(shape.with_extent(axis, shape[axis].saturating_mul(8))))
        })
    }
}

fn view_dtype(call: Call, x: &Tensor, to: DType) -> Result<Tensor> {
    let (shape, from) = x.known()?;
    if from == to {
        return Ok(x.clone());
    }
    if to == DType::Bool {
        return call.fail(format!(
            "bits of {from} {shape} are no bools; to ask which elements are not zero, use .ne(0)"
        ));
    }
    let bits = to_integers(call, x)?;
    let (own, new) = (from.size(), to.size());
    if own == new {
        return of_integers(call, &bits, to);
    }
    let Some((&last, outer)) = shape.split_last() else {
        return call.fail(format!("a 0-d tensor of {from} has no axis for elements of another size, {to}"));
    };
    let with_axes = |axes: &[usize]| Shape::from([outer, axes].concat());
    let bits = if own > new {
        let places = Tensor::arange_with(0, 8 * own as i64, 8 * new as i64, integer(own));
        let parts = (bits.unsqueeze(-1) >> places).cast(integer(new));
        parts.reshape(with_axes(&[last.saturating_mul(own / new)]))
    } else if last % (new / own) == 0 {
        let count = new / own;
        let parts = bits.cast(integer(new)) & ((1i64 << (8 * own)) - 1);
        let parts = parts.reshape(with_axes(&[last / count, count]));
        let placed = (0..count as isize).map(|n| parts.select(-1, n) << (8 * own as i64 * n as i64));
        placed.reduce(|low, high| low | high).unwrap_or(parts)
    } else {
        return call.fail(format!(
            "the last axis of {from} {shape} is no whole number of {to}: it must be divisible by {}",
            new / own
        ));
    };
    of_integers(call, &bits, to)
}

/// The integer that bits of so many bytes are computed with.
fn integer(size: usize) -> DType {
    match size {
        1 => DType::U8,
        2 => DType::I16,
        4 => DType::I32,
        _ => DType::I64,
    }
}

fn to_integers(call: Call, x: &Tensor) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let to = integer(dtype.size());
    if !dtype.is_float() {
        return call.cast(x, to);
    }
    if dtype.compute() == dtype {
        return call.unary(UnaryOp::Bitcast, x);
    }
    // Registers hold more digits: as memory would have it.
    let rounded = call.record(Op::Cast, &[x], shape.clone(), dtype)?.cast(DType::F32);
    let bits = match dtype {
        DType::F16 => {
            // Whose exponents are those of a half as they are, infinity's but for its bits beyond.
            let scaled = call.unary(UnaryOp::Bitcast, &(rounded.abs() * 2f64.powi(-112)))?;
            let sign = rounded.signbit().where_(0x8000, 0);
            (scaled >> 13).minimum(0x7c00) | sign.cast(DType::I32)
        }
        _ => call.unary(UnaryOp::Bitcast, &rounded)? >> 16,
    };
    Ok(rounded.isnan().where_(0x7fff, bits).cast(to))
}

fn of_integers(call: Call, bits: &Tensor, to: DType) -> Result<Tensor> {
    if !to.is_float() {
        return call.cast(bits, to);
    }
    if to.compute() == to {
        return call.unary(UnaryOp::Bitcast, bits);
    }
    let bits = bits.cast(DType::I32);
    let single = match to {
        DType::F16 => {
            let magnitude = &bits & 0x7fff;
            let number = call.unary(UnaryOp::Bitcast, &(&magnitude << 13))? * 2f64.powi(112);
            let special = call.unary(UnaryOp::Bitcast, &(&magnitude << 13 | 0x7f80_0000))?;
            let unsigned = magnitude.ge(0x7c00).where_(special, number);
            bits.lt(0).where_(-&unsigned, unsigned)
        }
        _ => call.unary(UnaryOp::Bitcast, &(bits << 16))?,
    };
    Ok(single.cast(to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::tensor::tests::mistake;

    fn of_bytes(bytes: &[u8], dtype: DType, shape: &[usize]) -> Tensor {
        Tensor::from_bytes(bytes, dtype, shape).to(&Device::interpreter())
    }

    /// Every number of 16 bits, as a float and back.
    #[test]
    fn all_of_16_bits() {
        let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        for (dtype, infinite) in [(DType::F16, 0x7c00u16), (DType::BF16, 0x7f80)] {
            let expected: Vec<u8> = (0..=u16::MAX)
                .map(|bits| if bits & 0x7fff > infinite { 0x7fff } else { bits })
                .flat_map(u16::to_le_bytes)
                .collect();
            let x = of_bytes(&all, dtype, &[1 << 16]);
            assert_eq!(x.view_dtype(DType::I16).to_bytes().unwrap(), expected, "{dtype}");
            let back = of_bytes(&all, DType::I16, &[1 << 16]).view_dtype(dtype);
            assert!(back.isnan().logical_xor(x.isnan()).any(..).item::<bool>().map(|any| !any).unwrap());
            let numbers = back.isnan().where_(x.zeros_like(), back).to_bytes().unwrap();
            assert_eq!(numbers, x.isnan().where_(x.zeros_like(), &x).to_bytes().unwrap(), "{dtype}");
        }
    }

    /// Between any two dtypes bytes stay what they are; NaN of 16 bits aside.
    #[test]
    fn bytes_stay() {
        let bytes: Vec<u8> = (0..3 * 16).map(|n| (n * 37 + 11) as u8 & 0xbf).collect();
        let numeric = || DType::ALL.into_iter().filter(|&dtype| dtype != DType::Bool);
        for (from, to) in numeric().flat_map(|from| numeric().map(move |to| (from, to))) {
            let x = of_bytes(&bytes, from, &[3, 16 / from.size()]);
            let y = x.view_dtype(to);
            assert_eq!(y.shape().unwrap(), Shape::from([3, 16 / to.size()]), "{from} as {to}");
            assert_eq!(y.to_bytes().unwrap(), bytes, "{from} as {to}");
        }
    }

    /// Signalling and quiet, with every bit of their payloads.
    #[test]
    fn nan_keeps_its_bits() {
        let singles = [0x7f80_0001u32, 0xff80_0000, 0x7fc0_1234, 0xffff_ffff, 0x7fc0_0000];
        let bytes: Vec<u8> = singles.into_iter().flat_map(u32::to_le_bytes).collect();
        let bits = of_bytes(&bytes, DType::U32, &[5]);
        assert_eq!(bits.view_dtype(DType::F32).view_dtype(DType::I32).to_bytes().unwrap(), bytes);
        assert_eq!(bits.view_dtype(DType::F32).to_bytes().unwrap(), bytes);
        let x = Tensor::full([2], 0x7ff0_0000_0000_0001i64, DType::I64).view_dtype(DType::F64);
        assert_eq!(x.view_dtype(DType::I64).to_vec::<i64>().unwrap(), [0x7ff0_0000_0000_0001; 2]);
    }

    #[test]
    fn empty_and_0_d() {
        let none = Tensor::zeros([3, 0], DType::F32);
        assert_eq!(none.view_dtype(DType::U8).shape().unwrap(), Shape::from([3, 0]));
        assert_eq!(none.view_dtype(DType::F64).to_vec::<f64>().unwrap(), [0.0; 0]);
        assert_eq!(Tensor::zeros([0, 2], DType::F32).view_dtype(DType::I64).to_vec::<i64>().unwrap(), [0; 0]);
        assert_eq!(Tensor::scalar(1.0f32).view_dtype(DType::U32).item::<u32>().unwrap(), 0x3f80_0000);
        assert_eq!(Tensor::scalar(true).view_dtype(DType::I8).item::<i8>().unwrap(), 1);
    }

    #[test]
    fn packed_and_back() {
        for (count, order) in (0..20).flat_map(|n| [BitOrder::Big, BitOrder::Little].map(|order| (n, order)))
        {
            let x = (Tensor::arange(0, 3 * count, 1) * 7 % 3).reshape([count as usize, 3]);
            let x = x.to(&Device::interpreter());
            for axis in [0, 1] {
                let bytes = x.packbits(axis, order);
                let extent = x.shape().unwrap()[axis as usize];
                let back = bytes.unpackbits(axis, order);
                assert_eq!(back.shape().unwrap()[axis as usize], extent.div_ceil(8) * 8);
                let kept = back.narrow(axis, 0, extent).to_vec::<u8>().unwrap();
                assert_eq!(kept, x.ne(0).cast(DType::U8).to_vec::<u8>().unwrap(), "{count} {order:?} {axis}");
                let others = back.slice(axis, extent as isize..).sum(..).item::<i64>().unwrap();
                assert_eq!(others, 0, "{count} {order:?} {axis}");
            }
        }
        let x = Tensor::ones([3], DType::F32);
        mistake!(
            x.packbits(0, BitOrder::Big),
            "packbits: needs integers or bools, got f32 [3]; compare first, such as with .ne(0)"
        );
        mistake!(
            x.unpackbits(0, BitOrder::Big),
            "unpackbits: needs u8, got f32 [3]; see `view_dtype` for bytes of others"
        );
    }

    #[test]
    fn mistakes() {
        let x = Tensor::ones([2, 3], DType::F32);
        mistake!(
            x.view_dtype(DType::F64),
            "view_dtype: the last axis of f32 [2, 3] is no whole number of f64: it must be divisible by 2"
        );
        mistake!(
            Tensor::scalar(1.0f32).view_dtype(DType::U8),
            "view_dtype: a 0-d tensor of f32 has no axis for elements of another size, u8"
        );
        mistake!(
            x.view_dtype(DType::Bool),
            "view_dtype: bits of f32 [2, 3] are no bools; to ask which elements are not zero, use .ne(0)"
        );
    }
}
