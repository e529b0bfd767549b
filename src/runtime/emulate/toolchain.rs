//! The host's C++ compiler, the runtime library that it makes, and the folder where its products stay.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
use rayon::prelude::*;

use super::abi::LaunchFunction;
use crate::error::{Error, Result};
use crate::runtime::cache::{create_private, trust};
use crate::runtime::process::{self, Answer, End};
use crate::runtime::workshop::Workshop;
use crate::settings;

const SHIM: &str = concat!(include_str!("shim.h"), include_str!("ptx.h"));
const FIBERS: &str = concat!(include_str!("switch.cpp"), include_str!("fibers.cpp"));

/// For the runtime and for kernels. Arithmetic must be what the text says, operation by operation.
const FLAGS: [&str; 14] = [
    "-std=c++20",
    "-w",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    "-ffp-contract=off",
    "-fno-math-errno",
    // Kernels read memory as whatever type suits them, as CUDA allows.
    "-fno-strict-aliasing",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-Wl,--build-id=none",
    "-Wl,-z,noexecstack",
];
/// For kernels: quick to compile; a misaligned access is reported (by the runtime: no sanitizer library).
const KERNEL_FLAGS: [&str; 4] =
    ["-O1", "-fsanitize=alignment", "-fno-sanitize-recover=alignment", "-nostdlib"];
const KERNEL_LIBRARIES: [&str; 3] = ["-lm", "-lc", "-lgcc"];

/// Kernels in one file, at most.
const TOGETHER: usize = 16;

/// All that it takes to compile and run kernels.
pub(super) struct Toolchain {
    compiler: Compiler,
    /// Holds the shim, the runtime library and the kernels compiled with them.
    folder: PathBuf,
    pub launch: LaunchFunction,
    /// Kernels call it and `launch` is in it: never unloaded.
    _runtime: Library,
}

/// A compiler that was found to work.
struct Compiler {
    /// The program, and arguments that come before all others: `$CXX` may name a wrapper.
    command: Vec<String>,
    /// What it says of itself.
    version: String,
    /// Flags that depend on the compiler and the processor.
    flags: Vec<&'static str>,
}

/// Why a compilation gave nothing.
pub(super) enum Failure {
    /// The compiler refused the text; its messages.
    Refused(String),
    /// It could not be run, or files could not be written.
    Broken(Error),
}

