//! Proves that rearrangements move the right elements: each against a plain loop that says which element comes
//! from where, and on every device against the interpreter. Any chain of them is one kernel.

use lazuli::{DType, Device, Indexing, PadMode, ScanOrder, Tensor, s};

use crate::common::data::{mixed, ordinary};
use crate::common::{Output, check, check_fused, check_on_cpu, exact, near};

/// The indices of every element of a shape, row-major.
fn positions(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &extent in shape {
        all = all.iter().flat_map(|at| (0..extent).map(move |i| [&at[..], &[i]].concat())).collect();
    }
    all
}

/// Asserts that the result of `arange` in that shape has a shape and, at each position, the element of the
/// source that `from` names, or 0.
#[track_caller]
fn moves(
    shape: &[usize],
    rearranged: impl Fn(&Tensor) -> Tensor,
    expected: &[usize],
    from: impl Fn(&[usize]) -> Option<Vec<usize>>,
) {
    let count: usize = shape.iter().product();
    let x = Tensor::from_vec((1..=count as i32).collect(), shape);
    let y = rearranged(&x);
    assert_eq!(&y.shape().unwrap()[..], expected);
    let element = |at: &Vec<usize>| match from(at) {
        None => 0,
        Some(source) => {
            assert!(source.iter().zip(shape).all(|(i, extent)| i < extent), "{source:?} of {shape:?}");
            source.iter().zip(shape).fold(0, |flat, (i, extent)| flat * extent + i) as i32 + 1
        }
    };
    let wanted: Vec<i32> = positions(expected).iter().map(element).collect();
    assert_eq!(y.to_vec::<i32>().unwrap(), wanted, "on the CPU");
    let y = rearranged(&x.to(&lazuli::Device::interpreter()));
    assert_eq!(y.to_vec::<i32>().unwrap(), wanted, "by the interpreter");
}

#[test]
fn axes_divide_move_and_turn() {
    moves(&[2, 12], |x| x.unflatten(1, [3, -1]), &[2, 3, 4], |i| Some(vec![i[0], i[1] * 4 + i[2]]));
    moves(&[6, 2], |x| x.unflatten(-2, [2, 1, 3]), &[2, 1, 3, 2], |i| Some(vec![i[0] * 3 + i[2], i[3]]));
    moves(&[2, 3], Tensor::ravel, &[6], |i| Some(vec![i[0] / 3, i[0] % 3]));
    moves(&[2, 3, 4], |x| x.movedim(0, -1), &[3, 4, 2], |i| Some(vec![i[2], i[0], i[1]]));
    moves(&[2, 3, 4], |x| x.movedim([0, 1], [2, 0]), &[3, 4, 2], |i| Some(vec![i[2], i[0], i[1]]));
    moves(&[2, 3, 4], |x| x.movedim([2, 0], [0, 1]), &[4, 2, 3], |i| Some(vec![i[1], i[2], i[0]]));
    moves(&[2, 3, 4], |x| x.swapaxes(0, -1), &[4, 3, 2], |i| Some(vec![i[2], i[1], i[0]]));
    // As `np.rot90`: a quarter turns the last column into the first row.
    moves(&[2, 3], |x| x.rot90(1, [0, 1]), &[3, 2], |i| Some(vec![i[1], 2 - i[0]]));
    moves(&[2, 3], |x| x.rot90(-1, [0, 1]), &[3, 2], |i| Some(vec![1 - i[1], i[0]]));
    moves(&[2, 3], |x| x.rot90(1, [1, 0]), &[3, 2], |i| Some(vec![1 - i[1], i[0]]));
    moves(&[2, 3], |x| x.rot90(6, [0, 1]), &[2, 3], |i| Some(vec![1 - i[0], 2 - i[1]]));
    moves(&[2, 3, 2], |x| x.rot90(3, [-1, 0]), &[2, 3, 2], |i| Some(vec![i[2], i[1], 1 - i[0]]));
    moves(&[2, 3], |x| x.rot90(8, [0, 1]), &[2, 3], |i| Some(i.to_vec()));
}

