//! Plans of other sizes, and kernels whose registers run out, as NVRTC sees them.

#![allow(clippy::unwrap_used)] // A failed assumption stops the test.

use lazuli_codegen::Language;
use lazuli_codegen::schedule::{Matrices, Schedule};

use super::emission::figures;
use super::*;
use crate::graph::domain::Hero;
use crate::recording::build::build;
use crate::runtime::cuda::nvrtc::{Nvrtc, default_options};
use crate::{Attention, DType, Tensor};

const SETTINGS: Settings = Settings {
    language: Language::Cuda,
    fusion: Fusion::On,
    shared_bytes: 227 << 10,
    matrices: Matrices::Groups,
    undone: None,
    tuned: None,
};

/// The sum of the inputs is needed before the first of them is done with: all stay in registers until then.
fn crowded(inputs: u64, dtype: DType) -> Tensor {
    let inputs: Vec<Tensor> = (0..inputs)
        .map(|seed| {
            let input = Tensor::rand([1 << 15], seed).cast(dtype);
            input.eval().unwrap();
            input
        })
        .collect();
    let sum = inputs[1..].iter().fold(inputs[0].clone(), |sum, input| sum + input);
    inputs.iter().fold(sum.clone(), |product, input| product * (&sum - input))
}

/// What the kernels spill for an architecture.
fn spilling(plan: &Plan, compiler: &Nvrtc) -> Vec<(usize, u32)> {
    let spilled = plan.kernels.iter().map(|kernel| {
        let (name, source) = (&kernel.code.emitted.name, &kernel.code.emitted.source);
        let cubin = compiler.compile(name, source, "sm_90", default_options()).unwrap();
        cubin.inspect(name).unwrap().spill_bytes
    });
    spilled.enumerate().filter(|&(_, bytes)| bytes > 0).collect()
}

#[test]
fn what_spills_gets_low_pressure() {
    let Ok(compiler) = Nvrtc::get() else { return println!("not checked: there is no NVRTC") };
    let result = crowded(80, DType::F32);
    let graph = build(&[result]).unwrap().graph;
    let plan = uncached(&graph, SETTINGS).unwrap();
    assert_eq!(plan.kernels[0].code.emitted.schedule.to_string(), "pointwise(threads=256, vec=4)");
    let spilled = spilling(&plan, compiler);
    assert_eq!(spilled.len(), 1, "320 values in 255 registers");
    let relieved = relieved(&graph, &plan, &spilled).unwrap().unwrap();
    assert_eq!(relieved.kernels.len(), 1);
    assert_eq!(relieved.kernels[0].code.emitted.schedule.to_string(), "pointwise(threads=256, vec=1)");
    assert_eq!(spilling(&relieved, compiler), []);
    // From now on the plan of this graph.
    assert!(Arc::ptr_eq(&super::plan(&graph, SETTINGS).unwrap(), &relieved));
}

#[test]
fn what_spills_all_the_same_becomes_smaller() {
    let graph = build(&[crowded(60, DType::F32)]).unwrap().graph;
    let mut plan = Arc::new(uncached(&graph, SETTINGS).unwrap());
    let mut groups = vec![plan.grouping.groups.len()];
    // Whatever is tried, each kernel spills: at last each operation is one, and there is no more to try.
    while let Some(next) = {
        let all: Vec<(usize, u32)> = (0..plan.kernels.len()).map(|number| (number, 100)).collect();
        relieved(&graph, &plan, &all).unwrap()
    } {
        plan = next;
        groups.push(plan.grouping.groups.len());
    }
    assert_eq!(groups[..2], [1, 1]);
    assert!(groups[1..].windows(2).all(|pair| pair[0] < pair[1]), "{groups:?}");
    let explanation = explain::Explanation::of(&plan).to_string();
    assert!(explanation.contains("100 bytes of a thread's registers spill"), "{explanation}");
}

