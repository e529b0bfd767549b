//! Loops as users write them: recurrent networks, tables that are filled, eliminations, iterations to a fixed point, simulations.

use lazuli::{DType, ScanOrder, Tensor, grad, scan};

/// What is done with a value of each step.
pub type Each = fn(&Tensor);

/// A loop of so many steps.
pub type Program = fn(usize, Each) -> Vec<Tensor>;

pub const PROGRAMS: &[(&str, Program)] = &[
    ("lstm", lstm),
    ("gru as a scan", gru),
    ("kalman filter as a scan", kalman),
    ("gradient descent", descent),
    ("adam", adam),
    ("heat", heat),
    ("game of life", life),
    ("lorenz, by euler", lorenz),
    ("metropolis", metropolis),
    ("power iteration", power),
    ("conjugate gradients", conjugate_gradients),
    ("lanczos", lanczos),
    ("sinkhorn", sinkhorn),
    ("value iteration", values),
    ("shortest paths", paths),
    ("elimination", elimination),
    ("cholesky", cholesky),
    ("edit distance", edits),
    ("viterbi", viterbi),
    ("knapsack", knapsack),
    ("rows of a table", rows),
];

/// Data that is there.
fn there(x: Tensor) -> Tensor {
    let _ = x.eval();
    x
}

fn normal(shape: &[usize], seed: u64) -> Tensor {
    there(Tensor::randn(shape, seed))
}

fn zeros(shape: &[usize]) -> Tensor {
    Tensor::zeros(shape, DType::F32)
}

fn seen(x: Tensor, each: Each) -> Tensor {
    each(&x);
    x
}

fn lstm(steps: usize, each: Each) -> Vec<Tensor> {
    let (x, w) = (normal(&[32, steps, 64], 1), there(normal(&[64, 512], 2) * 0.05));
    let (u, bias) = (there(normal(&[128, 512], 3) * 0.05), normal(&[512], 4));
    let inputs = seen(x.matmul(&w) + bias, each);
    let (mut h, mut c, mut all) = (zeros(&[32, 128]), zeros(&[32, 128]), Vec::new());
    for n in 0..steps as isize {
        let gates = seen(inputs.select(1, n) + h.matmul(&u), each);
        let gate = |n: usize| gates.narrow(1, n * 128, 128);
        c = seen(gate(1).sigmoid() * c + gate(0).sigmoid() * gate(2).tanh(), each);
        h = seen(gate(3).sigmoid() * c.tanh(), each);
        all.push(h.clone());
    }
    vec![Tensor::stack(all, 1)]
}

fn gru(steps: usize, _: Each) -> Vec<Tensor> {
    let (x, w) = (normal(&[steps, 16, 32], 1), there(normal(&[32, 192], 2) * 0.1));
    let u = there(normal(&[64, 192], 3) * 0.1);
    let inputs = x.matmul(w);
    let ([last], []) = scan([&inputs], 0, ScanOrder::new(), [zeros(&[16, 64])], |[h], [x]| {
        let own = h.matmul(&u);
        let part = |of: &Tensor, n: usize| of.narrow(1, n * 64, 64);
        let (reset, keep) = ((part(x, 0) + part(&own, 0)).sigmoid(), (part(x, 1) + part(&own, 1)).sigmoid());
        let new = (part(x, 2) + reset * part(&own, 2)).tanh();
        ([(1.0 - &keep) * new + keep * h], [])
    });
    vec![last]
}

fn kalman(steps: usize, _: Each) -> Vec<Tensor> {
    let (eye, seen) = (Tensor::eye(4, DType::F32), normal(&[steps, 64, 2], 1));
    let moves = &eye + eye.roll([2isize], [1isize]).triu(1) * 0.1;
    let observes = eye.narrow(0, 0, 2);
    let begun = [zeros(&[64, 4, 1]), eye.unsqueeze(0).expand([64, 4, 4]) * 1.0];
    let (_, [states]) = scan([&seen], 0, ScanOrder::new(), begun, |[x, p], [z]| {
        let x = moves.matmul(x);
        let p = moves.matmul(p).matmul(moves.t()) + &eye * 0.01;
        let spread = observes.matmul(&p).matmul(observes.t()) + Tensor::eye(2, DType::F32) * 0.1;
        let gain = p.matmul(observes.t()).matmul(spread.inv());
        let x = &x + gain.matmul(z.unsqueeze(2) - observes.matmul(&x));
        let p = (&eye - gain.matmul(&observes)).matmul(p);
        ([x.clone(), p], [x.squeeze(2)])
    });
    vec![states]
}

fn descent(steps: usize, each: Each) -> Vec<Tensor> {
    let (x, y, mut w) = (normal(&[500, 20], 1), normal(&[500], 2), zeros(&[20]));
    for _ in 0..steps {
        let loss = (x.matmul(&w) - &y).square().mean(..);
        w = seen(&w - grad(&loss, &w) * 0.1, each);
    }
    vec![w]
}

