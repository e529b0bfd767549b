//! How the numbers of a plan grow along a stretch, and the plan at a place of it.

use std::sync::Arc;

use lazuli_codegen::Emitted;
use lazuli_codegen::ir::Kernel;
use rustc_hash::FxHashMap;

use super::super::batch::joined;
use super::super::emission::{emit_cached, refused};
use super::super::plan::{Part, Plan, PlannedKernel, Shared};
use super::super::storage::input_nodes;
use crate::Scalar;
use crate::fusion::cost::Work;
use crate::fusion::group::Group;
use crate::graph::op::Op;
use crate::graph::sizes::{is_special, numbers_of, scalar, set_numbers, set_scalar};
use crate::graph::{Graph, Node, NodeId};
use crate::lower::Lowered;
use crate::tuned;

/// Plans of a stretch and where on it they are: the first, the second, the last, and one that was planned anyway.
pub(super) type Samples<'a> = [(i64, &'a Plan); 4];

/// How the first plan's numbers grow from step to step.
pub(super) struct Growth {
    nodes: Vec<(NodeId, Grows)>,
    /// Constants and seeds that are one of the user's numbers, and which.
    copies: Vec<(NodeId, usize)>,
    /// Whether some of the user's numbers must be what they were.
    pub(super) has_fixed_scalars: bool,
    /// Of each kernel, those of its parts.
    kernels: Vec<Vec<PartGrowth>>,
    /// Bytes of each group.
    works: Vec<[Curve; 3]>,
}

struct PartGrowth {
    kernel: Grows,
    /// The extents in its checks.
    checks: Grows,
    /// The first of all parts that has its text.
    emission: usize,
    /// Whether nothing of it grows.
    is_fixed: bool,
}

/// Numbers of a list that grow: their places, and by how much from step to step.
#[derive(Default)]
struct Grows(Vec<(u32, i64)>);

/// A number that grows as an extent does, or as a product of two.
struct Curve {
    by: i128,
    more: i128,
}

impl Grows {
    /// `None` if one does not grow evenly.
    fn of(samples: [(i64, Vec<i64>); 4]) -> Option<Grows> {
        let [(_, first), (_, second), others @ ..] = &samples;
        let mut grows = Vec::new();
        let is_long = |(_, numbers): &(i64, Vec<i64>)| numbers.len() == first.len();
        if !samples.iter().all(is_long) {
            return None;
        }
        for (at, (&first, second)) in first.iter().zip(second).enumerate() {
            let by = second.checked_sub(first)?;
            let is_even = |(step, numbers): &(i64, Vec<i64>)| {
                by.checked_mul(*step).and_then(|all| all.checked_add(first)) == Some(numbers[at])
            };
            if !others.iter().all(is_even) {
                return None;
            }
            if by != 0 {
                grows.push((at as u32, by));
            }
        }
        Some(Grows(grows))
    }

    /// What comes to each number of the list, in their order.
    fn at(&self, step: i64) -> impl FnMut(&mut i64) + '_ {
        let (mut at, mut rest) = (0, self.0.as_slice());
        move |number| {
            if let Some((&(next, by), others)) = rest.split_first()
                && next == at
            {
                *number += by * step;
                rest = others;
            }
            at += 1;
        }
    }
}

impl Curve {
    fn of(samples: [(i64, u64); 4]) -> Option<Curve> {
        let [(_, first), (_, second), (steps, last), _] = samples;
        let (first, steps) = (i128::from(first), i128::from(steps));
        let (one, all) = (i128::from(second) - first, i128::from(last) - first);
        let square = steps * (steps - 1);
        let more = if square == 0 { 0 } else { (all - one * steps) / square };
        let curve = Curve { by: one - more, more };
        let is_on = |(step, number): (i64, u64)| curve.at(first as u64, step) == Some(number);
        samples.into_iter().all(is_on).then_some(curve)
    }

    fn at(&self, first: u64, step: i64) -> Option<u64> {
        let step = i128::from(step);
        u64::try_from(i128::from(first) + self.by * step + self.more * step * step).ok()
    }
}