#[test]
fn unfused_kernels_stay_as_they_are() {
    let graph = build(&[crowded(3, DType::F32)]).unwrap().graph;
    let plan = uncached(&graph, Settings { fusion: Fusion::Off, ..SETTINGS }).unwrap();
    assert!(relieved(&graph, &plan, &[(0, 100)]).unwrap().is_none());
}

#[test]
fn both_functions_of_a_kernel_are_inspected() {
    let Ok(compiler) = Nvrtc::get() else { return println!("not checked: there is no NVRTC") };
    let row = Tensor::rand([1 << 20], 1);
    row.eval().unwrap();
    let plan = uncached(&build(&[row.cumsum(0)]).unwrap().graph, SETTINGS).unwrap();
    let emitted = &plan.kernels[0].code.emitted;
    assert_eq!(emitted.functions().collect::<Vec<_>>(), ["cumsum_f32_totals", "cumsum_f32"]);
    let cubin = compiler.compile(&emitted.name, &emitted.source, "sm_90", default_options()).unwrap();
    let of_each: Vec<_> = emitted.functions().map(|name| cubin.inspect(name).unwrap()).collect();
    let of_both = cubin.inspect_all(emitted.functions()).unwrap();
    assert_eq!(of_both.registers, of_each.iter().map(|info| info.registers).max().unwrap());
    assert_eq!(of_both.code_bytes, of_each.iter().map(|info| info.code_bytes).sum::<u64>());
    assert_eq!(of_both.spill_bytes, 0);
    assert_eq!(cubin.inspect_all(["cumsum_f32", "other"].into_iter()), None);
}

/// Whether the schedule does what fusion said would be done.
fn is_as_said(schedule: &Schedule, hero: Hero) -> bool {
    match schedule {
        Schedule::Pointwise(_) | Schedule::Tiled(_) => hero == Hero::Elements,
        // Short rows that one thread has lie across the lanes of a core.
        Schedule::Columns(columns) if columns.shares_all => true,
        Schedule::Rows(_)
        | Schedule::Columns(_)
        | Schedule::Contraction(_)
        | Schedule::RowContraction(_)
        | Schedule::Product(_)
        | Schedule::RowProduct(_) => hero.reduction().is_some(),
        Schedule::Scan(_) => hero.scan().is_some(),
        Schedule::Scatter(_) | Schedule::Sort(_) => matches!(hero, Hero::Scatter(_)),
    }
}

