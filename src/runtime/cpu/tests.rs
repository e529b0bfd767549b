use std::ffi::c_void;

use super::compiler::identify;
use super::module::Unloaded;
use super::{Compiler, CpuModule, together};
use crate::error::Error;
use crate::runtime::cache::DiskCache;

fn environment<'a>(variables: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    |name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string())
}

const SCALE: &str = "
void scale(void* const* args, long long first_block, long long end_block) {
  const float* in0 = *(const float**)args[0];
  float* out0 = *(float**)args[1];
  const float c0 = *(float*)args[2];
  const long long n = *(long long*)args[3];
  for (long long block = first_block; block < end_block; ++block) {
    const long long first = block * 64;
    const long long end = first + 64 < n ? first + 64 : n;
    for (long long i = first; i < end; ++i) out0[i] = in0[i] * c0;
  }
}
";

fn load(library: &[u8]) -> Result<CpuModule, Unloaded> {
    CpuModule::load("scale", "", ["scale"], library, None)
}

fn scale(module: &CpuModule, x: &[f32], mut c: f32) -> Vec<f32> {
    let mut y = vec![0f32; x.len()];
    let (mut from, mut to, mut n) = (x.as_ptr(), y.as_mut_ptr(), x.len() as i64);
    let arguments: [*mut c_void; 4] =
        [(&raw mut from).cast(), (&raw mut to).cast(), (&raw mut c).cast(), (&raw mut n).cast()];
    // SAFETY: `SCALE` has these parameters; the vectors are as long as it is told.
    unsafe { module.run("scale", (x.len() as u64).div_ceil(64), &arguments) }.unwrap();
    y
}

#[test]
fn a_kernel_runs_from_any_thread_and_any_number_of_times() {
    let library = Compiler::get().unwrap().compile("scale", SCALE).unwrap();
    let module = load(&library).unwrap();
    std::thread::scope(|scope| {
        for thread in 1..4 {
            let module = &module;
            scope.spawn(move || {
                for size in [1usize, 63, 64, 65, 1000, 100_000, 1000, 0] {
                    let x: Vec<f32> = (0..size).map(|i| i as f32).collect();
                    let c = thread as f32;
                    assert!(scale(module, &x, c).iter().zip(&x).all(|(y, x)| *y == x * c));
                }
            });
        }
    });
}

#[test]
fn libraries_with_equal_names_do_not_mix() {
    let compiler = Compiler::get().unwrap();
    let doubled = SCALE.replace("* c0", "* c0 * 2.0f");
    let libraries = [SCALE, &doubled].map(|source| compiler.compile("scale", source).unwrap());
    for _ in 0..3 {
        let modules = libraries.each_ref().map(|library| load(library).unwrap());
        assert_eq!(scale(&modules[0], &[1.0], 3.0), [3.0]);
        assert_eq!(scale(&modules[1], &[1.0], 3.0), [6.0]);
    }
}

#[test]
fn kernels_of_one_name_are_in_one_library() {
    let sources = [SCALE, &SCALE.replace("* c0", "* c0 * 2.0f")];
    let library = Compiler::get().unwrap().compile_all("several", &sources).unwrap();
    for (source, result) in sources.iter().zip([3.0, 6.0]) {
        let module = CpuModule::load("scale", &together::id(source), ["scale"], &library, None).unwrap();
        assert_eq!(scale(&module, &[1.0], 3.0), [result]);
    }
}

/// `SCALE`, by a long function that is compiled apart. No cache has one with that note.
fn scale_by_a_function(factor: usize, note: &str) -> String {
    let terms = format!("  // {note}\n") + &"  to[0] += from[0] * c - from[0] * c;\n".repeat(60);
    let function = format!(
        "typedef long long idx;\n\nstatic __attribute__((noinline)) void lz_scale(float* to, const float* from, const idx times, float c) {{\n\
         to[0] = from[0] * c * times;\n{terms}}}\n\nstatic void scale_blocks(idx n) {{\n}}\n"
    );
    let call = format!("lz_scale(out0 + i, in0 + i, {factor}, c0)");
    function + &SCALE.replace("out0[i] = in0[i] * c0", &call)
}

