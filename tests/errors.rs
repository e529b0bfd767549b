//! Every operation's bad inputs, with the message that each gives: the page `snapshots/error_messages.snap`. A message
//! names the operation, what does not fit with shapes and dtypes, and the user's line, and lets the user mend it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

use std::collections::BTreeSet;
use std::fmt::Write;

use lazuli::operations::{self, Accepts};
use lazuli::{
    DType, Device, Error, Indexing, PadMode, Reduction, Result, Rounding, ScatterReduction, SourceLocation,
    Tensor, s,
};

/// What a call records, as its first error, if it has one.
trait Outcome {
    fn error(self) -> Option<Error>;
}

impl Outcome for Tensor {
    fn error(self) -> Option<Error> {
        self.shape().err()
    }
}

impl Outcome for Vec<Tensor> {
    fn error(self) -> Option<Error> {
        self.into_iter().find_map(Outcome::error)
    }
}

impl Outcome for (Tensor, Tensor) {
    fn error(self) -> Option<Error> {
        self.0.error().or(self.1.error())
    }
}

impl<const N: usize, const M: usize> Outcome for ([Tensor; N], [Tensor; M]) {
    fn error(self) -> Option<Error> {
        self.0.into_iter().chain(self.1).find_map(Outcome::error)
    }
}

impl Outcome for (Tensor, Tensor, Tensor) {
    fn error(self) -> Option<Error> {
        self.0.error().or(self.1.error()).or(self.2.error())
    }
}

impl<T: std::fmt::Debug> Outcome for Result<T> {
    fn error(self) -> Option<Error> {
        self.err()
    }
}

/// The error's text with its place replaced, and the name of the operation.
fn text(error: &Error) -> (&'static str, SourceLocation, String) {
    let (Error::InvalidOperation { op, location, .. } | Error::IndexOutOfRange { op, location, .. }) = error
    else {
        panic!("{error}")
    };
    let text = error.to_string();
    assert!(text.ends_with(&format!(", at {location}")), "{text}");
    (op, *location, text.replace(&location.to_string(), "src/main.rs:9:14"))
}

/// The page in sections, and which operations are on it.
#[derive(Default)]
struct Page {
    text: String,
    operations: BTreeSet<&'static str>,
}

impl Page {
    fn section(&mut self, title: &str) {
        write!(self.text, "## {title}\n\n").unwrap();
    }

    fn add(&mut self, call: &str, outcome: impl Outcome, (file, first_line): (&str, u32)) {
        let call: String = call.split_whitespace().collect::<Vec<_>>().join(" ");
        let Some(error) = outcome.error() else { panic!("{call} is no mistake") };
        let (op, location, text) = text(&error);
        assert_eq!(location.file, file, "{call}: {text}");
        let lines = first_line..first_line + 70; // Of the macro's call.
        assert!(lines.contains(&location.line), "{call}: line {}, not in {lines:?}", location.line);
        self.operations.insert(op);
        write!(self.text, "{call}\n    {text}\n\n").unwrap();
    }
}

macro_rules! mistakes {
    ($page:ident: $($call:expr;)*) => {$(
        $page.add(stringify!($call), $call, (file!(), line!()));
    )*};
}

#[path = "errors/computing.rs"]
mod computing;
#[path = "errors/named.rs"]
mod named;

fn tensor(dtype: DType, shape: &[usize]) -> Tensor {
    Tensor::ones(shape, dtype)
}

