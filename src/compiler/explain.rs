//! What a plan does and why, for people to read.

use std::fmt;

use indexmap::IndexMap;
use petgraph::unionfind::UnionFind;
use rustc_hash::{FxHashMap, FxHashSet};

use super::plan::{Plan, PlannedKernel};
use crate::fusion::group::{Group, Recomputed, WhyNot};
use crate::fusion::reads::Reads;
use crate::fusion::{self, Facts, Fusion};
use crate::graph::op::Op;
use crate::graph::{Graph, NodeId};
use crate::{Shape, tuned};

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
    launches: usize,
    fusion: Fusion,
    bytes_moved: u64,
    least_bytes: u64,
    unfused_kernels: usize,
    unfused_bytes: u64,
    /// Why nothing is tuned, though there is a tuning.
    untuned: Option<String>,
    /// What is joined by copies, or made by a library, before.
    before: Vec<String>,
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
    /// What was measured.
    tuned: Option<String>,
}

impl Explanation {
    pub(crate) fn of(plan: &Plan) -> Explanation {
        let graph = &plan.graph;
        let facts = Facts::new(graph, &plan.settings.figures(), plan.settings.undone);
        let singles = fusion::singles(graph, &facts);
        let groups = &plan.grouping.groups;
        let mut texts = Vec::new();
        for kernel in &plan.kernels {
            texts.push(KernelText::of(plan, &facts, kernel));
        }
        let numbered = plan.kernels.iter().enumerate();
        let kernel_of: FxHashMap<usize, usize> =
            numbered.flat_map(|(n, kernel)| kernel.parts.iter().map(move |part| (part.group, n))).collect();
        let number = |group: usize| kernel_of.get(&group).copied().unwrap_or_default();
        let boundaries = fusion::boundaries(graph, &facts, &plan.grouping).into_iter();
        let boundaries: Vec<Boundary> = boundaries
            .map(|boundary| Boundary {
                kernels: (number(boundary.producer), number(boundary.consumer)),
                values: boundary.values.iter().map(|&value| value_name(graph, value)).collect(),
                reason: boundary.reason,
            })
            // Parts of one launch are as good as one kernel.
            .filter(|Boundary { kernels: (from, to), .. }| from != to)
            .collect();
        Explanation {
            boundaries: lines(boundaries, texts.len(), plan.settings.fusion),
            kernels: texts,
            launches: plan.kernels.iter().map(|kernel| kernel.launches()).sum(),
            fusion: plan.settings.fusion,
            bytes_moved: groups.iter().map(|group| group.work.bytes()).sum(),
            least_bytes: least_bytes(graph, &facts.reads),
            unfused_kernels: singles.len(),
            unfused_bytes: singles.iter().map(|group| group.work.bytes()).sum(),
            untuned: plan.settings.tuned.and_then(tuned::section).and_then(|section| section.remark.clone()),
            before: Vec::new(),
        }
    }

    /// The same, with what is joined by copies, or made by a library, before.
    pub(crate) fn after(self, before: Vec<String>) -> Explanation {
        Explanation { before, ..self }
    }

    /// How many kernels there are. Each is launched once, but for long reductions and scans that are split, which take
    /// two launches on some targets, and for kernels of empty results, which take none: see [`Explanation::launches`].
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

    /// How often something is launched: what [`stats`](crate::stats()) counts when the plan is carried out.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::ones([10, 100], DType::F32);
    /// let plan = (&x * 2.0).explain()?;
    /// assert_eq!((plan.kernels(), plan.launches()), (1, 1));
    /// let empty = (x.slice(0, ..0) * 2.0).explain()?;
    /// assert_eq!((empty.kernels(), empty.launches()), (1, 0));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn launches(&self) -> usize {
        self.launches
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
    fn of(plan: &Plan, facts: &Facts, kernel: &PlannedKernel) -> KernelText {
        let graph = &plan.graph;
        let name_of = |id: &NodeId| value_name(graph, *id);
        let groups: Vec<&Group> = kernel.groups(&plan.grouping).collect();
        // The terms of a sum of products are nobody's result: the two are one operation.
        let own: Vec<Vec<NodeId>> = groups.iter().map(|group| without_terms(graph, facts, group)).collect();
        let operations: Vec<(&str, &str)> = own
            .iter()
            .take(1)
            .flatten()
            .map(|&id| (graph.node(id).called(), word(graph, facts, id)))
            .collect();
        let operations = summary(&operations);
        let count: usize = own.iter().map(Vec::len).sum();
        let intermediates: u64 = (groups.iter().zip(&own))
            .flat_map(|(group, own)| own.iter().filter(|id| !group.outputs.contains(id)))
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
            tuned: tuned_remark(plan, kernel),
            operations,
            reads,
            writes,
            saved,
            recomputed: recomputed.and_then(|Recomputed { value, times, operations }| {
                let all: f64 = groups.iter().map(|group| group.work.operations).sum();
                let share = (100.0 * operations / all.max(1.0)).round();
                // Less tells a reader nothing.
                (share >= 1.0).then(|| {
                    let times = rounded(times);
                    format!("{value}, {times} times per element, instead of storing it: {share}% of the arithmetic")
                })
            }),
        }
    }
}

