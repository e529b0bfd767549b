//! Scratch.
#![allow(clippy::unwrap_used)]
use lazuli::*;
fn t<const N: usize>(s: [usize; N]) -> Tensor { Tensor::from_vec(vec![0.5f32; s.iter().product()], s) }
fn show(name: &str, ts: &[Tensor]) {
    for target in [Target::cuda("sm_90"), Target::cpu()] {
        let p = compile_for(ts, &target).unwrap();
        println!("== {name} for {target}\n{}", p.explain());
    }
}
fn main() {
    let x = t([100_000, 3]);
    show("softmax 3", &[x.softmax(1)]);
    show("layer_norm 3", &[x.layer_norm([3], None, None, 1e-5)]);
    show("stats 3", &[x.mean(1), x.var_keepdim(1, 0), x.max(1)]);
    let x8 = t([100_000, 8]);
    show("softmax 8", &[x8.softmax(1)]);
    show("stats", &[t([3, 5]).sum(1), t([3,5]).max_keepdim(1)]);
    show("flip", &[t([1000, 300]).flip(1).cumsum(1).flip(1)]);
    show("flip f", &[t([1000, 300]).exp().flip(1).cumsum(1).flip(1).log()]);
    show("avg3", &[t([2, 3, 16, 16, 16]).avg_pool3d_with(Pool3d::new(2).count_include_pad(false))]);
    let g = t([8, 32, 64, 64]).cast(DType::F16);
    g.eval().unwrap();
    show("gn", &[g.group_norm(8, None, None, 1e-5).silu()]);
    let (mut a, mut b) = (t([1000, 1000]), t([1000, 1000]));
    let (c, d) = (a.clone(), b.clone());
    let mut n = Tensor::zeros([1000, 1000], DType::F32);
    for _ in 0..18 {
        let aa = &a * &a - &b * &b + &c;
        b = &a * &b * 2.0 + &d;
        a = aa;
        n = n + (a.square() + b.square()).lt(4.0).cast(DType::F32);
    }
    show("mandel", &[n]);
}
