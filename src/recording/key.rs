//! The key of what some tensors need, without its graph.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::build::{Inputs, Recording, expansion, node_of, patiently, without_values};
use super::loan::Loan;
use super::numbers::Numbers;
use super::tensor::reduced_shape;
use super::{Past, Recipe, Sources, State, Tensor, TensorNode};
use crate::graph::NodeRef;
use crate::graph::hash::{KeyOfNodes, Keys};
use crate::graph::op::{Constant, Op, View};
use crate::runtime::buffer::Buffer;
use crate::{Error, Result, Shape};

/// The keys of the graph that [`build`](super::build::build) would give now, for a fraction of the time: each tensor
/// is locked once. Notes that this evaluation computes all of it.
///
/// # Errors
/// As [`build`](super::build::build).
pub(crate) fn build_key(outputs: &[Tensor], evaluation: u64) -> Result<Recording<Keys>> {
    patiently(|| {
        let mut visit = Visit::new(outputs.len(), evaluation);
        match visit.outputs(outputs) {
            Ok(()) => Ok(Ok(visit.finish())),
            Err(End::Error(error)) => Err(error),
            Err(End::Lent(loan)) => Ok(Err(loan)),
        }
    })
}

/// Why a visit ends early.
enum End {
    Error(Error),
    Lent(Arc<Loan>),
}

/// What is to be visited.
enum Next {
    Tensor(Tensor),
    /// What the user reads broadcast to its shape.
    Expanded {
        source: Tensor,
        user: Tensor,
    },
    /// A number, after the tensor that stands before it.
    Number {
        number: Constant,
        user: Tensor,
    },
}

/// A visit of tensors, each before its sources.
struct Visit {
    key: KeyOfNodes,
    numbers: Numbers,
    pending: SmallVec<[Next; 4]>,
    inputs: Inputs,
    donated: SmallVec<[bool; 8]>,
    generation: u32,
    evaluation: u64,
    again: Vec<*const TensorNode>,
}

impl Visit {
    #[inline(always)]
    fn new(outputs: usize, evaluation: u64) -> Visit {
        let (inputs, donated, again) = (Inputs::new(), SmallVec::new(), Vec::new());
        let pending = SmallVec::new();
        Visit {
            key: KeyOfNodes::new(outputs),
            numbers: Numbers::new(),
            pending,
            inputs,
            donated,
            generation: 0,
            evaluation,
            again,
        }
    }

