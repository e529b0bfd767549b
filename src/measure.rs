//! Plans as benchmarks look at them: with one merge undone, and what the model says of each kernel beside the time that
//! it takes. Hidden from the documentation, and no part of the interface.

use std::collections::HashMap;
use std::sync::Arc;

use crate::compiler::{Plan, PlannedKernel};
use crate::executor::{self, settings, timing};
use crate::fusion::cost::{TargetFigures, Work};
use crate::fusion::cut::{self, Cut};
use crate::fusion::{Facts, Grouping};
use crate::graph::{Graph, NodeId};
use crate::recording::build::build;
use crate::recording::key::build_key;

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
    /// Seconds that it took.
    pub measured: f64,
    /// What it does, as the model sees it.
    pub modelled: Modelled,
    /// The nodes of each of its groups, of the graph that went through all passes, and those that are stored.
    pub groups: Vec<NodeNumbers>,
}

/// The nodes of a group and those of them that are stored, by number.
pub type NodeNumbers = (Vec<usize>, Vec<usize>);

/// What a kernel does, as the model sees it.
#[derive(Clone, Debug)]
pub struct Modelled {
    /// Seconds.
    pub seconds: f64,
    /// Counts, by name.
    pub figures: Vec<(&'static str, f64)>,
}

impl Modelled {
    /// Of several groups that are launched together.
    fn new(works: impl Iterator<Item = Work>, figures: &TargetFigures) -> Modelled {
        let work: Work = works.sum();
        Modelled { seconds: work.seconds(figures), figures: work.figures() }
    }
}

/// Plans, explains and evaluates without one of the merges while `f` runs on this thread.
pub fn without<T>(merge: &Merge, f: impl FnOnce() -> T) -> T {
    cut::without(merge.cut, f)
}

/// Something to be timed, with its name.
pub type Piece<'a> = (&'static str, Box<dyn Fn() + 'a>);

/// What an evaluation of some tensors on the CPU begins with, piece by piece: each to be called any number of times.
pub fn pieces(tensors: &[Tensor]) -> Vec<Piece<'_>> {
    let recording = build(tensors);
    let settings = || settings::of(Device::cpu(), Fusion::On);
    let mut pieces: Vec<Piece> = vec![
        ("the key of what was recorded", Box::new(|| drop(std::hint::black_box(build_key(tensors, 0))))),
        ("the same as a graph", Box::new(|| drop(std::hint::black_box(build(tensors))))),
        (
            "settings of the device",
            Box::new(move || {
                std::hint::black_box(settings());
            }),
        ),
    ];
    if let Ok(recording) = recording {
        let graph = std::rc::Rc::new(recording.graph);
        let own = graph.clone();
        pieces.push((
            "its key",
            Box::new(move || {
                std::hint::black_box(crate::graph::hash::structural_key(&own));
            }),
        ));
        pieces.push((
            "its key, and the plan of that key",
            Box::new(move || {
                drop(std::hint::black_box(crate::compiler::plan(&graph, settings())));
            }),
        ));
    }
    pieces.push((
        "memory of 1,000 numbers",
        Box::new(|| {
            drop(std::hint::black_box(crate::runtime::host::HostBuffer::allocate(4000)));
        }),
    ));
    pieces
}

fn plan(tensors: &[Tensor], fusion: Fusion) -> Result<std::sync::Arc<Plan>> {
    let recording = build(tensors)?;
    let device = tensors.first().map_or(Ok(Device::cpu()), Tensor::device)?;
    crate::compiler::plan(&recording.graph, settings::of(device, fusion))
}

/// The merges of the plan for some tensors on their device.
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

/// The groups of each kernel of the plan for some tensors on their device, which is not run.
///
/// # Errors
/// The first error in the tensors' histories.
pub fn planned(tensors: &[Tensor]) -> Result<Vec<Vec<NodeNumbers>>> {
    let plan = plan(tensors, Fusion::On)?;
    Ok(plan.kernels.iter().map(|kernel| numbers(&plan, kernel)).collect())
}

fn numbers(plan: &Plan, kernel: &PlannedKernel) -> Vec<NodeNumbers> {
    let numbers = |ids: &[NodeId]| ids.iter().map(|id| id.index()).collect();
    let groups = kernel.groups(&plan.grouping);
    groups.map(|group| (numbers(&group.nodes), numbers(&group.outputs))).collect()
}