#[test]
fn copies_side_by_side() {
    for (shift, first) in [(1, 4), (-1, 1), (7, 3), (-11, 1), (0, 0), (5, 0)] {
        moves(&[2, 5], |x| x.roll(shift, 1), &[2, 5], |i| Some(vec![i[0], (i[1] + first) % 5]));
    }
    moves(&[2, 0], |x| x.roll(3, 1), &[2, 0], |_| None);
    moves(&[2, 3], |x| x.repeat([2, 3]), &[4, 9], |i| Some(vec![i[0] % 2, i[1] % 3]));
    moves(&[3], |x| x.repeat([2, 1, 2]), &[2, 1, 6], |i| Some(vec![i[2] % 3]));
    moves(&[3], |x| x.repeat([0, 2]), &[0, 6], |_| None);
    moves(&[], |x| x.repeat([2, 2]), &[2, 2], |_| Some(vec![]));
    moves(&[2, 3], |x| x.tile([2]), &[2, 6], |i| Some(vec![i[0], i[1] % 3]));
    moves(&[2, 3], |x| x.tile([2, 1, 1]), &[2, 2, 3], |i| Some(vec![i[1], i[2]]));
    moves(&[2, 3], |x| x.repeat_interleave(3, 1), &[2, 9], |i| Some(vec![i[0], i[1] / 3]));
    moves(&[2, 3], |x| x.repeat_interleave(2, 0), &[4, 3], |i| Some(vec![i[0] / 2, i[1]]));
    moves(&[2, 3], |x| x.repeat_interleave(0, 0), &[0, 3], |_| None);
}

#[test]
fn diagonals_and_triangles() {
    for (shape, offset, count) in [
        ([3, 3], 0, 3),
        ([3, 5], 1, 3),
        ([3, 5], 4, 1),
        ([3, 5], 5, 0),
        ([5, 3], -1, 3),
        ([5, 3], -4, 1),
        ([5, 3], -9, 0),
        ([1, 1], 0, 1),
        ([0, 3], 0, 0),
        ([3, 0], -1, 0),
    ] {
        let (down, right) = ((-offset).max(0) as usize, offset.max(0) as usize);
        moves(&shape, |x| x.diagonal(offset, 0, 1), &[count], |i| Some(vec![i[0] + down, i[0] + right]));
    }
    moves(&[3, 2, 4], |x| x.diagonal(1, 0, 2), &[2, 3], |i| Some(vec![i[1], i[0], i[1] + 1]));
    moves(&[3, 2, 4], |x| x.diagonal(-1, -1, 0), &[2, 3], |i| Some(vec![i[1], i[0], i[1] + 1]));
    for shape in [[3, 3], [2, 5], [5, 2], [0, 2], [1, 1]] {
        for k in -3isize..=3 {
            let above = |i: &[usize]| i[1] as isize - i[0] as isize;
            moves(&shape, |x| x.tril(k), &shape, |i| (above(i) <= k).then(|| i.to_vec()));
            moves(&shape, |x| x.triu(k), &shape, |i| (above(i) >= k).then(|| i.to_vec()));
        }
    }
    let all = |i: &[usize]| (i[3] <= i[2]).then(|| i.to_vec());
    moves(&[2, 1, 3, 3], |x| x.tril(0), &[2, 1, 3, 3], all);
}

#[test]
fn channels_become_squares_of_pixels() {
    let shuffled = |i: &[usize]| Some(vec![i[0], i[1] * 4 + i[2] % 2 * 2 + i[3] % 2, i[2] / 2, i[3] / 2]);
    moves(&[2, 8, 2, 3], |x| x.pixel_shuffle(2), &[2, 2, 4, 6], shuffled);
    let unshuffled = |i: &[usize]| Some(vec![i[0] / 9, i[1] * 3 + i[0] / 3 % 3, i[2] * 3 + i[0] % 3]);
    moves(&[2, 3, 6], |x| x.pixel_unshuffle(3), &[18, 1, 2], unshuffled);
    moves(&[1, 4, 4, 4], |x| x.pixel_unshuffle(2).pixel_shuffle(2), &[1, 4, 4, 4], |i| Some(i.to_vec()));
}

