//! Variables are defined before they are used, once, of the type of what they hold, and change only if they can.

use rustc_hash::FxHashMap;

use super::error::{NestError, array, name};
use crate::DType;
use crate::index::{AxisId, IndexExpr};
use crate::intrinsics::lanes::has_scan;
use crate::nest::stmt::{
    Arithmetic, BulkCopy, BulkStep, Copying, Expr, Scanning, SortBy, SortPart, SortedRow, Step, Stmt, Type,
};
use crate::nest::text::{expression, type_text};
use crate::nest::variable::{Space, Var};
use crate::nest::{Function, Nest, Parameter};

pub(super) fn check(nest: &Nest, function: &Function) -> Result<(), NestError> {
    let mut scope = Scope { nest, function, seen: Vec::new(), block: 0, names: FxHashMap::default() };
    for &parameter in &nest.parameters {
        scope.names.insert(scope.name(parameter.into()), vec![parameter.into()]);
    }
    scope.statements(&function.body.statements)
}

struct Scope<'a> {
    nest: &'a Nest,
    function: &'a Function,
    /// What is defined, innermost last.
    seen: Vec<Var>,
    /// How many of them are from outside of the block.
    block: usize,
    /// The variables of each name, innermost last.
    names: FxHashMap<String, Vec<Var>>,
}

const TRUTH: Type = Type::Register(DType::Bool);

/// Bytes of the widest access.
const MOST_BYTES: u64 = 16;

/// Whether values of the one can be taken for the other's.
fn fits(a: Type, b: Type) -> bool {
    match (a, b) {
        // C's arithmetic is on `int`, so that arrays of narrower values are of that.
        (Type::Register(a), Type::Register(b)) => int(a.compute()) == int(b.compute()),
        _ => a == b,
    }
}

fn int(dtype: DType) -> DType {
    match dtype {
        DType::Bool | DType::U8 | DType::I8 | DType::I16 => DType::I32,
        dtype => dtype,
    }
}