fn elementwise(page: &mut Page) {
    let (x, y) = (tensor(DType::F32, &[3, 4]), tensor(DType::F32, &[5]));
    let flag = tensor(DType::Bool, &[3]);
    page.section("Elementwise");
    mistakes! { page:
        &x + &y;
        x.add(tensor(DType::F32, &[2, 4]));
        &x * x.to(&Device::interpreter()) + x.to(&Device::cpu());
        -&flag;
        &flag - true;
        flag.pow(true);
        flag.rpow(true);
        flag.div_with(&flag, Rounding::Trunc);
        &x & 3;
        x.bitwise_or(3);
        x.bitwise_not();
        x.where_(&x, 0.0);
        x.gt(0.0).where_(&x, tensor(DType::F32, &[2, 4]));
        x.clamp(0.0, &y);
        x.hardtanh(1.0, -1.0);
        x.celu(0.0);
        x.softshrink(-0.5);
        x.isclose(&x, -1e-5, 0.0, false);
        x.isclose(&x, 0.0, f64::NAN, false);
        x.smooth_l1_loss(&x, -1.0, Reduction::Mean);
        x.huber_loss(&x, 0.0, Reduction::Mean);
        x.gaussian_nll_loss(&x, &x, false, f64::NAN, Reduction::Mean);
        x.gaussian_nll_loss(&y, &x, true, 1e-6, Reduction::Sum);
        x.margin_ranking_loss(&x, &y, 0.0, Reduction::Mean);
        x.triplet_margin_loss(&x, &x, 0.0, 2.0, false, Reduction::Mean);
        x.triplet_margin_loss(&x, &y, 1.0, 2.0, true, Reduction::Mean);
        x.cosine_embedding_loss(&x, &y, 0.0, Reduction::Mean);
        x.pairwise_distance(&x, f64::NAN, 1e-6);
        x.slice(1, 4..).nll_loss(&tensor(DType::I64, &[3]), Reduction::Mean);
        x.cosine_similarity(&x, 0, -1.0);
        // The first mistake is the one that is told.
        x.reshape([5]).relu() + x.permute([1]);
    }
}

fn constructors(page: &mut Page) {
    page.section("Constructors and random numbers");
    let (x, count) = (tensor(DType::F32, &[2, 3]), tensor(DType::I32, &[2, 3]));
    mistakes! { page:
        Tensor::from_vec(vec![1.0f32; 5], [2, 3]);
        Tensor::from_slice(&[1u8, 2], [3]);
        Tensor::zeros([1 << 40, 1 << 40], DType::F32);
        Tensor::arange(0i32, 10, 0);
        Tensor::arange(0, 4, -1);
        Tensor::arange(0.0, f64::INFINITY, 1.0);
        Tensor::arange(false, true, true);
        Tensor::arange_with(0, 1, 0.1, DType::Bool);
        Tensor::arange_with(0, 1, -0.1, DType::F16);
        Tensor::linspace(0.0, f64::NAN, 3, DType::F32);
        Tensor::linspace(0.0, 1.0, usize::MAX, DType::F32);
        Tensor::linspace(0.0, 1.0, 3, DType::Bool);
        Tensor::logspace(0.0, f64::INFINITY, 3, 10.0, DType::F32);
        Tensor::eye(1 << 40, DType::F32);
        Tensor::eye_with(1 << 40, 1 << 40, 0, DType::F32);
        Tensor::tri(1 << 40, 1 << 40, 0, DType::F32);
        x.one_hot(3);
        Tensor::rand([1 << 40, 1 << 40], 1);
        Tensor::rand_with([2], DType::I32, 1);
        Tensor::randn_with([2], DType::U8, 1);
        Tensor::randint(3, 3, [2], 1);
        Tensor::randint(i64::MIN, i64::MAX, [2], 1);
        count.bernoulli(1);
        count.multinomial(1, true, 1);
        x.multinomial(9, false, 1);
        x.slice(1, 4..).multinomial(1, true, 1);
        x.sum(..).multinomial(1, true, 1);
        x.slice(1, 4..).mode(1).1;
        count.dropout(0.5, 1);
        x.dropout(1.5, 1);
        x.alpha_dropout(-0.5, 1);
        count.gumbel_softmax(1.0, true, 0, 1);
        x.gumbel_softmax(0.0, true, 0, 1);
        x.gumbel_softmax(1.0, true, 2, 1);
        Tensor::tril_indices(1 << 40, 1 << 40, 0);
        Tensor::triu_indices(1 << 40, 1 << 40, 0);
        count.rand_like(1);
        count.randn_like(1);
    }
}

