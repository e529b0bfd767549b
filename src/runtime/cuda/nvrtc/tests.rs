//! NVRTC tests: they compile, and need no GPU.

use super::*;

/// The compiler, or `None` with a note on standard error where it is missing.
pub(crate) fn nvrtc_or_note(test: &str) -> Option<&'static Nvrtc> {
    match Nvrtc::get() {
        Ok(nvrtc) => Some(nvrtc),
        Err(error) => {
            eprintln!("not checked: NVRTC is missing, so {test} did not run ({error})");
            None
        }
    }
}

pub(crate) const SCALE: &str = r#"
extern "C" __global__ void scale(float* __restrict__ x, float factor, unsigned int n) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * factor;
}
"#;

/// Keeps 64 values per thread alive, with room for 32 registers.
fn spilling_source() -> String {
    let mut body = String::from(
        "extern \"C\" __global__ void __launch_bounds__(1024, 2) spilling(float* x, const int* at) {\n",
    );
    for i in 0..64 {
        body += &format!("    float v{i} = x[threadIdx.x + {} * 1024];\n", i + 1);
    }
    body += "    for (int k = 0; k < at[0]; ++k) {\n";
    for i in 0..64 {
        body += &format!("        v{i} = v{i} * v{} + x[at[k]];\n", (i + 7) % 64);
    }
    body += "    }\n";
    for i in 0..64 {
        body += &format!("    x[threadIdx.x + {} * 1024] = v{i};\n", i + 1);
    }
    body + "}\n"
}

#[test]
fn compiles_for_several_architectures() {
    let Some(nvrtc) = nvrtc_or_note("compiling") else { return };
    assert!(nvrtc.version() >= (12, 0), "{:?}", nvrtc.version());
    assert!(nvrtc.architectures().is_sorted());
    for architecture in ["sm_75", "sm_80", "sm_90", "sm_100"] {
        for options in [default_options(), nvrtc.options()] {
            let cubin = nvrtc.compile("scale", SCALE, architecture, options).unwrap();
            assert!(cubin.bytes.starts_with(b"\x7fELF"));
            let info = cubin.inspect("scale").unwrap();
            assert!(info.registers > 0 && info.registers < 32, "{architecture}: {info:?}");
            assert!(info.code_bytes > 0);
            assert_eq!((info.stack_bytes, info.spill_bytes, info.static_shared_bytes), (0, 0, 0));
            assert_eq!(cubin.inspect("other"), None);
        }
    }
}

#[test]
fn reads_shared_memory_without_what_the_system_reserves() {
    let Some(nvrtc) = nvrtc_or_note("reading shared memory") else { return };
    let source = r#"
extern "C" __global__ void reverse(float* x) {
    __shared__ float tile[300];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[299 - threadIdx.x];
}
"#;
    for architecture in ["sm_75", "sm_90", "sm_100"] {
        let cubin = nvrtc.compile("reverse", source, architecture, default_options()).unwrap();
        assert_eq!(cubin.inspect("reverse").unwrap().static_shared_bytes, 1200, "{architecture}");
    }
}

#[test]
fn bounds_are_for_one_block() {
    let source = "__global__ void __launch_bounds__(256) a() {}\n__global__ void __launch_bounds__(1024, 2) b() {}\n__global__ void __launch_bounds__(N) c() {}";
    let expected = "__global__ void __launch_bounds__(256, 1) a() {}\n__global__ void __launch_bounds__(1024, 1) b() {}\n__global__ void __launch_bounds__(N) c() {}";
    assert_eq!(for_one_block(source), expected);
    assert_eq!(for_one_block("__launch_bounds__("), "__launch_bounds__(");
}

#[test]
fn spills_are_seen() {
    let Some(nvrtc) = nvrtc_or_note("spilling") else { return };
    for architecture in ["sm_75", "sm_90", "sm_100"] {
        let source = spilling_source();
        let cubin = nvrtc.compile("spilling", &source, architecture, default_options()).unwrap();
        let info = cubin.inspect("spilling").unwrap();
        assert!(info.stack_bytes >= 32, "{architecture}: {info:?}\n{}", cubin.log);
        assert!(info.spill_bytes >= 32, "{architecture}: {info:?}\n{}", cubin.log);
        // Without the log, the stack frame stands for the spills.
        let info = cubin::inspect(&cubin.bytes, "spilling").unwrap();
        assert_eq!(info.spill_bytes, info.stack_bytes);
    }
}

#[test]
fn products_and_sums_are_not_contracted() {
    let Some(nvrtc) = nvrtc_or_note("contraction") else { return };
    let source = r#"
extern "C" __global__ void axpy(float* x, float a, float b) { x[threadIdx.x] = x[threadIdx.x] * a + b; }
"#;
    let code = |options| {
        let cubin = nvrtc.compile("axpy", source, "sm_80", options).unwrap();
        cubin::code(&cubin.bytes, "axpy").unwrap().to_vec()
    };
    assert_eq!(code(default_options()), code(nvrtc.options()));
    assert_ne!(code(default_options()), code(&["--std=c++17"]));
}