impl Growth {
    /// `None` if these are not one plan but for numbers that grow evenly. The user's numbers are the second list's in the last
    /// sample, and the first list's in the others.
    pub(super) fn of(samples: &Samples, [own, others]: [&[Scalar]; 2]) -> Option<Growth> {
        let [first, .., last, _] = samples.map(|(_, plan)| plan);
        if !samples.iter().all(|(_, plan)| has_form_of(plan, first)) {
            return None;
        }
        let nodes = first.graph.nodes().map(|id| {
            let numbers = samples.map(|(step, plan)| (step, numbers_of(plan.graph.node(id)).collect()));
            Some((id, Grows::of(numbers)?))
        });
        let nodes: Vec<(NodeId, Grows)> = nodes.collect::<Option<_>>()?;
        let texts = texts(first, last);
        let mut number = 0;
        let mut kernels = Vec::with_capacity(first.kernels.len());
        for (at, kernel) in first.kernels.iter().enumerate() {
            let mut parts = Vec::with_capacity(kernel.parts.len());
            for of_kernel in 0..kernel.parts.len() {
                let lowered = samples.map(|(step, plan)| (step, &plan.kernels[at].parts[of_kernel].lowered));
                let kernel = Grows::of(lowered.map(|(step, lowered)| (step, numbers(&lowered.kernel))))?;
                let checks = Grows::of(lowered.map(|(step, lowered)| (step, extents(lowered))))?;
                let [(_, first), (_, second), others @ ..] = lowered;
                let is_as_long = |(_, other): &(i64, &Lowered)| elements(other).eq(elements(first));
                let is_long = others.iter().all(is_as_long) && elements(second).eq(elements(first));
                let is_fixed = kernel.0.is_empty() && checks.0.is_empty() && is_long;
                parts.push(PartGrowth { kernel, checks, emission: texts[number], is_fixed });
                number += 1;
            }
            kernels.push(parts);
        }
        let works = (0..first.grouping.groups.len()).map(|group| {
            let of = |count: fn(&Work) -> u64| {
                Curve::of(samples.map(|(step, plan)| (step, count(&plan.grouping.groups[group].work))))
            };
            Some([of(|work| work.bytes_read)?, of(|work| work.bytes_written)?, of(|work| work.far)?])
        });
        Some(Growth {
            nodes: nodes.into_iter().filter(|(_, grows)| !grows.0.is_empty()).collect(),
            copies: copies(&first.graph, &last.graph, own, others)?,
            has_fixed_scalars: own.iter().zip(others).any(|(own, other)| own == other),
            kernels,
            works: works.collect::<Option<_>>()?,
        })
    }

    /// The graph after all passes at a step, with these numbers of the user's.
    pub(super) fn graph(&self, first: &Plan, step: i64, scalars: &[Scalar]) -> Option<Graph> {
        let (mut nodes, mut copies) = (self.nodes.as_slice(), self.copies.as_slice());
        let mut fits = true;
        let graph = Graph::clone(&first.graph).map_nodes(|id, node| {
            if let Some(((of, grows), others)) = nodes.split_first()
                && *of == id
            {
                let mut grow = grows.at(step);
                set_numbers(node, |mut number| {
                    grow(&mut number);
                    fits &= number >= 0;
                    number
                });
                nodes = others;
            }
            if let Some(((of, which), others)) = copies.split_first()
                && *of == id
            {
                match scalars.get(*which) {
                    Some(scalar) => set_scalar(node, *scalar),
                    None => fits = false,
                }
                copies = others;
            }
        });
        fits.then_some(graph)
    }

    /// What plans of this graph share, which is that of the step.
    pub(super) fn shared(&self, first: &Plan, step: i64, graph: &Graph) -> Option<Shared> {
        let mut grouping = first.grouping.clone();
        for (group, [read, written, far]) in grouping.groups.iter_mut().zip(&self.works) {
            let work = &mut group.work;
            work.bytes_read = read.at(work.bytes_read, step)?;
            work.bytes_written = written.at(work.bytes_written, step)?;
            work.far = far.at(work.far, step)?;
        }
        let mut texts: Vec<Option<Arc<Emitted>>> = Vec::new();
        let mut kernels = Vec::with_capacity(first.kernels.len());
        for (kernel, parts) in first.kernels.iter().zip(&self.kernels) {
            if parts.iter().all(|part| part.is_fixed) {
                // Who has its text is fixed too.
                texts.extend(parts.iter().map(|_| None));
                kernels.push(kernel.clone());
                continue;
            }
            let mut members = Vec::with_capacity(parts.len());
            for (part, growth) in kernel.parts.iter().zip(parts) {
                let lowered = growth.lowered(&part.lowered, step, graph)?;
                if tuned::cut(first.settings.tuned, &lowered.kernel).is_some() {
                    return None;
                }
                let emitted = match texts.get(growth.emission) {
                    Some(Some(known)) => known.clone(),
                    _ => emit_cached(&lowered.kernel, kernel.is_low_pressure, first.settings).ok()?,
                };
                if refused(&grouping.groups[part.group], &emitted, first.settings).is_some() {
                    return None;
                }
                texts.push(Some(emitted.clone()));
                let blocks = emitted.launches.first().map_or(0, |(_, launch)| launch.grid()[0]);
                let part = Part { group: part.group, lowered, blocks };
                members.push(PlannedKernel::new(emitted, vec![part], kernel.is_low_pressure));
            }
            match &kernel.code.emitted.batch {
                Some(batch) => kernels.push(Arc::new(joined(members, batch.records).ok()?)),
                None => kernels.extend(members.into_iter().map(Arc::new)),
            }
        }
        Some(Shared::new(graph, grouping, kernels, first.outputs.clone()))
    }
}

