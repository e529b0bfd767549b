//! What holds for recording as a whole, and how the tests of its parts look at what is recorded.

mod definitions;
mod one_axis;

use proptest::prelude::*;

use crate::graph::op::{ConstantRole, Op, View};
use crate::recording::build::build;
use crate::{
    Axes, DType, Device, Dims, Error, Index, Interpolation, PadMode, Pool1d, Pool2d, Pool3d, Shape, Tensor,
};

/// The operations that a tensor needs, operands first; constants with their value and role.
pub(crate) fn recorded(tensor: &Tensor) -> Vec<String> {
    let graph = build(std::slice::from_ref(tensor)).unwrap().graph;
    let name = |op: &Op| match op {
        Op::Constant(constant) => {
            let role = match constant.role {
                ConstantRole::Argument => "argument",
                ConstantRole::Literal => "literal",
            };
            format!("constant {:?} {role}", constant.value)
        }
        op => op.name().to_owned(),
    };
    graph.nodes().map(|id| name(&graph.node(id).op)).collect()
}

/// The last view recorded.
pub(crate) fn last_view(tensor: &Tensor) -> View {
    let graph = build(std::slice::from_ref(tensor)).unwrap().graph;
    match graph.nodes().next_back().map(|id| graph.node(id).op.clone()) {
        Some(Op::View(view)) => view,
        other => panic!("{other:?}"),
    }
}

/// Asserts that a tensor is invalid with `operation: message`, recorded in that file between these lines.
pub(crate) fn assert_mistake(
    tensor: &Tensor,
    expected: &str,
    file: &str,
    lines: std::ops::RangeInclusive<u32>,
) {
    let error = tensor.shape().expect_err(expected);
    let Error::InvalidOperation { op, message, location } = &error else { panic!("{error}") };
    assert_eq!(format!("{op}: {message}"), expected);
    assert_eq!(error.to_string(), format!("{expected}, at {location}"));
    assert_eq!(location.file, file, "{expected}");
    assert!(lines.contains(&location.line), "{expected}: line {}, not in {lines:?}", location.line);
    // What follows has the same first error, whatever it would say itself.
    for next in
        [tensor.relu(), &Tensor::ones([7], DType::Bool) - tensor, tensor.permute([5, 5]), tensor.sum(9)]
    {
        assert_eq!(next.dtype().unwrap_err().to_string(), error.to_string());
    }
}

/// `mistake!(expression, "operation: message")`: the expression is an invalid tensor with that error, located
/// within this macro call (or at the statement that made it).
macro_rules! mistake {
    ($tensor:ident, $expected:expr) => {{
        let line = line!();
        $crate::tensor::tests::assert_mistake(&$tensor, $expected, file!(), line - 3..=line);
    }};
    ($tensor:expr, $expected:expr) => {{
        let first = line!();
        let tensor = $tensor;
        $crate::tensor::tests::assert_mistake(&tensor, $expected, file!(), first..=first + 3);
    }};
}
pub(crate) use mistake;

#[test]
fn the_error_names_the_very_place() {
    let (x, y) = (Tensor::ones([3, 4], DType::F32), Tensor::ones([5], DType::F32));
    #[rustfmt::skip]
    let (product, line) = (x.mul(&y), line!());
    assert_eq!(
        product.device().unwrap_err().to_string(),
        format!(
            "mul: shapes [3, 4] and [5] do not broadcast: 4 against 5 in dimension -1, which must be equal or 1, \
             at src/tensor/tests.rs:{line}:30"
        )
    );
}

#[test]
fn the_first_error_wins() {
    let first = Tensor::ones([2], DType::F32).reshape([3]);
    let second = Tensor::ones([2], DType::F32).permute([1]);
    let message = |tensor: &Tensor| tensor.shape().unwrap_err().to_string();
    for both in
        [&first + &second, first.gt(0).where_(&second, 1), first.clamp(0, &second), first.mul(&second)]
    {
        assert_eq!(message(&both), message(&first));
    }
    assert_eq!(message(&second.clamp(&first, 0)), message(&second));
    let x = Tensor::ones([2], DType::F32);
    assert_eq!(message(&x.layer_norm([2], Some(&second), Some(&first), 0.0)), message(&second));
}

#[test]
fn tensors_are_shared_between_threads() {
    fn shareable<T: Send + Sync + Clone + 'static>() {}
    shareable::<Tensor>();
    shareable::<Error>();
}

#[test]
fn debug_evaluates_nothing() {
    let x = Tensor::ones([2, 3], DType::F32);
    #[rustfmt::skip]
    let (y, line) = (x.relu(), line!());
    let place = format!("relu at src/tensor/tests.rs:{line}:24");
    assert_eq!(format!("{y:?}"), format!("Tensor(f32 [2, 3] on cpu, not evaluated, {place})"));
    assert!(!y.is_evaluated());
    let invalid = y.reshape([7]);
    assert!(
        format!("{invalid:?}")
            .starts_with("Tensor(invalid: reshape: shape [2, 3] has 6 elements, but [7] takes 7, at")
    );
}

