//! Kernels with bugs, and launches that a driver would refuse: what is reported.

use super::*;

#[test]
fn a_barrier_that_some_threads_skip() {
    let message = failure("if (threadIdx.x < 40) return;\n__syncthreads();\ny[threadIdx.x] = 1.0f;", 64);
    assert_eq!(
        message,
        "block (0, 0, 0): divergent barrier: 24 of 64 threads wait at the barrier on line 3, which the others returned \
         without reaching\n    3 | __syncthreads();"
    );
}

#[test]
fn barriers_in_two_branches() {
    let message = failure("if (threadIdx.x & 1) {\n__syncthreads();\n} else {\n__syncthreads();\n}", 32);
    assert!(message.contains("divergent barrier: thread 30 is at the barrier on line 5"), "{message}");
    assert!(message.contains("1 of its block wait at that on line 3"), "{message}");
    assert!(message.contains("    3 | __syncthreads();\n    5 | __syncthreads();"), "{message}");
}

#[test]
fn a_shuffle_over_a_partially_exited_warp() {
    let message = failure(
        "if (threadIdx.x >= 20) return;\ny[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);",
        32,
    );
    assert!(
        message.contains(
            "exited lanes: a shuffle on line 3 waits for lanes 0xffffffff of warp 0, of which 0xfff00000 have returned"
        ),
        "{message}"
    );
}

#[test]
fn a_shuffle_that_does_not_name_its_own_lane() {
    let message = failure("y[threadIdx.x] = __shfl_sync(0xffffu, 1.0f, 0);", 32);
    assert!(
        message.contains("thread 31 (lane 31) calls a shuffle on line 2 with mask 0x0000ffff"),
        "{message}"
    );
}

#[test]
fn lanes_of_a_warp_on_different_lines() {
    let body = "if (threadIdx.x == 5) y[0] = __shfl_sync(0xffffffffu, 1.0f, 0);\nelse __syncwarp();";
    let message = failure(body, 32);
    assert!(message.contains("divergent warp: thread 5 calls a shuffle on line 2"), "{message}");
    assert!(message.contains("lanes 0xffffffc0 of its warp wait in __syncwarp on line 3"), "{message}");
}

#[test]
fn a_deadlock_says_who_waits_where() {
    let message =
        failure("if (threadIdx.x >= 32 && threadIdx.x < 48) __syncwarp(); else __syncthreads();", 64);
    assert!(
        message.contains("deadlock: 0 of 64 threads have returned; 48 wait at the barrier on line 2"),
        "{message}"
    );
    assert!(
        message.contains("lanes 0x0000ffff of warp 1 wait in __syncwarp on line 2 for lanes 0xffff0000"),
        "{message}"
    );
}

#[test]
fn a_misaligned_vector() {
    let message =
        failure("reinterpret_cast<float4*>(y + 1 - ((size_t)y / 4 & 3))[0] = make_float4(0, 0, 0, 0);", 1);
    assert!(message.contains("misaligned access: thread 0"), "{message}");
    assert!(message.contains("line 2 as if aligned to 16 bytes"), "{message}");
    let message = failure("\ny[0] = __ldg(reinterpret_cast<double*>(y + 1 - ((size_t)y / 4 & 1)));", 1);
    assert!(message.contains("line 3 as if aligned to 8 bytes"), "{message}");
}

#[test]
fn a_trap() {
    let message = failure("if (threadIdx.x == 3) __trap();", 8);
    assert!(message.contains("thread 3 executes __trap() on line 2"), "{message}");
}

#[test]
fn launches_go_on_after_a_failed_one() {
    failure("if (threadIdx.x == 0) __syncthreads();", 256);
    assert_eq!(output("__syncthreads();\ny[threadIdx.x] = 1.0f;", 256)[..256], [1.0; 256]);
}

#[test]
fn unknown_assembly_is_refused() {
    let source =
        "extern \"C\" __global__ void k(int* p) {\n    asm(\"mov.u32 %0, %laneid;\" : \"=r\"(*p));\n}\n";
    let Err(Error::Compilation { kernel, log, source_text, .. }) = EmulatedModule::compile("k", source)
    else {
        panic!("must not compile")
    };
    assert_eq!((kernel.as_str(), &*source_text), ("k", source));
    assert_eq!(
        log,
        "line 2: no counterpart for this inline assembly: asm(\"mov.u32 %0, %laneid;\" : \"=r\"(*p));"
    );
}

#[test]
fn a_compile_error_shows_log_and_source() {
    let source = "extern \"C\" __global__ void broken(float* y) {\n    y[0] = INFINITY;\n}\n";
    let Err(error @ Error::Compilation { .. }) = EmulatedModule::compile("broken", source) else {
        panic!("must not compile")
    };
    let text = error.to_string();
    assert!(text.contains("broken.cu:2:12: error:") && text.contains("INFINITY"), "{text}");
    assert!(text.contains("--- source ---") && text.ends_with(source), "{text}");
}

#[test]
fn launches_that_a_driver_would_refuse() {
    let source = "extern \"C\" __global__ void __launch_bounds__(128) k(float* y) { __shared__ float s[1024]; s[0] = 0; y[0] = s[0]; }";
    let module = EmulatedModule::compile("k", source).unwrap();
    let mut y = [0.0f32; 1];
    let mut py = y.as_mut_ptr();
    let mut check = |grid, block, shared, expected: &str| {
        // SAFETY: the kernel writes one float.
        let result = unsafe { module.launch(grid, block, shared, &mut [place(&mut py)]) };
        match result {
            Ok(()) => assert_eq!(expected, ""),
            Err(error) => {
                assert!(!expected.is_empty() && error.to_string().contains(expected), "{error}");
            }
        }
    };
    check([1, 1, 1], [128, 1, 1], 223 * 1024, "");
    check([1, 1, 1], [129, 1, 1], 0, "a block of 129 threads, while __launch_bounds__ promises at most 128");
    check([1, 1, 1], [1025, 1, 1], 0, "a block of [1025, 1, 1] threads");
    check([1, 1, 1], [32, 33, 1], 0, "all together at most 1024");
    check([1, 1, 1], [1, 1, 65], 0, "a block of [1, 1, 65] threads");
    check([0, 1, 1], [1, 1, 1], 0, "a grid of [0, 1, 1] blocks");
    check([1, 1, 1], [1, 0, 1], 0, "a block of [1, 0, 1] threads");
    check([1, 65536, 1], [1, 1, 1], 0, "a grid of [1, 65536, 1] blocks");
    check([1 << 31, 1, 1], [1, 1, 1], 0, "a grid of [2147483648, 1, 1] blocks");
    check([1, 1, 1], [1, 1, 1], 223 * 1024 + 1, "4096 bytes of static and 228353 of dynamic shared memory");
    // SAFETY: refused before anything runs.
    let error = unsafe { module.launch([1, 1, 1], [1, 1, 1], 0, &mut []) }.unwrap_err();
    assert!(error.to_string().contains("0 arguments for 1 parameters"), "{error}");
}
