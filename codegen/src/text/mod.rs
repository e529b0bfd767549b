//! From a loop nest to text. Nothing is decided here: the two languages differ in how they spell
//! things ([`cuda`], [`c`]), not in what is done.

mod batch;
mod c;
mod calls;
mod cuda;
mod expr;
mod lanes;
mod pattern;
mod segment;
mod streams;

use crate::batch::Batch;
use crate::intrinsics::lanes::Lanes;
use crate::intrinsics::{Helpers, register_type};
use crate::ir::Kernel;
use crate::nest::stmt::{Arithmetic, Expr, LoopHint, Step, Stmt, Type};
use crate::nest::variable::{Local, Space, Var};
use crate::nest::{Function, Nest, Parameter, parameter_name};
use crate::{Language, intrinsics};

pub use pattern::Filled;
pub(crate) use pattern::{Pattern, has_stand_ins, number_of_stand_in, print as print_known};

/// The shared memory that a launch provides.
const BLOCK_MEMORY: &str = "block_memory";

/// Items of a list in a line.
const LINE: usize = 16;

/// The source of a scheduled kernel: helpers and functions, ready for the compiler.
pub fn print(nest: &Nest, language: Language) -> String {
    match language {
        Language::Cuda => cuda::print(nest),
        Language::C => c::print(nest, streams::condition(nest).as_deref()),
    }
}

/// The source of several such kernels in one.
pub fn print_batch(nest: &Nest, language: Language, batch: &Batch) -> String {
    match language {
        Language::Cuda => batch::print_cuda(nest, batch),
        Language::C => batch::print_c(nest, batch),
    }
}

impl Nest {
    /// The source of the nest, ready for the compiler.
    ///
    /// ```
    /// use lazuli_codegen::Language;
    /// use lazuli_codegen::nest::Nest;
    /// use lazuli_codegen::syntax::Cursor;
    ///
    /// let text = "\
    /// nest c
    /// kernel sevens
    ///   map i0 < 100
    ///   output out0: f32 [100]
    /// function sevens threads [1, 1, 1] per_block 1 splits 1 shared 0 items 1 = 1
    ///   for i0 = 0 to 100 step 1 {
    ///     set out0[i0] = to_memory.f32(literal(f32 7))
    ///   }
    /// ";
    /// let (_, nest) = Nest::parse(&mut Cursor::new(text))?;
    /// assert!(nest.source(Language::C).contains("out0[i0] = 7.0f;"));
    /// # Ok::<(), lazuli_codegen::ParseError>(())
    /// ```
    pub fn source(&self, language: Language) -> String {
        print(self, language)
    }
}

/// Prints the statements of one function.
struct Printer<'a> {
    nest: &'a Nest,
    kernel: &'a Kernel,
    /// The variables of the function that is printed.
    locals: &'a [Local],
    language: Language,
    /// Whether loop variables are 64-bit numbers.
    wide_index: bool,
    /// Whether indices are 64-bit numbers: with loop variables, or on their own.
    is_wide: bool,
    helpers: Helpers,
    /// The vectors of C.
    lanes: Lanes,
    text: String,
    depth: usize,
    /// What CUDA's functions call the number of their block.
    block: &'static str,
    /// Whether results may be stored around the caches (C).
    streams: bool,
    /// Local arrays of whole vectors (C).
    rooms: lanes::Rooms,
    /// The innermost loop along which quotients stay (C).
    segment: Option<segment::Segment>,
    /// How many indices begin before such loops.
    begun: usize,
}

