//! The scheduled loop nest: the last level before text.

mod bulk;
mod groups;
mod packed;

use super::variable::Var;
use crate::index::{Bound, IndexExpr};
pub use crate::intrinsics::{Lines, SortPart};
use crate::{BinaryOp, DType, ReduceOp, Scalar, UnaryOp};
pub use bulk::{BulkCopy, BulkRound, BulkStep};
pub(crate) use groups::{GROUP_LINE, GROUP_ROWS, GROUP_TERMS, GROUP_THREADS};
pub use groups::{GroupFactor, GroupProduct, ProductStep};
pub use packed::{Pairing, TileProduct, Turning};

/// The type of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// Index arithmetic, of the kernel's index width.
    Index,
    /// A value in a register.
    Register(DType),
    /// An element as it is in memory.
    Memory(DType),
}

impl Type {
    /// Bytes of a variable; those of an index are given.
    pub fn bytes(self, index_bytes: u64) -> u64 {
        match self {
            Type::Index => index_bytes,
            Type::Register(dtype) => dtype.compute().size() as u64,
            Type::Memory(dtype) => dtype.size() as u64,
        }
    }
}

/// A side-effect-free expression.
#[derive(Clone, PartialEq, Hash, Debug)]
pub enum Expr {
    /// The value of a variable or parameter.
    Name(Var),
    /// An index literal.
    Int(u64),
    /// Index arithmetic over axis variables.
    Index(IndexExpr),
    /// An index, position, random number or bounds whose index arithmetic 64 bits hold, but not the 32 in which loops count
    /// (CUDA).
    Wide(Box<Expr>),
    /// Index arithmetic on expressions.
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    /// A part of the launch's coordinates.
    Builtin(Builtin),
    /// A typed constant.
    Literal(Scalar),
    /// An index as an i64 value.
    Position(IndexExpr),
    /// Whether all bounds hold.
    InBounds(Vec<Bound>),
    /// A uniform random number.
    Random {
        /// F32 or F64.
        dtype: DType,
        /// The seed's parameter.
        seed: Var,
        /// The element's number.
        index: IndexExpr,
    },
    /// An I64 value as a position below the extent. Where it is none, it is noted with the number of the check,
    /// and this is the nearest position that is one. Without a check it always is one.
    Checked {
        /// The value.
        position: Box<Expr>,
        /// What it must be below.
        extent: Box<Expr>,
        /// The number.
        check: Option<u32>,
    },
    /// An I64 value that an index holds, as an index.
    ToIndex(Box<Expr>),
    /// A pointwise operation; the dtype is the operand's.
    Unary(UnaryOp, DType, Box<Expr>),
    /// A pointwise operation; the dtype is the operands'.
    Binary(BinaryOp, DType, Box<Expr>, Box<Expr>),
    /// The exponential of an F32 to more bits than a number of 16 has, but not to all (CUDA).
    BriefExp(Box<Expr>),
    /// Zero times each of so many elements of an array of 16-bit floats, from the first one on, added up (CUDA): zero, unless one of
    /// them is infinite or NaN.
    ZeroTimes(DType, Box<Expr>, u64),
    /// `a * b + c` of one dtype: on floats rounded once.
    MulAdd(DType, Box<[Expr; 3]>),
    /// `a / b` of floats where many elements are divided by the same `b`, and so share its reciprocal: the same bits.
    Quotient(DType, Box<[Expr; 2]>),
    /// `condition ? a : b`.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Conversion between compute dtypes, or rounding to a 16-bit float.
    Cast {
        /// The compute dtype of the operand.
        from: DType,
        /// Any dtype.
        to: DType,
        /// What is converted.
        operand: Box<Expr>,
    },
    /// `array[index]`, as it is.
    Element(Var, Box<Expr>),
    /// A raw element converted to its compute dtype.
    FromMemory(DType, Box<Expr>),
    /// A value converted to a raw element.
    ToMemory(DType, Box<Expr>),
    /// A part of what a sort compares, or of its result; the dtype is the sorted value's.
    Sort {
        /// Which.
        part: SortPart,
        /// Of the sorted value.
        dtype: DType,
        /// Whether the largest comes first.
        descending: bool,
        /// What it is made from.
        operands: Box<[Expr; 2]>,
    },
    /// In how many lanes of the warp, which is a row of the block, the comparison holds.
    Votes(Box<Expr>),
    /// In how many lanes before this one it does.
    VotesBefore(Box<Expr>),
    /// The value of the lane of the warp that is `delta` before; of this lane where there is none.
    ShuffleUp {
        /// The value to exchange.
        value: Box<Expr>,
        /// How far.
        delta: Box<Expr>,
    },
    /// The value that another lane of the group of `width` lanes has: the one whose number differs in
    /// the bits of `mask`, an expression.
    ShuffleXor {
        /// The value to exchange.
        value: Box<Expr>,
        /// The bits.
        mask: Box<Expr>,
        /// Lanes in the group.
        width: u32,
    },
}

