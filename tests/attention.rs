//! Attention, and what else multiplies rows that are reduced before: one kernel on a core, and what the interpreter says.

#![allow(clippy::unwrap_used)] // A failed assumption stops the test.

use lazuli::{Attention, DType, Device, Target, Tensor};

/// Normal numbers of a shape on a device.
fn randn(device: &Device, shape: &[usize], seed: u64) -> Tensor {
    let x = Tensor::randn(shape.to_vec(), seed).to(&Device::interpreter());
    x.eval().unwrap();
    x.to(device)
}

/// The results of a program on the CPU, in so many kernels, are the interpreter's; those of its kernels interpreted too.
fn compare(name: &str, kernels: usize, program: impl Fn(&Device) -> Tensor) {
    let of = |x: Tensor| x.cast(DType::F64).to_vec::<f64>().unwrap();
    let expected = of(program(&Device::interpreter()));
    for device in [Device::cpu(), Device::cpu_interpreted()] {
        let result = program(&device);
        let explained = result.explain().unwrap();
        assert_eq!(explained.kernels(), kernels, "{name}: {explained}");
        let tolerance = match result.dtype().unwrap() {
            DType::F16 => 2e-3,
            DType::BF16 => 2e-2,
            DType::F32 => 2e-5,
            _ => 1e-12,
        };
        for (n, (got, expected)) in of(result).iter().zip(&expected).enumerate() {
            let is_same = got == expected || got.is_nan() && expected.is_nan();
            let is_near = (got - expected).abs() <= tolerance * expected.abs().max(1.0);
            assert!(is_same || is_near, "{name} on {device}: element {n} is {got}, not {expected}");
        }
    }
}

#[test]
fn of_any_sizes() {
    let sizes = [[3, 64, 64, 32, 32], [2, 50, 77, 24, 40], [1, 13, 130, 17, 70], [2, 121, 300, 64, 64]];
    for [batch, queries, keys, length, width] in sizes {
        for causal in [false, true] {
            compare(&format!("{batch} {queries} {keys} {causal}"), 1, |device| {
                let q = randn(device, &[batch, queries, length], 1);
                let k = randn(device, &[batch, keys, length], 2);
                let v = randn(device, &[batch, keys, width], 3);
                q.scaled_dot_product_attention(&k, &v, &Attention::new().causal(causal))
            });
        }
    }
}

#[test]
fn of_any_dtype() {
    for dtype in [DType::F16, DType::BF16, DType::F64] {
        compare(&dtype.to_string(), 1, |device| {
            let [q, k, v] = [1, 2, 3].map(|seed| randn(device, &[2, 40, 32], seed).cast(dtype));
            q.scaled_dot_product_attention(&k, &v, &Attention::new())
        });
    }
}

/// Queries behind a cache, and scores with a bound: neither is stored.
#[test]
fn of_a_cache_and_of_bounded_scores() {
    for (queries, keys) in [(16, 300), (64, 64), (77, 50)] {
        compare(&format!("{queries} {keys}"), 1, |device| {
            let [q, k, v] =
                [(queries, 1), (keys, 2), (keys, 3)].map(|(n, seed)| randn(device, &[2, n, 32], seed));
            let settings = Attention::new().causal_lower_right(true).softcap(3.0);
            q.scaled_dot_product_attention(&k, &v, &settings)
        });
    }
}

/// BF16 of any sizes: weights go in pairs, the last of which is whole or not.
#[test]
fn of_pairs() {
    for (queries, keys, width, causal) in [(50, 300, 40, true), (121, 77, 64, false), (30, 514, 24, false)] {
        compare(&format!("{queries} {keys} {width} {causal}"), 1, |device| {
            let of = |rows, width, seed| randn(device, &[2, rows, width], seed).cast(DType::BF16);
            let (q, k, v) = (of(queries, 32, 1), of(keys, 32, 2), of(keys, width, 3));
            q.scaled_dot_product_attention(&k, &v, &Attention::new().causal(causal))
        });
    }
}

