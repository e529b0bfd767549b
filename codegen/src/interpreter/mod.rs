//! Loop nests without a compiler: statement by statement, for all threads of a block at once.
//!
//! So a schedule is tested by what its nest computes, in milliseconds. A statement is carried out by all threads that come
//! to it before the next one is, which is what makes exchanges between them plain reads; that barriers are where they must
//! be is the nest's verifier's to say. Every access is checked: that it is within its array, that a vector is at a multiple
//! of its width, that what is read has been written, that all elements of the outputs are, and that counters are left as
//! they were found. Blocks run one after the other.

mod bulk;
mod expression;
mod statement;
#[cfg(test)]
mod tests;

use std::fmt;

use rustc_hash::FxHashMap;

use crate::index::AxisId;
use crate::ir::{ArgumentId, AxisKind, BufferId};
use crate::nest::stmt::{GroupProduct, Type};
use crate::nest::variable::{Local, LocalId, Var};
use crate::nest::{Function, Nest, Parameter};
use crate::{DType, Language, Scalar};

/// What a nest is called with.
pub struct Call<'a> {
    /// The values of its scalar arguments.
    pub arguments: &'a [Scalar],
    /// The position of each offset.
    pub offset: &'a dyn Fn(AxisId) -> u64,
    /// The bytes of its inputs, in order.
    pub inputs: &'a [&'a [u8]],
}

/// What a nest gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Results {
    /// The bytes of its outputs, in order.
    pub outputs: Vec<Vec<u8>>,
    /// A check that failed, and the value that is no position.
    pub failed: Option<(u32, i64)>,
}

/// What a nest does that none may.
///
/// ```
/// let error = lazuli_codegen::interpreter::Fault("element 4 of in0 is read, which has 4".into());
/// assert_eq!(error.to_string(), "element 4 of in0 is read, which has 4");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault(pub String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

type Result<T> = std::result::Result<T, Fault>;

fn broken(message: impl Into<String>) -> Fault {
    Fault(message.into())
}

/// A number of a nest.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Value {
    /// Of index arithmetic; a truth is 1 or 0.
    Index(i64),
    Number(Scalar),
}

impl Value {
    fn truth(self) -> bool {
        match self {
            Value::Index(index) => index != 0,
            Value::Number(number) => number.is_nonzero(),
        }
    }

    fn index(self) -> i64 {
        match self {
            Value::Index(index) => index,
            Value::Number(number) => number.as_i64(),
        }
    }

    /// As a variable of the type holds it.
    fn held(self, ty: Type) -> Value {
        let dtype = match ty {
            Type::Index => return Value::Index(self.index()),
            Type::Register(dtype) => dtype.compute(),
            Type::Memory(dtype) => dtype,
        };
        Value::Number(self.number(dtype))
    }

    /// As a number of a dtype.
    fn number(self, dtype: DType) -> Scalar {
        match self {
            Value::Index(index) if dtype == DType::Bool => Scalar::from_bool(index != 0),
            Value::Index(index) => Scalar::from_i64(dtype, index),
            Value::Number(number) => number.cast(dtype),
        }
    }
}

/// The elements of an array; `None` where nothing has been written.
struct Array {
    ty: Type,
    elements: Vec<Option<Value>>,
}

impl Array {
    fn new(ty: Type, len: u64) -> Array {
        Array { ty, elements: vec![None; len as usize] }
    }

    fn zeros(ty: Type, len: u64) -> Array {
        Array { ty, elements: vec![Some(Value::Index(0).held(ty)); len as usize] }
    }
}

/// What a thread knows by a name.
enum Slot {
    Nothing,
    Plain(Option<Value>),
    Array(Array),
    Positions(Vec<u64>),
    Buffers(Vec<Var>),
    /// One of them.
    Alias(Var),
}

