//! A position that there is not is an error that names it and the user's line, on every device.
//!
//! By itself: a GPU is not waited for, and whichever thread waits for it first gets the error of any.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

#[path = "common/mod.rs"]
mod common;

use common::data::ordinary;
use common::devices;
use lazuli::{DType, Device, Error, Fusion, Tensor, with_fusion};

/// The error of evaluating, and the line that is to blame.
#[track_caller]
fn assert_out_of_range(y: &Tensor, expected: (&str, i64, usize, usize), line: u32) {
    for fusion in [Fusion::On, Fusion::Off] {
        // A GPU reports at the latest when the values are asked for.
        let error = with_fusion(fusion, || y.cast(DType::F64).to_vec::<f64>()).unwrap_err();
        let Error::IndexOutOfRange { op, index, axis, extent, location } = error else { panic!("{error}") };
        assert_eq!((op, index, axis, extent), expected);
        assert_eq!((location.file, location.line), (file!(), line));
    }
}

#[test]
fn a_position_that_there_is_not_is_an_error() {
    for device in devices().into_iter().chain([Device::interpreter()]) {
        let x = ordinary(&device, DType::F32, [5, 7], 1);
        let at = |values: &[i64]| Tensor::from_slice(values, [values.len()]).to(&device);
        let (y, line) = (x.index_select(0, &at(&[0, 5, 1])), line!());
        assert_out_of_range(&y, ("index_select", 5, 0, 5), line);
        // Others go on.
        assert_eq!(x.index_select(0, &at(&[4])).to_vec::<f32>().unwrap().len(), 7);
        let (y, line) = (x.index_select(1, &at(&[3, -1])), line!());
        assert_out_of_range(&(y.exp() * 2.0).sum(0), ("index_select", -1, 1, 7), line);
        let (y, line) = (x.gather(1, &at(&[1, i64::MIN, 2]).unsqueeze(0)), line!());
        assert_out_of_range(&y.softmax(1), ("gather", i64::MIN, 1, 7), line);
        let (y, line) = (x.take(&at(&[1, 34, 35])), line!());
        assert_out_of_range(&y, ("take", 35, 0, 35), line);
        let ids = Tensor::from_slice(&[1u8, 2, 255], [3]).to(&device);
        let (y, line) = (ids.embedding(&x), line!());
        assert_out_of_range(&y, ("embedding", 255, 0, 5), line);
        let (y, line) = (x.t().take_along_axis(&(at(&[4]).unsqueeze(0) + 1), 1), line!());
        assert_out_of_range(&y, ("take_along_axis", 5, 1, 5), line);
        // Also where the index changes nothing.
        let (y, line) = (Tensor::ones([1, 4], DType::F32).index_select(0, &at(&[0, 1])), line!());
        assert_out_of_range(&y, ("index_select", 1, 0, 1), line);
        let (y, line) = (x.slice(0, ..1).index_select(0, &at(&[0, 1])), line!());
        assert_out_of_range(&y, ("index_select", 1, 0, 1), line);
        // Where elements go: few and many positions, with and without columns.
        let (y, line) = (at(&[1, 5, 0]).bincount(5), line!());
        assert_out_of_range(&y, ("bincount", 5, 0, 5), line);
        let (y, line) = (at(&[1, -7, 0]).bincount(20_000), line!());
        assert_out_of_range(&y, ("bincount", -7, 0, 20_000), line);
        let (y, line) = (x.index_add(0, &at(&[1, 9]), &x.slice(0, ..2)).exp(), line!());
        assert_out_of_range(&y, ("index_add", 9, 0, 5), line);
        let wide = Tensor::zeros([1000, 7], DType::F32).to(&device);
        let (y, line) = (wide.index_add(0, &at(&[1, 1000]), &x.slice(0, ..2)), line!());
        assert_out_of_range(&y, ("index_add", 1000, 0, 1000), line);
        let (y, line) = (x.scatter_add(1, &at(&[-1, 2]).unsqueeze(1), &x), line!());
        assert_out_of_range(&(y * 2.0), ("scatter_add", -1, 1, 7), line);
        let (y, line) = (x.scatter_add(0, &at(&[4, 5, 3, 0]).unsqueeze(0), &x), line!());
        assert_out_of_range(&y, ("scatter_add", 5, 0, 5), line);
        // The second gather of a kernel, and one of another line with the same kernel.
        let good = x.index_select(0, &at(&[4, 4, 4]));
        let (y, line) = (x.index_select(0, &at(&[9, 4, 4])), line!());
        assert_out_of_range(&(&good + &y), ("index_select", 9, 0, 5), line);
        let (y, line) = (x.index_select(0, &at(&[4, 4, 8])), line!());
        assert_out_of_range(&(&good + &y), ("index_select", 8, 0, 5), line);
    }
}