#[test]
fn indices_are_numpys() {
    let at = |i: &[usize]| Some(i.to_vec());
    moves(&[2, 3, 4], |x| x.i(s![]), &[2, 3, 4], at);
    moves(&[2, 3, 4], |x| x.i(s![..]), &[2, 3, 4], at);
    moves(&[2, 3, 4], |x| x.i(s![1]), &[3, 4], |i| Some(vec![1, i[0], i[1]]));
    moves(&[2, 3, 4], |x| x.i(s![-1, 2]), &[4], |i| Some(vec![1, 2, i[0]]));
    moves(&[2, 3, 4], |x| x.i(s![0, 1, -1]), &[], |_| Some(vec![0, 1, 3]));
    moves(&[2, 3, 4], |x| x.i(s![.., 1, ..;-1, None]), &[2, 4, 1], |i| Some(vec![i[0], 1, 3 - i[1]]));
    moves(&[2, 3, 4], |x| x.i(s![..., 1]), &[2, 3], |i| Some(vec![i[0], i[1], 1]));
    moves(&[2, 3, 4], |x| x.i(s![0, ...]), &[3, 4], |i| Some(vec![0, i[0], i[1]]));
    moves(&[2, 3, 4], |x| x.i(s![0, ..., 1..-1]), &[3, 2], |i| Some(vec![0, i[0], i[1] + 1]));
    moves(&[2, 3, 4], |x| x.i(s![None, ..., None]), &[1, 2, 3, 4, 1], |i| Some(i[1..4].to_vec()));
    moves(&[2, 3, 4], |x| x.i(s![.., .., ..3; 2]), &[2, 3, 2], |i| Some(vec![i[0], i[1], i[2] * 2]));
    moves(&[9], |x| x.i(s![8..2;-2]), &[3], |i| Some(vec![8 - 2 * i[0]]));
    moves(&[9], |x| x.i(s![1..=3]), &[3], |i| Some(vec![1 + i[0]]));
    moves(&[9], |x| x.i(s![..=-2]), &[8], at);
    moves(&[9], |x| x.i(s![-3..]), &[3], |i| Some(vec![6 + i[0]]));
    moves(&[9], |x| x.i(s![5..2]), &[0], |_| None);
    moves(&[9], |x| x.i(s![..20; 4,]), &[3], |i| Some(vec![4 * i[0]]));
    let (n, step) = (4usize, 2);
    moves(&[9], |x| x.i(s![n - 1..2 * n; step]), &[3], |i| Some(vec![3 + 2 * i[0]]));
    moves(&[], |x| x.i(s![None, ...]), &[1], |_| Some(vec![]));
}

#[test]
fn parts_of_tensors() {
    let x = Tensor::arange(0, 10, 1).reshape([2, 5]);
    let shapes = |parts: lazuli::Result<Vec<Tensor>>| -> Vec<Vec<usize>> {
        parts.unwrap().iter().map(|part| part.shape().unwrap().to_vec()).collect()
    };
    assert_eq!(shapes(x.split(2, 1)), [[2, 2], [2, 2], [2, 1]]);
    assert_eq!(shapes(x.split(9, -1)), [[2, 5]]);
    assert_eq!(shapes(x.split_sizes(&[0, 4, 1], 1)), [[2, 0], [2, 4], [2, 1]]);
    assert_eq!(shapes(x.chunk(2, 1)), [[2, 3], [2, 2]]);
    assert_eq!(shapes(x.chunk(4, 1)), [[2, 2], [2, 2], [2, 1]]);
    assert_eq!(shapes(x.chunk(9, 1)), vec![[2, 1]; 5]);
    assert_eq!(shapes(x.unbind(1)), vec![[2]; 5]);
    let empty = Tensor::zeros([2, 0], DType::F32);
    assert_eq!(shapes(empty.split(2, 1)), [[2, 0]]);
    assert_eq!(shapes(empty.chunk(3, 1)), vec![[2, 0]; 3]);
    assert_eq!(shapes(empty.unbind(1)), Vec::<Vec<usize>>::new());
    assert_eq!(x.split(2, 1).unwrap()[1].to_vec::<i32>().unwrap(), [2, 3, 7, 8]);
    assert_eq!(x.unbind(1).unwrap()[3].to_vec::<i32>().unwrap(), [3, 8]);
    let again = x.chunk(3, 1).unwrap();
    assert_eq!(
        Tensor::cat(&again.iter().collect::<Vec<_>>(), 1).to_vec::<i32>().unwrap(),
        x.to_vec::<i32>().unwrap()
    );
}

