//! Which kernels the model prefers, from graphs that have a choice.

use super::*;

fn kernels(graph: &Graph, figures: &TargetFigures) -> usize {
    let grouping = fuse(graph, Fusion::On, figures);
    assert_sound(graph, &grouping);
    grouping.groups.len()
}

#[test]
fn what_two_kernels_share_counts_once() {
    // Each of the readers has the chain in it before they meet: 150 + 60 and 150 + 40 operations, of which 250 differ.
    let mut s = Sketch::new();
    let x = s.input([1 << 16], DType::F32);
    let chain = |s: &mut Sketch, x: NodeId, length: usize| {
        (0..length).fold(x, |x, n| s.unary(if n % 2 == 0 { UnaryOp::Abs } else { UnaryOp::Neg }, x))
    };
    let shared = chain(&mut s, x, 150);
    let (a, b) = (chain(&mut s, shared, 60), chain(&mut s, shared, 40));
    let graph = s.outputs([a, b]);
    for figures in [TargetFigures::CUDA, TargetFigures::CPU] {
        assert_eq!(kernels(&graph, &figures), 1);
    }
}

#[test]
fn short_rows_are_swept_where_their_results_are_stored() {
    // Shapes that differ in dimensions of one element are one space.
    for (rows, length) in [(100_000, 3), (100_000, 8), (3, 7)] {
        let mut s = Sketch::new();
        let x = s.input([rows, length], DType::F32);
        let max = s.reduce(ReduceOp::Max, x, [1]);
        let kept = s.reshape(max, [rows, 1]);
        let spread = s.expand(kept, [rows, length]);
        let y = s.binary(BinaryOp::Sub, x, spread);
        let y = s.unary(UnaryOp::Neg, y);
        let own = s.unary(UnaryOp::Exp, kept);
        let graph = s.outputs([max, own]);
        assert_eq!(kernels(&graph, FIGURES), 1, "{rows} {length}");
        let graph = s.outputs([max, y]);
        assert_eq!(kernels(&graph, FIGURES), 1, "{rows} {length}");
    }
}

#[test]
fn a_core_stores_what_its_slow_loops_would_compute() {
    // Element after element where it is scattered, or once in lanes.
    let mut s = Sketch::new();
    let x = s.input([1 << 20], DType::F32);
    let index = s.input([1 << 20], DType::I64);
    let costly = (0..4).fold(x, |x, _| s.unary(UnaryOp::Tan, x));
    let cheap = s.unary(UnaryOp::Neg, x);
    let (costly, cheap) = (s.scatter(costly, index, 64), s.scatter(cheap, index, 64));
    let (costly, cheap) = (s.outputs([costly]), s.outputs([cheap]));
    assert_eq!((kernels(&costly, &TargetFigures::CPU), kernels(&cheap, &TargetFigures::CPU)), (2, 1));
    assert_eq!((kernels(&costly, &TargetFigures::CUDA), kernels(&cheap, &TargetFigures::CUDA)), (1, 1));
}

#[test]
fn a_core_stores_what_it_looks_up_for_several() {
    // Three neighbours of what each element looks up by itself, and of what is looked up row by row.
    let kernels_of = |columns: usize| {
        let mut s = Sketch::new();
        let (x, index) = (s.input([1 << 20, columns], DType::F32), s.input([(1 << 20) + 2, 1], DType::I64));
        let shape = [(1 << 20) + 2, columns];
        let index = s.expand(index, shape);
        let found = s.op(Op::Gather { axis: 0, is_checked: true }, &[x, index], shape, DType::F32);
        let part = |s: &mut Sketch, from| s.slice(found, [from, 0], [1, 1], [1 << 20, columns]);
        let parts = [0, 1, 2].map(|from| part(&mut s, from));
        let sum = s.binary(BinaryOp::Add, parts[0], parts[1]);
        let sum = s.binary(BinaryOp::Add, sum, parts[2]);
        let graph = s.outputs([sum]);
        [TargetFigures::CPU, TargetFigures::CUDA].map(|figures| kernels(&graph, &figures))
    };
    assert_eq!((kernels_of(1), kernels_of(64)), ([2, 1], [1, 1]));
}

