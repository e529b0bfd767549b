//! Passes that are tables of local rules: each looks at one node whose operands are already done.

use crate::graph::op::{Constant, ConstantRole, Op, View};
use crate::graph::{Graph, Node, NodeId, Operands};
use crate::{DType, Scalar, Shape};

/// A rule with a name, and what it says in a line.
pub(super) struct Rule {
    #[cfg_attr(not(test), allow(dead_code, reason = "read by tests and by people"))]
    pub(super) name: &'static str,
    #[cfg_attr(not(test), allow(dead_code, reason = "read by tests and by people"))]
    pub(super) statement: &'static str,
    /// What the rule puts in place of the node, or `None` where it does not apply.
    pub(super) apply: fn(&mut Site<'_>) -> Option<Step>,
}

/// What stands in place of a node: of the same shape and dtype.
#[allow(clippy::large_enum_variant, reason = "lives for a moment, on the stack")]
pub(super) enum Step {
    /// A node that is there already.
    Existing(NodeId),
    /// A new node; the rules look at it again before it is added.
    New(Node, Operands),
}

/// A node that is about to be added, and the graph that its operands are in.
pub(super) struct Site<'a> {
    pub(super) graph: &'a Graph,
    pub(super) node: &'a Node,
    pub(super) operands: &'a [NodeId],
    /// Nodes that the rule needs beside its result; they follow the graph's own.
    helpers: Vec<(Node, Operands)>,
}

/// More steps than any chain of rules at one node takes: every rule leaves something simpler. A
/// mistake in a rule must not hang the compiler.
const MAX_STEPS: usize = 32;

/// Applies the first rule of `rules_for` the node's operation that fits, until none does, at every
/// node, operands first. `None`, and no copy made, if no rule fits anywhere.
pub(super) fn rewrite(graph: &Graph, rules_for: fn(&Op) -> &'static [Rule]) -> Option<Graph> {
    let live = graph.live();
    let fits = |&id: &NodeId| {
        let node = graph.node(id);
        let rules = rules_for(&node.op);
        live[id.index()]
            && !rules.is_empty()
            && first(rules, &mut Site::new(graph, node, &graph.operands(id))).is_some()
    };
    let start = graph.nodes().find(fits)?;
    let mut untouched = graph.nodes().take_while(|&id| id < start).filter(|id| live[id.index()]).count();
    Some(graph.rewrite(|result, node, operands| {
        if untouched > 0 {
            untouched -= 1;
            return result.add(node.clone(), operands);
        }
        let Some(mut step) = one_step(result, node, operands, rules_for) else {
            return result.add(node.clone(), operands);
        };
        for _ in 0..MAX_STEPS {
            let Step::New(node, operands) = &step else { break };
            let Some(next) = one_step(result, node, operands, rules_for) else { break };
            step = next;
        }
        match step {
            Step::Existing(id) => id,
            Step::New(node, operands) => result.add(node, &operands),
        }
    }))
}

fn one_step(
    graph: &mut Graph,
    node: &Node,
    operands: &[NodeId],
    rules_for: fn(&Op) -> &'static [Rule],
) -> Option<Step> {
    let mut site = Site::new(graph, node, operands);
    let step = first(rules_for(&node.op), &mut site)?;
    for (helper, operands) in site.helpers {
        graph.add(helper, &operands);
    }
    Some(step)
}

fn first(rules: &[Rule], site: &mut Site<'_>) -> Option<Step> {
    rules.iter().find_map(|rule| (rule.apply)(site))
}

impl<'a> Site<'a> {
    pub(super) fn new(graph: &'a Graph, node: &'a Node, operands: &'a [NodeId]) -> Site<'a> {
        Site { graph, node, operands, helpers: Vec::new() }
    }

    pub(super) fn operand(&self, n: usize) -> &'a Node {
        self.graph.node(self.operands[n])
    }

    /// The operands of operand `n`.
    pub(super) fn inner(&self, n: usize) -> Operands {
        self.graph.operands(self.operands[n])
    }

    /// The only operand of operand `n`, if that is a view like this.
    pub(super) fn through_view(&self, n: usize, is: fn(&View) -> bool) -> Option<NodeId> {
        match &self.operand(n).op {
            Op::View(view) if is(view) => self.inner(n).first().copied(),
            _ => None,
        }
    }

    /// The constant, if operand `n` is one, expanded or not.
    pub(super) fn splat(&self, n: usize) -> Option<Constant> {
        splat(self.graph, self.operands[n])
    }

    /// The constant if operand `n` is one and has this value, bit for bit.
    pub(super) fn splat_of(&self, n: usize, is: fn(Scalar) -> bool) -> Option<Constant> {
        self.splat(n).filter(|constant| is(constant.value))
    }

    /// In place of the node: another operation with its shape and dtype.
    pub(super) fn become_op(&self, op: Op, operands: &[NodeId]) -> Option<Step> {
        let node = Node {
            op,
            shape: self.node.shape.clone(),
            dtype: self.node.dtype,
            origin: self.node.origin,
            location: self.node.location,
        };
        Some(Step::New(node, Operands::from_slice(operands)))
    }

    /// In place of the node: its n-th operand.
    pub(super) fn become_operand(&self, n: usize) -> Option<Step> {
        Some(Step::Existing(self.operands[n]))
    }

    /// In place of the node: a constant, expanded to its shape.
    pub(super) fn become_constant(&mut self, value: Scalar, role: ConstantRole) -> Option<Step> {
        let op = Op::Constant(Constant { value, role });
        if self.node.shape.rank() == 0 {
            return self.become_op(op, &[]);
        }
        let constant = self.add(op, &[], Shape::scalar(), value.dtype());
        self.become_op(Op::View(View::Expand), &[constant])
    }

    /// Adds a constant, expanded to the node's shape, as a helper beside the node.
    pub(super) fn constant(&mut self, value: Scalar, role: ConstantRole) -> NodeId {
        let op = Op::Constant(Constant { value, role });
        let constant = self.add(op, &[], Shape::scalar(), value.dtype());
        match self.node.shape.rank() {
            0 => constant,
            _ => self.add(Op::View(View::Expand), &[constant], self.node.shape.clone(), value.dtype()),
        }
    }

    /// Adds a helper beside the node.
    pub(super) fn add(&mut self, op: Op, operands: &[NodeId], shape: Shape, dtype: DType) -> NodeId {
        let (origin, location) = (self.node.origin, self.node.location);
        let id = NodeId::new(self.graph.bound() + self.helpers.len());
        self.helpers.push((Node { op, shape, dtype, origin, location }, Operands::from_slice(operands)));
        id
    }
}

/// The constant, if the node is one, expanded or not.
pub(super) fn splat(graph: &Graph, id: NodeId) -> Option<Constant> {
    let constant = |id: NodeId| match graph.node(id).op {
        Op::Constant(constant) => Some(constant),
        _ => None,
    };
    match graph.node(id).op {
        Op::View(View::Expand) => graph.operands(id).first().copied().and_then(constant),
        _ => constant(id),
    }
}