fn adam(steps: usize, each: Each) -> Vec<Tensor> {
    let (x, y) = (normal(&[256, 30], 1), normal(&[256], 2));
    let (mut w, mut m, mut v) = (zeros(&[30]), zeros(&[30]), zeros(&[30]));
    for n in 1..=steps as i32 {
        let gradient = grad(&(x.matmul(&w) - &y).square().mean(..), &w);
        m = seen(m * 0.9 + &gradient * 0.1, each);
        v = seen(v * 0.999 + gradient.square() * 0.001, each);
        let (mean, spread) = (&m / (1.0 - 0.9f64.powi(n)), &v / (1.0 - 0.999f64.powi(n)));
        w = seen(w - mean * 0.01 / (spread.sqrt() + 1e-8), each);
    }
    vec![w]
}

/// The sum of what is beside each cell, on a torus.
fn beside(x: &Tensor) -> Tensor {
    let turned = |by: isize, axis: isize| x.roll([by], [axis]);
    turned(1, 0) + turned(-1, 0) + turned(1, 1) + turned(-1, 1)
}

fn heat(steps: usize, each: Each) -> Vec<Tensor> {
    let step = |x: Tensor, _| seen(&x + (beside(&x) - &x * 4.0) * 0.1, each);
    vec![(0..steps).fold(normal(&[128, 128], 1), step)]
}

fn life(steps: usize, each: Each) -> Vec<Tensor> {
    let step = |x: Tensor, _| {
        let wide = x.pad([(1, 1), (1, 1)], 0);
        let around = (0..9).filter(|&n| n != 4);
        let alive = around.map(|n| wide.narrow(0, n / 3, 128).narrow(1, n % 3, 128));
        let alive = alive.fold(Tensor::zeros([128, 128], DType::I32), |sum, part| sum + part);
        seen((alive.eq(3) | (x.eq(1) & alive.eq(2))).cast(DType::I32), each)
    };
    let begun = there(Tensor::rand([128, 128], 1).gt(0.5).cast(DType::I32));
    vec![(0..steps).fold(begun, step)]
}

fn lorenz(steps: usize, each: Each) -> Vec<Tensor> {
    let step = |x: Tensor, _| {
        let [a, b, c] = [0, 1, 2].map(|n| x.select(1, n));
        let change = Tensor::stack([(&b - &a) * 10.0, &a * (28.0 - &c) - &b, &a * &b - &c * (8.0 / 3.0)], 1);
        seen(&x + change * 0.001, each)
    };
    vec![(0..steps).fold(normal(&[1000, 3], 1), step)]
}

fn metropolis(steps: usize, each: Each) -> Vec<Tensor> {
    let likely = |x: &Tensor| {
        let [a, b] = [0, 1].map(|n| x.select(1, n));
        -(a.square() + (b - a.square()).square() * 5.0) * 0.5
    };
    let (mut x, mut means) = (normal(&[256, 2], 1), Vec::new());
    for n in 0..steps as u64 {
        let other = &x + Tensor::randn([256, 2], n) * 0.3;
        let moves = Tensor::rand([256], n + 1_000_000).log().lt(likely(&other) - likely(&x));
        x = seen(moves.unsqueeze(1).where_(&other, &x), each);
        means.push(x.mean(0));
    }
    vec![Tensor::stack(means, 0)]
}

fn power(steps: usize, each: Each) -> Vec<Tensor> {
    let a = normal(&[200, 200], 1);
    let step = |v: Tensor, _| {
        let next = seen(a.matmul(v), each);
        seen(&next / next.square().sum(..).sqrt(), each)
    };
    vec![(0..steps).fold(normal(&[200], 2), step)]
}

fn conjugate_gradients(steps: usize, each: Each) -> Vec<Tensor> {
    let m = normal(&[200, 200], 1);
    let a = there(m.matmul(m.t()) + Tensor::eye(200, DType::F32) * 100.0);
    let (mut x, mut r) = (zeros(&[200]), normal(&[200], 2));
    let (mut p, mut square) = (r.clone(), r.square().sum(..));
    for _ in 0..steps {
        let ap = seen(a.matmul(&p), each);
        let length = &square / (&p * &ap).sum(..);
        x = seen(x + &length * &p, each);
        r = seen(r - length * ap, each);
        let next = seen(r.square().sum(..), each);
        p = seen(&r + &next / (square + 1e-20) * p, each);
        square = next;
    }
    vec![x]
}

fn lanczos(steps: usize, each: Each) -> Vec<Tensor> {
    let m = normal(&[300, 300], 1);
    let a = there((&m + m.t()) * 0.5);
    let q = normal(&[300], 2);
    let (mut q, mut before) = (&q / q.square().sum(..).sqrt(), zeros(&[300]));
    let (mut beta, mut diagonal) = (zeros(&[]), Vec::new());
    for _ in 0..steps {
        let w = seen(a.matmul(&q) - &beta * &before, each);
        let alpha = seen((&w * &q).sum(..), each);
        let w = seen(w - &alpha * &q, each);
        beta = seen(w.square().sum(..).sqrt(), each);
        (before, q) = (q, seen(w / &beta, each));
        diagonal.push(alpha);
    }
    // Later ones depend on how sums are rounded.
    vec![Tensor::stack(&diagonal[..diagonal.len().min(10)], 0)]
}