/// Weights are rounded to BF16 only where their sums are: other results of few bytes tell the difference.
#[test]
fn of_pairs_whose_results_have_other_dtypes() {
    for dtype in [DType::Bool, DType::F16] {
        compare(&dtype.to_string(), 1, |device| {
            let [q, k] = [1, 2].map(|seed| randn(device, &[4, 120, 32], seed));
            let v = randn(device, &[4, 120, 64], 3).cast(DType::BF16).cast(DType::F32);
            let sums = q.matmul(&k.transpose(-2, -1)).softmax(-1).matmul(&v);
            if dtype == DType::Bool { sums.gt(0.1) } else { ((sums - 0.1) * 64.0).sin().cast(dtype) }
        });
    }
}

/// Weights below the least normal number: they are not zero, as infinite values show, and are too small to show otherwise.
#[test]
fn weights_near_zero() {
    for (dtype, step) in [(DType::F32, 1.0), (DType::F64, 8.0)] {
        compare(&dtype.to_string(), 1, |device| {
            let [q, k, v] = [1, 2, 3].map(|seed| randn(device, &[2, 130, 32], seed).cast(dtype));
            let position = Tensor::arange(0, 130, 1).to(device).cast(dtype);
            let distance = position.unsqueeze(0) - position.unsqueeze(1);
            // Of the first row, the weights of keys 88 to 103 are subnormal, those after them zero.
            let is_far = position.eq(95).unsqueeze(1).logical_and(Tensor::arange(0, 32, 1).to(device).eq(3));
            let values = v.masked_fill(&is_far, f64::INFINITY);
            let scores = q.matmul(&k.transpose(-2, -1)) / 100.0 - distance.abs() * step;
            scores.softmax(-1).matmul(&values)
        });
    }
}

/// Masks of numbers and of truth, rows in which nothing takes part, heads that share keys, dropout.
#[test]
fn with_masks_and_shared_heads() {
    let (q, kv) = ([2, 6, 33, 16], [2, 2, 45, 16]);
    let inputs = |device: &Device| (randn(device, &q, 1), randn(device, &kv, 2), randn(device, &kv, 3));
    compare("grouped", 1, |device| {
        let (q, k, v) = inputs(device);
        q.scaled_dot_product_attention(&k, &v, &Attention::new().grouped(true).causal(true))
    });
    compare("numbers", 1, |device| {
        let (q, k, v) = inputs(device);
        let mask = randn(device, &[33, 45], 4);
        q.scaled_dot_product_attention(&k, &v, &Attention::new().grouped(true).mask(&mask))
    });
    compare("truth", 1, |device| {
        let (q, k, v) = inputs(device);
        // Some rows have no key.
        let mask = randn(device, &[33, 45], 5).gt(0.3).logical_and(randn(device, &[33, 1], 6).gt(-0.5));
        mask.eval().unwrap();
        q.scaled_dot_product_attention(&k, &v, &Attention::new().grouped(true).mask(&mask))
    });
    compare("dropout", 1, |device| {
        let (q, k, v) = inputs(device);
        q.scaled_dot_product_attention(&k, &v, &Attention::new().grouped(true).dropout(0.3, 9))
    });
}

