//! Products whose left factor needs reductions of its rows: at the shapes around which a core's blocks have whole rows, some
//! columns, or few rows.

use lazuli::{DType, Device, Tensor};

use crate::common::data::floats;
use crate::common::{check_on_cpu, exact, near};

#[test]
fn at_every_kind_of_block() {
    for [rows, terms, columns] in [
        [5, 40, 200],
        [30, 513, 300],
        [96, 130, 65],
        [199, 64, 600],
        [200, 63, 129],
        [577, 17, 150],
        [390, 512, 260],
        [40, 3000, 140],
    ] {
        check_on_cpu("reduced rows", |device: &Device| {
            let of = |shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
            let (x, w, bias) = (of(&[rows, terms], 1), of(&[terms, columns], 2), of(&[columns], 3));
            let gain = of(&[terms], 4);
            let normalised = x.layer_norm([terms], Some(&gain), None, 1e-5);
            let near = |name: &str, y| near(name, y, 1e-4, 1e-3);
            vec![
                near("softmax", x.softmax(-1).matmul(&w)),
                near("layer", normalised.matmul(&w) + &bias),
                near("root", x.rms_norm([terms], Some(&gain), 1e-5).linear(&w.t(), Some(&bias)).gelu()),
                // What the results need of the rows as well.
                near("by the mean", (&x - x.mean_keepdim(1)).matmul(&w) * x.mean_keepdim(1)),
                near("doubles", x.cast(DType::F64).softmax(-1).matmul(&w.cast(DType::F64))),
                near("halves", x.softmax(-1).matmul(&w.cast(DType::F16).cast(DType::F32))),
            ]
        });
    }
}

/// Rows with NaN or positive infinity, or of negative infinity alone, are NaN, and no other row is.
#[test]
fn of_special_rows() {
    check_on_cpu("special rows", |device: &Device| {
        let of = |shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
        let (x, w) = (of(&[300, 150], 1), of(&[150, 300], 2));
        let row = Tensor::arange(0i64, 300, 1).to(device).unsqueeze(1);
        let place = Tensor::arange(0i64, 150, 1).to(device);
        let x = row.eq(100).where_(f64::NEG_INFINITY, &x);
        let x = (row.eq(150) & place.eq(149)).where_(f64::INFINITY, x);
        let x = (row.eq(299) & place.eq(0)).where_(f64::NAN, x);
        let y = x.softmax(-1).matmul(&w);
        vec![exact("where", y.isnan()), near("values", y, 1e-4, 1e-4)]
    });
}

#[test]
fn a_batch_of_them() {
    check_on_cpu("batches of reduced rows", |device: &Device| {
        let of = |shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
        let (x, w) = (of(&[3, 210, 70], 1), of(&[3, 70, 130], 2));
        let weights = x.softmax(-1);
        vec![
            near("each its own", weights.matmul(&w), 1e-4, 1e-4),
            near("one for all", weights.matmul(&w.select(0, 0)), 1e-4, 1e-4),
            near("transposed", x.transpose(1, 2).softmax(-1).matmul(&x), 1e-4, 1e-4),
        ]
    });
}