impl<'a> Printer<'a> {
    fn new(nest: &'a Nest, language: Language, depth: usize) -> Printer<'a> {
        let wide_index = nest.wide_index;
        let helpers = Helpers::new();
        Printer {
            nest,
            kernel: &nest.kernel,
            locals: &[],
            language,
            wide_index,
            is_wide: wide_index,
            helpers,
            lanes: Lanes::new(4),
            text: String::new(),
            depth,
            block: "blockIdx.x",
            streams: false,
            rooms: lanes::Rooms::default(),
            segment: None,
            begun: 0,
        }
    }

    fn line(&mut self, line: &str) {
        if !line.starts_with('#') {
            self.text.push_str(&"  ".repeat(self.depth));
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn function(&mut self, function: &'a Function) {
        self.locals = &function.body.locals;
        if self.language == Language::C {
            self.rooms = lanes::Rooms::of(self.kernel, function);
        }
        self.statements(&function.body.statements);
    }

    fn block(&mut self, body: &[Stmt]) {
        self.depth += 1;
        self.statements(body);
        self.depth -= 1;
    }

    fn statements(&mut self, body: &[Stmt]) {
        for stmt in body {
            self.statement(stmt);
        }
    }

    fn type_name(&self, ty: Type) -> &'static str {
        match (ty, self.language, self.wide_index) {
            (Type::Index, Language::Cuda, false) => "unsigned",
            (Type::Index, Language::Cuda, true) => "unsigned long long",
            (Type::Index, Language::C, _) => "idx",
            (Type::Register(dtype), language, _) => register_type(language, dtype),
            (Type::Memory(dtype), language, _) => intrinsics::memory_type(language, dtype),
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let { var, value } => {
                let (ty, name, value) = (self.type_of(*var), self.name(*var), self.expr(value));
                self.line(&format!("const {ty} {name} = {value};"));
            }
            Stmt::Declare { var, init } => self.declare(*var, init.as_ref()),
            Stmt::Assign { target, value } => {
                let target = self.expr(target);
                let value = self.expr(value);
                self.line(&format!("{target} = {value};"));
            }
            Stmt::For { var, from, to, step, hint, body } => {
                let outer = self.enter_segment(*var, from, *hint, body);
                let before = self.text.len();
                let is_vectors = self.language == Language::C
                    && match step {
                        Step::Add(Expr::Int(1)) if hint.is_simd() => {
                            self.loop_of_vectors(*var, (from, to), *hint, body)
                        }
                        Step::Halve => self.fold_of_vectors(*var, from, body),
                        Step::Add(_) => false,
                    };
                if !is_vectors {
                    let name = self.name(*var);
                    self.loop_head(&name, from, to, step, *hint);
                    self.block(body);
                    self.line("}");
                }
                self.leave_segment(outer, before);
            }
            Stmt::If { condition, then, otherwise } => self.conditional(condition, then, otherwise),
            Stmt::VectorLoad { array, at, buffer, index, dtype, width } => {
                self.vector_copy((*array, at), (*buffer, index), cuda::vector_type(*dtype, *width));
            }
            Stmt::VectorStore { array, at, buffer, index, dtype, width } => {
                self.vector_copy((*buffer, index), (*array, at), cuda::vector_type(*dtype, *width));
            }
            Stmt::Scan(scanning) => self.scan(scanning),
            Stmt::MultiplyTile(_)
            | Stmt::Turn(_)
            | Stmt::Pair(_)
            | Stmt::Sort(_)
            | Stmt::LoadMatrices { .. }
            | Stmt::BeginCopy(_)
            | Stmt::Bulk(_)
            | Stmt::CommitCopies
            | Stmt::AwaitCopies { .. }
            | Stmt::MultiplyMatrices(_)
            | Stmt::MultiplyGroup(_)
            | Stmt::Products(_) => {
                if let Some(call) = self.call(stmt) {
                    self.line(&format!("{call};"));
                }
            }
            Stmt::Positions { table, positions } => {
                let positions: Vec<String> = positions.iter().map(u64::to_string).collect();
                let (ty, name) = (self.type_name(Type::Index), self.name(*table));
                self.list(&format!("static const {ty} {name}[] = "), &positions);
            }
            Stmt::Buffers { table, buffers, dtype } => {
                let buffers: Vec<String> = buffers.iter().map(|&buffer| self.name(buffer)).collect();
                let (ty, name) = (self.type_name(Type::Memory(*dtype)), self.name(*table));
                self.list(&format!("const {ty}* const {name}[] = "), &buffers);
            }
            Stmt::Part { part, table, number, dtype } => {
                let ty = self.type_name(Type::Memory(*dtype));
                let (part, table, number) = (self.name(*part), self.name(*table), self.expr(number));
                self.line(&format!("const {ty}* const {part} = {table}[{number}];"));
            }
            Stmt::InTurns { key, active, body } => self.in_turns(key, active, body),
            Stmt::Block(body) => {
                self.line("{");
                self.block(body);
                self.line("}");
            }
            Stmt::Barrier => self.line("__syncthreads();"),
            // No vectoriser goes on beside one.
            Stmt::Prefetch { .. } => {}
            Stmt::Arrive { counters, index, count } => self.arrive(*counters, index, count),
            Stmt::Add { target, value, dtype } => {
                let ty = if dtype.size() == 8 { "unsigned long long" } else { "unsigned" };
                let (target, value) = (self.expr(target), self.expr(value));
                self.line(&format!("atomicAdd(({ty}*)&{target}, ({ty}){value});"));
            }
            Stmt::Return => self.line("return;"),
        }
    }

    /// Elements copied as one of a vector type.
    fn vector_copy(&mut self, to: (Var, &Expr), from: (Var, &Expr), ty: &str) {
        let [target, source] = [to, from].map(|(array, index)| self.element_of(array, index));
        self.line(&format!("*({ty}*)({target}) = *(const {ty}*)({source});"));
    }

    /// `head{a, b};`, sixteen in a line.
    fn list(&mut self, head: &str, items: &[String]) {
        match items.len() {
            0..=LINE => self.line(&format!("{head}{{{}}};", items.join(", "))),
            _ => {
                self.line(&format!("{head}{{"));
                self.depth += 2;
                items.chunks(LINE).for_each(|items| self.line(&format!("{},", items.join(", "))));
                self.depth -= 2;
                self.line("};");
            }
        }
    }

    fn declare(&mut self, var: Var, init: Option<&Expr>) {
        let Some(local) = self.local(var) else { return };
        let (name, ty, len) = (self.name(var), self.type_name(local.ty), local.len.unwrap_or(1));
        let line = match local.space {
            Space::Shared(None) => match local.ty {
                // Threads go on with whole vectors of what they have put there as it is in memory.
                Type::Memory(dtype) if (len * dtype.size() as u64).is_multiple_of(16) => {
                    format!("__shared__ __align__(16) {ty} {name}[{len}];")
                }
                _ => format!("__shared__ {ty} {name}[{len}];"),
            },
            Space::Shared(Some(offset)) | Space::Launch(offset) => {
                let place = self.place(BLOCK_MEMORY, &Expr::Int(offset));
                format!("{ty}* const {name} = ({ty}*)({place});")
            }
            Space::Thread | Space::Constant if local.len.is_some() && self.rooms.is_padded(var) => {
                let ty = self.type_name(local.ty);
                format!("{ty} {name}[{len} + {}] __attribute__((aligned(64)));", lanes::MOST_LANES)
            }
            Space::Thread | Space::Constant if local.len.is_some() => self.array(&name, local.ty, len),
            Space::Thread | Space::Constant => {
                let init = init.map(|init| format!(" = {}", self.expr(init))).unwrap_or_default();
                format!("{ty} {name}{init};")
            }
        };
        self.line(&line);
    }

    fn local(&self, var: Var) -> Option<&'a Local> {
        match var {
            Var::Local(id) => Some(&self.locals[id.index()]),
            Var::Axis(_) | Var::Lane | Var::Parameter(_) => None,
        }
    }

    fn type_of(&self, var: Var) -> &'static str {
        self.type_name(self.local(var).map_or(Type::Index, |local| local.ty))
    }

