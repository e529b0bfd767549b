//! Loop nests from their text.

mod copies;
mod expressions;
mod packed;

use rustc_hash::FxHashMap;

use super::stmt::{
    Expr, GroupFactor, GroupProduct, Lines, LoopHint, MatrixProduct, ProductStep, Scanning, SortBy,
    SortedRow, Sorting, Step, Stmt, Type,
};
use super::text::LANE;
use super::variable::{Local, LocalId, Space, Var};
use super::{Body, Function, Nest, Parameter, Workspace, parameter_name, parameters};
use crate::index::AxisId;
use crate::ir::{BufferId, Kernel};
use crate::schedule::{Launch, TensorMap, WorkItems};
use crate::syntax::{Cursor, ParseError, Place};
use crate::{DType, Language, ReduceOp};

/// Blocks and operands within each other, more than any nest has.
const DEEPEST: usize = 200;

impl Nest {
    /// Takes a nest, as [`Nest::to_text`] prints it, and the language that it is for. It may break the rules of
    /// [`verify`](super::verify).
    ///
    /// ```
    /// use lazuli_codegen::ir::Kernel;
    /// use lazuli_codegen::nest::{self, Nest};
    /// use lazuli_codegen::syntax::Cursor;
    /// use lazuli_codegen::Language;
    ///
    /// let kernel: Kernel = "\
    /// kernel double
    ///   map i0 < 1000
    ///   input in0: f32 [1000]
    ///   output out0: f32 [1000]
    ///   v0: f32 = load in0[i0]
    ///   v1: f32 = add v0 v0
    ///   store out0[i0] = v1
    /// "
    /// .parse()?;
    /// let nest = nest::build(&kernel, Language::Cuda, &"pointwise(threads=64, vec=2)".parse()?)?;
    /// let text = nest.to_text(Language::Cuda);
    /// assert!(text.contains("let t: index = block.x * 64 + thread.x"));
    /// assert_eq!(Nest::parse(&mut Cursor::new(&text))?, (Language::Cuda, nest));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Where the text is no nest.
    pub fn parse(text: &mut Cursor<'_>) -> Result<(Language, Nest), ParseError> {
        text.expect("nest")?;
        let place = text.place();
        let word = text.word()?;
        let language = [Language::Cuda, Language::C].into_iter().find(|language| language.name() == word);
        let language =
            language.ok_or_else(|| text.error_at(place, format!("no language is called {word}")))?;
        let wide_index = text.eat("wide");
        let kernel = Kernel::parse(text)?;
        let mut workspaces = Vec::new();
        while text.eat("workspace") {
            let name = text.word()?.to_string();
            text.expect(":")?;
            let dtype = text.dtype()?;
            text.expect("[")?;
            let elements = text.number()?;
            text.expect("]")?;
            workspaces.push(Workspace { name, dtype, elements, zeroed: text.eat("zeroed") });
        }
        let mut maps = Vec::new();
        while text.eat("tensor_map") {
            maps.push(TensorMap::parse(&kernel, text)?);
        }
        let parameters = parameters(&kernel, &workspaces, &maps);
        let nest = Nest { functions: Vec::new(), parameters, workspaces, maps, wide_index, kernel };
        let mut functions = Vec::new();
        while text.is_at("function") {
            functions.push(Reader::new(text, &nest).function()?);
        }
        Ok((language, Nest { functions, ..nest }))
    }

    /// Checks that the nest's text is all of it.
    ///
    /// # Errors
    /// The text, and why it is not understood or what else it means.
    pub(super) fn reads_back(&self, language: Language) -> Result<(), String> {
        // Nothing runs, and the kernel with its lanes need not be sound.
        if self.kernel.axes.iter().any(|axis| axis.extent == 0) {
            return Ok(());
        }
        let text = self.to_text(language);
        match Nest::parse(&mut Cursor::new(&text)) {
            Err(error) => Err(format!("{error}\n{text}")),
            Ok((_, nest)) if nest == *self => Ok(()),
            Ok((_, nest)) => Err(format!("{text}\nreads as\n{}", nest.to_text(language))),
        }
    }
}

/// The monoid whose scan is called so.
fn scan_of(word: &str) -> Option<ReduceOp> {
    ReduceOp::ALL.into_iter().find(|op| op.is_scan() && op.scan_name() == word)
}

