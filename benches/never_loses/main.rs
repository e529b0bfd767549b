//! Whether fusing ever loses: each expression fused, unfused, and with each single merge undone.
//! `benches/README.md` says how to read the figures.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the benchmark.

mod common;
#[path = "../../tests/graphs/mod.rs"]
mod graphs;
#[path = "../../tests/scoreboard/groups.rs"]
mod groups;
#[path = "../../tests/scoreboard/inputs.rs"]
mod inputs;
#[path = "../../tests/scoreboard/products.rs"]
mod products;
mod programs;
#[path = "../../tests/scoreboard/rearranged.rs"]
mod rearranged;
#[path = "../../tests/scoreboard/reductions.rs"]
mod reductions;
mod report;
#[path = "../../tests/scoreboard/rows.rs"]
mod rows;
#[path = "../../tests/scoreboard/science.rs"]
mod science;
#[path = "../../tests/scoreboard/training.rs"]
mod training;
#[path = "../../tests/workloads/mod.rs"]
mod workloads;

use std::time::Instant;

use lazuli::measure::{self, Kernel, Merge};
use lazuli::{Fusion, Tensor};

use programs::Case;

const USAGE: &str = "\
cargo bench --bench never_loses -- [OPTIONS] [NAME...]
    NAME             only cases whose names contain one of these, such as `softmax`, `random` or `program`
    --quick          a tenth of the random graphs, and two merges undone of each case
    --merges N       undo at most so many merges of each case, those in doubt first (8)
    --random N       so many random graphs (200)
    --rounds N       the least of so many runs (5)
    --out FILE       where the data goes (target/never_loses.json)";

/// What the command line asks for.
struct Options {
    names: Vec<String>,
    merges: usize,
    random: usize,
    rounds: usize,
    out: String,
}

impl Options {
    fn new() -> Options {
        let mut options = Options {
            names: Vec::new(),
            merges: 8,
            random: 200,
            rounds: 5,
            out: "target/never_loses.json".into(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut number = || arguments.next().and_then(|n| n.parse().ok()).expect(USAGE);
            match argument.as_str() {
                "--bench" => {}
                "--quick" => (options.merges, options.random) = (2, 20),
                "--merges" => options.merges = number(),
                "--random" => options.random = number(),
                "--rounds" => options.rounds = number(),
                "--out" => options.out = arguments.next().expect(USAGE),
                name if !name.starts_with('-') => options.names.push(name.into()),
                _ => {
                    println!("{USAGE}");
                    std::process::exit(2);
                }
            }
        }
        options
    }

    fn wants(&self, case: &Case) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| case.name.contains(name))
    }
}

/// One way to compute a case.
pub struct Plan {
    name: String,
    fusion: Fusion,
    without: Option<Merge>,
    /// Seconds of the fastest run, without recording.
    pub measured: f64,
    /// Its kernels, each as fast as it ever was.
    pub kernels: Vec<Kernel>,
}

impl Plan {
    fn new(name: String, fusion: Fusion, without: Option<Merge>) -> Plan {
        Plan { name, fusion, without, measured: f64::INFINITY, kernels: Vec::new() }
    }

    /// Seconds, as the model has them.
    pub fn estimate(&self) -> f64 {
        self.kernels.iter().map(|kernel| kernel.estimate).sum()
    }

    /// One run.
    fn run(&mut self, case: &mut Case) {
        let results: Vec<Tensor> = (case.record)();
        let evaluate = || {
            let start = Instant::now();
            let kernels = measure::kernels(&results, self.fusion);
            (start.elapsed().as_secs_f64(), kernels)
        };
        let (seconds, kernels) = match &self.without {
            Some(merge) => measure::without(merge, evaluate),
            None => lazuli::with_fusion(self.fusion, evaluate),
        };
        let kernels = kernels.unwrap_or_else(|error| {
            println!("{}, {}: {error}", case.name, self.name);
            Vec::new()
        });
        self.measured = self.measured.min(seconds);
        match self.kernels.len() == kernels.len() {
            true => {
                for (kernel, new) in self.kernels.iter_mut().zip(kernels) {
                    kernel.measured = kernel.measured.min(new.measured);
                }
            }
            false => self.kernels = kernels,
        }
    }
}

/// The merges to undo: those in doubt, then some of the others.
fn chosen(mut merges: Vec<Merge>, most: usize) -> Vec<Merge> {
    merges.sort_by_key(|merge| !merge.is_doubtful);
    let doubtful = merges.iter().filter(|merge| merge.is_doubtful).count();
    let spread = |merges: &[Merge], most: usize| -> Vec<Merge> {
        let count = merges.len().min(most);
        (0..count).map(|n| merges[(2 * n + 1) * merges.len() / (2 * count)].clone()).collect()
    };
    let mut result = spread(&merges[..doubtful], most);
    // Among operations of one kind one merge is like another.
    let left = most.saturating_sub(result.len()).min(2);
    result.extend(spread(&merges[doubtful..], left));
    result
}

/// Every plan of a case, measured in turns.
fn measured(case: &mut Case, options: &Options) -> lazuli::Result<Vec<Plan>> {
    let merges = measure::merges(&(case.record)())?;
    let mut plans =
        vec![Plan::new("fused".into(), Fusion::On, None), Plan::new("unfused".into(), Fusion::Off, None)];
    for merge in chosen(merges, options.merges) {
        plans.push(Plan::new(merge.place.clone(), Fusion::On, Some(merge)));
    }
    // The first run compiles.
    plans.iter_mut().for_each(|plan| plan.run(case));
    // Some merges are made in other ways, or nothing was merged: then one plan is enough.
    let kernels = |plan: &Plan| -> Vec<(String, String)> {
        plan.kernels
            .iter()
            .map(|kernel| (kernel.name.clone(), format!("{} {:?}", kernel.schedule, kernel.figures)))
            .collect()
    };
    let mut seen = Vec::new();
    plans.retain(|plan| {
        let own = kernels(plan);
        let is_new = plan.fusion == Fusion::Off || !seen.contains(&own);
        seen.push(own);
        is_new
    });
    let is_one = plans.len() == 2 && seen[0] == seen[1];
    for plan in &mut plans {
        (plan.measured, plan.kernels) = (f64::INFINITY, Vec::new());
    }
    for _ in 0..options.rounds {
        plans.iter_mut().for_each(|plan| plan.run(case));
    }
    // Who loses has another chance, and who won another turn.
    for _ in 0..options.rounds {
        let best =
            (0..plans.len()).min_by(|&a, &b| plans[a].measured.total_cmp(&plans[b].measured)).expect("plans");
        if !report::loses(&plans) {
            break;
        }
        plans[0].run(case);
        plans[best].run(case);
    }
    if is_one {
        plans[1].measured = plans[0].measured;
    }
    Ok(plans)
}

fn main() {
    let options = Options::new();
    let mut report = report::Report::default();
    for mut case in programs::cases(options.random) {
        if options.wants(&case) {
            match measured(&mut case, &options) {
                Ok(plans) => report.add(&case.name, plans),
                Err(error) => println!("{}: {error}", case.name),
            }
        }
    }
    report.finish();
    std::fs::write(&options.out, report.json()).expect("the data");
    println!("the data: {}", options.out);
}
