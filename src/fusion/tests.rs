//! Each reason why two kernels are not one, from a graph that gives it.

mod plans;

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
        ["they go over different iteration spaces: [100, 200] and [50, 200]"]
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
    assert_eq!(reason(0, 1), "they go over different iteration spaces: [4096, 4096] and [4096, 511]");
    assert!(reason(1, 2).starts_with("sin would be computed 8.0 times per element"), "{}", reason(1, 2));
}

#[test]
fn too_large() {
    let mut s = Sketch::new();
    let mut x = s.input([1 << 14], DType::F32);
    for n in 0..300 {
        x = s.unary(if n % 2 == 0 { UnaryOp::Abs } else { UnaryOp::Neg }, x);
    }
    let graph = s.outputs([x]);
    let grouping = fused(&graph);
    assert_eq!(grouping.groups.iter().map(|group| group.nodes.len()).collect::<Vec<_>>(), [256, 44]);
    assert_eq!(reasons(&graph, &grouping), ["300 operations are more than the 256 of a kernel"]);
    assert!(grouping.groups.iter().all(|group| group.nodes.len() <= MAX_NODES));
}

/// Of small results, a kernel has as many steps as fit a short text; where what is left of a program could be one kernel, all.
#[test]
fn too_many_steps() {
    for (steps, each) in [(300, Some(32)), (120, None)] {
        let mut s = Sketch::new();
        let mut x = s.input([8], DType::F32);
        for _ in 0..steps {
            x = s.unary(UnaryOp::Abs, x);
            x = s.unary(UnaryOp::Neg, x);
        }
        let graph = s.outputs([x]);
        let grouping = fused(&graph);
        let Some(each) = each else {
            assert_eq!(grouping.groups.len(), 1);
            continue;
        };
        let sizes: Vec<usize> = grouping.groups.iter().map(|group| group.nodes.len()).collect();
        let whole = &sizes[1..sizes.len() - 1];
        assert!(whole.iter().all(|&size| size == 2 * each), "{sizes:?}");
        let reasons = reasons(&graph, &grouping);
        let expected = format!("times in the program, and up to {each} times in a kernel");
        assert!(reasons.iter().all(|reason| reason.contains(&expected)), "{reasons:?}");
    }
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
        "one kernel could do it in 20.0 µs, 30.0 µs apart, but the search, which takes the best merge first, did not come to it"
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

#[test]
fn kernels_that_read_the_same_say_why_they_are_apart() {
    let mut s = Sketch::new();
    let x = s.input([300, 400], DType::F32);
    let (rows, columns) = (s.reduce(ReduceOp::Sum, x, [1]), s.reduce(ReduceOp::Max, x, [0]));
    assert_eq!(reasons_of(&s.outputs([rows, columns])), ["sum and max reduce different axes"]);
}