fn merge(graph: &Graph, facts: &Facts, cut: Cut) -> Merge {
    let place = cut.place(graph, &[cut.node()]).to_string();
    Merge { cut, place, is_doubtful: cut.is_doubtful(graph, &facts.reads) }
}

/// Evaluates tensors, and gives the kernels of the plan for their device.
///
/// # Errors
/// As [`crate::eval`].
pub fn kernels(tensors: &[Tensor], fusion: Fusion) -> Result<Vec<Kernel>> {
    let plan = plan(tensors, fusion)?;
    let (evaluated, noted) = timing::of_kernels(|| executor::evaluate(tensors, fusion));
    evaluated?;
    let times = noted.launched;
    let launched = || plan.kernels.iter().filter(|kernel| !kernel.is_empty());
    if times.len() != launched().count() {
        return Err(Error::internal("measuring", "another plan was run"));
    }
    let figures = plan.settings.figures();
    let kernel = |(kernel, launched): (&Arc<PlannedKernel>, timing::Launched)| Kernel {
        name: launched.name,
        schedule: launched.schedule,
        measured: launched.seconds,
        modelled: Modelled::new(kernel.groups(&plan.grouping).map(|group| group.work), &figures),
        groups: numbers(&plan, kernel),
    };
    Ok(launched().zip(times).map(kernel).collect())
}

/// What the model says now of kernels of these tensors that were measured before, each by its groups; `None` for one that
/// is no kernel.
///
/// # Errors
/// The first error in the tensors' histories.
pub fn modelled(tensors: &[Tensor], kernels: &[Vec<NodeNumbers>]) -> Result<Vec<Option<Modelled>>> {
    let plan = plan(tensors, Fusion::On)?;
    let (graph, figures) = (&plan.graph, plan.settings.figures());
    let facts = Facts::new(graph, &figures, None);
    let nodes: HashMap<usize, NodeId> = graph.nodes().map(|id| (id.index(), id)).collect();
    let ids = |numbers: &[usize]| -> Option<Vec<NodeId>> {
        numbers.iter().map(|number| nodes.get(number).copied()).collect()
    };
    let works = |groups: &Vec<NodeNumbers>| -> Option<Vec<Work>> {
        let group = |(nodes, outputs): &NodeNumbers| Some((ids(nodes)?, ids(outputs)?));
        Grouping::works(graph, &facts, groups.iter().map(group).collect::<Option<_>>()?)
    };
    let modelled = |groups| Some(Modelled::new(works(groups)?.into_iter(), &figures));
    Ok(kernels.iter().map(modelled).collect())
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
    fn what_has_no_elements_is_not_measured() {
        let x = Tensor::ones([64, 64], DType::F32);
        x.eval().unwrap();
        let found = kernels(&[x.exp(), x.slice(0, 0..0).exp()], Fusion::On).unwrap();
        let names: Vec<&str> = found.iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(names, ["exp_f32"]);
    }

    #[test]
    fn kernels_are_modelled_anew() {
        let x = Tensor::ones([64, 64], DType::F32);
        x.eval().unwrap();
        let tensors = [x.exp().sum(1)];
        let found = kernels(&tensors, Fusion::Off).unwrap();
        let groups: Vec<Vec<NodeNumbers>> = found.iter().map(|kernel| kernel.groups.clone()).collect();
        let again = modelled(&[x.exp().sum(1)], &groups).unwrap();
        assert_eq!(again.len(), 2);
        for (kernel, again) in found.iter().zip(again) {
            assert_eq!(again.map(|again| again.figures), Some(kernel.modelled.figures.clone()));
        }
        assert!(modelled(&[x.exp().sum(1)], &[vec![(vec![99], vec![99])]]).unwrap()[0].is_none());
    }

    #[test]
    fn kernels_of_a_plan_are_timed() {
        let x = Tensor::ones([64, 64], DType::F32);
        let found = kernels(&[x.exp().sum(1)], Fusion::Off).unwrap();
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|kernel| kernel.measured > 0.0 && kernel.modelled.seconds > 0.0));
        assert!(!timing::is_timing());
    }
}
