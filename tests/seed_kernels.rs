//! How many kernels the pipelines that fusion exists for become, and what they move.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

mod workloads;

use lazuli::{Explanation, Fusion, Program, Target, Tensor, with_fusion};
use workloads::{SEEDS, compile_for, tensor};

fn targets() -> [Target; 2] {
    [Target::cuda("sm_90"), Target::cpu()]
}

/// The program for each target.
fn programs<'a>(results: impl IntoIterator<Item = &'a Tensor> + Clone) -> [Program; 2] {
    targets().map(|target| compile_for(results.clone(), &target).unwrap())
}

#[track_caller]
fn assert_one_kernel_of_least_traffic(name: &str, explanation: &Explanation) {
    assert_eq!(explanation.kernels(), 1, "{name}:\n{explanation}");
    assert_eq!(explanation.bytes_moved(), explanation.least_bytes(), "{name}:\n{explanation}");
}

#[test]
fn every_seed_pipeline_has_its_kernels_and_no_more() {
    for seed in SEEDS {
        let results = (seed.record)(64);
        for program in programs(&results) {
            #[cfg(feature = "cuda")]
            workloads::nvrtc::compile_everywhere(std::slice::from_ref(&program)).unwrap();
            let (explanation, target) = (program.explain(), program.target());
            assert_eq!(explanation.kernels(), program.kernels().len());
            match seed.least_traffic {
                true => assert_one_kernel_of_least_traffic(seed.name, &explanation),
                false => assert!(
                    explanation.kernels() <= seed.kernels,
                    "{} for {target}:\n{explanation}",
                    seed.name
                ),
            }
            assert!(explanation.unfused_kernels() > explanation.kernels(), "{}:\n{explanation}", seed.name);
            assert!(explanation.unfused_bytes() > explanation.bytes_moved(), "{}:\n{explanation}", seed.name);
            let kernels = program.kernels();
            let bytes: u64 = kernels.iter().map(|kernel| kernel.bytes_read() + kernel.bytes_written()).sum();
            assert_eq!(bytes, explanation.bytes_moved(), "{}", seed.name);
        }
    }
}

/// Launching one is then hidden behind the end of the kernel before it.
#[cfg(feature = "cuda")]
#[test]
fn kernels_of_the_seeds_wait_before_they_read() {
    for seed in SEEDS {
        let program = compile_for(&(seed.record)(64), &Target::cuda("sm_90")).unwrap();
        for kernel in program.kernels() {
            match lazuli::nvrtc::compile(kernel.source(), &[kernel.name()], "sm_90", true) {
                Ok(infos) => assert!(infos[0].waits_first, "{}:\n{}", seed.name, kernel.source()),
                Err(error) => return workloads::matrix::unchecked(&error.to_string()).unwrap(),
            }
        }
    }
}

#[test]
fn nothing_on_the_cpu_but_random_numbers_is_left_to_a_vectoriser() {
    for seed in SEEDS.iter().filter(|seed| seed.name != "noise") {
        let program = compile_for(&(seed.record)(64), &Target::cpu()).unwrap();
        for kernel in program.kernels() {
            assert!(!kernel.source().contains("omp simd"), "{}:\n{}", seed.name, kernel.source());
        }
    }
}

#[test]
fn without_fusion_every_operation_is_a_kernel() {
    for seed in SEEDS {
        let results = (seed.record)(8);
        for target in targets() {
            let unfused = with_fusion(Fusion::Off, || compile_for(&results, &target)).unwrap().explain();
            let fused = compile_for(&results, &target).unwrap().explain();
            assert_eq!(unfused.kernels(), fused.unfused_kernels(), "{}:\n{unfused}", seed.name);
            assert_eq!(unfused.bytes_moved(), fused.unfused_bytes(), "{}:\n{unfused}", seed.name);
            assert_eq!(unfused.least_bytes(), fused.least_bytes(), "{}", seed.name);
            assert!(unfused.to_string().contains("fusion is off"), "{unfused}");
        }
    }
}

/// Mean and variance of each row, and every element in terms of them.
fn normalised(x: &Tensor) -> Tensor {
    (x - x.mean_keepdim(1)) / (x.var_keepdim(1, 0) + 1e-5).sqrt()
}

#[test]
fn a_normalisation_of_short_rows_reads_them_once() {
    let y = normalised(&tensor([512, 1024]));
    for program in programs([&y]) {
        assert_one_kernel_of_least_traffic("rows", &program.explain());
    }
}