#[test]
fn a_million_operations_record_and_drop() {
    let mut x = Tensor::from_slice(&[1.0f32], [1]);
    let start = x.clone();
    for i in 0..250_000 {
        x = (&x * &start).relu();
        x = if i % 2 == 0 { x.exp().sum_keepdim(0) } else { x.reshape([1, 1]).reshape([1]) };
    }
    assert_eq!(x.shape().unwrap(), Shape::from([1]));
    let (other, copy) = (x.relu(), x.clone());
    drop(x);
    drop(copy);
    drop(other);
    assert!(start.is_evaluated());
}

#[test]
fn nodes_that_are_kept_hold_nothing() {
    for _ in 0..2 {
        let x = Tensor::from_vec(vec![1.0f32; 4], [4]);
        let buffer = x.buffer().unwrap();
        let y = (0..100).fold(x.exp(), |y, _| y + &x);
        drop(x);
        assert_eq!(buffer.owners(), 2);
        drop(y);
        assert_eq!(buffer.owners(), 1);
    }
    // What takes their place is new in all that it is.
    let x = Tensor::from_vec(vec![1.0f32; 4], [4]).donate();
    drop((x + 1.0).reshape([9]).exp().exp());
    let y = (Tensor::from_vec(vec![1.0f32, 2.0], [2]) + 1.0).exp().log() * 1.0;
    assert_eq!(y.shape().unwrap(), Shape::from([2]));
    assert_eq!(y.round().to_vec::<f32>().unwrap(), [2.0, 3.0]);
}

#[test]
fn a_chain_of_invalid_tensors_keeps_no_history() {
    let mut x = Tensor::ones([2], DType::F32).reshape([3]);
    for _ in 0..1000 {
        x = x.relu() + 1;
    }
    assert!(x.shape().unwrap_err().to_string().starts_with("reshape: shape [2] has 2 elements"));
}

#[test]
fn every_node_carries_what_the_user_called_and_where() {
    let x = Tensor::from_slice(&[1i32, 2], [2]);
    let (y, line) = (x.clamp(0.5, 1), line!());
    let graph = build(&[y]).unwrap().graph;
    for id in graph.nodes().skip(1) {
        let node = graph.node(id);
        assert_eq!((node.origin, node.location.line), ("clamp", line), "{:?}", node.op);
    }
}

/// Anything at all, and often something near an edge.
pub(crate) fn wild() -> impl Strategy<Value = isize> {
    prop_oneof![
        any::<isize>(),
        -6isize..6,
        Just(isize::MIN),
        Just(isize::MIN + 1),
        Just(isize::MAX),
        Just(isize::MAX - 1)
    ]
}

fn extent() -> impl Strategy<Value = usize> {
    prop_oneof![
        0usize..6,
        0usize..6,
        any::<usize>(),
        Just(usize::MAX),
        Just(1 << 29),
        Just(i64::MAX as usize / 16)
    ]
}

fn dtype() -> impl Strategy<Value = DType> {
    proptest::sample::select(&DType::ALL[..])
}