impl PartGrowth {
    fn lowered(&self, first: &Lowered, step: i64, graph: &Graph) -> Option<Lowered> {
        let mut lowered = first.clone();
        lowered.kernel.each_number(&mut self.kernel.at(step));
        let nodes = lowered.inputs.iter().chain(&lowered.outputs);
        for (buffer, &id) in lowered.kernel.buffers.iter_mut().zip(nodes) {
            buffer.elements = graph.node(id).shape.elements() as u64;
        }
        if !self.checks.0.is_empty() {
            let mut grow = self.checks.at(step);
            let mut checks = lowered.checks.to_vec();
            for check in &mut checks {
                let mut extent = check.extent as i64;
                grow(&mut extent);
                check.extent = usize::try_from(extent).ok()?;
            }
            lowered.checks = checks.into();
        }
        Some(lowered)
    }
}

fn numbers(kernel: &Kernel) -> Vec<i64> {
    let mut numbers = Vec::new();
    kernel.clone().each_number(&mut |number| numbers.push(*number));
    numbers
}

fn elements(lowered: &Lowered) -> impl Iterator<Item = u64> {
    lowered.kernel.buffers.iter().map(|buffer| buffer.elements)
}

fn extents(lowered: &Lowered) -> Vec<i64> {
    lowered.checks.iter().map(|check| check.extent as i64).collect()
}

/// Of each part of the first plan's kernels, the first one whose kernel is the same, at both ends.
fn texts(first: &Plan, last: &Plan) -> Vec<usize> {
    let mut known: FxHashMap<(Kernel, Kernel, bool), usize> = FxHashMap::default();
    let parts = first.kernels.iter().zip(&last.kernels).flat_map(|(first, last)| {
        let is_low_pressure = first.is_low_pressure;
        first.parts.iter().zip(&last.parts).map(move |(first, last)| {
            let [first, last] = [first, last].map(|part| tuned::normalised(&part.lowered.kernel));
            (first, last, is_low_pressure)
        })
    });
    parts.enumerate().map(|(number, key)| *known.entry(key).or_insert(number)).collect()
}

/// The constants and seeds that are one of the user's numbers; `None` if one follows from these in another way.
fn copies(first: &Graph, last: &Graph, own: &[Scalar], others: &[Scalar]) -> Option<Vec<(NodeId, usize)>> {
    let mut copies = Vec::new();
    for id in first.nodes() {
        let [one, other] = [first, last].map(|graph| scalar(&graph.node(id).op));
        let (Some(one), Some(other)) = (one, other) else { continue };
        let is_it = |(own, others): (&Scalar, &Scalar)| (*own, *others) == (one, other);
        match own.iter().zip(others).position(is_it) {
            Some(which) => copies.push((id, which)),
            None if one == other => {}
            None => return None,
        }
    }
    Some(copies)
}

/// Whether the graph has the inputs and outputs of a recorded one.
pub(super) fn has_ends_of(graph: &Graph, recorded: &Graph) -> bool {
    let mut inputs: Vec<Option<NodeId>> = Vec::new();
    for (slot, id) in input_nodes(recorded) {
        inputs.resize(inputs.len().max(slot + 1), None);
        inputs[slot] = Some(id);
    }
    let fits = |(one, other): (NodeId, NodeId)| {
        let (one, other) = (graph.node(one), recorded.node(other));
        one.shape == other.shape && one.dtype == other.dtype
    };
    let outputs = graph.outputs().iter().copied().zip(recorded.outputs().iter().copied());
    graph.outputs().len() == recorded.outputs().len()
        && outputs.into_iter().all(fits)
        && input_nodes(graph)
            .all(|(slot, id)| inputs.get(slot).copied().flatten().is_some_and(|own| fits((id, own))))
}

/// Whether the same operations share a kernel.
pub(super) fn has_groups_of(plan: &Plan, other: &Plan) -> bool {
    let of = |plan: &Plan| -> Vec<_> {
        let groups = plan.grouping.groups.iter();
        groups.map(|group| (group.nodes.clone(), group.outputs.clone())).collect()
    };
    of(plan) == of(other)
}

