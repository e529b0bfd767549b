//! Whoever asks for values changes no gradient: what was computed for that, or on the way, is still what it was recorded from.

use lazuli::{DType, ScanOrder, Tensor, grad, scan};

/// What a program is of: evaluated, so that gradients end there.
fn data(shape: &[usize], seed: u64) -> Tensor {
    let x = Tensor::rand_with(shape, DType::F64, seed);
    x.eval().unwrap();
    x
}

/// What somebody might look at on the way, in order; the last one is the loss.
type Program = fn(&Tensor, &Tensor) -> Vec<Tensor>;

/// Each has another path from `w` to the loss, so that a path that was lost makes another gradient and no error.
const PROGRAMS: [(&str, Program); 10] = [
    ("layers", |w, x| {
        let logits = x.matmul(w).tanh();
        let probabilities = logits.softmax(1);
        let entropy = -(&probabilities * probabilities.log()).sum(1).mean(0);
        let loss = logits.square().mean(..) + &entropy * 0.3 + w.square().sum(..) * 0.01;
        vec![logits, probabilities, entropy, loss]
    }),
    ("two losses", |w, x| {
        let (a, b) = ((x.matmul(w) - 1.0).square().mean(..), w.exp().sum(..));
        vec![a.clone(), b.clone(), a + b * 0.1]
    }),
    ("a library solves", |w, x| {
        let solved = (x.matmul(x) + Tensor::eye(4, DType::F64) * 5.0 + w).solve(w);
        let loss = solved.square().sum(..) + w.sum(..);
        vec![solved.sum(..), solved, loss]
    }),
    ("a library factorises", |w, x| {
        let positive = w.matmul(w.t()) + Tensor::eye(4, DType::F64);
        let lower = positive.cholesky(false);
        let loss = (lower.diagonal(0, 0, 1).log() * x.select(0, 0)).sum(..) + w.square().sum(..);
        vec![lower, loss]
    }),
    ("a library in each step", |w, x| {
        let mut state = w.clone();
        for _ in 0..12 {
            state = (x.matmul(x) + Tensor::eye(4, DType::F64) * 5.0 + &state).solve(w) + w * 0.1;
        }
        vec![state.square().sum(..)]
    }),
    ("a transform", |w, x| {
        let (re, im) = (w * x).rfft(1);
        let power = re.square() + im.square();
        let loss = power.log1p().sum(..) + w.square().sum(..);
        vec![re, power, loss]
    }),
    ("a join of many", |w, x| {
        let parts: Vec<Tensor> = (0..40).map(|n| w * f64::from(n) + x).collect();
        let joined = Tensor::cat(&parts, 0);
        let loss = joined.sin().sum(..) + w.square().sum(..);
        vec![joined.mean(..), joined, loss]
    }),
    ("a scan", |w, x| {
        let (_, [states]) = scan([x], 0, ScanOrder::new(), [w.select(0, 0)], |[state], [row]| {
            let state = (state * row).tanh() + state * 0.5;
            ([state.clone()], [state])
        });
        let loss = states.square().sum(..) + w.sum(..);
        vec![states.select(0, 3), states, loss]
    }),
    ("numbers beside", |w, x| {
        let is_large = w.gt(0.5);
        let share = is_large.cast(DType::F64).mean(..);
        let loss = is_large.where_(w * x, w.square()).sum(..) * &share;
        vec![is_large, share, loss]
    }),
    ("a detached part", |w, x| {
        let target = (w * x).exp();
        let loss = (w.sin() - target.detach()).square().sum(..);
        vec![target, loss]
    }),
];

fn look(tensor: &Tensor) {
    match tensor.dtype().unwrap() {
        DType::Bool => drop(tensor.to_vec::<bool>().unwrap()),
        _ => drop(tensor.to_vec::<f64>().unwrap()),
    }
}

fn gradient(loss: &Tensor, w: &Tensor) -> Vec<f64> {
    grad(loss, w).to_vec().unwrap()
}

#[test]
fn looking_changes_nothing() {
    for (name, program) in PROGRAMS {
        let (w, x) = (data(&[4, 4], 1), data(&[4, 4], 2));
        let expected = gradient(program(&w, &x).last().unwrap(), &w);
        let count = program(&w, &x).len();
        // Each of them, and all, once and more often, forwards and backwards.
        let all = 0..count;
        let mut orders: Vec<Vec<usize>> = all.clone().map(|n| vec![n]).collect();
        orders.extend([all.clone().collect(), all.rev().collect()]);
        for order in orders {
            for is_again in [false, true] {
                let values = program(&w, &x);
                for tensor in order.iter().map(|&n| &values[n]) {
                    look(tensor);
                    if is_again {
                        // What is on the way is computed again, and kept.
                        look(&tensor.cast(DType::F64).sum(..));
                        look(&tensor.cast(DType::F64).mean(..));
                    }
                }
                let found = gradient(values.last().unwrap(), &w);
                let is_near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
                assert!(
                    expected.iter().zip(&found).all(is_near),
                    "{name}, {order:?}: {found:?} {expected:?}"
                );
            }
        }
    }
}

