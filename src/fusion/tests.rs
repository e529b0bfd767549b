//! Each reason why two kernels are not one, from a graph that gives it.

use super::cost::{TargetFigures, Work};
use super::group::{MAX_NODES, WhyNot};
use super::{Boundary, Facts, Fusion, Grouping};
use crate::graph::op::{Op, Sorted};
use crate::graph::sketch::Sketch;
use crate::graph::{Graph, NodeId};
use crate::{BinaryOp, DType, ReduceOp, Scalar, UnaryOp};

const FIGURES: &TargetFigures = &TargetFigures::CUDA;

fn fuse(graph: &Graph, fusion: Fusion, figures: &TargetFigures) -> Grouping {
    super::fuse(graph, &Facts::new(graph, figures, None), fusion)
}

fn fused(graph: &Graph) -> Grouping {
    let grouping = fuse(graph, Fusion::On, FIGURES);
    assert_sound(graph, &grouping);
    grouping
}

/// Producers come first, every output is stored once, and everything that is read is there.
fn assert_sound(graph: &Graph, grouping: &Grouping) {
    let mut stored: Vec<NodeId> = Vec::new();
    for group in &grouping.groups {
        for read in &group.reads {
            let is_input = matches!(graph.node(*read).op, crate::graph::op::Op::Input(_));
            assert!(is_input || stored.contains(read), "{read:?} is read before it is stored");
        }
        for output in &group.outputs {
            assert!(!stored.contains(output), "{output:?} is stored twice");
            stored.push(*output);
        }
    }
    for &output in graph.outputs() {
        assert!(stored.contains(&super::reads::stored_as(graph, output)));
    }
}

fn boundaries(graph: &Graph, grouping: &Grouping) -> Vec<Boundary> {
    super::boundaries(graph, &Facts::new(graph, FIGURES, None), grouping)
}

/// The reasons, each once.
fn reasons(graph: &Graph, grouping: &Grouping) -> Vec<String> {
    let mut reasons: Vec<String> =
        boundaries(graph, grouping).iter().map(|boundary| boundary.reason.to_string()).collect();
    reasons.dedup();
    reasons
}

fn reasons_of(graph: &Graph) -> Vec<String> {
    reasons(graph, &fused(graph))
}

#[test]
fn off() {
    let mut s = Sketch::new();
    let x = s.input([8], DType::F32);
    let y = s.unary(UnaryOp::Exp, x);
    let y = s.unary(UnaryOp::Relu, y);
    let graph = s.outputs([y]);
    let grouping = fuse(&graph, Fusion::Off, FIGURES);
    assert_eq!(grouping.groups.len(), 2);
    assert_eq!(reasons(&graph, &grouping), ["fusion is off"]);
    assert_eq!(fused(&graph).groups.len(), 1);
}

#[test]
fn flows_back() {
    // Rows that are too long to be swept again.
    let mut s = Sketch::new();
    let x = s.input([4, 100_000], DType::F32);
    let sum = s.reduce(ReduceOp::Sum, x, [1]);
    let sum = s.reshape(sum, [4, 1]);
    let sum = s.expand(sum, [4, 100_000]);
    let y = s.binary(BinaryOp::Div, x, sum);
    assert_eq!(
        reasons_of(&s.outputs([y])),
        ["sum [4] is needed at every element of [4, 100000]: the whole reduction comes first"]
    );
}

#[test]
fn feeds_reduction() {
    let mut s = Sketch::new();
    let x = s.input([300, 400], DType::F32);
    let rows = s.reduce(ReduceOp::Max, x, [1]);
    let y = s.reduce(ReduceOp::Sum, rows, [0]);
    assert_eq!(
        reasons_of(&s.outputs([y])),
        ["the reduction max must end before the reduction sum can begin"]
    );
}

