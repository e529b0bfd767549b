//! A kernel to be, and why two kernels are not one.

use std::fmt;

use lazuli_codegen::schedule::share::MOST_PRODUCTS;

use super::cost::Work;
use crate::graph::domain::Hero;
use crate::graph::op::Op;
use crate::graph::{Graph, NodeId};
use crate::{BinaryOp, ReduceOp, Shape, lower};

/// Computed nodes of one kernel; beyond it, compilers slow down and registers run out.
pub(crate) const MAX_NODES: usize = 256;

/// Buffers of one kernel: 4 KiB of kernel parameters, less scalars and extents.
pub(crate) const MAX_BUFFERS: usize = 384;

/// Passes of one kernel over its rows.
pub(super) const MAX_PASSES: u32 = 5;

/// Why two kernels are not one.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum WhyNot {
    Off,
    FlowsBack {
        reduction: Name,
        reduced: Shape,
        to: Shape,
    },
    FeedsReduction {
        producer: Name,
        consumer: Name,
        /// Of their results.
        shapes: [Shape; 2],
    },
    DifferentReductions {
        first: Name,
        second: Name,
    },
    /// A kernel that keeps whole rows near has schedules of its own, and nothing that these do not know.
    BesideRows {
        rows: &'static str,
        other: &'static str,
    },
    Gathered {
        producer: &'static str,
        consumer: &'static str,
    },
    DifferentSpaces {
        first: Shape,
        second: Shape,
    },
    /// A scan's running results are known where they are computed.
    OutOfOrder {
        scan: &'static str,
        reader: &'static str,
    },
    /// A kernel goes along one axis.
    BesideScan {
        scan: &'static str,
        other: &'static str,
    },
    /// A scatter's results are known when all of its source has been read.
    Scattered {
        scatter: &'static str,
        reader: &'static str,
    },
    /// A kernel scatters by one index, to results of one shape.
    BesideScatter {
        scatter: &'static str,
        other: &'static str,
    },
    Recomputation {
        value: &'static str,
        times: f64,
        fused: f64,
        apart: f64,
    },
    Unprofitable {
        fused: f64,
        apart: f64,
    },
    Cycle,
    /// One kernel would have some operations at several places of its text, and each costs compile time.
    Repeated {
        operations: f64,
    },
    /// The search is greedy: other merges saved more, and left no way to this one.
    Overtaken {
        fused: f64,
        apart: f64,
    },
    /// Kernels that read the same may be too many for each to be tried with each.
    NotTried,
    /// Kernels without a common value are not tried.
    Unrelated,
    TooLarge {
        nodes: usize,
    },
    /// Kernels of as many steps have one text.
    TooMany(TooMany),
    TooManyPasses,
    TooManyBuffers {
        buffers: usize,
    },
    TooManyProducts,
    TooManyUpdates,
    /// No kernel comes of the two as one.
    NotLowered(lower::Refusal),
    NoSchedule(lazuli_codegen::Refusal),
    /// A C compiler would take too long.
    CompileTime {
        milliseconds: usize,
    },
    /// A thread's registers ran out.
    Spills {
        bytes: u32,
    },
    /// As one kernel they were measured to be slower: in words.
    Tuned(String),
}

/// Operations that come so many times in a program, and the most of a kernel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct TooMany {
    pub(crate) called: &'static str,
    pub(crate) times: u32,
    pub(crate) most: u32,
}

/// A node by the method that recorded it and, where that recorded several reductions, which of them it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Name {
    pub(crate) called: &'static str,
    pub(crate) part: Option<&'static str>,
}

impl Name {
    /// `the maximum of softmax`, `the reduction max`.
    fn as_reduction(&self) -> String {
        if self.part.is_some() { self.to_string() } else { format!("the reduction {self}") }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            Some(part) => write!(f, "the {part} of {}", self.called),
            None => f.write_str(self.called),
        }
    }
}

