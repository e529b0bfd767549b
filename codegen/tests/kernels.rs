//! What schedules and loop nests come out of small kernels.

use lazuli_codegen::index::{Bound, IndexExpr};
use lazuli_codegen::ir::{AxisKind, Kernel, ValueOp};
use lazuli_codegen::schedule::Figures;
use lazuli_codegen::{BinaryOp, DType, Language, ReduceOp, Scalar, UnaryOp, emit};
use smallvec::smallvec;

const FIGURES: Figures = Figures { processors: 132 };

fn source(mut kernel: Kernel, language: Language) -> String {
    kernel.merge_axes();
    kernel.verify().unwrap();
    let emitted = emit(&kernel, language, &FIGURES).unwrap();
    let launches: Vec<String> =
        emitted.launches.iter().map(|(name, l)| format!("// {name}: {l}\n")).collect();
    format!("// {}\n{}{}", emitted.schedule, launches.concat(), emitted.source)
}

fn affine(terms: &[(lazuli_codegen::AxisId, i64)], constant: i64) -> IndexExpr {
    terms
        .iter()
        .fold(IndexExpr::constant(constant), |sum, &(axis, c)| sum.add(&IndexExpr::axis(axis).scale(c)))
}

fn relu_pool(pad: bool) -> Kernel {
    let mut k = Kernel::new("relu_max_pool2d");
    let (n, h, w) = (64, 256, 256);
    let i0 = k.add_axis(AxisKind::Map, n, true);
    let i1 = k.add_axis(AxisKind::Map, h / 2, false);
    let i2 = k.add_axis(AxisKind::Map, w / 2, false);
    let size = if pad { 3 } else { 2 };
    let r0 = k.add_axis(AxisKind::Reduce, size, false);
    let r1 = k.add_axis(AxisKind::Reduce, size, false);
    let x = k.add_input(DType::F32, n * h * w);
    let y = k.add_output(DType::F32, n * h * w / 4);
    let p = i64::from(pad);
    let row = affine(&[(i1, 2), (r0, 1)], -p);
    let col = affine(&[(i2, 2), (r1, 1)], -p);
    let index = affine(&[(i0, 65536)], 0).add(&row.scale(256)).add(&col);
    let guard = pad.then(|| {
        k.add(
            ValueOp::InBounds(smallvec![
                Bound { expr: row, lo: 0, hi: 256 },
                Bound { expr: col, lo: 0, hi: 256 }
            ]),
            DType::Bool,
        )
    });
    let load = k.load(x, index, guard);
    let mut v = k.unary(UnaryOp::Relu, load);
    if let Some(g) = guard {
        let low = k.literal(Scalar::from_f64(DType::F32, f64::NEG_INFINITY));
        v = k.select(g, v, low);
    }
    let m = k.reduce(ReduceOp::Max, &[r0, r1], v);
    k.store(y, affine(&[(i0, 16384), (i1, 128), (i2, 1)], 0), m);
    k
}

fn reduction(op: ReduceOp, rows: u64, length: u64, column: bool, dtype: DType) -> Kernel {
    let mut k = Kernel::new(op.name());
    let whole = rows == 1;
    let i0 = (!whole).then(|| k.add_axis(AxisKind::Map, rows, !column));
    let r0 = k.add_axis(AxisKind::Reduce, length, whole || column);
    let x = k.add_input(dtype, rows * length);
    let y = k.add_output(dtype, rows);
    let mut index = IndexExpr::axis(r0).scale(if column { rows as i64 } else { 1 });
    let mut out = IndexExpr::zero();
    if let Some(i0) = i0 {
        index = index.add(&IndexExpr::axis(i0).scale(if column { 1 } else { length as i64 }));
        out = IndexExpr::axis(i0);
    }
    let v = k.load(x, index, None);
    let s = k.reduce(op, &[r0], v);
    let scale = k.add_argument("c", Scalar::from_f64(DType::F32, length as f64));
    let scale = k.add(ValueOp::Argument(scale), DType::F32);
    let s = k.binary(BinaryOp::Div, s, scale);
    k.store(y, out, s);
    k
}

#[test]
fn show() {
    for language in [Language::Cuda, Language::C] {
        for pad in [false, true] {
            println!("{}", source(relu_pool(pad), language));
        }
        println!("{}", source(reduction(ReduceOp::Sum, 1000, 1024, false, DType::F32), language));
        println!(
            "{}",
            source(reduction(ReduceOp::SquaredDeviations, 1000, 20000, false, DType::F16), language)
        );
        println!("{}", source(reduction(ReduceOp::Sum, 1, 16 << 20, false, DType::F32), language));
        println!("{}", source(reduction(ReduceOp::Max, 1024, 20000, true, DType::F32), language));
    }
}
