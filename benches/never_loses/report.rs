//! What the figures say.

use serde_json::{Value, json};

use super::Plan;

/// A plan may be this much slower than the best of a case before it loses.
pub const LOSES: f64 = 0.95;

/// Plans that differ by less are equally fast.
const DIFFERS: f64 = 1.2;

/// Whether the fused plan, the first, loses.
pub fn loses(plans: &[Plan]) -> bool {
    best(plans).measured < LOSES * plans[0].measured
}

fn best(plans: &[Plan]) -> &Plan {
    plans.iter().min_by(|a, b| a.measured.total_cmp(&b.measured)).expect("plans")
}

/// All cases.
#[derive(Default)]
pub struct Report {
    cases: Vec<(String, Vec<Plan>)>,
}

impl Report {
    /// Prints a case, and its kernels if it loses.
    pub fn add(&mut self, name: &str, plans: Vec<Plan>) {
        let (fused, best) = (&plans[0], best(&plans));
        let unfused = plans[1].measured / fused.measured;
        let milliseconds = |seconds: f64| seconds * 1e3;
        println!(
            "{name:<40} {:>9.3} ms, {unfused:>6.2} × unfused, model {:>9.3} ms",
            milliseconds(fused.measured),
            milliseconds(fused.estimate())
        );
        if loses(&plans) {
            println!(
                "   LOSES: {:.2} of {}, {:.3} ms, model {:.3} ms",
                best.measured / fused.measured,
                best.name,
                milliseconds(best.measured),
                milliseconds(best.estimate())
            );
            for plan in [fused, best] {
                for kernel in &plan.kernels {
                    println!(
                        "      {:<8} {:>9.3} ms, model {:>9.3} ms: {}: {}",
                        if std::ptr::eq(plan, fused) { "fused" } else { "best" },
                        milliseconds(kernel.measured),
                        milliseconds(kernel.modelled.seconds),
                        kernel.name,
                        kernel.schedule
                    );
                }
            }
        }
        self.cases.push((name.into(), plans));
    }

    /// Prints what is true of all cases.
    pub fn finish(&self) {
        let lost = self.cases.iter().filter(|(_, plans)| loses(plans)).count();
        let speedups = self.cases.iter().map(|(_, plans)| (plans[1].measured / plans[0].measured).ln());
        let mean = (speedups.sum::<f64>() / self.cases.len().max(1) as f64).exp();
        let (mut pairs, mut agreed) = (0, 0);
        for (_, plans) in &self.cases {
            for (number, a) in plans.iter().enumerate() {
                for b in &plans[number + 1..] {
                    let (fast, slow) = if a.measured < b.measured { (a, b) } else { (b, a) };
                    if slow.measured > DIFFERS * fast.measured {
                        pairs += 1;
                        agreed += usize::from(fast.estimate() < slow.estimate());
                    }
                }
            }
        }
        println!("\n{} cases; the geometric mean is {mean:.2} × as fast as unfused", self.cases.len());
        println!("{lost} lose: slower than {LOSES} of the best of their plans");
        let share = 100.0 * agreed as f64 / f64::from(pairs.max(1) as u32);
        println!(
            "of {pairs} pairs of plans that differ by more than 20 %, the model ranks {share:.1} % as measured"
        );
    }

    /// Everything, for `fit.py`.
    pub fn json(&self) -> String {
        let kernel = |kernel: &lazuli::measure::Kernel| -> Value {
            json!({
                "name": kernel.name,
                "schedule": kernel.schedule,
                "estimate": kernel.modelled.seconds,
                "measured": kernel.measured,
                "figures": figures(&kernel.modelled),
                "groups": kernel.groups,
            })
        };
        let plan = |plan: &Plan| -> Value {
            json!({
                "plan": plan.name,
                "measured": plan.measured,
                "kernels": plan.kernels.iter().map(kernel).collect::<Vec<_>>(),
            })
        };
        let case = |(name, plans): &(String, Vec<Plan>)| -> Value {
            json!({ "case": name, "plans": plans.iter().map(plan).collect::<Vec<_>>() })
        };
        json!(self.cases.iter().map(case).collect::<Vec<_>>()).to_string()
    }
}

/// Counts by name.
pub fn figures(modelled: &lazuli::measure::Modelled) -> Value {
    let named = modelled.figures.iter().map(|(name, value)| (name.to_string(), json!(value)));
    Value::Object(named.collect())
}