/// What was measured of a kernel that runs alone.
fn tuned_remark(plan: &Plan, kernel: &PlannedKernel) -> Option<String> {
    let [part] = kernel.parts.as_slice() else { return None };
    let section = tuned::section(plan.settings.tuned?)?;
    let measured = section.of(&tuned::normalised(&part.lowered.kernel))?;
    Some(measured.remark(kernel.code.emitted.schedule))
}

/// Multiples of the least bytes that tell a reader something.
const MOST_TIMES: f64 = 100.0;

/// Values of one boundary that are named.
const NAMED: usize = 2;

/// Values between two kernels, by their places, or which both read, and why they are apart.
struct Boundary {
    kernels: (usize, usize),
    values: Vec<String>,
    reason: WhyNot,
}

/// A line for each two kernels and reason, and for each kernel that shares nothing with any before.
fn lines(mut boundaries: Vec<Boundary>, kernels: usize, fusion: Fusion) -> Vec<String> {
    if fusion == Fusion::Off {
        return boundaries.into_iter().take(1).map(|boundary| format!("all: {}", boundary.reason)).collect();
    }
    boundaries.extend(unrelated(&boundaries, kernels));
    let mut together: IndexMap<((usize, usize), String), Vec<String>> = IndexMap::new();
    for Boundary { kernels, values, reason } in boundaries {
        let named = together.entry((kernels, reason.to_string())).or_default();
        for value in values {
            if !named.contains(&value) {
                named.push(value);
            }
        }
    }
    // A loop of a hundred steps has the same to say a hundred times.
    let mut alike: IndexMap<String, Vec<(usize, usize)>> = IndexMap::new();
    for ((kernels, reason), values) in together {
        let named = values[..values.len().min(NAMED)].join(", ");
        let at = match values.len().saturating_sub(NAMED) {
            0 if values.is_empty() => String::new(),
            0 => format!(" at {named}"),
            more => format!(" at {named} and {more} more"),
        };
        alike.entry(format!("{at}: {reason}")).or_default().push(kernels);
    }
    let pair = |(from, to): &(usize, usize)| format!("{} and {}", from + 1, to + 1);
    let lines = alike.iter().flat_map(|(why, pairs)| match pairs.as_slice() {
        [first, rest @ ..] if pairs.len() >= MANY => {
            vec![format!("{}, and {} other pairs likewise,{why}", pair(first), rest.len())]
        }
        _ => pairs.iter().map(|own| format!("{}{why}", pair(own))).collect(),
    });
    lines.collect()
}

/// From so many times on, the same kernels and the same reasons are listed once.
const MANY: usize = 4;
/// The longest loop whose steps are found to be alike, in kernels.
const LONGEST_STEP: usize = 12;

/// How long a step is that is repeated from the first of these kernels on, and how often, if that is many times.
fn steps(kernels: &[KernelText]) -> Option<(usize, usize)> {
    (1..=LONGEST_STEP.min(kernels.len() / MANY)).find_map(|length| {
        let step = &kernels[..length];
        let times = kernels.chunks_exact(length).take_while(|other| *other == step).count();
        (times >= MANY).then_some((length, times))
    })
}

/// The boundaries between kernels that neither share a value nor are joined by others.
fn unrelated(boundaries: &[Boundary], kernels: usize) -> Vec<Boundary> {
    let mut related = UnionFind::new(kernels);
    for &Boundary { kernels: (from, to), .. } in boundaries {
        related.union(from, to);
    }
    let mut seen: FxHashSet<usize> = FxHashSet::default();
    let labels = related.into_labeling();
    let first: Vec<usize> = (0..kernels).filter(|&kernel| seen.insert(labels[kernel])).collect();
    let boundary = |pair: &[usize]| Boundary {
        kernels: (pair[0], pair[1]),
        values: Vec::new(),
        reason: WhyNot::Unrelated,
    };
    first.windows(2).map(boundary).collect()
}

/// `7.9`, `1536`.
fn rounded(times: f64) -> String {
    if times < 100.0 { format!("{times:.1}") } else { format!("{times:.0}") }
}

