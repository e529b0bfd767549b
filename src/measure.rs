//! Plans as benchmarks look at them: with one merge undone, and what the model says of each kernel beside the time that
//! it takes. Hidden from the documentation, and no part of the interface.

use crate::compiler::Plan;
use crate::executor::{self, settings, timing};
use crate::fusion::Facts;
use crate::fusion::cut::{self, Cut};
use crate::graph::Graph;
use crate::graph::op::Op;
use crate::recording::build::build;

use crate::{Device, Error, Fusion, Result, Tensor};

/// A merge of a plan.
#[derive(Clone, Debug)]
pub struct Merge {
    cut: Cut,
    /// Where it is, in words.
    pub place: String,
    /// Whether more than an element follows from an element there, or the other way round: where fusing may lose.
    pub is_doubtful: bool,
}

/// A kernel of a plan.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Its schedule, in words.
    pub schedule: String,
    /// Seconds, as the model has them.
    pub estimate: f64,
    /// Seconds that it took.
    pub measured: f64,
    /// What the model counts, by name.
    pub figures: Vec<(&'static str, f64)>,
}

/// Plans, explains and evaluates without one of the merges while `f` runs on this thread.
pub fn without<T>(merge: &Merge, f: impl FnOnce() -> T) -> T {
    cut::without(merge.cut, f)
}

fn plan(tensors: &[Tensor], fusion: Fusion) -> Result<std::sync::Arc<Plan>> {
    let recording = build(tensors)?;
    crate::compiler::plan(&recording.graph, settings::of(Device::cpu(), fusion))
}

/// The merges of the plan for some tensors on the CPU.
///
/// # Errors
/// The first error in the tensors' histories.
pub fn merges(tensors: &[Tensor]) -> Result<Vec<Merge>> {
    let plan = plan(tensors, Fusion::On)?;
    let (graph, figures) = (&plan.graph, plan.settings.figures());
    let facts = Facts::new(graph, &figures, plan.settings.undone);
    let cuts = Cut::all(&plan.grouping.groups, &facts.reads);
    Ok(cuts.into_iter().map(|cut| merge(graph, &facts, cut)).collect())
}

fn merge(graph: &Graph, facts: &Facts, cut: Cut) -> Merge {
    let node = graph.node(cut.node());
    let name = if node.origin.is_empty() { node.op.name() } else { node.origin };
    let changes = |op: &Op| {
        matches!(
            op,
            Op::Reduce { .. }
                | Op::Scan { .. }
                | Op::Recurrence { .. }
                | Op::Scatter { .. }
                | Op::Sort { .. }
                | Op::Gather { .. }
        )
    };
    let (place, is_doubtful) = match cut {
        Cut::Below(id) => {
            let is_doubtful = facts.reads.users(id).iter().any(|&user| {
                let mut reads = facts.reads.reads(user).iter().filter(|read| read.node == id);
                changes(&graph.node(user).op) || reads.any(|read| !read.aligned)
            });
            (format!("below {name} {} {}", node.dtype, node.shape), is_doubtful || changes(&node.op))
        }
        Cut::Beside(_) => (format!("beside {name} {} {}", node.dtype, node.shape), true),
    };
    Merge { cut, place, is_doubtful }
}

/// Evaluates tensors on the CPU, and gives the kernels of the plan.
///
/// # Errors
/// As [`crate::eval`].
pub fn kernels(tensors: &[Tensor], fusion: Fusion) -> Result<Vec<Kernel>> {
    let plan = plan(tensors, fusion)?;
    let (evaluated, times) = timing::of_kernels(|| executor::evaluate(tensors, fusion));
    evaluated?;
    if times.len() != plan.kernels.len() {
        return Err(Error::internal("measuring", "another plan was run"));
    }
    let figures = plan.settings.figures();
    let kernel = |(kernel, launched): (&crate::compiler::PlannedKernel, timing::Launched)| {
        let (mut estimate, mut counted) = (0.0, Vec::new());
        for group in kernel.groups(&plan.grouping) {
            estimate += group.work.seconds(&figures);
            counted = group.work.figures();
        }
        Kernel {
            name: launched.name,
            schedule: launched.schedule,
            estimate,
            measured: launched.seconds,
            figures: counted,
        }
    };
    Ok(plan.kernels.iter().zip(times).map(kernel).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn each_merge_can_be_undone_alone() {
        let x = Tensor::ones([64, 64], DType::F32);
        x.eval().unwrap();
        let (y, z) = (x.exp() * 2.0, x.exp() + 1.0);
        let tensors = [y, z];
        let found = merges(&tensors).unwrap();
        let places: Vec<&str> = found.iter().map(|merge| merge.place.as_str()).collect();
        assert_eq!(places, ["below exp f32 [64, 64]", "beside mul f32 [64, 64]"]);
        let kernels = |fusion| -> usize { plan(&tensors, fusion).unwrap().kernels.len() };
        assert_eq!((kernels(Fusion::On), kernels(Fusion::Off)), (1, 3));
        let apart: Vec<usize> = found.iter().map(|merge| without(merge, || kernels(Fusion::On))).collect();
        assert_eq!(apart, [2, 2]);
        assert_eq!(kernels(Fusion::On), 1);
    }

    #[test]
    fn kernels_of_a_plan_are_timed() {
        let x = Tensor::ones([64, 64], DType::F32);
        let found = kernels(&[x.exp().sum(1)], Fusion::Off).unwrap();
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|kernel| kernel.measured > 0.0 && kernel.estimate > 0.0));
        assert!(!timing::is_timing());
    }
}