#[test]
fn what_follows_from_the_sort_of_one_row_is_for_all_cores() {
    let kernels_of = |rows: usize| {
        let (length, mut s) = ((1 << 20) / rows, Sketch::new());
        let x = s.input([rows, length], DType::F32);
        let sort = Op::Sort { axis: 1, extent: length, descending: false, result: Sorted::Values };
        let sorted = s.op(sort, &[x], [rows, length], DType::F32);
        let costly = (0..4).fold(sorted, |x, _| s.unary(UnaryOp::Tan, x));
        kernels(&s.outputs([costly]), &TargetFigures::CPU)
    };
    assert_eq!((kernels_of(1), kernels_of(64)), (2, 1));
}

#[test]
fn what_is_costly_in_one_row_is_for_all_cores() {
    // A vector's length is no part of the text, so that nothing is kept of it from pass to pass, and one core has it.
    let kernels_of = |shape: &[usize], costly: usize, follows: bool| {
        let mut s = Sketch::new();
        let x = s.input(shape, DType::F32);
        let costly = (0..costly).fold(x, |x, _| s.unary(UnaryOp::Tan, x));
        let most = s.reduce(ReduceOp::Max, costly, [shape.len() - 1]);
        let kept = s.reshape(most, [&shape[..shape.len() - 1], &[1]].concat());
        let most_of_row = s.expand(kept, shape);
        let below = s.binary(BinaryOp::Sub, costly, most_of_row);
        kernels(&s.outputs([if follows { below } else { most }]), &TargetFigures::CPU)
    };
    assert_eq!([kernels_of(&[10_000], 4, true), kernels_of(&[100, 100], 4, true)], [2, 1]);
    assert_eq!([&[60_000][..], &[60, 1000], &[70_000]].map(|shape| kernels_of(shape, 1, false)), [2, 1, 1]);
}

#[test]
fn what_is_costly_before_a_reduction_has_a_loop_of_its_own() {
    // Results of a softmax, and a sum of what is costly: that costs the reduction's kernel no more than one of its own.
    let (mut s, shape) = (Sketch::new(), [4096, 1024]);
    let x = s.input(shape, DType::F32);
    let spread = |s: &mut Sketch, of_rows: NodeId| {
        let column = s.reshape(of_rows, [4096, 1]);
        s.expand(column, shape)
    };
    let most = s.reduce(ReduceOp::Max, x, [1]);
    let most = spread(&mut s, most);
    let below = s.binary(BinaryOp::Sub, x, most);
    let powers = s.unary(UnaryOp::Exp, below);
    let sum = s.reduce(ReduceOp::Sum, powers, [1]);
    let sum = spread(&mut s, sum);
    let softmax = s.binary(BinaryOp::Div, powers, sum);
    let costly = [UnaryOp::Log, UnaryOp::Tan, UnaryOp::Tan].into_iter().fold(softmax, |x, op| s.unary(op, x));
    let product = s.binary(BinaryOp::Mul, softmax, costly);
    let own = s.reduce(ReduceOp::Sum, product, [1]);
    assert_eq!(kernels(&s.outputs([softmax, own]), &TargetFigures::CPU), 1);
}

#[test]
fn windows_in_rows_are_made_of_shorter_ones() {
    let kernels_of = |size: usize, axis: usize| {
        let mut s = Sketch::new();
        let x = s.input([1000, 400], DType::F32);
        let windows = s.window(x, 1, size, 1);
        let most = s.reduce(ReduceOp::Max, windows, [2]);
        let sum = s.reduce(ReduceOp::Sum, most, [axis]);
        kernels(&s.outputs([sum]), &TargetFigures::CPU)
    };
    // Columns have no loop before theirs.
    assert_eq!([(3, 1), (60, 1), (3, 0), (60, 0)].map(|(size, axis)| kernels_of(size, axis)), [1, 1, 1, 2]);
}

