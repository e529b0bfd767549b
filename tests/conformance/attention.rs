//! Proves attention right: on every device against the interpreter, fused and unfused.

use lazuli::{Attention, DType, Tensor};

use crate::common::data::floats;
use crate::common::{check_fused, near};

#[test]
fn attention_of_every_kind() {
    check_fused("attention", |device| {
        let of = |shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
        let (q, k, v) = (of(&[2, 4, 30, 16], 1), of(&[2, 4, 40, 16], 2), of(&[2, 4, 40, 24], 3));
        let mask = of(&[30, 40], 4).gt(0.0);
        let halves = floats(device, DType::F16, [2, 4, 40, 16], 1.0, 5);
        let attend = |attention: &Attention| q.scaled_dot_product_attention(&k, &v, attention);
        let near = |name: &str, y| near(name, y, 1e-5, 1e-5);
        vec![
            near("plain", attend(&Attention::new())),
            near("causal", attend(&Attention::new().causal(true).scale(0.3))),
            near("masked", attend(&Attention::new().mask(&mask))),
            near("biased", attend(&Attention::new().mask(&of(&[4, 30, 40], 6)))),
            near("dropout", attend(&Attention::new().dropout(0.3, 7))),
            near(
                "grouped",
                q.scaled_dot_product_attention(
                    &k.slice(1, ..2),
                    &v.slice(1, ..2),
                    &Attention::new().grouped(true),
                ),
            ),
            crate::common::near(
                "halves",
                halves.scaled_dot_product_attention(&halves, &halves, &Attention::new().causal(true)),
                2e-3,
                2e-3,
            ),
        ]
    });
}

/// Rows that are longer than what a block has of them at a time, by no multiple of it.
#[test]
fn attention_along_its_rows() {
    check_fused("attention along its rows", |device| {
        let of = |shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
        let (q, k, v) = (of(&[2, 70, 20], 1), of(&[2, 150, 20], 2), of(&[2, 150, 40], 3));
        let at = |n: usize| Tensor::arange(0i64, 150, 1).to(device).eq(n as i64);
        let scores = q.matmul(&k.transpose(1, 2)) * 0.3;
        let capped = (&scores / 2.0).tanh() * 2.0 + of(&[70, 150], 4);
        let weights = (&capped - capped.max_keepdim(-1)).exp();
        let dropped = of(&[70, 150], 5).gt(-0.5).where_(scores.softmax(-1) * 1.25, 0.0);
        let causal = |q: &Tensor, k: &Tensor, v: &Tensor| {
            q.scaled_dot_product_attention(k, v, &Attention::new().causal(true))
        };
        // The rows are the last of more: each has the elements of those before it as well.
        let position = |n: i64| Tensor::arange(0i64, n, 1).to(device);
        let behind = position(150).gt(position(70).unsqueeze(1) + 45i64);
        let past = |v: &Tensor| behind.where_(f64::NEG_INFINITY, &scores).softmax(-1).matmul(v);
        let infinite = at(60).unsqueeze(1).where_(f64::INFINITY, &v);
        let nothing = of(&[70, 150], 6).gt(2.0).where_(0.0, f64::NEG_INFINITY);
        let nan = at(7).unsqueeze(1).where_(f64::NAN, &k);
        let halves = [&q, &k, &v].map(|x| x.cast(DType::F16));
        let brief = [&q, &k, &of(&[2, 150, 100], 9)].map(|x| x.cast(DType::BF16));
        // More than a GPU's block declares of shared memory.
        let wide = |rows, seed| floats(device, DType::BF16, vec![2, rows, 128], 0.5, seed);
        let wide = [wide(130, 10), wide(200, 11), wide(200, 12), wide(70, 13)];
        // Of numbers of 16 bits, in places of either half of a pair.
        let not_finite = |v: &Tensor, number: f64, row: i64, column: i64| {
            let [rows, columns] = [150, 64].map(|n| Tensor::arange(0i64, n, 1).to(device));
            let is_there = rows.eq(row).unsqueeze(1) & columns.eq(column);
            let changed = is_there.where_(number, v).cast(v.dtype().unwrap());
            changed.eval().unwrap(); // what is in memory is tried in pairs
            changed
        };
        let short = |dtype: DType, seed| floats(device, dtype, vec![2, 150, 64], 0.5, seed);
        let of_16_bits = [DType::F16, DType::BF16].map(|dtype| [14, 15, 16].map(|seed| short(dtype, seed)));
        let many = [17, 18, 19].map(|seed| floats(device, DType::BF16, vec![67, 70, 64], 0.5, seed));
        let near = |name: &str, y| near(name, y, 1e-5, 1e-5);
        vec![
            near("capped and biased", (&weights / weights.sum_keepdim(-1)).matmul(&v).relu()),
            near("weights that are dropped", dropped.matmul(&of(&[2, 150, 72], 7))),
            near("later ones masked", causal(&q, &k, &v)),
            near("later than those before all rows and its own", past(&v)),
            near("zero times infinity, behind some", past(&infinite)),
            near("zero times infinity", causal(&q, &k, &infinite)),
            near(
                "some rows masked",
                q.scaled_dot_product_attention(&k, &v, &Attention::new().mask(&of(&[70, 1], 8).gt(0.0))),
            ),
            crate::common::near("halves", causal(&halves[0], &halves[1], &halves[2]), 2e-3, 2e-3),
            crate::common::near("wide, of bf16", causal(&brief[0], &brief[1], &brief[2]), 2e-2, 2e-2),
            crate::common::near("wider", causal(&wide[0], &wide[1], &wide[2]), 2e-2, 2e-2),
            crate::common::near(
                "wider, and not rounded",
                (wide[3].cast(DType::F32).matmul(&wide[1].cast(DType::F32).transpose(1, 2)) * 0.1)
                    .softmax(-1)
                    .matmul(&wide[2].cast(DType::F32)),
                1e-4,
                1e-4,
            ),
            crate::common::near("many parts of a batch", causal(&many[0], &many[1], &many[2]), 2e-2, 2e-2),
            crate::common::near(
                "finite halves",
                causal(&of_16_bits[0][0], &of_16_bits[0][1], &of_16_bits[0][2]),
                2e-3,
                2e-3,
            ),
            crate::common::near(
                "zero times an infinite half",
                causal(
                    &of_16_bits[0][0],
                    &of_16_bits[0][1],
                    &not_finite(&of_16_bits[0][2], f64::NEG_INFINITY, 130, 6),
                ),
                2e-3,
                2e-3,
            ),
            crate::common::near(
                "zero times no number of bf16",
                causal(
                    &of_16_bits[1][0],
                    &of_16_bits[1][1],
                    &not_finite(&of_16_bits[1][2], f64::NAN, 149, 63),
                ),
                2e-2,
                2e-2,
            ),
            near("few are left, or none", (&scores + &nothing).softmax(-1).matmul(&v)),
            near("NaN", causal(&q, &nan, &v)),
        ]
    });
}
