//! What schedules and loop nests come out of small kernels: each a file in `snapshots/`, with the schedule and
//! the launches above the source.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

use lazuli_codegen::index::{Bound, IndexExpr};
use lazuli_codegen::ir::{AxisKind, BufferId, Kernel, ValueOp};
use lazuli_codegen::schedule::Figures;
use lazuli_codegen::{AxisId, BinaryOp, DType, Language, ReduceOp, Scalar, ScanOp, UnaryOp, emit};
use smallvec::smallvec;

const FIGURES: Figures = Figures { processors: 132, is_frugal: false, shared_bytes: 227 << 10 };

/// The kernel in both languages; its schedule for CUDA must be of that kind.
fn assert_kernel(name: &str, mut kernel: Kernel, schedule: &str) {
    kernel.merge_axes();
    kernel.verify().unwrap();
    for (language, suffix) in [(Language::Cuda, "cuda"), (Language::C, "c")] {
        let emitted = emit(&kernel, language, &FIGURES).unwrap();
        assert_eq!(emitted, emit(&kernel, language, &FIGURES).unwrap());
        let chosen = emitted.schedule.to_string();
        if language == Language::Cuda {
            assert!(chosen.starts_with(schedule), "{name}: {chosen}");
        }
        let launches: Vec<String> =
            emitted.launches.iter().map(|(name, launch)| format!("// {name}: {launch}\n")).collect();
        let text = format!("// {chosen}\n{}{}", launches.concat(), emitted.source);
        insta::with_settings!({
            snapshot_path => "../../snapshots",
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, { insta::assert_snapshot!(format!("codegen_{name}_{suffix}"), text) });
    }
}

fn affine(terms: &[(AxisId, i64)], constant: i64) -> IndexExpr {
    terms
        .iter()
        .fold(IndexExpr::constant(constant), |sum, &(axis, c)| sum.add(&IndexExpr::axis(axis).scale(c)))
}

/// `y = max over windows of relu(x)`, of 2×2 side by side or of 3×3 two apart beyond the edges.
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

/// `y[i] = (op over j of x[i, j]) / c`, with `x` stored by rows or by columns.
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

/// `z = exp(x) * y + c` over `shape`, `y` along the last axis alone.
fn pointwise(dtype: DType) -> Kernel {
    let mut k = Kernel::new("exp_mul_add");
    let (rows, columns) = (1000, 96);
    let i0 = k.add_axis(AxisKind::Map, rows, true);
    let i1 = k.add_axis(AxisKind::Map, columns, false);
    let x = k.add_input(dtype, rows * columns);
    let y = k.add_input(dtype, columns);
    let z = k.add_output(dtype, rows * columns);
    let position = affine(&[(i0, columns as i64), (i1, 1)], 0);
    let a = k.load(x, position.clone(), None);
    let b = k.load(y, IndexExpr::axis(i1), None);
    let c = k.add_argument("c", Scalar::from_f64(DType::F32, 0.5));
    let c = k.add(ValueOp::Argument(c), DType::F32);
    let exp = k.unary(UnaryOp::Exp, a);
    let product = k.binary(BinaryOp::Mul, exp, b);
    let sum = k.binary(BinaryOp::Add, product, c);
    k.store(z, position, sum);
    k
}

/// `y[j, i] = x[i, j]`: one side cannot be in order.
fn transposed() -> Kernel {
    let mut k = Kernel::new("transpose");
    let i0 = k.add_axis(AxisKind::Map, 512, true);
    let i1 = k.add_axis(AxisKind::Map, 256, false);
    let x = k.add_input(DType::F32, 512 * 256);
    let y = k.add_output(DType::F32, 512 * 256);
    let v = k.load(x, affine(&[(i0, 1), (i1, 512)], 0), None);
    let v = k.unary(UnaryOp::Neg, v);
    k.store(y, affine(&[(i0, 256), (i1, 1)], 0), v);
    k
}

/// A border of 7 around each row of `x`.
fn padded() -> Kernel {
    let mut k = Kernel::new("pad");
    let i0 = k.add_axis(AxisKind::Map, 100, true);
    let i1 = k.add_axis(AxisKind::Map, 68, false);
    let x = k.add_input(DType::F32, 100 * 64);
    let y = k.add_output(DType::F32, 100 * 68);
    let column = affine(&[(i1, 1)], -2);
    let inside = ValueOp::InBounds(smallvec![Bound { expr: column.clone(), lo: 0, hi: 64 }]);
    let inside = k.add(inside, DType::Bool);
    let v = k.load(x, affine(&[(i0, 64)], 0).add(&column), Some(inside));
    let border = k.literal(Scalar::from_f64(DType::F32, 7.0));
    let v = k.select(inside, v, border);
    k.store(y, affine(&[(i0, 68), (i1, 1)], 0), v);
    k
}

/// `y = x - max(x)` for each row: the row is walked twice.
fn minus_max(length: u64) -> Kernel {
    let mut k = Kernel::new("minus_max");
    let i0 = k.add_axis(AxisKind::Map, 1000, true);
    let r0 = k.add_axis(AxisKind::Reduce, length, false);
    let x = k.add_input(DType::F32, 1000 * length);
    let y = k.add_output(DType::F32, 1000 * length);
    let position = affine(&[(i0, length as i64), (r0, 1)], 0);
    let v = k.load(x, position.clone(), None);
    let max = k.reduce(ReduceOp::Max, &[r0], v);
    let difference = k.binary(BinaryOp::Sub, v, max);
    k.store(y, position, difference);
    k
}

#[test]
fn pointwise_with_broadcasting() {
    assert_kernel("pointwise", pointwise(DType::F32), "pointwise(threads=256, vec=4)");
}

#[test]
fn sixteen_bits_are_computed_in_thirty_two() {
    assert_kernel("pointwise_f16", pointwise(DType::F16), "pointwise(");
    assert_kernel("pointwise_bf16", pointwise(DType::BF16), "pointwise(");
}

/// A step with momentum: `v = 0.9 v + g`, then `p = p - 0.01 v`, written over the old ones.
#[test]
fn results_over_inputs() {
    let mut k = Kernel::new("momentum");
    let length = 1000;
    let i0 = k.add_axis(AxisKind::Map, length, true);
    let inputs = [(); 3].map(|()| k.add_input(DType::F32, length));
    let outputs = [(); 2].map(|()| k.add_output(DType::F32, length));
    let [v, g, p] = inputs.map(|buffer| k.load(buffer, IndexExpr::axis(i0), None));
    let [decay, rate] = [0.9, 0.01].map(|value| {
        let argument = k.add_argument("c", Scalar::from_f64(DType::F32, value));
        k.add(ValueOp::Argument(argument), DType::F32)
    });
    let decayed = k.binary(BinaryOp::Mul, v, decay);
    let v = k.binary(BinaryOp::Add, decayed, g);
    let step = k.binary(BinaryOp::Mul, v, rate);
    let p = k.binary(BinaryOp::Sub, p, step);
    k.store(outputs[0], IndexExpr::axis(i0), v);
    k.store(outputs[1], IndexExpr::axis(i0), p);
    let ([v, g, p], [new_v, new_p]) = (inputs, outputs);
    assert_eq!(k.overwritable(), [v, g, p]);
    // The first result is there before the parameter is read.
    assert_eq!(k.pair_up(&[p], |_, _| true), [(p, new_p)]);
    assert_eq!(k.pair_up(&[p, g], |_, _| true), [(g, new_v), (p, new_p)]);
    assert_eq!(k.pair_up(&[g], |_, output| output == new_p), [(g, new_p)]);
    let in_place = k.written_over(&[(v, new_v), (p, new_p)]);
    let emitted = emit(&in_place, Language::Cuda, &FIGURES).unwrap();
    assert_eq!(emitted.parameters.len(), 6);
    assert_kernel("in_place", in_place, "pointwise(");
    // What is reduced, or read at other positions, is not written over.
    assert_eq!(reduction(ReduceOp::Sum, 1000, 1024, false, DType::F32).overwritable(), []);
    assert_eq!(transposed().overwritable(), []);
    let own = pointwise(DType::F32).overwritable();
    assert_eq!(own, [BufferId(0)], "the broadcast input is read by many positions");
}

#[test]
fn windows_read_tiles() {
    assert_kernel("windows", relu_pool(false), "pointwise(");
}

#[test]
fn windows_beyond_the_edge_are_guarded() {
    assert_kernel("windows_guarded", relu_pool(true), "pointwise(");
}

#[test]
fn borders_are_guarded() {
    assert_kernel("pad", padded(), "pointwise(");
}

#[test]
fn transposes() {
    assert_kernel("transpose", transposed(), "tiled(");
}

/// Sums of all elements up to each, along axis 0 or 1 of 100 × `length`, twice.
fn scan(axis: usize, length: u64, reverse: bool) -> Kernel {
    let mut k = Kernel::new("scan");
    let i0 = k.add_axis(AxisKind::Map, 100, true);
    let i1 = k.add_axis(AxisKind::Map, length, false);
    let x = k.add_input(DType::F32, 100 * length);
    let y = k.add_output(DType::F32, 100 * length);
    let at = affine(&[(i0, length as i64), (i1, 1)], 0);
    let v = k.load(x, at.clone(), None);
    let squared = k.binary(BinaryOp::Mul, v, v);
    let op =
        ValueOp::Scan { op: ScanOp::Sum, axis: [i0, i1][axis], reverse, exclusive: false, operand: squared };
    let sum = k.add(op, DType::F32);
    let ratio = k.binary(BinaryOp::Div, v, sum);
    k.store(y, at, ratio);
    k
}

#[test]
fn scans() {
    assert_kernel("scan_rows", scan(1, 4096, false), "scan(threads=256");
    assert_kernel("scan_rows_short", scan(1, 100, true), "scan(threads=128");
    assert_kernel("scan_columns", scan(0, 4096, false), "scan(threads=8");
}

/// `y = the sums of exp(x) after each element / the largest of x from there on`, of one row or of few columns: blocks
/// share a scan.
fn long_scan(length: u64, columns: u64) -> Kernel {
    let mut k = Kernel::new("scan");
    let i0 = k.add_axis(AxisKind::Map, length, true);
    let i1 = (columns > 1).then(|| k.add_axis(AxisKind::Map, columns, false));
    let x = k.add_input(DType::F32, length * columns);
    let y = k.add_output(DType::F32, length * columns);
    let mut at = affine(&[(i0, columns as i64)], 0);
    if let Some(i1) = i1 {
        at = at.add(&IndexExpr::axis(i1));
    }
    let v = k.load(x, at.clone(), None);
    let exp = k.unary(UnaryOp::Exp, v);
    let scan = |op, exclusive, operand| ValueOp::Scan { op, axis: i0, reverse: true, exclusive, operand };
    let sum = k.add(scan(ScanOp::Sum, true, exp), DType::F32);
    let most = k.add(scan(ScanOp::Max, false, v), DType::F32);
    let ratio = k.binary(BinaryOp::Div, sum, most);
    k.store(y, at, ratio);
    k
}

#[test]
fn divided_scans() {
    assert_kernel(
        "scan_rows_split",
        long_scan(1 << 24, 1),
        "scan(threads=256, rows_per_block=1, vec=1, splits=1024)",
    );
    assert_kernel(
        "scan_columns_split",
        long_scan(1 << 22, 3),
        "scan(threads=8, rows_per_block=32, vec=1, splits=1024)",
    );
}

/// `y = 2 * the sums of those of 40,000 rows of x² whose index says each of so many positions`.
fn scatter(op: ReduceOp, positions: u64, columns: u64, by_column: bool) -> Kernel {
    let mut k = Kernel::new("scatter");
    let i0 = k.add_axis(AxisKind::Map, positions, false);
    let i1 = k.add_axis(AxisKind::Map, columns, false);
    let r0 = k.add_axis(AxisKind::Reduce, 40_000, true);
    let x = k.add_input(DType::F32, 40_000 * columns);
    let indices = k.add_input(DType::I64, if by_column { 40_000 * columns } else { 40_000 });
    let y = k.add_output(DType::F32, positions * columns);
    let at = affine(&[(r0, columns as i64), (i1, 1)], 0);
    let v = k.load(x, at.clone(), None);
    let index = k.load(indices, if by_column { at } else { IndexExpr::axis(r0) }, None);
    let operand = k.binary(BinaryOp::Mul, v, v);
    let op = ValueOp::Scatter { op, axis: i0, over: r0, index, check: 0, operand };
    let sum = k.add(op, DType::F32);
    let two = k.literal(Scalar::from_f64(DType::F32, 2.0));
    let result = k.binary(BinaryOp::Mul, sum, two);
    k.store(y, affine(&[(i0, columns as i64), (i1, 1)], 0), result);
    k
}

#[test]
fn scatters() {
    assert_kernel(
        "scatter_elements",
        scatter(ReduceOp::Sum, 100, 1, false),
        "scatter(positions=100, columns=1, ",
    );
    assert_kernel(
        "scatter_columns",
        scatter(ReduceOp::Max, 200, 70, true),
        "scatter(positions=128, columns=32, ",
    );
    let rows = scatter(ReduceOp::Sum, 5000, 200, false);
    assert_kernel("scatter_rows", rows, "scatter(positions=64, columns=128, warps=8, collected=4");
    let many = scatter(ReduceOp::Sum, 20_000, 1, false);
    assert_kernel("scatter_many", many, "scatter(positions=1024, columns=1, warps=8, collected=4");
}

/// Indices that go down are signed: NVRTC takes the wrapping of unsigned ones for none.
#[test]
fn reversed() {
    let mut k = Kernel::new("reversed");
    let i0 = k.add_axis(AxisKind::Map, 100, true);
    let i1 = k.add_axis(AxisKind::Map, 6, false);
    let x = k.add_input(DType::F32, 600);
    let y = k.add_output(DType::F32, 600);
    let v = k.load(x, affine(&[(i0, -6), (i1, -1)], 599), None);
    k.store(y, affine(&[(i0, 6), (i1, 1)], 0), v);
    assert!(emit(&k, Language::Cuda, &FIGURES).unwrap().source.contains("in0[599 - (int)("));
    assert_kernel("reversed", k, "pointwise(");
}

#[test]
fn rows() {
    assert_kernel("rows", reduction(ReduceOp::Sum, 1000, 1024, false, DType::F32), "row_reduce(");
    assert_kernel("rows_short", reduction(ReduceOp::Max, 1000, 40, false, DType::F32), "row_reduce(");
}

#[test]
fn long_rows_of_deviations() {
    let kernel = reduction(ReduceOp::SquaredDeviations, 1000, 20_000, false, DType::F16);
    assert_kernel("rows_deviations_f16", kernel, "row_reduce(");
}

#[test]
fn rows_walked_twice() {
    assert_kernel("rows_twice", minus_max(1000), "row_reduce(");
}

#[test]
fn split_rows() {
    let kernel = reduction(ReduceOp::Sum, 1, 16 << 20, false, DType::F32);
    assert!(schedule(&kernel, Language::Cuda).contains("splits="));
    assert!(schedule(&kernel, Language::C).contains("splits="));
    assert_kernel("rows_split", kernel, "row_reduce(");
}

/// `exp(x - max) / sum(exp(x - max))` of rows.
fn softmax(rows: u64, length: u64) -> Kernel {
    let mut k = Kernel::new("softmax");
    let i0 = k.add_axis(AxisKind::Map, rows, true);
    let r0 = k.add_axis(AxisKind::Reduce, length, false);
    let (x, y) = (k.add_input(DType::F32, rows * length), k.add_output(DType::F32, rows * length));
    let at = affine(&[(i0, length as i64), (r0, 1)], 0);
    let value = k.load(x, at.clone(), None);
    let (max, sum) = (k.reduce(ReduceOp::Max, &[r0], value), k.reduce(ReduceOp::SumExp, &[r0], value));
    let below = k.binary(BinaryOp::Sub, value, max);
    let exp = k.unary(UnaryOp::Exp, below);
    let share = k.binary(BinaryOp::Div, exp, sum);
    k.store(y, at, share);
    k
}

/// One walk for the maximum and the sum where rows are read again; in registers the exponentials stay there.
#[test]
fn softmax_of_rows() {
    assert_kernel("softmax_long", softmax(1000, 100_000), "row_reduce(threads_per_row=1024");
    assert_kernel(
        "softmax",
        softmax(1000, 64),
        "row_reduce(threads_per_row=8, rows_per_block=32, vec=4, persist",
    );
}

#[test]
fn positions() {
    let mut k = Kernel::new("positions");
    let i0 = k.add_axis(AxisKind::Map, 1000, true);
    let r0 = k.add_axis(AxisKind::Reduce, 1024, false);
    let (x, y) = (k.add_input(DType::F32, 1000 * 1024), k.add_output(DType::I64, 1000));
    let value = k.load(x, affine(&[(i0, 1024), (r0, 1)], 0), None);
    let first = k.reduce_position(ReduceOp::ArgMax, &[r0], value);
    k.store(y, IndexExpr::axis(i0), first);
    assert_kernel("positions", k, "row_reduce(");
}

#[test]
fn columns() {
    assert_kernel("columns", reduction(ReduceOp::Max, 100_000, 100, true, DType::F32), "column_reduce(");
}

#[test]
fn split_columns() {
    let kernel = reduction(ReduceOp::Max, 1024, 20_000, true, DType::F32);
    assert!(schedule(&kernel, Language::Cuda).contains("splits="));
    assert_kernel("columns_split", kernel, "column_reduce(");
}

fn schedule(kernel: &Kernel, language: Language) -> String {
    emit(kernel, language, &FIGURES).unwrap().schedule.to_string()
}

#[test]
fn the_size_of_the_outermost_axis_is_not_in_the_source() {
    let source = |rows: u64, language: Language| {
        let mut kernel = reduction(ReduceOp::Sum, rows, 1024, false, DType::F32);
        kernel.merge_axes();
        emit(&kernel, language, &FIGURES).unwrap().source
    };
    for language in [Language::Cuda, Language::C] {
        let sources: std::collections::BTreeSet<String> =
            (100..200).map(|rows| source(rows * 7, language)).collect();
        assert_eq!(sources.len(), 1);
    }
}