/// Index arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Arithmetic {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient.
    Div,
    /// Remainder.
    Rem,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// Comparison.
    Less,
    /// Comparison.
    LessEqual,
    /// Comparison.
    Equal,
    /// Bits in which they differ.
    Xor,
    /// Logical conjunction of comparisons.
    And,
}

impl Arithmetic {
    /// Every operator; those that begin with another one's sign come before it.
    pub(crate) const ALL: [Arithmetic; 12] = [
        Arithmetic::And,
        Arithmetic::Equal,
        Arithmetic::LessEqual,
        Arithmetic::Less,
        Arithmetic::Add,
        Arithmetic::Sub,
        Arithmetic::Mul,
        Arithmetic::Div,
        Arithmetic::Rem,
        Arithmetic::Xor,
        Arithmetic::Min,
        Arithmetic::Max,
    ];

    /// The operator in texts, as in C, which has none for the last two.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Arithmetic::And => "&&",
            Arithmetic::Equal => "==",
            Arithmetic::LessEqual => "<=",
            Arithmetic::Less => "<",
            Arithmetic::Add => "+",
            Arithmetic::Sub => "-",
            Arithmetic::Mul => "*",
            Arithmetic::Div => "/",
            Arithmetic::Rem => "%",
            Arithmetic::Xor => "^",
            Arithmetic::Min => "min",
            Arithmetic::Max => "max",
        }
    }

    /// Whether the result is a truth and no index.
    pub fn is_truth(self) -> bool {
        matches!(self, Arithmetic::Less | Arithmetic::LessEqual | Arithmetic::Equal | Arithmetic::And)
    }
}

/// A part of the launch's coordinates.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Builtin {
    /// `threadIdx.x`.
    ThreadX,
    /// `threadIdx.y`.
    ThreadY,
    /// `blockIdx.x`; the block number on the CPU.
    BlockX,
    /// `blockIdx.y`.
    BlockY,
    /// `gridDim.y`.
    GridY,
}

/// How the compiler should treat a loop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LoopHint {
    /// As it likes.
    None,
    /// Unrolled wholly.
    Unroll,
    /// Unrolled by this factor, so that several loads are in flight.
    UnrollBy(u32),
    /// Iterations are independent: vectorise.
    Simd,
    /// The same of one segment of a split loop: no quotient by a constant changes in it, so that remainders grow as their dividends
    /// do.
    SimdSegment,
    /// The same of a loop that stores local arrays alone, whose elements beyond its end are stored later or never read: whole
    /// vectors are stored, and nothing has to be kept of what was there.
    SimdSpilling,
}

/// How a loop's variable goes on.
#[derive(Clone, PartialEq, Hash, Debug)]
pub enum Step {
    /// Adds the expression.
    Add(Expr),
    /// Halves it; the loop ends at 0.
    Halve,
}