#[test]
fn borders_are_numpys() {
    // `np.pad` of five positions by 3 and 2.
    let modes = [
        (PadMode::Reflect, [3, 2, 1, 0, 1, 2, 3, 4, 3, 2]),
        (PadMode::Replicate, [0, 0, 0, 0, 1, 2, 3, 4, 4, 4]),
        (PadMode::Circular, [2, 3, 4, 0, 1, 2, 3, 4, 0, 1]),
    ];
    for (mode, from) in modes {
        moves(&[5], |x| x.pad_with(&[(3, 2)], mode), &[10], |i| Some(vec![from[i[0]]]));
        let border = [(1, 0), (3, 2), (0, 0)];
        let row = if mode == PadMode::Replicate { [0, 0, 1] } else { [1, 0, 1] };
        let source = |i: &[usize]| Some(vec![row[i[0]], from[i[1]], i[2]]);
        moves(&[2, 5, 3], |x| x.pad_with(&border, mode), &[3, 10, 3], source);
        moves(&[2, 5], |x| x.pad_with(&[(0, 0), (0, 0)], mode), &[2, 5], |i| Some(i.to_vec()));
    }
    moves(&[3], |x| x.pad_with(&[(3, 3)], PadMode::Circular), &[9], |i| Some(vec![i[0] % 3]));
    moves(
        &[3],
        |x| x.pad_with(&[(2, 2)], PadMode::Reflect),
        &[7],
        |i| Some(vec![[2, 1, 0, 1, 2, 1, 0][i[0]]]),
    );
    moves(&[1], |x| x.pad_with(&[(4, 2)], PadMode::Replicate), &[7], |_| Some(vec![0]));
    moves(&[2], |x| x.pad_with(&[(1, 1)], PadMode::Reflect), &[4], |i| Some(vec![[1, 0, 1, 0][i[0]]]));
    let zero = PadMode::Constant(0.into());
    moves(
        &[2],
        |x| x.pad_with(&[(1, 1)], zero),
        &[4],
        |i| [None, Some(vec![0]), Some(vec![1]), None][i[0]].clone(),
    );
}

type Move = fn(&Tensor) -> Tensor;

/// Rearrangements of a [4, 6, 5] tensor that are more than one view.
const MOVES: [(&str, Move); 19] = [
    ("unflatten", |x| x.unflatten(1, [2, 3])),
    ("movedim", |x| x.movedim([0, 2], [2, 0])),
    ("rot90", |x| x.rot90(1, [1, 2])),
    ("roll", |x| x.roll(2, 1)),
    ("roll last", |x| x.roll(-3, 2)),
    ("repeat", |x| x.repeat([2, 1, 3])),
    ("repeat_interleave", |x| x.repeat_interleave(2, 1)),
    ("diagonal", |x| x.diagonal(1, 1, 2)),
    ("tril", |x| x.tril(1)),
    ("triu", |x| x.triu(-1)),
    ("pixel_shuffle", |x| x.pixel_shuffle(2)),
    ("pixel_unshuffle", |x| x.slice(2, 1..).pixel_unshuffle(2)),
    ("index", |x| x.i(s![1.., ..;-2, None, 3])),
    ("cat", |x| Tensor::cat(&[x, &x.flip(1), &x.slice(1, 2..4)], 1)),
    ("cat last", |x| Tensor::cat(&[&x.slice(2, ..2), x], -1)),
    ("stack", |x| Tensor::stack(&[x, x, &x.flip(0)], 1)),
    ("reflect", |x| x.pad_with(&[(0, 0), (2, 3), (1, 4)], PadMode::Reflect)),
    ("replicate", |x| x.pad_with(&[(1, 0), (0, 2), (3, 1)], PadMode::Replicate)),
    ("circular", |x| x.pad_with(&[(0, 1), (2, 2), (5, 0)], PadMode::Circular)),
];

#[test]
fn moves_of_every_dtype_keep_every_bit() {
    for dtype in DType::ALL {
        check_fused(&format!("rearranged {dtype}"), |device| {
            let x = mixed(device, dtype, [4, 6, 5], 2, 3);
            MOVES.iter().map(|(name, f)| exact(*name, f(&x))).collect()
        });
    }
}