    fn name(&self, var: Var) -> String {
        self.nest.name_of(self.locals, var)
    }

    /// A pointer to an element.
    fn element_of(&mut self, array: Var, index: &Expr) -> String {
        let array = self.name(array);
        self.place(&array, index)
    }

    fn place(&mut self, array: &str, index: &Expr) -> String {
        match self.expr(index).as_str() {
            "0" | "0u" | "0ull" => array.to_string(),
            // NVRTC takes a vector store at `out0 + a + b + c` apart: to it that is a chain of additions to a pointer.
            index if self.language == Language::Cuda && is_sum(index) => format!("{array} + ({index})"),
            index => format!("{array} + {index}"),
        }
    }

    fn array(&self, name: &str, ty: Type, len: u64) -> String {
        let type_name = self.type_name(ty);
        match (self.language, ty) {
            (Language::Cuda, Type::Memory(dtype)) => {
                let bytes = (len * dtype.size() as u64).next_power_of_two().clamp(1, 16);
                format!("__align__({bytes}) {type_name} {name}[{len}];")
            }
            (Language::Cuda, Type::Register(_) | Type::Index) => format!("{type_name} {name}[{len}];"),
            (Language::C, _) => format!("{type_name} {name}[{len}] __attribute__((aligned(64)));"),
        }
    }

    /// What stands before the body of a loop.
    fn loop_head(&mut self, name: &str, from: &Expr, to: &Expr, step: &Step, hint: LoopHint) {
        match (self.language, hint) {
            (_, LoopHint::None) | (Language::C, LoopHint::UnrollBy(_)) => {}
            (Language::Cuda, LoopHint::UnrollBy(factor)) => self.line(&format!("#pragma unroll {factor}")),
            (Language::Cuda, _) => self.line("#pragma unroll"),
            (Language::C, LoopHint::Unroll) => self.line("#pragma GCC unroll 32"),
            (Language::C, _) => self.line("#pragma omp simd"),
        }
        let ty = self.type_name(Type::Index);
        let from = self.expr(from);
        let header = match step {
            Step::Halve => format!("for ({ty} {name} = {from}; {name} > 0; {name} /= 2) {{"),
            Step::Add(Expr::Int(1)) => {
                format!("for ({ty} {name} = {from}; {name} < {}; ++{name}) {{", self.operand(to, 4))
            }
            Step::Add(step) => {
                let (to, step) = (self.operand(to, 4), self.expr(step));
                format!("for ({ty} {name} = {from}; {name} < {to}; {name} += {step}) {{")
            }
        };
        self.line(&header);
    }