impl Toolchain {
    /// The toolchain of this process: looked for once.
    pub(super) fn get() -> Result<&'static Toolchain> {
        static TOOLCHAIN: OnceLock<Result<Toolchain>> = OnceLock::new();
        TOOLCHAIN.get_or_init(Toolchain::set_up).as_ref().map_err(Error::clone)
    }

    fn set_up() -> Result<Toolchain> {
        if !super::SUPPORTED {
            return Err(super::unsupported());
        }
        let compiler = find_compiler(std::env::var("CXX").ok().as_deref())?;
        let key = compiler.key(&[SHIM, FIBERS]);
        let folder = cache_folder()?.join(&key[..16]);
        create_private(&folder).map_err(|error| Error::io("create", &folder, error))?;
        let shim = folder.join("shim.h");
        if fs::read_to_string(&shim).ok().as_deref() != Some(SHIM) {
            write_atomically(&folder, &shim, SHIM.as_bytes())?;
        }

        let path = folder.join("runtime.so");
        let arguments =
            |file: &str| vec!["-O2".to_owned(), format!("-I{}", folder.display()), file.to_owned()];
        let runtime =
            load_or_compile(&compiler, &path, FIBERS, &arguments, RTLD_GLOBAL).map_err(|failure| {
                match failure {
                    Failure::Refused(log) => unavailable(
                        format!("{} could not compile its runtime:\n{log}", compiler.name()),
                        "Set CXX to a compiler that knows C++20, such as g++ 11",
                    ),
                    Failure::Broken(error) => error,
                }
            })?;
        // SAFETY: the runtime defines this symbol with this type; the library is never unloaded.
        let launch = unsafe { runtime.get::<LaunchFunction>(b"lz_emu_launch") }
            .map(|symbol| *symbol)
            .map_err(|error| Error::internal("emulator", error.to_string()))?;
        Ok(Toolchain { compiler, folder, launch, _runtime: runtime })
    }

    /// The compiler's name and version, for messages.
    pub(super) fn compiler_name(&self) -> String {
        self.compiler.name()
    }

    /// What tells a translated kernel from all others.
    fn id(&self, text: &str) -> String {
        self.compiler.key(&[SHIM, FIBERS, text])[..32].to_owned()
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.so"))
    }

    /// Where the library of a translated kernel is, or will be.
    #[cfg(test)]
    pub(super) fn kernel_path(&self, text: &str) -> PathBuf {
        self.path(&self.id(text))
    }

    fn arguments(&self, file: &str) -> Vec<String> {
        let include = format!("-I{}", self.folder.display());
        let flags = KERNEL_FLAGS.iter().copied().chain([include.as_str(), file]).chain(KERNEL_LIBRARIES);
        flags.map(str::to_owned).collect()
    }

    /// The library of a translated kernel, from disk where it was compiled before, and the kernel's symbol in it.
    pub(super) fn kernel(&self, text: &str) -> Result<(Library, String), Failure> {
        let id = self.id(text);
        let file = format!("#include \"shim.h\"\n#define LZ_EMU_ID {id}\n{text}");
        let arguments = |file: &str| self.arguments(file);
        let library = load_or_compile(&self.compiler, &self.path(&id), &file, &arguments, RTLD_LOCAL)?;
        Ok((library, format!("lz_emu_exported_{id}")))
    }

    /// Compiles translated kernels, each with the names of its functions, that are not on disk yet, several in a file:
    /// the compiler's start and the shim are most of what one takes. Whatever fails is left for [`Toolchain::kernel`].
    pub(super) fn compile_ahead(&self, kernels: &[(String, Vec<&str>)]) {
        let mut missing: Vec<(String, &(String, Vec<&str>))> =
            kernels.iter().map(|kernel| (self.id(&kernel.0), kernel)).collect();
        missing.sort_by(|(a, _), (b, _)| a.cmp(b));
        missing.dedup_by(|(a, _), (b, _)| a == b);
        missing.retain(|(id, _)| !is_whole(&self.path(id)));
        if missing.len() < 2 {
            return;
        }
        let together = missing.len().div_ceil(rayon::current_num_threads()).min(TOGETHER);
        missing.par_chunks(together).for_each(|kernels| {
            let _ = self.compile_together(kernels);
        });
    }

    fn compile_together(&self, kernels: &[(String, &(String, Vec<&str>))]) -> Result<(), Failure> {
        let mut file = String::from("#include \"shim.h\"\n");
        for (id, (text, functions)) in kernels {
            file.push_str(&format!("#undef LZ_EMU_ID\n#define LZ_EMU_ID {id}\n"));
            // Functions of one name with C linkage would be one, whatever their namespaces.
            functions.iter().for_each(|name| file.push_str(&format!("#define {name} {name}_{id}\n")));
            file.push_str(&format!("namespace lz_emu_{id} {{\n{text}}}\n"));
            functions.iter().for_each(|name| file.push_str(&format!("#undef {name}\n")));
        }
        let ids: Vec<&str> = kernels.iter().map(|(id, _)| id.as_str()).collect();
        let whole = self.path(&self.compiler.key(&ids)[..32]);
        compile(&self.compiler, &whole, &file, &|file| self.arguments(file))?;
        for id in ids {
            // Others see no kernel or a whole one.
            let (part, path) = (whole.with_extension(format!("{id}.part")), self.path(id));
            let linked = fs::hard_link(&whole, &part).or_else(|_| fs::copy(&whole, &part).map(|_| ()));
            let named = linked.and_then(|()| fs::rename(&part, &path));
            named.map_err(|error| Failure::Broken(Error::io("write", &path, error)))?;
        }
        // The kernels' own names are left.
        let _ = fs::remove_file(&whole);
        Ok(())
    }
}

impl Compiler {
    /// The first line of what it says of itself.
    fn name(&self) -> String {
        self.version.lines().next().unwrap_or_default().to_owned()
    }

