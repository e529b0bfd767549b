use std::collections::BTreeSet;

use crate::{Attention, DType, Device, Reduction, Target, Tensor, compile, compile_for, profile};

fn input(shape: &[usize]) -> Tensor {
    Tensor::placeholder(shape, DType::F32)
}

/// The lines of what is apart.
fn apart(text: &str) -> &str {
    text.split_once("apart:\n").map_or("", |(_, lines)| lines)
}

#[test]
fn placeholders_have_the_kernels_of_data() {
    let explained = |x: Tensor, w: Tensor| {
        let y = (x.matmul(&w) + 1.0).relu().softmax(1);
        let text = y.explain().unwrap().to_string();
        let source = |target: &Target| y.compile_for(target).unwrap().source();
        (text, source(&Target::cpu()), source(&Target::cuda("sm_90")))
    };
    let data = |shape: [usize; 2]| Tensor::from_vec(vec![1.0f32; shape[0] * shape[1]], shape);
    assert_eq!(explained(input(&[32, 48]), input(&[48, 64])), explained(data([32, 48]), data([48, 64])));
    // Where a library does it on a CPU.
    let x = input(&[100, 100]);
    assert!(x.det().explain().unwrap().to_string().contains("by a library"));
    assert!(x.det().compile_for(&Target::cuda("sm_80")).unwrap().kernels().len() > 1);
}

#[test]
fn placeholders_have_no_values() {
    let x = input(&[4]);
    let elsewhere = Device::cpu_virtual(1);
    let tensors =
        [x.clone(), &x + 1.0, x.to(&elsewhere), x.to(&elsewhere).sum(0), x.to(&Device::interpreter()).exp()];
    for tensor in &tensors {
        assert!(tensor.explain().is_ok());
        for error in [tensor.eval().unwrap_err(), tensor.to_vec::<f32>().unwrap_err()] {
            assert!(error.to_string().starts_with("placeholder: it has no values"), "{error}");
            assert!(error.to_string().contains("src/inspect/tests.rs"), "{error}");
        }
    }
    assert!(x.to_string().contains("no values"), "{x}");
    // A function is recorded for its type, and not called with it, nor with one that it has captured.
    let double = compile(|x: Tensor| x * 2.0);
    assert_eq!(double.executable(&x).unwrap().explain().unwrap().kernels(), 1);
    assert!(double.call(&x).is_err());
    let captured = x.clone();
    assert!(compile(move |y: Tensor| y + &captured).executable(input(&[4])).is_err());
    let too_large = Tensor::placeholder([1 << 40, 1 << 40], DType::F32);
    assert!(too_large.explain().unwrap_err().to_string().starts_with("placeholder: shape "));
}

#[test]
fn gpus_without_asynchronous_copies_have_no_stages() {
    let y = input(&[1024, 1024]).matmul(&input(&[1024, 1024]));
    let stages = |architecture: &str| {
        let program = y.compile_for(&Target::cuda(architecture)).unwrap();
        program.kernels()[0].schedule().parameter("stages").map(str::to_owned)
    };
    for architecture in ["sm_70", "sm_72", "sm_75"] {
        assert_eq!(stages(architecture), None, "{architecture}");
    }
    for architecture in ["sm_80", "sm_86", "sm_90", "sm_120"] {
        assert!(stages(architecture).is_some(), "{architecture}");
    }
}

#[test]
fn reasons_are_about_what_is_between_two_kernels() {
    // The softmax and the product are one kernel.
    let (x, w) = (input(&[512, 256]), input(&[256, 256]));
    let y = (x.softmax(1).matmul(&w) + 1.0).relu().sum(1);
    let text = y.explain().unwrap().to_string();
    assert!(text.contains("1. softmax_matmul_add_relu_f32: "), "{text}");
    assert!(
        apart(&text).starts_with("   1 and 2 at relu f32 [512, 256] (524.3 kB): the reduction matmul must end before the reduction sum can begin\n"),
        "{text}"
    );
}

#[test]
fn a_product_of_products_waits_for_them() {
    let (x, w) = (input(&[512, 256]), input(&[256, 256]));
    let text = x.matmul(&w).relu().matmul(&w).explain().unwrap().to_string();
    let reason =
        "the product of matmul [512, 256] must end before the product of matmul [512, 256] can begin";
    assert!(apart(&text).contains(reason), "{text}");
}

#[test]
fn what_moves_elements_is_no_reduction() {
    let packed = Tensor::placeholder([2, 128, 3 * 64 * 4], DType::BF16);
    let qkv = packed.reshape([2, 128, 3, 4, 64]).permute([2, 0, 3, 1, 4]);
    let part = |number: isize| qkv.select(0, number);
    let attended = part(0).scaled_dot_product_attention(part(1), part(2), &Attention::new());
    let text = attended.transpose(1, 2).reshape([2, 128, 256]).explain().unwrap().to_string();
    let reasons = apart(&text);
    // Whatever the kernels are.
    let is_false = |line: &&str| {
        let second = line.split_once(" must end before ").map(|(_, second)| second);
        second.is_some_and(|second| !second.contains("scaled_dot_product_attention"))
    };
    assert!(reasons.lines().find(is_false).is_none(), "{text}");
    assert!(!reasons.contains("must end before") || text.matches("\n   computes").count() > 2, "{text}");
}

