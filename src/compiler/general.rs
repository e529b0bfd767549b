//! Plans of graphs that differ from a planned one in the user's numbers alone (`graph::numbers`).
//!
//! Debug builds of this workspace take each graph through the passes all the same, and compare.

use std::sync::Arc;

use lazuli_codegen::nest::is_verified;

use super::passed::passed;
use super::plan::Plan;
use crate::Result;
use crate::graph::Graph;
use crate::graph::hash::{Keys, parametric_key};
use crate::graph::parameters::Parameters;

/// A plan for all graphs of a structure, whatever their numbers are.
#[derive(Clone)]
pub(super) struct General {
    plan: Arc<Plan>,
    /// Which of the plan's values is which of the graph's numbers.
    places: Arc<[(usize, usize)]>,
}

impl General {
    /// Of a plan of the graph with these keys; `None` where other numbers may be another plan.
    pub(super) fn of(plan: &Arc<Plan>, keys: &Keys) -> Option<General> {
        if keys.numbers.is_empty() {
            return None;
        }
        let others = plan.numbers.as_ref()?.iter().filter(|(_, number)| !number.has_laws());
        let places = others.map(|&(value, number)| Some((value, keys.numbers.place_of(number)?)));
        Some(General { plan: plan.clone(), places: places.collect::<Option<_>>()? })
    }

    /// The plan of the graph with these keys, which is of the structure.
    pub(super) fn plan(&self, keys: &Keys, recorded: &dyn Fn() -> Result<Graph>) -> Option<Plan> {
        let Plan { graph, values, shared, settings, .. } = &*self.plan;
        let mut values = values.clone();
        for &(value, place) in self.places.iter() {
            *values.get_mut(value)? = keys.numbers.get(place)?.bits();
        }
        let (graph, shared, settings) = (graph.clone(), shared.clone(), *settings);
        let plan = Plan { graph, values, shared, settings, follows: true, numbers: None };
        debug_assert!(
            !is_verified() || self.is_plan_of(&plan.values, recorded),
            "other numbers are another plan"
        );
        Some(plan)
    }

    /// Whether the graph has the same plan, with these values.
    fn is_plan_of(&self, values: &[u64], recorded: &dyn Fn() -> Result<Graph>) -> bool {
        let settings = self.plan.settings;
        // Another thread may have computed it meanwhile.
        let Ok((graph, parameters, _)) = recorded().and_then(|graph| passed(&graph, settings)) else {
            return true;
        };
        let own = parametric_key(&self.plan.graph, &Parameters::of(&self.plan.graph, settings.language));
        parameters.values == values && parametric_key(&graph, &parameters) == own
    }
}

#[cfg(test)]
mod tests {
    use lazuli_codegen::Language;
    use lazuli_codegen::schedule::Matrices;

    use super::super::{Settings, known_or_general, plan_to_run};
    use super::*;
    use crate::recording::build::build;
    use crate::recording::key::build_key;
    use crate::{BinaryOp, DType, Fusion, Scalar, Tensor};

    const C: Settings = Settings {
        language: Language::C,
        fusion: Fusion::On,
        shared_bytes: 0,
        matrices: Matrices::Warps,
        undone: None,
        tuned: None,
    };

    /// Whether the plan of the first serves the other. If so, it is the one that is made.
    fn serves(first: Tensor, other: Tensor) -> bool {
        let graph = |of: &Tensor| build(std::slice::from_ref(of)).map(|recording| recording.graph);
        plan_to_run(&graph(&first).unwrap(), C).unwrap();
        let keys = build_key(std::slice::from_ref(&other), 0).unwrap().graph;
        let Some(found) = known_or_general(&keys, C, &|| graph(&other)) else { return false };
        let made = plan_to_run(&graph(&other).unwrap(), C).unwrap();
        assert_eq!(found.values, made.values);
        assert!(Arc::ptr_eq(&found.shared, &made.shared));
        true
    }

    /// Programs of one test have inputs of their own length: plans are those of the process.
    fn inputs(length: usize) -> (Tensor, Tensor) {
        let x = Tensor::from_vec(vec![0.5f32; length], [length]);
        let n = Tensor::from_vec(vec![7i32; length], [length]);
        (x, n)
    }