    fn outputs(&mut self, outputs: &[Tensor]) -> Result<(), End> {
        for output in outputs {
            self.tensor(output.clone())?;
            while let Some(next) = self.pending.pop() {
                match next {
                    Next::Tensor(tensor) => self.tensor(tensor)?,
                    Next::Expanded { source, user } => {
                        self.key.node(expansion(&user.node, source.node.dtype), 1);
                        self.tensor(source)?;
                    }
                    Next::Number { number, user } => {
                        self.number(&user.node, number);
                    }
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Recording<Keys> {
        let Visit { key, inputs, donated, generation, again, .. } = self;
        Recording { graph: key.finish(), inputs, donated, generation, again }
    }

    fn tensor(&mut self, tensor: Tensor) -> Result<(), End> {
        if let Some(number) = self.numbers.of(&tensor) {
            self.key.again(number);
            return Ok(());
        }
        let node = &*tensor.node;
        let state = node.state();
        let first = self.pending.len();
        let mut after = None;
        match &*state {
            State::Invalid(error) => return Err(End::Error(error.clone())),
            State::Lent(loan) => return Err(End::Lent(loan.clone())),
            State::Evaluated(buffer, past) => {
                self.generation = self.generation.max(Past::generation(past.as_deref()));
                let is_donated = node.is_donated.load(Ordering::Relaxed);
                self.input(&tensor, Some(buffer.clone()), is_donated);
            }
            State::Recorded(recipe, sources) if recipe.is_external(sources) => {
                self.input(&tensor, None, false)
            }
            State::Recorded(Recipe::Op(op), sources) => {
                self.computed(node);
                self.operation(&tensor, op, sources);
            }
            State::Recorded(Recipe::WithNumber { op, number, is_first }, sources) => {
                self.computed(node);
                let own = self.key.node(node_of(node, &Op::Binary(*op)), sources.len() + 1);
                self.numbers.note(&tensor, own);
                if *is_first {
                    self.number(node, *number);
                } else {
                    after = Some(*number);
                }
                self.pending.extend(sources.iter().rev().cloned().map(Next::Tensor));
            }
            State::Recorded(Recipe::Filled(constant), _) => {
                let own = self.number(node, *constant);
                self.numbers.note(&tensor, own);
            }
            State::Recorded(recipe @ (Recipe::StepValue | Recipe::CallInput | Recipe::Placeholder), _) => {
                return Err(End::Error(without_values(node, recipe)));
            }
            // It is its source: it has no number of its own.
            State::Recorded(
                Recipe::Transfer
                | Recipe::Derived(_)
                | Recipe::Join { .. }
                | Recipe::Total
                | Recipe::Routine { .. },
                sources,
            ) => match sources.first() {
                Some(source) => self.pending.push(Next::Tensor(source.clone())),
                None => {
                    return Err(End::Error(Error::internal("graph building", "a transfer of nothing")));
                }
            },
        }
        drop(state);
        if let Some(number) = after {
            self.pending.insert(first, Next::Number { number, user: tensor });
        }
        Ok(())
    }

    fn input(&mut self, tensor: &Tensor, buffer: Option<Buffer>, is_donated: bool) {
        let own = self.key.node(node_of(&tensor.node, &Op::Input(self.inputs.len())), 0);
        self.numbers.note(tensor, own);
        self.inputs.push(buffer);
        self.donated.push(is_donated);
    }

    fn computed(&mut self, node: &TensorNode) {
        match node.computed_in.load(Ordering::Relaxed) {
            0 => node.computed_in.store(self.evaluation, Ordering::Relaxed),
            first if first != self.evaluation => self.again.push(node),
            _ => {}
        }
    }

    /// An operation with the views that it was recorded without.
    fn operation(&mut self, tensor: &Tensor, op: &Op, sources: &Sources) {
        let node = &*tensor.node;
        let own = node_of(node, op);
        let number =
            match sources.first().and_then(|source| reduced_shape(op, &source.node.shape, &node.shape)) {
                Some(shape) => {
                    let number = self.key.node(NodeRef { op: &Op::View(View::Reshape), ..own }, 1);
                    self.key.node(NodeRef { shape: &shape, ..own }, sources.len());
                    number
                }
                None => self.key.node(own, sources.len()),
            };
        self.numbers.note(tensor, number);
        let is_elementwise = op.is_elementwise();
        for source in sources.iter().rev() {
            let source = source.clone();
            self.pending.push(match is_elementwise && source.node.shape != node.shape {
                true => Next::Expanded { source, user: tensor.clone() },
                false => Next::Tensor(source),
            });
        }
    }

    /// A number at every position of the tensor.
    fn number(&mut self, tensor: &TensorNode, number: Constant) -> u32 {
        let (shape, op, dtype) = (Shape::scalar(), Op::Constant(number), number.value.dtype());
        let expanded = (tensor.shape.rank() > 0).then(|| self.key.node(expansion(tensor, dtype), 1));
        let own = self.key.node(NodeRef { shape: &shape, dtype, ..node_of(tensor, &op) }, 0);
        expanded.unwrap_or(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::hash::{self, StructuralKey};
    use crate::recording::build::build;
    use crate::{DType, Device};

    /// The key, with how many inputs there are.
    fn key(outputs: &[Tensor]) -> (Keys, usize) {
        let recording = build_key(outputs, 1).unwrap();
        assert_eq!(recording.inputs.len(), recording.donated.len());
        (recording.graph, recording.inputs.len())
    }

    /// What is recorded with views that the graph has, with numbers on both sides, shared, and from elsewhere.
    fn expressions() -> Vec<Vec<Tensor>> {
        let (x, y) =
            (Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]), Tensor::from_slice(&[1.0f32, 2.0], [2, 1]));
        let shared = 1.0 - x.exp() * 2.0;
        let ones = Tensor::ones([2, 3], DType::F32);
        let scalar = Tensor::from_slice(&[1.0f32], []);
        vec![
            vec![x.clone()],
            vec![&x + &y],
            vec![&y + &x],
            vec![&shared * &shared + &x],
            vec![&shared * (2.0 - &y), shared.clone(), shared.clone()],
            vec![2.0 - &x.exp(), &x - 2.0, 2 / (&x / 2)],
            vec![(&x + &y).softmax(1), (&x * &y).layer_norm([3], None, None, 1e-5)],
            vec![ones.to(&Device::cpu()) + &x, ones.sum(0) * &ones],
            vec![&scalar * 2.0 + &scalar, scalar.exp() + &x],
            vec![x.gelu() + x.clamp(0.0, 1.0), x.silu().le(0.5).where_(&x, 0.0)],
            vec![(&y + 1.0).sum(0).reshape([1, 1]) * &x, x.flip(0).cumsum(0)],
            vec![Tensor::from_slice(&[1i32, 2], [2]) * 0.5 + Tensor::full([2], 3.0, DType::F32)],
        ]
    }

    #[test]
    fn keys_are_those_of_graphs() {
        let mut keys = Vec::new();
        for outputs in expressions() {
            let recording = build(&outputs).unwrap();
            let own = key(&outputs);
            assert_eq!(own, (hash::keys(&recording.graph), recording.inputs.len()));
            // Again, and by somebody who comes while another one makes marks.
            assert_eq!(own, key(&outputs));
            let marking = Numbers::new();
            assert_eq!(own, key(&outputs));
            drop(marking);
            keys.push(own.0.exact);
        }
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }

    #[test]
    fn what_is_shared_is_another_graph() {
        let [x, y] = [1.0f32, 2.0].map(|number| Tensor::from_slice(&[number], [1]));
        let products = [&x * &x, &x * &y, x.exp() * y.exp(), x.exp() * x.exp(), {
            let exp = x.exp();
            &exp * &exp
        }];
        let mut keys: Vec<StructuralKey> =
            products.iter().map(|product| key(std::slice::from_ref(product)).0.exact).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), products.len());
        assert_eq!(key(&[&x * &y]), key(&[&y * &x]));
    }

    #[test]
    fn threads_find_the_same_keys_at_the_same_time() {
        let expected: Vec<_> = expressions().iter().map(|outputs| key(outputs)).collect();
        let shared = expressions();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let found: Vec<_> = shared.iter().map(|outputs| key(outputs)).collect();
                        assert_eq!(found, expected);
                    }
                });
            }
        });
    }
}
