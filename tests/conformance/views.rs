//! Proves that views read the right elements: each by itself, in what is computed from it, in what is reduced from
//! it, before and after other views, and of tensors that are themselves computed. Everything here is exact: the
//! elements are small integers.

use lazuli::{DType, Tensor};

use crate::common::data::{mixed, ordinary};
use crate::common::{Output, check, check_fused, exact};

type View = fn(&Tensor) -> Tensor;

/// Views of a [4, 6, 5] tensor.
const VIEWS: [(&str, View); 44] = [
    ("reshape", |x| x.reshape([10, 12])),
    ("reshape uneven", |x| x.reshape([8, 15])),
    ("flatten", |x| x.flatten(..)),
    ("flatten last", |x| x.flatten(1..)),
    ("permute 210", |x| x.permute([2, 1, 0])),
    ("permute 120", |x| x.permute([1, 2, 0])),
    ("permute 021", |x| x.permute([0, 2, 1])),
    ("transpose", |x| x.transpose(0, -1)),
    ("t", |x| x.flatten(1..).t()),
    ("squeeze", |x| x.slice(1, 2..3).squeeze(..)),
    ("unsqueeze", |x| x.unsqueeze(1)),
    ("expand", |x| x.unsqueeze(1).expand([-1, 3, -1, -1])),
    ("expand first", |x| x.expand([2, 4, 6, 5])),
    ("broadcast_to", |x| x.narrow(2, 1, 1).broadcast_to([4, 6, 7])),
    ("slice", |x| x.slice(1, 1..5)),
    ("slice last", |x| x.slice(-1, -3..)),
    ("slice to nothing", |x| x.slice(0, 3..1)),
    ("step", |x| x.slice_step(1, None, None, 2)),
    ("step last", |x| x.slice_step(2, 1, None, 3)),
    ("step back", |x| x.slice_step(1, None, None, -1)),
    ("step back by two", |x| x.slice_step(2, 4, None, -2)),
    ("step back partly", |x| x.slice_step(0, -1, 0, -1)),
    ("narrow", |x| x.narrow(0, 1, 2)),
    ("select", |x| x.select(1, -2)),
    ("select last", |x| x.select(2, 0)),
    ("pad", |x| x.pad(&[(0, 0), (1, 2), (0, 3)], 7)),
    ("pad all", |x| x.pad(&[(1, 1), (2, 0), (3, 1)], 1)),
    ("pad far", |x| x.select(0, 0).pad(&[(9, 0), (0, 9)], 2)),
    ("flip", |x| x.flip(1)),
    ("flip last", |x| x.flip(-1)),
    ("flip all", |x| x.flip(..)),
    ("unfold", |x| x.unfold(1, 3, 2)),
    ("unfold last", |x| x.unfold(2, 2, 1)),
    ("window", |x| x.window(1, 2, 1, 3)),
    ("pad then slice", |x| x.pad(&[(0, 0), (2, 2), (2, 2)], 3).slice(1, 1..7).slice(2, 1..-2)),
    ("pad then pad", |x| x.pad(&[(0, 0), (1, 0), (0, 1)], 3).pad(&[(1, 0), (0, 1), (1, 1)], 4)),
    ("pad then flip", |x| x.pad(&[(0, 1), (1, 0), (2, 1)], 5).flip([0, 2])),
    ("pad then unfold", |x| x.pad(&[(0, 0), (1, 1), (1, 1)], 1).unfold(1, 3, 1).unfold(2, 3, 2)),
    ("pad then reshape", |x| x.pad(&[(0, 0), (1, 1), (0, 3)], 6).reshape([8, 32])),
    ("permute then reshape", |x| x.permute([1, 0, 2]).reshape([12, 10])),
    ("reshape then permute", |x| x.reshape([2, 2, 6, 5]).permute([1, 3, 0, 2])),
    ("reshape then slice", |x| x.reshape([24, 5]).slice_step(0, -2, 3, -3)),
    ("flip then permute then reshape", |x| x.flip(2).permute([2, 0, 1]).flatten(..2)),
    ("expand then reshape", |x| x.unsqueeze(2).expand([-1, -1, 2, -1]).reshape([4, 12, 5])),
];

/// The view itself, what is computed from it, and what is reduced from it.
fn uses(name: &str, y: &Tensor) -> Vec<Output> {
    let rank = y.shape().map_or(0, |shape| shape.rank()) as isize;
    let whole = |x: &Tensor| match x.dtype() {
        Ok(dtype) if dtype.is_float() => x.clone(),
        _ => x.cast(DType::I64),
    };
    let mut outputs = vec![
        exact(name, y.clone()),
        exact(format!("{name}, computed"), y + y),
        exact(format!("{name}, sum of all"), whole(y).sum(..)),
    ];
    if rank > 0 {
        outputs.push(exact(format!("{name}, sum of the first"), y.sum(0)));
        outputs.push(exact(format!("{name}, sum of the last"), y.sum(-1)));
    }
    outputs
}

#[test]
fn views_of_data() {
    for (name, view) in VIEWS {
        check(&format!("view {name}"), |device| {
            uses(name, &view(&ordinary(device, DType::F32, [4, 6, 5], 3)))
        });
    }
}

#[test]
fn views_of_every_dtype() {
    for dtype in DType::ALL {
        check_fused(&format!("views of {dtype}"), |device| {
            let x = mixed(device, dtype, [4, 6, 5], 1, 3);
            VIEWS.iter().map(|(name, view)| exact(*name, view(&x))).collect()
        });
    }
}