#[test]
fn schedules_are_what_fusion_said() {
    let input = |shape: &[usize]| {
        let input = Tensor::rand(shape.to_vec(), 1);
        input.eval().unwrap();
        input
    };
    let (x, images) = (input(&[40, 120]), input(&[2, 3, 16, 16]));
    let mut results = vec![
        x.reshape([40, 4, 30]).max([1, 2]),
        x.t().softmax(0),
        (&x + x.reshape([40, 15, 8]).max_keepdim(2).broadcast_to([40, 15, 8]).reshape([40, 120])).exp(),
        x.cumsum(1).exp().mean(1),
        x.flip([0]).cumsum(0),
        images.max_pool2d(3, 1),
        images.permute([0, 2, 3, 1]).softmax(3),
        images.exp().mean([0, 2, 3]),
        x.t() + &x.t(),
    ];
    for length in [2, 5, 8, 9, 20, 64, 65] {
        let (rows, columns) = (input(&[30, length]), input(&[length, 30]));
        results.extend([rows.softmax(1), rows.sum(1).exp(), columns.exp().mean(0), columns.softmax(0)]);
        let windows = x.unfold(1, length, 3);
        results.extend([windows.mean(2), windows.sin().max(2), &windows - windows.mean_keepdim(2)]);
    }
    // What contractions wait for: reductions that one thread would do, and sums along two axes, are not kept as rows.
    let (signal, weight) = (input(&[2, 32, 400]), |rows, columns| input(&[rows, columns]));
    let taps = [input(&[32, 32, 2]), input(&[32, 32, 2])].map(|taps| signal.conv1d(&taps, None, 1, 1));
    results.push((taps[0].tanh() * taps[1].sigmoid()).conv1d(&input(&[32, 32, 1]), None, 1, 0));
    let (pixels, [wide, narrow]) = (input(&[4, 64, 28, 28]), [weight(256, 64), weight(64, 256)]);
    let channels = pixels.permute([0, 2, 3, 1]).layer_norm([64], None, None, 1e-6);
    results.push(channels.linear(&wide, None).gelu().linear(&narrow, None));
    results.push(x.softmax(1).matmul(&(weight(120, 64) / weight(120, 64).max_keepdim(1))));
    let [queries, keys, values] = [input(&[2, 60, 32]), input(&[2, 80, 32]), input(&[2, 80, 48])];
    results.push(queries.scaled_dot_product_attention(&keys, &values, &Attention::new().causal(true)));
    for language in [Language::Cuda, Language::C] {
        for result in &results {
            let graph = build(std::slice::from_ref(result)).unwrap().graph;
            let plan = uncached(&graph, Settings { language, ..SETTINGS }).unwrap();
            assert!(!plan.grouping.was_divided(), "{}", explain::Explanation::of(&plan));
            for kernel in &plan.kernels {
                let schedule = &kernel.code.emitted.schedule;
                for group in kernel.groups(&plan.grouping) {
                    let is_product = matches!(
                        schedule,
                        Schedule::Contraction(_) | Schedule::RowContraction(_) | Schedule::RowProduct(_)
                    );
                    assert!(is_product || !group.waits_for_rows);
                    let said = explain::Explanation::of(&plan);
                    assert!(
                        is_as_said(schedule, group.hero),
                        "{language:?}: {:?}, {schedule}\n{said}",
                        group.hero
                    );
                }
            }
        }
    }
}

/// What follows from the rows of two products elsewhere than along these rows would compute them again for each result.
#[test]
fn products_are_computed_once() {
    let input = |shape: &[usize], seed| {
        let input = Tensor::rand(shape.to_vec(), seed);
        input.eval().unwrap();
        input
    };
    let (x, [inner, outer]) = (input(&[128, 64], 1), [input(&[64, 256], 2), input(&[256, 256], 3)]);
    let hidden = x.matmul(&inner).silu();
    let with_residual = hidden.matmul(&outer).silu() + &hidden;
    let (gradient, image) = (input(&[128, 40], 4), input(&[128, 784], 5));
    let masked = gradient.matmul(&input(&[200, 40], 6).t()) * input(&[128, 200], 7).gt(0.5).cast(DType::F32);
    let of_weights = image.t().matmul(&masked);
    let [down, up] = [input(&[256, 8], 8), input(&[8, 256], 9)];
    let wide = input(&[512, 256], 10);
    let with_low_rank = wide.matmul(&outer) + wide.matmul(&down).matmul(&up) * 2.0;
    for result in [with_residual, of_weights, with_low_rank] {
        let graph = build(std::slice::from_ref(&result)).unwrap().graph;
        let plan = uncached(&graph, Settings { language: Language::C, ..SETTINGS }).unwrap();
        let explanation = explain::Explanation::of(&plan);
        assert!(!plan.grouping.was_divided() && plan.kernels.len() == 2, "{explanation}");
        for kernel in &plan.kernels {
            let schedule = &kernel.code.emitted.schedule;
            assert!(matches!(schedule, Schedule::Contraction(_)), "{schedule}\n{explanation}");
        }
    }
}

