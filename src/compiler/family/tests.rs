//! Plans that follow from others are those that are made.

use lazuli_codegen::Language;
use lazuli_codegen::schedule::Matrices;

use super::super::{plan_to_run, uncached};
use super::growth::is_same;
use crate::compiler::Settings;
use crate::recording::build::build;
use crate::{Attention, DType, Fusion, Tensor};

fn settings(language: Language, fusion: Fusion) -> Settings {
    let shared_bytes = if language == Language::Cuda { 227 << 10 } else { 0 };
    Settings { language, fusion, shared_bytes, matrices: Matrices::Warps, undone: None, tuned: None }
}

/// An evaluated tensor.
fn t(shape: &[usize]) -> Tensor {
    Tensor::from_vec(vec![0.5f32; shape.iter().product()], shape.to_vec())
}

fn positions(count: usize) -> Tensor {
    Tensor::from_vec((0..count as i64).map(|i| i % 3).collect::<Vec<i64>>(), [count])
}

type Program = fn(usize) -> Vec<Tensor>;

/// A program by name, and whether its plans follow for at least a third of the sizes, in C.
const PROGRAMS: &[(&str, bool, Program)] = &[
    ("elementwise", true, |n| vec![(t(&[n, 24]) * 1.7 + 0.3).tanh()]),
    ("vector", true, |n| vec![t(&[n]).exp() - 0.1]),
    ("softmax of rows", true, |n| vec![t(&[n, 24]).softmax(1)]),
    ("softmax of columns", true, |n| vec![t(&[n, 24]).softmax(0)]),
    ("longer rows", true, |n| vec![t(&[6, n]).softmax(1)]),
    ("layer norm of longer rows", true, |n| vec![t(&[6, n]).layer_norm([n], None, None, 1e-5) * 1.3]),
    ("mean of all", true, |n| vec![t(&[n, 24]).mean(0), t(&[n, 24]).sum(1)]),
    ("variance", true, |n| vec![t(&[n, 24]).var(0, 1)]),
    ("a cache that grows", true, |n| vec![Tensor::cat(&[&t(&[n, 24]), &(t(&[1, 24]) * 0.7)], 0)]),
    ("a cache that grows inside", true, |n| vec![Tensor::cat(&[&t(&[2, 3, n, 8]), &t(&[2, 3, 1, 8])], 2)]),
    ("two of a size joined", true, |n| vec![Tensor::cat(&[&t(&[7, n]), &(t(&[7, n]) * 0.3)], 1)]),
    ("three joined", false, |n| vec![Tensor::cat(&[&t(&[7, n]), &t(&[7, 9]), &t(&[7, n])], 1)]),
    ("transposed", true, |n| vec![t(&[n, 9, 24]).permute([2, 0, 1]) * 0.7]),
    ("turned round", true, |n| vec![t(&[n, 24]).flip(&[0]) + t(&[n, 1])]),
    ("cut", true, |n| vec![t(&[n + 7, 24]).slice(0, 7..) * t(&[n, 24])]),
    ("cut inside", false, |n| vec![t(&[6, n]).slice_step(1, 2, -3, 1).sum(1)]),
    ("every other", false, |n| vec![t(&[6, 2 * n]).slice_step(1, 0, 2 * n as isize, 2) * 0.7]),
    ("neighbours", true, |n| vec![t(&[n, 24]).slice(0, 1..) - t(&[n, 24]).slice(0, ..-1)]),
    ("windows", false, |n| vec![t(&[3, n + 4]).unfold(1, 5, 1).sum(2)]),
    ("rolled", false, |n| vec![t(&[n, 24]).roll(7, 0) * 0.7]),
    ("rolled inside", false, |n| vec![t(&[5, n]).roll(7, 1) * 0.7]),
    ("repeated", false, |n| vec![t(&[n, 9]).repeat(&[2, 1]) + 0.3]),
    ("flattened", true, |n| vec![t(&[n, 9, 24]).reshape([n * 216]) * 0.7]),
    ("parted", false, |n| vec![t(&[n * 12, 9]).reshape([n, 108]).sum(1)]),
    ("product", true, |n| vec![t(&[n, 24]).matmul(&t(&[24, 40]))]),
    ("product inside", true, |n| vec![t(&[24, n]).matmul(&t(&[n, 40]))]),
    ("product to columns", true, |n| vec![t(&[24, 40]).matmul(&t(&[40, n])).relu()]),
    ("square product", false, |n| vec![t(&[n, n]).matmul(&t(&[n, n]))]),
    ("attention", false, |n| {
        let x = t(&[2, n, 16]);
        vec![x.scaled_dot_product_attention(&x, &x, &Attention::default())]
    }),
    ("attention of one query", true, |n| {
        let (keys, new) = (Tensor::cat(&[&t(&[2, 6, n, 16]), &t(&[2, 6, 1, 16])], 2), t(&[2, 6, 1, 16]));
        vec![new.scaled_dot_product_attention(&keys, &(&keys * 0.7), &Attention::default())]
    }),
    ("cumulative sum", true, |n| vec![t(&[n, 24]).cumsum(0), t(&[n, 24]).cumsum(1)]),
    ("cumulative sum of longer rows", false, |n| vec![t(&[24, n]).cumsum(1)]),
    ("rows by number", true, |n| vec![t(&[50, 24]).index_select(0, &positions(n)) * 0.7]),
    ("rows of more", true, |n| vec![t(&[n, 24]).index_select(0, &positions(9)) * 0.7]),
    ("sorted", false, |n| vec![t(&[5, n]).argsort(1, false)]),
    ("largest", true, |n| vec![t(&[n, 24]).argmax(1), t(&[n, 24]).max(0)]),
    ("windows of images", false, |n| {
        vec![t(&[n, 3, 12, 12]).relu().unfold(2, 2, 2).unfold(3, 2, 2).max([4, 5])]
    }),
    ("random", true, |n| vec![Tensor::rand([n, 24], n as u64) * t(&[n, 24])]),
    ("in f16", true, |n| vec![(t(&[n, 24]).cast(DType::F16) * 1.7).softmax(1)]),
    ("positions", true, |n| vec![Tensor::arange(0, n as i64, 1).cast(DType::F32) * t(&[n])]),
    ("below the diagonal", false, |n| vec![t(&[n, n]).tril(0)]),
    ("numbers of the sizes", true, |n| vec![t(&[n, 24]) * (n as f64 + 0.3), t(&[n, 24]) / n as f64]),
    ("numbers of numbers", false, |n| {
        let (a, b) = (Tensor::full([n], n as f64 + 0.3, DType::F32), Tensor::full([n], 50.3, DType::F32));
        vec![t(&[n]) * (&a + &b), a.lt(&b).where_(&t(&[n]), 0.7), a.maximum(&b) - t(&[n])]
    }),
    ("numbers that are equal at times", false, |n| {
        vec![
            t(&[n, 24]) * (n as f64 + 0.5) + ((n % 7) as f64 * 10.0 + 20.5),
            t(&[n]).clamp(0.7, n as f64 / 40.0),
        ]
    }),
    ("dropped out", true, |n| vec![t(&[n, 24]).dropout(0.3, n as u64 * 7) + Tensor::randn([n, 24], 3)]),
    ("a step of a text", true, step),
];

