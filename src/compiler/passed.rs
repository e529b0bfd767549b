//! Graphs as they are planned: after all passes.

use super::plan::PlacedNumbers;
use super::settings::Settings;
use crate::debug::{self, Level};
use crate::graph::Graph;
use crate::graph::parameters::Parameters;
use crate::graph::text::{Locations, text};
use crate::{Result, passes};

/// A recorded graph after all passes, its parameters, and which of these are numbers, unless a pass has computed with one.
pub(super) fn passed(
    recorded: &Graph,
    settings: Settings,
) -> Result<(Graph, Parameters, Option<PlacedNumbers>)> {
    let (graph, computes) = passes::noting_arguments(|| through_passes(recorded));
    let graph = graph?;
    let parameters = Parameters::of(&graph, settings.language);
    let numbers = (!computes).then(|| parameters.numbers(&graph));
    Ok((graph, parameters, numbers))
}

pub(crate) fn through_passes(graph: &Graph) -> Result<Graph> {
    Ok(match debug::enabled(Level::Ir) {
        false => passes::run(graph, None)?,
        true => {
            debug::print(Level::Ir, || format!("graph as recorded:\n{}", text(graph, Locations::Shown)));
            let mut observer = |pass: &str, graph: &Graph| {
                debug::print(Level::Ir, || format!("after {pass}:\n{}", text(graph, Locations::Shown)));
            };
            passes::run(graph, Some(&mut observer))?
        }
    })
}