/// Alone, of a result, and in a computation; one kernel each.
#[test]
fn moves_are_one_kernel() {
    for (name, f) in MOVES {
        let x = ordinary(&lazuli::Device::cpu(), DType::F32, [4, 6, 5], 4);
        for (how, y) in [("alone", f(&x)), ("among others", f(&(&x * 2.0 + 1.0)).relu() + 1.0)] {
            let plan = y.explain().unwrap();
            // A reshape alone is no kernel at all.
            assert!(plan.kernels() <= 1, "{name} {how}:\n{plan}");
        }
    }
    let x = ordinary(&lazuli::Device::cpu(), DType::F32, [4, 6, 6], 4);
    // What is cheap: of an exponential, a border would rather read what is stored.
    let y = (x.roll(2, 1).abs() + x.rot90(1, [1, 2]))
        .tril(0)
        .pad_with(&[(0, 0), (1, 1), (2, 2)], PadMode::Reflect);
    let y = Tensor::cat(&[&y, &(y.flip(2) * 2.0)], 0).i(s![..;-1, 1.., ..;2]).repeat([1, 2, 1]).sqrt();
    let plan = y.explain().unwrap();
    assert_eq!(plan.kernels(), 1, "{plan}");
    check("rearranged and computed", |device| {
        let x = ordinary(device, DType::F32, [4, 6, 5], 4);
        MOVES.iter().map(|(name, f)| exact(*name, f(&(&x * 2.0 + 1.0)).relu())).collect()
    });
}

#[test]
fn joins_of_every_kind() {
    let joined = |parts: &[&Tensor], axis| Tensor::cat(parts, axis);
    check("cat", |device| {
        let x = ordinary(device, DType::F32, [3, 4], 1);
        let wide = ordinary(device, DType::F64, [3, 2], 2);
        let none = ordinary(device, DType::F32, [3, 0], 2);
        let flags = mixed(device, DType::Bool, [3, 5], 0, 1);
        let sum = x.sum_keepdim(1);
        vec![
            exact("promoted", joined(&[&x, &wide, &flags], 1)),
            exact("with nothing", joined(&[&none, &x, &none], 1)),
            exact("nothing alone", joined(&[&none, &none], 1)),
            exact("one", joined(&[&x], 0)),
            exact("bools", joined(&[&flags, &x.gt(0.0)], 1)),
            exact("computed", joined(&[&(&x * 2.0), &x.exp2().floor(), &(&x + 1.0)], 0)),
            exact("a reduction", joined(&[&x, &sum], 1)),
            exact("numbers", Tensor::stack(&[&x.sum(..), &x.max(..)], 0)),
        ]
    });
    // A NaN or an infinity of one part is nobody else's.
    let x = Tensor::from_slice(&[f32::NAN, f32::INFINITY], [2]);
    let y = Tensor::from_slice(&[1.0f32, -0.0], [2]);
    let bits: Vec<u32> =
        Tensor::cat(&[&y, &x, &y], 0).to_vec::<f32>().unwrap().iter().map(|x| x.to_bits()).collect();
    assert_eq!(bits[..2], [1f32.to_bits(), (-0f32).to_bits()]);
    assert_eq!(bits[3..], [f32::INFINITY, 1.0, -0.0].map(f32::to_bits));
}

/// Last axes of a few positions, which stand one after the other in a loop along the axis before: at its end, across
/// blocks, with borders, and read across.
#[test]
fn short_last_axes() {
    for dtype in [DType::F32, DType::F16, DType::I64, DType::Bool] {
        check_on_cpu(&format!("short last axes of {dtype}"), |device| {
            let x = mixed(device, dtype, [3, 5, 19], 2, 3);
            let few = mixed(device, dtype, [37, 3], 1, 5);
            let own = mixed(device, dtype, [3], 1, 7);
            vec![
                exact("stack", Tensor::stack(&[&x, &x.flip(2), &x.maximum(x.flip(0))], -1)),
                exact("cat", Tensor::cat(&[&few, &few.slice(1, 1..), &few.flip(0)], 1)),
                exact("border", few.pad(&[(0, 0), (1, 2)], 0).maximum(few.slice(1, ..1))),
                exact("of positions", few.maximum(&own)),
                exact("one beside many", x.unsqueeze(-1).maximum(&own)),
                exact("across", Tensor::stack(&[&x.transpose(0, 2), &x.transpose(0, 2).flip(0)], -1)),
            ]
        });
    }
    check_on_cpu("of several blocks", |device| {
        let x = ordinary(device, DType::F32, [2, 9_001], 1);
        vec![
            exact("stack", Tensor::stack(&[&x, &(&x * 2.0)], -1)),
            exact("rows", Tensor::stack(&[&x.flip(1); 5], 2)),
        ]
    });
}