#[test]
fn a_normalisation_of_long_rows_reads_them_twice_and_stores_them_once() {
    let y = normalised(&tensor([4, 300_000]));
    for program in programs([&y]) {
        let explanation = program.explain();
        assert_eq!(explanation.kernels(), 2, "{explanation}");
        let image = 4 * 300_000 * 4;
        let statistics = explanation.bytes_moved() - 3 * image;
        assert!(statistics <= 4 * 4 * 4, "{statistics} bytes beside the image:\n{explanation}");
        assert!(explanation.to_string().contains("the whole reduction comes first"), "{explanation}");
    }
}

#[test]
fn sibling_reductions_share_one_pass_over_any_axes() {
    let x = tensor([40, 50, 60]);
    let siblings: [(&str, Vec<Tensor>); 4] = [
        ("rows", vec![x.sum(2), x.max(2), x.mean(2)]),
        ("columns", vec![x.sum(0), x.max(0), x.mean(0)]),
        ("inner", vec![x.sum(1), x.min(1)]),
        ("whole", vec![x.sum(..), x.max(..), x.mean(..), x.exp().sum(..)]),
    ];
    for (name, results) in siblings {
        for program in programs(&results) {
            assert_one_kernel_of_least_traffic(name, &program.explain());
        }
    }
}

#[test]
fn several_results_over_one_space_come_from_one_kernel() {
    let [weight, gradient, velocity] = [(); 3].map(|()| tensor([10, 1000]));
    let velocity = velocity * 0.9 + gradient;
    let weight = weight - &velocity * 0.01;
    for program in programs([&weight, &velocity]) {
        assert_one_kernel_of_least_traffic("sgd", &program.explain());
        let kernel = &program.kernels()[0];
        assert_eq!((kernel.bytes_read(), kernel.bytes_written()), (3 * 40_000, 2 * 40_000));
    }
}

#[test]
fn what_is_cheap_is_computed_again_and_what_is_not_is_stored() {
    let x = tensor([4, 16, 256, 256]);
    let (cheap, expensive) = (x.relu().max_pool2d(3, 1), x.gelu().max_pool2d(3, 1));
    for program in programs([&cheap]) {
        assert_one_kernel_of_least_traffic("relu", &program.explain());
    }
    // On the CPU windows share what their columns combine.
    for (program, times) in programs([&expensive]).iter().zip(["8.9", "3.0"]) {
        let explanation = program.explain();
        assert_eq!(explanation.kernels(), 2, "{explanation}");
        let text = explanation.to_string();
        assert!(text.contains(&format!("would be computed {times} times per element")), "{text}");
        assert!(text.contains("max_pool2d"), "{text}");
    }
}

#[test]
fn random_numbers_are_made_where_they_are_used() {
    let x = tensor([64, 100]);
    let dropped = Tensor::rand([64, 100], 7).gt(0.1).where_(&x / 0.9, 0.0);
    for program in programs([&dropped]) {
        assert_one_kernel_of_least_traffic("dropout", &program.explain());
        assert_eq!(program.explain().bytes_moved(), 2 * 64 * 100 * 4);
    }
    for program in programs([&Tensor::rand([64, 100], 7).mean(..)]) {
        assert_one_kernel_of_least_traffic("mean of noise", &program.explain());
    }
}

#[test]
fn views_between_operations_cost_nothing() {
    let x = tensor([32, 48]);
    let y = tensor([48, 32]);
    let views: [(&str, Tensor); 5] = [
        ("transpose", x.relu().t() + &y),
        ("flip and pad", x.relu().flip([0]).pad(&[(1, 1), (0, 2)], 0.0).exp()),
        ("slice", (&x * 2.0).slice(0, 3..9).tanh()),
        ("reshape", x.relu().reshape([96, 16]) + 1.0),
        ("expand", x.sum(1).unsqueeze(1).squeeze(1).exp()),
    ];
    for (name, result) in views {
        for program in programs([&result]) {
            assert_one_kernel_of_least_traffic(name, &program.explain());
        }
    }
}

#[test]
fn a_part_that_is_not_needed_is_not_read() {
    let x = tensor([100, 100]);
    let explanation = x.slice(0, 10..20).exp().explain().unwrap();
    assert_eq!(explanation.bytes_moved(), 2 * 10 * 100 * 4, "{explanation}");
    assert_eq!(explanation.least_bytes(), explanation.bytes_moved());
}

#[test]
fn a_result_that_is_there_already_costs_no_kernel() {
    let x = tensor([10]);
    let explanation = x.explain().unwrap();
    assert_eq!((explanation.kernels(), explanation.bytes_moved()), (0, 0), "{explanation}");
    assert_eq!(x.compile_for(&Target::cpu()).unwrap().source(), "");
    let reshaped = x.reshape([2, 5]);
    assert_eq!(reshaped.explain().unwrap().kernels(), 0);
}