#[test]
fn windows_in_lines_that_rows_merge_are_stored() {
    // Of 3 x 3, then less their mean: along the image's own lines, and along a row in which these are merged.
    let kernels_of = |is_merged: bool| {
        let mut s = Sketch::new();
        let x = s.input([1024, 30, 30], DType::F32);
        let windows = s.window(x, 1, 3, 1);
        let windows = s.window(windows, 2, 3, 1);
        let most = s.reduce(ReduceOp::Max, windows, [3, 4]);
        let most = if is_merged { s.reshape(most, [128, 8 * 28 * 28]) } else { most };
        let axis = if is_merged { 1 } else { 2 };
        let sum = s.reduce(ReduceOp::Sum, most, [axis]);
        let graph = s.outputs([sum]);
        [TargetFigures::CPU, TargetFigures::CUDA].map(|figures| kernels(&graph, &figures))
    };
    assert_eq!((kernels_of(true), kernels_of(false)), ([2, 1], [1, 1]));
}

#[test]
fn a_core_computes_in_lanes_of_their_own_what_surrounds_scans_of_short_rows() {
    let kernels_of = |rows: usize, columns: usize| {
        let mut s = Sketch::new();
        let x = s.input([rows, columns], DType::F64);
        let sums = s.scan(ReduceOp::Sum, x, 1, false, false);
        let exponentials = s.unary(UnaryOp::Exp, sums);
        let graph = s.outputs([exponentials]);
        [TargetFigures::CPU, TargetFigures::CUDA].map(|figures| kernels(&graph, &figures))
    };
    assert_eq!((kernels_of(20_000, 7), kernels_of(2_000, 300)), ([2, 1], [1, 1]));
    assert_eq!(kernels_of(20, 7), [1, 1]);
}

#[test]
fn cores_that_share_the_row_of_a_scan_compute_nothing_costly_twice() {
    let kernels_of = |rows: usize, columns: usize| {
        let mut s = Sketch::new();
        let x = s.input([rows, columns], DType::F32);
        let limit = s.splat(Scalar::from_f64(DType::F32, 1.5), [rows, columns]);
        let exponentials = s.unary(UnaryOp::Exp, x);
        let mask = s.binary(BinaryOp::Gt, exponentials, limit);
        let ones = s.cast(mask, DType::I64);
        let count = s.scan(ReduceOp::Sum, ones, 1, false, false);
        let graph = s.outputs([mask, count]);
        [TargetFigures::CPU, TargetFigures::CUDA].map(|figures| kernels(&graph, &figures))
    };
    assert_eq!((kernels_of(1, 200_000), kernels_of(20, 10_000)), ([2, 1], [1, 1]));
}

#[test]
fn a_core_looks_up_one_tensor_instead_of_several() {
    let kernels_of = |operands: usize| {
        let mut s = Sketch::new();
        let (x, y) = (s.input([20_000], DType::F32), s.input([20_000], DType::F32));
        let index = s.input([200_000], DType::I64);
        let table = if operands == 2 { s.binary(BinaryOp::Div, x, y) } else { s.unary(UnaryOp::Neg, x) };
        let found = s.op(Op::Gather { axis: 0, is_checked: true }, &[table, index], [200_000], DType::F32);
        let graph = s.outputs([found]);
        [TargetFigures::CPU, TargetFigures::CUDA].map(|figures| kernels(&graph, &figures))
    };
    assert_eq!((kernels_of(2), kernels_of(1)), ([2, 1], [1, 1]));
}

#[test]
fn a_core_looks_up_what_windows_combine_before() {
    // Squares of 2 x 2 of what each element looks up by itself, and of what whole rows look up.
    let kernels_of = |columns: usize| {
        let mut s = Sketch::new();
        let (x, index) = (s.input([64, 1024], DType::F32), s.input([64, columns], DType::I64));
        let index = s.expand(index, [64, 56 * 56]);
        let found = s.op(Op::Gather { axis: 1, is_checked: true }, &[x, index], [64, 56 * 56], DType::F32);
        let image = s.reshape(found, [64, 56, 56]);
        let windows = s.window(image, 1, 2, 2);
        let windows = s.window(windows, 2, 2, 2);
        let most = s.reduce(ReduceOp::Max, windows, [3, 4]);
        let graph = s.outputs([most]);
        [TargetFigures::CPU, TargetFigures::CUDA].map(|figures| kernels(&graph, &figures))
    };
    assert_eq!((kernels_of(56 * 56), kernels_of(1)), ([2, 1], [1, 1]));
}

