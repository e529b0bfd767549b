use half::{bf16, f16};

use crate::graph::op::Op;
use crate::interpreter::testing::generate;

#[test]
fn the_first_number_of_seed_zero_in_each_format() {
    let random = Op::Random { seed: 0 };
    let f32s: Vec<f32> = generate(random.clone(), [1]);
    assert_eq!(f32s, [0x66_27e8 as f32 / 16_777_216.0]);
    let f64s: Vec<f64> = generate(random.clone(), [1]);
    assert_eq!(f64s, [(0x6627_e8d5_e169_c58du64 >> 11) as f64 / 2f64.powi(53)]);
    let f16s: Vec<f16> = generate(random.clone(), []);
    assert_eq!(f16s, [f16::from_f32((0x6627u32 >> 5) as f32 / 2048.0)]);
    let bf16s: Vec<bf16> = generate(random, []);
    assert_eq!(bf16s, [bf16::from_f32(0x66 as f32 / 256.0)]);
}

#[test]
fn numbers_depend_on_seed_and_row_major_index_alone() {
    let flat: Vec<f32> = generate(Op::Random { seed: 1 << 40 | 7 }, [24]);
    let cube: Vec<f32> = generate(Op::Random { seed: 1 << 40 | 7 }, [2, 3, 4]);
    let other: Vec<f32> = generate(Op::Random { seed: 7 }, [24]);
    assert_eq!(flat, cube);
    assert!(flat.iter().zip(&other).all(|(a, b)| a != b));
    assert!(generate::<f32>(Op::Random { seed: 7 }, [3, 0]).is_empty());
}

#[test]
fn numbers_are_in_range_and_spread() {
    let numbers: Vec<bf16> = generate(Op::Random { seed: 3 }, [10_000]);
    assert!(numbers.iter().all(|&x| x >= bf16::ZERO && x < bf16::ONE));
    let numbers: Vec<f32> = generate(Op::Random { seed: 3 }, [10_000]);
    assert!(numbers.iter().all(|&x| (0.0..1.0).contains(&x)));
    let mean = numbers.iter().sum::<f32>() / 10_000.0;
    assert!((mean - 0.5).abs() < 0.01, "{mean}");
}