fn views(page: &mut Page) {
    page.section("Views");
    let (x, image) = (tensor(DType::F32, &[3, 4]), tensor(DType::F32, &[1, 3, 8, 8]));
    mistakes! { page:
        x.reshape([5, -1]);
        x.reshape([7, 2]);
        x.reshape([-1, -1]);
        x.reshape([-3, 4]);
        x.slice(0, 5..).reshape([0, -1]);
        x.flatten(1..1);
        x.flatten(0..3);
        x.unflatten(1, [3, -1]);
        x.unflatten(2, [2, 2]);
        x.permute([0, 0]);
        x.permute([0]);
        x.transpose(0, 2);
        x.swapaxes(-3, 0);
        x.movedim([0, 1], 0);
        x.movedim(0, 2);
        image.t();
        x.squeeze(2);
        x.unsqueeze(4);
        x.expand([3, 5]);
        x.expand([-1, 3, 4]);
        x.broadcast_to([4]);
        x.slice(5, ..);
        x.slice_step(0, None, None, 0);
        x.narrow(1, 2, 3);
        x.select(0, 3);
        x.i(s![0, 0, 0]);
        x.i(s![.., 4]);
        x.diff(2);
        x.gradient(2, 1.0);
        x.slice(1, ..1).gradient(1, 1.0);
        x.gradient(1, tensor(DType::F32, &[3]));
        x.slice(1, ..2).gradient_with(1, 1.0, 2);
        x.gradient_with(1, 1.0, 3);
        x.diag_embed(isize::MAX);
        x.diag_embed_with(0, 1, -2);
        x.i(s![..., ...]);
        x.i(s![..;0]);
        x.flip([0, 0]);
        x.roll(1, 2);
        x.roll([1, 2], 0);
        x.roll([1, 2, 3], ..);
        x.roll([1, 2], Vec::<isize>::new());
        x.rot90(1, [0, 0]);
        x.rot90(1, [0, 2]);
        x.repeat([2]);
        x.repeat([2, -1]);
        x.tile([-1]);
        x.tile([1i64 << 40, 1 << 40]);
        x.repeat_interleave(2, 2);
        x.repeat_interleave(usize::MAX, 0);
        x.diagonal(0, 0, 0);
        tensor(DType::F32, &[3]).diagonal(0, 0, 1);
        tensor(DType::F32, &[3]).tril(0);
        tensor(DType::F32, &[]).triu(0);
        image.pixel_shuffle(2);
        image.pixel_shuffle(0);
        x.pixel_shuffle(2);
        image.pixel_unshuffle(3);
        x.pixel_unshuffle(2);
        x.pad(&[(1, 1)], 0.0);
        x.pad(&[(1, 1), (usize::MAX, 0)], 0.0);
        x.pad(&[(-2, -2), (0, 0)], 0.0);
    }
    mistakes! { page:
        x.pad_with(&[(0, 0), (5, -5)], PadMode::Circular);
        x.pad_with(&[(1, 1)], PadMode::Reflect);
        x.pad_with(&[(3, 1), (0, 0)], PadMode::Reflect);
        x.pad_with(&[(1, 0), (4, -1)], PadMode::Reflect);
        x.pad_with(&[(0, 0), (-5, 0)], PadMode::Replicate);
        x.pad_with(&[(0, 0), (0, 5)], PadMode::Circular);
        x.slice(0, 3..).pad_with(&[(1, 0), (0, 0)], PadMode::Replicate);
        x.unfold(0, 4, 1);
        x.unfold(0, 0, 1);
        x.window(1, 2, 1, 4);
    }
}

fn joins(page: &mut Page) {
    page.section("Joins and parts");
    let (x, y) = (tensor(DType::F32, &[3, 4]), tensor(DType::F32, &[3, 5]));
    let (zero, image) = (tensor(DType::F32, &[]), tensor(DType::F32, &[1, 3, 8, 8]));
    mistakes! { page:
        x.channel_shuffle(2);
        image.channel_shuffle(2);
        image.channel_shuffle(0);
        Tensor::cat::<Tensor>(&[], 0);
        Tensor::cat(&[&x, &y], 0);
        Tensor::cat(&[&x, &x.ravel()], 0);
        Tensor::cat(&[&x, &x], 2);
        Tensor::cat(&[&zero, &zero], 0);
        Tensor::cat(&[&x, &x.to(&Device::interpreter()), &x.to(&Device::cpu())], 0);
        Tensor::stack::<Tensor>(&[], 0);
        Tensor::stack(&[&x, &y], 0);
        Tensor::stack(&[&x, &x], 3);
        x.hsplit(3);
        zero.hsplit(1);
        zero.hsplit_at([1]);
        tensor(DType::F32, &[7]).vsplit_at([1]);
        x.dsplit_at([1]);
        x.tensor_split_at([1], 2);
        x.vsplit(0);
        x.select(0, 0).vsplit(1);
        x.dsplit(1);
        Tensor::cartesian_prod(&[&x]);
        Tensor::cartesian_prod::<Tensor>(&[]);
        x.combinations(2, false);
        x.select(0, 0).combinations(65, true);
        x.split(0, 0);
        x.split(2, 2);
        x.split_sizes(&[1, 1], 0);
        x.chunk(0, 0);
        x.unbind(2);
        Tensor::meshgrid(&[&x.select(0, 0), &y], Indexing::Ij);
        x.reshape([7]).split(1, 0);
    }
}