#[cfg(unix)]
#[test]
fn functions_are_compiled_once_for_all_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("counting-cc");
    let runs = folder.path().join("runs");
    std::fs::write(&script, format!("echo run >>{}\nexec cc \"$@\"\n", runs.display())).unwrap();
    let command = format!("sh {}", script.display());
    let compiler = Compiler::find(&environment(&[("LAZULI_CC", &command)])).unwrap();
    let counted = || std::fs::read_to_string(&runs).unwrap().lines().count();
    let check = |source: &str, result: f32| {
        let before = counted();
        let library = compiler.compile("scale", source).unwrap();
        assert_eq!(scale(&load(&library).unwrap(), &[2.0], 4.0), [result]);
        counted() - before
    };
    let source = scale_by_a_function(64, &command);
    let is_linked_here = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    let first = if is_linked_here { 2 } else { 1 };
    assert_eq!(check(&source, 512.0), first);
    assert_eq!(check(&source.replace("block * 64", "block * 32 * 2"), 512.0), 1);
    assert_eq!(check(&scale_by_a_function(1, &command), 8.0), first);
    // The compiler refuses the function: the words are those over the whole text.
    let broken = source.replace("to[0] = from", "to[0] = nothing");
    let error = compiler.compile("scale", &broken).unwrap_err();
    assert!(
        matches!(&error, Error::Compilation { log, source_text, .. }
        if log.contains("nothing") && **source_text == *broken),
        "{error}"
    );
}

#[test]
fn an_unknown_function_and_a_damaged_library_are_errors() {
    let compiler = Compiler::get().unwrap();
    let library = compiler.compile("scale", SCALE).unwrap();
    let module = load(&library).unwrap();
    // SAFETY: there is no such function to call.
    let error = unsafe { module.run("scales", 1, &[]) }.unwrap_err();
    assert!(matches!(error, Error::Internal { .. }) && error.to_string().contains("scales"), "{error}");
    let unloaded = CpuModule::load("scale", "", ["scale", "scales"], &library, None).unwrap_err();
    let error = compiler.not_loaded("scale", unloaded);
    assert!(matches!(error, Error::Unavailable { .. }) && error.to_string().contains("scales"), "{error}");
    let error = compiler.not_loaded("scale", load(&library[..100]).unwrap_err());
    assert!(matches!(error, Error::Device { .. }) && error.to_string().contains("kernel scale"), "{error}");
    // The loader's own words.
    assert!(cfg!(not(target_os = "linux")) || error.to_string().contains(".so: "), "{error}");
}

#[test]
fn a_library_is_loaded_from_its_file_or_else_from_memory() {
    let library = Compiler::get().unwrap().compile("scale", SCALE).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("scale.so");
    for content in [&library[..], b"no library"] {
        std::fs::write(&place, content).unwrap();
        let module = CpuModule::load("scale", "", ["scale"], &library, Some(&place)).unwrap();
        assert_eq!(scale(&module, &[2.0], 4.0), [8.0]);
    }
}

#[test]
fn a_refused_kernel_comes_back_with_log_and_source() {
    let source = "void broken(void) { this is not C; }\n";
    let error = Compiler::get().unwrap().compile("broken", source).unwrap_err();
    let Error::Compilation { kernel, compiler, log, source_text } = error else { panic!("{error}") };
    assert_eq!((kernel.as_str(), &*source_text), ("broken", source));
    assert!(log.contains("kernel.c:1") && log.contains("error"), "{log}");
    assert!(compiler.contains('/'), "{compiler}");
}

#[test]
fn a_missing_compiler_is_unavailable_with_a_hint() {
    let error = Compiler::find(&environment(&[("LAZULI_CC", "/nonexistent")])).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }));
    let text = error.to_string();
    assert!(text.contains("/nonexistent: not found") && text.contains("LAZULI_CC"), "{text}");
}

#[test]
fn cc_is_only_a_preference() {
    let fallback = Compiler::find(&environment(&[("CC", "/nonexistent"), ("LAZULI_CC", " ")])).unwrap();
    assert_eq!(fallback.identity(), Compiler::find(&environment(&[])).unwrap().identity());
}

#[test]
fn the_identity_names_compiler_flags_and_processor() {
    let plain = Compiler::find(&environment(&[])).unwrap();
    let wrapped = Compiler::find(&environment(&[("LAZULI_CC", "cc -DWRAPPED")])).unwrap();
    assert_ne!(plain.identity(), wrapped.identity());
    assert!(plain.identity().contains("-march=native"));
    assert_eq!(plain.identity().matches(" | ").count(), 2, "{}", plain.identity());
}