/// Reads one function.
struct Reader<'t, 'a> {
    text: &'t mut Cursor<'a>,
    nest: &'t Nest,
    locals: Vec<Local>,
    /// The variables of each name that are seen, innermost last.
    names: FxHashMap<String, Vec<Var>>,
    depth: usize,
}

impl<'t, 'a> Reader<'t, 'a> {
    fn new(text: &'t mut Cursor<'a>, nest: &'t Nest) -> Reader<'t, 'a> {
        let mut names: FxHashMap<String, Vec<Var>> = FxHashMap::default();
        for &parameter in &nest.parameters {
            names.entry(parameter_name(nest, parameter)).or_default().push(parameter.into());
        }
        Reader { text, nest, locals: Vec::new(), names, depth: 0 }
    }

    fn function(mut self) -> Result<Function, ParseError> {
        self.text.expect("function")?;
        let name = self.text.word()?.to_string();
        self.text.expect("threads")?;
        let place = self.text.place();
        let block = self.text.list(Cursor::number)?;
        let block = block.try_into().map_err(|_| self.text.error_at(place, "a block has three extents"))?;
        let per_block = self.setting("per_block")?;
        let splits = self.setting("splits")?;
        let shared_bytes = self.setting("shared")?;
        let at_once = if self.text.is_at("at_once") { self.setting("at_once")? } else { 0 };
        let count = self.setting("items")?;
        self.text.expect("=")?;
        let place = self.text.place();
        let items = self.work_items(count)?;
        if items.count() != count {
            return Err(self.text.error_at(place, "another number of work items"));
        }
        let launch = Launch { items, per_block, splits, block, shared_bytes, at_once };
        let statements = self.statements()?;
        Ok(Function { name, body: Body { statements, locals: self.locals }, launch })
    }

    /// A product whose names are of extents, or of one number that is known by what all comes to.
    fn work_items(&mut self, count: u64) -> Result<WorkItems, ParseError> {
        let mut product = WorkItems::number(1);
        loop {
            product = if self.text.eat("ceil(") {
                let dividend = self.work_items(count)?;
                self.text.expect("/")?;
                let place = self.text.place();
                let by = self.text.number()?;
                self.text.expect(")")?;
                if by == 0 {
                    return Err(self.text.error_at(place, "a divisor of 0"));
                }
                product * dividend.divided(by)
            } else if self.text.is_at_number() {
                product * WorkItems::number(self.text.number()?)
            } else {
                let name = self.text.word()?;
                let kernel = &self.nest.kernel;
                let mut axes = (0..kernel.axes.len() as u32).map(AxisId);
                let of = |&axis: &AxisId| kernel.axis(axis).is_argument && kernel.extent_name(axis) == name;
                let factor = match axes.find(of) {
                    Some(axis) => WorkItems::of(kernel, &[axis]),
                    None => WorkItems::named(name, count.checked_div(product.count()).unwrap_or(0)),
                };
                product * factor
            };
            if !self.text.eat("*") {
                return Ok(product);
            }
        }
    }

    fn setting<T: std::str::FromStr>(&mut self, word: &str) -> Result<T, ParseError> {
        self.text.expect(word)?;
        self.text.number()
    }

