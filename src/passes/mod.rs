//! Graph → graph, one named pass a file. The table [`PASSES`] is the compiler's table of contents
//! between recording and fusion.
//!
//! Every pass keeps every bit of elementwise f32, f64 and integer results, payloads and signs of NaNs
//! aside: what may not be rewritten is listed in [`simplify`], and tested.

mod canonicalise;
mod cse;
mod dead_code;
mod exact;
mod fold;
mod rule;
mod simplify;
mod sliced;
mod steps;

#[cfg(test)]
mod evaluate;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::Result;
use crate::graph::Graph;
use crate::graph::verify::verify;

/// A step from graph to graph.
pub(crate) struct Pass {
    pub(crate) name: &'static str,
    #[cfg_attr(not(test), allow(dead_code, reason = "read by tests and by people"))]
    pub(crate) doc: &'static str,
    repeat: Repeat,
    /// The new graph, or `None` if there was nothing to do.
    run: fn(&Graph) -> Option<Graph>,
}

/// How often a pass runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Repeat {
    Once,
    /// Again and again, in order with its neighbours of the same kind, until none finds anything to do.
    ToFixpoint,
}

/// Every pass, in order.
pub(crate) const PASSES: [Pass; 6] = [
    Pass {
        name: "steps",
        doc: "the step of a recurrence is a graph of its own: it goes through all of these passes",
        repeat: Repeat::Once,
        run: |graph| steps::run(graph, |body| run(body, None)),
    },
    Pass {
        name: "cse",
        doc: "common subexpressions become one node: the same operation on the same operands runs once",
        repeat: Repeat::ToFixpoint,
        run: cse::run,
    },
    Pass {
        name: "canonicalise",
        doc: "one form for what can be written in several: chains of views merge, constants stand second",
        repeat: Repeat::ToFixpoint,
        run: canonicalise::run,
    },
    Pass {
        name: "fold",
        doc: "operations on constants become constants, where the result is exactly defined",
        repeat: Repeat::ToFixpoint,
        run: fold::run,
    },
    Pass {
        name: "simplify",
        doc: "laws that hold for NaN, infinities and signed zeros too: x * 1, -(-x), casts there and back",
        repeat: Repeat::ToFixpoint,
        run: simplify::run,
    },
    Pass {
        name: "dead_code",
        doc: "what no output needs falls away (as it does in every other pass that changes something)",
        repeat: Repeat::Once,
        run: dead_code::run,
    },
];

/// A bound on the rounds of the repeated passes. Two or three are the rule; a graph that would need
/// more is left correct, if not as simple as it could be.
const MAX_ROUNDS: usize = 8;

/// Gives what `f` does, and whether a pass has computed a constant from an argument there: what it then made of the graph may
/// hold for that value alone.
pub(crate) use fold::noting_arguments;

/// Called with a pass's name and its result, whenever a pass has changed the graph.
pub(crate) type Observer<'a> = &'a mut dyn FnMut(&str, &Graph);

/// Runs all passes. In tests and debug builds the graph is verified at the start and after each.
///
/// # Errors
/// [`Error::Internal`](crate::Error::Internal) naming the pass whose result broke a rule.
pub(crate) fn run(graph: &Graph, mut observer: Option<Observer<'_>>) -> Result<Graph> {
    check(graph, "recording")?;
    let mut current = Cow::Borrowed(graph);
    let mut step = |current: &mut Cow<'_, Graph>, pass: &Pass| -> Result<bool> {
        let Some(next) = (pass.run)(current) else { return Ok(false) };
        check(&next, pass.name)?;
        if let Some(observer) = &mut observer {
            observer(pass.name, &next);
        }
        *current = Cow::Owned(next);
        Ok(true)
    };
    for group in PASSES.chunk_by(|a, b| a.repeat == b.repeat) {
        match group[0].repeat {
            Repeat::Once => {
                for pass in group {
                    step(&mut current, pass)?;
                }
            }
            Repeat::ToFixpoint => {
                let mut quiet = 0;
                for pass in group.iter().cycle().take(MAX_ROUNDS * group.len()) {
                    quiet = if step(&mut current, pass)? { 0 } else { quiet + 1 };
                    if quiet == group.len() {
                        break;
                    }
                }
            }
        }
    }
    Ok(current.into_owned())
}

/// Runs passes by their names, in this order, each once. Names that there are not do nothing.
///
/// # Errors
/// As [`run`].
#[cfg(feature = "opt")]
pub(crate) fn run_named(graph: &Graph, names: &[String]) -> Result<Graph> {
    verify(graph, "reading")?;
    let mut current = graph.clone();
    for name in names {
        for pass in PASSES.iter().filter(|pass| pass.name == name) {
            current = (pass.run)(&current).unwrap_or(current);
            verify(&current, pass.name)?;
        }
    }
    Ok(current)
}

fn check(graph: &Graph, stage: &'static str) -> Result<()> {
    if cfg!(any(test, debug_assertions)) { verify(graph, stage) } else { Ok(()) }
}
