//! Whether fusing ever loses: each expression fused, unfused, and with each single merge undone.
//! `benches/README.md` says how to read the figures.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the benchmark.

mod common;
#[path = "../../tests/graphs/mod.rs"]
mod graphs;
mod programs;
mod report;
include!("../../tests/scoreboard/modules.rs");

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lazuli::measure::{self, Kernel, Merge};
use lazuli::{Device, Fusion, Target, Tensor};
use serde_json::Value;

use programs::Case;

const USAGE: &str = "\
cargo bench --bench never_loses -- [OPTIONS] [NAME...]
    NAME             only cases whose names contain one of these, such as `softmax`, `random` or `program`
    --quick          a tenth of the random graphs, and two merges undone of each case
    --merges N       undo at most so many merges of each case, those in doubt first (8)
    --random N       so many random graphs (200)
    --seed N         which: 0 to 255 (7)
    --rounds N       the least of so many runs (5)
    --device NAME    cpu, or cuda: there a plan takes what its kernels take by the device's clock, and a microsecond each
    --out FILE       where the data goes (target/never_loses.json)
    --show           measure nothing: the kernels of each case, and why they are these
    --again FILE     measure nothing: what the model says now of the plans in FILE, which an earlier run wrote, with what
                     these took, into the other file; which of them each case has now, and who would lose";

/// What the command line asks for.
struct Options {
    names: Vec<String>,
    merges: usize,
    random: usize,
    seed: usize,
    rounds: usize,
    device: Device,
    out: String,
    again: Option<String>,
    show: bool,
}

impl Options {
    fn new() -> Options {
        let mut options = Options {
            names: Vec::new(),
            merges: 8,
            random: 200,
            seed: 7,
            rounds: 5,
            device: Device::cpu(),
            out: "target/never_loses.json".into(),
            again: None,
            show: false,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut number = || arguments.next().and_then(|n| n.parse().ok()).expect(USAGE);
            match argument.as_str() {
                "--bench" => {}
                "--show" => options.show = true,
                "--quick" => (options.merges, options.random) = (2, 20),
                "--merges" => options.merges = number(),
                "--random" => options.random = number(),
                "--seed" => options.seed = number(),
                "--rounds" => options.rounds = number(),
                "--device" => match arguments.next().as_deref() {
                    Some("cpu") => {}
                    Some("cuda") => options.device = Device::cuda(0),
                    _ => usage(),
                },
                "--out" => options.out = arguments.next().expect(USAGE),
                "--again" => options.again = Some(arguments.next().expect(USAGE)),
                name if !name.starts_with('-') => options.names.push(name.into()),
                _ => usage(),
            }
        }
        options
    }

    fn wants(&self, case: &Case) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| case.name.contains(name))
    }
}

