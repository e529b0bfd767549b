//! What a scan's step was recorded as.
//!
//! The step is called once, on tensors that stand for the values of one position. What is made of these has values nowhere
//! else: whoever evaluates refuses it.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::graph::op::{Constant, Op, View};
use crate::recording::{Recipe, Sources, State, Tensor, TensorNode};
use crate::tensor::arguments::call::Call;
use crate::{DType, Result, Shape};

/// A step, recorded on tensors that stand for those of any position.
pub(super) struct Step {
    call: Call,
    /// What stands for the carries, then for the elements.
    pub(super) given: Vec<Tensor>,
    /// The carries of the next step, then results.
    pub(super) outputs: Vec<Tensor>,
    /// What the outputs follow from, sources first, without what was given.
    pub(super) parts: Vec<Part>,
    draws: Vec<(Tensor, u64)>,
}

/// A tensor that a step's outputs follow from.
pub(super) struct Part {
    pub(super) tensor: Tensor,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The same in each step.
    Captured,
    /// Random numbers of this seed, which are others in each step.
    Drawn(u64),
    /// Computed in each step.
    Made,
}

pub(super) fn key(tensor: &Tensor) -> *const TensorNode {
    Arc::as_ptr(&tensor.node)
}

impl Step {
    /// Calls `step` on tensors that stand for others like these, the carries before the elements.
    pub(super) fn record(
        call: Call,
        carries: &[Tensor],
        elements: &[(&Tensor, Shape)],
        step: impl FnOnce(&[Tensor], &[Tensor]) -> (Vec<Tensor>, Vec<Tensor>),
    ) -> Result<Step> {
        let own = carries.iter().map(|carry| (carry, carry.node.shape.clone()));
        let alike: Vec<(&Tensor, Shape)> = own.chain(elements.iter().cloned()).collect();
        let device = alike.iter().find_map(|(x, _)| x.node.device);
        let stand_in = |(like, shape): &(&Tensor, Shape)| {
            let state = State::Recorded(Recipe::StepValue, Sources::new());
            let (device, name, location) = (like.node.device.or(device), call.name(), call.location());
            Tensor::from_parts(shape.clone(), like.node.dtype, device, name, location, state)
        };
        let given: Vec<Tensor> = alike.iter().map(stand_in).collect();
        let (carried, elements) = given.split_at(carries.len());
        let ((next, results), draws) = Open::during(&given, || step(carried, elements));
        let mut step = Step { call, outputs: [next, results].concat(), given, parts: Vec::new(), draws };
        for output in &step.outputs {
            output.validity()?;
        }
        step.visit()?;
        Ok(step)
    }

    /// Gives the outputs other shapes, to which they broadcast.
    pub(super) fn expand_outputs(&mut self, shapes: &[Shape]) -> Result<()> {
        for (output, shape) in self.outputs.iter_mut().zip(shapes) {
            *output = self.call.expand(output, shape)?;
        }
        self.visit()
    }

    /// The same step with outputs that were recorded otherwise.
    pub(super) fn with_outputs(&self, outputs: Vec<Tensor>) -> Result<Step> {
        let (given, draws) = (self.given.clone(), self.draws.clone());
        let mut step = Step { call: self.call, given, outputs, parts: Vec::new(), draws };
        step.visit()?;
        Ok(step)
    }

    /// Whether each element of all parts follows from the elements at its place, in the shape of a step.
    pub(super) fn is_elementwise(&self, shape: &Shape) -> bool {
        self.parts.iter().all(|Part { tensor, kind }| {
            let own = &tensor.node.shape;
            match kind {
                Kind::Captured => true,
                Kind::Drawn(_) => own == shape,
                Kind::Made => {
                    let is_elementwise = match &*tensor.node.state() {
                        State::Recorded(Recipe::Op(op), _) => op.is_elementwise(),
                        State::Recorded(Recipe::Derived(_), _) => true,
                        _ => false,
                    };
                    is_elementwise && own.broadcasts_to(shape)
                }
            }
        })
    }

    /// Finds the parts. Loops, as a step may be a long chain.
    fn visit(&mut self) -> Result<()> {
        let is_own = self.own()?;
        let mut done: FxHashSet<*const TensorNode> = self.given.iter().map(key).collect();
        self.parts.clear();
        for output in &self.outputs {
            let mut pending = vec![output.clone()];
            while let Some(tensor) = pending.last().cloned() {
                let mut kind = Kind::Captured;
                let mut missing = Vec::new();
                if is_own.contains(&key(&tensor)) {
                    let drawn = self.draws.iter().find(|(drawn, _)| key(drawn) == key(&tensor));
                    kind = drawn.map_or(Kind::Made, |&(_, seed)| Kind::Drawn(seed));
                    if let (Kind::Made, State::Recorded(_, sources)) = (kind, &*tensor.node.state()) {
                        missing.extend(sources.iter().filter(|source| !done.contains(&key(source))).cloned());
                    }
                }
                if missing.is_empty() || done.contains(&key(&tensor)) {
                    if done.insert(key(&tensor)) {
                        self.parts.push(Part { tensor, kind });
                    }
                    pending.pop();
                } else {
                    pending.extend(missing.into_iter().rev());
                }
            }
        }
        Ok(())
    }