    /// Statements up to a brace, another function or another nest.
    fn statements(&mut self) -> Result<Vec<Stmt>, ParseError> {
        let mut statements = Vec::new();
        let mut defined = Vec::new();
        let is_end = |text: &Cursor<'_>| {
            text.is_at_end() || ["}", "function", "nest"].iter().any(|sign| text.is_at(sign))
        };
        while !is_end(self.text) {
            statements.push(self.statement(&mut defined)?);
        }
        self.forget(defined);
        Ok(statements)
    }

    fn forget(&mut self, defined: Vec<String>) {
        for name in defined {
            if let Some(same) = self.names.get_mut(&name) {
                same.pop();
            }
        }
    }

    /// `{`, statements and `}`.
    fn block(&mut self) -> Result<Vec<Stmt>, ParseError> {
        self.text.expect("{")?;
        let body = self.deeper(|reader| reader.statements())?;
        self.text.expect("}")?;
        Ok(body)
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, ParseError>) -> Result<T, ParseError> {
        if self.depth == DEEPEST {
            return Err(self.text.error("too much within each other"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn statement(&mut self, defined: &mut Vec<String>) -> Result<Stmt, ParseError> {
        let place = self.text.place();
        Ok(match self.text.word()? {
            "let" => {
                let (name, ty) = self.typed_name()?;
                self.text.expect("=")?;
                let value = self.expr()?;
                Stmt::Let { var: self.define(name, ty, None, Space::Constant, place, defined)?, value }
            }
            kind @ ("var" | "array" | "shared" | "launch") => self.declaration(kind, place, defined)?,
            "set" => {
                let target = self.expr()?;
                self.text.expect("=")?;
                Stmt::Assign { target, value: self.expr()? }
            }
            "for" => self.for_loop(place)?,
            "block" => Stmt::Block(self.block()?),
            "if" => {
                let condition = self.expr()?;
                let then = self.block()?;
                let otherwise = if self.text.eat("else") { self.block()? } else { Vec::new() };
                Stmt::If { condition, then, otherwise }
            }
            kind @ ("load" | "store") => self.copy(kind)?,
            "matrices" => {
                let (parts, at) = self.element(false)?;
                self.text.expect("=")?;
                let (shared, index) = self.element(false)?;
                let dtype = self.of_dtype()?;
                Stmt::LoadMatrices { parts, at, shared, index, dtype, turns: self.text.eat("turned") }
            }
            "copy" => self.copying()?,
            kind @ ("expect_tiles" | "begin_tile" | "await_tiles") => Stmt::Bulk(self.bulk(kind)?),
            "commit_copies" => Stmt::CommitCopies,
            "await_copies" => {
                self.text.expect("but")?;
                Stmt::AwaitCopies { but: self.text.number()? }
            }
            "multiply_matrices" => {
                let (sums, sums_at) = self.element(false)?;
                self.text.expect(",")?;
                let (left, left_at) = self.element(false)?;
                self.text.expect(",")?;
                let (right, right_at) = self.element(false)?;
                let dtype = self.of_dtype()?;
                let product = MatrixProduct { dtype, left, left_at, right, right_at, sums, sums_at };
                Stmt::MultiplyMatrices(Box::new(product))
            }
            "multiply_group" => {
                let columns = self.text.number()?;
                let (sums, sums_at) = self.element(false)?;
                self.text.expect(",")?;
                let left = self.group_factor()?;
                self.text.expect(",")?;
                let right = self.group_factor()?;
                let dtype = self.of_dtype()?;
                let product = GroupProduct { dtype, columns, left, right, sums, sums_at };
                Stmt::MultiplyGroup(Box::new(product))
            }
            "products" => Stmt::Products(self.product_step()?),
            "multiply" => self.multiply()?,
            "turn" => self.turn()?,
            "pair" => self.pair()?,
            "sort" => self.sort()?,
            word if scan_of(word).is_some() => self.scan(word)?,
            kind @ ("positions" | "buffers" | "part") => self.table(kind, place, defined)?,
            "in_turns" => {
                let key = self.expr()?;
                let active = self.after("while")?;
                Stmt::InTurns { key, active, body: self.block()? }
            }
            "barrier" => Stmt::Barrier,
            "prefetch" => {
                let (buffer, index) = self.element(false)?;
                Stmt::Prefetch { buffer, index, stream: self.text.eat("stream") }
            }
            "arrive" => {
                let (counters, index) = self.element(true)?;
                Stmt::Arrive { counters, index, count: self.after("of")? }
            }
            "add" => {
                let dtype = self.text.dtype()?;
                let value = self.expr()?;
                Stmt::Add { target: self.after("to")?, value, dtype }
            }
            "return" => Stmt::Return,
            word => return Err(self.text.error_at(place, format!("no statement begins with `{word}`"))),
        })
    }

    /// What moves several elements.
    fn copy(&mut self, kind: &str) -> Result<Stmt, ParseError> {
        Ok(match kind {
            "load" => {
                let (array, at) = self.element(false)?;
                self.text.expect("=")?;
                let (buffer, index) = self.element(false)?;
                let (width, dtype) = (self.setting("width")?, self.of_dtype()?);
                Stmt::VectorLoad { array, at, buffer, index, dtype, width }
            }
            _ => {
                let (buffer, index) = self.element(true)?;
                self.text.expect("=")?;
                let (array, at) = self.element(false)?;
                let (width, dtype) = (self.setting("width")?, self.of_dtype()?);
                Stmt::VectorStore { array, at, buffer, index, dtype, width }
            }
        })
    }

    /// Tables, and an array out of one.
    fn table(&mut self, kind: &str, place: Place, defined: &mut Vec<String>) -> Result<Stmt, ParseError> {
        let name = self.text.word()?;
        self.text.expect("=")?;
        Ok(match kind {
            "positions" => {
                let positions = self.text.list(Cursor::number)?;
                let len = Some(positions.len() as u64);
                let table = self.define(name, Some(Type::Index), len, Space::Constant, place, defined)?;
                Stmt::Positions { table, positions }
            }
            "buffers" => {
                let buffers = self.text.list(|text| variable(self.nest, &self.names, text, false))?;
                let (len, dtype) = (Some(buffers.len() as u64), self.of_dtype()?);
                let ty = Some(Type::Memory(dtype));
                let table = self.define(name, ty, len, Space::Constant, place, defined)?;
                Stmt::Buffers { table, buffers, dtype }
            }
            _ => {
                let (table, number) = self.element(false)?;
                let dtype = self.of_dtype()?;
                let ty = Some(Type::Memory(dtype));
                let part = self.define(name, ty, Some(1), Space::Constant, place, defined)?;
                Stmt::Part { part, table, number, dtype }
            }
        })
    }

    fn after(&mut self, word: &str) -> Result<Expr, ParseError> {
        self.text.expect(word)?;
        self.expr()
    }

    fn of_dtype(&mut self) -> Result<DType, ParseError> {
        self.text.expect("of")?;
        self.text.dtype()
    }

    fn declaration(
        &mut self,
        kind: &str,
        place: Place,
        defined: &mut Vec<String>,
    ) -> Result<Stmt, ParseError> {
        let (name, ty) = self.typed_name()?;
        if kind == "var" {
            let init = if self.text.eat("=") { Some(self.expr()?) } else { None };
            return Ok(Stmt::Declare {
                var: self.define(name, ty, None, Space::Thread, place, defined)?,
                init,
            });
        }
        self.text.expect("[")?;
        let len = Some(self.text.number()?);
        self.text.expect("]")?;
        let space = match kind {
            "array" => Space::Thread,
            "shared" if self.text.is_at("from") => Space::Shared(Some(self.setting("from")?)),
            "shared" => Space::Shared(None),
            _ => Space::Launch(self.setting("from")?),
        };
        Ok(Stmt::Declare { var: self.define(name, ty, len, space, place, defined)?, init: None })
    }

    fn for_loop(&mut self, place: Place) -> Result<Stmt, ParseError> {
        let (name, ty) = self.typed_name()?;
        if ty.is_some_and(|ty| ty != Type::Index) {
            return Err(self.text.error_at(place, "loops count indices"));
        }
        self.text.expect("=")?;
        let from = self.expr()?;
        let to = self.after("to")?;
        let mut defined = Vec::new();
        let var = self.define(name, ty, None, Space::Constant, place, &mut defined)?;
        let step = match self.text.eat("halving") {
            true => Step::Halve,
            false => Step::Add(self.after("step")?),
        };
        let hint = match () {
            () if self.text.eat("simd") => LoopHint::Simd,
            () if self.text.eat("simd_segment") => LoopHint::SimdSegment,
            () if self.text.eat("simd_spilling") => LoopHint::SimdSpilling,
            () if self.text.eat("unroll") => match self.text.is_at("{") {
                true => LoopHint::Unroll,
                false => LoopHint::UnrollBy(self.text.number()?),
            },
            () => LoopHint::None,
        };
        let body = self.block()?;
        self.forget(defined);
        Ok(Stmt::For { var, from, to, step, hint, body })
    }

    fn sort(&mut self) -> Result<Stmt, ParseError> {
        let (items, at) = self.element(true)?;
        let wide = self.text.eat("wide");
        self.text.expect("by")?;
        let by = if self.text.eat("row") {
            let (spare, spare_at) = self.element(true)?;
            let (count, wanted) = (self.after("count")?, self.after("wanted")?);
            SortBy::Row(Box::new(SortedRow { spare, spare_at, count, wanted }))
        } else if self.text.eat("lanes") {
            SortBy::Lanes { count: self.after("count")? }
        } else {
            self.text.expect("block")?;
            let (items, length) = (self.setting("items")?, self.setting("length")?);
            SortBy::Block { items, length, threads: self.setting("threads")? }
        };
        Ok(Stmt::Sort(Box::new(Sorting { items, at, wide, by })))
    }

    fn scan(&mut self, word: &str) -> Result<Stmt, ParseError> {
        let place = self.text.place();
        let unknown = || self.text.error_at(place, format!("no scan is called {word}"));
        let op = scan_of(word).ok_or_else(unknown)?;
        let dtype = self.text.dtype()?;
        let (to, to_at) = self.element(false)?;
        self.text.expect(",")?;
        let (from, from_at) = self.element(false)?;
        self.text.expect(",")?;
        let running = self.after("running")?;
        self.text.expect(",")?;
        let count = self.after("count")?;
        Ok(Stmt::Scan(Box::new(Scanning { op, dtype, to, to_at, from, from_at, count, running })))
    }

    fn group_factor(&mut self) -> Result<GroupFactor, ParseError> {
        let (array, at) = self.element(false)?;
        let lines = match () {
            () if self.text.eat("turned") => Lines::Turned,
            () if self.text.eat("own") => Lines::Own,
            () => Lines::Along,
        };
        Ok(GroupFactor { array, at, lines })
    }

    fn product_step(&mut self) -> Result<ProductStep, ParseError> {
        Ok(match self.text.word()? {
            "publish" => ProductStep::Publish,
            "begin" => ProductStep::Begin,
            "commit" => ProductStep::Commit,
            "await" => {
                self.text.expect("but")?;
                ProductStep::Await(self.text.number()?)
            }
            _ => return Err(self.text.error("expected publish, begin, commit or await")),
        })
    }

    /// A name, and its type, which only the function's own variables have.
    fn typed_name(&mut self) -> Result<(&'a str, Option<Type>), ParseError> {
        let name = self.text.word()?;
        if !self.text.eat(":") {
            return Ok((name, None));
        }
        Ok((
            name,
            Some(match (self.text.eat("index"), self.text.eat("memory")) {
                (true, _) => Type::Index,
                (false, true) => Type::Memory(self.text.dtype()?),
                (false, false) => Type::Register(self.text.dtype()?),
            }),
        ))
    }

    fn define(
        &mut self,
        name: &str,
        ty: Option<Type>,
        len: Option<u64>,
        space: Space,
        place: Place,
        defined: &mut Vec<String>,
    ) -> Result<Var, ParseError> {
        let axis = self.nest.kernel.axes.iter().position(|axis| axis.name == name);
        let var = match (ty, axis) {
            (Some(ty), _) => {
                self.locals.push(Local { hint: name.into(), ty, len, space });
                Var::Local(LocalId(self.locals.len() as u32 - 1))
            }
            (None, _) if name == LANE => Var::Lane,
            (None, Some(number)) => self.nest.kernel.position(AxisId(number as u32)),
            (None, None) => return Err(self.text.error_at(place, format!("no axis is called {name}"))),
        };
        self.names.entry(name.into()).or_default().push(var);
        defined.push(name.into());
        Ok(var)
    }

    fn variable(&mut self, is_written: bool) -> Result<Var, ParseError> {
        variable(self.nest, &self.names, self.text, is_written)
    }

    /// An array or buffer, and which of its elements.
    fn element(&mut self, is_written: bool) -> Result<(Var, Expr), ParseError> {
        let array = self.variable(is_written)?;
        self.text.expect("[")?;
        let index = self.expr()?;
        self.text.expect("]")?;
        Ok((array, index))
    }
}

/// The nearest variable of the name that comes next. Outputs hide the inputs of their name where they are written.
fn variable(
    nest: &Nest,
    names: &FxHashMap<String, Vec<Var>>,
    text: &mut Cursor<'_>,
    is_written: bool,
) -> Result<Var, ParseError> {
    let place = text.place();
    let name = text.word()?;
    let known = names.get(name).and_then(|same| same.last()).copied();
    if let Some(var @ (Var::Parameter(Parameter::Buffer(_)) | Var::Local(_))) = known {
        let over = (0..nest.kernel.buffers.len() as u32).map(BufferId).find(|&buffer| {
            nest.kernel.is_written_over(buffer) && nest.kernel.buffers[buffer.index()].name == name
        });
        let is_buffer = matches!(var, Var::Parameter(_));
        return Ok(over.filter(|_| is_buffer && !is_written).map_or(var, Var::from));
    }
    known.ok_or_else(|| text.error_at(place, format!("no variable is called {name} here")))
}