#[test]
fn different_reductions() {
    // The first kernel stores what both reductions read.
    let mut s = Sketch::new();
    let x = s.input([300, 400], DType::F32);
    let y = s.unary(UnaryOp::Erf, x);
    let (rows, columns) = (s.reduce(ReduceOp::Sum, y, [1]), s.reduce(ReduceOp::Sum, y, [0]));
    let graph = s.outputs([y, rows, columns]);
    let grouping = fused(&graph);
    assert_eq!(grouping.groups.len(), 2);
    assert_eq!(reasons(&graph, &grouping), ["sum and sum reduce different axes"]);
}

#[test]
fn different_spaces() {
    let mut s = Sketch::new();
    let x = s.input([100, 200], DType::F32);
    let y = s.unary(UnaryOp::Exp, x);
    let part = s.slice(y, [0, 0], [1, 1], [50, 200]);
    let part = s.unary(UnaryOp::Neg, part);
    assert_eq!(
        reasons_of(&s.outputs([y, part])),
        ["both are stored, but over different iteration spaces: [100, 200] and [50, 200]"]
    );
}

/// The largest of each eight neighbours of `f(x)`.
fn windows_of(f: UnaryOp) -> Graph {
    let mut s = Sketch::new();
    let x = s.input([10_000, 1000], DType::F32);
    let y = s.unary(f, x);
    let windows = s.window(y, 1, 8, 1);
    let y = s.reduce(ReduceOp::Max, windows, [2]);
    s.outputs([y])
}

#[test]
fn recomputation() {
    let graph = windows_of(UnaryOp::Tan);
    let grouping = fused(&graph);
    assert_eq!(grouping.groups.len(), 2);
    let [reason] = &reasons(&graph, &grouping)[..] else { panic!("{grouping:?}") };
    assert!(reason.contains(" would be computed 7.9 times per element: "), "{reason}");
    let cheap = fused(&windows_of(UnaryOp::Relu));
    assert_eq!(cheap.groups.len(), 1);
    let recomputed = cheap.groups[0].recomputed.unwrap();
    assert_eq!((recomputed.value, recomputed.times.round()), ("relu", 8.0));
}

#[test]
fn a_value_for_each_column_is_not_one_for_each_row() {
    // As many rows as columns: the shapes of the sines tell which of the two they belong to.
    for (shape, kernels) in [([4096, 1], 1), ([1, 4096], 2)] {
        let mut s = Sketch::new();
        let x = s.input([4096, 4096], DType::F32);
        let own = s.input(shape, DType::F32);
        let sines = (0..8).fold(own, |x, _| s.unary(UnaryOp::Sin, x));
        let sines = s.expand(sines, [4096, 4096]);
        let sum = s.reduce(ReduceOp::Sum, x, [1]);
        let sum = s.reshape(sum, [4096, 1]);
        let sum = s.unary(UnaryOp::Exp, sum);
        let sum = s.expand(sum, [4096, 4096]);
        let y = s.binary(BinaryOp::Mul, x, sum);
        let y = s.binary(BinaryOp::Add, y, sines);
        let graph = s.outputs([y]);
        let grouping = fused(&graph);
        assert_eq!(grouping.groups.len(), kernels, "{:?}", reasons(&graph, &grouping));
    }
}

