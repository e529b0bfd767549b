//! The README shows what the compiler does. `UPDATE_README=1 cargo test --test readme` writes it anew.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

#[allow(dead_code, missing_docs, reason = "of an example")]
#[path = "../examples/gpt/model.rs"]
mod model;
mod workloads;

use std::path::Path;

use lazuli::{Device, Target, Tensor};
use workloads::compile_for;

/// The text with the fenced block after `<!-- name -->` replaced.
fn with_block(text: &str, name: &str, content: &str) -> Option<String> {
    let marker = format!("<!-- {name} -->\n");
    let fence = text.find(&marker)? + marker.len();
    let first = fence + text[fence..].find('\n')? + 1;
    let end = first + text[first..].find("```\n")?;
    Some(format!("{}{}\n{}", &text[..first], content.trim_end(), &text[end..]))
}

#[test]
fn readme_shows_what_is_emitted() {
    let x = Tensor::from_vec(vec![0.0f32; 8 * 64 * 128 * 128], [8, 64, 128, 128]);
    let program = compile_for(&[x.relu().max_pool2d(2, 2)], &Target::cuda("sm_90")).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let fresh = with_block(&readme, "explain", &program.explain().to_string()).unwrap();
    let fresh = with_block(&fresh, "kernel", &program.source()).unwrap();
    // How many kernels a block is, and their names.
    let block = model::Model::seeded(&Device::cpu(), 1).unwrap().explain_block(&[0; 96]).unwrap().to_string();
    let is_kernel = |line: &&str| line.starts_with(|first: char| first.is_ascii_digit());
    let block: Vec<&str> =
        block.lines().filter(is_kernel).map(|line| line.split(':').next().unwrap_or(line)).collect();
    let fresh = with_block(&fresh, "block", &block.join("\n")).unwrap();
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(&path, fresh).unwrap();
    } else {
        assert_eq!(readme, fresh, "run UPDATE_README=1 cargo test --test readme");
    }
}