/// What is computed is read through the view, within one kernel or through memory.
#[test]
fn views_of_results() {
    for (number, (name, view)) in VIEWS.into_iter().enumerate() {
        check_fused(&format!("view {name} of a result"), |device| {
            let x = ordinary(device, DType::F32, [4, 6, 5], 5);
            let y = &x * 2.0 + 1.0;
            let mut outputs = uses(name, &view(&y));
            // Both the value and views of it.
            outputs.push(exact("the result", y.clone()));
            let reduced = y.sum_keepdim((number % 3) as isize).expand([4, 6, 5]);
            outputs.push(exact("of a reduction", view(&(&reduced - &y))));
            outputs
        });
    }
}

#[test]
fn views_of_views() {
    const OTHERS: [(&str, View); 8] = [
        ("flipped", |x| x.flip(..)),
        ("transposed", |x| x.transpose(0, -1)),
        ("padded", |x| x.pad(&vec![(1, 2); x.shape().map_or(0, |s| s.rank())], 5)),
        ("flattened", |x| x.flatten(..)),
        ("halved", |x| x.slice_step(0, None, None, 2)),
        ("reversed by twos", |x| x.slice_step(-1, None, None, -2)),
        ("unfolded", |x| x.unfold(0, 1, 1)),
        ("repeated", |x| {
            x.unsqueeze(0).expand(&*[&[3], &x.shape().map_or(vec![], |s| s.to_vec())[..]].concat())
        }),
    ];
    for (name, view) in VIEWS.into_iter().filter(|(name, _)| *name != "slice to nothing") {
        check_fused(&format!("views of view {name}"), |device| {
            let x = ordinary(device, DType::I32, [4, 6, 5], 7);
            let mut outputs = Vec::new();
            for (other, second) in OTHERS {
                let y = second(&view(&x));
                outputs.push(exact(format!("{name}, {other}"), &y * 3 + 1));
                let y =
                    view(&second(&x).reshape([-1]).pad(&[(0, 120)], 2).slice(0, ..120).reshape([4, 6, 5]));
                outputs.push(exact(format!("{other}, {name}"), y.maximum(2)));
            }
            outputs
        });
    }
}

#[test]
fn views_of_nothing_and_of_one() {
    check("empty", |device| {
        let x = ordinary(device, DType::F32, [3, 0, 2], 1);
        vec![
            exact("reshape", x.reshape([0, 7])),
            exact("permute", x.permute([2, 0, 1])),
            exact("pad", x.pad(&[(0, 1), (2, 1), (1, 0)], 4.5)),
            exact("pad computed", (&x + 1.0).pad(&[(0, 0), (1, 0), (0, 0)], -1.0) * 2.0),
            exact("flip", x.flip(..)),
            exact("slice", x.slice(0, 1..)),
            exact("expand", x.unsqueeze(0).expand([4, 3, 0, 2])),
            exact("expand to nothing", ordinary(device, DType::F32, [3, 1], 1).expand([3, 0])),
            exact("select", x.select(2, 1)),
        ]
    });
    check("one", |device| {
        let x = ordinary(device, DType::F32, [], 1);
        vec![
            exact("reshape", x.reshape([1, 1])),
            exact("flatten", x.flatten(..)),
            exact("expand", x.expand([2, 3])),
            exact("pad", x.unsqueeze(0).pad(&[(2, 1)], 9.0)),
            exact("flip", x.reshape([1]).flip(0)),
            exact("select", x.reshape([1]).select(0, 0)),
            exact("permute", x.permute(Vec::<i64>::new())),
        ]
    });
}

/// Sizes at which transposes are tiled, and copies use wide accesses.
#[test]
fn larger_transposes_and_copies() {
    for dtype in [DType::U8, DType::F16, DType::F32, DType::F64] {
        check_fused(&format!("larger views of {dtype}"), |device| {
            let x = ordinary(device, dtype, [65, 70], 11);
            let y = ordinary(device, dtype, [3, 33, 64], 12);
            let row = ordinary(device, dtype, [65], 13);
            vec![
                exact("transposed", x.t()),
                exact("transposed and computed", x.t().maximum(&row)),
                exact("and not", &x + x.reshape([70, 65]).t()),
                exact("batch", y.transpose(1, 2)),
                exact("first to last", y.permute([1, 2, 0])),
                exact("aligned part", y.slice(2, 16..48)),
                exact("odd part", y.slice(2, 3..)),
                exact("reversed", y.flip(2)),
                exact("interior", x.slice(0, 1..-1).slice(1, 1..-1)),
                exact("bordered", x.pad(&[(1, 1), (2, 2)], 1)),
            ]
        });
    }
}

/// Neighbours combined: stencils, differences, blurs.
#[test]
fn shifted_reads_of_one_tensor() {
    check("stencils", |device| {
        let x = ordinary(device, DType::F32, [19, 23], 2);
        let padded = x.pad(&[(1, 1), (1, 1)], 0.0);
        let part = |r: isize, c: isize| padded.slice(0, r..r + 19).slice(1, c..c + 23);
        let laplacian = part(0, 1) + part(2, 1) + part(1, 0) + part(1, 2) - part(1, 1) * 4.0;
        let difference = x.slice(1, 1..) - x.slice(1, ..-1);
        vec![
            exact("laplacian", laplacian),
            exact("difference", difference),
            exact("symmetric", &x + x.flip(1)),
            exact("moving sum", x.unfold(1, 4, 1).sum(-1)),
            exact("moving maximum", x.pad(&[(0, 0), (2, 2)], -100.0).unfold(1, 5, 1).max(-1)),
        ]
    });
}
