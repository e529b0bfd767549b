//! Values by demand: each is computed in the outermost open scope that binds all of its axes.

mod values;

pub(super) use values::MOST_IN_LOOP;

use rustc_hash::FxHashMap;

use super::persistent::RowCache;
use super::stmt::{Arithmetic, Expr, Stmt, Type};
use super::tile::TileKey;
use super::variable::{Local, LocalId, Space, Var};
use super::{Body, INDEX, Parameter};
use crate::index::{AxisId, IndexExpr};
use crate::ir::{AxisKind, AxisSet, Kernel, ValueId};
use crate::{DType, Language, Refusal};

/// A block of statements that binds some axes.
#[derive(Default)]
pub(super) struct Scope {
    /// Axes that have a variable from here on.
    axes: Vec<AxisId>,
    /// Whether it is the body of a loop that is unrolled wholly, so that its axes can index registers.
    pub(super) unrolled: bool,
    /// Whether values that are first asked for in here must stay in here, as in a conditional.
    pub(super) pinned: bool,
    /// Computed axes that have a variable from here on.
    computed: Vec<AxisId>,
    block: Vec<Stmt>,
    values: FxHashMap<ValueId, Expr>,
    pub(super) tiles: FxHashMap<TileKey, Var>,
}

impl Scope {
    pub(super) fn axes(&self) -> &[AxisId] {
        &self.axes
    }
}

/// An array in shared memory that holds a load's elements.
pub(super) struct Staged {
    pub(super) array: Var,
    pub(super) dtype: DType,
    /// Where an element is, if not where all of this thread are.
    pub(super) slot: Option<Expr>,
}

/// Builds the body of one function.
pub(super) struct Emitter<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) scopes: Vec<Scope>,
    /// Axis variables that only take multiples of a number: the first of several lanes.
    pub(super) multiples: FxHashMap<AxisId, i64>,
    /// An index that is a multiple of a number where vectors are loaded, though its axes say nothing of it.
    pub(super) aligned: Option<(IndexExpr, u64)>,
    /// What stays in registers between the passes along a row.
    pub(super) cached: Option<RowCache>,
    /// Loads whose elements wait in shared memory.
    pub(super) staged: FxHashMap<ValueId, Staged>,
    /// Where this thread's elements are in the staged arrays.
    pub(super) staged_slot: Option<Expr>,
    /// What loops before this one have left in arrays.
    pub(super) elements: Vec<(ValueId, Expr)>,
    /// Whether short loops stay loops: what few elements need is not worth the text.
    pub(super) rolled: bool,
    /// The reductions that the values to come need: some go through one loop.
    reductions: Vec<ValueId>,
    /// Those whose loops are being made.
    reducing: Vec<ValueId>,
    language: Language,
    uses: Vec<usize>,
    names: FxHashMap<&'static str, usize>,
    locals: Vec<Local>,
    /// The variables that number the positions of several axes.
    flat: Vec<(Vec<AxisId>, Var)>,
    misfit: Option<&'static str>,
}

/// A variable to define: one that there is, or a new one that is called so.
pub(super) enum Definition {
    Of(Var),
    New(&'static str),
}

impl<T: Into<Var>> From<T> for Definition {
    fn from(var: T) -> Definition {
        Definition::Of(var.into())
    }
}

impl From<&'static str> for Definition {
    fn from(hint: &'static str) -> Definition {
        Definition::New(hint)
    }
}

