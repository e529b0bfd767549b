//! Views that divide positions, before everything that reads neighbours: a view may be stored or be part of the kernel that reads it, and
//! the values are the same. Borders after them, which move positions beyond an axis.

use lazuli::{Conv2d, DType, Device, PadMode, Pool2d, Target, Tensor, s};

use crate::common::data::floats;
use crate::common::{Output, check_fused, check_on_cpu, exact, near};

type View = (&'static str, fn(&Tensor) -> Tensor);

/// Of images of [2, 8, 12, 10], in the same shape.
const VIEWS: [View; 9] = [
    ("rolled", |x| x.roll([-3, 2], [2, 3])),
    ("rolled outside", |x| x.roll(1, 1)),
    ("channels shuffled", |x| x.reshape([2, 4, 2, 12, 10]).transpose(1, 2).reshape([2, 8, 12, 10])),
    ("pixels shuffled", |x| x.reshape([2, 32, 6, 5]).pixel_shuffle(2)),
    ("squares", |x| x.reshape([2, 8, 3, 4, 2, 5]).permute([0, 1, 2, 4, 3, 5]).reshape([2, 8, 12, 10])),
    ("enlarged", |x| x.i(s![.., .., ..6, ..5]).repeat_interleave(2, 2).repeat_interleave(2, 3)),
    ("tiled", |x| x.i(s![.., .., ..4, ..5]).tile([1, 1, 3, 2])),
    ("interleaved", |x| Tensor::stack([x.i(s![..., ..5]), x.i(s![..., 5..])], 4).flatten(3..)),
    ("every second", |x| x.slice_assign(s![.., .., .., ..;2], x.i(s![..., 1..;2]) * 2.0)),
];

/// What reads neighbours of an image.
fn readers(name: &str, x: &Tensor) -> Vec<Output> {
    let named = |reader: &str| format!("{name}, {reader}");
    let pool = Pool2d::new(3).stride(2).padding(1);
    let rows = x.reshape([2, 8, 120]);
    vec![
        exact(&named("pooled"), x.max_pool2d_with(pool)),
        near(&named("blocks"), x.avg_pool2d(2, 2), 1e-5, 1e-5),
        exact(&named("windows"), x.unfold2d(3, Conv2d::new().padding(1))),
        near(&named("sums of windows"), x.unfold2d(3, Conv2d::new().padding(1)).sum(1), 1e-5, 1e-5),
        exact(&named("slopes"), x.i(s![.., .., 1.., 1..]) - x.i(s![.., .., ..-1, ..-1])),
        near(&named("softmax"), x.softmax(3), 1e-5, 1e-5),
        near(&named("softmax of channels"), x.softmax(1), 1e-5, 1e-5),
        near(&named("norm"), rows.layer_norm([120], None, None, 1e-5), 1e-4, 1e-4),
        exact(&named("position"), rows.argmax(2)),
        near(&named("running"), x.cumsum(3), 1e-5, 1e-5),
        near(&named("product"), x.matmul(x.transpose(2, 3)), 1e-4, 1e-4),
        exact(&named("bordered"), x.pad_with(&[(0, 0), (0, 0), (2, 1), (1, 2)], PadMode::Reflect).roll(3, 3)),
        exact(&named("beside itself"), x.relu() + x.roll(1, 3)),
    ]
}

#[test]
fn views_before_what_reads_neighbours() {
    for (name, view) in VIEWS {
        check_on_cpu(name, |device| {
            let x = floats(device, DType::F32, [2, 8, 12, 10], 2.0, 3);
            readers(name, &view(&x))
        });
    }
}

#[test]
fn views_of_what_is_computed() {
    check_fused("views", |device| {
        let x = floats(device, DType::F32, [2, 8, 12, 10], 2.0, 5);
        let of = |(name, view): View| {
            let y = view(&x.sigmoid());
            let windows = y.unfold2d(3, Conv2d::new().padding(1)).max(1);
            [near(name, windows, 1e-5, 1e-5), near(name, y.square().sum(3), 1e-5, 1e-5)]
        };
        VIEWS.into_iter().flat_map(of).collect()
    });
}

/// Neighbours of a view that divides are read one by one in a loop that has vectors otherwise: it is stored before.
#[test]
fn a_view_is_stored_where_its_positions_would_be_divided_again_and_again() {
    let x = Tensor::rand([2, 8, 56, 48], 1).to(&Device::cpu());
    x.eval().unwrap();
    let kernels = |y: &Tensor| y.explain().unwrap().kernels();
    let pool = Pool2d::new(3).stride(1).padding(1);
    assert_eq!(kernels(&x.roll(3, 3).max_pool2d_with(pool)), 2);
    assert_eq!(kernels(&x.roll(3, 3).softmax(3)), 2);
    // Loops go from quotient to quotient where nothing else is asked for.
    assert_eq!(kernels(&(x.roll(3, 3).tanh() + &x)), 1);
    assert_eq!(kernels(&x.reshape([2, 32, 28, 24]).pixel_shuffle(2).tanh()), 1);
    // Whole rows are summed in memory's order.
    assert_eq!(kernels(&x.reshape([2, 32, 28, 24]).pixel_shuffle(2).mean([2, 3])), 1);
    // A border moves rows and columns, not channels: no quotient of these is one of all positions.
    let shuffled = x.reshape([2, 4, 2, 56, 48]).transpose(1, 2).reshape([2, 8, 56, 48]);
    let program = shuffled.unfold2d(3, Conv2d::new().padding(1)).compile_for(&Target::cuda("sm_90")).unwrap();
    let load = program.source().lines().find(|line| line.contains("in0[")).unwrap().to_owned();
    assert_eq!(load.matches(['%', '/']).count(), 1, "{load}");
}