fn sinkhorn(steps: usize, each: Each) -> Vec<Tensor> {
    let shares = there((normal(&[100, 100], 1) * 0.3).exp());
    let (mut u, mut v) = (Tensor::ones([100], DType::F32), Tensor::ones([100], DType::F32));
    for _ in 0..steps {
        u = seen(0.01 / shares.matmul(&v), each);
        v = seen(0.01 / shares.t().matmul(&u), each);
    }
    vec![u.unsqueeze(1) * shares * v]
}

fn values(steps: usize, each: Each) -> Vec<Tensor> {
    let (moves, gains) = (there(normal(&[4, 50, 50], 1).softmax(2)), normal(&[4, 50], 2));
    let step = |v: Tensor, _| seen((&gains + moves.matmul(v) * 0.9).max(0), each);
    vec![(0..steps).fold(zeros(&[50]), step)]
}

fn paths(steps: usize, each: Each) -> Vec<Tensor> {
    let step = |d: Tensor, n: usize| seen(d.minimum(d.narrow(1, n, 1) + d.narrow(0, n, 1)), each);
    vec![(0..steps).fold(there(Tensor::rand([steps, steps], 1) * 10.0), step)]
}

fn elimination(steps: usize, each: Each) -> Vec<Tensor> {
    let number = Tensor::arange(0i64, steps as i64, 1).unsqueeze(1);
    let step = |a: Tensor, n: usize| {
        let row = a.narrow(0, n, 1);
        let factors = number.gt(n as i64).where_(a.narrow(1, n, 1) / row.narrow(1, n, 1), 0.0);
        seen(a - factors * row, each)
    };
    let begun = there(normal(&[steps, steps], 1) + Tensor::eye(steps, DType::F32) * 20.0);
    vec![(0..steps).fold(begun, step)]
}

fn cholesky(steps: usize, each: Each) -> Vec<Tensor> {
    let m = normal(&[steps, steps], 1);
    let mut a = there(m.matmul(m.t()) + Tensor::eye(steps, DType::F32) * steps as f64);
    let (number, mut columns) = (Tensor::arange(0i64, steps as i64, 1).unsqueeze(1), Vec::new());
    for n in 0..steps {
        let column = a.narrow(1, n, 1) / a.narrow(1, n, 1).narrow(0, n, 1).sqrt();
        let column = seen(number.ge(n as i64).where_(column, 0.0), each);
        a = seen(a - &column * column.t(), each);
        columns.push(column);
    }
    vec![Tensor::cat(columns, 1)]
}

fn edits(steps: usize, each: Each) -> Vec<Tensor> {
    let [a, b] = [1, 2].map(|seed| there(Tensor::randint(0, 4, [8, steps], seed)));
    let number = Tensor::arange(0.0f32, steps as f32 + 1.0, 1.0);
    let step = |d: Tensor, n: usize| {
        let cost = a.narrow(1, n, 1).ne(&b).cast(DType::F32);
        let own = (d.slice(1, ..-1) + cost).minimum(d.slice(1, 1..) + 1.0);
        let all = Tensor::cat([&(d.narrow(1, 0, 1) + 1.0), &own], 1);
        seen((all - &number).cummin(1) + &number, each)
    };
    vec![(0..steps).fold(number.unsqueeze(0).expand([8, steps + 1]), step).select(1, -1)]
}

fn viterbi(steps: usize, each: Each) -> Vec<Tensor> {
    let (moves, observed) = (normal(&[20, 20], 1), normal(&[steps, 16, 20], 2));
    let (mut best, mut back) = (observed.select(0, 0), Vec::new());
    for n in 1..steps as isize {
        let (largest, from) = (best.unsqueeze(2) + &moves).max_with_indices(1);
        best = seen(largest + observed.select(0, n), each);
        back.push(seen(from, each));
    }
    let mut path = vec![seen(best.argmax(1), each)];
    for from in back.iter().rev() {
        let at = &path[path.len() - 1];
        path.push(seen(from.gather(1, at.unsqueeze(1)).squeeze(1), each));
    }
    vec![Tensor::stack(path, 1), best.max(1)]
}

fn knapsack(steps: usize, each: Each) -> Vec<Tensor> {
    let values = there(normal(&[steps], 2).abs());
    let step = |best: Tensor, n: usize| {
        let weight = n * 31 % 47 + 1;
        let none = Tensor::full([weight], f32::NEG_INFINITY, DType::F32);
        let chosen = Tensor::cat([&none, &best.slice(0, ..-(weight as isize))], 0);
        seen(best.maximum(chosen + values.select(0, n as isize)), each)
    };
    vec![(0..steps).fold(zeros(&[1001]), step)]
}

fn rows(steps: usize, each: Each) -> Vec<Tensor> {
    let first = normal(&[64], 1);
    let step = |x: Tensor, n: isize| {
        let row = if n == 0 { first.clone() } else { (x.select(0, n - 1) * 0.9).sin() + &first };
        seen(x.select_scatter(0, row, n), each)
    };
    vec![(0..steps as isize).fold(zeros(&[steps, 64]), step)]
}