/// The texts to compile for a cache that grows along an axis that is not its outermost, call after call, and for what is
/// computed with it.
#[test]
fn what_grows_inside_is_few_texts() {
    let input = |shape: &[usize]| {
        let input = Tensor::zeros(shape.to_vec(), DType::F32) + 1.0;
        input.eval().unwrap();
        input
    };
    let grown = |n: usize| Tensor::cat(&[&input(&[2, 4, n, 16]), &input(&[2, 4, 1, 16])], 2);
    let attention = |n: usize| {
        let keys = grown(n);
        input(&[2, 4, 1, 16]).scaled_dot_product_attention(
            &keys,
            &(&keys * 0.5),
            &crate::Attention::default(),
        )
    };
    let texts = |program: &dyn Fn(usize) -> Tensor| {
        let mut sources = rustc_hash::FxHashSet::default();
        for n in (60..200).chain((200..1000).step_by(9)) {
            let graph = build(&[program(n)]).unwrap().graph;
            let plan = uncached(&graph, SETTINGS).unwrap();
            let emitted: Vec<_> = plan.kernels.iter().map(|kernel| kernel.code.emitted.clone()).collect();
            // What is loaded already is not asked for again.
            let new: Vec<_> =
                emitted.into_iter().filter(|emitted| !sources.contains(&*emitted.source)).collect();
            let texts = crate::runtime::general::texts(&new, |_| false);
            sources.extend(texts.iter().map(|text| text.source().to_owned()));
        }
        sources.len()
    };
    let (cache, attention) = (texts(&grown), texts(&attention));
    assert!(cache <= 2 && attention <= 28, "{cache} and {attention} texts");
}

#[test]
fn products_of_two_dtypes_are_packed_apart() {
    let input = |shape: [usize; 2], dtype| {
        let input = (Tensor::rand(shape, 1) * 100.0).cast(dtype);
        input.eval().unwrap();
        input
    };
    let product = |dtype| input([128, 512], dtype).matmul(&input([512, 512], dtype));
    let difference = product(DType::I32).cast(DType::F32) - product(DType::F32);
    let graph = build(&[difference]).unwrap().graph;
    let plan = uncached(&graph, Settings { language: Language::C, ..SETTINGS }).unwrap();
    let schedules: Vec<&Schedule> = plan.kernels.iter().map(|kernel| &kernel.code.emitted.schedule).collect();
    assert!(schedules.iter().all(|schedule| matches!(schedule, Schedule::Contraction(_))), "{schedules:?}");
    assert_eq!(schedules.len(), 2);
}

/// gcc looks for vectors at great length, and takes seconds, over short scans whose loops it unrolls, and over loops that read
/// in many far places.
#[test]
fn few_lanes_and_scattered_loads_ask_for_no_vectors() {
    const C: Settings = Settings { language: Language::C, ..SETTINGS };
    let text = |result: &Tensor| {
        let plan = uncached(&build(std::slice::from_ref(result)).unwrap().graph, C).unwrap();
        plan.kernels.iter().map(|kernel| &*kernel.code.emitted.source).collect::<String>()
    };
    let x = Tensor::rand([640, 256], 1);
    x.eval().unwrap();
    assert!(!text(&x.slice(1, ..16).cumsum(1)).contains("omp simd"));
    let columns = |step: isize, count: isize| {
        let rows: Vec<Tensor> = (0..count).map(|k| x.select(1, k * step)).collect();
        rows.into_iter().reduce(|sum, row| sum + row).unwrap()
    };
    assert!(!text(&columns(9, 20)).contains("omp simd"));
    assert!(text(&columns(9, 3)).contains("omp simd"));
    assert!(text(&columns(9, 20).exp().sin()).contains("omp simd"), "what is costly gains by vectors");
}

/// A program of rows whose length is the size: each step is one of some, as the numbers say.
fn program_of(n: usize, steps: &[usize]) -> Tensor {
    let input = |shape: &[usize]| {
        let input = Tensor::zeros(shape.to_vec(), DType::F32) + 1.0;
        input.eval().unwrap();
        input
    };
    let (rows, features, row) = (input(&[6, n]), input(&[n, 40]), input(&[n]));
    let step = |x: Tensor, step: &usize| match step {
        0 => x.softmax(1),
        1 => x.layer_norm([n], None, None, 1e-5),
        2 => x.cumsum(1) * 0.5,
        3 => x.matmul(&features).matmul(&features.t()),
        4 => (&x + &row).exp(),
        5 => &x * x.sum_keepdim(0),
        6 => x.flip([1]).tanh() - &rows,
        7 => &x / (x.max_keepdim(1) + 1.0),
        8 => Tensor::cat(&[&x, &input(&[6, 1])], 1).narrow(1, 1, n),
        _ => x.sort(1, false).0 + &x,
    };
    steps.iter().fold(rows.sin(), step)
}