/// The nodes of a group, without those that are the terms of a sum in it.
fn without_terms(graph: &Graph, facts: &Facts, group: &Group) -> Vec<NodeId> {
    let terms: FxHashSet<NodeId> = group.nodes.iter().filter_map(|&id| facts.contracted(graph, id)).collect();
    group.nodes.iter().copied().filter(|id| !terms.contains(id)).collect()
}

/// What a node does, in a word.
fn word(graph: &Graph, facts: &Facts, id: NodeId) -> &'static str {
    fusion::part(graph, facts, id).unwrap_or(graph.node(id).op.name())
}

/// The longest list of what one method does.
const MOST_STEPS: usize = 16;

/// `gelu (mul ×2, erf, add, mul), add ×3`: runs of one method are told as what it does, unless that is always the same or long.
fn summary(operations: &[(&str, &str)]) -> String {
    let of_method = |run: &[(&str, &str)]| {
        let steps: Vec<&[(&str, &str)]> = run.chunk_by(|a, b| a.1 == b.1).collect();
        let many = |name: &str, count: usize| match count {
            1 => name.to_owned(),
            _ => format!("{name} ×{count}"),
        };
        match steps.len() {
            1 | MOST_STEPS.. => many(run[0].0, run.len()),
            _ => {
                let steps = steps.iter().map(|step| many(step[0].1, step.len()));
                format!("{} ({})", run[0].0, steps.collect::<Vec<String>>().join(", "))
            }
        }
    };
    operations.chunk_by(|a, b| a.0 == b.0).map(of_method).collect::<Vec<String>>().join(", ")
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
        _ => node.called().to_string(),
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

impl fmt::Display for KernelText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.name, self.schedule)?;
        writeln!(f, "   computes  {}", self.operations)?;
        let many = |kind: &'static str, values: &[String]| {
            values.iter().map(|value| format!("   {kind:<9} {value}\n")).collect::<String>()
        };
        write!(f, "{}{}", many("reads", &self.reads), many("writes", &self.writes))?;
        let remarks = [("fused", &self.saved), ("repeats", &self.recomputed), ("tuned", &self.tuned)];
        for (kind, remark) in remarks {
            if let Some(remark) = remark {
                writeln!(f, "   {kind:<9} {remark}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.before.is_empty() {
            writeln!(f, "made before:")?;
            for made in &self.before {
                writeln!(f, "   {made}")?;
            }
            writeln!(f)?;
        }
        if self.kernels.is_empty() {
            let when = if self.before.is_empty() { "" } else { " then" };
            return writeln!(f, "nothing to compute: the values are there{when}");
        }
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
            write!(f, "; the least possible is {}", bytes(self.least_bytes))?;
            // Beside a single number, everything is a multitude.
            if ratio < MOST_TIMES {
                write!(f, " ({ratio:.2}×)")?;
            }
        }
        writeln!(f)?;
        let mut number = 0;
        while number < self.kernels.len() {
            let repeated = steps(&self.kernels[number..]);
            let (length, times) = repeated.unwrap_or((1, 1));
            for own in number..number + length {
                write!(f, "\n{}. {}", own + 1, self.kernels[own])?;
            }
            let (first, next, end) = (number + 1, number + length, number + length * times);
            match (length, times) {
                (_, 1) => {}
                (1, _) => {
                    writeln!(f, "\n{}.–{end}. the same as {first}., {} times more", next + 1, times - 1)?
                }
                _ => {
                    writeln!(
                        f,
                        "\n{}.–{end}. the same as {first}.–{next}., {} times more",
                        next + 1,
                        times - 1
                    )?;
                }
            }
            number = end;
        }
        if !self.boundaries.is_empty() {
            writeln!(f, "\napart:")?;
            for boundary in &self.boundaries {
                writeln!(f, "   {boundary}")?;
            }
        }
        if let Some(untuned) = &self.untuned {
            writeln!(f, "\nnot tuned: {untuned}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{DType, ScanOrder, Tensor};

    /// As many lines for a long loop as for a short one.
    #[test]
    fn steps_that_are_alike_are_listed_once() {
        let text = |steps: usize| {
            let (x, w) = (Tensor::zeros([steps, 4, 8], DType::F32), Tensor::zeros([8, 8], DType::F32));
            crate::eval([&x, &w]).unwrap();
            let begun = Tensor::zeros([4, 8], DType::F32);
            let ([last], []) = crate::scan([&x], 0, ScanOrder::new(), [begun], |[h], [x]| {
                ([(x + h.matmul(&w)).cumsum(1).sort(1, false).0], [])
            });
            last.explain().unwrap().to_string()
        };
        let (short, long) = (text(12), text(36));
        assert!(long.contains("the same as") && long.contains(" other pairs likewise, at "), "{long}");
        assert_eq!(short.lines().count(), long.lines().count(), "{short}\n{long}");
    }
}
