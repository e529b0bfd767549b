//! Proves that reading at computed positions reads the right elements: against plain loops, and on every device
//! against the interpreter; and that it is part of the kernel that uses it. `tests/positions.rs` has the positions that
//! there are not.

use lazuli::{DType, Device, Target, Tensor, eval, s};

use crate::common::data::{floats, ordinary};
use crate::common::{Output, check, check_fused, check_on_cpu, devices, exact, near};

const INDEX_DTYPES: [DType; 6] = [DType::I64, DType::I32, DType::I16, DType::I8, DType::U8, DType::U32];

/// A part or an arrangement of a tensor.
type View = fn(&Tensor) -> Tensor;

/// Which of the new values an element of a matrix becomes.
type Source = fn(usize, usize) -> Option<usize>;

/// `count` positions below `extent`, in no order, some of them several times.
fn positions(count: usize, extent: usize, seed: usize) -> Vec<i64> {
    (0..count).map(|n| ((n * 7919 + seed * 31 + n * n) % extent) as i64).collect()
}

fn index(device: &Device, shape: &[usize], extent: usize, seed: usize) -> Tensor {
    Tensor::from_vec(positions(shape.iter().product(), extent, seed), shape).to(device)
}

fn counting(shape: &[usize]) -> Tensor {
    Tensor::from_vec((0..shape.iter().product::<usize>() as i32).collect(), shape)
}

/// On the CPU and by the interpreter.
#[track_caller]
fn assert_is(what: &str, result: impl Fn(&Device) -> Tensor, shape: &[usize], expected: &[i32]) {
    for device in [Device::cpu(), Device::interpreter()] {
        let result = result(&device);
        assert_eq!(&result.shape().unwrap()[..], shape, "{what}");
        assert_eq!(result.to_vec::<i32>().unwrap(), expected, "{what} on {device}");
    }
}

#[test]
fn rows_against_a_loop() {
    for (outer, extent, inner, count) in
        [(1, 5, 1, 7), (3, 4, 5, 6), (2, 1, 3, 4), (1, 9, 33, 2), (4, 6, 2, 1)]
    {
        let (x, at) = (counting(&[outer, extent, inner]), positions(count, extent, 3));
        let expected: Vec<i32> = (0..outer)
            .flat_map(|o| at.iter().map(move |&g| (o, g)))
            .flat_map(|(o, g)| (0..inner).map(move |i| ((o * extent + g as usize) * inner + i) as i32))
            .collect();
        for dtype in INDEX_DTYPES {
            let select = |device: &Device| {
                let at = Tensor::from_slice(&at, [count]).cast(dtype);
                at.eval().unwrap();
                x.to(device).index_select(1, &at.to(device))
            };
            assert_is("index_select", select, &[outer, count, inner], &expected);
        }
    }
}

#[test]
fn single_elements_against_a_loop() {
    let shape = [3, 4, 5];
    let x = counting(&shape);
    for axis in 0..3 {
        for extents in [[3, 4, 5], [2, 3, 1], [3, 1, 2], [1, 1, 1], [0, 2, 3]] {
            let mut extents = extents;
            extents[axis] = extents[axis] * 2 + 1;
            let count: usize = extents.iter().product();
            let at = positions(count, shape[axis], axis);
            let mut expected = Vec::new();
            for (n, &position) in at.iter().enumerate() {
                let mut i = [n / (extents[1] * extents[2]), n / extents[2] % extents[1], n % extents[2]];
                i[axis] = position as usize;
                expected.push(((i[0] * 4 + i[1]) * 5 + i[2]) as i32);
            }
            let gather = |device: &Device| {
                let at = Tensor::from_slice(&at, extents).to(device);
                x.to(device).gather(axis as isize - 3, &at)
            };
            assert_is("gather", gather, &extents, &expected);
        }
    }
}