/// Whether two plans are one but for sizes and the user's numbers.
fn has_form_of(plan: &Plan, other: &Plan) -> bool {
    let nodes = |graph: &Graph| -> Vec<Node> { graph.nodes().map(|id| form(graph.node(id))).collect() };
    let edges = |graph: &Graph| -> Vec<_> { graph.nodes().map(|id| graph.operands(id)).collect() };
    let same_group = |(a, b): (&Group, &Group)| {
        (&a.nodes, &a.outputs, &a.reads, a.hero) == (&b.nodes, &b.outputs, &b.reads, b.hero)
            && (a.is_low_pressure, a.waits_for_rows) == (b.is_low_pressure, b.waits_for_rows)
    };
    let same_part = |(a, b): (&Part, &Part)| {
        let (own, other) = (&a.lowered, &b.lowered);
        (a.group, &own.inputs, &own.outputs, &own.arguments)
            == (b.group, &other.inputs, &other.outputs, &other.arguments)
            && form_of_kernel(&own.kernel) == form_of_kernel(&other.kernel)
            && own
                .checks
                .iter()
                .map(|check| (check.op, check.axis, check.location))
                .eq(other.checks.iter().map(|check| (check.op, check.axis, check.location)))
    };
    let same_kernel = |(a, b): (&Arc<PlannedKernel>, &Arc<PlannedKernel>)| {
        a.parts.len() == b.parts.len()
            && a.parts.iter().zip(&b.parts).all(same_part)
            && a.is_low_pressure == b.is_low_pressure
            && a.code.emitted.batch.is_some() == b.code.emitted.batch.is_some()
    };
    let (own_groups, other_groups) = (&plan.grouping.groups, &other.grouping.groups);
    plan.graph.outputs() == other.graph.outputs()
        && nodes(&plan.graph) == nodes(&other.graph)
        && edges(&plan.graph) == edges(&other.graph)
        && plan.outputs == other.outputs
        && own_groups.len() == other_groups.len()
        && own_groups.iter().zip(other_groups).all(same_group)
        && plan.kernels.len() == other.kernels.len()
        && plan.kernels.iter().zip(&other.kernels).all(same_kernel)
}

/// A node without its sizes and the user's numbers.
fn form(node: &Node) -> Node {
    let mut node = node.clone();
    set_numbers(&mut node, |_| 0);
    node.location = crate::SourceLocation { file: "", line: 0, column: 0 };
    if let Some(of) = scalar(&node.op).filter(|of| !is_special(*of) || matches!(node.op, Op::Random { .. })) {
        set_scalar(&mut node, Scalar::from_i64(of.dtype(), 0));
    }
    node
}

fn form_of_kernel(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    kernel.each_number(&mut |number| *number = 0);
    kernel.buffers.iter_mut().for_each(|buffer| buffer.elements = 0);
    for argument in &mut kernel.arguments {
        argument.value = Scalar::from_i64(argument.value.dtype(), 0);
    }
    kernel
}

/// Whether a plan that follows is the one that is made, number by number.
pub(super) fn is_same(plan: &Plan, fresh: &Plan) -> bool {
    let kernel = |kernel: &Kernel| {
        let mut kernel = kernel.clone();
        kernel
            .arguments
            .iter_mut()
            .for_each(|argument| argument.value = Scalar::from_i64(argument.value.dtype(), 0));
        kernel
    };
    let same_parts = |(a, b): (&Arc<PlannedKernel>, &Arc<PlannedKernel>)| {
        let same = |(a, b): (&Part, &Part)| {
            kernel(&a.lowered.kernel) == kernel(&b.lowered.kernel)
                && a.blocks == b.blocks
                && a.lowered.checks == b.lowered.checks
        };
        a.parts.iter().zip(&b.parts).all(same)
            && a.code.emitted == b.code.emitted
            && a.overwritable == b.overwritable
    };
    let works = |plan: &Plan| -> Vec<(u64, u64, u64)> {
        let of = |group: &Group| (group.work.bytes_read, group.work.bytes_written, group.work.far);
        plan.grouping.groups.iter().map(of).collect()
    };
    let same_node = |id: NodeId| {
        let (own, other) = (plan.graph.node(id), fresh.graph.node(id));
        (&own.op, &own.shape) == (&other.op, &other.shape)
    };
    has_form_of(plan, fresh)
        && plan.graph.nodes().all(same_node)
        && plan.values == fresh.values
        && plan.kernels.iter().zip(&fresh.kernels).all(same_parts)
        && works(plan) == works(fresh)
        && plan.storage == fresh.storage
}