#[test]
fn an_error_shows_the_kernel_the_log_and_the_source() {
    let Some(nvrtc) = nvrtc_or_note("a compile error") else { return };
    let source = "extern \"C\" __global__ void broken(float* x) { x[0] = undeclared; }";
    let error = nvrtc.compile("broken", source, "sm_80", default_options()).unwrap_err();
    let text = error.to_string();
    for part in ["broken", "undeclared", "broken.cu(1)", "NVRTC", source] {
        assert!(text.contains(part), "no {part} in: {text}");
    }

    let reason = |source: &str, architecture: &str, options: &[&str]| match nvrtc.compile(
        "k",
        source,
        architecture,
        options,
    ) {
        Err(Error::Compilation { log, .. }) => log,
        other => panic!("{other:?}"),
    };
    assert!(reason(SCALE, "sm_12", &[]).contains("gpu-architecture"));
    assert!(!reason(SCALE, "sm_80", &["--no-such-option"]).is_empty());
    assert!(reason(SCALE, "compute_80", &[]).contains("no CUBIN"));
    assert!(reason("\0", "sm_80", &[]).contains("the source holds a NUL"));
}

#[test]
fn compiles_on_several_threads() {
    let Some(nvrtc) = nvrtc_or_note("compiling on several threads") else { return };
    let compile = || nvrtc.compile("scale", SCALE, "sm_80", default_options()).unwrap().bytes;
    let expected = compile();
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| (0..3).map(|_| compile()).collect::<Vec<_>>())).collect();
        for thread in threads {
            assert!(thread.join().unwrap().iter().all(|bytes| *bytes == expected));
        }
    });
}

#[test]
fn something_else_is_not_taken_for_nvrtc() {
    assert!(Nvrtc::load(Path::new("/no/such/libnvrtc.so")).is_err());
    #[cfg(target_os = "linux")]
    {
        let Err(reason) = Nvrtc::load(Path::new("libc.so.6")) else { panic!("the C library compiles") };
        assert!(reason.contains("nvrtcVersion"), "{reason}");
    }
}

#[test]
fn known_folders_are_listed_once() {
    let folders = folders(PACKAGE_FOLDERS);
    assert!(folders.iter().any(|folder| folder.starts_with("/usr/local/cuda")));
    let mut unique = folders.clone();
    unique.dedup();
    assert_eq!(unique, folders);
}

#[test]
fn lines_change_no_instruction() {
    let Some(compiler) = nvrtc_or_note("lines of kernels") else { return };
    let architecture = "sm_90";
    let plain = compiler.compile("scale", SCALE, architecture, default_options()).unwrap();
    let options = [default_options(), &[crate::runtime::cuda::lines::OPTION]].concat();
    let with_lines = compiler.compile("scale", SCALE, architecture, &options).unwrap();
    let section = |cubin: &Cubin, name: &str| -> Option<Vec<u8>> {
        use object::{Object, ObjectSection};
        let file = object::File::parse(&*cubin.bytes).unwrap();
        Some(file.section_by_name(name)?.data().unwrap().to_vec())
    };
    let code = section(&plain, ".text.scale").unwrap();
    assert_eq!(Some(code), section(&with_lines, ".text.scale"));
    assert!(section(&plain, ".debug_line").is_none());
    let lines = section(&with_lines, ".debug_line").unwrap();
    assert!(String::from_utf8_lossy(&lines).contains("scale.cu"));
}

/// Of three integers of which some are negated, assemblers of CUDA 12.6 to 13.3 take the maximum of what is not: none may come to them.
#[test]
fn integers_are_not_negated_by_an_instruction() {
    use crate::{DType, Target, Tensor};
    let Some(nvrtc) = nvrtc_or_note("negations") else { return };
    for dtype in [DType::I16, DType::I32, DType::U32] {
        let x = |seed| (Tensor::rand([1024], seed) * 9).cast(dtype);
        let inputs = [x(1), x(2), x(3)];
        crate::eval(&inputs).unwrap();
        for from_zero in [false, true] {
            let negated = |x: &Tensor| if from_zero { Tensor::zeros_like(x) - x } else { -x };
            let [a, b, c] = inputs.each_ref().map(negated);
            let y = a.maximum(&b).maximum(&c);
            let program = y.compile_for(&Target::cuda("sm_90")).unwrap();
            let ptx = nvrtc.ptx("kernels", &program.source(), "compute_90", nvrtc.options()).unwrap();
            // Narrower ones are compared and chosen.
            assert!(ptx.contains("max.") || dtype == DType::I16, "{dtype}, {from_zero}: {ptx}");
            assert!(!ptx.contains("neg."), "{dtype}, {from_zero}: {ptx}");
        }
    }
}
