//! Proves activations and normalisations right in every float dtype, along every axis, at the edges of the number
//! range, and for rows that have no finite result. The oracle computes each from its definition in double precision.
//!
//! The tolerances: `F32` within a few units of the values' scale; `F64` likewise; 16-bit floats within two of their
//! units, as only their stored results are rounded.

use lazuli::{DType, Tensor};

use crate::common::data::{floats, specials};
use crate::common::{Output, Tolerance, check, check_fused, near};

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

/// `units` of the dtype's precision, relative and absolute.
fn within(label: impl Into<String>, tensor: Tensor, units: f64) -> Output {
    let unit = match tensor.dtype().unwrap() {
        DType::BF16 => 2f64.powi(-8),
        DType::F16 => 2f64.powi(-11),
        DType::F64 => 2f64.powi(-53),
        DType::F32
        | DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::U32
        | DType::I64 => 2f64.powi(-24),
    };
    near(label, tensor, unit * units, unit * units)
}

#[test]
fn activations() {
    for dtype in FLOATS {
        let all = |x: &Tensor| {
            vec![
                within("sigmoid", x.sigmoid(), 4.0),
                within("silu", x.silu(), 8.0),
                within("gelu", x.gelu(), 8.0),
                within("gelu_tanh", x.gelu_tanh(), 16.0),
                within("relu", x.relu(), 0.0),
            ]
        };
        check(&format!("activations {dtype}"), |device| all(&floats(device, dtype, [13, 77], 8.0, 3)));
        check_fused(&format!("activations of special {dtype}"), |device| all(&specials(device, dtype)));
        check_fused(&format!("activations of no {dtype}"), |device| {
            all(&floats(device, dtype, [0, 3], 1.0, 3))
        });
    }
    check("sigmoid of integers", |device| {
        vec![within("i32", floats(device, DType::F32, [50], 9.0, 4).cast(DType::I32).sigmoid(), 4.0)]
    });
}

#[test]
fn softmax_along_every_axis() {
    for dtype in FLOATS {
        for axis in [-1, 0, 1] {
            check(&format!("softmax {dtype} along {axis}"), |device| {
                let x = floats(device, dtype, [6, 37, 33], 6.0, 5);
                vec![within("softmax", x.softmax(axis), 16.0)]
            });
        }
    }
    for length in [1, 2, 8, 9, 64, 100, 1000, 3073, 20_000] {
        check_fused(&format!("softmax of rows of {length}"), |device| {
            let x = floats(device, DType::F32, [5, length], 10.0, 6);
            vec![
                within("softmax", x.softmax(-1), 64.0),
                within("scaled", (&x * 0.125).softmax(-1) * 2.0, 64.0),
            ]
        });
    }
}

/// Rows of -inf alone, rows with some -inf (masks), with inf, with NaN, and with numbers whose exponentials overflow.
#[test]
fn softmax_of_extreme_rows() {
    for dtype in FLOATS {
        check_fused(&format!("softmax of extreme {dtype}"), |device| {
            let (inf, nan) = (f64::INFINITY, f64::NAN);
            let rows = [
                [-inf; 5],
                [-inf, 1.0, 2.0, -inf, 3.0],
                [inf, 1.0, 2.0, 3.0, 4.0],
                [nan, 1.0, 2.0, 3.0, 4.0],
                [1.0, 2.0, 3.0, 4.0, nan],
                [30_000.0, 30_000.0, -30_000.0, 0.0, 1.0],
                [-30_000.0, -30_000.0, -30_000.0, -30_000.0, -30_000.0],
                [0.0, -0.0, 0.0, -0.0, 0.0],
            ];
            let x = Tensor::from_vec(rows.concat(), [8, 5]).to(device).cast(dtype);
            vec![
                within("along rows", x.softmax(1), 16.0),
                within("along columns", x.softmax(0), 16.0),
                within("long rows", x.unsqueeze(2).expand([8, 5, 20]).reshape([8, 100]).softmax(1), 16.0),
            ]
        });
    }
}

#[test]
fn layer_norm() {
    for dtype in FLOATS {
        check(&format!("layer_norm {dtype}"), |device| {
            let x = floats(device, dtype, [7, 100], 2.0, 7);
            let (weight, bias) = (floats(device, dtype, [100], 1.0, 8), floats(device, dtype, [100], 1.0, 9));
            vec![
                within("plain", x.layer_norm([100], None, None, 1e-5), 32.0),
                within("weight and bias", x.layer_norm([100], Some(&weight), Some(&bias), 1e-5), 32.0),
            ]
        });
    }
    for length in [1, 2, 8, 33, 64, 768, 4099, 17_000] {
        check_fused(&format!("layer_norm of rows of {length}"), |device| {
            let x = floats(device, DType::F32, [5, length], 2.0, 7) + 3.0;
            vec![within("plain", x.layer_norm([length], None, None, 1e-5), 128.0)]
        });
    }
    check("layer_norm of two dimensions", |device| {
        let x = floats(device, DType::F32, [3, 4, 50], 2.0, 10);
        let weight = floats(device, DType::F32, [4, 50], 1.0, 11);
        vec![
            within("two", x.layer_norm([4, 50], Some(&weight), None, 1e-3), 64.0),
            within("constant rows", x.full_like(2.5).layer_norm([50], None, None, 1e-5), 64.0),
            // NaN stays within its row.
            within("NaN", x.gt(1.9).where_(f64::NAN, &x).layer_norm([50], None, None, 1e-5), 64.0),
            within("nothing", x.slice(0, 3..).layer_norm([50], None, None, 1e-5), 0.0),
        ]
    });
}

/// Tolerances mean what they say.
#[test]
fn tolerances_are_not_vacuous() {
    assert_ne!(Tolerance::Ulps(0), Tolerance::Exact);
    let differs = |f: fn(&Tensor) -> Output| {
        let report = crate::common::differences("planted", crate::common::FUSED, |device| {
            // A bug planted on all devices but the oracle.
            let off = if *device == lazuli::Device::interpreter() { 0.0 } else { 1e-3 };
            vec![f(&(floats(device, DType::F32, [100], 1.0, 1) + off))]
        });
        !report.is_empty()
    };
    assert!(differs(|x| crate::common::exact("", x.clone())));
    assert!(differs(|x| crate::common::ulps("", x.clone(), 100)));
    assert!(differs(|x| near("", x.clone(), 1e-4, 1e-4)));
    assert!(differs(|x| crate::common::exact("", (x * 1000).cast(DType::I32))));
    assert!(!differs(|x| near("", x.clone(), 0.0, 1e-2)));
}