#[test]
fn reductions_of_one_method_are_told_apart() {
    let [q, k, v] = [(); 3].map(|()| input(&[2, 4, 1024, 512]));
    let attended = q.scaled_dot_product_attention(&k, &v, &Attention::new());
    let text = attended.compile_for(&Target::cuda("sm_90")).unwrap().explain().to_string();
    for reason in [
        "the product of scaled_dot_product_attention must end before the maximum of scaled_dot_product_attention can begin",
        "the maximum of scaled_dot_product_attention must end before the product of scaled_dot_product_attention can begin",
    ] {
        assert!(apart(&text).contains(reason), "{text}");
    }
    let [q, k, v] = [(); 3].map(|()| input(&[2, 4, 2048, 64]));
    let attended = q.scaled_dot_product_attention(&k, &v, &Attention::new().causal(true));
    let text = attended.explain().unwrap().to_string();
    let computes = text.lines().find(|line| line.contains("computes")).unwrap();
    assert!(
        computes.contains("scaled_dot_product_attention (") && computes.ends_with(", product)"),
        "{text}"
    );
    assert!(!computes.contains("attention ×") && computes.contains("maximum"), "{computes}");
    // Softmax's own, of long rows.
    let text = input(&[4, 1 << 20]).softmax(1).explain().unwrap().to_string();
    assert!(text.contains("computes  softmax (maximum, "), "{text}");
}

/// The terms of a product are nobody's result, in the header and below.
#[test]
fn terms_of_products_are_not_counted() {
    let text = (input(&[512, 512]).matmul(&input(&[512, 512])) + 1.0).relu().explain().unwrap().to_string();
    assert!(text.starts_with("1 kernel instead of 3, 3145.7 kB moved instead of 7340.0 kB"), "{text}");
    let fused =
        "3 operations in one kernel: 2 kernels not launched, 2097.2 kB of intermediate results not stored";
    assert!(text.contains(fused), "{text}");
    assert!(text.contains("computes  matmul, add, relu\n"), "{text}");
}

#[test]
fn kernels_are_named_for_their_results() {
    let (x, labels) = (input(&[64, 100]), Tensor::placeholder([64], DType::I64));
    let loss = x.cross_entropy(&labels, Reduction::Mean);
    for target in [Target::cpu(), Target::cuda("sm_90")] {
        for kernel in loss.compile_for(&target).unwrap().kernels() {
            assert!(kernel.name().ends_with("_f32"), "{}", kernel.name());
        }
    }
    let (values, positions) = x.topk(3, 1, true);
    let program = compile_for([&values, &positions], &Target::cpu()).unwrap();
    assert!(program.kernels()[0].name().ends_with("_f32"), "{}", program.kernels()[0].name());
    let chain = x.exp().sin().cos().tanh().sqrt();
    assert_eq!(chain.compile_for(&Target::cpu()).unwrap().kernels()[0].name(), "exp_sin_cos_etc_sqrt_f32");
    let again = x.exp().sin().cos().tanh().sqrt().exp();
    assert_eq!(again.compile_for(&Target::cpu()).unwrap().kernels()[0].name(), "exp_sin_cos_tanh_etc_f32");
}

#[test]
fn kernels_of_one_name_are_files_of_their_own() {
    let program = input(&[256, 131_072]).softmax(1).compile_for(&Target::cuda("sm_90")).unwrap();
    let names: BTreeSet<&str> = program.kernels().iter().map(|kernel| kernel.name()).collect();
    assert!(program.kernels().len() > names.len(), "{names:?}");
    let source = program.source();
    let count = program.kernels().len();
    for (number, kernel) in program.kernels().iter().enumerate() {
        let heading = format!("// ---- file {} of {count} ----\n// {}: ", number + 1, kernel.name());
        assert_eq!(source.matches(&heading).count(), 1, "{source}");
        assert!(source.contains(kernel.source()));
    }
    let alone = input(&[256, 100]).softmax(1).compile_for(&Target::cuda("sm_90")).unwrap();
    assert!(!alone.source().contains("// ----"));
}

#[test]
fn a_profile_says_what_was_done_beside_kernels() {
    let x = Tensor::rand([64, 64], 1);
    x.eval().unwrap();
    let there = x.to(&Device::interpreter());
    there.eval().unwrap();
    let (result, interpreted) = profile(|| there.matmul(&there).eval());
    result.unwrap();
    let text = interpreted.to_string();
    assert!(text.contains(" interpreting, without kernels, ") && !text.contains("compiling"), "{text}");
    assert!(interpreted.seconds_interpreting() <= interpreted.seconds());
    let (result, interpreted) = profile(|| x.to(&Device::cpu_interpreted()).exp().eval());
    result.unwrap();
    assert!(interpreted.seconds_interpreting() > 0.0);

    let (result, product) = profile(|| (x.matmul(&x) + 0.125).relu().eval());
    result.unwrap();
    let text = product.to_string();
    assert!(text.contains(" compiling and loading kernels, ") && !text.contains("interpreting"), "{text}");
    assert!(text.contains("GFLOP/s") && product.chrome_trace().contains("GFLOP/s"), "{text}");
    assert_eq!(product.kernels()[0].flops, 2 * 64 * 64 * 64);
    // Sums of what does not broadcast are no products.
    let (result, sums) = profile(|| (&x * &x).sum(1).eval());
    result.unwrap();
    assert_eq!(sums.kernels()[0].flops, 0);
    assert!(!sums.to_string().contains("GFLOP/s"), "{sums}");
    let image = Tensor::rand([1, 3, 8, 8], 2);
    let weight = Tensor::rand([4, 3, 3, 3], 3);
    crate::eval([&image, &weight]).unwrap();
    let (result, convolution) = profile(|| image.conv2d(&weight, None, 1, 0).eval());
    result.unwrap();
    let flops: u64 = convolution.kernels().iter().map(|kernel| kernel.flops).sum();
    assert_eq!(flops, 2 * 4 * 6 * 6 * 3 * 9);
}
