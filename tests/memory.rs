//! What evaluations leave behind: nothing but what the caches are allowed to keep.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

use lazuli::{DType, Device, Tensor, compile};

/// Bytes of this process that are in memory, where the system tells.
fn resident() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split_whitespace().nth(1)?.parse::<usize>().ok()? * 4096)
}

#[test]
fn ten_thousand_evaluations_of_changing_shapes_leave_memory_flat() {
    let device = Device::cpu();
    let normalise = compile(|(x, scale): (Tensor, Tensor)| x.softmax(1) * scale);
    // More sizes than a function keeps executables for, so that most calls record it.
    let round = |n: usize| {
        let x = Tensor::ones([1 + n * 7919 % 199, 16], DType::F32).to(&device);
        let y = if !n.is_multiple_of(20) {
            let y = x.softmax(1) * (n as f32);
            y.eval().unwrap();
            y
        } else {
            normalise.call((x, n as f32)).unwrap()
        };
        assert!(y.is_evaluated());
    };
    (0..2000).for_each(round);
    let (before, resident_before) = (device.memory().unwrap(), resident());
    (2000..12_000).for_each(round);
    let (after, resident_after) = (device.memory().unwrap(), resident());
    assert_eq!(after.allocated, before.allocated);
    assert!(after.reserved <= before.reserved + (1 << 20), "{before:?}, then {after:?}");
    if let (Some(before), Some(after)) = (resident_before, resident_after) {
        assert!(after < before + (16 << 20), "{before} bytes, then {after}");
    }
}