/// Parts of lengths that are no multiples of a block or a vector, along each axis, at and beyond the limits of the
/// loops; more than is joined of one of them, backwards, and of joins.
#[test]
fn joins_of_long_parts() {
    for (axis, shape) in [(0, [5, 3, 40]), (1, [2, 9, 33]), (2, [2, 3, 70]), (2, [1, 1, 9_000])] {
        check_fused(&format!("{shape:?} along {axis}"), |device| {
            let part = |n: usize| {
                let mut own = shape;
                own[axis as usize] += n;
                ordinary(device, DType::F32, own, n as u64)
            };
            let (a, b, c) = (part(0), part(3), part(17));
            let joined = Tensor::cat(&[&a, &b, &c], axis);
            let most = (0..3).map(|k| if k == axis { (1, 60) } else { (0, 0) }).collect::<Vec<_>>();
            vec![
                exact("cat", &joined * 2 + 1),
                exact("backwards", Tensor::cat(&[&a.flip(axis), &b], axis).flip(axis) + 1),
                exact("of joins", Tensor::cat(&[&Tensor::cat(&[&c, &a], axis), &b, &a], axis).abs()),
                exact("mostly border", part(1).pad(&most, 7) * 3),
                exact("roll", joined.roll(5, axis) - 1),
                exact("sum", joined.sum(axis)),
            ]
        });
    }
}

/// A table of parts: of other lengths, along the innermost axis and along the rows, across blocks, beside what is no part,
/// and where one part does something else.
#[test]
fn joins_of_many_parts() {
    let join = |parts: Vec<Tensor>, axis| Tensor::cat(&parts.iter().collect::<Vec<_>>(), axis);
    let results = |device: &lazuli::Device| -> Vec<Vec<f32>> {
        let part = |n: usize| ordinary(device, DType::F32, [n * 7 % 5 + 1, 3], n as u64);
        let parts = |count: usize| (0..count).map(part);
        let narrow = |n: usize| ordinary(device, DType::F32, [4, 2], n as u64);
        let long = |n: usize| {
            let part = ordinary(device, DType::F32, [1_000 + n, 2], n as u64);
            if n == 55 { part.exp2().floor() } else { part * 2.0 + 1.0 }
        };
        let row = ordinary(device, DType::F32, [3], 7);
        let narrows: Vec<Tensor> = (0..50).map(narrow).collect();
        let results = [
            join(parts(60).map(|part| part.reshape([-1])).collect(), 0),
            join(parts(60).collect(), 0).maximum(&row).slice(0, 5..-4),
            join(narrows.clone(), 1),
            Tensor::stack(&narrows.iter().collect::<Vec<_>>(), 0).exp2(),
            Tensor::stack(&narrows.iter().collect::<Vec<_>>(), -1),
            join((0..110).map(long).collect(), 0),
        ];
        results.iter().map(|result| result.to_vec::<f32>().unwrap()).collect()
    };
    let (actual, expected) = (results(&lazuli::Device::cpu()), results(&lazuli::Device::interpreter()));
    for (number, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
        assert!(actual.len() == expected.len(), "result {number}");
        let mut pairs = actual.iter().zip(expected);
        let differs = pairs.position(|(a, b)| (a - b).abs() > 1e-6 * b.abs());
        assert_eq!(differs, None, "result {number}");
    }
    let parts: Vec<Tensor> = (0..100).map(|n| Tensor::from_vec(vec![n as f32; 7], [7])).collect();
    let joined = join(parts, 0).compile_for(&lazuli::Target::cpu()).unwrap();
    let in_lanes = |source: &str| source.matches("omp simd").count() + source.matches("+= LANES)").count();
    let loops: usize = joined.kernels().iter().map(|kernel| in_lanes(kernel.source())).sum();
    assert!(loops < 4, "{loops} loops for a hundred parts");
}

#[test]
fn a_hundred_parts() {
    let count = 100;
    let parts: Vec<Tensor> = (0..count).map(|i| Tensor::from_vec(vec![i, -i], [2])).collect();
    let parts: Vec<&Tensor> = parts.iter().collect();
    let (y, z) = (Tensor::cat(&parts, 0), Tensor::stack(&parts, 1));
    let started = std::time::Instant::now();
    let program = y.compile_for(&lazuli::Target::cuda("sm_90")).unwrap();
    assert!(started.elapsed().as_secs() < 10, "{count} parts take {:?} to plan", started.elapsed());
    let length: usize = program.kernels().iter().map(|kernel| kernel.source().len()).sum();
    assert!(length < 500 * count as usize, "{count} parts: {length} characters of source");
    assert_eq!(y.to_vec::<i32>().unwrap(), (0..count).flat_map(|i| [i, -i]).collect::<Vec<_>>());
    let rows = (0..count).chain((0..count).map(|i| -i));
    assert_eq!(z.to_vec::<i32>().unwrap(), rows.collect::<Vec<_>>());
}