fn tensor() -> impl Strategy<Value = Tensor> {
    (proptest::collection::vec(extent(), 0..4), dtype()).prop_map(|(shape, dtype)| Tensor::ones(shape, dtype))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Nothing panics, and what is recorded can be built.
    #[test]
    fn wild_arguments_do_not_panic(
        x in tensor(),
        y in tensor(),
        list in proptest::collection::vec(wild(), 0..4),
        (a, b, c) in (wild(), wild(), wild()),
        (n, m, k) in (extent(), extent(), extent()),
        (open_start, open_end) in (any::<bool>(), any::<bool>()),
    ) {
        let (start, end) = ((!open_start).then_some(b), (!open_end).then_some(c));
        let pool = Pool2d::new((n, m)).stride((k, n)).padding((m, k)).dilation((n, k));
        let simple = Pool2d::new((n, m)).stride((k, n)).padding((n / 2, m / 2));
        let tensors = [
            x.reshape(&list), x.expand(&list), x.permute(&list), x.sum(&list), x.max_keepdim(&list),
            x.var(&list, n), x.any(&list), x.flip(&list), x.squeeze(&list), x.mean_keepdim(&list),
            x.transpose(a, b), x.t(), x.unsqueeze(a), x.flatten(a..b), x.flatten(a..=b), x.flatten(..),
            x.slice(a, b..c), x.slice(a, b..=c), x.slice(a, b..), x.slice(0, ..c), x.slice(0, b..=c),
            x.slice_step(a, start, end, b), x.slice_step(0, start, end, c), x.slice_step(0, start, end, a),
            x.narrow(a, n, m), x.narrow(0, n, m), x.select(a, b), x.select(0, b),
            x.pad(&[(n, m)], a as f64), x.pad(&[(n, m), (k, n)], f64::NAN), x.pad(&[(0, 0); 0], 1),
            x.pad(&[(a, b)], 1), x.pad(&[(a, b), (c, a)], 1),
            x.unfold(a, n, m), x.unfold(0, n, m), x.window(0, n, m, k), x.broadcast_to([n, m, k]),
            x.softmax(a), x.layer_norm([n, m], Some(&y), Some(&y), f64::NAN), x.layer_norm([n], Some(&x), None, 0.0),
            x.max_pool2d_with(pool), x.avg_pool2d_with(pool), x.max_pool2d(n, m), x.max_pool2d_with(simple),
            x.cast(DType::F64).avg_pool2d_with(simple), x.add(&y), x.gt(&y), x.where_(&y, a as i64), x.clamp(&y, 0.5),
            Tensor::arange(a as i64, b as i64, c as i64), Tensor::arange(a as i32, b as i32, c as i32),
            Tensor::arange(a as f32, b as f32, c as f32), Tensor::rand([n, m], 1), x.zeros_like(),
            Tensor::from_slice(&[1u8], [n, m, k]), x.to(&Device::cuda(n)),
        ];
        for tensor in &tensors {
            prop_assert!(tensor.validity().is_ok() == build(std::slice::from_ref(tensor)).is_ok(), "{tensor:?}");
        }
    }

    /// The same of what is made of other operations.
    #[test]
    fn wild_arguments_of_compositions_do_not_panic(
        x in tensor(),
        y in tensor(),
        list in proptest::collection::vec(wild(), 0..4),
        (a, b, c) in (wild(), wild(), wild()),
        (n, m, k) in (extent(), extent(), extent()),
        flag in any::<bool>(),
    ) {
        let f = x.cast(DType::F32);
        let pool = Pool2d::new((n, m)).stride((k, n)).padding((n / 2, 0)).dilation((n, k));
        let pool = pool.ceil_mode(flag).count_include_pad(!flag);
        let line = Pool1d::new(n).stride(m).padding(n / 2).dilation(k).ceil_mode(true).count_include_pad(flag);
        let cube = Pool3d::new((n, 1, m)).stride((1, k, 1)).divisor_override(k);
        let modes = [
            Interpolation::Nearest, Interpolation::NearestExact, Interpolation::Linear { align_corners: flag },
        ];
        let borders = [PadMode::Reflect, PadMode::Replicate, PadMode::Circular];
        let mut tensors = vec![
            x.unflatten(a, &list), x.movedim(&list, [b, c]), x.movedim(a, b), x.rot90(a, [b, c]), x.rot90(a, [0, 1]),
            x.roll(a, b), x.roll(a, 0), x.roll(&list, &list), x.roll(&list, ..), x.repeat(&list), x.tile(&list), x.repeat_interleave(n, a),
            x.repeat_interleave(n, 0), x.diagonal(a, b, c), x.diagonal(a, 0, 1), x.tril(a), x.triu(a),
            x.pixel_shuffle(n), x.pixel_unshuffle(n), x.i([Index::At(a), Index::NewAxis, Index::from(b..c).step(a)]),
            x.i([Index::Ellipsis, Index::from(..=b)]), Tensor::cat(&[&x, &y], a), Tensor::cat(&[&x, &x, &x], 0),
            Tensor::stack(&[&x, &y], a), Tensor::stack(&[&x, &x], a), x.one_hot(n),
            Tensor::eye_with(n, m, a, DType::U8), Tensor::tri(n, m, a, DType::F32), Tensor::eye(n, DType::Bool),
            Tensor::linspace(a as f64, b as f64, n, DType::I32), Tensor::randint(a as i64, b as i64, [n], 1),
            Tensor::randn([n, m], 2), f.dropout(0.5, 3), f.bernoulli(1), f.norm(&list, a as f64), x.logsumexp(&list),
            x.nansum(&list), f.nanmean(&list), x.count_nonzero(&list), f.log_softmax(a), f.rms_norm([n], None, 0.0),
            f.group_norm(n, Some(&y), None, 0.0), f.instance_norm(None, None, 0.0), f.normalize(2.0, a, 0.0),
            f.batch_norm(&y, &y, None, None, 0.0), f.local_response_norm(n, 1.0, 1.0, 1.0),
            f.cosine_similarity(&y.cast(DType::F32), a, 0.0), x.max_pool2d_with(pool), f.avg_pool2d_with(pool),
            x.max_pool1d_with(line), f.avg_pool1d_with(line), x.max_pool3d_with(cube), f.avg_pool3d_with(cube),
            f.lp_pool2d(2.0, (n, m), k), x.adaptive_max_pool2d((n, m)), f.adaptive_avg_pool1d(n),
            f.adaptive_avg_pool3d((n, m, k)),
        ];
        tensors.extend(borders.map(|mode| x.pad_with(&[(n, m), (k, 0)], mode)));
        tensors.extend(borders.map(|mode| x.pad_with(&[(a, b), (c, 0)], mode)));
        tensors.extend(modes.map(|mode| f.interpolate([n, m], mode)));
        tensors.extend(modes.map(|mode| f.interpolate_scale(&[a as f64 / b as f64, 1.7], mode)));
        for parts in [x.split(n, a), x.split(n, 0), x.chunk(m, 0), x.unbind(a), x.split_sizes(&[n, m], 0)] {
            tensors.extend(parts.unwrap_or_default().into_iter().take(3));
        }
        for tensor in &tensors {
            prop_assert!(tensor.validity().is_ok() == build(std::slice::from_ref(tensor)).is_ok(), "{tensor:?}");
        }
    }

    /// A slice along any axis is recorded with positions inside the operand, whatever its bounds.
    #[test]
    fn slices_of_a_real_axis_are_valid(
        shape in proptest::collection::vec(0usize..5, 1..4), axis in 0usize..3,
        start in proptest::option::of(wild()), end in proptest::option::of(wild()), step in wild(),
    ) {
        let x = Tensor::ones(shape.clone(), DType::U8);
        let axis = (axis % shape.len()) as isize;
        prop_assert_eq!(x.slice_step(axis, start, end, step).validity().is_ok(), step != 0);
        prop_assert!(x.slice_step(axis - shape.len() as isize, start, end, 1).validity().is_ok());
    }

    /// Broadcasting is symmetric, and gives the shape that both expand to.
    #[test]
    fn broadcasting_is_symmetric(
        a in proptest::collection::vec(0usize..3, 0..4), b in proptest::collection::vec(0usize..3, 0..4),
    ) {
        let (x, y) = (Tensor::ones(a, DType::F32), Tensor::ones(b, DType::F32));
        match ((&x + &y).shape(), (&y + &x).shape()) {
            (Ok(one), Ok(other)) => {
                prop_assert_eq!(&one, &other);
                prop_assert!(x.broadcast_to(&one).validity().is_ok() && y.broadcast_to(&one).validity().is_ok());
            }
            (one, other) => prop_assert!(one.is_err() && other.is_err()),
        }
    }
}