/// What is of a thread alone.
struct Thread {
    x: u32,
    y: u32,
    locals: Vec<Slot>,
    axes: Vec<Option<i64>>,
    lane: Option<i64>,
    is_done: bool,
    copies: Vec<Copied>,
    /// Groups of copies that it has committed.
    groups: u32,
    /// Products of its group of warps that it has begun, and groups of them that it has committed.
    products: Vec<Begun>,
    product_groups: u32,
}

/// A product that is under way: what a thread adds to its sums when it has been awaited.
struct Begun {
    product: GroupProduct,
    left: i64,
    right: i64,
    sums: i64,
    /// Its number in the group of warps.
    thread: u64,
    group: u32,
}

/// What a thread copies: it is where it belongs when that has been awaited.
struct Copied {
    to: Var,
    at: i64,
    values: Vec<Value>,
    group: u32,
}

/// What a block knows of its copies of whole tiles.
#[derive(Default)]
struct Bulk {
    /// Copies of a round.
    copies: FxHashMap<Var, u32>,
    /// Those that have arrived in a slot since the block began.
    arrived: FxHashMap<(Var, i64), u32>,
    under_way: Vec<UnderWay>,
}

/// A tile that is where it belongs when its round has been awaited.
struct UnderWay {
    slot: (Var, i64),
    to: Var,
    elements: Vec<(i64, Value)>,
}

/// A function under way, in one of its blocks.
struct Machine<'a> {
    nest: &'a Nest,
    language: Language,
    call: &'a Call<'a>,
    /// What kernels read and write.
    buffers: Vec<Array>,
    workspaces: Vec<Array>,
    locals: &'a [Local],
    threads: Vec<Thread>,
    shared: FxHashMap<LocalId, Array>,
    bulk: Bulk,
    block: [u64; 2],
    blocks_y: u64,
    failed: Option<(u32, i64)>,
}

/// Runs a nest.
///
/// ```
/// use lazuli_codegen::interpreter::{Call, run};
/// use lazuli_codegen::nest::Nest;
/// use lazuli_codegen::syntax::Cursor;
///
/// let text = "\
/// nest c
/// kernel negatives
///   map i0 < 2
///   input in0: f32 [2]
///   output out0: f32 [2]
/// function negatives threads [1, 1, 1] per_block 1 splits 1 shared 0 items 1 = 1
///   for i0 = 0 to 2 step 1 {
///     set out0[i0] = to_memory.f32(neg.f32(from_memory.f32(in0[i0])))
///   }
/// ";
/// let (language, nest) = Nest::parse(&mut Cursor::new(text))?;
/// let input: Vec<u8> = [1.0f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
/// let call = Call { arguments: &[], offset: &|_| 0, inputs: &[&input] };
/// let results = run(&nest, language, &call)?;
/// assert_eq!(results.outputs[0], [-1.0f32, 2.0].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What it does that no nest may, see above.
pub fn run(nest: &Nest, language: Language, call: &Call<'_>) -> Result<Results> {
    let kernel = &nest.kernel;
    let mut inputs = call.inputs.iter();
    let mut buffers = Vec::new();
    for buffer in &kernel.buffers {
        let ty = Type::Memory(buffer.dtype);
        if buffer.is_output {
            buffers.push(Array::new(ty, buffer.elements));
            continue;
        }
        let bytes =
            inputs.next().filter(|bytes| bytes.len() as u64 == buffer.elements * buffer.dtype.size() as u64);
        let bytes = bytes.ok_or_else(|| broken("a nest is called with too few or too short inputs"))?;
        let element = |bytes: &[u8]| {
            let bits = bytes.iter().rev().fold(0, |bits: u64, &byte| bits << 8 | u64::from(byte));
            Some(Value::Number(Scalar::from_bits(buffer.dtype, bits)))
        };
        buffers.push(Array { ty, elements: bytes.chunks_exact(buffer.dtype.size()).map(element).collect() });
    }
    let workspaces = nest.workspaces.iter().map(|space| match space.zeroed {
        true => Array::zeros(Type::Register(space.dtype), space.elements),
        false => Array::new(Type::Register(space.dtype), space.elements),
    });
    let mut machine = Machine {
        nest,
        language,
        call,
        buffers,
        workspaces: workspaces.collect(),
        locals: &[],
        threads: Vec::new(),
        shared: FxHashMap::default(),
        bulk: Bulk::default(),
        block: [0; 2],
        blocks_y: 1,
        failed: None,
    };
    if kernel.buffers.iter().filter(|buffer| buffer.is_output).any(|buffer| buffer.elements > 0) {
        nest.functions.iter().try_for_each(|function| machine.function(function))?;
    }
    machine.results()
}