    #[test]
    fn a_plan_serves_other_numbers() {
        let (x, n) = inputs(701);
        let numbers = [0.7, -0.7, 0.5, -4.0, 3.0, 1e30, 1e-40, 0.1];
        let programs: [(&str, &dyn Fn(f64) -> Tensor); 10] = [
            ("product", &|v| &x * v),
            ("chain", &|v| ((&x * v + 1.0) * (v / 7.0)).exp() - v),
            ("filled", &|v| &x - Tensor::full([701], v, DType::F32)),
            ("scalar", &|v| Tensor::scalar(v as f32) / &x),
            ("power", &|v| x.pow(v * 1.1)),
            ("bound", &|v| x.clamp_min(v)),
            ("rows", &|v| (&x * v).softmax(0) * (v * 1.3)),
            ("integers", &|v| (&n + (v * 100.0) as i64).remainder(1000)),
            ("narrow", &|v| x.cast(DType::F16) * v),
            // What is left to kernels is not computed of numbers ahead.
            ("bias correction", &|v| &x / (1.0 - Tensor::scalar(v as f32).rpow(0.9))),
        ];
        for (name, program) in programs {
            for other in numbers {
                let is_general = !matches!((name, other), ("integers", 1e30 | 1e-40));
                // A number of 16 bits is one; others scale in 32.
                let is_general = is_general && !(name == "narrow" && [0.5, -4.0, 3.0].contains(&other));
                assert_eq!(serves(program(0.3), program(other)), is_general, "{name} of {other}");
            }
        }
        assert!(serves(&x * Tensor::rand([701], 3), &x * Tensor::rand([701], 9)));
    }

    #[test]
    fn numbers_that_laws_are_about_have_plans_of_their_own() {
        let special = [0.0, -0.0, 1.0, -1.0, 2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        for (at, other) in special.into_iter().enumerate() {
            let (x, _) = inputs(740 + at);
            assert!(!serves(&x * other, &x * 0.3), "{other}");
            let (x, _) = inputs(703);
            assert!(!serves(&x * 0.3, &x * other), "{other}");
        }
        let (_, n) = inputs(703);
        for other in [0, 1, -1, 2, i32::MAX as i64, i32::MIN as i64] {
            assert!(!serves(&n + 9, &n + other), "{other}");
        }
    }

    #[test]
    fn equal_numbers_are_another_plan_than_different_ones() {
        let (x, _) = inputs(705);
        let program = |v: f64, w: f64| (&x * v).exp() + (&x * w).exp();
        assert!(serves(program(0.3, 0.4), program(0.4, 0.3)));
        assert!(!serves(program(0.3, 0.4), program(0.3, 0.3)));
        assert!(serves(program(0.3, 0.3), program(0.7, 0.7)));
        let seeds = |a: u64, b: u64| Tensor::rand([705], a) - Tensor::rand([705], b);
        assert!(serves(seeds(1, 2), seeds(2, 3)));
        assert!(!serves(seeds(1, 2), seeds(5, 5)));
        // A seed is no number.
        let n = Tensor::from_vec(vec![7i64; 705], [705]);
        let both = |seed: u64, number: i64| Tensor::rand([705], seed) * (&n + number).cast(DType::F32);
        assert!(serves(both(2, 2), both(7, 2)));
        assert!(!serves(both(2, 2), both(7, 7)));
    }

    /// What a constant becomes may follow from its value.
    #[test]
    fn what_is_computed_of_numbers_is_planned_for_each() {
        let (x, n) = inputs(707);
        let scalar = |v: f64| Tensor::scalar(v as f32);
        let programs: [(&str, &dyn Fn(f64) -> Tensor); 5] = [
            ("product", &|v| &x * (scalar(v) * scalar(0.4))),
            ("comparison", &|v| scalar(v).lt(0.5).where_(&x, 0.0)),
            ("cast", &|v| &n * Tensor::scalar(v * 10.0).cast(DType::I32)),
            ("of what becomes one", &|v| {
                (&n * Tensor::zeros([707], DType::I32)).maximum((v * 10.0) as i64 - 8) * &n
            }),
            ("absolute value", &|v| &x * scalar(-v).abs()),
        ];
        for (name, program) in programs {
            assert!(!serves(program(0.3), program(0.7)), "{name}");
        }
    }

    /// A pad of a constant with the same one is that constant.
    #[test]
    fn what_pads_is_compared_with_numbers() {
        use crate::graph::sketch::Sketch;
        let keys = |value: f64, pad: f64| {
            let mut s = Sketch::new();
            let of = |value| Scalar::from_f64(DType::F32, value);
            let (x, number) = (s.input([9], DType::F32), s.splat(of(value), [7]));
            let padded = s.pad(number, [1], of(pad), [9]);
            let sum = s.binary(BinaryOp::Add, x, padded);
            crate::graph::hash::keys(&s.outputs([sum]))
        };
        assert_eq!(keys(0.3, 0.7).general, keys(0.4, 0.7).general);
        assert_ne!(keys(0.3, 0.7).exact, keys(0.4, 0.7).exact);
        assert_ne!(keys(0.3, 0.7).general, keys(0.7, 0.7).general);
        assert_ne!(keys(0.3, 0.7).general, keys(0.3, 0.8).general);
    }
}