#[test]
fn shapes_that_are_special() {
    let number = |device: &Device| Tensor::scalar(7).to(device);
    let zero = |device: &Device| Tensor::scalar(0i64).to(device);
    assert_is("0-d gather", |d| number(d).gather(0, &zero(d)), &[], &[7]);
    assert_is("0-d take", |d| counting(&[2, 3]).to(d).take(&(zero(d) + 4)), &[], &[4]);
    assert_is(
        "0-d index_select",
        |d| counting(&[2, 3]).to(d).index_select(0, &(zero(d) + 1)),
        &[1, 3],
        &[3, 4, 5],
    );
    assert_is("0-d embedding", |d| (zero(d) + 1).embedding(&counting(&[2, 3]).to(d)), &[3], &[3, 4, 5]);
    let none = |device: &Device| Tensor::from_vec(Vec::<i64>::new(), [0]).to(device);
    assert_is("nothing", |d| counting(&[2, 3]).to(d).index_select(1, &none(d)), &[2, 0], &[]);
    assert_is("nothing of nothing", |d| counting(&[0, 3]).to(d).index_select(0, &none(d)), &[0, 3], &[]);
    assert_is(
        "of nothing else",
        |d| counting(&[2, 0]).to(d).index_select(0, &index(d, &[4], 2, 0)),
        &[4, 0],
        &[],
    );
    assert_is("no ids", |d| none(d).embedding(&counting(&[2, 3]).to(d)), &[0, 3], &[]);
    // Along the axis of a tensor without values in memory.
    let at = |d: &Device| Tensor::from_slice(&[2i64, 0], [2]).to(d);
    assert_is("of a constant", |d| Tensor::full([3], 5, DType::I32).index_select(0, &at(d)), &[2], &[5, 5]);
    assert_is("of a range", |d| Tensor::arange(10, 40, 10).index_select(0, &at(d)), &[2], &[30, 10]);
}

#[test]
fn broadcasting_against_a_loop() {
    let x = counting(&[2, 1, 5]);
    let at = positions(3 * 4, 5, 1);
    let expected: Vec<i32> = (0..2)
        .flat_map(|i| (0..3).flat_map(move |j| (0..4).map(move |k| (i, j * 4 + k))))
        .map(|(i, n)| i * 5 + at[n] as i32)
        .collect();
    let take = |d: &Device| x.to(d).take_along_axis(&Tensor::from_slice(&at, [1, 3, 4]).to(d), 2);
    assert_is("take_along_axis", take, &[2, 3, 4], &expected);
}

/// One kernel, and the right numbers, on every device; with everything that it reads at computed positions in memory.
#[track_caller]
fn assert_one_kernel(name: &str, build: impl Fn(&Device) -> Tensor) {
    assert_eq!(build(&Device::cpu()).explain().unwrap().kernels(), 1, "{name}");
    check(name, |device| {
        let y = build(device);
        vec![if y.dtype().unwrap().is_float() { near("y", y, 1e-5, 1e-5) } else { exact("y", y) }]
    });
}

#[test]
fn every_index_dtype_on_every_device() {
    check("index dtypes", |device| {
        let x = ordinary(device, DType::F32, [9, 7], 1);
        let of = |dtype: DType| {
            let at = index(device, &[13], 9, 2).cast(dtype);
            exact(format!("{dtype}"), x.index_select(0, &at) + 1.0)
        };
        INDEX_DTYPES.into_iter().map(of).collect()
    });
}

#[test]
fn every_element_dtype_on_every_device() {
    check_fused("element dtypes", |device| {
        let of = |dtype: DType| {
            let x = ordinary(device, dtype, [6, 20], 1);
            let columns = x.index_select(1, &index(device, &[33], 20, 1));
            let single = x.gather(1, &index(device, &[6, 5], 20, 4));
            [exact(format!("columns {dtype}"), columns), exact(format!("single {dtype}"), single)]
        };
        DType::ALL.into_iter().flat_map(of).collect()
    });
}