#[cfg(target_os = "linux")]
#[test]
fn the_compiler_is_asked_once_for_what_it_is_until_it_is_another() {
    let folder = tempfile::tempdir().unwrap();
    let cache = DiskCache::open(folder.path(), 1 << 20).unwrap();
    let script = folder.path().join("cc");
    std::fs::write(&script, "exec cc \"$@\"\n").unwrap();
    let command = format!("sh {}", script.display());
    let variables = [("LAZULI_CC", command.as_str())];
    let asked = std::cell::Cell::new(0);
    let identity = || {
        identify(&environment(&variables), Some(&cache), || {
            asked.set(asked.get() + 1);
            Compiler::find(&environment(&variables))
        })
        .unwrap()
    };
    let first = identity();
    assert_eq!((identity(), asked.get()), (first.clone(), 1));
    assert_eq!(first, Compiler::find(&environment(&variables)).unwrap().identity());
    std::fs::write(&script, "exec cc -DOTHER \"$@\"\n").unwrap();
    assert_eq!((identity(), asked.get()), (first, 2));
}

/// A C compiler that fails, with these words, whenever one of its arguments is `refused`.
#[cfg(unix)]
fn refusing(folder: &std::path::Path, refused: &[&str], words: &str) -> Compiler {
    let script = folder.join("other-cc");
    let tests: String = refused
        .iter()
        .map(|flag| format!("  [ \"$a\" = {flag} ] && {{ echo '{words}'; exit 1; }}\n"))
        .collect();
    std::fs::write(&script, format!("for a in \"$@\"; do\n{tests}done\nexec cc \"$@\"\n")).unwrap();
    // A shell reads the script: running what was just written can fail while another test forks.
    let command = format!("sh {}", script.display());
    Compiler::find(&environment(&[("LAZULI_CC", &command)])).unwrap()
}

#[cfg(unix)]
#[test]
fn a_compiler_is_used_without_the_flags_that_it_refuses() {
    let refusals: [&[&str]; 3] = [&["-march=native"], &["-lgcc"], &["-march=native", "-lgcc"]];
    for refused in refusals {
        let folder = tempfile::tempdir().unwrap();
        let compiler = refusing(folder.path(), refused, "bad flag");
        // By the linker here, and by the system's.
        for library in [compiler.compile("scale", SCALE), compiler.compile_linked("scale", SCALE)] {
            assert_eq!(scale(&load(&library.unwrap()).unwrap(), &[2.0], 4.0), [8.0]);
        }
        // Still: a refused kernel is a refused kernel.
        assert!(matches!(compiler.compile("x", "no C"), Err(Error::Compilation { .. })));
    }
}

#[cfg(unix)]
#[test]
fn a_compiler_that_fails_over_a_text_is_asked_for_less() {
    let folder = tempfile::tempdir().unwrap();
    let fault = "internal compiler error: in curr_insn_transform";
    let compiler = refusing(folder.path(), &["-O2", "-O1"], fault);
    // The probe is compiled with `-O1` too: a compiler without any of the extras is no other case.
    let library = compiler.compile("scale", SCALE).unwrap();
    assert_eq!(scale(&load(&library).unwrap(), &[2.0], 4.0), [8.0]);
    let folder = tempfile::tempdir().unwrap();
    let compiler = refusing(folder.path(), &["-O2", "-O1", "-O0"], fault);
    let error = compiler.compile("scale", SCALE).unwrap_err();
    assert!(matches!(&error, Error::Compilation { log, .. } if log.contains(fault)), "{error}");
    // Another failure is not answered by trying again.
    let folder = tempfile::tempdir().unwrap();
    let compiler = refusing(folder.path(), &["-fgcse", "-O2"], "error: no such thing");
    assert!(matches!(compiler.compile("scale", SCALE), Err(Error::Compilation { .. })));
}

#[test]
fn subnormals_and_the_floating_point_environment_stay() {
    let library = Compiler::get().unwrap().compile("scale", SCALE).unwrap();
    let module = load(&library).unwrap();
    let least = f32::from_bits(1);
    let y = scale(&module, &vec![least; 10_000], 3.0);
    assert!(y.iter().all(|y| y.to_bits() == 3));
}