/// Seconds as a reader wants them.
fn microseconds(seconds: f64) -> String {
    format!("{:.1} µs", seconds * 1e6)
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyNot::Off => write!(f, "fusion is off"),
            WhyNot::FlowsBack { reduction, reduced, to } => {
                write!(
                    f,
                    "{reduction} {reduced} is needed at every element of {to}: the whole reduction comes first"
                )
            }
            WhyNot::FeedsReduction { producer, consumer, shapes: [first, second] } => {
                let (producer, consumer) = (producer.as_reduction(), consumer.as_reduction());
                match producer == consumer {
                    true => write!(f, "{producer} {first} must end before {consumer} {second} can begin"),
                    false => write!(f, "{producer} must end before {consumer} can begin"),
                }
            }
            WhyNot::BesideRows { rows, other } => {
                write!(f, "{rows} is one kernel that keeps its rows near, and {other} does not go with their schedule")
            }
            WhyNot::DifferentReductions { first, second } => {
                write!(f, "{first} and {second} reduce different axes")
            }
            WhyNot::Gathered { producer, consumer } => {
                write!(f, "{consumer} reads {producer} at computed positions: all of it must be there first")
            }
            WhyNot::DifferentSpaces { first, second } => {
                write!(f, "they go over different iteration spaces: {first} and {second}")
            }
            WhyNot::OutOfOrder { scan, reader } => {
                write!(f, "{reader} needs the results of {scan} at other positions than they come up")
            }
            WhyNot::BesideScan { scan, other } => {
                write!(f, "{scan} goes along its axis in order, and {other} does not")
            }
            WhyNot::Scattered { scatter, reader } => {
                write!(f, "{reader} needs results of {scatter} elsewhere than at its own place")
            }
            WhyNot::BesideScatter { scatter, other } => {
                write!(f, "{scatter} goes with what is elementwise where its results are, and {other} is not")
            }
            WhyNot::Recomputation { value, times, fused, apart } => write!(
                f,
                "{value} would be computed {times:.1} times per element: {} fused, {} apart",
                microseconds(*fused),
                microseconds(*apart)
            ),
            WhyNot::Unprofitable { fused, apart } => {
                write!(f, "nothing gained: {} fused, {} apart", microseconds(*fused), microseconds(*apart))
            }
            WhyNot::Repeated { operations } => write!(
                f,
                "one kernel could do it, but its text would repeat {operations:.0} operations, whose compile time counts more than \
                 it would save"
            ),
            WhyNot::Overtaken { fused, apart } => write!(
                f,
                "one kernel could do it in {}, {} apart, but the search, which takes the best merge first, did not come to it",
                microseconds(*fused),
                microseconds(*apart)
            ),
            WhyNot::NotTried => {
                write!(f, "one could do, but among the many that share values these two were not tried")
            }
            WhyNot::Unrelated => {
                write!(f, "they share no value, and only kernels of one text are launched together then")
            }
            WhyNot::Cycle => write!(f, "a kernel between them needs the one and is needed by the other"),
            WhyNot::TooLarge { nodes } => {
                write!(f, "{nodes} operations are more than the {MAX_NODES} of a kernel")
            }
            WhyNot::TooMany(TooMany { called, times, most }) => write!(
                f,
                "{called} comes {times} times in the program, and up to {most} times in a kernel, so that many kernels have one text"
            ),
            WhyNot::TooManyPasses => {
                write!(f, "it would go over its rows more than {MAX_PASSES} times")
            }
            WhyNot::TooManyBuffers { buffers } => {
                write!(f, "{buffers} buffers are more than the {MAX_BUFFERS} of a kernel")
            }
            WhyNot::TooManyUpdates => f.write_str(
                "parts of one tensor are replaced, each by what is computed from the one before: one kernel would compute all of \
                 them at each position",
            ),
            WhyNot::TooManyProducts => {
                write!(f, "together they sum more than {MOST_PRODUCTS} products, each in memory of its own")
            }
            WhyNot::NotLowered(reason) => write!(f, "no kernel: {reason}"),
            WhyNot::NoSchedule(reason) => write!(f, "no schedule: {reason}"),
            WhyNot::CompileTime { milliseconds } => {
                write!(f, "a C compiler would take about {milliseconds} ms over its text")
            }
            WhyNot::Tuned(measured) => f.write_str(measured),
            WhyNot::Spills { bytes } => write!(f, "{bytes} bytes of a thread's registers spill"),
        }
    }
}

/// A kernel to be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    /// Computed nodes, ascending.
    pub(crate) nodes: Vec<NodeId>,
    /// Those of them that are stored, ascending.
    pub(crate) outputs: Vec<NodeId>,
    /// What it reads from memory, in the order of first use.
    pub(crate) reads: Vec<NodeId>,
    pub(crate) hero: Hero,
    pub(crate) work: Work,
    /// The costliest recomputation.
    pub(crate) recomputed: Option<Recomputed>,
    /// Whether its threads compute as little at once as they can, since registers ran out otherwise.
    pub(crate) is_low_pressure: bool,
    /// Whether it is a contraction whose rows are reduced first. Only a schedule of its own keeps the rows: any other one
    /// would compute them anew for each result.
    pub(crate) waits_for_rows: bool,
    /// Operations as its text has them, one for each place where one is computed.
    pub(crate) texts: f64,
}

impl Group {
    /// Multiplications and additions of its sums of products of what broadcasts: those of matrices and windows.
    pub(crate) fn flops(&self, graph: &Graph) -> u64 {
        let elements = |mut id: NodeId| {
            while matches!(graph.node(id).op, Op::View(_)) {
                id = graph.operands(id)[0];
            }
            graph.node(id).shape.elements()
        };
        let of_sum = |&id: &NodeId| {
            let Op::Reduce { op: ReduceOp::Sum, .. } = graph.node(id).op else { return 0 };
            let product = graph.operands(id)[0];
            let all = elements(product);
            let is_contraction = matches!(graph.node(product).op, Op::Binary(BinaryOp::Mul))
                && graph.operands(product).iter().all(|&factor| elements(factor) < all);
            if is_contraction { 2 * all as u64 } else { 0 }
        };
        self.nodes.iter().map(of_sum).sum()
    }
}

/// A value that is computed more than once an element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Recomputed {
    pub(crate) value: &'static str,
    /// How often per element.
    pub(crate) times: f64,
    /// Operations, as if all were in vector lanes, of all times but the first.
    pub(crate) operations: f64,
}