impl<'a> Machine<'a> {
    fn function(&mut self, function: &'a Function) -> Result<()> {
        let [columns, rows, _] = function.launch.grid();
        let [width, height, _] = function.launch.block;
        self.locals = &function.body.locals;
        self.blocks_y = rows;
        for y in 0..rows {
            for x in 0..columns {
                self.block = [x, y];
                self.shared.clear();
                self.bulk = Bulk::default();
                self.threads = (0..width * height).map(|n| self.thread(n % width, n / width)).collect();
                let all: Vec<usize> = (0..self.threads.len()).collect();
                self.statements(&function.body.statements, &all)?;
            }
        }
        Ok(())
    }

    fn thread(&self, x: u32, y: u32) -> Thread {
        let locals = self.locals.iter().map(|_| Slot::Nothing).collect();
        Thread {
            x,
            y,
            locals,
            axes: vec![None; self.nest.kernel.axes.len()],
            lane: None,
            is_done: false,
            copies: Vec::new(),
            groups: 0,
            products: Vec::new(),
            product_groups: 0,
        }
    }

    fn results(self) -> Result<Results> {
        for (space, array) in self.nest.workspaces.iter().zip(&self.workspaces) {
            let is_zero = |element: &Option<Value>| element.is_some_and(|value| !value.truth());
            if space.zeroed && !array.elements.iter().all(is_zero) {
                return Err(broken(format!("{} is not left as zeros", space.name)));
            }
        }
        let mut outputs = Vec::new();
        for (buffer, array) in self.nest.kernel.buffers.iter().zip(&self.buffers) {
            if !buffer.is_output {
                continue;
            }
            let mut bytes = Vec::with_capacity(array.elements.len() * buffer.dtype.size());
            for (at, element) in array.elements.iter().enumerate() {
                let Some(Value::Number(number)) = element else {
                    return Err(broken(format!("element {at} of {} is not written", buffer.name)));
                };
                bytes.extend(number.to_bits().to_le_bytes().into_iter().take(buffer.dtype.size()));
            }
            outputs.push(bytes);
        }
        Ok(Results { outputs, failed: self.failed })
    }

    /// The name of a variable, for errors.
    fn name(&self, var: Var) -> String {
        self.nest.name_of(self.locals, var)
    }

    /// The value of a plain variable or parameter.
    fn value_of(&self, var: Var, thread: usize) -> Result<Value> {
        let of_thread = &self.threads[thread];
        let value = match var {
            Var::Axis(axis) => self.position(axis, thread).map(Value::Index),
            Var::Lane => of_thread.lane.map(Value::Index),
            Var::Parameter(Parameter::Extent(axis)) => {
                Some(Value::Index(self.nest.kernel.axis(axis).extent as i64))
            }
            Var::Parameter(Parameter::Offset(axis)) => Some(Value::Index((self.call.offset)(axis) as i64)),
            Var::Parameter(Parameter::Argument(ArgumentId(number))) => {
                self.call.arguments.get(number as usize).copied().map(Value::Number)
            }
            Var::Parameter(
                Parameter::Buffer(_) | Parameter::Checks | Parameter::Workspace(_) | Parameter::Map(_),
            ) => None,
            Var::Local(id) => match of_thread.locals[id.index()] {
                Slot::Plain(value) => value,
                _ => None,
            },
        };
        value.ok_or_else(|| broken(format!("{} has no value", self.name(var))))
    }

