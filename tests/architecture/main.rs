//! The arrows between source files: downwards in the drawing of ARCHITECTURE.md, and never in a circle.
//!
//! An arrow is a `use`, or a path such as `super::x::f`. A name is followed to the file that defines it, through
//! whatever hands it on, so that an alias hides nothing. Tests may use what they like.

#![allow(clippy::unwrap_used, clippy::panic)] // A failed assumption stops the test.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use source::{Arrow, Crate};

/// The crates, by the folders of their files.
const CRATES: [&str; 4] = ["src", "codegen/src", "codegen/routines/src", "codegen/reference/src"];

/// Arrows that ought not to be: from a file to another, or to the others of its folder. Nothing may be added here, and
/// what is no more has to go.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("codegen/src/emit.rs", "codegen/src/batch.rs"),
    ("codegen/src/text/mod.rs", "codegen/src/batch.rs"),
    ("codegen/src/text/batch.rs", "codegen/src/batch.rs"),
    ("codegen/src/text/mod.rs", "codegen/src/text/*"),
    ("codegen/src/nest/mod.rs", "codegen/src/nest/*"),
    ("codegen/src/nest/variable.rs", "codegen/src/nest/stmt.rs"),
    ("codegen/src/nest/emitter.rs", "codegen/src/nest/persistent.rs"),
    ("codegen/src/nest/emitter.rs", "codegen/src/nest/tile.rs"),
    ("codegen/src/nest/pointwise.rs", "codegen/src/nest/pointwise_cpu.rs"),
    ("codegen/src/nest/scan_cpu.rs", "codegen/src/nest/scan_split_cpu.rs"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A crate, read once for all tests.
fn read(folder: &str) -> &'static Crate {
    static READ: [OnceLock<Crate>; CRATES.len()] = [const { OnceLock::new() }; CRATES.len()];
    let number = CRATES.iter().position(|&own| own == folder).unwrap();
    READ[number].get_or_init(|| Crate::read(&root().join(folder)))
}

/// The arrows of a crate, files named from the root of the repository.
fn arrows(folder: &str) -> Vec<Arrow> {
    let relative = |path: &Path| path.strip_prefix(root()).unwrap().to_path_buf();
    let arrows = read(folder).arrows().into_iter();
    arrows.map(|arrow| Arrow { from: relative(&arrow.from), to: relative(&arrow.to), ..arrow }).collect()
}

fn matches(arrow: &Arrow, (from, to): (&str, &str)) -> bool {
    let folder = to.strip_suffix("/*").map(Path::new);
    arrow.from == Path::new(from)
        && (arrow.to == Path::new(to) || folder.is_some_and(|folder| arrow.to.parent() == Some(folder)))
}

fn is_excepted(arrow: &Arrow) -> bool {
    EXCEPTIONS.iter().any(|&exception| matches(arrow, exception))
}

/// The line as it stands in the file, with its place.
fn shown(arrow: &Arrow) -> String {
    let text = std::fs::read_to_string(root().join(&arrow.from)).unwrap_or_default();
    let line = text.lines().nth(arrow.line - 1).unwrap_or_default().trim();
    format!("{}:{}: {line}    (leads to {})", arrow.from.display(), arrow.line, arrow.to.display())
}

/// The module of a crate that a file belongs to; `None` for `lib.rs`, which only hands on.
fn module<'a>(file: &'a Path, folder: &str) -> Option<&'a str> {
    let inside = file.strip_prefix(folder).ok()?;
    let first = Path::new(inside.components().next()?.as_os_str());
    first.file_stem()?.to_str().filter(|&name| name != "lib")
}

/// How far down each module stands in the drawing of the layers.
fn layers(drawing: &str, folder: &str) -> BTreeMap<String, usize> {
    let lines = drawing.lines().skip_while(|line| *line != format!("{folder}:")).skip(1);
    let layers = lines.take_while(|line| line.starts_with(' ')).enumerate();
    layers
        .flat_map(|(depth, line)| line.split_whitespace().map(move |name| (name.to_owned(), depth)))
        .collect()
}

#[test]
fn arrows_point_down() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let drawing = page.split("```layers\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let mut wrong = Vec::new();
    for folder in CRATES {
        let layers = layers(drawing, folder);
        for arrow in arrows(folder) {
            let (Some(from), Some(to)) = (module(&arrow.from, folder), module(&arrow.to, folder)) else {
                continue;
            };
            let depth =
                |name: &str| *layers.get(name).unwrap_or_else(|| panic!("{folder}/{name} is not drawn"));
            if from != to && depth(from) >= depth(to) && !is_excepted(&arrow) {
                wrong.push(shown(&arrow));
            }
        }
    }
    assert!(wrong.is_empty(), "against the layers that ARCHITECTURE.md draws:\n{}", wrong.join("\n"));
}

#[test]
fn no_circle_of_files() {
    for folder in CRATES {
        let arrows: Vec<Arrow> = arrows(folder).into_iter().filter(|arrow| !is_excepted(arrow)).collect();
        let circle = circle(&arrows);
        let shown: Vec<String> = circle.iter().map(|arrow| shown(arrow)).collect();
        assert!(circle.is_empty(), "files in a circle:\n{}", shown.join("\n"));
    }
}

/// Arrows that lead from a file back to it; none if there are none.
fn circle(arrows: &[Arrow]) -> Vec<&Arrow> {
    let mut leads: BTreeMap<&PathBuf, Vec<&PathBuf>> = BTreeMap::new();
    arrows.iter().for_each(|arrow| leads.entry(&arrow.from).or_default().push(&arrow.to));
    let mut left: BTreeSet<&PathBuf> = leads.keys().copied().collect();
    // Files that lead to none of those left are in no circle.
    loop {
        let leads = |file: &PathBuf| leads[file].iter().any(|to| left.contains(to));
        let rest: BTreeSet<&PathBuf> = left.iter().copied().filter(|file| leads(file)).collect();
        if rest.len() == left.len() {
            break;
        }
        left = rest;
    }
    let Some(&first) = left.first() else { return Vec::new() };
    let mut way: Vec<&Arrow> = Vec::new();
    let mut at = first;
    loop {
        if let Some(start) = way.iter().position(|arrow| arrow.from == *at) {
            return way.split_off(start);
        }
        match arrows.iter().find(|arrow| arrow.from == *at && left.contains(&arrow.to)) {
            Some(arrow) => (way.push(arrow), at = &arrow.to).1,
            None => return way,
        }
    }
}

#[test]
fn every_exception_is_needed() {
    let arrows: Vec<Arrow> = CRATES.into_iter().flat_map(arrows).collect();
    for &exception in EXCEPTIONS {
        let is_used = arrows.iter().any(|arrow| matches(arrow, exception));
        assert!(is_used, "{} no longer uses {}: take it off the list", exception.0, exception.1);
    }
}

#[test]
fn every_file_is_read() {
    for folder in CRATES {
        let known: BTreeSet<&Path> = read(folder).files();
        let mut pending = vec![root().join(folder)];
        while let Some(folder) = pending.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
                let is_test = ["tests", "testing", "sketch", "evaluate", "banks"].contains(&name.as_str());
                match path.is_dir() {
                    true if name != "tests" => pending.push(path),
                    false if path.extension().is_some_and(|end| end == "rs") && !is_test => {
                        assert!(known.contains(path.as_path()), "{} is no module", path.display());
                    }
                    _ => {}
                }
            }
        }
    }
}
