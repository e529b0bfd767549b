//! A graph that is carried out again and again, with other inputs each time: what a compiled function becomes.

use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use super::donation::{self, Pairs};
use super::prepared::{Prepared, Run};
use super::{interpret, interpreted, prepare, settings};
use crate::compiler::{self, Plan};
use crate::graph::Graph;
use crate::runtime::backend::Backend;
use crate::runtime::buffer::Buffer;
use crate::runtime::device::Device;
use crate::{Fusion, Result, stats};

/// How many choices of inputs to write over are remembered.
const MOST_CHOICES: usize = 16;

/// Inputs that may be written over, ascending.
pub(crate) type Slots = SmallVec<[usize; 4]>;

/// A graph on a device, ready to run.
pub(crate) struct Traced {
    graph: Graph,
    backend: Backend,
    device: Device,
    kernels: Kernels,
}

enum Kernels {
    /// The reference needs none.
    None,
    Interpreted(Arc<Plan>),
    Loaded {
        plan: Arc<Plan>,
        prepared: Arc<Prepared>,
        /// The same over inputs: of which, those that may be.
        over_inputs: Mutex<Vec<(Slots, Arc<Prepared>)>>,
    },
}

impl Traced {
    /// Plans the graph, and loads its kernels.
    pub(crate) fn new(graph: Graph, device: Device, fusion: Fusion) -> Result<Traced> {
        let backend = Backend::open(device)?;
        let settings = settings::of(device, fusion);
        let kernels = match &backend {
            Backend::Interpreter => Kernels::None,
            Backend::Interpreted => Kernels::Interpreted(compiler::plan(&graph, settings)?),
            _ => match prepare(&graph, device, &backend, settings, |_| None)? {
                None => Kernels::None,
                Some((plan, prepared, _)) => {
                    Kernels::Loaded { plan, prepared, over_inputs: Mutex::default() }
                }
            },
        };
        Ok(Traced { graph, backend, device, kernels })
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    /// The graph as it was recorded.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The outputs' buffers. `given` are inputs that nobody else sees, now or later, and `outputs` is memory for results, of
    /// which the same is true.
    pub(crate) fn run(
        &self,
        inputs: &[Buffer],
        given: &Slots,
        outputs: SmallVec<[Option<Buffer>; 4]>,
    ) -> Result<Vec<Buffer>> {
        stats::add(stats::Counter::Evaluations);
        match &self.kernels {
            Kernels::None => interpret(&self.graph, inputs),
            Kernels::Interpreted(plan) => interpreted::carry_out(&self.graph, plan, inputs),
            Kernels::Loaded { plan, prepared, over_inputs } => {
                let prepared = match given.is_empty() {
                    true => prepared.clone(),
                    false => self.over(plan, over_inputs, inputs, given)?,
                };
                let mut run = Run::new(plan, prepared, inputs, outputs)?;
                for number in 0..run.kernels() {
                    let memory = run.allocate(number)?;
                    run.launch(number, memory)?;
                }
                run.finish()
            }
        }
    }

    /// The kernels that write over some of these inputs.
    fn over(
        &self,
        plan: &Plan,
        known: &Mutex<Vec<(Slots, Arc<Prepared>)>>,
        inputs: &[Buffer],
        given: &Slots,
    ) -> Result<Arc<Prepared>> {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, prepared)) = known.iter().find(|(slots, _)| slots == given) {
            return Ok(prepared.clone());
        }
        let over: Vec<Pairs> = donation::over_given(plan, inputs, given);
        let prepared = Prepared::of(plan, self.device, &self.backend, &over)?;
        if known.len() == MOST_CHOICES {
            known.remove(0);
        }
        known.push((given.clone(), prepared.clone()));
        Ok(prepared)
    }
}