#[test]
fn what_surrounds_it_is_in_its_kernel() {
    let table = |d: &Device| floats(d, DType::F32, [50, 64], 2.0, 1);
    let ids = |d: &Device| index(d, &[3, 17], 50, 5);
    assert_one_kernel("prologue and epilogue", |d| {
        let ids = (ids(d) * 3 + 1).remainder(50);
        (ids.embedding(&table(d)) * 2.0).tanh() + table(d).select(0, 3)
    });
    assert_one_kernel("embedding and layer norm", |d| {
        ids(d).embedding(&table(d)).layer_norm([64], None, None, 1e-5)
    });
    assert_one_kernel("softmax of rows", |d| table(d).index_select(0, &ids(d).flatten(..)).softmax(-1));
    assert_one_kernel("sum of rows", |d| table(d).index_select(0, &ids(d).flatten(..)).sum(0));
    assert_one_kernel("sum of columns", |d| table(d).index_select(1, &ids(d).flatten(..)).sum(1));
    assert_one_kernel("bag of words", |d| ids(d).embedding(&table(d)).mean(1));
    assert_one_kernel("softmax along gathered columns", |d| {
        table(d).gather(1, &index(d, &[50, 40], 64, 3)).softmax(1)
    });
    assert_one_kernel("softmax down gathered columns", |d| {
        table(d).gather(1, &index(d, &[50, 40], 64, 3)).softmax(0)
    });
    assert_one_kernel("cross-entropy by gathering", |d| {
        let x = floats(d, DType::F32, [20, 64], 2.0, 2);
        let label = index(d, &[20, 1], 64, 1);
        (x.logsumexp_keepdim(1) - x.gather(1, &label)).squeeze(1)
    });
    assert_one_kernel("the index is a reduction's result", |d| {
        let x = floats(d, DType::F32, [20, 64], 2.0, 2);
        x.take_along_axis(&x.argmax_keepdim(1), 1)
    });
    assert_one_kernel("two tables, one index", |d| {
        let other = floats(d, DType::F32, [50, 64], 1.0, 7);
        ids(d).embedding(&table(d)) + ids(d).embedding(&other)
    });
    assert_one_kernel("a padded gather", |d| {
        // The padding's index would be out of range.
        let at = ids(d) + 0;
        at.embedding(&table(d)).pad(&[(1, 1), (0, 2), (3, 0)], 1.0)
    });
    assert_one_kernel("an index of an index", |d| {
        let at = index(d, &[30], 50, 2);
        table(d).index_select(0, &at.index_select(0, &index(d, &[40], 30, 3)))
    });
    assert_one_kernel("windows of gathered elements", |d| {
        let x = ordinary(d, DType::F32, [4, 60], 3);
        x.index_select(1, &index(d, &[80], 60, 3)).unfold(1, 5, 2).max(2)
    });
    assert_one_kernel("a transposed result", |d| table(d).index_select(0, &ids(d).flatten(..)).t() + 1.0);
}

#[test]
fn every_view_may_lie_between() {
    let x = |d: &Device| ordinary(d, DType::F32, [8, 9, 10], 1);
    let cases: [(&str, View); 8] = [
        ("permuted", |x| x.permute([2, 0, 1])),
        ("sliced", |x| x.i(s![1..;2, ..;-1, -1..0;-3])),
        ("flattened", |x| x.flatten(..2)),
        ("divided", |x| x.unflatten(2, [5, 2])),
        ("padded", |x| x.pad(&[(2, 1), (0, 3), (1, 1)], 0.5)),
        ("windowed", |x| x.unfold(1, 3, 2)),
        ("expanded", |x| x.slice(1, ..1).expand([8, 12, 10])),
        ("joined", |x| Tensor::cat(&[x, x, x], 1)),
    ];
    for (name, view) in cases {
        check(name, |d| {
            let view = view(&x(d));
            let shape = view.shape().unwrap();
            let of = |axis: usize| -> Vec<Output> {
                let mut extents = shape.to_vec();
                extents[axis] = 7;
                let rows = view.index_select(axis as isize, &index(d, &[11], shape[axis], axis));
                let single = view.gather(axis as isize, &index(d, &extents, shape[axis], axis));
                vec![exact(format!("rows {axis}"), rows), exact(format!("single {axis}"), single)]
            };
            let mut outputs: Vec<Output> = (0..shape.rank()).flat_map(of).collect();
            outputs.push(exact("flat", view.take(&index(d, &[5, 6], shape.elements(), 1))));
            outputs
        });
    }
}

#[test]
fn what_is_read_from_is_computed_where_it_is_read() {
    let x = |d: &Device| floats(d, DType::F32, [50, 64], 2.0, 1);
    assert_one_kernel("scaled table", |d| index(d, &[3, 9], 50, 1).embedding(&(x(d).tanh() * 2.0)).sum(2));
    assert_one_kernel("windows", |d| x(d).unfold(1, 5, 2).max(2).index_select(1, &index(d, &[9], 30, 1)));
    assert_one_kernel("windows of windows", |d| {
        let y = x(d).unfold(1, 5, 2).max(2).index_select(1, &index(d, &[7], 30, 1));
        y.unfold(1, 5, 1).min(2)
    });
    assert_one_kernel("random numbers", |d| {
        (Tensor::rand([50, 64], 3) + x(d)).index_select(0, &index(d, &[9], 50, 1))
    });
    assert_one_kernel("both orders", |d| {
        let y = x(d).exp();
        y.index_select(0, &index(d, &[50], 50, 1)).sum(1) + y.sum(1)
    });
}