    /// What follows from what this step was given or has drawn. A value of a step around this one is another tensor to it.
    fn own(&self) -> Result<FxHashSet<*const TensorNode>> {
        let mut own: FxHashSet<*const TensorNode> = self.given.iter().map(key).collect();
        own.extend(self.draws.iter().map(|(drawn, _)| key(drawn)));
        // A tensor is entered, then left when all its sources were.
        let mut entered = FxHashSet::default();
        let mut pending: Vec<(Tensor, Option<Sources>)> =
            self.outputs.iter().map(|output| (output.clone(), None)).collect();
        while let Some((tensor, left)) = pending.pop() {
            if let Some(sources) = left {
                if sources.iter().any(|source| own.contains(&key(source))) {
                    own.insert(key(&tensor));
                }
            } else if tensor.node.is_of_step && !own.contains(&key(&tensor)) && entered.insert(key(&tensor)) {
                let sources = match &*tensor.node.state() {
                    State::Recorded(Recipe::StepValue, _) if !Open::has(&tensor) => {
                        return self
                            .call
                            .fail("the step uses a value of another scan's step, which has none here");
                    }
                    State::Recorded(_, sources) => sources.clone(),
                    State::Invalid(_) | State::Evaluated(..) | State::Lent(_) => Sources::new(),
                };
                let below: Vec<Tensor> = sources.iter().cloned().collect();
                pending.push((tensor, Some(sources)));
                pending.extend(below.into_iter().map(|source| (source, None)));
            }
        }
        Ok(own)
    }
}

/// The number that is the same at every position of a tensor.
pub(super) fn number_of(tensor: &Tensor) -> Option<Constant> {
    let sources = match &*tensor.node.state() {
        State::Recorded(Recipe::Filled(constant), _) => return Some(*constant),
        State::Recorded(Recipe::Op(Op::View(View::Expand)), sources) => sources.clone(),
        _ => return None,
    };
    let state = sources.first()?.node.state();
    match &*state {
        State::Recorded(Recipe::Filled(constant), _) => Some(*constant),
        _ => None,
    }
}

/// A step that is being recorded: what it was given, and the random numbers that it has drawn, with their seeds.
struct Open {
    given: Vec<Tensor>,
    draws: Vec<(Tensor, u64)>,
}

thread_local! {
    /// The steps that are being recorded, the innermost last. After the outermost nothing is left to drop, so that it is there in
    /// destructors of others.
    static OPEN: ManuallyDrop<RefCell<Vec<Open>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

impl Open {
    /// What a step gives, and what it has drawn on the way.
    fn during<T>(given: &[Tensor], step: impl FnOnce() -> T) -> (T, Vec<(Tensor, u64)>) {
        /// Also if the step panics.
        struct Ended;
        impl Drop for Ended {
            fn drop(&mut self) {
                OPEN.with(|steps| {
                    let mut steps = steps.borrow_mut();
                    steps.pop();
                    if steps.is_empty() {
                        *steps = Vec::new();
                    }
                });
            }
        }
        OPEN.with(|steps| steps.borrow_mut().push(Open { given: given.to_vec(), draws: Vec::new() }));
        let _ended = Ended;
        let results = step();
        let draws = OPEN.with(|steps| {
            steps.borrow_mut().last_mut().map(|step| std::mem::take(&mut step.draws)).unwrap_or_default()
        });
        (results, draws)
    }

    /// Whether a value is one that such a step was given, or has drawn.
    fn has(value: &Tensor) -> bool {
        OPEN.with(|steps| {
            let values = |step: &Open| {
                let drawn = step.draws.iter().map(|(drawn, _)| drawn);
                step.given.iter().chain(drawn).any(|own| key(own) == key(value))
            };
            steps.borrow().iter().any(values)
        })
    }
}

/// Random numbers, and within a step what stands for those of any position.
pub(crate) fn random(call: Call, shape: Shape, dtype: DType, seed: u64) -> Result<Tensor> {
    let is_step = OPEN.with(|steps| !steps.borrow().is_empty());
    if !is_step {
        return call.record(Op::Random { seed }, &[], shape, dtype);
    }
    call.needs_addressable(&shape)?;
    let state = State::Recorded(Recipe::StepValue, Sources::new());
    let drawn = Tensor::from_parts(shape, dtype, None, call.name(), call.location(), state);
    OPEN.with(|steps| {
        steps
            .borrow_mut()
            .iter_mut()
            .last()
            .into_iter()
            .for_each(|step| step.draws.push((drawn.clone(), seed)));
    });
    Ok(drawn)
}