fn gathers(page: &mut Page) {
    page.section("Computed positions and exchanged parts");
    let (x, index) = (tensor(DType::F32, &[3, 4]), tensor(DType::I64, &[2]));
    let (number, none) = (tensor(DType::F32, &[]), tensor(DType::F32, &[0, 4]));
    mistakes! { page:
        x.index_select(2, &index);
        number.index_select(0, &index);
        x.index_select(0, &x);
        x.index_select(0, &index.unsqueeze(0));
        none.index_select(0, &index);
        x.to(&Device::cpu()).index_select(0, &index.to(&Device::interpreter()));
        x.gather(-3, &tensor(DType::I64, &[3, 4]));
        x.gather(1, &index);
        x.gather(1, &tensor(DType::Bool, &[3, 4]));
        tensor(DType::F32, &[3, 4, 5]).gather(1, &tensor(DType::U8, &[4, 9, 6]));
        number.gather(1, &tensor(DType::I64, &[]));
        x.take_along_axis(&index, 0);
        x.take_along_axis(&tensor(DType::I64, &[2, 3]), 0);
        x.take(&number);
        none.take(&index);
        index.embedding(&tensor(DType::F32, &[3]));
        index.embedding_padded(&x, 99);
        x.embedding(&x);
        index.embedding_bag(&x, None, None, ScatterReduction::Sum);
        index.embedding_bag(&x, Some(&x), None, ScatterReduction::Sum);
        index.embedding_bag(&x, Some(&index.unsqueeze(0)), None, ScatterReduction::Sum);
        index.embedding_bag(&x, Some(&index), Some(&index), ScatterReduction::Sum);
        index.embedding_bag(&x, Some(&index), Some(&x.select(0, 0)), ScatterReduction::Sum);
        index.embedding_bag(&x, Some(&index), Some(&x.select(0, 0).slice(0, ..2)), ScatterReduction::Mean);
        index.embedding_bag(&x.cast(DType::I32), Some(&index), None, ScatterReduction::Amax);
        index.embedding_bag_padded(&x, Some(&index), None, ScatterReduction::Mean, 3);
        x.index::<Tensor>(&[]);
        x.index(&[&index, &index, &index]);
        x.index(&[&index, &tensor(DType::I64, &[3])]);
        x.index_put(&[&index], &tensor(DType::F32, &[3]), false);
        x.index_put(&[&index], &tensor(DType::I32, &[2, 4]), true);
        x.masked_scatter(&x, &x);
        x.masked_scatter(&tensor(DType::Bool, &[2, 3, 4]), &x);
        x.masked_scatter(&x.gt(0), &index);
        index.unravel_index([3, 0]);
        index.unravel_index([usize::MAX, 2]);
        x.unravel_index([3, 4]);
        x.slice_assign(s![3], 0.0);
        x.slice_assign(s![1.., ..;2], tensor(DType::F32, &[2, 3]));
        x.slice_scatter(2, &x, None, None, 1);
        x.slice_scatter(1, &x, None, None, 0);
        x.slice_scatter(1, &x, 1, None, 1);
        x.diagonal_scatter(&index, 0, 0, 1);
        x.diagonal_scatter(&index, 0, 1, -1);
    }
}

/// What is only known when values are asked for.
fn values(page: &mut Page) {
    page.section("Values");
    let x = tensor(DType::F32, &[3, 4]);
    let at = |index: i64| Tensor::from_slice(&[0, index], [2]);
    mistakes! { page:
        x.index_select(0, &at(3)).eval();
        x.index_select(-1, &at(-1)).sum(..).item::<f32>();
        x.gather(1, &at(4).unsqueeze(1)).to_vec::<f32>();
        x.take_along_axis(&at(i64::MIN).unsqueeze(0), 1).eval();
        x.take(&at(12)).eval();
        at(1).embedding_bag(&x, Some(&at(1).slice(0, 1..)), None, ScatterReduction::Sum).eval();
        at(1).embedding_bag(&x, Some(&at(-1)), None, ScatterReduction::Sum).eval();
        x.index(&[at(1), at(-5)]).eval();
        x.index_put(&[at(3)], &x.slice(0, ..1), true).eval();
        x.masked_scatter(&x.eq(&x), &x.slice(0, 1..)).eval();
        x.zeros_like().multinomial(2, true, 1).eval();
        x.zeros_like().multinomial(2, false, 1).eval();
        at(7).embedding(&x).to(&Device::interpreter()).softmax(1).eval();
        at(3).one_hot(3).eval();
        at(-1).cast(DType::I8).one_hot(3).sum(0).to_vec::<i64>();
        x.slice(0, ..2).cross_entropy(&at(4), Reduction::Mean).item::<f32>();
        x.slice(0, ..2).nll_loss(&at(-1), Reduction::None).to(&Device::interpreter()).eval();
    }
}

