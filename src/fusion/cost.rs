//! The model that decides what is worth fusing: launch, memory and arithmetic of a kernel.

use lazuli_codegen::cost;
use lazuli_codegen::schedule::STACK_BYTES;

use crate::graph::op::Op;

/// What kernels cost on a target. Constants, not measurements: plans and snapshots must not depend on
/// the machine that makes them, and the model only has to rank choices.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct TargetFigures {
    /// Seconds from one launch to the next.
    pub(crate) launch: f64,
    /// Bytes per second from and to memory.
    pub(crate) bandwidth: f64,
    /// Simple operations (an addition) per second.
    pub(crate) operations: f64,
    /// Multiprocessors or cores, for schedules.
    pub(crate) processors: u32,
    /// Threads or lanes of a row, at least, that elements fill or leave idle.
    pub(crate) lanes: usize,
    /// Bytes of a row that stay from one walk to the next: in the registers of a block, or on a core's stack.
    pub(crate) kept: usize,
    /// The same in the shared memory of a block.
    pub(crate) shared: usize,
    /// Bytes of a row that is still in a near cache when its next walk begins, where there are rows for all
    /// processors.
    pub(crate) cache: usize,
}

impl TargetFigures {
    /// A data-centre GPU: 132 multiprocessors, 4.3 TB/s of copy bandwidth, 60 TFLOP/s in f32 of which
    /// half counts (additions, not fused multiply-adds), 3 µs a launch; 1024 threads with 128 bytes of a row each, and
    /// 50 MB of cache for two rows a multiprocessor.
    pub(crate) const CUDA: TargetFigures = TargetFigures {
        launch: 3e-6,
        bandwidth: 4.3e12,
        operations: 30e12,
        processors: 132,
        lanes: 8,
        kept: 128 << 10,
        shared: 48 << 10,
        cache: 192 << 10,
    };

    /// A few cores of a server: 40 GB/s and 160 G simple vector operations a second (8 cores, 8 lanes,
    /// 2.5 GHz), 5 µs to start work on all threads; a second-level cache of 2 MB that holds a row and its results.
    pub(crate) const CPU: TargetFigures = TargetFigures {
        launch: 5e-6,
        bandwidth: 40e9,
        operations: 160e9,
        processors: 8,
        lanes: 16,
        kept: STACK_BYTES as usize,
        shared: 0,
        cache: 1 << 20,
    };
}

/// What one kernel does.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) struct Work {
    /// Bytes read, each buffer counted once.
    pub(crate) bytes_read: u64,
    /// Bytes written.
    pub(crate) bytes_written: u64,
    /// Simple operations.
    pub(crate) operations: f64,
}

impl Work {
    /// Bytes read and written.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_read + self.bytes_written
    }

    /// What is counted, by name.
    pub(crate) fn figures(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("bytes_read", self.bytes_read as f64),
            ("bytes_written", self.bytes_written as f64),
            ("operations", self.operations),
        ]
    }

    /// Modelled seconds: arithmetic hides nearly all of the shorter of memory and compute.
    pub(crate) fn seconds(&self, figures: &TargetFigures) -> f64 {
        let memory = self.bytes() as f64 / figures.bandwidth;
        let compute = self.operations / figures.operations;
        figures.launch + compute + memory - 0.95 * compute.min(memory)
    }
}

/// Simple operations that one evaluation of a node costs.
pub(crate) fn operation_cost(op: &Op) -> f64 {
    match op {
        Op::Input(_) | Op::Constant(_) | Op::Iota | Op::View(_) => 0.0,
        Op::Random { .. } => cost::RANDOM,
        Op::Unary(op) => cost::unary(*op),
        Op::Binary(op) => cost::binary(*op),
        Op::Select | Op::Cast => 1.0,
        // Per element that is reduced; see `Analyser`.
        Op::Reduce { .. } => 1.0,
        Op::Scan { .. } => 4.0,
        Op::Recurrence { body, .. } => {
            body.graph.nodes().map(|id| operation_cost(&body.graph.node(id).op)).sum::<f64>().max(1.0)
        }
        // The check.
        Op::Gather { .. } => 3.0,
        // Per element that is combined: the check, the comparison, the sum.
        Op::Scatter { .. } => 4.0,
        Op::Composite(_) => 50.0,
    }
}