    fn conditional(&mut self, condition: &Expr, then: &[Stmt], otherwise: &[Stmt]) {
        if then.is_empty() {
            let negated = match condition {
                Expr::Arithmetic(Arithmetic::Less, a, b) => {
                    let (a, b) = (self.operand(a, 3), self.operand(b, 4));
                    format!("{a} >= {b}")
                }
                other => format!("!({})", self.expr(other)),
            };
            if let [Stmt::Return] = otherwise {
                self.line(&format!("if ({negated}) return;"));
            } else {
                self.line(&format!("if ({negated}) {{"));
                self.block(otherwise);
                self.line("}");
            }
            return;
        }
        let condition = self.expr(condition);
        self.line(&format!("if ({condition}) {{"));
        self.block(then);
        if !otherwise.is_empty() {
            self.line("} else {");
            self.block(otherwise);
        }
        self.line("}");
    }

    fn in_turns(&mut self, key: &Expr, active: &Expr, body: &[Stmt]) {
        let (key, active) = (self.expr(key), self.operand(active, 2));
        let before = intrinsics::lanes_before(self.language, &key, &mut self.helpers);
        self.line(&format!("const unsigned before = {before};"));
        self.line(&format!(
            "for (unsigned turn = 0; __any_sync(0xffffffffu, {active} && turn <= before); ++turn) {{"
        ));
        self.depth += 1;
        self.line(&format!("if ({active} && turn == before) {{"));
        self.block(body);
        self.line("}");
        self.line("__syncwarp();");
        self.depth -= 1;
        self.line("}");
    }

    fn arrive(&mut self, counters: Var, index: &Expr, count: &Expr) {
        let (counters, index, count) = (self.name(counters), self.expr(index), self.expr(count));
        self.line("// The last block to arrive merges all partial results, in a fixed order.");
        self.line("__shared__ bool is_last;");
        // After the barrier a fence of one thread is one for what all have written.
        self.line("__syncthreads();");
        self.line("if (threadIdx.x == 0 && threadIdx.y == 0) {");
        self.line("  __threadfence();");
        self.line(&format!("  is_last = atomicAdd({counters} + {index}, 1u) == {count} - 1u;"));
        self.line("}");
        self.line("__syncthreads();");
        self.line("if (!is_last) return;");
        self.line("__threadfence();");
    }

    /// A function's parameters, as declarations.
    fn parameters(&self, nest: &Nest) -> Vec<String> {
        self.declarations(nest, if self.language == Language::Cuda { "* __restrict__" } else { "* restrict" })
    }

    /// The same with another spelling of the pointers to buffers.
    fn declarations(&self, nest: &Nest, pointer: &str) -> Vec<String> {
        let declaration = |parameter: &Parameter| {
            let name = parameter_name(nest, *parameter);
            match parameter {
                Parameter::Buffer(id) => {
                    let buffer = &self.kernel.buffers[id.index()];
                    let ty = intrinsics::memory_type(self.language, buffer.dtype);
                    let constant = if buffer.is_output { "" } else { "const " };
                    format!("{constant}{ty}{pointer} {name}")
                }
                Parameter::Argument(id) => {
                    let dtype = self.kernel.arguments[id.index()].value.dtype();
                    format!("{} {name}", register_type(self.language, dtype))
                }
                Parameter::Extent(_) | Parameter::Offset(_) => {
                    format!("{} {name}", self.type_name(Type::Index))
                }
                Parameter::Checks => format!("long long* {name}"),
                Parameter::Map(_) => format!("const __grid_constant__ lz_tensor_map {name}"),
                Parameter::Workspace(number) => {
                    let space = &nest.workspaces[*number];
                    let ty =
                        if space.zeroed { "unsigned" } else { register_type(self.language, space.dtype) };
                    format!("{ty}* {name}")
                }
            }
        };
        nest.parameters.iter().map(declaration).collect()
    }
}

/// Whether a text is a sum of several terms.
fn is_sum(text: &str) -> bool {
    let mut depth = 0;
    text.char_indices().any(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0 && [" + ", " - "].iter().any(|sign| text[at..].starts_with(sign))
    })
}

/// `head(a, b) {`, broken into a line for each parameter if it is long.
fn signature(head: &str, parameters: &[String]) -> String {
    let line = format!("{head}({}) {{\n", parameters.join(", "));
    match line.len() <= 111 {
        true => line,
        false => format!("{head}(\n    {}) {{\n", parameters.join(",\n    ")),
    }
}
