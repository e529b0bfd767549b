//! Copies to shared memory that threads wait for.

use super::*;

/// The body of a kernel whose threads copy four elements each, and wait for all groups of copies but the last few.
fn copying(waits: &str) -> String {
    let helper = r#"
    __shared__ __align__(16) float tile[128];
    for (int i = 0; i < 4; ++i) y[threadIdx.x * 4 + i] = threadIdx.x * 4 + i;
    {
        void* to = tile + threadIdx.x * 4;
        const void* from = y + threadIdx.x * 4;
        unsigned at = (unsigned)__cvta_generic_to_shared(to), bytes = threadIdx.x == 31 ? 0 : 16;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(at), "l"(from), "r"(bytes) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
"#;
    let read = "__syncthreads();\ny[1024 + threadIdx.x] = tile[127 - threadIdx.x];\n";
    format!("{helper}{waits}\n{read}")
}

#[test]
fn copies_land_when_they_are_awaited() {
    let wait = |but| format!("asm volatile(\"cp.async.wait_group {but};\" ::: \"memory\");");
    let expected: Vec<f32> = (96..128).rev().map(|n| if n < 124 { n as f32 } else { 0.0 }).collect();
    assert_eq!(output(&copying(&wait(0)), 32)[1024..1056], expected);
    // What is waited for is the group before: nothing is there when it is read.
    let too_late = copying(&wait(1)) + "__syncthreads();\n" + &wait(0);
    assert!(output(&too_late, 32)[1024..1056].iter().all(|n| n.is_nan()));
    let error = failure(&copying(&wait(1)), 32);
    let expected =
        "block (0, 0, 0): thread 0 returns, and has not waited for the copy that it began on line 9\n";
    assert!(error.starts_with(expected), "{error}");
}
