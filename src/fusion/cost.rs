//! The model that decides what is worth fusing: launch, memory and arithmetic of a kernel.

use lazuli_codegen::cost;
use lazuli_codegen::schedule::STACK_BYTES;

use crate::graph::op::Op;

/// What a core makes of a loop. The threads of a GPU compute alike in all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Loop {
    /// Vector lanes along what is consecutive, each element by itself.
    Lanes,
    /// Lanes along rows that are reduced.
    Rows,
    /// Lanes across columns that are reduced, sweeping down.
    Columns,
    /// Sums of products whose factors are packed.
    Products,
    /// Lanes across lines that are scanned.
    Across,
    /// Lanes along lines that are scanned within registers.
    Registers,
    /// Scatters.
    Scatter,
    /// Loops inside of those of the lanes: windows, and reductions of a few elements.
    Windows,
    /// One element after the other: recurrences and costly scans along rows, and results that lie in turns.
    Steps,
}

/// How many kinds of [`Loop`] there are.
pub(crate) const LOOPS: usize = 9;

/// What an operation is to the hero whose loop it shares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Prologue,
    Hero,
    Epilogue,
}

/// Something of each [`Loop`] and [`Role`].
pub(crate) type OfLoops = [[f64; 3]; LOOPS];

/// What kernels cost on a target. Constants, not measurements: plans and snapshots must not depend on
/// the machine that makes them, and the model only has to rank choices.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct TargetFigures {
    /// Seconds from one launch to the next.
    pub(crate) launch: f64,
    /// Bytes per second from and to memory.
    pub(crate) bandwidth: f64,
    /// The same of values that stay in a shared cache from kernel to kernel.
    pub(crate) near_bandwidth: f64,
    /// Bytes of such a value, at most.
    pub(crate) near: u64,
    /// Simple operations (an addition) per second.
    pub(crate) operations: f64,
    /// How many times as long as alone in lanes an operation takes in each [`Loop`], by its [`Role`].
    pub(crate) loops: OfLoops,
    /// Operations that an element is worth which a window reads.
    pub(crate) window_read: f64,
    /// How many times as long an operation on 64-bit numbers takes.
    pub(crate) wide: f64,
    /// Operations that reading an element is worth whose neighbours in the loop are not its neighbours in memory: where
    /// tiles can be transposed, and where each element takes a line.
    pub(crate) transposed: [f64; 2],
    /// Operations that reading an element is worth whose position is computed, another one for each neighbour.
    pub(crate) far_read: f64,
    /// Operations that an element is worth whose position is divided in a loop that has vectors otherwise. If none, views are never
    /// stored.
    pub(crate) divided: f64,
    /// How many times as long it takes what a kernel of one row computes, which is one core's.
    pub(crate) one_row: f64,
    /// Threads that keep the processors busy where each goes along a line step by step: with fewer lines, all that a kernel
    /// computes in such steps takes longer in proportion. None, if few lines have no threads of their own.
    pub(crate) busy: f64,
    /// What an operation between two scans of a kernel costs more than in lanes, as a multiple of that: it is in their scalar loop.
    pub(crate) between_scans: f64,
    /// How much longer memory takes, at most, where rows or columns that are read again for their results are too few for all
    /// processors, which cannot divide them then; a multiple of what it takes otherwise.
    pub(crate) few_again: f64,
    /// Operations that an innermost loop takes to begin and to end.
    pub(crate) turn: f64,
    /// Lanes that such a loop computes at a time, of 32 bits each; 1 where threads go on in the next line.
    pub(crate) vector: usize,
    /// Seconds that an operation counts for each further place where its text is. A compiler takes 1 to 2 ms for it, once: as much as
    /// this in some 5,000 runs.
    pub(crate) text: f64,
    /// How much of the shorter of memory and arithmetic the longer one hides.
    pub(crate) overlap: f64,
    /// Seconds of all processors that one of them computes alone before the others are awake.
    pub(crate) alone: f64,
    /// Whether windows that slide along a long axis are made of shorter ones.
    pub(crate) doubles: bool,
    /// Whether cores pack the factors of contractions; else the threads of a block share tiles of them.
    pub(crate) packs: bool,
    /// How many times as long an operation of a contraction takes.
    pub(crate) product: f64,
    /// The same of what is combined in another way than by sums of products, which are one instruction.
    pub(crate) lifted: f64,
    /// How often an element of a factor is used where it is computed once: rows or columns of a block.
    pub(crate) reuse: f64,
    /// Multiprocessors or cores, for schedules.
    pub(crate) processors: u32,
    /// Threads or lanes of a row, at least, that elements fill or leave idle.
    pub(crate) lanes: usize,
    /// Bytes of a row that stay from one sweep to the next: in the registers of a block, or on a core's stack.
    pub(crate) kept: usize,
    /// The same in the shared memory of a block.
    pub(crate) shared: usize,
    /// Bytes of a row that is still in a near cache when its next sweep begins, where there are rows for all
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
        near_bandwidth: 4.3e12,
        near: 0,
        operations: 30e12,
        loops: [[1.0; 3]; LOOPS],
        window_read: 0.0,
        wide: 1.0,
        transposed: [0.0; 2],
        far_read: 0.0,
        divided: 0.0,
        one_row: 1.0,
        // 16 warps a multiprocessor: 1024 lines of 2048 steps with a sigmoid before and a tanh behind took twice as long as apart on
        // an H200.
        busy: 67_584.0,
        between_scans: 0.0,
        // Softmax of 1024 columns of 4096 takes 41 µs on an H200, in 64 blocks; of what a copy takes, 11. Batch norm of 32 channels 25, of 5.
        few_again: 2.5,
        turn: 0.0,
        vector: 1,
        text: 0.0,
        overlap: 0.95,
        alone: 0.0,
        doubles: false,
        packs: false,
        // Half of what the processor can do in fused multiplications and additions, which count as one each.
        product: 0.8,
        lifted: 1.0,
        reuse: 64.0,
        processors: 132,
        lanes: 8,
        kept: 128 << 10,
        shared: 48 << 10,
        cache: 192 << 10,
    };

    /// Two cores of a server, as `benches/never_loses` has them; a second-level cache of 2 MB that holds a row and its
    /// results. Schedules are made for a few more.
    pub(crate) const CPU: TargetFigures = TargetFigures {
        launch: 5e-6,
        bandwidth: 76e9,
        near_bandwidth: 210e9,
        near: 8 << 20,
        operations: 180e9,
        loops: [
            [1.0, 1.0, 1.0],
            [1.35, 0.7, 1.0],
            [1.35, 1.55, 3.0],
            [0.22, 0.8, 1.0],
            [1.5, 1.6, 1.0],
            [1.2, 3.0, 1.0],
            [4.0, 1.0, 1.0],
            [1.0, 0.5, 1.5],
            [2.0, 5.5, 1.0],
        ],
        window_read: 2.5,
        wide: 2.0,
        transposed: [10.0, 1000.0],
        far_read: 100.0,
        divided: 300.0,
        one_row: 2.0,
        busy: 0.0,
        // A scalar exp of four rows at a time, beside one of 16 lanes.
        between_scans: 16.0,
        few_again: 0.0,
        turn: 300.0,
        // Of AVX-512: with half as many, lines of up to 8 would leave fewer idle.
        vector: 16,
        text: 0.3e-6,
        overlap: 0.43,
        alone: 5e-6,
        doubles: true,
        packs: true,
        product: 1.0,
        lifted: 4.5,
        reuse: 1.0,
        processors: 8,
        // Of short rows lanes hold neighbouring ones.
        lanes: 1,
        kept: STACK_BYTES as usize,
        shared: 0,
        cache: 1 << 20,
    };
}

