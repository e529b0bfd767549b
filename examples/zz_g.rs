use lazuli::{DType, Target, Tensor};
fn main() {
    let which = std::env::args().nth(1).unwrap_or_default();
    let target = Target::cuda("sm_90");
    let r = |s: &[usize]| { let t = Tensor::rand(s.to_vec(), 1); t.eval().unwrap(); t };
    let out: Vec<Tensor> = match which.as_str() {
        "low64" => { let x = r(&[768, 512]); let (x, w) = (x.slice(0, ..256), x.slice(0, 256..)); let low = x.matmul(&w.slice(1, ..64)).matmul(&w.slice(0, ..64)); vec![x.matmul(&w) + low * 2.0 + x] }
        "low" => { let x = r(&[768, 512]); let (x, w) = (x.slice(0, ..256), x.slice(0, 256..)); let low = x.matmul(&w.slice(1, ..8)).matmul(&w.slice(0, ..8)); vec![x.matmul(&w) + low * 2.0 + x] }
        "soft3" => vec![r(&[4, 3, 512, 512]).softmax(1)],
        "bodies" => { let x = r(&[2048, 3]); let away = x.unsqueeze(0) - x.unsqueeze(1); let squared = away.square().sum_keepdim(2) + 1e-2; vec![(away / (&squared * squared.sqrt())).sum(1)] }
        "argmax" => { let x = r(&[512, 64, 64]); let weights = x.flatten(1..3).softmax(1).reshape([512, 64, 64]); let at = Tensor::linspace(-1.0, 1.0, 64, DType::F32); vec![(weights.sum(1) * &at).sum(1), (weights.sum(2) * &at).sum(1)] }
        "standard" => { let x = r(&[4096, 1024]); vec![(&x - x.mean_keepdim(0)) / (x.std_keepdim(0, 1) + 1e-5)] }
        "norm" => { let x = r(&[3, 512, 512]); let (v, m) = (x.var_keepdim([1, 2], 1), x.mean_keepdim([1, 2])); vec![(x - m) / (v + 1e-5).sqrt()] }
        "slopes" => { let x = r(&[16, 512, 80]); vec![(&x - x.mean_keepdim(1)) / (x.std_keepdim(1, 1) + 1e-5)] }
        "iou" => { let b = r(&[1024, 4]); let a = b.unsqueeze(1); let b = b.unsqueeze(0); let lo = a.slice(2, ..2).maximum(b.slice(2, ..2)); let hi = a.slice(2, 2..).minimum(b.slice(2, 2..)); vec![(hi - lo).clamp_min(0.0).prod(2)] }
        _ => panic!(),
    };
    let p = lazuli::compile_for(&out, &target).unwrap();
    println!("{}\n{}", p.explain(), p.source());
}
