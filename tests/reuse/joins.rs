//! Joins of another number of parts each time.

use std::collections::HashSet;

use lazuli::{DType, Device, Fusion, Stats, Target, Tensor, stats, with_fusion};

use super::programs::{Data, JOINING, NUMBERS, number};
use super::{MOST_INSIDE, MOST_KERNELS, alone, ramp};

/// Texts whose numbers become arguments, with the conditions of joins.
#[test]
fn products_of_joins_that_grow_are_right() {
    let _alone = alone();
    let parts: Vec<Tensor> = (0..33).map(|n| Tensor::randn([2000], n)).collect();
    lazuli::eval(&parts).unwrap();
    let v = Tensor::randn([2000], 50);
    for count in 31..34 {
        let rest = || {
            let m = Tensor::stack(&parts[..count], 1);
            let rest = &v - m.matmul(&(m.t().matmul(&v) / 2000.0));
            &rest / rest.norm(0, 2.0)
        };
        let fused = rest().to_vec::<f32>().unwrap();
        let expected = with_fusion(Fusion::Off, || rest().to_vec::<f32>()).unwrap();
        for (a, b) in fused.iter().zip(&expected) {
            assert!((a - b).abs() < 1e-5, "{count}: {a} is not {b}");
        }
    }
}

/// Joins of every number of parts up to 100, of what is there and of what is to be computed.
#[test]
fn few_kernels_serve_every_number_of_parts() {
    let _alone = alone();
    let data = Data::new(&Device::cpu()).unwrap();
    let loaded = |stats: Stats| stats.kernels_compiled + stats.disk_hits;
    for program in JOINING {
        // Sums of up to 8 are the loop of one thread, whose length is text.
        let (few, many): (Vec<usize>, Vec<usize>) = (0..NUMBERS).partition(|&n| number(n) <= 8);
        let result = |n: usize| (program.call)(&data, n);
        few.into_iter().for_each(|n| result(n).eval().unwrap());
        let before = stats();
        many.iter().for_each(|&n| result(n).eval().unwrap());
        let kernels = loaded(stats()) - loaded(before);
        let plans = stats().plans_made - before.plans_made;
        let is_product = program.name == "basis so far, projected";
        let most = if is_product { 2 * MOST_INSIDE } else { 2 * MOST_KERNELS as u64 };
        assert!(kernels <= most, "{}: {kernels} kernels", program.name);
        assert!(plans <= 25, "{}: {plans} plans", program.name);
        if is_product {
            continue;
        }
        for target in [Target::cpu(), Target::cuda("sm_90")] {
            let mut sources: HashSet<String> = HashSet::new();
            for &n in &many {
                let compiled = result(n).compile_for(&target).unwrap();
                sources.extend(compiled.kernels().iter().map(|kernel| kernel.source().to_string()));
            }
            let texts = sources.len();
            assert!(texts <= MOST_KERNELS, "{}: {texts} texts for {target}", program.name);
        }
    }
}

/// What the parts of a join follow from is computed once, whatever comes between.
#[test]
fn parts_of_a_join_are_computed_once() {
    let _alone = alone();
    let x = ramp(&Device::cpu(), &[5, 4]);
    let steps = |count: usize| {
        let (mut fast, mut slow) = (x.clone(), &x * 2.0);
        let mut states = Vec::new();
        for _ in 0..count {
            slow = (slow * 0.5 + &fast.sum_keepdim(1)).sin();
            fast = (&slow * 0.3 + &fast).cos();
            states.push(fast.clone());
        }
        states
    };
    for count in [3, 4, 40] {
        let joined = Tensor::stack(&steps(count), 0);
        let explanation = joined.explain().unwrap().to_string();
        let says_so = explanation.contains("40 parts, computed one after the other");
        assert_eq!(says_so, count == 40, "{explanation}");
        let before = stats();
        joined.eval().unwrap();
        let launches = stats().launches - before.launches;
        assert!(launches <= 2 * count as u64 + 1, "{launches} launches for {count} steps");
        let last = steps(count).pop().unwrap().to_vec::<f32>().unwrap();
        assert_eq!(joined.select(0, -1).to_vec::<f32>().unwrap(), last);
    }
}

/// A function is recorded once: how many parts it joins does not change, whoever joins others at that line.
#[test]
fn compiled_functions_join_in_kernels() {
    let _alone = alone();
    let data = Data::new(&Device::cpu()).unwrap();
    let joined = |parts: &[Tensor]| Tensor::cat(parts, 0);
    joined(&data.steps[..3]).eval().unwrap();
    for count in [4, 5] {
        let function = lazuli::compile(move |x: Tensor| joined(&vec![&x * 2.0; count]));
        let x = ramp(&Device::cpu(), &[6]);
        let expected: Vec<f32> = (x.to_vec::<f32>().unwrap().iter().map(|x| x * 2.0)).collect();
        assert_eq!(function.call(&x).unwrap().to_vec::<f32>().unwrap(), expected.repeat(count));
        // What is joined outside of it is there before.
        let outside = joined(&data.steps[..count]);
        let captured = outside.clone();
        let function = lazuli::compile(move |x: Tensor| &captured + x);
        let sum = function.call(Tensor::zeros([200 * count], DType::F32)).unwrap();
        assert_eq!(sum.to_vec::<f32>().unwrap(), outside.to_vec::<f32>().unwrap());
    }
}