#[test]
fn it_stands_beside_everything_else() {
    let x = |d: &Device| floats(d, DType::F32, [50, 64], 2.0, 1);
    check("stored, and read at computed positions", |d| {
        let y = x(d).tanh();
        let z = y.index_select(0, &index(d, &[50], 50, 1));
        vec![near("y", y, 1e-6, 1e-6), near("z", z, 1e-6, 1e-6)]
    });
    assert_one_kernel("beside a transpose", |d| {
        let wide = floats(d, DType::F32, [64, 50], 2.0, 2);
        wide.t() + x(d).gather(0, &index(d, &[50, 64], 50, 1))
    });
    assert_one_kernel("in half of a join", |d| {
        Tensor::cat(&[&x(d).index_select(0, &index(d, &[7], 50, 1)), &x(d)], 0)
    });
    assert_one_kernel("where it is chosen", |d| {
        let at = index(d, &[50, 64], 64, 1);
        x(d).gt(0.0).where_(x(d).gather(1, &at), at)
    });
}

/// On the CPU, what a row's interior computes once a row must not be looked at where the row is padding.
#[test]
fn borders_of_what_varies_along_rows_alone() {
    check("borders", |d| {
        let column = floats(d, DType::F32, [64, 1], 2.0, 1);
        let table = floats(d, DType::F32, [64, 100], 2.0, 2);
        let border = [(1, 2), (3, 1)];
        let ids = index(d, &[66], 64, 1).slice(0, 1..-1);
        vec![
            exact("column", column.expand([64, 100]).pad(&border, 0.5) + 1.0),
            exact("columns", column.expand([64, 100]).pad(&[(0, 0), (0, 9)], 0.5) + 1.0),
            exact("rows", ids.embedding(&table).pad(&border, 0.5) + 1.0),
            exact("rows that are there", ids.embedding(&table).pad(&[(0, 0), (2, 0)], 0.5) + 1.0),
        ]
    });
    // Beside the index is what is no index.
    let device = Device::cpu();
    let ids =
        Tensor::from_vec((0..66).map(|n| if n % 65 == 0 { 999 } else { n }).collect(), [66]).to(&device);
    let table = floats(&device, DType::F32, [65, 100], 2.0, 2);
    let y = ids.slice(0, 1..-1).embedding(&table).pad(&[(1, 1), (1, 1)], 0.0);
    assert_eq!(y.to_vec::<f32>().unwrap().len(), 66 * 102);
}

/// Neither the number of indices nor that of a table's entries is part of the text.
/// What combines experts' results: rows of a join, which ends at one that was dropped, each with its weight.
#[test]
fn rows_of_a_join_are_weighed() {
    let weighed = |device: &Device| {
        let (rows, weights) =
            (ordinary(device, DType::F32, [50, 70], 1), ordinary(device, DType::F32, [30, 2], 2));
        let joined = Tensor::cat(&[&rows, &Tensor::zeros([1, 70], DType::F32).to(device)], 0);
        let taken = joined.index_select(0, &index(device, &[60], 51, 3)).reshape([2, 30, 70]);
        // Columns differ in where they read.
        let columns = joined.t().gather(1, &index(device, &[70, 60], 51, 4)).reshape([70, 2, 30]);
        vec![
            near("sum", (taken * weights.t().unsqueeze(2)).sum(0), 1e-5, 1e-5),
            near(
                "of each column",
                (columns.permute([1, 2, 0]) * weights.t().unsqueeze(2)).sum(0),
                1e-5,
                1e-5,
            ),
        ]
    };
    check("rows of a join", weighed);
}

#[test]
fn another_batch_is_not_another_kernel() {
    let text = |ids: usize, entries: usize, target: &Target| {
        let table = Tensor::from_vec(vec![0.5f32; entries * 24], [entries, 24]);
        let ids = Tensor::from_vec(vec![1i32; ids * 6], [ids, 6]);
        let program = ids.embedding(&table).softmax(-1).compile_for(target).unwrap();
        assert_eq!(program.kernels().len(), 1);
        program.kernels()[0].source().to_owned()
    };
    for target in [Target::cpu(), Target::cuda("sm_90")] {
        let one = text(2, 10, &target);
        for (ids, entries) in [(3, 1), (77, 999), (1000, 11)] {
            assert_eq!(text(ids, entries, &target), one, "{ids} of {entries}");
        }
    }
}

