//! What is read, and groups as text: which nodes of the graph above them share a kernel.
//!
//! ```text
//! group %1, %2 stores %2
//! ```

use std::fmt::Write;

use lazuli_codegen::ir::Kernel;
use lazuli_codegen::nest::Nest;
use lazuli_codegen::syntax::Cursor;
use lazuli_codegen::{Language, ParseError};

use crate::compiler::Plan;
pub(super) use crate::compiler::Wanted;
use crate::graph::text::{Locations, text};
use crate::graph::{Graph, NodeId, parse};

/// A text that was read.
pub(super) enum Source {
    /// With groups, if the text has some.
    Graph(Graph, Vec<Wanted>),
    Kernels(Vec<Kernel>),
    Nests(Vec<(Language, Nest)>),
}

impl Source {
    pub(super) fn parse(text: &str) -> Result<Source, ParseError> {
        let mut text = Cursor::new(text);
        // As `LAZULI_DEBUG` prints it: with a line above the graph, or in the line of the kernel.
        if text.eat("[lazuli]") && !text.is_at("kernel") && !text.is_at("%") {
            text.line();
        }
        if text.is_at("kernel") {
            let mut kernels = Vec::new();
            while !text.is_at_end() {
                kernels.push(Kernel::parse(&mut text)?);
            }
            return Ok(Source::Kernels(kernels));
        }
        if text.is_at("nest") {
            let mut nests = Vec::new();
            while !text.is_at_end() {
                nests.push(Nest::parse(&mut text)?);
            }
            return Ok(Source::Nests(nests));
        }
        let (graph, nodes) = parse::graph(&mut text)?;
        let mut groups = Vec::new();
        let list = |text: &mut Cursor<'_>| -> Result<Vec<NodeId>, ParseError> {
            let mut list = Vec::new();
            loop {
                let place = text.place();
                text.expect("%")?;
                let number: u32 = text.number()?;
                let node = nodes.get(&number).copied();
                list.push(node.ok_or_else(|| text.error_at(place, format!("there is no node %{number}")))?);
                if !text.eat(",") {
                    return Ok(list);
                }
            }
        };
        while text.eat("group") {
            let nodes = list(&mut text)?;
            text.expect("stores")?;
            let outputs = list(&mut text)?;
            groups.push(Wanted { nodes, outputs, is_low_pressure: text.eat("low_pressure") });
        }
        text.end()?;
        Ok(Source::Graph(graph, groups))
    }
}

/// A plan's graph and groups, in the order of launching.
pub(super) fn groups(plan: &Plan) -> String {
    let numbers = plan.graph.numbers();
    let list = |nodes: &[NodeId]| {
        let numbers = nodes.iter().filter_map(|id| numbers[id.index()]);
        numbers.map(|number| format!("%{number}")).collect::<Vec<_>>().join(", ")
    };
    let mut out = text(&plan.graph, Locations::Hidden);
    for part in plan.kernels.iter().flat_map(|kernel| &kernel.parts) {
        let group = &plan.grouping.groups[part.group];
        let pressure = if group.is_low_pressure { " low_pressure" } else { "" };
        let name = &part.lowered.kernel.name;
        let _ = writeln!(
            out,
            "group {} stores {}{pressure}  // {name}",
            list(&group.nodes),
            list(&group.outputs)
        );
    }
    out
}
