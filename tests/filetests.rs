//! Tests as files in `tests/filetests`: a text, how `lazuli-opt` is called with it, and what it prints.
//!
//! ```text
//! // What is shown, for the reader.
//! ---- a name
//! %0 = input slot=0 : f32 [4]
//! %1 = neg(%0) : f32 [4]
//! return %1
//! ==== --to kernel
//! kernel neg_f32
//! …
//! ==== --run --input 0=1,2,3,4
//! output 0: f32 [4] = -1.0, -2.0, -3.0, -4.0
//! ```
//!
//! What is expected may be an error, with `error: ` before it. `INSTA_UPDATE=always` writes what comes out into the files,
//! as it does for snapshots.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use lazuli::opt::Command;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// All files below a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The options of a line, separated by spaces; what is in quotes is one.
fn arguments(line: &str) -> Vec<String> {
    let quoted = line.split('"').enumerate();
    let split = quoted.flat_map(|(number, text)| match number % 2 {
        0 => text.split_whitespace().map(str::to_owned).collect(),
        _ => vec![text.to_owned()],
    });
    split.collect()
}

fn output(call: &str, text: &str) -> String {
    match Command::parse(arguments(call)).and_then(|command| command.run(text)) {
        Ok(output) => output,
        Err(error) => format!("error: {}\n", error.trim_end()),
    }
}

/// The file as it ought to be.
fn updated(file: &str) -> String {
    let mut result = String::new();
    let (mut input, mut is_input) = (String::new(), false);
    for line in file.split_inclusive('\n') {
        if line.starts_with("---- ") {
            (input, is_input) = (String::new(), true);
        } else if let Some(call) = line.strip_prefix("==== ") {
            is_input = false;
            let _ = write!(result, "{line}{}", output(call.trim_end(), &input));
            continue;
        } else if is_input {
            input += line;
        } else if result.contains("\n==== ") {
            // What was expected.
            continue;
        }
        result += line;
    }
    result
}

/// The first lines that differ, with their number.
fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let shown = |lines: &[&str], sign: &str| -> String {
        lines.iter().skip(same).take(8).map(|line| format!("  {sign} {line}\n")).collect()
    };
    format!("line {}:\n{}{}", same + 1, shown(&old, "-"), shown(&new, "+"))
}

#[test]
fn files_say_what_comes_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let is_update = std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always");
    let mut report = String::new();
    let files = files(&folder);
    assert!(!files.is_empty());
    for path in files {
        let old = std::fs::read_to_string(&path).unwrap();
        let new = updated(&old);
        if old == new {
            continue;
        }
        match is_update {
            true => std::fs::write(&path, new).unwrap(),
            false => report += &format!("{}, {}", path.display(), difference(&old, &new)),
        }
    }
    assert!(report.is_empty(), "\n{report}INSTA_UPDATE=always writes this into the files");
}

/// Whatever is done to a text: it is compiled, or an error says what is wrong.
#[test]
fn no_text_panics() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let files = ["levels.txt", "nest/levels.txt", "nest/rules.txt"]
        .map(|file| std::fs::read_to_string(folder.join(file)).unwrap());
    let cases = files.iter().flat_map(|file| file.split("\n---- ").skip(1));
    let cases = cases.filter_map(|case| case.split_once('\n'));
    let texts: Vec<&str> = cases.map(|(_, text)| text.split("==== ").next().unwrap()).collect();
    let edit = (0usize..4000, 0usize..12, 0usize..4000, 0usize..12);
    let strategy = (0..texts.len(), proptest::collection::vec(edit, 1..4));
    let config = Config { cases: 1000, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let result = TestRunner::new_with_rng(config, rng).run(&strategy, |(number, edits)| {
        let mut text = texts[number].as_bytes().to_vec();
        for (to, removed, from, copied) in edits {
            let to = to % text.len();
            let piece: Vec<u8> = text.iter().skip(from % text.len()).take(copied).copied().collect();
            text.splice(to..(to + removed).min(text.len()), piece);
            text.push(b'\n');
        }
        let text = String::from_utf8_lossy(&text);
        output(if text.starts_with("nest") { "--to source" } else { "--to kernel" }, &text);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn a_call_is_split_at_spaces_outside_of_quotes() {
    assert_eq!(arguments("--schedule \"a(b=1, c=2)\" --run"), ["--schedule", "a(b=1, c=2)", "--run"]);
}