/// A row in which nothing takes part has zeros, and that is known in the text: it does not keep the weights from the products.
#[test]
fn masks_are_in_the_kernel_of_cuda() {
    let cpu = Device::cpu();
    let truth = randn(&cpu, &[2, 1, 1, 128], 4).gt(0.3);
    let numbers = randn(&cpu, &[128, 128], 5);
    truth.eval().unwrap();
    let window = || {
        let at = Tensor::arange(0, 128, 1);
        let distance = at.unsqueeze(1) - at.unsqueeze(0);
        distance.ge(0).logical_and(distance.lt(40))
    };
    let masks = [
        ("truth", Attention::new().mask(&truth)),
        ("numbers", Attention::new().mask(&numbers)),
        ("truth and causal", Attention::new().mask(&truth).causal(true)),
        ("window", Attention::new().mask(window())),
    ];
    for (dtype, target) in [(DType::F16, "sm_80"), (DType::BF16, "sm_90"), (DType::F32, "sm_75")] {
        let [q, k, v] = [1, 2, 3].map(|seed| randn(&cpu, &[2, 4, 128, 64], seed).cast(dtype));
        lazuli::eval([&q, &k, &v]).unwrap();
        for (name, mask) in &masks {
            let y = q.scaled_dot_product_attention(&k, &v, mask);
            let kernels = y.compile_for(&Target::cuda(target)).unwrap().kernels().len();
            assert_eq!(kernels, 1, "{name}, {dtype} for {target}");
        }
    }
}

/// As people write it, with what changes the scores: a bias by distance, a cap, a window of positions.
#[test]
fn of_recorded_operations() {
    let inputs = |device: &Device| [1, 2, 3].map(|seed| randn(device, &[4, 48, 24], seed));
    compare("softmax", 1, |device| {
        let [q, k, v] = inputs(device);
        (q.matmul(&k.transpose(-2, -1)) / 24f64.sqrt()).softmax(-1).matmul(&v)
    });
    compare("cap and distance", 1, |device| {
        let [q, k, v] = inputs(device);
        let scores = (q.matmul(&k.transpose(-2, -1)) / 30.0).tanh() * 30.0;
        let at = Tensor::arange(0, 48, 1).to(device);
        let distance = (at.unsqueeze(0) - at.unsqueeze(1)).cast(DType::F32);
        let far = at.unsqueeze(0).lt(at.unsqueeze(1) - 10).logical_or(at.unsqueeze(0).gt(at.unsqueeze(1)));
        let scores = (scores + distance * 0.1).masked_fill(&far, f64::NEG_INFINITY);
        scores.softmax(-1).matmul(&v).relu() + 1.0
    });
    compare("nothing takes part", 1, |device| {
        let [q, k, v] = inputs(device);
        let none = Tensor::arange(0, 48, 1).to(device).lt(5).unsqueeze(1);
        q.matmul(&k.transpose(-2, -1)).masked_fill(&none, f64::NEG_INFINITY).softmax(-1).matmul(&v)
    });
    compare("divided afterwards", 1, |device| {
        let [q, k, v] = inputs(device);
        let scores = q.matmul(&k.transpose(-2, -1));
        let weights = (&scores - scores.max_keepdim(-1)).exp();
        weights.matmul(&v) / weights.sum_keepdim(-1)
    });
}

/// What a mask leaves out is not computed, but where that would hide an infinity or NaN, or is no zero.
#[test]
fn what_is_left_out_shows_nothing() {
    let inputs = |device: &Device| [1, 2, 3].map(|seed| randn(device, &[2, 200, 32], seed));
    let later = |device: &Device| {
        let at = Tensor::arange(0, 200, 1).to(device);
        at.unsqueeze(0).gt(at.unsqueeze(1))
    };
    let attend = |[q, k, v]: [Tensor; 3], later: Tensor, fill: f64| {
        (q.matmul(&k.transpose(-2, -1)) * 0.2).masked_fill(&later, fill).softmax(-1).matmul(&v)
    };
    let causal =
        |[q, k, v]: [Tensor; 3]| q.scaled_dot_product_attention(&k, &v, &Attention::new().causal(true));
    let source = causal(inputs(&Device::cpu())).compile_for(&lazuli::Target::cpu()).unwrap().source();
    assert!(source.contains("end = last;"), "{source}");
    compare("infinite", 1, |device| attend(inputs(device), later(device), f64::NEG_INFINITY));
    compare("finite", 1, |device| attend(inputs(device), later(device), -2.0));
    for (name, value) in [("NaN", f64::NAN), ("infinity", f64::INFINITY)] {
        compare(name, 1, |device| {
            let [q, k, v] = inputs(device);
            let row = Tensor::arange(0, 200, 1).to(device).unsqueeze(1);
            let v = v.masked_fill(&row.eq(150), value);
            v.eval().unwrap();
            causal([q, k, v])
        });
    }
    compare("rows of nothing", 1, |device| {
        let at = Tensor::arange(0, 200, 1).to(device);
        attend(inputs(device), at.unsqueeze(0).ge(at.unsqueeze(1) - 70), f64::NEG_INFINITY)
    });
    compare("the upper triangle", 1, |device| {
        let at = Tensor::arange(0, 200, 1).to(device);
        attend(inputs(device), at.unsqueeze(0).le(at.unsqueeze(1)), f64::NEG_INFINITY)
    });
}

