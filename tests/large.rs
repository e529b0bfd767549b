//! Offsets that 32 bits do not hold: read and written in up to 6 GiB of memory on the CPU, in the text for CUDA, and by
//! the emulated device where only the offsets are large.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

#[cfg(feature = "cuda")]
mod common;

use std::sync::Mutex;

use lazuli::{DType, Tensor, s};

/// One at a time: each test needs gigabytes.
static MEMORY: Mutex<()> = Mutex::new(());

/// More elements than an `i32` counts.
const COUNT: i64 = (1 << 31) + 12_345;

/// The element at a position; it depends on the position's highest bits.
fn element(position: i64) -> u8 {
    (position & 255) as u8 ^ (position >> 23 & 255) as u8
}

/// All elements, recorded: 2 GiB once they are computed.
fn elements() -> Tensor {
    let position = Tensor::arange(0i64, COUNT, 1);
    let high = position.bitwise_right_shift(23) & 255;
    ((position & 255) ^ high).cast(DType::U8)
}

/// Whether the memory is there; says so where it is not.
fn has_memory(gibibytes: u64) -> bool {
    let Ok(info) = std::fs::read_to_string("/proc/meminfo") else { return true };
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes: Option<u64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    let is_there = kibibytes.is_none_or(|kibibytes| kibibytes >> 20 > gibibytes);
    if !is_there {
        println!("not checked: less than {gibibytes} GiB of memory are free");
    }
    is_there
}

fn at(positions: impl IntoIterator<Item = i64>) -> Vec<u8> {
    positions.into_iter().map(element).collect()
}

/// Sixteen million results and more are stored around the caches, in rows that begin anywhere in a line of memory.
#[test]
fn results_larger_than_a_cache() {
    let _alone = MEMORY.lock();
    let rows = Tensor::arange(0i64, 2100, 1).unsqueeze(1);
    let position = rows * 8011 + Tensor::arange(0i64, 8011, 1);
    let x = (position & 1023).cast(DType::F32);
    x.eval().unwrap();
    let (single, half) = (&x * 0.5 + 1.0, (&x * 0.5 + 1.0).cast(DType::F16));
    for result in [single, half] {
        result.eval().unwrap();
        let values = result.cast(DType::F32).to_vec::<f32>().unwrap();
        assert_eq!(values.len(), 2100 * 8011);
        let expected = |position: usize| (position & 1023) as f32 * 0.5 + 1.0;
        let wrong = values.iter().enumerate().find(|&(position, &value)| value != expected(position));
        assert_eq!(wrong, None);
    }
}

#[test]
fn elements_beyond_two_to_the_31() {
    let _alone = MEMORY.lock();
    if !has_memory(5) {
        return;
    }
    let x = elements();
    x.eval().unwrap();
    let values = |tensor: Tensor| tensor.to_vec::<u8>().unwrap();

    let tail = COUNT - 100..COUNT;
    assert_eq!(values(x.i(s![-100..]) + 0), at(tail.clone()));
    assert_eq!(values(x.flip(0).i(s![..100]) + 0), at(tail.clone().rev()));
    let step = (1 << 27) + 3;
    assert_eq!(values(x.i(s![..;1 << 27 | 3]) + 0), at((0..COUNT).step_by(step)));

    // A matrix, read along its columns: rows are 46,340 apart, of which there are 46,341.
    let rows = 46_341;
    let matrix = x.i(s![..rows * 46_340]).reshape([rows as usize, 46_340]);
    let columns = matrix.t().i(s![46_338.., 46_330..]) + 0;
    let expected =
        (46_338..46_340).flat_map(|column| (46_330..rows as i64).map(move |row| row * 46_340 + column));
    assert_eq!(values(columns), at(expected));
    let last = matrix.i(s![46_330.., -3..]).cast(DType::I64).sum(0);
    let column =
        |column: i64| (46_330..rows as i64).map(|row| i64::from(element(row * 46_340 + column))).sum::<i64>();
    assert_eq!(last.to_vec::<i64>().unwrap(), [column(46_337), column(46_338), column(46_339)]);

    // Every element counts once. 256 neighbours are all numbers of a byte, in some order.
    let blocks = COUNT / 256;
    let rest: i64 = (blocks * 256..COUNT).map(|position| i64::from(element(position))).sum();
    let expected = blocks * (255 * 128) + rest;
    assert_eq!(x.sum(..).item::<i64>().unwrap(), expected);
    let position = Tensor::from_slice(&[0, COUNT - 1, 1 << 31, (1 << 31) - 1], [4]);
    assert_eq!(values(x.take(&position)), at([0, COUNT - 1, 1 << 31, (1 << 31) - 1]));

    // The same offsets in CUDA C, executed.
    #[cfg(feature = "emulate")]
    {
        let x = x.to(&lazuli::Device::cuda_emulated());
        assert_eq!(values(x.i(s![-100..]) + 0), at(tail.clone()));
        assert_eq!(values(x.flip(0).i(s![..100]) + 0), at(tail.rev()));
        assert_eq!(values(x.i(s![..;1 << 27 | 3]) + 0), at((0..COUNT).step_by(step)));
    }
}