/// A statement.
#[derive(Clone, PartialEq, Hash, Debug)]
pub enum Stmt {
    /// An immutable variable.
    Let {
        /// Which.
        var: Var,
        /// Its value.
        value: Expr,
    },
    /// A variable or an array begins to be; see [`Local`](super::variable::Local).
    Declare {
        /// Which.
        var: Var,
        /// First value of a plain variable; arrays are not initialised.
        init: Option<Expr>,
    },
    /// `target = value`.
    Assign {
        /// A name or an element.
        target: Expr,
        /// The new value.
        value: Expr,
    },
    /// `for (var = from; var < to; step)`.
    For {
        /// The loop's variable.
        var: Var,
        /// Where it starts.
        from: Expr,
        /// Where it ends; ignored with [`Step::Halve`].
        to: Expr,
        /// How it goes on.
        step: Step,
        /// How to compile it.
        hint: LoopHint,
        /// What is repeated.
        body: Vec<Stmt>,
    },
    /// Statements whose variables are their own.
    Block(Vec<Stmt>),
    /// A choice.
    If {
        /// The condition.
        condition: Expr,
        /// When it holds.
        then: Vec<Stmt>,
        /// When it does not.
        otherwise: Vec<Stmt>,
    },
    /// Copies `width` consecutive elements of a buffer into an array, as one access.
    VectorLoad {
        /// The array, of memory type.
        array: Var,
        /// First element in the array.
        at: Expr,
        /// The buffer.
        buffer: Var,
        /// First element in the buffer; a multiple of `width`.
        index: Expr,
        /// The element type.
        dtype: DType,
        /// Elements.
        width: u64,
    },
    /// Copies `width` consecutive elements of an array into a buffer, as one access.
    VectorStore {
        /// The array, of memory type.
        array: Var,
        /// First element in the array.
        at: Expr,
        /// The buffer.
        buffer: Var,
        /// First element in the buffer; a multiple of `width`.
        index: Expr,
        /// The element type.
        dtype: DType,
        /// Elements.
        width: u64,
    },
    /// Prefetches the cache line of an element of a buffer, or of a place beyond its end, where that does nothing (CPU).
    Prefetch {
        /// The buffer.
        buffer: Var,
        /// Its element, if there is one.
        index: Expr,
        /// Whether it is the first of consecutive elements that are streamed: then a line further on, by a distance that depends on
        /// the processor (`lz_prefetch_stream`).
        stream: bool,
    },
    /// Adds the products of six packed rows and a panel of packed columns to their sums, or begins these (CPU).
    MultiplyTile(Box<TileProduct>),
    /// Lays sixteen lines of numbers side by side (CPU).
    Turn(Box<Turning>),
    /// Makes pairs of packed terms, for products of BF16 (CPU).
    Pair(Box<Pairing>),
    /// Makes running results of neighbours (CPU).
    Scan(Box<Scanning>),
    /// Puts items in order.
    Sort(Box<Sorting>),
    /// Each thread of a warp gets its part of four 8 × 8 matrices of 16-bit elements from shared memory (CUDA): the thread of
    /// number `8 n + i` says where row `i` of matrix `n` is.
    LoadMatrices {
        /// The thread's parts: four `U32`, two elements each.
        parts: Var,
        /// Where the first of them goes.
        at: Expr,
        /// The array in shared memory.
        shared: Var,
        /// A row of eight elements.
        index: Expr,
        /// Its elements.
        dtype: DType,
        /// Whether rows become columns on the way.
        turns: bool,
    },
    /// Begins to copy neighbouring elements of a buffer to shared memory, as one access (CUDA): they are there when the thread
    /// has awaited its copies, for others after the next barrier.
    BeginCopy(Box<Copying>),
    /// The copies that the thread has begun since the last such statement are a group (CUDA), which may be empty.
    CommitCopies,
    /// Waits until no more than so many of the thread's last groups of copies are on their way (CUDA).
    AwaitCopies {
        /// How many.
        but: u32,
    },
    /// Copies of whole tiles, which one thread begins (CUDA, sm_90).
    Bulk(BulkStep),
    /// The threads of a warp add the product of two small matrices of 16-bit elements to their sums (CUDA).
    MultiplyMatrices(Box<MatrixProduct>),
    /// The four warps of a group begin to add the product of two matrices in shared memory to their sums, which nobody touches
    /// until it has been awaited (CUDA, sm_90).
    MultiplyGroup(Box<GroupProduct>),
    /// What comes before and behind such products.
    Products(ProductStep),
    /// A table of positions (CPU).
    Positions {
        /// The table.
        table: Var,
        /// What is in it.
        positions: Vec<u64>,
    },
    /// A table of input buffers of one type (CPU).
    Buffers {
        /// The table.
        table: Var,
        /// What is in it.
        buffers: Vec<Var>,
        /// Of their elements.
        dtype: DType,
    },
    /// An array is one of the buffers in a table (CPU).
    Part {
        /// The array.
        part: Var,
        /// The table.
        table: Var,
        /// Which of its buffers.
        number: Expr,
        /// Of their elements.
        dtype: DType,
    },
    /// The lanes of a warp, which is a row of the block, for which it is active carry out the body: those with equal
    /// keys one after the other, the first lane first. The other lanes' keys are none of theirs.
    InTurns {
        /// An index.
        key: Expr,
        /// A comparison.
        active: Expr,
        /// What they do.
        body: Vec<Stmt>,
    },
    /// Adds to an element of memory to which others add at the same time (CUDA): integers of 32 or 64 bits, which come to the same in
    /// any order.
    Add {
        /// The element.
        target: Expr,
        /// What is added.
        value: Expr,
        /// The type of both.
        dtype: DType,
    },
    /// All threads of the block wait for each other.
    Barrier,
    /// Counts this block's arrival for its row or column block, and sets the shared flag `is_last` in
    /// the one that finds all others there. The others are done.
    Arrive {
        /// The counters.
        counters: Var,
        /// Which counter.
        index: Expr,
        /// How many arrivals make the last.
        count: Expr,
    },
    /// The thread is done.
    Return,
}