/// Masks whose conditions depend on values that are known when the kernel runs: earlier keys in a cache, lengths,
/// windows. Their bounds leave out blocks as those that the text knows.
#[test]
fn masks_by_arguments_leave_out_blocks() {
    let inputs = |device: &Device| {
        let shapes: [&[usize]; 3] = [&[2, 2, 70, 16], &[2, 1, 260, 16], &[2, 1, 260, 24]];
        [0, 1, 2].map(|n| randn(device, shapes[n], n as u64 + 1))
    };
    let at = |device: &Device, n: i64| Tensor::arange(0, n, 1).to(device);
    let grouped = Attention::new().grouped(true);
    type Mask = Box<dyn Fn(&Device, &Tensor) -> Tensor>;
    let attend = |device: &Device, past: &Tensor, mask: &Mask| {
        let [q, k, v] = inputs(device);
        let y = q.scaled_dot_product_attention(&k, &v, &grouped.clone().mask(&mask(device, past)));
        // The same with keys of each head, written out.
        let [k, v] = [k, v].map(|x| x.repeat_interleave(2, 1));
        k.eval().unwrap();
        v.eval().unwrap();
        let scores = q.matmul(&k.transpose(-2, -1)) * 0.25;
        let written = scores.masked_fill(&mask(device, past).logical_not(), f64::NEG_INFINITY);
        [y, written.softmax(-1).matmul(&v)]
    };
    let masks: Vec<(&str, &str, Mask)> = vec![
        ("causal", "last", Box::new(move |d, past| at(d, 260).le((at(d, 70) + past).unsqueeze(1)))),
        (
            "window",
            "first",
            Box::new(move |d, past| {
                let distance = (at(d, 70) + past).unsqueeze(1) - at(d, 260);
                distance.ge(0).logical_and(distance.lt(60))
            }),
        ),
        (
            "narrow",
            "last",
            Box::new(move |d, past| {
                let [keys, queries] = [260, 70].map(|n| at(d, n).cast(DType::I32));
                keys.gt((queries + past.cast(DType::I32)).unsqueeze(1)).logical_not()
            }),
        ),
        (
            "ends",
            "first",
            Box::new(move |d, past| {
                let keys = at(d, 260);
                let far = keys.lt(past).logical_or(keys.gt(past + 120));
                far.logical_not().unsqueeze(0).logical_and(at(d, 70).lt(60).unsqueeze(1))
            }),
        ),
        (
            "positions from memory",
            "last",
            Box::new(move |d, past| {
                let positions = (at(d, 70) * 37).remainder(&at(d, 70).add(11)) + past;
                positions.eval().unwrap();
                at(d, 260).le(positions.unsqueeze(1))
            }),
        ),
        (
            "both ways",
            "first",
            Box::new(move |d, past| {
                let [keys, queries] = [at(d, 260), at(d, 70).unsqueeze(1)];
                let distance = keys - past;
                distance.gt(&queries * 1).logical_and(distance.gt(-&queries + 69))
            }),
        ),
        (
            "lengths of a batch",
            "last",
            Box::new(move |d, past| {
                let lengths = Tensor::from_slice(&[3i64, 90], [2, 1, 1, 1]).to(d) + past;
                at(d, 260).lt(lengths.abs())
            }),
        ),
    ];
    for (name, bound, mask) in &masks {
        let pasts: &[i64] = match *name {
            "window" => &[0, 130, 700, -40, i64::MAX - 20, i64::MIN + 9],
            _ => &[100, i64::MAX - 20],
        };
        for &past in pasts {
            for n in [0, 1] {
                compare(&format!("{name}, {past}, {n}"), 1, |device| {
                    let [y, written] = attend(device, &Tensor::from_slice(&[past], []).to(device), mask);
                    if n == 0 { y } else { written }
                });
            }
        }
        let past = Tensor::from_slice(&[5i64], []);
        let leaves_out = match *bound {
            "first" => "begin = first;",
            _ => "end = last;",
        };
        for y in attend(&Device::cpu(), &past, mask) {
            let source = y.compile_for(&lazuli::Target::cpu()).unwrap().source();
            assert!(source.contains(leaves_out), "{name}: {source}");
        }
    }
}