fn usage() -> ! {
    println!("{USAGE}");
    std::process::exit(2);
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
        self.kernels.iter().map(|kernel| kernel.modelled.seconds).sum()
    }

    /// One run.
    fn run(&mut self, case: &mut Case) {
        let results: Vec<Tensor> = (case.record)();
        wake();
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
        let seconds = match Device::default() == Device::cpu() {
            true => seconds,
            false => kernels.iter().map(|kernel| kernel.measured + LAUNCH).sum(),
        };
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

/// Seconds from the end of a kernel of a GPU to the beginning of the next one.
const LAUNCH: f64 = 1e-6;

/// Has the pool's threads busy when the plan begins. One that sleeps is late by up to a tenth of a millisecond, or by more than
/// the whole kernel takes, and that tells of what ran before and not of the plan.
fn wake() {
    let busy = Arc::new(AtomicUsize::new(0));
    let helpers = rayon::current_num_threads().saturating_sub(1);
    for _ in 0..helpers {
        let busy = Arc::clone(&busy);
        rayon::spawn(move || {
            busy.fetch_add(1, Ordering::Relaxed);
            let begin = Instant::now();
            while begin.elapsed() < AWAKE {
                std::hint::spin_loop();
            }
        });
    }
    while busy.load(Ordering::Relaxed) < helpers {
        std::hint::spin_loop();
    }
}

/// As long as it takes to find a plan.
const AWAKE: Duration = Duration::from_micros(50);

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
            .map(|kernel| (kernel.name.clone(), format!("{} {:?}", kernel.schedule, kernel.groups)))
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

/// What the model says now of a case that was measured before, and the plan that it has now, if it is one of those that were
/// measured. Kernels that are none any more make it `None`.
fn modelled_again(case: &mut Case, measured: &Value) -> Option<Value> {
    let mut result = measured.clone();
    let sorted = |mut groups: Vec<Value>| {
        groups.sort_by_cached_key(Value::to_string);
        groups
    };
    let now = measure::planned(&(case.record)()).ok()?.into_iter().map(|groups| serde_json::json!(groups));
    let now = sorted(now.collect());
    let is_now = |plan: &&Value| {
        let kernels = plan["kernels"].as_array().into_iter().flatten();
        sorted(kernels.map(|kernel| kernel["groups"].clone()).collect()) == now
    };
    let same = measured["plans"].as_array()?.iter().find(is_now);
    result["now"] = same.map_or(Value::Null, |plan| plan["plan"].clone());
    let kernels = result["plans"].as_array_mut()?.iter_mut();
    let mut kernels: Vec<&mut Value> =
        kernels.filter_map(|plan| plan["kernels"].as_array_mut()).flatten().collect();
    let groups = kernels.iter().map(|kernel| serde_json::from_value(kernel["groups"].clone()).ok());
    let modelled = measure::modelled(&(case.record)(), &groups.collect::<Option<Vec<_>>>()?).ok()?;
    for (kernel, modelled) in kernels.iter_mut().zip(modelled) {
        let modelled = modelled?;
        kernel["estimate"] = Value::from(modelled.seconds);
        kernel["figures"] = report::figures(&modelled);
    }
    Some(result)
}

/// Writes the cases of a file of data with what the model says of their plans now.
fn again(path: &str, options: &Options) {
    let data: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).expect("the data"))
        .expect("JSON of this benchmark");
    let mut cases = programs::cases(options.random, options.seed as u8);
    let (mut all, mut lost, mut unknown) = (Vec::new(), 0, 0);
    for measured in &data {
        let case = cases.iter_mut().find(|case| measured["case"] == case.name && options.wants(case));
        match case.and_then(|case| modelled_again(case, measured)) {
            Some(again) => {
                let seconds = |plan: &Value| plan["measured"].as_f64().unwrap_or(f64::INFINITY);
                let plans: Vec<&Value> = measured["plans"].as_array().into_iter().flatten().collect();
                let best = plans.iter().map(|plan| seconds(plan)).fold(f64::INFINITY, f64::min);
                let (name, now) = (again["case"].as_str().unwrap_or_default(), &again["now"]);
                match plans.iter().find(|plan| plan["plan"] == *now) {
                    None => {
                        unknown += 1;
                        println!("{name:<40} now another plan");
                    }
                    Some(plan) => {
                        let loses = best < report::LOSES * seconds(plan);
                        lost += usize::from(loses);
                        if loses || *now != plans[0]["plan"] {
                            let share = best / seconds(plan);
                            println!("{name:<40} {} of the best: {now}", format_args!("{share:.2}"));
                        }
                    }
                }
                all.push(again);
            }
            None => println!("{}: left out", measured["case"]),
        }
    }
    println!("{lost} would lose of {}; {unknown} have plans that were not measured", all.len());
    std::fs::write(&options.out, Value::from(all).to_string()).expect("the data");
    println!("the data: {}", options.out);
}

/// Prints the kernels of a case.
fn show(case: &mut Case) {
    match lazuli::compile_for(&(case.record)(), &Target::cpu()) {
        Ok(program) => println!("// {}\n{}\n{}", case.name, program.explain(), program.source()),
        Err(error) => println!("{}: {error}", case.name),
    }
}

fn main() {
    let options = Options::new();
    Device::set_default(&options.device);
    if let Some(path) = &options.again {
        return again(path, &options);
    }
    let mut report = report::Report::default();
    for mut case in programs::cases(options.random, options.seed as u8) {
        if options.wants(&case) && options.show {
            show(&mut case);
        } else if options.wants(&case) {
            match measured(&mut case, &options) {
                Ok(plans) => report.add(&case.name, plans),
                Err(error) => println!("{}: {error}", case.name),
            }
        }
    }
    if options.show {
        return;
    }
    report.finish();
    std::fs::write(&options.out, report.json()).expect("the data");
    println!("the data: {}", options.out);
}
