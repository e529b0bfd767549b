//! How often accesses to shared memory ask a bank twice, counted access by access: of tests.

use rustc_hash::FxHashMap;

use super::stmt::{Arithmetic, Builtin, Expr, Step, Stmt};
use super::variable::{Space, Var};
use super::{Function, Nest, Parameter};
use crate::index::{Atom, IndexExpr};

/// Banks of 4 bytes that answer at once.
const BANKS: u64 = 32;

/// Threads of a warp.
const WARP: u64 = 32;

/// Rounds of a loop that are looked at: whatever the step, the slots take turns.
const ROUNDS: u64 = 16;

/// The largest number of words that an access of some warp asks one bank for: 1 if none waits.
pub(super) fn worst_conflict(nest: &Nest) -> u64 {
    let mut worst = 1;
    for function in &nest.functions {
        for warp in 0..u64::from(function.launch.block[0]).div_ceil(WARP) {
            let lanes = (0..WARP).map(|lane| Lane::new(nest, warp * WARP + lane)).collect();
            let mut traversal = Traversal { nest, function, lanes, worst: 1 };
            traversal.statements(&function.body.statements);
            worst = worst.max(traversal.worst);
        }
    }
    worst
}

struct Lane<'a> {
    nest: &'a Nest,
    thread: u64,
    values: FxHashMap<Var, u64>,
}

impl<'a> Lane<'a> {
    fn new(nest: &'a Nest, thread: u64) -> Lane<'a> {
        Lane { nest, thread, values: FxHashMap::default() }
    }

    fn value(&self, expr: &Expr) -> u64 {
        match expr {
            Expr::Int(value) => *value,
            Expr::Name(Var::Parameter(Parameter::Extent(axis))) => self.nest.kernel.axis(*axis).extent,
            Expr::Name(var) => self.values[var],
            Expr::Builtin(Builtin::ThreadX) => self.thread,
            Expr::Builtin(Builtin::GridY) => 2,
            Expr::Builtin(_) => 0,
            Expr::Index(index) => self.index(index) as u64,
            Expr::Wide(a) => self.value(a),
            Expr::Arithmetic(op, a, b) => {
                let (a, b) = (self.value(a), self.value(b));
                match op {
                    Arithmetic::Add => a + b,
                    Arithmetic::Sub => a - b,
                    Arithmetic::Mul => a * b,
                    Arithmetic::Div => a / b,
                    Arithmetic::Rem => a % b,
                    Arithmetic::Min => a.min(b),
                    Arithmetic::Max => a.max(b),
                    Arithmetic::Xor => a ^ b,
                    Arithmetic::Less => u64::from(a < b),
                    Arithmetic::LessEqual => u64::from(a <= b),
                    Arithmetic::Equal => u64::from(a == b),
                    Arithmetic::And => a & b,
                }
            }
            // The lane's own.
            Expr::ShuffleXor { value, mask, .. } if **mask == Expr::Int(0) => self.value(value),
            other => panic!("{other:?}"),
        }
    }

    fn index(&self, index: &IndexExpr) -> i64 {
        let atom = |atom: &Atom| match atom {
            Atom::Axis(axis) => self.values[&self.nest.kernel.position(*axis)] as i64,
            Atom::Div(of, by) => self.index(of) / by,
            Atom::Mod(of, by) => self.index(of) % by,
        };
        index.terms().iter().fold(index.constant_term(), |sum, (of, by)| sum + atom(of) * by)
    }
}

struct Traversal<'a> {
    nest: &'a Nest,
    function: &'a Function,
    lanes: Vec<Lane<'a>>,
    worst: u64,
}

impl Traversal<'_> {
    fn statements(&mut self, statements: &[Stmt]) {
        statements.iter().for_each(|stmt| self.statement(stmt));
    }

    fn bind(&mut self, var: Var, value: impl Fn(&Lane) -> u64) {
        for lane in &mut self.lanes {
            let value = value(lane);
            lane.values.insert(var, value);
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let { var, value } if matches!(self.ty(*var), super::stmt::Type::Index) => {
                self.bind(*var, |lane| lane.value(value));
            }
            Stmt::For { var, from, to, step: Step::Add(step), body, .. } => {
                let [from, to, step] = [from, to, step].map(|expr| self.lanes[0].value(expr));
                for round in (from..to).step_by(step as usize).take(ROUNDS as usize) {
                    self.bind(*var, |_| round);
                    self.statements(body);
                }
            }
            Stmt::Block(body) => self.statements(body),
            // Results: they are none of what is looked at, and so are their conditions.
            Stmt::If { condition, then, .. } if self.lanes[0].value(condition) == 1 => self.statements(then),
            Stmt::VectorLoad { buffer, index, width, .. }
            | Stmt::VectorStore { buffer, index, width, .. } => {
                self.access(*buffer, index, *width);
            }
            Stmt::BeginCopy(copying) => self.access(copying.shared, &copying.at, copying.width),
            Stmt::LoadMatrices { shared, index, .. } => self.access(*shared, index, 8),
            Stmt::Assign { target: Expr::Element(array, at), .. } => self.access(*array, at, 1),
            _ => {}
        }
    }

    fn ty(&self, var: Var) -> super::stmt::Type {
        match var {
            Var::Local(id) => self.function.body.locals[id.index()].ty,
            _ => super::stmt::Type::Index,
        }
    }

    /// An access of each lane: as many at a time as fill all banks once.
    fn access(&mut self, array: Var, at: &Expr, width: u64) {
        let Var::Local(id) = array else { return };
        let local = &self.function.body.locals[id.index()];
        if !matches!(local.space, Space::Shared(_)) {
            return;
        }
        let bytes = local.ty.bytes(4);
        let together = (BANKS * 4 / (width * bytes)).clamp(1, WARP) as usize;
        for lanes in self.lanes.chunks(together) {
            let mut words: Vec<u64> = Vec::new();
            for lane in lanes {
                let first = lane.value(at) * bytes;
                words.extend(first / 4..(first + width * bytes).div_ceil(4));
            }
            words.sort_unstable();
            words.dedup();
            for bank in 0..BANKS {
                let asked = words.iter().filter(|word| *word % BANKS == bank).count() as u64;
                self.worst = self.worst.max(asked);
            }
        }
        let _ = self.nest;
    }
}