/// Layers of so many inputs and outputs, with a tanh behind each.
fn layers(rows: usize, widths: &[usize], figures: &TargetFigures) -> usize {
    let mut s = Sketch::new();
    let mut x = s.input([rows, widths[0]], DType::F32);
    for two in widths.windows(2) {
        let weights = s.input([two[0], two[1]], DType::F32);
        let (left, right) = (s.reshape(x, [rows, two[0], 1]), s.reshape(weights, [1, two[0], two[1]]));
        let [left, right] = [left, right].map(|factor| s.expand(factor, [rows, two[0], two[1]]));
        let products = s.binary(BinaryOp::Mul, left, right);
        let sums = s.reduce(ReduceOp::Sum, products, [1]);
        x = s.unary(UnaryOp::Tanh, sums);
    }
    kernels(&s.outputs([x]), figures)
}

/// Each sum of the first would be hoisted out of the second's lanes: a core's scalar loop.
#[test]
fn small_layers_are_kernels_of_their_own() {
    assert_eq!([&TargetFigures::CPU, FIGURES].map(|figures| layers(16, &[16; 3], figures)), [2, 1]);
}

/// A block of all rows is one core's, and columns are for all of them.
#[test]
fn layers_of_few_rows_are_for_all_cores() {
    assert_eq!(layers(8, &[256, 704, 256], &TargetFigures::CPU), 2);
}

/// Twenty steps, each of which replaces one row by the sum of all, as a substitution does: each compares positions itself. Whether
/// these follow from other positions, which few read: nobody stores those either.
#[test]
fn positions_that_many_read_are_rematerialised() {
    for (figures, follows) in [FIGURES, &TargetFigures::CPU].into_iter().flat_map(|f| [(f, false), (f, true)])
    {
        let mut s = Sketch::new();
        let mut x = s.input([300], DType::F32);
        let places = s.op(Op::Iota, &[], [300], DType::I64);
        let mut places = s.cast(places, DType::I32);
        if follows {
            places = s.unary(UnaryOp::Neg, places);
        }
        for step in 0..20 {
            let number = s.splat(Scalar::from_i64(DType::I32, -step), [300]);
            let is_own = s.binary(BinaryOp::Eq, places, number);
            let sum = s.reduce(ReduceOp::Sum, x, [0]);
            let one = s.reshape(sum, [1]);
            let every = s.expand(one, [300]);
            x = s.select(is_own, every, x);
        }
        let graph = s.outputs([x]);
        let grouping = fuse(&graph, Fusion::On, figures);
        assert_sound(&graph, &grouping);
        let groups = || grouping.groups.iter();
        assert!(groups().all(|group| !group.outputs.is_empty()));
        let stored = groups().flat_map(|group| &group.outputs);
        let of_positions: Vec<_> = stored.filter(|&&id| !graph.node(id).dtype.is_float()).collect();
        assert_eq!(of_positions, Vec::<&NodeId>::new());
    }
}

/// A step gives two values to the next and counts; both read the squares. With 9 operations each, ten steps are no kernel.
#[test]
fn steps_of_a_long_loop_stay_together() {
    let mut s = Sketch::new();
    let (re, im) = (s.input([1 << 18], DType::F32), s.input([1 << 18], DType::F32));
    let four = s.splat(Scalar::from_f64(DType::F32, 4.0), [1 << 18]);
    let (mut a, mut b, mut count) = (re, im, s.input([1 << 18], DType::F32));
    for _ in 0..100 {
        let [aa, bb, ab] = [(a, a), (b, b), (a, b)].map(|(x, y)| s.binary(BinaryOp::Mul, x, y));
        let difference = s.binary(BinaryOp::Sub, aa, bb);
        let sum = s.binary(BinaryOp::Add, aa, bb);
        let inside = s.binary(BinaryOp::Le, sum, four);
        let one = s.cast(inside, DType::F32);
        count = s.binary(BinaryOp::Add, count, one);
        (a, b) = (s.binary(BinaryOp::Add, difference, re), s.binary(BinaryOp::Add, ab, im));
    }
    let graph = s.outputs([count]);
    for figures in [FIGURES, &TargetFigures::CPU] {
        let grouping = fuse(&graph, Fusion::On, figures);
        assert_sound(&graph, &grouping);
        assert_eq!(grouping.groups.len(), 1000usize.div_ceil(MAX_NODES));
        let stored = grouping.groups.iter().map(|group| group.outputs.len());
        assert_eq!(stored.max(), Some(3));
    }
}