fn sorts(page: &mut Page) {
    page.section("Order");
    let (x, whole) = (tensor(DType::F32, &[3, 4]), tensor(DType::I32, &[3, 4]));
    let none = tensor(DType::F32, &[3, 0]);
    mistakes! { page:
        x.sort(2, false).0;
        x.argsort(-3, true);
        tensor(DType::F32, &[]).msort().sort(1, false).1;
        x.topk(5, 1, true).0;
        x.kthvalue(0, 1).0;
        x.kthvalue(4, 0).1;
        none.median(1).0;
        none.nanmedian(1).1;
        none.quantile(0.5, 1);
        whole.quantile(0.5, 1);
        x.quantile(1.5, 1);
        x.nanquantile(f64::NAN, 1);
        x.quantile([0.5, -0.5], 1);
        tensor(DType::F32, &[]).searchsorted(&x, false);
        x.searchsorted(&tensor(DType::F32, &[2, 4]), false);
        x.bucketize(&x, true);
    }
}

fn scatters(page: &mut Page) {
    page.section("Combining at computed positions");
    let (x, line) = (tensor(DType::F32, &[3, 4]), tensor(DType::I64, &[2]));
    let (index, whole) = (tensor(DType::I64, &[3, 4]), tensor(DType::I32, &[3, 4]));
    let (bools, none) = (tensor(DType::Bool, &[3, 4]), tensor(DType::F32, &[0, 4]));
    mistakes! { page:
        x.scatter(0, &line, &x);
        x.scatter(0, &index, &whole);
        x.scatter(1, &tensor(DType::I64, &[4, 4]), 1.0);
        x.scatter_add(2, &index, &x);
        x.scatter_add(0, &x, &x);
        x.scatter_add(0, &line, &x);
        x.scatter_add(0, &index, &tensor(DType::F32, &[4]));
        x.scatter_add(0, &index, &whole);
        x.scatter_add(0, &tensor(DType::I64, &[9, 5]), &tensor(DType::F32, &[9, 5]));
        x.scatter_add(1, &index, &tensor(DType::F32, &[2, 3]));
        none.scatter_add(0, &index, &x);
        bools.scatter_add(0, &index, &bools);
        bools.scatter_reduce(0, &index, &bools, ScatterReduction::Amax, true);
        x.scatter_reduce(-3, &index, &x, ScatterReduction::Mean, false);
        x.index_reduce(2, &line, &x, ScatterReduction::Prod, true);
        x.index_reduce(0, &line, &x, ScatterReduction::Prod, true);
        x.index_reduce(0, &line, &tensor(DType::F64, &[2, 4]), ScatterReduction::Amax, true);
        bools.index_reduce(0, &line, &bools.slice(0, ..2), ScatterReduction::Amax, true);
        x.index_add(2, &line, &x);
        x.index_add(0, &x, &x);
        x.index_add(0, &index, &x);
        x.index_add(0, &line, &x);
        x.index_add(1, &line, &tensor(DType::F64, &[3, 2]));
        tensor(DType::F32, &[]).index_add(0, &line, &x);
        whole.index_add_with(0, &line, &tensor(DType::I32, &[2, 4]), 0.5);
        x.bincount(3);
        index.bincount(3);
        line.bincount(0);
        line.bincount_with(3, &x);
        x.bincount_with(3, &line);
        whole.histc(3, 0.0, 1.0);
        x.histc(0, 0.0, 1.0);
        x.histc(3, 1.0, 0.5);
        x.histc(3, 0.0, f64::INFINITY);
    }
    let at = |value: i64| Tensor::from_slice(&[0, value], [2]);
    mistakes! { page:
        at(3).bincount(3).eval();
        at(-1).bincount_with(3, &tensor(DType::F32, &[2])).eval();
        x.index_add(1, &at(4), &tensor(DType::F32, &[3, 2])).sum(..).item::<f32>();
        x.scatter_add(0, &at(3).unsqueeze(1), &x).to_vec::<f32>();
        x.scatter(0, &at(3).unsqueeze(1), &x).to_vec::<f32>();
        x.scatter(1, &at(-1).unsqueeze(0), 0).eval();
        x.scatter_reduce(1, &at(i64::MAX).unsqueeze(0), &x, ScatterReduction::Mean, true).eval();
    }
}