/// Items in an array, and how they are sorted.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct Sorting {
    /// The array, of `I64`.
    pub items: Var,
    /// Where the items begin.
    pub at: Expr,
    /// Whether an item is two elements.
    pub wide: bool,
    /// How.
    pub by: SortBy,
}

/// A row that is sorted.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct SortedRow {
    /// Another array, or the same, with as much room to spare.
    pub spare: Var,
    /// From where on.
    pub spare_at: Expr,
    /// Items.
    pub count: Expr,
    /// So many of them are needed.
    pub wanted: Expr,
}

/// Ways to sort.
#[derive(Clone, PartialEq, Hash, Debug)]
pub enum SortBy {
    /// One row (CPU).
    Row(Box<SortedRow>),
    /// Eight rows side by side (CPU).
    Lanes {
        /// Items of each.
        count: Expr,
    },
    /// All rows of a block, by all of its threads, which wait for each other before and after it (CUDA).
    Block {
        /// Items of all rows.
        items: u64,
        /// Items of each: a power of two.
        length: u64,
        /// Threads of the block.
        threads: u64,
    },
}

/// Elements on their way to shared memory.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct Copying {
    /// The array in shared memory.
    pub shared: Var,
    /// Where the first goes; a multiple of `width`.
    pub at: Expr,
    /// The buffer.
    pub buffer: Var,
    /// Where the first is; a multiple of `width`.
    pub index: Expr,
    /// Of the elements.
    pub dtype: DType,
    /// Elements: 4, 8 or 16 bytes of them.
    pub width: u64,
    /// Where this does not hold, zeros come in their place.
    pub condition: Option<Expr>,
}

/// Parts that a thread has of 16 × 16 and 16 × 8 elements, and of their product's sums.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct MatrixProduct {
    /// Of the elements: F16 or BF16.
    pub dtype: DType,
    /// The array with the first factor's four parts, or with its eight elements.
    pub left: Var,
    /// Where they begin.
    pub left_at: Expr,
    /// The array with the second factor's two parts.
    pub right: Var,
    /// Where they begin.
    pub right_at: Expr,
    /// The array of sums, which are F32.
    pub sums: Var,
    /// Where the thread's four begin.
    pub sums_at: Expr,
}

/// Positions that [`Scanning`] combines among themselves.
pub const SCANNED_TOGETHER: usize = 16;

/// Neighbouring numbers that become running results, the same ones on registers of any width: sixteen at a time, each is
/// combined with the one before it, then with what is two, four and eight before, and at last with what all before the
/// sixteen come to.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct Scanning {
    /// How they are combined: by one operation.
    pub op: ReduceOp,
    /// Of the numbers.
    pub dtype: DType,
    /// The array that gets the results. What is there up to a multiple of sixteen is lost.
    pub to: Var,
    /// Where the first is put.
    pub to_at: Expr,
    /// The array of the numbers, another one; there is room up to a multiple of sixteen.
    pub from: Var,
    /// Where the first is.
    pub from_at: Expr,
    /// How many there are, at least one.
    pub count: Expr,
    /// The name or element with what comes before them, which becomes what comes before the next ones.
    pub running: Expr,
}