    /// The position along an axis, where a thread has one.
    fn position(&self, axis: AxisId, thread: usize) -> Option<i64> {
        let of_kernel = self.nest.kernel.axis(axis);
        match of_kernel.kind {
            AxisKind::Offset { .. } => Some((self.call.offset)(axis) as i64),
            _ if of_kernel.is_lane => self.threads[thread].lane,
            _ => self.threads[thread].axes[axis.0 as usize],
        }
    }

    fn set(&mut self, var: Var, thread: usize, value: Value) -> Result<()> {
        let of_thread = &mut self.threads[thread];
        match var {
            Var::Axis(axis) => of_thread.axes[axis.0 as usize] = Some(value.index()),
            Var::Lane => of_thread.lane = Some(value.index()),
            Var::Local(id) => {
                of_thread.locals[id.index()] = Slot::Plain(Some(value.held(self.locals[id.index()].ty)));
            }
            Var::Parameter(_) => return Err(broken(format!("{} is assigned", self.name(var)))),
        }
        Ok(())
    }

    fn local(&self, var: Var) -> Option<(LocalId, &'a Local)> {
        match var {
            Var::Local(id) => Some((id, &self.locals[id.index()])),
            Var::Axis(_) | Var::Lane | Var::Parameter(_) => None,
        }
    }

    fn array(&self, var: Var, thread: usize) -> Result<&Array> {
        let found = match var {
            Var::Parameter(Parameter::Buffer(BufferId(number))) => self.buffers.get(number as usize),
            Var::Parameter(Parameter::Workspace(number)) => self.workspaces.get(number),
            Var::Local(id) => match &self.threads[thread].locals[id.index()] {
                Slot::Array(array) => Some(array),
                Slot::Alias(part) => return self.array(*part, thread),
                _ => self.shared.get(&id),
            },
            Var::Axis(_) | Var::Lane | Var::Parameter(_) => None,
        };
        found.ok_or_else(|| broken(format!("{} is no array", self.name(var))))
    }

    fn read(&self, var: Var, at: i64, thread: usize) -> Result<Value> {
        if let Some((id, _)) = self.local(var)
            && let Slot::Positions(table) = &self.threads[thread].locals[id.index()]
        {
            let found = usize::try_from(at).ok().and_then(|at| table.get(at));
            let found =
                found.ok_or_else(|| broken(format!("position {at} of {} is read", self.name(var))))?;
            return Ok(Value::Index(*found as i64));
        }
        let array = self.array(var, thread)?;
        let element = usize::try_from(at).ok().and_then(|at| array.elements.get(at));
        let element = element.ok_or_else(|| {
            broken(format!("element {at} of {} is read, which has {}", self.name(var), array.elements.len()))
        })?;
        element
            .ok_or_else(|| broken(format!("element {at} of {} is read before it is written", self.name(var))))
    }

    fn write(&mut self, var: Var, at: i64, thread: usize, value: Value) -> Result<()> {
        self.put_at(var, at, thread, Some(value))
    }

    /// Makes an element a value, or nothing that has been written.
    fn put_at(&mut self, var: Var, at: i64, thread: usize, value: Option<Value>) -> Result<()> {
        let name = || self.name(var);
        let (ty, length) = self.array(var, thread).map(|array| (array.ty, array.elements.len()))?;
        let Some(at) = usize::try_from(at).ok().filter(|&at| at < length) else {
            return Err(broken(format!("element {at} of {} is written, which has {length}", name())));
        };
        let array = match var {
            Var::Parameter(Parameter::Buffer(BufferId(number))) => self.buffers.get_mut(number as usize),
            Var::Parameter(Parameter::Workspace(number)) => self.workspaces.get_mut(number),
            Var::Local(id) => match &mut self.threads[thread].locals[id.index()] {
                Slot::Array(array) => Some(array),
                _ => self.shared.get_mut(&id),
            },
            Var::Axis(_) | Var::Lane | Var::Parameter(_) => None,
        };
        if let Some(array) = array {
            array.elements[at] = value.map(|value| value.held(ty));
        }
        Ok(())
    }
}