/// Rows from memory: a normalisation, then a layer.
#[test]
fn of_normalised_rows() {
    compare("layer norm", 1, |device| {
        let x = randn(device, &[70, 96], 1);
        let (w, b) = (randn(device, &[130, 96], 2), randn(device, &[130], 3));
        let normal = (&x - x.mean_keepdim(-1)) / (x.var_keepdim(-1, 0) + 1e-5).sqrt();
        normal.linear(&w, Some(&b)).gelu()
    });
    compare("rms norm, gate, residual", 1, |device| {
        let x = randn(device, &[47, 130], 1);
        let [a, b] = [2, 3].map(|seed| randn(device, &[130, 130], seed) / 16.0);
        lazuli::eval([&a, &b]).unwrap();
        let normal = x.rms_norm([130], Some(&randn(device, &[130], 4)), 1e-6);
        normal.matmul(&a).silu() * normal.matmul(&b) + x
    });
    compare("softmax of rows from memory", 1, |device| {
        randn(device, &[2, 61, 90], 1).softmax(-1).matmul(&randn(device, &[2, 90, 70], 2))
    });
    compare("a row of NaN and one of infinity", 1, |device| {
        let (x, w) = (randn(device, &[50, 64], 1), randn(device, &[70, 64], 2));
        let row = Tensor::arange(0, 50, 1).to(device).unsqueeze(1);
        let x = x.masked_fill(&row.eq(3), f64::NAN).masked_fill(&row.eq(49), f64::INFINITY);
        x.eval().unwrap();
        x.layer_norm([64], None, None, 1e-5).linear(&w, None)
    });
}

/// Packing the columns for each block of rows pays where the products are light, and not where they are most of the work.
#[test]
fn what_pays_is_one_kernel() {
    let kernels = |x: Tensor| x.explain().unwrap().kernels();
    for dtype in [DType::F32, DType::BF16, DType::F16] {
        for [batch, queries, keys] in [[16, 512, 512], [16, 1024, 1024], [2, 2048, 2048]] {
            let [q, kv] = [queries, keys].map(|n| Tensor::zeros([batch, n, 64], dtype).to(&Device::cpu()));
            [&q, &kv].into_iter().for_each(|x| x.eval().unwrap());
            assert_eq!(kernels(q.scaled_dot_product_attention(&kv, &kv, &Attention::new())), 1, "{dtype}");
        }
    }
    let x = randn(&Device::cpu(), &[2048, 1024], 1);
    let w = randn(&Device::cpu(), &[2048, 1024], 2);
    // A layer's rows are reduced again for each block of columns.
    assert_eq!(kernels(x.layer_norm([1024], None, None, 1e-5).linear(&w, None)), 1);
}