impl<'k> Emitter<'k> {
    pub(super) fn new(kernel: &'k Kernel, language: Language) -> Emitter<'k> {
        Emitter {
            kernel,
            scopes: vec![Scope::default()],
            multiples: FxHashMap::default(),
            aligned: None,
            cached: None,
            staged: FxHashMap::default(),
            staged_slot: None,
            elements: Vec::new(),
            rolled: false,
            reductions: Vec::new(),
            reducing: Vec::new(),
            language,
            uses: kernel.use_counts(),
            names: FxHashMap::default(),
            locals: Vec::new(),
            flat: Vec::new(),
            misfit: None,
        }
    }

    /// Emits for another kernel of the same values, such as one without vector lanes.
    pub(super) fn using<T>(&mut self, kernel: &'k Kernel, emit: impl FnOnce(&mut Self) -> T) -> T {
        let kernel = std::mem::replace(&mut self.kernel, kernel);
        let uses = std::mem::replace(&mut self.uses, self.kernel.use_counts());
        let multiples = std::mem::take(&mut self.multiples);
        let result = emit(self);
        self.kernel = kernel;
        self.uses = uses;
        self.multiples = multiples;
        result
    }

    /// The function's body.
    ///
    /// # Errors
    /// If a value was asked for that the schedule does not provide.
    pub(super) fn finish(mut self) -> Result<Body, Refusal> {
        let statements = self.scopes.drain(..).flat_map(|scope| scope.block).collect();
        match self.misfit {
            None => Ok(Body::numbered(statements, self.locals)),
            // Nothing runs, and what has no elements is not where it would be with some.
            Some(_) if self.kernel.axes.iter().any(|axis| axis.extent == 0) => Ok(Body::default()),
            Some(what) => Err(Refusal::Undefined(what)),
        }
    }

    /// Something is asked for that the schedule should have provided: it does not fit the kernel.
    pub(super) fn misfit(&mut self, what: &'static str) -> Expr {
        self.misfit = Some(what);
        Expr::Int(0)
    }

    /// A variable of index arithmetic that something yet to come defines, such as a loop.
    pub(super) fn index(&mut self, hint: &str) -> Var {
        self.local(hint.into(), Type::Index, None, Space::Constant)
    }

    /// The variable that numbers the positions of some axes: the axis itself where there is only one.
    pub(super) fn flat(&mut self, axes: &[AxisId], hint: &'static str) -> Var {
        if let [axis] = axes {
            return Var::Axis(*axis);
        }
        if let Some((_, var)) = self.flat.iter().find(|(of, _)| of == axes) {
            return *var;
        }
        let var = self.index(hint);
        self.flat.push((axes.to_vec(), var));
        var
    }

    /// A new variable, called by the prefix and a number.
    pub(super) fn fresh(&mut self, prefix: &'static str) -> Var {
        let number = self.names.entry(prefix).or_default();
        *number += 1;
        let hint = format!("{prefix}{}", *number - 1);
        self.local(hint, Type::Index, None, Space::Constant)
    }

    fn local(&mut self, hint: String, ty: Type, len: Option<u64>, space: Space) -> Var {
        self.locals.push(Local { hint, ty, len, space });
        Var::Local(LocalId(self.locals.len() as u32 - 1))
    }

    /// States what a variable is.
    pub(super) fn typed(
        &mut self,
        var: impl Into<Definition>,
        ty: Type,
        len: Option<u64>,
        space: Space,
    ) -> Var {
        match var.into() {
            Definition::New(hint) => self.local(hint.into(), ty, len, space),
            Definition::Of(var) => {
                if let Var::Local(id) = var {
                    let local = &mut self.locals[id.index()];
                    (local.ty, local.len, local.space) = (ty, len, space);
                }
                var
            }
        }
    }

    /// Whether a variable is such an array of memory's elements.
    pub(super) fn is_array(&self, var: Var, dtype: DType, len: u64) -> bool {
        match var {
            Var::Local(id) => {
                let local = &self.locals[id.index()];
                local.ty == Type::Memory(dtype) && local.len == Some(len)
            }
            Var::Axis(_) | Var::Lane | Var::Parameter(_) => false,
        }
    }

    /// What a variable of this function is called.
    pub(super) fn hint(&self, var: Var) -> &str {
        match var {
            Var::Local(id) => &self.locals[id.index()].hint,
            Var::Axis(_) | Var::Lane | Var::Parameter(_) => "",
        }
    }

    /// What is emitted numbers its variables as if nothing had been emitted since now, as a branch beside another.
    pub(super) fn beside<T>(&mut self, emit: impl FnOnce(&mut Self) -> T) -> T {
        let names = self.names.clone();
        let result = emit(self);
        self.names = names;
        result
    }

    /// Appends a variable that can be assigned.
    pub(super) fn variable(&mut self, var: impl Into<Definition>, ty: Type, init: Expr) -> Var {
        let var = self.typed(var, ty, None, Space::Thread);
        self.push(Stmt::Declare { var, init: Some(init) });
        var
    }

    /// Appends an array of this thread.
    pub(super) fn array(&mut self, var: impl Into<Definition>, ty: Type, len: u64) -> Var {
        let var = self.typed(var, ty, Some(len), Space::Thread);
        self.push(Stmt::Declare { var, init: None });
        var
    }

    /// An array that a statement of its own fills.
    pub(super) fn table(&mut self, var: Var, ty: Type, len: usize) -> Var {
        self.typed(var, ty, Some(len as u64), Space::Constant)
    }

    /// Appends an array that the block shares, called by what it has of which variable.
    pub(super) fn shared(&mut self, prefix: &str, of: Var, ty: Type, len: u64) -> Var {
        let hint = match self.hint(of) {
            "" => prefix.to_string(),
            of => format!("{prefix}_{of}"),
        };
        let var = self.local(hint, ty, Some(len), Space::Shared(None));
        self.share(var, ty, len)
    }

    /// Appends a statement to the innermost scope.
    pub(super) fn push(&mut self, stmt: Stmt) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.block.push(stmt);
        }
    }

    /// Appends a statement to the function's own scope: before the loops that are open now.
    pub(super) fn push_first(&mut self, stmt: Stmt) {
        if let Some(scope) = self.scopes.first_mut() {
            scope.block.push(stmt);
        }
    }

    /// Appends an array that the block shares.
    pub(super) fn share(&mut self, var: impl Into<Definition>, ty: Type, len: u64) -> Var {
        let var = self.typed(var, ty, Some(len), Space::Shared(None));
        self.push(Stmt::Declare { var, init: None });
        var
    }

    /// Appends an array of the block for staged elements.
    pub(super) fn staged_array(&mut self, dtype: DType, len: u64) -> Var {
        let array = self.fresh("staged");
        self.share(array, Type::Memory(dtype), len)
    }

    /// Appends an immutable variable.
    pub(super) fn bind(&mut self, var: impl Into<Definition>, ty: Type, value: impl Into<Expr>) -> Var {
        let var = self.typed(var, ty, None, Space::Constant);
        self.push(Stmt::Let { var, value: value.into() });
        var
    }

    /// Binds a thread's own number, and the position that it has: beyond the last one, that one again, so that all threads do the
    /// same. Gives whether the number is one below the count.
    pub(super) fn bind_within(
        &mut self,
        own: impl Into<Definition>,
        var: impl Into<Definition>,
        number: Expr,
        count: Expr,
    ) -> Expr {
        let own = self.bind(own, INDEX, number);
        let last = count.clone().then(Arithmetic::Sub, 1);
        self.bind(var, INDEX, own.then(Arithmetic::Min, last));
        own.then(Arithmetic::Less, count)
    }

    /// Binds where the part of a length begins and ends that has this number, of so many positions.
    pub(super) fn part(
        &mut self,
        [first, end]: [&'static str; 2],
        number: Expr,
        length: u64,
        total: Expr,
    ) -> (Expr, Expr) {
        let first = Expr::Name(self.bind(first, INDEX, number.then(Arithmetic::Mul, length)));
        let after = first.clone().then(Arithmetic::Add, length);
        (first, Expr::Name(self.bind(end, INDEX, after.then(Arithmetic::Min, total))))
    }

    /// States that the innermost scope has variables for these axes.
    pub(super) fn bind_axes(&mut self, axes: &[AxisId]) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.axes.extend_from_slice(axes);
        }
    }

    /// Opens a scope that binds some axes.
    pub(super) fn open(&mut self, axes: &[AxisId], unrolled: bool) {
        self.scopes.push(Scope { axes: axes.to_vec(), unrolled, ..Scope::default() });
    }

    /// Opens a scope for what must not be computed outside of it.
    pub(super) fn open_pinned(&mut self) {
        self.scopes.push(Scope { pinned: true, ..Scope::default() });
    }

    /// Appends statements, under a condition if there is one. A position that is looked up has one name, in whatever scope: what comes
    /// after them may look it up too.
    pub(super) fn guarded(&mut self, condition: Option<Expr>, then: Vec<Stmt>) {
        let kind = |axis: AxisId| &self.kernel.axis(axis).kind;
        let binds = |stmt: &Stmt| matches!(stmt, Stmt::Let { var: Var::Axis(axis), .. } if matches!(kind(*axis), AxisKind::Computed { .. }));
        match condition {
            _ if then.is_empty() => {}
            Some(condition) => self.push(Stmt::If { condition, then, otherwise: Vec::new() }),
            None if then.iter().any(binds) => self.push(Stmt::Block(then)),
            None => self.append(then),
        }
    }

    /// Closes the innermost scope and gives its statements.
    pub(super) fn close(&mut self) -> Vec<Stmt> {
        self.scopes.pop().map(|scope| scope.block).unwrap_or_default()
    }

    /// An axis's extent: a literal or the name of its parameter.
    pub(super) fn extent(&self, axis: AxisId) -> Expr {
        let own = self.kernel.axis(axis);
        match (own.is_argument, own.positions_of) {
            (_, Some((of, times))) => Expr::name(Parameter::Extent(of)).then(Arithmetic::Mul, times),
            (true, None) => Expr::name(Parameter::Extent(axis)),
            (false, None) => Expr::Int(own.extent),
        }
    }

    /// The innermost scope that binds one of the axes, or that is pinned.
    pub(super) fn home(&self, axes: &AxisSet) -> usize {
        let belongs = |scope: &Scope| {
            scope.pinned || scope.axes.iter().chain(&scope.computed).any(|axis| axes.contains(axis))
        };
        self.scopes.iter().rposition(belongs).unwrap_or(0)
    }

    /// Binds `axes` from a row-major position over them. The last axis advances in steps of `multiple`.
    pub(super) fn unflatten(&mut self, flat: impl Into<Var>, axes: &[AxisId], multiple: u64) {
        let flat = flat.into();
        let mut stride = 1;
        let mut bindings = Vec::new();
        for (position, &axis) in axes.iter().enumerate().rev() {
            let is_last = position + 1 == axes.len();
            let extent = self.kernel.axis(axis).extent / if is_last { multiple } else { 1 };
            let mut value = Expr::name(flat).then(Arithmetic::Div, stride);
            if position > 0 {
                value = value.then(Arithmetic::Rem, extent);
            }
            if is_last {
                value = value.then(Arithmetic::Mul, multiple);
            }
            bindings.push((Var::Axis(axis), value));
            stride *= extent;
        }
        for (var, value) in bindings.into_iter().rev() {
            if value != Expr::Name(var) {
                self.bind(var, Type::Index, value);
            }
        }
        self.bind_axes(axes);
        if multiple > 1
            && let Some(&last) = axes.last()
        {
            self.multiples.insert(last, multiple as i64);
        }
    }

    /// The number of positions of some axes, as an expression; only the first may be an argument.
    pub(super) fn positions(&self, axes: &[AxisId]) -> Expr {
        let is_argument = |axis: &AxisId| self.kernel.axis(*axis).is_argument;
        let constant =
            axes.iter().filter(|axis| !is_argument(axis)).map(|&axis| self.kernel.axis(axis).extent);
        let arguments = axes.iter().filter(|axis| is_argument(axis)).map(|&axis| self.extent(axis));
        let constant = Expr::Int(constant.product());
        arguments
            .fold(None, |product: Option<Expr>, extent| match product {
                None => Some(extent),
                Some(product) => Some(product.then(Arithmetic::Mul, extent)),
            })
            .map_or(constant.clone(), |product| product.then(Arithmetic::Mul, constant))
    }
}
