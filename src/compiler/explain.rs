//! What a plan does and why, for people to read.

use std::fmt;

use rustc_hash::FxHashMap;

use super::{Plan, PlannedKernel};
use crate::Shape;
use crate::fusion::group::Group;
use crate::fusion::reads::Reads;
use crate::fusion::{self, Facts, Fusion};
use crate::graph::op::Op;
use crate::graph::{Graph, NodeId};

/// The kernels of an expression: what each computes, how many bytes it moves, what fusing saved, and
/// why kernels that follow each other are not one. Its [`Display`](fmt::Display) form is stable.
///
/// ```
/// use lazuli::{DType, Tensor};
/// let x = Tensor::ones([1024, 1024], DType::F32);
/// let explanation = (x.exp() + 1.0).explain()?;
/// assert_eq!(explanation.kernels(), 1);
/// assert_eq!(explanation.bytes_moved(), explanation.least_bytes());
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Explanation {
    kernels: Vec<KernelText>,
    boundaries: Vec<String>,
    fusion: Fusion,
    bytes_moved: u64,
    least_bytes: u64,
    unfused_kernels: usize,
    unfused_bytes: u64,
}

#[derive(Clone, PartialEq, Debug)]
struct KernelText {
    name: String,
    schedule: String,
    operations: String,
    reads: Vec<String>,
    writes: Vec<String>,
    saved: Option<String>,
    recomputed: Option<String>,
}

impl Explanation {
    pub(crate) fn of(plan: &Plan) -> Explanation {
        let graph = &plan.graph;
        let facts = Facts::new(graph, &plan.settings.figures(), &plan.grouping.restraints);
        let singles = facts.singles(graph);
        let groups = &plan.grouping.groups;
        let mut texts = Vec::new();
        for kernel in &plan.kernels {
            texts.push(KernelText::of(plan, kernel));
        }
        let figures = plan.settings.figures();
        let numbered = plan.kernels.iter().enumerate();
        let kernel_of: FxHashMap<usize, usize> = numbered
            .flat_map(|(n, kernel)| kernel.parts.iter().map(move |part| (part.group, n + 1)))
            .collect();
        let number = |group: usize| kernel_of.get(&group).copied().unwrap_or_default();
        let boundaries = fusion::boundaries(graph, &facts, &plan.grouping, &figures)
            .iter()
            .map(|boundary| {
                let (from, to) = (number(boundary.producer), number(boundary.consumer));
                format!("{from} and {to} at {}: {}", value_name(graph, boundary.value), boundary.reason)
            })
            .collect();
        Explanation {
            kernels: texts,
            boundaries,
            fusion: plan.settings.fusion,
            bytes_moved: groups.iter().map(|group| group.work.bytes()).sum(),
            least_bytes: least_bytes(graph, &facts.reads),
            unfused_kernels: singles.len(),
            unfused_bytes: singles.iter().map(|group| group.work.bytes()).sum(),
        }
    }

    /// How many kernels are launched.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_vec(vec![0.0f32; 1000], [10, 100]);
    /// assert_eq!(((&x - x.mean_keepdim(1)) * 2.0).explain()?.kernels(), 1);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn kernels(&self) -> usize {
        self.kernels.len()
    }

    /// Bytes that the kernels read and write, each kernel's buffers counted once.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_vec(vec![0.0f32; 1000], [10, 100]);
    /// let plan = (x.exp() * 2.0).sum(1).explain()?;
    /// assert_eq!(plan.bytes_moved(), 1000 * 4 + 10 * 4); // the exponentials are not stored
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn bytes_moved(&self) -> u64 {
        self.bytes_moved
    }

    /// The least possible: each input that is needed read once, each result written once.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_vec(vec![0.0f32; 1000], [10, 100]);
    /// let plan = x.exp().slice(0, ..5).explain()?;
    /// assert_eq!(plan.least_bytes(), 500 * 4 + 500 * 4); // half of x is not needed
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn least_bytes(&self) -> u64 {
        self.least_bytes
    }

    /// How many kernels there would be without fusion.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_vec(vec![0.0f32; 1000], [10, 100]);
    /// let plan = (x.exp() * 2.0).sum(1).explain()?;
    /// assert_eq!((plan.kernels(), plan.unfused_kernels()), (1, 3));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn unfused_kernels(&self) -> usize {
        self.unfused_kernels
    }

    /// Bytes that kernels would move without fusion.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_vec(vec![0.0f32; 1000], [10, 100]);
    /// let plan = (x.exp() * 2.0).explain()?;
    /// assert_eq!((plan.bytes_moved(), plan.unfused_bytes()), (8000, 16_000));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn unfused_bytes(&self) -> u64 {
        self.unfused_bytes
    }
}