/// Positions in what has more than 2^31 elements have 64 bits.
#[test]
fn positions_are_wide_where_they_must_be() {
    let source = |entries: usize| {
        let index = Tensor::from_slice(&[1i64, 2], [2]);
        let x = Tensor::ones([entries, 100], DType::U8) * Tensor::arange(0, 100, 1).cast(DType::U8);
        let program = x.sum(1).index_select(0, &index).compile_for(&Target::cuda("sm_90")).unwrap();
        program.kernels().last().unwrap().source().to_owned()
    };
    assert!(source(3 << 30).contains("const unsigned long long g0 = lz_position("), "{}", source(3 << 30));
    assert!(source(3 << 20).contains("const unsigned g0 = lz_position("), "{}", source(3 << 20));
}

#[test]
fn what_is_reduced_is_stored_before_it_is_read_from() {
    let y = |d: &Device| {
        let x = floats(d, DType::F32, [50, 64], 2.0, 1);
        x.sum(1).exp().index_select(0, &index(d, &[9], 50, 1))
    };
    let text = y(&Device::cpu()).explain().unwrap().to_string();
    let reason = "index_select reads exp at computed positions: all of it must be there first";
    assert!(text.contains(reason), "{text}");
    check("computed, then read", |d| vec![near("y", y(d), 1e-5, 1e-5)]);
    check("after reductions", |d| {
        let x = floats(d, DType::F32, [50, 64], 2.0, 1);
        let rows = x.softmax(1).index_select(1, &index(d, &[9], 64, 1));
        let means = x.mean(1).index_select(0, &index(d, &[99], 50, 1));
        vec![near("rows", rows, 1e-5, 1e-6), near("means", means, 1e-5, 1e-6)]
    });
}

/// A position that is not read, as in the border of a pad, is not looked at.
#[test]
fn only_positions_that_are_read_are_checked() {
    for device in devices() {
        let x = ordinary(&device, DType::F32, [5, 7], 1);
        let at = Tensor::from_slice(&[-5i64, -1, 99], [3]).to(&device) + 5;
        let y = x.index_select(0, &at.slice(0, ..2)).pad(&[(1, 90), (3, 3)], 0.0);
        assert_eq!(y.to_vec::<f32>().unwrap().len(), 93 * 13);
        let y = x.index_select(0, &at).slice(0, ..2);
        assert_eq!(y.to_vec::<f32>().unwrap().len(), 14);
    }
}

/// Positions of rows are looked up once for all columns: some at a time, and those that are left.
#[test]
fn sums_of_rows_that_are_looked_up() {
    for (bags, each, width) in [(9, 20, 64), (5, 13, 40), (3, 7, 33)] {
        check_fused(&format!("{bags} sums of {each} rows of {width}"), |device| {
            let table = ordinary(device, DType::F32, [50, width], 1);
            let at = index(device, &[bags, each], 50, 3);
            let weights = ordinary(device, DType::F32, [bags, each, 1], 4);
            let (rows, scales) = (at.embedding(&table), ordinary(device, DType::F32, [50], 5));
            vec![
                near("means", rows.mean(1), 1e-5, 1e-5),
                near("weighed", (&rows * weights).sum(1), 1e-5, 1e-5),
                near("by another table", (&rows * scales.take(&at).unsqueeze(-1)).sum(1), 1e-5, 1e-5),
                exact("largest", rows.max(1)),
            ]
        });
    }
    let table = ordinary(&Device::cpu(), DType::F32, [50, 64], 1);
    let mut at = vec![3i64; 60];
    at[33] = 50;
    let at = Tensor::from_vec(at, [3, 20]);
    let error = at.embedding(&table).mean(1).eval().unwrap_err().to_string();
    assert!(error.contains("50"), "{error}");
}