#[test]
fn axes_and_dims_hold_what_they_were_given() {
    assert_eq!(Axes::from(..), Axes::from(()));
    assert_eq!(Axes::from(-1), Axes::from([-1isize]));
    assert_eq!(Axes::from(usize::MAX), Axes::from(isize::MAX));
    assert_eq!(Dims::from(Shape::from([2, 3])), Dims::from([2, 3]));
}

#[test]
fn tensors_are_taken_by_value_and_by_reference() {
    let x = Tensor::arange(0i32, 6, 1).reshape([2, 3]).cast(DType::F32);
    let index = || Tensor::from([1i64, 0]);
    let columns = || Tensor::from([[2i64], [0]]);
    let by_value = [
        x.index_select(0, index()),
        x.gather(1, columns()),
        x.take(index()),
        index().embedding(x.clone()),
        x.masked_fill(x.gt(2), 0),
        x.scatter_add(1, columns(), x.clone()),
        x.index_add(0, index(), x.clone()),
        x.kron(x.clone()),
        x.mse_loss(x.clone() + 1, crate::Reduction::Mean),
        Tensor::cat([x.clone(), x.clone()], 0),
        Tensor::stack(vec![&x, &x], 0),
    ];
    let by_reference = [
        x.index_select(0, &index()),
        x.gather(1, &columns()),
        x.take(&index()),
        index().embedding(&x),
        x.masked_fill(&x.gt(2), 0),
        x.scatter_add(1, &columns(), &x),
        x.index_add(0, &index(), &x),
        x.kron(&x),
        x.mse_loss(&(&x + 1), crate::Reduction::Mean),
        Tensor::cat(&[&x, &x], 0),
        Tensor::stack(&vec![x.clone(), x.clone()], 0),
    ];
    let sum = &x + 1isize + 2u64 + 3u16 + 4usize;
    assert_eq!(sum.max(..).item::<f32>().unwrap(), 15.0);
    let large = Tensor::from([1i64]) + u64::MAX;
    assert_eq!(large.to_vec::<f32>().unwrap(), [u64::MAX as f32]);
    crate::eval(by_value.iter().chain(&by_reference)).unwrap();
    for (value, reference) in by_value.iter().zip(&by_reference) {
        assert_eq!(value.to_vec::<f32>().unwrap(), reference.to_vec::<f32>().unwrap());
    }
}
