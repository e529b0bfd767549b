//! Reductions of what is made of two factors, each of which broadcasts along axes that the other has: products that are added up,
//! distances, shortest paths.

use lazuli_codegen::schedule::share;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::cost::{TargetFigures, operation_cost};
use crate::graph::op::{Op, View};
use crate::graph::{Graph, NodeId};
use crate::{BinaryOp, DType, ReduceOp, Shape};

/// How a contraction combines its factors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Combined {
    /// Sums of products.
    Products,
    /// Another cheap expression of an element of each, by a monoid whose state is one number.
    Lifted,
}

/// A contraction of the factors that some nodes read.
pub(super) struct Contracted {
    pub(super) combined: Combined,
    /// From the factors to what is reduced.
    pub(super) nodes: SmallVec<[NodeId; 4]>,
    /// Positions that one factor alone has, which does not vary along the innermost axis, and the other one.
    rows: u64,
    columns: u64,
    terms: u64,
    /// Positions that both have, of an outermost axis at least [`share::SOME_PRODUCTS`].
    products: u64,
}

/// A factor: along which axes it varies, and what it is made of.
struct Factor {
    varies: SmallVec<[bool; 6]>,
    source: NodeId,
}

impl Contracted {
    /// Of what is reduced over some axes; `None` if it is no contraction.
    pub(super) fn of(graph: &Graph, operand: NodeId, op: ReduceOp, axes: &[usize]) -> Option<Contracted> {
        let product = match graph.node(operand).op {
            Op::Cast if graph.node(operand).dtype.is_int() => graph.operands(operand)[0],
            _ => operand,
        };
        let node = graph.node(product);
        let is_of_dtype = matches!(node.dtype, DType::F32 | DType::F64) || node.dtype.is_int();
        let is_product = matches!(node.op, Op::Binary(BinaryOp::Mul)) && is_of_dtype && op == ReduceOp::Sum;
        let of_product = if is_product {
            let factors: Vec<Factor> =
                graph.operands(product).iter().map(|&id| factor(graph, id, &node.shape)).collect();
            let nodes = [product].into_iter().collect();
            Contracted::with(graph, Combined::Products, nodes, &factors, axes)
        } else {
            None
        };
        match of_product {
            Some(of_product) if of_product.rows > 1 => Some(of_product),
            // A factor that varies over rows and columns is itself made of two.
            of_product => Contracted::of_lift(graph, operand, op, axes).or(of_product),
        }
    }

    fn of_lift(graph: &Graph, operand: NodeId, op: ReduceOp, axes: &[usize]) -> Option<Contracted> {
        // Of narrow results a vector of bytes has several times as many as one of numbers.
        if !op.is_plain() || graph.node(operand).dtype.compute().size() < 4 {
            return None;
        }
        let (nodes, factors) = lifted(graph, operand)?;
        let of_lift = Contracted::with(graph, Combined::Lifted, nodes, &factors, axes);
        of_lift.filter(|of_lift| of_lift.rows > 1)
    }

    /// Each axis of the results is one factor's alone, or both have it.
    fn with(
        graph: &Graph,
        combined: Combined,
        nodes: SmallVec<[NodeId; 4]>,
        factors: &[Factor],
        axes: &[usize],
    ) -> Option<Contracted> {
        let shape = &graph.node(*nodes.first()?).shape;
        let is_result = |axis: &usize| shape[*axis] != 1 && !axes.contains(axis);
        let innermost = (0..shape.rank()).rfind(is_result)?;
        let (right, left): (Vec<&Factor>, Vec<&Factor>) =
            factors.iter().partition(|factor| factor.varies[innermost]);
        let is_one = |side: &[&Factor]| side.windows(2).all(|two| two[0].source == two[1].source);
        if left.is_empty() || right.is_empty() || !is_one(&left) || !is_one(&right) {
            return None;
        }
        let (mut rows, mut columns, mut terms, mut products) = (1u64, 1u64, 1u64, 1u64);
        for (axis, &extent) in shape.iter().enumerate().filter(|(_, extent)| **extent != 1) {
            let varies = |side: &[&Factor]| side.iter().any(|factor| factor.varies[axis]);
            let positions = match (axes.contains(&axis), varies(&left), varies(&right)) {
                (true, ..) => &mut terms,
                (false, true, false) => &mut rows,
                (false, false, true) => &mut columns,
                (false, true, true) => &mut products,
                (false, false, false) => return None,
            };
            *positions = positions.saturating_mul(extent as u64);
            if axis == 0 && products > 1 {
                products = products.max(share::SOME_PRODUCTS);
            }
        }
        Some(Contracted { combined, nodes, rows, columns, terms, products })
    }

    /// Whether a factor is one row.
    pub(super) fn is_row(&self) -> bool {
        self.rows == 1
    }

    /// Whether tiles of both factors are worth bringing in: they are used again and again.
    pub(super) fn pays(&self, figures: &TargetFigures, reads_windows: impl FnOnce() -> bool) -> bool {
        let Contracted { combined, rows, columns, terms, products, .. } = *self;
        let (fewer, more) = (rows.min(columns), rows.max(columns));
        match figures.packs {
            true => {
                share::is_packed_batch(products, more, fewer, terms)
                    || combined == Combined::Products && share::is_packed_long(rows, columns, terms)
                    || share::is_packed_image(rows, columns, terms) && reads_windows()
            }
            false => {
                share::is_tiled(more, fewer, terms)
                    || combined == Combined::Products
                        && share::is_streamed(rows, columns, terms)
                        && !reads_windows()
            }
        }
    }
}

/// What is multiplied or combined as a factor of a shape, to which it may broadcast.
fn factor(graph: &Graph, id: NodeId, full: &Shape) -> Factor {
    let mut source = id;
    while let Op::View(_) | Op::Unary(_) | Op::Cast = graph.node(source).op {
        source = graph.operands(source)[0];
    }
    Factor { varies: varies(graph, id, full), source }
}

/// Along which axes of a shape an operand varies that may broadcast to it.
pub(super) fn varies(graph: &Graph, id: NodeId, full: &Shape) -> SmallVec<[bool; 6]> {
    let own = match graph.node(id).op {
        Op::View(View::Expand) => &graph.node(graph.operands(id)[0]).shape,
        _ => full,
    };
    let missing = full.rank() - own.rank();
    let varies = |axis: usize| axis >= missing && own[axis - missing] == full[axis] && full[axis] != 1;
    (0..full.rank()).map(varies).collect()
}

/// The nodes of a cheap expression of what broadcasts, the one that is asked for first, and its factors: not those that
/// are one number for all.
fn lifted(graph: &Graph, operand: NodeId) -> Option<(SmallVec<[NodeId; 4]>, Vec<Factor>)> {
    let full = &graph.node(operand).shape;
    let (mut nodes, mut factors): (SmallVec<[NodeId; 4]>, Vec<Factor>) = (SmallVec::new(), Vec::new());
    let mut seen = FxHashSet::default();
    let (mut pending, mut cost) = (vec![operand], 0.0);
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        match &graph.node(id).op {
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast => {
                cost += operation_cost(&graph.node(id).op);
                if cost > share::MOST_LIFTED {
                    return None;
                }
                nodes.push(id);
                pending.extend(graph.operands(id));
            }
            Op::Constant(_) => {}
            _ => {
                let factor = factor(graph, id, full);
                if factor.varies.contains(&true) {
                    factors.push(factor);
                }
            }
        }
    }
    Some((nodes, factors))
}