/// A failed check leaves the tensor as it was, and others of the plan without values.
#[test]
fn after_an_error_nothing_is_settled() {
    let device = Device::cpu();
    let x = ordinary(&device, DType::F32, [5, 7], 1);
    let bad = x.index_select(0, &Tensor::from_slice(&[7], [1]));
    let good = x.exp();
    assert!(eval([&good, &bad]).is_err());
    assert!(!bad.is_evaluated());
    assert_eq!(good.to_vec::<f32>().unwrap().len(), 35);
}

#[test]
fn parts_are_exchanged_as_by_a_loop() {
    let cases: [(&str, View, Source, [usize; 2]); 8] = [
        ("row", |x| x.i(s![2]), |i, j| (i == 2).then_some(j), [1, 9]),
        ("column", |x| x.i(s![.., -1]), |i, j| (j == 8).then_some(i), [6, 1]),
        ("rows", |x| x.i(s![1..3]), |i, j| (1..3).contains(&i).then(|| (i - 1) * 9 + j), [2, 9]),
        ("backwards", |x| x.i(s![..;-1]), |i, j| Some((5 - i) * 9 + j), [6, 9]),
        (
            "every second",
            |x| x.i(s![.., 1..8;2]),
            |i, j| ((1..8).contains(&j) && (j - 1) % 2 == 0).then(|| i * 4 + (j - 1) / 2),
            [6, 4],
        ),
        (
            "box, backwards by threes",
            |x| x.i(s![..5;2, 7..;-3]),
            |i, j| (i < 5 && i % 2 == 0 && j <= 7 && (7 - j) % 3 == 0).then(|| i / 2 * 3 + (7 - j) / 3),
            [3, 3],
        ),
        ("nothing", |x| x.i(s![3..3]), |_, _| None, [0, 9]),
        ("all", |x| x.i(s![...]), |i, j| Some(i * 9 + j), [6, 9]),
    ];
    let indices: [&[lazuli::Index]; 8] = [
        &s![2],
        &s![.., -1],
        &s![1..3],
        &s![..;-1],
        &s![.., 1..8;2],
        &s![..5;2, 7..;-3],
        &s![3..3],
        &s![...],
    ];
    let x = counting(&[6, 9]);
    for ((name, part, source, [rows, columns]), indices) in cases.into_iter().zip(indices) {
        let count = rows * columns;
        assert_eq!(part(&x).shape().unwrap().elements(), count, "{name}");
        let expected: Vec<i32> =
            (0..54).map(|n| source(n / 9, n % 9).map_or(n as i32, |at| 100 + at as i32)).collect();
        let assign = |d: &Device| {
            let values = (counting(&[count]) + 100).to(d).reshape(part(&x).shape().unwrap());
            x.to(d).slice_assign(indices, values)
        };
        assert_is(name, assign, &[6, 9], &expected);
        assert_eq!(assign(&Device::cpu()).explain().unwrap().kernels(), 1, "{name}");
        check_fused(name, |d| {
            vec![exact("assigned", assign(d)), exact("number", x.to(d).slice_assign(indices, -1))]
        });
    }
}

#[test]
fn parts_are_scattered_in_one_kernel() {
    let build = |d: &Device| {
        let (x, y) = (floats(d, DType::F32, [4, 30, 6], 1.0, 1), floats(d, DType::F32, [4, 9, 6], 1.0, 2));
        x.exp().slice_scatter(1, &y.tanh(), 2, 28, 3) * 2.0
    };
    assert_one_kernel("slice_scatter", build);
    let again = |d: &Device| {
        let (x, y) = (floats(d, DType::F32, [4, 30, 6], 1.0, 1), floats(d, DType::F32, [4, 9, 6], 1.0, 2));
        (x.exp().slice_scatter(1, &y.tanh(), 2, 28, 3) * 2.0).slice_step(1, 2, 28, 3)
    };
    check("what was scattered is there", |d| {
        let y = floats(d, DType::F32, [4, 9, 6], 1.0, 2);
        vec![near("zero", again(d) - y.tanh() * 2.0, 0.0, 1e-6)]
    });
}