/// The same of so many rows.
fn rows_of(n: usize, steps: &[usize]) -> Tensor {
    let input = |shape: &[usize]| {
        let input = Tensor::zeros(shape.to_vec(), DType::F32) + 1.0;
        input.eval().unwrap();
        input
    };
    let (rows, features, row, column) = (input(&[n, 24]), input(&[24, 24]), input(&[24]), input(&[n, 1]));
    let step = |x: Tensor, step: &usize| match step {
        0 => x.softmax(1),
        1 => x.layer_norm([24], None, None, 1e-5),
        2 => x.cumsum(1) * 0.5,
        3 => x.matmul(&features),
        4 => (&x + &row).exp(),
        5 => &x * x.sum_keepdim(0),
        6 => x.flip([0]).tanh() - &column,
        7 => &x / (x.max_keepdim(0) + 1.0),
        8 => Tensor::cat(&[&x, &input(&[1, 24])], 0).narrow(0, 1, n),
        _ => x.cumsum(0) + &x,
    };
    steps.iter().fold(rows.sin(), step)
}

/// What is served after other sizes is what is planned anew: the same kernels in the same order, launched in the same way.
#[test]
fn what_was_planned_for_other_sizes_decides_nothing() {
    let mut state = 7u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    for round in 0..36 {
        let steps: Vec<usize> = (0..2 + random(4)).map(|_| random(10)).collect();
        let most = [60, 300, 2000][random(3)];
        let [a, b, c] = [0; 3].map(|_| 5 + random(most));
        // Some of them of one class.
        let (sizes, program) = match round % 3 {
            0 => ([a, a + 1, b, a + 2, a + 3, b + 1], rows_of as fn(usize, &[usize]) -> Tensor),
            _ => ([a, b, c, a + 1, b + 2, c + 16], program_of as fn(usize, &[usize]) -> Tensor),
        };
        for language in [Language::Cuda, Language::C] {
            let settings = Settings { language, ..SETTINGS };
            let graph = |n: usize| build(&[program(n, &steps)]).unwrap().graph;
            let kernels = |plan: &Plan| {
                let of = |kernel: &Arc<PlannedKernel>| {
                    let emitted = &kernel.code.emitted;
                    (emitted.source.clone(), emitted.launches.clone(), emitted.parameters.clone())
                };
                plan.kernels.iter().map(of).collect::<Vec<_>>()
            };
            let anew = |n: usize| {
                let graph = through_passes(&graph(n)).unwrap();
                let (parameters, own) = (Parameters::of(&graph, language), facts(&graph, settings));
                let fused = |graph: &Graph| fusion::fuse(graph, &facts(graph, settings), Fusion::On);
                let decided = rounded(&graph).and_then(|rounded| fused(&rounded).like(&graph, &own));
                let grouping = decided.unwrap_or_else(|| fused(&graph));
                plan_of(graph, parameters, settings, &own, grouping).unwrap()
            };
            let plans: Vec<_> = sizes.iter().map(|&n| super::plan(&graph(n), settings).unwrap()).collect();
            for (&n, served) in sizes.iter().zip(&plans) {
                assert!(kernels(&anew(n)) == kernels(served), "{steps:?} of {n} after {sizes:?}");
                for kernel in served.kernels.iter().filter(|kernel| kernel.code.emitted.batch.is_none()) {
                    let figures = figures(settings, kernel.is_low_pressure);
                    let alone = lazuli_codegen::emit(&kernel.parts[0].lowered.kernel, language, &figures);
                    assert_eq!(alone.as_ref(), Ok(&*kernel.code.emitted), "{steps:?} of {n} after {sizes:?}");
                }
            }
        }
    }
}
