//! A 0-d tensor counts as a line of one element where PyTorch takes an axis of it.

use super::mistake;
use crate::{DType, Device, ScatterReduction, Shape, Tensor};

fn here(x: Tensor) -> Tensor {
    x.to(&Device::interpreter())
}

#[test]
fn views_of_a_number() {
    let x = here(Tensor::scalar(7));
    for same in [x.transpose(0, 0), x.transpose(0, -1), x.swapaxes(-1, 0), x.movedim(0, -1)] {
        assert_eq!((same.shape().unwrap(), same.item::<i32>().unwrap()), (Shape::scalar(), 7));
    }
    #[allow(clippy::reversed_empty_ranges, reason = "to the last axis, as in Python")]
    let lines = [x.flatten(0..), x.flatten(0..=-1), x.flatten(-1..), x.flatten(..1), x.unfold(-1, 1, 1)];
    for line in lines {
        assert_eq!((line.shape().unwrap(), line.to_vec::<i32>().unwrap()), (Shape::from([1]), vec![7]));
    }
    mistake!(x.transpose(0, 1), "transpose: axis 0 is out of range: a 0-d tensor has no axes");
    mistake!(x.movedim(1, 0), "movedim: axis 1 is out of range: a 0-d tensor has no axes");
    mistake!(
        x.unfold(0, 2, 1),
        "unfold: no window of 2 positions, 1 apart, fits axis 0 of shape [1]; pad it first"
    );
}

#[test]
fn positions_of_a_number() {
    let (x, src) = (here(Tensor::scalar(7)), here(Tensor::scalar(5)));
    let number = |y: Tensor| {
        assert_eq!(y.shape().unwrap(), Shape::scalar());
        y.item::<i32>().unwrap()
    };
    for index in [Tensor::from([0]), Tensor::scalar(0)].map(here) {
        assert_eq!(number(x.index_select(-1, &index)), 7);
        assert_eq!(number(x.index_add(0, &index, &src)), 12);
        assert_eq!(number(x.index_copy(0, &index, &src)), 5);
        assert_eq!(number(x.index_copy(0, &index, src.reshape([1]))), 5);
        assert_eq!(number(x.index_reduce(-1, &index, &src, ScatterReduction::Prod, true)), 35);
        assert_eq!(number(x.scatter(0, &index, &src)), 5);
        assert_eq!(number(x.scatter_add(0, &index, src.reshape([1]))), 12);
        assert_eq!(x.gather(0, &index).shape().unwrap(), index.shape().unwrap());
    }
    assert_eq!(x.gather(0, here(Tensor::from([0, 0, 0]))).to_vec::<i32>().unwrap(), [7; 3]);
    assert_eq!(number(here(Tensor::from([3, 4])).gather(0, here(Tensor::scalar(1)))), 4);
    let (sum, index) = (here(Tensor::scalar(2.0f32)), here(Tensor::from([0, 0])));
    let gradient = crate::grad(&sum.gather(0, &index).square().sum(..), &sum);
    assert_eq!(gradient.item::<f32>().unwrap(), 8.0);
    mistake!(x.index_select(0, &index), "index_select: axis 0 is out of range: a 0-d tensor has no axes");
    mistake!(
        x.index_add(0, &index, &src),
        "index_add: a 0-d tensor takes one position and one element, got an index of shape [2] and a source of shape []"
    );
    let columns = here(Tensor::from([[0]]));
    mistake!(
        x.gather(0, columns),
        "gather: the index must have as many dimensions as shape [], got shape [1, 1]; to take whole rows, use .index_select"
    );
}

#[test]
fn positions_along_an_axis_count_from_the_end() {
    let x = here(Tensor::from([[1, 2, 3], [4, 5, 6]]));
    let index = here(Tensor::from([[-1], [-3]]));
    assert_eq!(x.take_along_dim(&index, 1).to_vec::<i32>().unwrap(), [3, 4]);
    assert_eq!(x.take_along_axis(index.cast(DType::I8), 1).to_vec::<i32>().unwrap(), [3, 4]);
    let beyond = x.take_along_dim(here(Tensor::from([[-4]])), 1).to_vec::<i32>().unwrap_err();
    assert!(beyond.to_string().contains("index -4 is out of range for axis 1 of extent 3"), "{beyond}");
}

#[test]
fn one_variable_varies_as_a_number() {
    let x = here(Tensor::from([[1.0f32, 2.0, 6.0]]));
    for (y, expected) in [(x.cov(1), 7.0), (x.corrcoef(), 1.0)] {
        assert_eq!((y.shape().unwrap(), y.item::<f32>().unwrap()), (Shape::scalar(), expected));
    }
}

#[test]
fn a_bias_is_promoted_with_the_others() {
    let (x, weight) = (here(Tensor::from([[1i64, 2]])), here(Tensor::from([[3i64, 4], [5, 6]])));
    let bias = here(Tensor::from([0.5f32, 0.7]));
    assert_eq!(x.linear(&weight, Some(&bias)).to_vec::<f32>().unwrap(), [11.5, 17.7]);
    assert_eq!(x.bilinear(&x, weight.unsqueeze(0), Some(&bias.slice(0, ..1))).dtype().unwrap(), DType::F32);
    let (line, kernel) = (x.unsqueeze(0), weight.unsqueeze(0).transpose(1, 0).slice(1, ..1));
    let y = line.conv1d(&kernel, Some(&bias), 1, 0);
    assert_eq!(y.to_vec::<f32>().unwrap(), [11.5, 17.7]);
    let y = line.conv_transpose1d(kernel.transpose(0, 1), Some(&bias), 1, 0).to_vec::<f32>().unwrap();
    assert_eq!(y, [3.5, 10.5, 8.5, 5.7, 16.7, 12.7]);
    // Not rounded to 16 bits first, nor the sum.
    let halves = |x: &Tensor| x.cast(DType::F16);
    let y = halves(&x).linear(halves(&weight), Some(&(bias + 0.0001)));
    assert_eq!(y.to_vec::<f32>().unwrap(), [11.5001, 17.7001]);
    let wide = here(Tensor::from([1e-12f64, 0.0]));
    let y = x.cast(DType::F32).linear(weight.cast(DType::F32), Some(&wide));
    assert_eq!(y.to_vec::<f64>().unwrap(), [11.000000000001, 17.0]);
    let weight = weight.cast(DType::F32);
    let of = |w: &Tensor| x.cast(DType::F32).linear(w, Some(&wide)).sum(..);
    assert_eq!(crate::grad(&of(&weight), &weight).dtype().unwrap(), DType::F32);
}

#[test]
fn windows_of_a_negative_beta_are_none() {
    mistake!(
        Tensor::kaiser_window(5, true, -1.0, DType::F32),
        "kaiser_window: beta of a window must be 0 or more, got -1"
    );
}