#[test]
fn cycle() {
    // a goes into c directly and through b, which must not be computed again for each of its many readers.
    let mut s = Sketch::new();
    let x = s.input([4096, 4096], DType::F32);
    let sines = |s: &mut Sketch, x: NodeId| (0..5).fold(x, |x, _| s.unary(UnaryOp::Sin, x));
    let a = sines(&mut s, x);
    // Not of all rows: these are others than those of a.
    let part = s.slice(a, [0, 0], [1, 1], [4096, 4088]);
    let eighths = s.reshape(part, [4096, 511, 8]);
    let b = s.reduce(ReduceOp::Max, eighths, [2]);
    let b = sines(&mut s, b);
    let repeated = s.reshape(b, [4096, 511, 1]);
    let repeated = s.expand(repeated, [4096, 511, 8]);
    let repeated = s.reshape(repeated, [4096, 4088]);
    let repeated = s.pad(repeated, [0, 0], Scalar::from_f64(DType::F32, 0.0), [4096, 4096]);
    let c = s.binary(BinaryOp::Add, a, repeated);
    let graph = s.outputs([c]);
    let grouping = fused(&graph);
    assert_eq!(grouping.groups.len(), 3, "{grouping:?}");
    let reason = |from: usize, to: usize| {
        let found =
            boundaries(&graph, &grouping).into_iter().find(|b| (b.producer, b.consumer) == (from, to));
        found.unwrap().reason.to_string()
    };
    assert_eq!(reason(0, 2), "a kernel between them needs the one and is needed by the other");
    assert_eq!(
        reason(0, 1),
        "both are stored, but over different iteration spaces: [4096, 4096] and [4096, 511]"
    );
    assert!(reason(1, 2).starts_with("sin would be computed 8.0 times per element"), "{}", reason(1, 2));
}

#[test]
fn too_large() {
    let mut s = Sketch::new();
    let mut x = s.input([8], DType::F32);
    for n in 0..300 {
        x = s.unary(if n % 2 == 0 { UnaryOp::Sin } else { UnaryOp::Neg }, x);
    }
    let graph = s.outputs([x]);
    let grouping = fused(&graph);
    assert_eq!(grouping.groups.iter().map(|group| group.nodes.len()).collect::<Vec<_>>(), [256, 44]);
    assert_eq!(reasons(&graph, &grouping), ["300 operations are more than the 256 of a kernel"]);
    assert!(grouping.groups.iter().all(|group| group.nodes.len() <= MAX_NODES));
}

#[test]
fn too_many_buffers() {
    let mut s = Sketch::new();
    let condition = s.input([8], DType::Bool);
    let mut x = s.input([8], DType::F32);
    for _ in 0..250 {
        let (a, b) = (s.input([8], DType::F32), s.input([8], DType::F32));
        let y = s.binary(BinaryOp::Add, a, x);
        x = s.select(condition, y, b);
    }
    let graph = s.outputs([x]);
    let grouping = fused(&graph);
    assert!(grouping.groups.iter().all(|group| group.reads.len() + group.outputs.len() <= 384));
}

#[test]
fn what_is_too_much_is_divided_and_the_rest_stays() {
    let mut s = Sketch::new();
    let chain = |s: &mut Sketch, shape: [usize; 1], last: UnaryOp| {
        let x = s.input(shape, DType::F32);
        let y = s.unary(UnaryOp::Exp, x);
        s.unary(last, y)
    };
    let (y, z) = (chain(&mut s, [8], UnaryOp::Relu), chain(&mut s, [9], UnaryOp::Neg));
    let graph = s.outputs([y, z]);
    let facts = Facts::new(&graph, FIGURES, None);
    let mut grouping = fused(&graph);
    assert_eq!(grouping.groups.len(), 2);
    let too_much = WhyNot::NotLowered(crate::lower::Refusal::TooManyValues);
    grouping.divide(&graph, &facts, 0, too_much).unwrap();
    let order = super::order(&grouping.groups);
    super::permute(&mut grouping.groups, &order);
    assert_sound(&graph, &grouping);
    let sizes: Vec<usize> = grouping.groups.iter().map(|group| group.nodes.len()).collect();
    assert_eq!(sizes, [1, 1, 2]);
    assert_eq!(
        reasons(&graph, &grouping),
        ["no kernel: more than 4096 values would be computed for one position"]
    );
    assert!(grouping.divide(&graph, &facts, 0, WhyNot::Spills { bytes: 100 }).is_none());
}

