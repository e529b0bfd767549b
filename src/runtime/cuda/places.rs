//! Where NVIDIA's libraries may lie, outside of the loader's own search.

use std::path::{Path, PathBuf};

/// Where a CUDA toolkit keeps its libraries, below its root.
const TOOLKIT_FOLDERS: &[&str] = &["lib64", "lib", "targets/x86_64-linux/lib", "bin", "bin/x64"];

/// Where conda keeps the library, below an environment's root.
const CONDA_FOLDERS: &[&str] = &["lib", "targets/x86_64-linux/lib", "Library/bin"];

/// The folder that `tests/fetch-nvrtc` fills, below Cargo's target folder.
const FETCHED_FOLDER: &str = "nvrtc";
/// The file that it writes last: a folder of that name without this file is unfinished, or somebody else's.
const FETCHED_STAMP: &str = "lazuli-pin";

/// Folders outside the loader's own search that may hold the library, in the order in which they are tried.
pub(super) fn folders(packages: &[&str]) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut add = |folder: PathBuf| {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    };
    let set =
        |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);

    let toolkits = [set("CUDA_PATH"), set("CUDA_HOME")].into_iter().flatten();
    for toolkit in toolkits.chain([PathBuf::from("/usr/local/cuda"), PathBuf::from("/opt/cuda")]) {
        let present =
            TOOLKIT_FOLDERS.iter().map(|below| toolkit.join(below)).filter(|folder| folder.is_dir());
        let before = present.clone().count();
        present.for_each(&mut add);
        if before == 0 {
            // Named so that the message shows where the toolkit was expected.
            add(toolkit.join(TOOLKIT_FOLDERS[0]));
        }
    }
    let conda = set("CONDA_PREFIX");
    conda.iter().for_each(|conda| {
        CONDA_FOLDERS
            .iter()
            .map(|below| conda.join(below))
            .filter(|folder| folder.is_dir())
            .for_each(&mut add);
    });
    // Other toolkits than the system's choice, newest first.
    toolkits_beside(Path::new("/usr/local"))
        .iter()
        .map(|toolkit| toolkit.join(TOOLKIT_FOLDERS[0]))
        .for_each(&mut add);
    let pythons = [conda, set("VIRTUAL_ENV"), set("HOME").map(|home| home.join(".local"))];
    let systems = ["/usr/local", "/usr"].map(|place| Some(PathBuf::from(place)));
    for root in pythons.into_iter().chain(systems).flatten() {
        for package in python_packages(&root) {
            let folders = packages.iter().map(|below| package.join(below));
            folders.filter(|folder| folder.is_dir()).for_each(&mut add);
        }
    }
    for package in fetched_folders() {
        packages.iter().map(|below| package.join(below)).for_each(&mut add);
    }
    folders
}

/// The folders in one whose names begin so, those that sort last first.
fn folders_in(folder: &Path, begins: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(begins))
        .map(|entry| entry.path())
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found
}

/// Toolkits that stand beside each other, such as `cuda-12.4`.
fn toolkits_beside(folder: &Path) -> Vec<PathBuf> {
    folders_in(folder, "cuda-")
        .into_iter()
        .filter(|toolkit| toolkit.join(TOOLKIT_FOLDERS[0]).is_dir())
        .collect()
}

/// Where pip installs to below this root: `lib/python3.12/site-packages` and the like.
fn python_packages(root: &Path) -> Vec<PathBuf> {
    let pythons = ["lib", "lib64"].into_iter().flat_map(|lib| folders_in(&root.join(lib), "python3"));
    pythons
        .flat_map(|python| ["site-packages", "dist-packages"].map(|packages| python.join(packages)))
        .collect()
}

/// Where `tests/fetch-nvrtc` may have put the PyPI package: below the target folder of the Cargo project that
/// this program was built in (tests, examples, benchmarks), or of the one that it runs in (documentation tests).
fn fetched_folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Some(target) = std::env::var_os("CARGO_TARGET_DIR").filter(|value| !value.is_empty()) {
        folders.push(PathBuf::from(target).join(FETCHED_FOLDER));
    }
    if let Ok(program) = std::env::current_exe() {
        folders.extend(program.ancestors().map(|folder| folder.join(FETCHED_FOLDER)));
    }
    if let Ok(current) = std::env::current_dir() {
        let projects = current.ancestors().filter(|folder| folder.join("Cargo.toml").is_file());
        folders.extend(projects.map(|project| project.join("target").join(FETCHED_FOLDER)));
    }
    folders.retain(|folder| folder.join(FETCHED_STAMP).is_file());
    folders
}
