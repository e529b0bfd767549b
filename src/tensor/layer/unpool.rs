//! What goes back by the positions of a pooling: each element to the place that it came from.

use super::pool::PerAxis;
use crate::tensor::arguments::call::Call;
use crate::tensor::position::gather::needs_index;
use crate::{Result, Shape, Tensor};

macro_rules! unpooled_methods {
    ($($name:ident = $n:literal;)*) => {
        impl Tensor {
            $(
                #[doc = concat!(
                    "The opposite of max pooling over the last ", stringify!($n), " dimension(s): these elements at the \
                     positions that [`Tensor::max_pool", stringify!($n), "d_with_indices`] gave, in a tensor whose last \
                     dimensions have that `size`, and 0 elsewhere. Of several at one position it is the last. PyTorch's \
                     `max_unpool", stringify!($n), "d`, whose `output_size` is the size.\n\n\
                     A position that is negative, or not below the product of the size, is an \
                     [`IndexOutOfRange`](crate::Error::IndexOutOfRange) when the values are asked for. Invalid for positions \
                     that are no integers or have another shape, and for fewer dimensions."
                )]
                ///
                /// ```
                /// use lazuli::{Pool1d, Tensor};
                /// let x = Tensor::from_slice(&[1i32, 5, 2, 0, 9, 3], [1, 6]);
                /// let (largest, places) = x.max_pool1d_with_indices(Pool1d::new(3));
                /// assert_eq!(largest.max_unpool1d(&places, 6).to_vec::<i32>()?, [0, 5, 0, 0, 9, 0]);
                /// # Ok::<(), lazuli::Error>(())
                /// ```
                #[track_caller]
                pub fn $name(&self, positions: impl AsRef<Tensor>, size: impl Into<PerAxis<$n>>) -> Tensor {
                    let (positions, PerAxis(size)) = (positions.as_ref(), size.into());
                    let call = Call::here(stringify!($name));
                    call.composed(|| unpooled(call, self, positions, size))
                }
            )*
        }
    };
}

unpooled_methods! {
    max_unpool1d = 1;
    max_unpool2d = 2;
    max_unpool3d = 3;
}

fn unpooled<const N: usize>(call: Call, x: &Tensor, positions: &Tensor, size: [usize; N]) -> Result<Tensor> {
    let ((shape, dtype), (at, _)) = (x.known()?, positions.known()?);
    needs_index(call, positions)?;
    let Some(first) = shape.rank().checked_sub(N) else {
        let s = if N == 1 { "" } else { "s" };
        return call.fail(format!("needs at least {N} dimension{s}, got {dtype} {shape}"));
    };
    if at != shape {
        return call.fail(format!("positions of shape {at} are not those of elements of shape {shape}"));
    }
    let with = |last: &[usize]| -> Shape { shape[..first].iter().chain(last).copied().collect() };
    let whole = with(&size);
    call.needs_addressable(&whole)?;
    let flat = with(&[shape[first..].iter().product()]);
    let nothing = Tensor::zeros(with(&[Shape::from(&size[..]).elements()]), dtype);
    Ok(nothing.scatter(-1, &positions.reshape(&flat), &x.reshape(&flat)).reshape(whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::mistake;
    use crate::{DType, Device, Pool2d};

    #[test]
    fn what_was_pooled_is_where_it_was() {
        let values: Vec<f32> = (0..2 * 5 * 7).map(|n| ((n * 31) % 71) as f32 + 1.0).collect();
        let x = Tensor::from_slice(&values, [2, 5, 7]).to(&Device::interpreter());
        let (largest, places) = x.max_pool2d_with_indices(Pool2d::new((2, 3)));
        let back = largest.max_unpool2d(&places, (5, 7)).to_vec::<f32>().unwrap();
        let mut expected = vec![0.0; values.len()];
        for (plane, row, column) in (0..8).map(|i| (i / 4, i / 2 % 2, i % 2)) {
            let window = (0..6).map(|i| plane * 35 + (row * 2 + i / 3) * 7 + column * 3 + i % 3);
            let place = window.max_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap();
            expected[place] = values[place];
        }
        assert_eq!(back, expected);
        // Of two at one position the last, as a loop leaves it.
        let (pair, same) = (Tensor::from_slice(&[3.0f32, 4.0], [2]), Tensor::from_slice(&[1i64, 1], [2]));
        let [pair, same] = [pair, same].map(|tensor| tensor.to(&Device::interpreter()));
        assert_eq!(pair.max_unpool1d(&same, 3).to_vec::<f32>().unwrap(), [0.0, 4.0, 0.0]);
        assert!(
            pair.max_unpool1d(&same, 1).eval().unwrap_err().to_string().starts_with("max_unpool1d: index 1 ")
        );
        let none = Tensor::zeros([0, 2, 2], DType::U8);
        assert_eq!(none.max_unpool2d(&none, 5).shape().unwrap(), Shape::from([0, 5, 5]));
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        let x = Tensor::ones([2, 3], DType::F32);
        mistake!(x.max_unpool2d(&x, 4), "max_unpool2d: needs an index of integers, got f32 [2, 3]");
        let places = Tensor::zeros([2, 4], DType::I64);
        mistake!(
            x.max_unpool1d(&places, 4),
            "max_unpool1d: positions of shape [2, 4] are not those of elements of shape [2, 3]"
        );
        mistake!(x.max_unpool3d(&places, 4), "max_unpool3d: needs at least 3 dimensions, got f32 [2, 3]");
    }
}