#[test]
fn rare_reasons_read_well() {
    // Without recomputation a merge always saves a launch, so that this one is a matter of rounding.
    let unprofitable = WhyNot::Unprofitable { fused: 2e-5, apart: 1.25e-5 };
    assert_eq!(unprofitable.to_string(), "nothing gained: 20.0 µs fused, 12.5 µs apart");
    assert_eq!(
        WhyNot::TooManyBuffers { buffers: 400 }.to_string(),
        "400 buffers are more than the 384 of a kernel"
    );
    assert_eq!(
        WhyNot::Overtaken { fused: 2e-5, apart: 3e-5 }.to_string(),
        "one could do, in 20.0 µs for 30.0 µs apart, but other merges came first that saved more"
    );
}

#[test]
fn two_kernels_of_any_work_are_no_faster_than_one() {
    let works: Vec<Work> = [0u64, 1, 1 << 10, 1 << 30]
        .into_iter()
        .flat_map(|bytes| {
            [0.0, 1e3, 1e9, 1e12].map(|operations| Work {
                bytes_read: bytes,
                bytes_written: bytes,
                far: bytes,
                operations,
                ..Work::default()
            })
        })
        .collect();
    for figures in [TargetFigures::CUDA, TargetFigures::CPU] {
        for a in &works {
            for b in &works {
                let both = Work {
                    bytes_read: a.bytes_read + b.bytes_read,
                    bytes_written: a.bytes_written + b.bytes_written,
                    far: a.far + b.far,
                    operations: a.operations + b.operations,
                    ..Work::default()
                };
                assert!(both.seconds(&figures) < a.seconds(&figures) + b.seconds(&figures));
            }
        }
    }
}

#[test]
fn the_same_graph_gives_the_same_groups() {
    let mut s = Sketch::new();
    let x = s.input([64, 64], DType::F32);
    let values: Vec<NodeId> = [UnaryOp::Exp, UnaryOp::Sin, UnaryOp::Cos, UnaryOp::Tanh]
        .map(|op| s.unary(op, x))
        .into_iter()
        .flat_map(|y| [s.reduce(ReduceOp::Sum, y, [0]), s.reduce(ReduceOp::Max, y, [1]), y])
        .collect();
    let graph = s.outputs(values);
    let first = format!("{:?}", fused(&graph));
    for _ in 0..5 {
        assert_eq!(format!("{:?}", fused(&graph)), first);
    }
}

fn kernels(graph: &Graph, figures: &TargetFigures) -> usize {
    let grouping = fuse(graph, Fusion::On, figures);
    assert_sound(graph, &grouping);
    grouping.groups.len()
}

#[test]
fn what_two_kernels_share_counts_once() {
    // Each of the readers has the chain in it before they meet: 150 + 60 and 150 + 40 operations, of which 250 differ.
    let mut s = Sketch::new();
    let x = s.input([4096], DType::F32);
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
        let found = s.op(Op::Gather { axis: 0 }, &[x, index], shape, DType::F32);
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
fn windows_in_rows_are_not_made_of_shorter_ones() {
    let kernels_of = |size: usize| {
        let mut s = Sketch::new();
        let x = s.input([1000, 400], DType::F32);
        let windows = s.window(x, 1, size, 1);
        let most = s.reduce(ReduceOp::Max, windows, [2]);
        let sum = s.reduce(ReduceOp::Sum, most, [1]);
        kernels(&s.outputs([sum]), &TargetFigures::CPU)
    };
    assert_eq!([3, 60].map(kernels_of), [1, 2]);
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

#[test]
fn kernels_that_read_the_same_say_why_they_are_apart() {
    let mut s = Sketch::new();
    let x = s.input([300, 400], DType::F32);
    let (rows, columns) = (s.reduce(ReduceOp::Sum, x, [1]), s.reduce(ReduceOp::Max, x, [0]));
    assert_eq!(reasons_of(&s.outputs([rows, columns])), ["sum and max reduce different axes"]);
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
    let gathered = s.op(Op::Gather { axis: 1 }, &[weights, positions], [4, 5000], DType::F32);
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
