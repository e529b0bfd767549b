//! The dataflow graph of one evaluation: what the tensors that were asked for need, as petgraph.
//!
//! Invariants: node indices are in topological order (operands before users), because nodes are only
//! ever added; an edge's weight is the operand's position; [`verify::verify`] holds between all passes.

pub(crate) mod body;
mod dag;
pub(crate) mod domain;
pub(crate) mod dot;
pub(crate) mod hash;
pub(crate) mod infer;
pub(crate) mod maps;
pub(crate) mod numbers;
pub(crate) mod op;
pub(crate) mod parameters;
pub(crate) mod parse;
pub(crate) mod rounded;
pub(crate) mod sizes;
#[cfg(test)]
pub(crate) mod sketch;
pub(crate) mod text;
pub(crate) mod verify;

pub(crate) use dag::{NodeId, Operands};
pub(crate) use op::{Graph, Node, NodeRef};