#[test]
fn grids() {
    let outputs = |device: &lazuli::Device| -> Vec<Output> {
        let (x, y) = (ordinary(device, DType::F32, [3], 1), ordinary(device, DType::F32, [4], 2));
        let z = ordinary(device, DType::I64, [2], 3);
        let all = Tensor::meshgrid(&[&x, &y, &z], Indexing::Ij).into_iter();
        let all = all.chain(Tensor::meshgrid(&[&x, &y, &z], Indexing::Xy));
        all.enumerate().map(|(k, grid)| exact(format!("grid {k}"), grid)).collect()
    };
    check("meshgrid", outputs);
    moves(
        &[3],
        |x| Tensor::meshgrid(&[x, &Tensor::arange(0, 2, 1)], Indexing::Xy)[0].clone(),
        &[2, 3],
        |i| Some(vec![i[1]]),
    );
    assert!(Tensor::meshgrid::<Tensor>(&[], Indexing::Ij).is_empty());
}

/// Parts of rows that are as long as the rows again: a condition on a result's place is none on what its row is reduced or
/// scanned from.
#[test]
fn rows_within_their_own_borders() {
    let shifted = |y: &Tensor| y.slice(-1, 0..-1).pad(&[(0, 0), (1, 0)], 0.5);
    let first_zeroed = |y: &Tensor| y.slice(-1, 1..).pad(&[(0, 0), (1, 0)], 0.0);
    let last_zeroed = |y: &Tensor| y.slice(-1, 0..-1).pad(&[(0, 0), (0, 1)], 0.0);
    let turned = |y: &Tensor| Tensor::cat(&[&y.slice(-1, 1..), &(y.slice(-1, 0..1) * 2.0)], -1);
    let next_row = |y: &Tensor| {
        let [rows, columns] = [0, 1].map(|axis| y.shape().unwrap()[axis]);
        y.flatten(..).slice(0, 0..-(columns as isize)).pad(&[(columns, 0)], 0.25).reshape([rows as isize, -1])
    };
    let outputs = |device: &Device, shape: [usize; 2]| {
        let x = ordinary(device, DType::F32, shape, 3);
        let rows = [
            ("minus its sum", &x - x.sum_keepdim(-1)),
            ("softmax", x.softmax(-1)),
            ("standardised", x.layer_norm([shape[1]], None, None, 1e-5)),
            ("over its extremes", &x * 2.0 - x.max_keepdim(-1) + x.argmin_keepdim(-1).cast(DType::F32)),
            ("minus everything", &x - x.mean_keepdim(..)),
            ("columns", &x - x.sum_keepdim(0)),
            ("sums so far", x.cumsum(-1)),
            ("sums from here", x.cumsum_with(-1, ScanOrder::new().reverse())),
            ("moving average", x.scan_with(-1, 0.0, |h, x| h * 0.5 + x * 0.5)),
            ("sums by place", x.index_add(1, &Tensor::zeros([shape[1]], DType::I64).to(device), &x)),
        ];
        let of_row = |(name, y): &(&str, Tensor)| {
            let all = [
                ("shifted", shifted(y)),
                ("without its first", first_zeroed(y)),
                ("without its last", last_zeroed(y)),
                ("turned", turned(y)),
                ("of the row before", next_row(y)),
                ("minus the mean of the shifted", shifted(y) - shifted(y).mean_keepdim(-1)),
            ];
            all.map(|(how, z)| near(format!("{name}, {how}"), z, 1e-4, 1e-4))
        };
        rows.iter().flat_map(of_row).collect::<Vec<Output>>()
    };
    for shape in [[5, 300], [3, 5000]] {
        check(&format!("borders of {shape:?}"), |device| outputs(device, shape));
    }
    for number in 0..outputs(&Device::cpu(), [2, 45]).len() {
        check_fused(&format!("border {number}"), |device| vec![outputs(device, [2, 45]).swap_remove(number)]);
    }
}