/// Operations whose text may be there once more for nothing.
const FEW_REPEATED: f64 = 12.0;
/// Programs of fewer nodes have few texts: there it does not count.
const LONG_PROGRAM: usize = 150;

impl TargetFigures {
    /// Seconds that so many operations count whose text is there once more, in a program of so many nodes.
    pub(crate) fn repeated(&self, operations: f64, nodes: usize) -> f64 {
        if nodes < LONG_PROGRAM { 0.0 } else { self.text * (operations - FEW_REPEATED).max(0.0) }
    }
}

/// What one kernel does.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) struct Work {
    /// Bytes read, each buffer counted once.
    pub(crate) bytes_read: u64,
    /// Bytes written.
    pub(crate) bytes_written: u64,
    /// Those of both that are not near.
    pub(crate) far: u64,
    /// Simple operations, as if all were in [`Loop::Lanes`].
    pub(crate) operations: f64,
    /// What [`Work::operations`] is made of, for figures to be fitted to.
    pub(crate) counted: Counted,
}

/// Counts that figures turn into operations.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) struct Counted {
    /// Simple operations.
    pub(crate) loops: OfLoops,
    /// Elements that windows read.
    pub(crate) window_reads: f64,
    /// Elements that are read across lines of memory: where tiles can be transposed, and elsewhere.
    pub(crate) transposed: [f64; 2],
    /// Innermost loops.
    pub(crate) turns: f64,
}