/// Two sets of parameters, as in an adversarial game: what one step has looked at, the other one goes through.
#[test]
fn what_one_step_computes_the_next_one_goes_through() {
    let (z, real) = (data(&[5, 3], 3), data(&[5, 4], 4));
    let (generator, mut judge) = (data(&[3, 4], 5), data(&[4, 1], 6));
    let made = z.matmul(&generator).tanh();
    for _ in 0..20 {
        let loss = made.matmul(&judge).silu().mean(..) - real.matmul(&judge).silu().mean(..);
        assert!(loss.item::<f64>().unwrap().is_finite());
        judge = &judge - grad(&loss, &judge) * 0.1;
        judge.eval().unwrap();
    }
    let loss = made.matmul(&judge).silu().mean(..);
    let fresh = z.matmul(&generator).tanh().matmul(&judge).silu().mean(..);
    assert!(loss.item::<f64>().unwrap().is_finite());
    let (found, expected) = (gradient(&loss, &generator), gradient(&fresh, &generator));
    assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-14), "{found:?} {expected:?}");
}

#[test]
fn what_is_evaluated_is_a_constant() {
    let w = data(&[3], 7);
    let hidden = w.exp();
    let loss = hidden.sum(..) + w.sum(..);
    look(&hidden);
    hidden.eval().unwrap();
    assert_eq!(gradient(&loss, &w), [1.0; 3]);
    loss.eval().unwrap();
    let error = grad(&loss, &w).eval().unwrap_err().to_string();
    assert!(error.contains("of `add` at ") && error.contains("has made data"), "{error}");
    let error = grad(&w.sum(..), &data(&[3], 8)).eval().unwrap_err().to_string();
    assert!(error.contains("it was not used on the way, at tests/gradients/asked.rs"), "{error}");
}

/// What only a history holds is no result of the next evaluation: the gradients after a loss are as few kernels as without it.
#[test]
fn what_was_looked_at_makes_no_kernels() {
    let (x, mut w) = (data(&[8, 16], 10), data(&[16, 4], 11));
    for is_looked_at in [false, true] {
        for _ in 0..3 {
            let loss = x.matmul(&w).tanh().square().mean(..);
            let gradient = grad(&loss, &w);
            if is_looked_at {
                look(&loss);
            }
            w = &w - gradient * 0.01;
            let (evaluated, profile) = lazuli::profile(|| w.eval());
            evaluated.unwrap();
            assert_eq!(profile.kernels().len(), 1, "{profile}");
        }
    }
}

/// A loop that looks at each state lets go of what is long ago; a gradient through that is an error, and not another number.
#[test]
fn what_was_forgotten_is_an_error() {
    let (rate, x) = (data(&[1], 8), data(&[6], 9));
    let mut state = x.clone();
    let mut before = state.clone();
    for _ in 0..30 {
        before = state;
        state = (&before * &rate).sin() + &before * 0.1;
        look(&state);
    }
    let loss = state.square().sum(..) + rate.sum(..);
    let error = grad(&loss, &rate).eval().unwrap_err().to_string();
    assert!(error.starts_with("grad: goes through the f64 [6]") && error.contains("too long ago"), "{error}");
    assert!(error.contains("asked.rs"), "{error}");
    // From one step before, which there is a handle of, and of what follows from none of that.
    assert_eq!(gradient(&loss, &before).len(), 6);
    let loss = (state.detach() * &rate).sum(..);
    assert_eq!(gradient(&loss, &rate), [state.sum(..).item::<f64>().unwrap()]);
}

/// What each step of such a loop reads is not old for that.
#[test]
fn what_a_loop_reads_keeps_its_history() {
    let (a, mut state) = (data(&[6], 12), data(&[6], 13));
    let make = || (a.unsqueeze(1) - &a).square();
    let expected = gradient(&make().sum(..), &a);
    let distances = make();
    look(&distances);
    for _ in 0..30 {
        state = (&state * 0.5 + distances.sum(1)).sin();
        look(&state);
    }
    assert_eq!(gradient(&distances.sum(..), &a), expected);
}

/// Of what is left to compute, statistics of one short row: each reduction goes through the loop of another, and none waits for
/// one whose loop it is in.
#[test]
fn second_gradients_of_short_rows_that_were_asked_for() {
    for size in [4usize, 8] {
        let x0 = Tensor::from_vec((0..size).map(|i| (i * i % 7) as f64 * 0.3).collect(), [1, size]);
        let weight = Tensor::from_vec((1..=size).map(|i| i as f64).collect(), [size]);
        let second = |asks: bool| {
            let x = Tensor::cat(&[&x0, &x0], 0).slice(0, 1..);
            let y = x.layer_norm([size], Some(&weight), None, 1e-5);
            let g: Tensor = grad(&y.square().sum(..), &x0);
            let h: Tensor = grad(&g.square().sum(..), &x0);
            if asks {
                y.eval().unwrap();
                g.eval().unwrap();
            }
            h.to_vec::<f64>().unwrap()
        };
        let (at_once, asked) = (second(false), second(true));
        for (a, b) in at_once.iter().zip(&asked) {
            assert!((a - b).abs() <= 1e-6 * a.abs().max(1.0), "{size}: {a} is not {b}");
        }
    }
}