/// Each alone, so that nothing else is in its kernel.
#[test]
fn turned_and_reversed() {
    for shape in [&[9][..], &[2, 9], &[2, 2, 9], &[3, 1, 2, 7], &[2, 3, 4, 5]] {
        let rank = shape.len();
        for axis in 0..rank as isize {
            for reverse in [-1, -2, -3] {
                for turn in 0..4 {
                    check_fused(&format!("{shape:?} along {axis}, {turn}, {reverse}"), |device| {
                        let x = ordinary(device, DType::F32, shape.to_vec(), 5);
                        let repeats: Vec<usize> =
                            (0..rank).map(|k| 1 + usize::from(k as isize == axis)).collect();
                        let turned = match turn {
                            0 => x.roll(1, axis),
                            1 => x.roll(-2, axis),
                            2 => x.tile(&repeats),
                            _ => Tensor::cat(&[&x, &x.roll(3, axis)], axis),
                        };
                        vec![exact("reversed", turned.slice_step(axis, None, None, reverse))]
                    });
                }
            }
        }
    }
}

#[test]
fn windows_of_a_circular_border_are_combined_by_who_stores_them() {
    let neighbours = |x: &Tensor| {
        let border = x.pad_with(&[(1, 1), (1, 1)], PadMode::Circular);
        border.unfold(0, 3, 1).unfold(1, 3, 1).sum([2, 3])
    };
    let (rows, columns) = (17usize, 70usize);
    let cells: Vec<u8> = (0..rows * columns).map(|i| (i * i % 251) as u8).collect();
    let x = Tensor::from_vec(cells.clone(), [rows, columns]);
    let at = |i: usize, j: usize| i64::from(cells[i % rows * columns + j % columns]);
    let around = |i: usize, j: usize| -> i64 {
        (0..9).map(|k| at(i + rows - 1 + k / 3, j + columns - 1 + k % 3)).sum()
    };
    let expected: Vec<i64> = (0..rows * columns).map(|i| around(i / columns, i % columns)).collect();
    assert_eq!(neighbours(&x).to_vec::<i64>().unwrap(), expected);
    // Not a row of nine for each result.
    let program = neighbours(&x).compile_for(&lazuli::Target::cpu()).unwrap();
    assert_eq!(program.kernels().len(), 1);
    assert_eq!(program.kernels()[0].schedule().name(), "pointwise");
}

#[test]
fn rows_in_another_order_than_memory() {
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F16, 4e-3), (DType::I32, 0.0), (DType::U8, 0.0)] {
        for [channels, height, width] in [[8, 6, 16], [12, 5, 9], [4, 1, 24]] {
            check_on_cpu(&format!("{dtype} {channels}×{height}×{width}"), |device| {
                let x = ordinary(device, dtype, [3, channels, height, width], 1);
                let shuffled = x.pixel_shuffle(2);
                let shape = shuffled.shape().unwrap();
                let beside = ordinary(device, dtype, shape.clone(), 2);
                let patches = x
                    .reshape([3, channels, height * width])
                    .transpose(1, 2)
                    .reshape([3, channels * height * width]);
                vec![
                    near("sum", shuffled.sum([2, 3]), tolerance, 2.0 * tolerance),
                    exact("largest", (&shuffled + &beside).max([2, 3])),
                    exact("where it is", patches.argmax(1)),
                    near("sum of patches", patches.sum(1), tolerance, 2.0 * tolerance),
                    exact("share", shuffled.max_keepdim([2, 3]) - &shuffled),
                ]
            });
        }
    }
}

#[test]
fn rows_of_patches_are_normalised() {
    for (dtype, tolerance) in [(DType::F32, 1e-4), (DType::F64, 1e-10), (DType::BF16, 4e-2)] {
        for size in [8, 16, 12, 7] {
            check_on_cpu(&format!("{dtype}, patches of {size}²"), |device| {
                let x = ordinary(device, dtype, [2, 3, 2 * size, 3 * size], 1);
                let patches = x.reshape([2, 3, 2, size, 3, size]);
                let rows = patches.permute([0, 2, 4, 1, 3, 5]).reshape([2, 6, 3 * size * size]);
                let pixels = patches.permute([0, 2, 4, 3, 5, 1]).reshape([2, 6, 3 * size * size]);
                vec![
                    near("norm", rows.layer_norm([3 * size * size], None, None, 1e-5), tolerance, tolerance),
                    near("softmax", rows.softmax(-1), tolerance, tolerance),
                    near("deviation", pixels.std(2, 1), tolerance, tolerance),
                    near(
                        "pixels",
                        pixels.layer_norm([3 * size * size], None, None, 1e-5),
                        tolerance,
                        tolerance,
                    ),
                ]
            });
        }
    }
}