/// Positions that are not 0, and what a mask selects, against a loop.
#[test]
fn what_a_mask_selects() {
    for shape in [vec![], vec![0], vec![9], vec![3, 0, 2], vec![4, 5], vec![2, 3, 200]] {
        let count: usize = shape.iter().product();
        let x: Vec<i32> = (0..count as i32).map(|i| (i * 7 + 3) % 5 - 2).collect();
        let mut expected = Vec::new();
        for (flat, _) in x.iter().enumerate().filter(|(_, x)| **x != 0) {
            let mut rest = flat;
            let mut position: Vec<i64> = Vec::new();
            for &extent in shape.iter().rev() {
                position.push((rest % extent) as i64);
                rest /= extent;
            }
            expected.extend(position.into_iter().rev());
        }
        let selected: Vec<i32> = x.iter().copied().filter(|x| *x > 0).collect();
        for device in [Device::cpu(), Device::interpreter()] {
            let tensor = Tensor::from_slice(&x, &shape[..]).to(&device);
            let found = tensor.nonzero().unwrap();
            assert_eq!(found.shape().unwrap()[1], shape.len());
            assert_eq!(found.to_vec::<i64>().unwrap(), expected, "{shape:?} on {device}");
            let found = (&tensor + 1).masked_select(&tensor.gt(0)).unwrap();
            assert_eq!((found - 1).to_vec::<i32>().unwrap(), selected, "{shape:?} on {device}");
        }
    }
    let x = counting(&[2, 3]);
    let column = Tensor::from_slice(&[false, true], [2, 1]);
    assert_eq!(x.masked_select(&column).unwrap().to_vec::<i32>().unwrap(), [3, 4, 5]);
    for error in [x.masked_select(&x).unwrap_err(), x.masked_select(&x.slice(1, ..2).gt(0)).unwrap_err()] {
        assert!(
            error.to_string().contains("masked_select") && error.to_string().contains("gather.rs"),
            "{error}"
        );
    }
}

/// Boxes joined of two halves, in another order, beside something of each pair of them: with four boxes, as many as numbers of
/// each, both are results of one loop that is cut where the halves meet, and each part looks the positions up.
#[test]
fn joined_rows_at_computed_positions() {
    for count in [3, 4, 5, 16] {
        check_on_cpu(&format!("{count} boxes"), |device| {
            let corners = floats(device, DType::F32, [count, 4], 8.0, 1);
            let order = (Tensor::arange(0i64, count as i64, 1) * 3).remainder(count as i64).to(device);
            let ends = [corners.narrow(1, 0, 2) * 2.0, corners.narrow(1, 0, 2) + corners.narrow(1, 2, 2)];
            let boxes = Tensor::cat(&ends, 1).index_select(0, &order);
            let low = boxes.narrow(1, 0, 2).unsqueeze(1).maximum(boxes.narrow(1, 0, 2).unsqueeze(0));
            let high = boxes.narrow(1, 2, 2).unsqueeze(1).minimum(boxes.narrow(1, 2, 2).unsqueeze(0));
            let overlap = (high - low).clamp_min(0.0).prod(2);
            vec![exact("boxes", boxes), near("overlap", overlap, 1e-6, 1e-6)]
        });
    }
}

/// Short rows, of which a loop of its own brings in what is looked up; the rest of rows and of blocks too.
#[test]
fn short_rows_that_are_looked_up() {
    for (dtype, width, count) in [
        (DType::F32, 2, 700),
        (DType::F32, 3, 257),
        (DType::F64, 5, 300),
        (DType::I16, 4, 1000),
        (DType::I64, 8, 130),
    ] {
        check_on_cpu(&format!("{dtype}, {width}"), |device| {
            let table = floats(device, DType::F32, [90, width], 2.0, 3).cast(dtype);
            let rows = floats(device, DType::F32, [count, width], 2.0, 4).cast(dtype);
            let weights = floats(device, DType::F32, [count, 1], 2.0, 5).cast(dtype);
            let [one, other] = [7i64, 3]
                .map(|step| (Tensor::arange(0i64, count as i64, 1).to(device) * step + step).remainder(90));
            let (from, to) = (table.index_select(0, &one), table.index_select(0, &other));
            let apart = &from - &to;
            let chosen = apart.gt(0).where_(&apart * 2, &rows + &weights * &to);
            // Each element at a position of its own, and a position that is looked up itself.
            let turned =
                (Tensor::arange(0i64, width as i64, 1).to(device) + one.unsqueeze(1)).remainder(width as i64);
            let along = rows.gather(1, &turned).abs() * 3 + &apart;
            let twice = table.index_select(0, one.index_select(0, &other)).abs() * &weights - &from;
            vec![exact("chosen", chosen), exact("along", along), exact("twice", twice)]
        });
    }
}