/// What a token of a text takes whose cache grows: two layers.
fn step(n: usize) -> Vec<Tensor> {
    let (mut x, mut kept) = (t(&[1, 48]), Vec::new());
    for _ in 0..2 {
        let normal = x.rms_norm([48], Some(&t(&[48])), 1e-5);
        let heads = || normal.linear(&t(&[48, 48]), None).reshape([1, 1, 6, 8]).transpose(1, 2);
        let angles = Tensor::arange(0, 4, 1).cast(DType::F32).exp() * n as f64;
        let (a, b) = (heads().slice(-1, ..4), heads().slice(-1, 4..));
        let key = Tensor::cat(&[&(&a * &angles.cos() - &b * &angles.sin()), &(a * angles.sin() + b)], -1);
        let keys = Tensor::cat(&[&t(&[1, 6, n, 8]), &key], 2);
        let values = Tensor::cat(&[&t(&[1, 6, n, 8]), &heads()], 2);
        let attended = heads().scaled_dot_product_attention(&keys, &values, &Attention::default());
        x = x + attended.transpose(1, 2).reshape([1, 48]).linear(&t(&[48, 48]), None);
        let hidden = x.rms_norm([48], None, 1e-5).linear(&t(&[100, 48]), None).silu();
        x = &x + hidden.linear(&t(&[48, 100]), None);
        kept.extend([keys, values]);
    }
    kept.push(x);
    kept
}

/// Those that are planned, and those that then may follow: among them other sizes of the programs, and multiples of these.
const SIZES: &[usize] = &[
    20, 21, 22, 23, 24, 27, 30, 31, 32, 33, 34, 36, 40, 41, 48, 50, 56, 60, 63, 64, 65, 66, 72, 80, 96, 100,
    108, 119, 127, 128,
];

#[test]
fn what_follows_is_what_is_made() {
    let mut rare = Vec::new();
    for &(name, is_common, program) in PROGRAMS {
        for language in [Language::C, Language::Cuda] {
            let settings = settings(language, Fusion::On);
            let mut following = 0;
            for &n in SIZES {
                let graph = build(&program(n)).unwrap().graph;
                let plan = plan_to_run(&graph, settings).unwrap();
                if plan.follows {
                    following += 1;
                    let made = uncached(&graph, settings).unwrap();
                    assert!(
                        is_same(&plan, &made) || !super::growth::has_groups_of(&plan, &made),
                        "{name} of {n}, {language:?}"
                    );
                }
            }
            if is_common && language == Language::C && following * 3 < SIZES.len() {
                rare.push(format!("{name}, {language:?}: {following}"));
            }
        }
    }
    assert!(rare.is_empty(), "of few sizes plans follow: {rare:?}");
}