impl Work {
    /// Bytes read and written.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_read + self.bytes_written
    }

    /// What is counted, by name.
    pub(crate) fn figures(&self) -> Vec<(&'static str, f64)> {
        const LOOP_NAMES: [[&str; 3]; LOOPS] = [
            ["lanes prologue", "lanes", "lanes epilogue"],
            ["rows prologue", "rows", "rows epilogue"],
            ["columns prologue", "columns", "columns epilogue"],
            ["products prologue", "products", "products epilogue"],
            ["across prologue", "across", "across epilogue"],
            ["registers prologue", "registers", "registers epilogue"],
            ["scatter prologue", "scatter", "scatter epilogue"],
            ["windows prologue", "windows", "windows epilogue"],
            ["steps prologue", "steps", "steps epilogue"],
        ];
        let Counted { loops, window_reads, transposed: [tiled, lines], turns } = self.counted;
        let bytes =
            [("bytes_read", self.bytes_read), ("bytes_written", self.bytes_written), ("far", self.far)];
        let others =
            [("window_reads", window_reads), ("tiled_reads", tiled), ("line_reads", lines), ("turns", turns)];
        let loops = LOOP_NAMES.into_iter().flatten().zip(loops.into_iter().flatten());
        let bytes = bytes.into_iter().map(|(name, bytes)| (name, bytes as f64));
        bytes.chain(loops).chain(others).filter(|&(_, count)| count > 0.0).collect()
    }

    /// Modelled seconds: the longer of memory and arithmetic hides most of the shorter, and what is short has been done
    /// before all processors are at it. `benches/never_loses/fit.py` has the same formula.
    pub(crate) fn seconds(&self, figures: &TargetFigures) -> f64 {
        let near = (self.bytes() - self.far) as f64;
        let memory = near / figures.near_bandwidth + self.far as f64 / figures.bandwidth;
        let compute = self.operations / figures.operations;
        let together = compute + memory - figures.overlap * compute.min(memory);
        figures.launch + together + together.min(figures.alone)
    }
}

impl std::iter::Sum for Work {
    fn sum<I: Iterator<Item = Work>>(works: I) -> Work {
        let mut sum = Work::default();
        for work in works {
            sum.bytes_read += work.bytes_read;
            sum.bytes_written += work.bytes_written;
            sum.far += work.far;
            sum.operations += work.operations;
            let (counted, own) = (&mut sum.counted, work.counted);
            let loops = counted.loops.iter_mut().flatten().zip(own.loops.into_iter().flatten());
            loops.for_each(|(sum, own)| *sum += own);
            counted.window_reads += own.window_reads;
            counted.transposed.iter_mut().zip(own.transposed).for_each(|(sum, own)| *sum += own);
            counted.turns += own.turns;
        }
        sum
    }
}

/// Simple operations that one evaluation of a node costs.
pub(crate) fn operation_cost(op: &Op) -> f64 {
    match op {
        Op::Input(_) | Op::Constant(_) | Op::Iota | Op::View(_) => 0.0,
        Op::Random { .. } => cost::RANDOM,
        Op::Unary(op) => op.cost(),
        Op::Binary(op) => op.cost(),
        Op::Select | Op::Cast => 1.0,
        // Per element that is reduced; see `Analyser`.
        Op::Reduce { .. } => 1.0,
        // What is more than one operation goes along one element after the other.
        Op::Scan { op, .. } => op.cost().max(4.0),
        Op::Recurrence { body, .. } => {
            body.graph.nodes().map(|id| operation_cost(&body.graph.node(id).op)).sum::<f64>().max(1.0)
        }
        // The check.
        Op::Gather { .. } => 3.0,
        // Per element that is combined: the check, the comparison, the sum.
        Op::Scatter { .. } => 4.0,
        // Per element that is sorted.
        Op::Sort { .. } => 20.0,
    }
}
