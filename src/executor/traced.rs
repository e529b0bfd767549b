//! A graph that is carried out again and again, with other inputs each time: what a compiled function becomes.

use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use super::donation::{self, Pairs};
use super::prepared::Prepared;
#[cfg(feature = "cuda")]
use super::replay::Replay;
use super::run::Run;
use super::{allocate, interpret, interpreted, prepare, settings, trial};
use crate::compiler::{self, Plan};
use crate::graph::Graph;
use crate::runtime::backend::Backend;
use crate::runtime::buffer::{Buffer, Buffers};
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
        ready: Arc<Ready>,
        /// The same over inputs: of which, those that may be.
        over_inputs: Mutex<Vec<(Slots, Arc<Ready>)>>,
    },
}

/// Kernels, and what their runs have in common.
struct Ready {
    /// Goes before the kernels that it launches.
    #[cfg(feature = "cuda")]
    replay: Replay,
    prepared: Arc<Prepared>,
}

impl Ready {
    fn new(prepared: Arc<Prepared>) -> Arc<Ready> {
        Arc::new(Ready {
            #[cfg(feature = "cuda")]
            replay: Replay::default(),
            prepared,
        })
    }

    fn run(
        &self,
        plan: &Arc<Plan>,
        backend: &Backend,
        inputs: &[Buffer],
        outputs: SmallVec<[Option<Buffer>; 4]>,
        graph: &Graph,
    ) -> Result<Buffers> {
        #[cfg(feature = "cuda")]
        if let Backend::Cuda(device) = backend
            && let Some(results) = self.replay.run(plan, &self.prepared, device, inputs, &outputs)?
        {
            return Ok(results);
        }
        #[cfg(not(feature = "cuda"))]
        let _ = backend;
        let mut run = Run::new(plan, self.prepared.clone(), inputs, outputs)?;
        for number in 0..run.kernels() {
            let memory = allocate(&run, plan, number, &|| Ok(graph.clone()))?;
            run.launch(number, memory)?;
        }
        run.finish()
    }
}

impl Traced {
    /// Plans the graph, and loads its kernels.
    pub(crate) fn new(graph: Graph, device: Device, fusion: Fusion) -> Result<Traced> {
        let backend = Backend::open(device)?;
        let settings = settings::of(device, fusion);
        let kernels = match &backend {
            Backend::Interpreter => Kernels::None,
            Backend::Interpreted => Kernels::Interpreted(compiler::plan_to_run(&graph, settings)?),
            _ => match prepare(&graph, device, &backend, settings, |_| None)? {
                None => Kernels::None,
                Some((plan, prepared, _)) => {
                    Kernels::Loaded { plan, ready: Ready::new(prepared), over_inputs: Mutex::default() }
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
    ) -> Result<Buffers> {
        stats::add(stats::Counter::Evaluations);
        match &self.kernels {
            Kernels::None => interpret(&self.graph, inputs),
            Kernels::Interpreted(plan) => interpreted::carry_out(&self.graph, plan, inputs),
            Kernels::Loaded { plan, ready, over_inputs } => match given.is_empty() || trial::is_noting() {
                true => ready.run(plan, &self.backend, inputs, outputs, &self.graph),
                false => {
                    let ready = self.over(plan, over_inputs, inputs, given)?;
                    ready.run(plan, &self.backend, inputs, outputs, &self.graph)
                }
            },
        }
    }

    /// The kernels that write over some of these inputs.
    fn over(
        &self,
        plan: &Plan,
        known: &Mutex<Vec<(Slots, Arc<Ready>)>>,
        inputs: &[Buffer],
        given: &Slots,
    ) -> Result<Arc<Ready>> {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, ready)) = known.iter().find(|(slots, _)| slots == given) {
            return Ok(ready.clone());
        }
        let over: Vec<Pairs> = donation::over_given(plan, inputs, given);
        let ready = Ready::new(Prepared::of(plan, self.device, &self.backend, &over)?);
        if known.len() == MOST_CHOICES {
            known.remove(0);
        }
        known.push((given.clone(), ready.clone()));
        Ok(ready)
    }
}
