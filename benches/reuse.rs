//! Kernels compiled, plans made and time a call of programs that do the same at another place each time.
//! `benches/README.md` says how to read the figures.

#![allow(clippy::expect_used, reason = "a benchmark that fails has nothing to tell")]

#[path = "reuse/generation.rs"]
mod generation;
#[path = "reuse/programs.rs"]
mod programs;

use std::collections::HashSet;
use std::time::Instant;

use lazuli::{Device, Stats, Target, stats};
use programs::{CALLS, Data, GROWING, GROWING_INSIDE, JOINING, PROGRAMS};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let calls = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(CALLS).min(CALLS);
    let is_timed = arguments.iter().any(|argument| argument == "timed");
    let filter: Vec<&String> = (arguments.iter())
        .filter(|argument| argument.parse::<usize>().is_err() && *argument != "timed")
        .collect();
    let device = Device::best();
    let data = Data::new(&device).expect("data");
    println!("{calls} calls each, on {device}\n");
    println!(
        "{:32} {:>8} {:>8} {:>9} {:>10} {:>10}  {:>12} {:>12}",
        "program", "kernels", "for CUDA", "plans", "plan hits", "first", "then, a call", "the same"
    );
    for program in PROGRAMS
        .iter()
        .chain(GROWING)
        .chain(GROWING_INSIDE)
        .chain(JOINING)
        .filter(|p| filter.is_empty() || filter.iter().any(|f| p.name.contains(f.as_str())))
    {
        let kinds = |target: &Target| {
            let source = |n| {
                let program = (program.call)(&data, n).compile_for(target).expect("a program");
                program.kernels().iter().map(|kernel| without_numbers(kernel.source())).collect::<Vec<_>>()
            };
            (0..calls).flat_map(source).collect::<HashSet<String>>()
        };
        let on_cuda = if is_timed { 0 } else { kinds(&Target::cuda("sm_90")).len() };
        let time = |n| {
            let start = Instant::now();
            (program.call)(&data, n).eval().expect("values");
            start.elapsed().as_secs_f64() * 1e6
        };
        let before = stats();
        let mut times: Vec<f64> = (0..calls).map(time).collect();
        let after = stats();
        // The plan of these is known.
        let mut again: Vec<f64> = (0..calls).map(|_| time(calls / 2)).collect();
        let loaded = |stats: &Stats| stats.kernels_compiled + stats.disk_hits;
        let (made, hits) = (after.plans_made - before.plans_made, after.plan_hits - before.plan_hits);
        let first = times[0];
        times.sort_by(f64::total_cmp);
        again.sort_by(f64::total_cmp);
        println!(
            "{:32} {:>8} {:>8} {:>9} {:>9.1}% {:>7.1} ms  {:>9.1} µs {:>9.1} µs",
            program.name,
            loaded(&after) - loaded(&before),
            on_cuda,
            made,
            hits as f64 / (made + hits) as f64 * 100.0,
            first / 1e3,
            times[times.len() / 2],
            again[again.len() / 2],
        );
    }
    for size in generation::SIZES
        .iter()
        .filter(|s| filter.is_empty() || filter.iter().any(|f| s.name.contains(f.as_str())))
    {
        generate(size, &device);
    }
}

/// What a token of a text takes whose cache grows: the first time, and in a second text, whose lengths were all there.
fn generate(size: &generation::Size, device: &Device) {
    let model = generation::Model::new(size, device).expect("a model");
    let before = stats();
    let [mut new, mut again] = [(); 2].map(|()| model.generate().expect("a text"));
    let after = stats();
    let loaded = |stats: &Stats| stats.kernels_compiled + stats.disk_hits;
    for times in [&mut new, &mut again] {
        times.sort_by(f64::total_cmp);
    }
    println!(
        "{:32} {:>8} kernels, {} plans; a token whose length is new {:.0} µs (median; least {:.0}), known {:.0} µs (least {:.0})",
        size.name,
        loaded(&after) - loaded(&before),
        after.plans_made - before.plans_made,
        new[new.len() / 2] * 1e6,
        new[0] * 1e6,
        again[again.len() / 2] * 1e6,
        again[0] * 1e6,
    );
}

/// A text with a sign for each number, as kernels that differ in numbers alone get these as arguments.
fn without_numbers(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let (mut is_word, mut is_number) = (false, false);
    for letter in source.chars() {
        is_number = letter.is_ascii_digit() && (is_number || !is_word);
        is_word = letter.is_ascii_alphanumeric() || letter == '_';
        match is_number {
            true if text.ends_with('#') => {}
            true => text.push('#'),
            false => text.push(letter),
        }
    }
    text
}
