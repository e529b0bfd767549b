//! What a kernel with a scatter can do besides.

use super::Analyser;
use crate::fusion::group::WhyNot;
use crate::graph::NodeId;

/// Scatters of one kernel: a block has memory for the results of so many.
const SCATTERS: usize = 4;

impl Analyser<'_> {
    /// Checks that scatters combine by one index, and that what follows from them is computed element by element in
    /// their shape, which all outputs have. What they combine is computed where it is read.
    pub(super) fn follow_scatters(
        &mut self,
        nodes: &[NodeId],
        outputs: &[NodeId],
    ) -> Result<Option<NodeId>, WhyNot> {
        let facts = self.facts;
        let Some(&first) = nodes.iter().find(|&&id| facts.of(id).scatter.is_some()) else { return Ok(None) };
        let (own, origin) = (facts.of(first), |id: NodeId| self.graph.node(id).origin);
        let beside = |other: NodeId| WhyNot::BesideScatter { scatter: origin(first), other: origin(other) };
        let mut count = 0;
        for (number, &id) in nodes.iter().enumerate() {
            let node = facts.of(id);
            count += usize::from(node.scatter.is_some());
            let is_other = node.scatter.is_some() && (node.scatter != own.scatter || count > SCATTERS);
            if is_other || self.rows(id).is_some() || node.scan.is_some() {
                return Err(beside(id));
            }
            let mut follows = node.scatter.is_some();
            for read in facts.reads.reads(id) {
                let Some(state) = self.states.get(self.place[read.node.index()] as usize) else { continue };
                if state.follows_scatter {
                    if !read.aligned || node.elements != own.elements {
                        return Err(WhyNot::Scattered { scatter: origin(first), reader: origin(id) });
                    }
                    follows = true;
                }
            }
            self.states[number].follows_scatter = follows;
        }
        match outputs.iter().find(|&&output| !facts.is_same_domain(output, first)) {
            Some(&output) => Err(beside(output)),
            None => Ok(Some(first)),
        }
    }
}