/// A product of 16 bits, rounded to them, and another one of it.
#[test]
fn factors_between_kernels_are_stored_in_their_narrower_dtype() {
    let mut s = Sketch::new();
    let mut x = s.input([256, 256], DType::BF16);
    for _ in 0..2 {
        let weights = s.input([256, 256], DType::BF16);
        let [left, right] = [x, weights].map(|factor| s.cast(factor, DType::F32));
        let (left, right) = (s.reshape(left, [256, 1, 256]), s.reshape(right, [1, 256, 256]));
        let [left, right] = [left, right].map(|factor| s.expand(factor, [256, 256, 256]));
        let product = s.binary(BinaryOp::Mul, left, right);
        let sum = s.reduce(ReduceOp::Sum, product, [2]);
        x = s.cast(sum, DType::BF16);
    }
    let graph = s.outputs([x]);
    for figures in [TargetFigures::CUDA, TargetFigures::CPU] {
        let grouping = fuse(&graph, Fusion::On, &figures);
        assert_sound(&graph, &grouping);
        let stored = grouping.groups.iter().flat_map(|group| &group.outputs);
        let dtypes: Vec<DType> = stored.map(|&id| graph.node(id).dtype).collect();
        assert_eq!(dtypes, [DType::BF16; 2]);
    }
}

/// Sorted elements are multiplied by what running sums of gathered weights come to.
#[test]
fn elements_in_order_and_their_positions_are_of_one_sort() {
    let mut s = Sketch::new();
    let (x, weights) = (s.input([4, 5000], DType::F32), s.input([4, 5000], DType::F32));
    let [elements, positions] =
        [(Sorted::Values, DType::F32), (Sorted::Positions, DType::I64)].map(|(result, dtype)| {
            s.op(Op::Sort { axis: 1, extent: 5000, descending: true, result }, &[x], [4, 5000], dtype)
        });
    let gathered =
        s.op(Op::Gather { axis: 1, is_checked: true }, &[weights, positions], [4, 5000], DType::F32);
    let total = s.reduce(ReduceOp::Sum, gathered, [1]);
    let total = s.reshape(total, [4, 1]);
    let total = s.expand(total, [4, 5000]);
    let result = s.binary(BinaryOp::Mul, elements, total);
    let graph = s.outputs([result]);
    let grouping = fuse(&graph, Fusion::On, &TargetFigures::CPU);
    assert_sound(&graph, &grouping);
    let is_sort = |id: &NodeId| matches!(graph.node(*id).op, Op::Sort { .. });
    assert_eq!(grouping.groups.iter().filter(|group| group.nodes.iter().any(is_sort)).count(), 1);
}

/// Angles of several octaves, whose sines and cosines are both stored. Of lines of 10 lanes are idle, which costs what is costly
/// more than storing the angles does, which are one line then.
#[test]
fn what_is_costly_has_full_vectors() {
    let octaves = |count: usize, figures| {
        let mut s = Sketch::new();
        let shape = [1 << 17, count];
        let (x, by) = (s.input([1 << 17, 1], DType::F32), s.input([1, count], DType::F32));
        let (x, by) = (s.expand(x, shape), s.expand(by, shape));
        let angles = s.binary(BinaryOp::Mul, x, by);
        let waves = [UnaryOp::Sin, UnaryOp::Cos].map(|op| s.unary(op, angles));
        kernels(&s.outputs(waves), figures)
    };
    assert_eq!([10, 16, 256].map(|count| octaves(count, &TargetFigures::CPU)), [2, 1, 1]);
    assert_eq!(octaves(10, FIGURES), 1);
}