impl Scope<'_> {
    fn statements(&mut self, statements: &[Stmt]) -> Result<(), NestError> {
        let outside = self.seen.len();
        let around = std::mem::replace(&mut self.block, outside);
        statements.iter().try_for_each(|stmt| self.statement(stmt))?;
        self.block = around;
        self.forget(outside);
        Ok(())
    }

    fn forget(&mut self, outside: usize) {
        for var in self.seen.split_off(outside) {
            if let Some(same) = self.names.get_mut(&name(self.nest, self.function, var)) {
                same.pop();
            }
        }
    }

    fn statement(&mut self, stmt: &Stmt) -> Result<(), NestError> {
        match stmt {
            Stmt::Let { var, value } => {
                self.expect(value, self.scalar(*var)?)?;
                self.define(*var)
            }
            Stmt::Declare { var, init } => {
                if let Some(init) = init {
                    self.expect(init, self.scalar(*var)?)?;
                }
                self.define(*var)
            }
            Stmt::Assign { target, value } => {
                let ty = self.type_of(target)?;
                self.assignable(target)?;
                self.expect(value, ty)
            }
            Stmt::For { var, from, to, step, body, .. } => {
                self.expect(from, Type::Index)?;
                self.expect(to, Type::Index)?;
                let outside = self.seen.len();
                if self.seen.contains(var) {
                    return Err(NestError::Redefined(self.name(*var)));
                }
                self.define(*var)?;
                if let Step::Add(step) = step {
                    self.expect(step, Type::Index)?;
                }
                self.statements(body)?;
                self.forget(outside);
                Ok(())
            }
            Stmt::If { condition, then, otherwise } => {
                self.expect(condition, TRUTH)?;
                self.statements(then)?;
                self.statements(otherwise)
            }
            Stmt::InTurns { key, active, body } => {
                self.expect(key, Type::Index)?;
                self.expect(active, TRUTH)?;
                self.statements(body)
            }
            Stmt::Block(body) => self.statements(body),
            _ => self.memory(stmt),
        }
    }

    /// A statement without others in it, on arrays or on nothing.
    fn memory(&mut self, stmt: &Stmt) -> Result<(), NestError> {
        match stmt {
            Stmt::VectorLoad { array, at, buffer, index, dtype, width }
            | Stmt::VectorStore { array, at, buffer, index, dtype, width } => {
                if width * dtype.size() as u64 > MOST_BYTES {
                    return Err(NestError::Unsupported {
                        op: "an access of so many elements",
                        dtype: *dtype,
                    });
                }
                let is_load = matches!(stmt, Stmt::VectorLoad { .. });
                self.changes(if is_load { *array } else { *buffer })?;
                self.elements(*array, at, Type::Memory(*dtype))?;
                // What a kernel leaves for itself is numbers.
                let is_workspace = matches!(buffer, Var::Parameter(Parameter::Workspace(_)));
                match is_workspace && dtype.compute() == *dtype && *dtype != DType::Bool {
                    true => self.elements(*buffer, index, Type::Register(*dtype)),
                    false => self.elements(*buffer, index, Type::Memory(*dtype)),
                }
            }
            Stmt::MultiplyTile(_) | Stmt::Turn(_) | Stmt::Pair(_) | Stmt::Scan(_) | Stmt::Sort(_) => {
                self.helper(stmt)
            }
            Stmt::LoadMatrices { parts, at, shared, index, dtype, .. } => {
                self.changes(*parts)?;
                self.elements(*parts, at, Type::Register(DType::U32))?;
                self.elements(*shared, index, Type::Memory(*dtype))
            }
            Stmt::BeginCopy(copying) => {
                let Copying { shared, at, buffer, index, dtype, width, condition } = &**copying;
                if !matches!(width * dtype.size() as u64, 4 | 8 | MOST_BYTES) {
                    return Err(NestError::Unsupported { op: "a copy of so many elements", dtype: *dtype });
                }
                self.changes(*shared)?;
                self.elements(*shared, at, Type::Memory(*dtype))?;
                self.elements(*buffer, index, Type::Memory(*dtype))?;
                condition.iter().try_for_each(|condition| self.expect(condition, TRUTH))
            }
            Stmt::Bulk(step) => self.bulk(step),
            Stmt::MultiplyMatrices(product) => {
                self.changes(product.sums)?;
                let own = Type::Memory(product.dtype);
                let is_own = array(self.nest, self.function, product.left).is_some_and(|(ty, _)| ty == own);
                let of_left = if is_own { own } else { Type::Register(DType::U32) };
                self.elements(product.left, &product.left_at, of_left)?;
                self.elements(product.right, &product.right_at, Type::Register(DType::U32))?;
                self.elements(product.sums, &product.sums_at, Type::Register(DType::F32))
            }
            Stmt::MultiplyGroup(product) => {
                self.changes(product.sums)?;
                for factor in [&product.left, &product.right] {
                    self.elements(factor.array, &factor.at, Type::Memory(product.dtype))?;
                }
                self.elements(product.sums, &product.sums_at, Type::Register(DType::F32))
            }
            Stmt::Positions { table, .. } => self.define(*table),
            Stmt::Buffers { table, buffers, dtype } => {
                let of = |var: &Var| self.elements(*var, &Expr::Int(0), Type::Memory(*dtype));
                buffers.iter().try_for_each(of)?;
                self.define(*table)
            }
            Stmt::Part { part, table, number, dtype } => {
                self.elements(*table, number, Type::Memory(*dtype))?;
                self.define(*part)
            }
            Stmt::Prefetch { buffer, index, .. } => {
                self.type_of(&Expr::element(*buffer, index.clone())).map(drop)
            }
            Stmt::Arrive { counters, index, count } => {
                self.elements(*counters, index, Type::Index)?;
                self.expect(count, Type::Index)
            }
            Stmt::Add { target, value, dtype } => {
                if !dtype.is_int() || dtype.size() < 4 {
                    return Err(NestError::Unsupported { op: "an addition in memory", dtype: *dtype });
                }
                self.expect(target, Type::Register(*dtype))?;
                self.expect(value, Type::Register(*dtype))
            }
            Stmt::CommitCopies
            | Stmt::AwaitCopies { .. }
            | Stmt::Products(_)
            | Stmt::Barrier
            | Stmt::Return => Ok(()),
            // Not here.
            Stmt::Let { .. }
            | Stmt::Declare { .. }
            | Stmt::Assign { .. }
            | Stmt::For { .. }
            | Stmt::If { .. }
            | Stmt::InTurns { .. }
            | Stmt::Block(_) => Ok(()),
        }
    }

    fn bulk(&mut self, step: &BulkStep) -> Result<(), NestError> {
        let counters = Type::Register(DType::I64);
        match step {
            BulkStep::Expect { arrived, .. } => self.elements(*arrived, &Expr::Int(0), counters),
            BulkStep::Begin(copy) => {
                let BulkCopy { map, positions, shared, at, arrived, slot } = &**copy;
                let known = self.nest.maps.get(*map as usize);
                let Some(map) = known.filter(|map| map.axes.len() == positions.len()) else {
                    return Err(NestError::Unsupported { op: "a tile of no map", dtype: DType::I64 });
                };
                let dtype = self.nest.kernel.buffers[map.buffer.index()].dtype;
                self.changes(*shared)?;
                self.elements(*shared, at, Type::Memory(dtype))?;
                self.elements(*arrived, slot, counters)?;
                positions.iter().try_for_each(|position| self.expect(position, Type::Index))
            }
            BulkStep::Await(of) => {
                self.elements(of.arrived, &of.slot, counters)?;
                self.expect(&of.round, Type::Index)
            }
        }
    }

    /// A statement that is a helper function's call on a core.
    fn helper(&mut self, stmt: &Stmt) -> Result<(), NestError> {
        match stmt {
            Stmt::MultiplyTile(tile) => {
                let float = Type::Register(tile.dtype.compute());
                self.changes(tile.sums)?;
                self.expect(&tile.depth, Type::Index)?;
                self.expect(&tile.width, Type::Index)?;
                self.type_of(&tile.adds)?;
                tile.rows.iter().try_for_each(|rows| self.expect(rows, Type::Index))?;
                // Packed columns are pairs in numbers of 32 bits.
                let of_columns = if tile.few { tile.dtype } else { tile.dtype.compute() };
                self.numbers(tile.left, &tile.left_at, tile.dtype)?;
                self.numbers(tile.right, &tile.right_at, of_columns)?;
                self.elements(tile.sums, &tile.sums_at, float)
            }
            Stmt::Pair(pairing) => {
                self.changes(pairing.array)?;
                self.expect(&pairing.depth, Type::Index)?;
                self.expect(&pairing.count, Type::Index)?;
                self.elements(pairing.array, &pairing.at, Type::Register(DType::F32))
            }
            Stmt::Turn(turning) => {
                self.changes(turning.to)?;
                self.expect(&turning.depth, Type::Index)?;
                turning.rows.iter().try_for_each(|rows| self.expect(rows, Type::Index))?;
                [(turning.to, &turning.to_at), (turning.from, &turning.from_at)].into_iter().try_for_each(
                    |(var, at)| match array(self.nest, self.function, var) {
                        Some((own, _)) if own == Type::Memory(turning.dtype) => self.elements(var, at, own),
                        _ => self.elements(var, at, Type::Register(turning.dtype.compute())),
                    },
                )
            }
            Stmt::Scan(scanning) => {
                let Scanning { op, dtype, to, to_at, from, from_at, count, running } = &**scanning;
                if !has_scan(*op, *dtype) {
                    return Err(NestError::Unsupported { op: "running results in registers", dtype: *dtype });
                }
                let ty = Type::Register(*dtype);
                self.changes(*to)?;
                self.assignable(running)?;
                self.expect(running, ty)?;
                self.expect(count, Type::Index)?;
                self.elements(*to, to_at, ty)?;
                self.elements(*from, from_at, ty)
            }
            Stmt::Sort(sorting) => {
                self.changes(sorting.items)?;
                self.elements(sorting.items, &sorting.at, Type::Register(DType::I64))?;
                match &sorting.by {
                    SortBy::Row(row) => {
                        let SortedRow { spare, spare_at, count, wanted } = &**row;
                        self.changes(*spare)?;
                        self.elements(*spare, spare_at, Type::Register(DType::I64))?;
                        self.expect(count, Type::Index)?;
                        self.expect(wanted, Type::Index)
                    }
                    SortBy::Lanes { count } => self.expect(count, Type::Index),
                    SortBy::Block { .. } => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn name(&self, var: Var) -> String {
        name(self.nest, self.function, var)
    }

    /// An axis may be bound again further in, to another position, but by no loop and not in the same block.
    fn define(&mut self, var: Var) -> Result<(), NestError> {
        let seen = if matches!(var, Var::Local(_)) { &self.seen } else { &self.seen[self.block..] };
        if seen.contains(&var) {
            return Err(NestError::Redefined(self.name(var)));
        }
        self.seen.push(var);
        self.names.entry(self.name(var)).or_default().push(var);
        Ok(())
    }

    fn defined(&self, var: Var) -> Result<(), NestError> {
        let is_there = match var {
            // An input that is written over goes by the output's name.
            Var::Parameter(Parameter::Buffer(id)) if self.nest.kernel.is_written_over(id) => return Ok(()),
            Var::Parameter(parameter) => self.nest.parameters.contains(&parameter),
            Var::Axis(_) | Var::Lane | Var::Local(_) => self.seen.contains(&var),
        };
        let name = self.name(var);
        match self.names.get(&name).and_then(|same| same.last()) {
            _ if !is_there => Err(NestError::Undefined(name)),
            Some(nearest) if *nearest != var => Err(NestError::Hidden(name)),
            _ => Ok(()),
        }
    }

    fn axes(&self, index: &IndexExpr) -> Result<(), NestError> {
        let kernel = &self.nest.kernel;
        let var = |axis: AxisId| match kernel.is_offset(axis) {
            true => Var::Parameter(Parameter::Offset(axis)),
            false => kernel.position(axis),
        };
        index.axes().into_iter().try_for_each(|axis| self.defined(var(axis)))
    }

    /// The type of a variable that is no array.
    fn scalar(&self, var: Var) -> Result<Type, NestError> {
        match var {
            Var::Axis(_) | Var::Lane | Var::Parameter(Parameter::Extent(_) | Parameter::Offset(_)) => {
                Ok(Type::Index)
            }
            Var::Parameter(Parameter::Argument(id)) => {
                Ok(Type::Register(self.nest.kernel.arguments[id.index()].value.dtype()))
            }
            Var::Local(id) if self.function.body.locals[id.index()].len.is_none() => {
                Ok(self.function.body.locals[id.index()].ty)
            }
            Var::Parameter(_) | Var::Local(_) => Err(self.mistyped("scalar", &Expr::Name(var))),
        }
    }

    fn assignable(&self, target: &Expr) -> Result<(), NestError> {
        match target {
            Expr::Name(var) | Expr::Element(var, _) => self.changes(*var),
            _ => Err(self.mistyped("variable or element", target)),
        }
    }

    fn changes(&self, var: Var) -> Result<(), NestError> {
        let changes = match var {
            Var::Parameter(Parameter::Buffer(id)) => self.nest.kernel.buffers[id.index()].is_output,
            Var::Parameter(Parameter::Workspace(_)) => true,
            Var::Local(id) => self.function.body.locals[id.index()].space != Space::Constant,
            Var::Axis(_) | Var::Lane | Var::Parameter(_) => false,
        };
        if changes { Ok(()) } else { Err(NestError::Immutable(self.name(var))) }
    }

    /// An array of elements of that type, and an index.
    fn elements(&self, var: Var, at: &Expr, ty: Type) -> Result<(), NestError> {
        self.defined(var)?;
        self.expect(at, Type::Index)?;
        match array(self.nest, self.function, var) {
            Some((own, _)) if fits(own, ty) => Ok(()),
            _ => Err(self.mistyped(&format!("{} array", type_text(ty)), &Expr::Name(var))),
        }
    }

    /// The same of numbers that are in memory what they are in registers.
    fn numbers(&self, var: Var, at: &Expr, dtype: DType) -> Result<(), NestError> {
        // What is multiplied in pairs is as memory has it.
        let is_plain = dtype.compute() == dtype && int(dtype) == dtype || dtype == DType::BF16;
        let in_memory = Type::Memory(dtype);
        match array(self.nest, self.function, var) {
            Some((own, _)) if is_plain && own == in_memory => self.elements(var, at, in_memory),
            _ => self.elements(var, at, Type::Register(dtype.compute())),
        }
    }

    fn mistyped(&self, wanted: &str, expr: &Expr) -> NestError {
        let expr = expression(self.nest, self.function, expr);
        NestError::Mistyped { wanted: wanted.into(), expr }
    }

    fn expect(&self, expr: &Expr, wanted: Type) -> Result<(), NestError> {
        match fits(self.type_of(expr)?, wanted) {
            true => Ok(()),
            false => Err(self.mistyped(&type_text(wanted), expr)),
        }
    }

    /// The type of an expression, whose operands have the types that it needs.
    fn type_of(&self, expr: &Expr) -> Result<Type, NestError> {
        let register = |dtype: DType| Ok(Type::Register(dtype));
        match expr {
            Expr::Name(var) => self.defined(*var).and_then(|()| self.scalar(*var)),
            Expr::Int(_) | Expr::Builtin(_) => Ok(Type::Index),
            Expr::Index(index) => self.axes(index).map(|()| Type::Index),
            Expr::Wide(a) => self.type_of(a),
            Expr::Position(index) => self.axes(index).and_then(|()| register(DType::I64)),
            Expr::InBounds(bounds) => {
                bounds.iter().try_for_each(|bound| self.axes(&bound.expr)).map(|()| TRUTH)
            }
            Expr::Arithmetic(op, a, b) => {
                let operands = if *op == Arithmetic::And { TRUTH } else { Type::Index };
                self.expect(a, operands)?;
                self.expect(b, operands)?;
                Ok(if op.is_truth() { TRUTH } else { Type::Index })
            }
            Expr::Literal(value) => register(value.dtype()),
            Expr::Random { dtype, seed, index } => {
                self.defined(*seed)?;
                self.axes(index).and_then(|()| register(*dtype))
            }
            Expr::Checked { position, extent, .. } => {
                self.expect(position, Type::Register(DType::I64))?;
                self.expect(extent, Type::Index).map(|()| Type::Index)
            }
            Expr::ToIndex(a) => self.expect(a, Type::Register(DType::I64)).map(|()| Type::Index),
            Expr::Unary(op, dtype, _) if !op.accepts(*dtype) => {
                Err(NestError::Unsupported { op: op.name(), dtype: *dtype })
            }
            Expr::Binary(op, dtype, ..) if !op.accepts(*dtype) => {
                Err(NestError::Unsupported { op: op.name(), dtype: *dtype })
            }
            Expr::Unary(op, dtype, a) => {
                self.expect(a, Type::Register(*dtype)).and_then(|()| register(op.result(*dtype)))
            }
            Expr::Binary(op, dtype, a, b) => {
                self.expect(a, Type::Register(*dtype))?;
                self.expect(b, Type::Register(*dtype))?;
                register(op.result(*dtype))
            }
            Expr::BriefExp(a) => {
                self.expect(a, Type::Register(DType::F32)).and_then(|()| register(DType::F32))
            }
            Expr::ZeroTimes(dtype, first, count) => {
                let (Expr::Element(var, _), DType::F16 | DType::BF16) = (&**first, *dtype) else {
                    return Err(NestError::Unsupported { op: "zero_times", dtype: *dtype });
                };
                let has_all = array(self.nest, self.function, *var).is_some_and(|(_, len)| len >= *count);
                match has_all && count.is_multiple_of(2) {
                    true => self.expect(first, Type::Memory(*dtype)).and_then(|()| register(DType::F32)),
                    false => Err(self.mistyped("array of so many elements", first)),
                }
            }
            Expr::MulAdd(dtype, operands) => {
                let is_of = |operand| self.expect(operand, Type::Register(*dtype));
                operands.iter().try_for_each(is_of).and_then(|()| register(*dtype))
            }
            Expr::Quotient(dtype, operands) => {
                let is_of = |operand| self.expect(operand, Type::Register(*dtype));
                operands.iter().try_for_each(is_of).and_then(|()| register(*dtype))
            }
            Expr::Select(condition, a, b) => {
                self.expect(condition, TRUTH)?;
                let ty = self.type_of(a)?;
                self.expect(b, ty).map(|()| ty)
            }
            Expr::Cast { from, to, operand } => {
                self.expect(operand, Type::Register(*from)).and_then(|()| register(*to))
            }
            Expr::Element(var, at) => {
                let ty = array(self.nest, self.function, *var).map(|(ty, _)| ty);
                let ty = ty.ok_or_else(|| self.mistyped("array", &Expr::Name(*var)))?;
                self.elements(*var, at, ty).map(|()| ty)
            }
            Expr::FromMemory(dtype, a) => {
                self.expect(a, Type::Memory(*dtype)).and_then(|()| register(*dtype))
            }
            Expr::ToMemory(dtype, a) => self.expect(a, Type::Register(*dtype)).map(|()| Type::Memory(*dtype)),
            Expr::Sort { part, dtype, operands, .. } => self.sort_part(*part, *dtype, operands),
            Expr::Votes(a) | Expr::VotesBefore(a) => self.expect(a, TRUTH).map(|()| Type::Index),
            Expr::ShuffleUp { value, delta: lane } | Expr::ShuffleXor { value, mask: lane, .. } => {
                self.expect(lane, Type::Index).and_then(|()| self.type_of(value))
            }
        }
    }

    fn sort_part(&self, part: SortPart, dtype: DType, [a, b]: &[Expr; 2]) -> Result<Type, NestError> {
        let item = Type::Register(DType::I64);
        match part {
            SortPart::Item | SortPart::Place => {
                self.expect(a, Type::Register(dtype))?;
                self.expect(b, Type::Index).map(|()| item)
            }
            SortPart::Key => self.expect(a, Type::Register(dtype)).map(|()| item),
            SortPart::Value => {
                self.expect(a, item)?;
                self.expect(b, item).map(|()| Type::Register(dtype))
            }
            SortPart::Position => self.expect(a, item).map(|()| item),
        }
    }
}