    /// Names a product of this compiler from these texts.
    fn key(&self, texts: &[&str]) -> String {
        let mut hasher = blake3::Hasher::new();
        let words = self.command.iter().map(String::as_str).chain(self.flags.iter().copied());
        let all =
            words.chain(FLAGS).chain(KERNEL_FLAGS).chain(KERNEL_LIBRARIES).chain([self.version.as_str()]);
        for text in all.chain(texts.iter().copied()) {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// `$CXX` if it is set, else the first of the usual compilers that runs.
fn find_compiler(cxx: Option<&str>) -> Result<Compiler> {
    let candidates = match cxx.map(str::trim).filter(|cxx| !cxx.is_empty()) {
        Some(cxx) => vec![cxx],
        None => vec!["g++", "c++", "clang++"],
    };
    for candidate in &candidates {
        let command: Vec<String> = candidate.split_whitespace().map(str::to_owned).collect();
        let answer = process::run(&command, ["--version"], Path::new("/"), process::limit());
        let Ok(Answer { end: End::Well | End::Unknown, output: version, .. }) = answer else { continue };
        let mut flags = Vec::new();
        if !version.contains("clang") {
            // Otherwise variables of equal names in different kernels become one.
            flags.push("-fno-gnu-unique");
        }
        if wide_x86() {
            flags.push("-march=x86-64-v3");
        }
        return Ok(Compiler { command, version, flags });
    }
    Err(unavailable(
        format!("none of these C++ compilers runs: {}", candidates.join(", ")),
        "Install g++ or clang++, or set CXX to a C++ compiler",
    ))
}

/// Whether this processor has what x86-64-v3 stands for.
fn wide_x86() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        has!("avx2")
            && has!("fma")
            && has!("f16c")
            && has!("bmi1")
            && has!("bmi2")
            && has!("lzcnt")
            && has!("movbe")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

fn unavailable(reason: String, hint: &str) -> Error {
    Error::Unavailable { what: super::DEVICE.to_owned(), reason, hint: hint.to_owned() }
}

/// `$LAZULI_CACHE_DIR/emulate`, else a folder of this user's in the temporary folder.
fn cache_folder() -> Result<PathBuf> {
    let folder = match settings::variable("LAZULI_CACHE_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => std::path::absolute(&folder).unwrap_or_else(|_| folder.into()).join("emulate"),
        None => std::env::temp_dir().join(format!("lazuli-emulate-{}", rustix::process::geteuid().as_raw())),
    };
    create_private(&folder).map_err(|error| Error::io("create", &folder, error))?;
    // Code is loaded from here: nobody else may have put it there.
    let checked = fs::canonicalize(&folder).and_then(|folder| trust::check_folder(&folder).map(|()| folder));
    checked.map_err(|error| {
        unavailable(
            error.to_string(),
            "Set LAZULI_CACHE_DIR to a folder of your own, where others cannot write",
        )
    })
}

/// Other processes see the file as it was or as it will be, never a part of it.
fn write_atomically(folder: &Path, path: &Path, content: &[u8]) -> Result<()> {
    let write = || -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(content)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| Error::io("write", path, error))
}

/// Loads the library at `path`; where it is missing or damaged, compiles `text` to it first. The text stays
/// beside it. `arguments` are the compiler's, given the name of the file to compile.
fn load_or_compile(
    compiler: &Compiler,
    path: &Path,
    text: &str,
    arguments: &dyn Fn(&str) -> Vec<String>,
    scope: std::ffi::c_int,
) -> Result<Library, Failure> {
    // SAFETY: loading runs no code of the library's: it has no constructors. It is a file that this user's
    // own compiler wrote, in a folder that only this user can write to, whole as its checksum says.
    let load = || unsafe { Library::open(Some(path), RTLD_NOW | scope) };
    if is_whole(path)
        && let Ok(library) = load()
    {
        return Ok(library);
    }
    compile(compiler, path, text, arguments)?;
    load().map_err(|error| Failure::Refused(format!("the compiled library cannot be loaded: {error}")))
}

fn compile(
    compiler: &Compiler,
    path: &Path,
    text: &str,
    arguments: &dyn Fn(&str) -> Vec<String>,
) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let broken = |error: io::Error| Failure::Broken(Error::io("compile", path, error));
    // What is unfinished stands in a folder of its own, which goes away by itself.
    let workshop = Workshop::new(folder).map_err(broken)?;
    let (cpp, library) = (workshop.path().join("kernel.cpp"), workshop.path().join("kernel.so"));
    fs::write(&cpp, text).map_err(broken)?;
    let flags = FLAGS.iter().chain(&compiler.flags).map(|&flag| flag.to_owned());
    let all = flags.chain(arguments("kernel.cpp")).chain(["-o".to_owned(), "kernel.so".to_owned()]);
    let answer = process::run(&compiler.command, all, workshop.path(), process::limit()).map_err(broken)?;
    if answer.end == End::Badly {
        return Err(Failure::Refused(answer.text()));
    }
    let checksum = blake3::hash(&fs::read(&library).map_err(broken)?);
    let append = || fs::OpenOptions::new().append(true).open(&library)?.write_all(checksum.as_bytes());
    append().map_err(broken)?;
    fs::rename(&cpp, path.with_extension("cpp")).map_err(broken)?;
    fs::rename(&library, path).map_err(broken)
}

/// Whether a library is there and ends with the checksum of what comes before. Loaders ignore what stands
/// behind the end of an ELF file.
fn is_whole(path: &Path) -> bool {
    let Ok(bytes) = fs::read(path) else { return false };
    bytes.split_last_chunk::<32>().is_some_and(|(library, checksum)| blake3::hash(library) == *checksum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_compiler_is_unavailable_with_a_hint() {
        let Err(error) = find_compiler(Some("no-such-compiler -x")) else { panic!("found") };
        assert!(matches!(error, Error::Unavailable { .. }));
        let text = error.to_string();
        assert!(text.contains("no-such-compiler -x") && text.contains("Install g++"), "{text}");
    }

    #[test]
    fn a_damaged_library_is_not_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.so");
        assert!(!is_whole(&path));
        let mut content = b"library".to_vec();
        content.extend(blake3::hash(b"library").as_bytes());
        fs::write(&path, &content).unwrap();
        assert!(is_whole(&path));
        content[0] ^= 1;
        fs::write(&path, &content).unwrap();
        assert!(!is_whole(&path));
        fs::write(&path, &content[..10]).unwrap();
        assert!(!is_whole(&path));
    }
}