#[cfg(test)]
mod tests {
    use crate::Language;
    use crate::ir::Kernel;
    use crate::nest::build;

    use super::worst_conflict;

    /// Through registers, and copied.
    const STAGES: [&str; 2] = ["", ", stages=2"];

    /// A product of matrices that are both in either order.
    fn kernel(dtype: &str, [rows, terms, columns]: [u64; 3], turned: [bool; 2]) -> Kernel {
        let wide = if dtype.contains("16") { "f32" } else { dtype };
        let left = if turned[0] { format!("i0 + r0 * {rows}") } else { format!("i0 * {terms} + r0") };
        let right = if turned[1] { format!("i1 * {terms} + r0") } else { format!("i1 + r0 * {columns}") };
        let [a, b, c] = [rows * terms, terms * columns, rows * columns];
        format!(
            "kernel product\n  map i0 < {rows}\n  map i1 < {columns}\n  reduce r0 < {terms}\n  \
             input in0: {dtype} [{a}]\n  input in1: {dtype} [{b}]\n  output out0: {dtype} [{c}]\n  \
             v0: {wide} = load in0[{left}]\n  v1: {wide} = load in1[{right}]\n  v2: {wide} = mul v0 v1\n  \
             v3: {wide} = reduce sum over r0 of v2\n  store out0[i0 * {columns} + i1] = v3\n"
        )
        .parse()
        .unwrap()
    }

    #[test]
    fn weights_of_rows_are_in_different_banks() {
        let text = "\
kernel attention
  map i0 < 256
  map i1 < 64
  reduce r0 < 256
  reduce r1 < 64
  input in0: DTYPE [16384]
  input in1: DTYPE [16384]
  input in2: DTYPE [16384]
  output out0: f32 [16384]
  v0: f32 = load in0[i0 * 64 + r1]
  v1: f32 = load in1[r0 * 64 + r1]
  v2: f32 = mul v0 v1
  v3: f32 = reduce sum over r1 of v2
  v4: f32 = reduce max over r0 of v3
  v5: f32 = sub v3 v4
  v6: f32 = exp v5
  v7: f32 = reduce sum_exp over r0 of v3
  v8: f32 = div v6 v7
  v9: f32 = load in2[r0 * 64 + i1]
  v10: f32 = mul v8 v9
  v11: f32 = reduce sum over r0 of v10
  store out0[i0 * 64 + i1] = v11
";
        let cases = [
            ("f32", ["tile=64x64, columns=64, depth=16", "tile=32x64, columns=64, depth=16"]),
            ("f16", ["tile=64x64, columns=64, depth=32, f16", "tile=32x64, columns=64, depth=32, f16"]),
        ];
        for (dtype, schedules) in cases {
            let kernel: Kernel = text.replace("DTYPE", dtype).parse().unwrap();
            for (schedule, stages) in schedules.iter().flat_map(|schedule| STAGES.map(|of| (schedule, of))) {
                let schedule = format!("row_contraction({schedule}{stages})").parse().unwrap();
                let nest = build(&kernel, Language::Cuda, &schedule).unwrap();
                assert_eq!(worst_conflict(&nest), 1, "{schedule}");
            }
        }
    }

    #[test]
    fn no_access_of_a_contraction_asks_a_bank_twice() {
        let of_threads =
            ["128x128, depth=8, thread=8x8", "128x64, depth=8, thread=8x4", "64x64, depth=8, thread=8x4"];
        let small = ["64x32, depth=8, thread=4x4", "32x32, depth=8, thread=4x4"];
        let of_warps = [
            "128x128, depth=32, warp=64x32, f16",
            "128x64, depth=32, warp=32x32, f16",
            "64x64, depth=32, warp=32x32, f16",
            "32x64, depth=32, warp=16x32, f16",
        ];
        let cases = [
            ("f32", of_threads.iter().chain(&small).collect::<Vec<_>>()),
            ("f64", of_threads[1..].iter().chain(&small).collect()),
            ("f16", of_warps.iter().collect()),
        ];
        for (dtype, tiles) in cases {
            for tile in tiles {
                // Whole vectors and single elements, along the terms and along their own axes.
                for sizes in [[256, 64, 256], [255, 63, 255]] {
                    let cases = [[false, false], [true, true]].into_iter();
                    for (turned, stages) in cases.flat_map(|turned| STAGES.map(|of| (turned, of))) {
                        let kernel = kernel(dtype, sizes, turned);
                        let schedule = format!("contraction(tile={tile}{stages})").parse().unwrap();
                        let nest = build(&kernel, Language::Cuda, &schedule).unwrap();
                        // Single elements of 16 bits, where nothing is aligned: chunks are for whole vectors.
                        let most = if dtype == "f16" && sizes[0] % 2 == 1 { 2 } else { 1 };
                        let worst = worst_conflict(&nest);
                        assert!(worst <= most, "{worst}: {dtype} {tile}{stages} {sizes:?} {turned:?}");
                    }
                }
            }
        }
    }
}