#[test]
fn more_results_than_elements() {
    let _alone = MEMORY.lock();
    if !has_memory(4) {
        return;
    }
    let (rows, columns) = (60_013, 40_009);
    let row = Tensor::arange(0i64, rows, 1).cast(DType::U8).unsqueeze(1);
    let column = Tensor::arange(0i64, columns, 1).bitwise_right_shift(3).cast(DType::U8);
    let sums = row + column;
    sums.eval().unwrap();
    let of = |row: i64, column: i64| (row as u8).wrapping_add((column >> 3) as u8);
    let expected: Vec<u8> =
        (rows - 2..rows).flat_map(|row| (columns - 50..columns).map(move |column| of(row, column))).collect();
    assert_eq!((sums.i(s![-2.., -50..]) + 0).to_vec::<u8>().unwrap(), expected);
    let middle = 53_677; // Here the 2^31st result is.
    let expected: Vec<u8> = (0..columns).map(|column| of(middle, column)).collect();
    assert_eq!((sums.i(s![middle as isize]) + 0).to_vec::<u8>().unwrap(), expected);
}

/// Few results, whose places in what they are views of are beyond 2^32: quotients of them say what is read.
#[test]
fn places_beyond_two_to_the_32() {
    let (rows, columns, step) = (300_007, 50_021, 150_062);
    let results = |device: &lazuli::Device| {
        let row = Tensor::arange(0i64, rows, 1).to(device);
        let column = (Tensor::arange(0i64, columns, 1) * 7).to(device);
        lazuli::eval([&row, &column]).unwrap();
        let shape = [rows as usize, columns as usize];
        let line = |x: &Tensor| x.broadcast_to(shape).reshape([-1]).i(s![..;step]);
        (line(&row.unsqueeze(1)) * 1_000_000 + line(&column)).to_vec::<i64>().unwrap()
    };
    let place = |place: i64| place / columns * 1_000_000 + place % columns * 7;
    let expected: Vec<i64> = (0..rows * columns).step_by(step as usize).map(place).collect();
    assert_eq!(results(&lazuli::Device::cpu()), expected);
    #[cfg(feature = "emulate")]
    assert_eq!(results(&lazuli::Device::cuda_emulated()), expected);
}

#[cfg(feature = "cuda")]
#[test]
fn cuda_counts_in_64_bits_where_it_must() {
    let source = |result: &Tensor| {
        let program = result.compile_for(&lazuli::Target::cuda("sm_90")).unwrap();
        common::nvrtc::compile(std::slice::from_ref(&program)).unwrap();
        program.source()
    };
    let is_wide = |rows: usize, columns: usize| {
        let zeros = |extent: usize| Tensor::from_vec(vec![0u8; extent], [extent]);
        let source = source(&(zeros(rows).unsqueeze(1) + zeros(columns) + 1));
        assert!(!source.contains("(unsigned long long)i"), "{source}");
        source.contains("unsigned long long i0")
    };
    assert!(!is_wide(60_000, 30_000));
    assert!(is_wide(60_000, 40_000));
    let scan = source(&Tensor::arange(0i64, 3 << 30, 1).cumsum(0));
    assert!(scan.contains("unsigned long long length"), "{scan}");
}

/// A kernel with few positions counts in 32 bits, and has 64 where it reads far away, there alone.
#[cfg(feature = "cuda")]
#[test]
fn cuda_offsets_have_the_width_that_they_need() {
    let _alone = MEMORY.lock();
    if !has_memory(3) {
        return;
    }
    let x = elements();
    x.eval().unwrap();
    let near = Tensor::from_vec(vec![1u8; 45_000], [450, 100]);
    let far = x.i(s![..46_341i64.pow(2)]).reshape([46_341, 46_341]).t().i(s![-450.., -100..]);
    let rows = Tensor::from_slice(&[0i64, 1_000_000, 2_097_163], [3]);
    for (name, result, [narrow, wide], is_narrow) in [
        ("strides", &far + &near, ["in1[i0 * 100u + i1]", "(unsigned long long)i1 * 46341ull"], true),
        (
            "a table",
            x.i(s![..2_097_164i64 << 10]).reshape([2_097_164, 1 << 10]).index_select(0, &rows) + 1,
            ["in0[i0]", "(unsigned long long)g0 * 1024ull"],
            true,
        ),
        // Where the slice begins is a parameter of 64 bits, and loops count like their parameters.
        (
            "differences",
            x.flip(0).i(s![..99]) + near.i(s![0, ..99]),
            ["in1[i0]", "unsigned long long o0"],
            false,
        ),
    ] {
        let program = result.compile_for(&lazuli::Target::cuda("sm_90")).unwrap();
        common::nvrtc::compile(std::slice::from_ref(&program)).unwrap();
        let source = program.source();
        assert!(source.contains(narrow) && source.contains(wide), "{name}: {source}");
        let counts_wide =
            source.lines().any(|line| line.trim_start().starts_with("const unsigned long long"));
        assert_eq!(counts_wide, !is_narrow, "{name}: {source}");
    }
}