fn questions(page: &mut Page) {
    page.section("Questions");
    let x = tensor(DType::F32, &[3, 4]);
    mistakes! { page:
        x.to_vec::<f64>();
        x.item::<f32>();
        x.sum(..).item::<f64>();
    }
}

/// The first dtype that each operation refuses, and operands that do not broadcast. The calls are those of the table.
fn refusals(page: &mut Page) {
    page.section("Dtypes that are refused");
    for operation in operations::all().filter(|operation| operation.accepts != Accepts::All) {
        let case = &operation.cases[0];
        let refused = DType::ALL.into_iter().filter(|&dtype| !operation.accepts.accepts(dtype));
        let Some(dtype) = refused.max_by_key(|dtype| dtype.is_float()) else { continue };
        let inputs: Vec<Tensor> = operation
            .inputs
            .iter()
            .map(|input| tensor(input.dtype.unwrap_or(dtype), input.shape.unwrap_or(&[2, 3])))
            .collect();
        let error =
            (case.record)(&inputs, dtype).error().unwrap_or_else(|| panic!("{} of {dtype}", case.rust));
        let (op, _, text) = text(&error);
        assert_eq!(op.trim_end_matches('_'), operation.name.trim_end_matches('_'), "{text}");
        page.operations.insert(op);
        write!(page.text, "{text}\n\n").unwrap();
    }
    page.section("Shapes that do not broadcast");
    for operation in operations::all().filter(|operation| operation.inputs.len() > 1) {
        if operation.inputs.iter().any(|input| input.shape.is_some()) {
            continue;
        }
        let dtype = DType::ALL.into_iter().rfind(|&dtype| operation.accepts.accepts(dtype)).unwrap();
        let inputs: Vec<Tensor> = operation
            .inputs
            .iter()
            .enumerate()
            .map(|(n, input)| tensor(input.dtype.unwrap_or(dtype), &[2, 3 + n]))
            .collect();
        let error = (operation.cases[0].record)(&inputs, dtype).error().expect(operation.name);
        let (op, _, text) = text(&error);
        page.operations.insert(op);
        write!(page.text, "{text}\n\n").unwrap();
    }
}

#[test]
fn messages_of_every_operation() {
    let mut page = Page::default();
    for part in [
        elementwise,
        constructors,
        views,
        joins,
        gathers,
        scatters,
        sorts,
        values,
        computing::reductions,
        computing::steps,
        computing::layers,
        computing::windows,
        computing::products,
        computing::spectra,
        computing::sequences,
        named::further_arguments,
        named::names,
        named::renamed,
        named::numpy,
        named::draws_and_points,
        named::numbers,
        questions,
        refusals,
    ] {
        part(&mut page);
    }
    // Whatever has arguments, or does not take every dtype, can be called in a way that does not fit.
    let cannot_fail = |operation: &&operations::Operation| {
        let name = operation.name;
        let twin = name.trim_end_matches("_keepdim").trim_end_matches("_like");
        page.operations.contains(name.trim_end_matches('_')) || page.operations.contains(twin)
    };
    let takes_all =
        ["cast", "full_like", "isin", "nan_to_num", "ravel", "polygamma", "ones", "full", "zeros", "randn"];
    let missing: Vec<&str> = operations::all()
        .filter(|operation| !cannot_fail(operation) && !takes_all.contains(&operation.name))
        .filter(|operation| operation.accepts != Accepts::All || !operation.cases[0].rust.ends_with("()"))
        .map(|operation| operation.name)
        .collect();
    assert!(missing.is_empty(), "no bad inputs on the page: {missing:?}");
    insta::with_settings!({
        snapshot_path => "../snapshots",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, { insta::assert_snapshot!("error_messages", page.text) });
}