impl KernelText {
    fn of(plan: &Plan, kernel: &PlannedKernel) -> KernelText {
        let graph = &plan.graph;
        let name_of = |id: &NodeId| value_name(graph, *id);
        let groups: Vec<&Group> = kernel.groups(&plan.grouping).collect();
        let operations: Vec<&str> = groups
            .iter()
            .take(1)
            .flat_map(|group| &group.nodes)
            .map(|&id| operation_name(graph, id))
            .collect();
        let operations = summary(&operations);
        let count: usize = groups.iter().map(|group| group.nodes.len()).sum();
        let intermediates: u64 = groups
            .iter()
            .flat_map(|group| group.nodes.iter().filter(|id| !group.outputs.contains(id)))
            .map(|&id| graph.node(id).shape.elements() as u64 * graph.node(id).dtype.size() as u64)
            .sum();
        let saved = (count > 1).then(|| {
            let kernels = if count == 2 { "kernel" } else { "kernels" };
            let launches = format!("{count} operations in one kernel: {} {kernels} not launched", count - 1);
            match intermediates {
                0 => launches,
                _ => format!("{launches}, {} of intermediate results not stored", bytes(intermediates)),
            }
        });
        let recomputed = groups.iter().find_map(|group| group.recomputed);
        let (operations, reads, writes) = match groups.as_slice() {
            [group] => (
                operations,
                group.reads.iter().map(name_of).collect(),
                group.outputs.iter().map(name_of).collect(),
            ),
            _ => {
                let total = |values: usize, of_group: fn(&Group) -> u64| {
                    let moved = groups.iter().map(|group| of_group(group)).sum();
                    vec![format!("{values} values ({})", bytes(moved))]
                };
                let reads = groups.iter().map(|group| group.reads.len()).sum();
                let writes = groups.iter().map(|group| group.outputs.len()).sum();
                (
                    format!("{operations}; × {}", groups.len()),
                    total(reads, |group| group.work.bytes_read),
                    total(writes, |group| group.work.bytes_written),
                )
            }
        };
        KernelText {
            name: kernel.code.emitted.name.clone(),
            schedule: kernel.code.emitted.schedule.to_string(),
            operations,
            reads,
            writes,
            saved,
            recomputed: recomputed.map(|(value, times)| {
                format!("{value}, {times:.1} times per element, instead of storing it")
            }),
        }
    }
}

fn operation_name(graph: &Graph, id: NodeId) -> &'static str {
    let node = graph.node(id);
    if node.origin.is_empty() { node.op.name() } else { node.origin }
}

/// `gelu, mul, add ×3`: runs of one operation are counted.
fn summary(operations: &[&str]) -> String {
    let mut runs: Vec<(&str, usize)> = Vec::new();
    for &operation in operations {
        match runs.last_mut() {
            Some((last, count)) if *last == operation => *count += 1,
            _ => runs.push((operation, 1)),
        }
    }
    let parts: Vec<String> = runs
        .into_iter()
        .map(|(name, count)| if count == 1 { name.to_string() } else { format!("{name} ×{count}") })
        .collect();
    parts.join(", ")
}

/// Each input as far as the outputs need it at all, and each output once.
fn least_bytes(graph: &Graph, reads: &Reads) -> u64 {
    let elements = |id: NodeId| graph.node(id).shape.elements() as f64;
    // How many elements of each node are needed; of what is sliced later, not all are.
    let mut demand = vec![0.0f64; graph.bound()];
    let mut total = 0;
    for id in graph.nodes().rev() {
        let needed = match reads.is_output(id) {
            true => elements(id),
            false => demand[id.index()].min(elements(id)),
        };
        if reads.is_computed(id) && needed > 0.0 {
            for read in reads.reads(id) {
                demand[read.node.index()] += read.elements as f64 * needed / elements(id);
            }
        }
        if reads.is_output(id) || matches!(graph.node(id).op, Op::Input(_)) {
            total += needed.round() as u64 * graph.node(id).dtype.size() as u64;
        }
    }
    total
}

fn value_name(graph: &Graph, id: NodeId) -> String {
    let node = graph.node(id);
    let size = bytes((node.shape.elements() * node.dtype.size()) as u64);
    let what = match node.op {
        Op::Input(slot) => format!("input {slot}"),
        _ => operation_name(graph, id).to_string(),
    };
    let shape: &Shape = &node.shape;
    format!("{what} {} {shape} ({size})", node.dtype)
}

/// A byte count as a reader wants it.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..=9_999 => format!("{count} B"),
        10_000..=9_999_999 => format!("{:.1} kB", count as f64 / 1e3),
        10_000_000..=9_999_999_999 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernels = if self.kernels.len() == 1 { "kernel" } else { "kernels" };
        write!(f, "{} {kernels}", self.kernels.len())?;
        if self.fusion == Fusion::On && self.unfused_kernels != self.kernels.len() {
            write!(f, " instead of {}", self.unfused_kernels)?;
        }
        write!(f, ", {} moved", bytes(self.bytes_moved))?;
        if self.fusion == Fusion::On && bytes(self.unfused_bytes) != bytes(self.bytes_moved) {
            write!(f, " instead of {}", bytes(self.unfused_bytes))?;
        }
        if self.least_bytes > 0 {
            let ratio = self.bytes_moved as f64 / self.least_bytes as f64;
            write!(f, "; the least possible is {} ({ratio:.2}×)", bytes(self.least_bytes))?;
        }
        writeln!(f)?;
        for (number, group) in self.kernels.iter().enumerate() {
            writeln!(f, "\n{}. {}: {}", number + 1, group.name, group.schedule)?;
            writeln!(f, "   computes  {}", group.operations)?;
            for read in &group.reads {
                writeln!(f, "   reads     {read}")?;
            }
            for write in &group.writes {
                writeln!(f, "   writes    {write}")?;
            }
            if let Some(saved) = &group.saved {
                writeln!(f, "   fused     {saved}")?;
            }
            if let Some(recomputed) = &group.recomputed {
                writeln!(f, "   repeats   {recomputed}")?;
            }
        }
        if !self.boundaries.is_empty() {
            writeln!(f, "\napart:")?;
            for boundary in &self.boundaries {
                writeln!(f, "   {boundary}")?;
            }
        }
        Ok(())
    }
}
