//! Graphs from their text, as [`text`](super::text::text) prints it.

use std::sync::{Arc, Mutex, PoisonError};

use lazuli_codegen::ParseError;
use lazuli_codegen::syntax::{Cursor, Place};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::dag::NodeId;
use super::infer;
use super::op::{Axes, Body, Constant, ConstantRole, Graph, Node, Op, Sorted, StepResult, View};
use crate::{BinaryOp, DType, ReduceOp, Scalar, Shape, SourceLocation, UnaryOp};

/// A graph, and its nodes by their numbers in the text.
type Numbered = (Graph, FxHashMap<u32, NodeId>);

/// Takes a graph up to its `return`. What the text does not say of a node is that it is called as its operation is, in
/// that line of a file called `text`.
///
/// # Errors
/// Where the text is none of a graph, or a node's type is not what its operation gives.
pub(crate) fn graph(text: &mut Cursor<'_>) -> Result<Numbered, ParseError> {
    Parser { text, graph: Graph::default(), nodes: FxHashMap::default(), slots: FxHashSet::default() }
        .graph(false)
}

/// More elements than any tensor has.
const MOST_ELEMENTS: usize = 1 << 60;

/// More inputs than any kernel takes.
const MOST_INPUTS: usize = 1 << 16;

struct Parser<'t, 'a> {
    text: &'t mut Cursor<'a>,
    graph: Graph,
    /// By their numbers in the text.
    nodes: FxHashMap<u32, NodeId>,
    slots: FxHashSet<usize>,
}

/// A constant whose dtype stands behind it.
type Untyped<'a> = (Place, &'a str);

impl<'a> Parser<'_, 'a> {
    fn graph(mut self, is_step: bool) -> Result<Numbered, ParseError> {
        while !self.text.eat("return") {
            self.node(is_step)?;
        }
        let mut outputs = Vec::new();
        while self.text.is_at("%") {
            outputs.push(self.operand()?);
            if !self.text.eat(",") {
                break;
            }
        }
        self.graph.set_outputs(outputs);
        Ok((self.graph, self.nodes))
    }

    fn number(&mut self) -> Result<(Place, u32), ParseError> {
        let place = self.text.place();
        if !self.text.eat("%") {
            return Err(self.text.expected("a node, such as `%0`, or `return`"));
        }
        Ok((place, self.text.number()?))
    }

    fn operand(&mut self) -> Result<NodeId, ParseError> {
        let (place, number) = self.number()?;
        let node = self.nodes.get(&number).copied();
        node.ok_or_else(|| self.text.error_at(place, format!("%{number} is not there yet")))
    }

    /// `%2 = mul(%0, %1) : f32 [3]  # scale, src/main.rs:12:5`
    fn node(&mut self, is_step: bool) -> Result<(), ParseError> {
        let (place, number) = self.number()?;
        if self.nodes.contains_key(&number) {
            return Err(self.text.error_at(place, format!("there are two nodes %{number}")));
        }
        self.text.expect("=")?;
        let name_place = self.text.place();
        let name = self.text.word()?;
        let mut operands: SmallVec<[NodeId; 4]> = SmallVec::new();
        if self.text.eat("(") {
            loop {
                operands.push(self.operand()?);
                if self.text.eat(")") {
                    break;
                }
                if !self.text.eat(",") {
                    return Err(self.text.expected("`,` or `)`"));
                }
            }
        }
        let mut untyped = None;
        let op = self.op(name, name_place, &operands, &mut untyped)?;
        self.text.expect(":")?;
        let dtype = self.text.dtype()?;
        let shape = self.shape()?;
        let (origin, location) = self.remark(place, &op);
        let mut op = self.typed(op, untyped, dtype)?;
        if is_step && !(op.is_elementwise() || matches!(op, Op::Input(_) | Op::Constant(_))) {
            return Err(self.text.error_at(name_place, format!("a step has no {name}")));
        }
        if let Op::Recurrence { axis, reverse, body, result } = &op {
            let inputs = operands.iter().map(|&id| self.graph.node(id).dtype).collect();
            let body = Arc::new(self.step(body.carries, inputs)?);
            op = Op::Recurrence { axis: *axis, reverse: *reverse, body, result: *result };
        }
        let node = Node { op, shape, dtype, origin, location };
        let type_of = |&id: &NodeId| (&self.graph.node(id).shape, self.graph.node(id).dtype);
        let checked = {
            let types: SmallVec<[infer::Type; 3]> = operands.iter().map(type_of).collect();
            infer::check(&node.op, &types, (&node.shape, dtype))
        };
        if let Err(message) = checked {
            return Err(self.text.error_at(name_place, format!("{name}: {message}")));
        }
        let id = self.graph.add(node, &operands);
        self.nodes.insert(number, id);
        Ok(())
    }

    fn shape(&mut self) -> Result<Shape, ParseError> {
        let place = self.text.place();
        let extents = self.text.list(Cursor::number)?;
        let elements = extents.iter().map(|&extent: &usize| extent.max(1)).try_fold(1, usize::checked_mul);
        match elements.is_some_and(|elements| elements <= MOST_ELEMENTS) {
            true => Ok(Shape::from(extents)),
            false => Err(self.text.error_at(place, format!("more than {MOST_ELEMENTS} elements"))),
        }
    }

    /// What the user called the node, and where.
    fn remark(&mut self, place: Place, op: &Op) -> (&'static str, SourceLocation) {
        // Lines are counted from the text's beginning: only for those that name no other place.
        let own = |text: &Cursor| {
            let line = text.error_at(place, "").line;
            SourceLocation { file: "text", line: line as u32, column: 1 }
        };
        if !self.text.eat("#") {
            return (op.name(), own(self.text));
        }
        let remark = self.text.line();
        let (origin, rest) = remark.split_once(", ").unwrap_or((remark, remark));
        let location = parsed_location(rest).unwrap_or_else(|| own(self.text));
        // Methods' names become kernels' names; anything else is a comment.
        let is_name = origin.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        match is_name && origin.starts_with(|c: char| !c.is_ascii_digit()) {
            true => (interned(origin), location),
            false => (op.name(), location),
        }
    }

    /// The operation with constants of the dtype.
    fn typed(&self, op: Op, untyped: Option<Untyped<'a>>, dtype: DType) -> Result<Op, ParseError> {
        let Some((place, text)) = untyped else { return Ok(op) };
        let value = Scalar::from_text(dtype, text)
            .ok_or_else(|| self.text.error_at(place, format!("{text} is no {dtype}")))?;
        Ok(match op {
            Op::Constant(constant) => Op::Constant(Constant { value, ..constant }),
            Op::View(View::Pad { before, .. }) => Op::View(View::Pad { before, value }),
            other => other,
        })
    }

    /// The step of a recurrence, below its line.
    fn step(&mut self, carries: usize, inputs: Vec<DType>) -> Result<Body, ParseError> {
        let place = self.text.place();
        self.text.expect("step")?;
        let (nodes, slots) = (FxHashMap::default(), FxHashSet::default());
        let (step, _) = Parser { text: self.text, graph: Graph::default(), nodes, slots }.graph(true)?;
        let fits = |id: NodeId| match step.node(id).op {
            Op::Input(slot) => inputs.get(slot) == Some(&step.node(id).dtype),
            _ => true,
        };
        let is_scalar = |id: NodeId| step.node(id).shape.rank() == 0;
        if carries > inputs.len().saturating_sub(1) || carries > step.outputs().len() {
            return Err(self.text.error_at(place, format!("there are no {carries} carries")));
        }
        let is_sound = step.nodes().all(|id| fits(id) && is_scalar(id));
        match is_sound {
            true => Ok(Body::new(step, carries, inputs)),
            false => {
                Err(self.text.error_at(place, "a step is of 0-d nodes, with inputs as the operands are"))
            }
        }
    }

    fn setting(&mut self, name: &str) -> Result<(), ParseError> {
        self.text.expect(name)?;
        self.text.expect("=")
    }

    fn count(&mut self, name: &str) -> Result<usize, ParseError> {
        self.setting(name)?;
        let place = self.text.place();
        let number = self.text.number()?;
        match number <= MOST_ELEMENTS {
            true => Ok(number),
            false => Err(self.text.error_at(place, format!("{name} is more than {MOST_ELEMENTS}"))),
        }
    }

    fn axes(&mut self, name: &str) -> Result<Axes, ParseError> {
        self.setting(name)?;
        Ok(self.text.list(Cursor::number)?.into())
    }

    fn untyped(&mut self) -> Result<Untyped<'a>, ParseError> {
        Ok((self.text.place(), self.text.constant()?))
    }

    fn op(
        &mut self,
        name: &str,
        place: Place,
        operands: &[NodeId],
        untyped: &mut Option<Untyped<'a>>,
    ) -> Result<Op, ParseError> {
        // Replaced when the dtype is known.
        let value = Scalar::from_bool(false);
        Ok(match name {
            "input" => {
                let slot = self.count("slot")?;
                if slot >= MOST_INPUTS || !self.slots.insert(slot) {
                    return Err(self
                        .text
                        .error_at(place, format!("input {slot} is there already, or too much")));
                }
                Op::Input(slot)
            }
            "constant" => {
                *untyped = Some(self.untyped()?);
                let role = match self.text.eat("argument") {
                    true => ConstantRole::Argument,
                    false => {
                        self.text.expect("literal")?;
                        ConstantRole::Literal
                    }
                };
                Op::Constant(Constant { value, role })
            }
            "iota" => Op::Iota,
            "random" => {
                self.setting("seed")?;
                Op::Random { seed: self.text.number()? }
            }
            "where" => Op::Select,
            "cast" => Op::Cast,
            "reshape" => Op::View(View::Reshape),
            "expand" => Op::View(View::Expand),
            "permute" => Op::View(View::Permute(self.axes("perm")?)),
            "slice" => {
                self.setting("starts")?;
                let starts: SmallVec<[i64; 6]> = self.text.list(Cursor::number)?.into();
                let steps = match self.text.is_at("steps") {
                    true => {
                        self.setting("steps")?;
                        self.text.list(Cursor::number)?.into()
                    }
                    false => SmallVec::from_elem(1, starts.len()),
                };
                Op::View(View::Slice { starts, steps })
            }
            "pad" => {
                let before = self.axes("before")?;
                self.setting("value")?;
                *untyped = Some(self.untyped()?);
                Op::View(View::Pad { before, value })
            }
            "window" => {
                let (axis, size, stride) = (self.count("axis")?, self.count("size")?, self.count("stride")?);
                let dilation = if self.text.is_at("dilation") { self.count("dilation")? } else { 1 };
                Op::View(View::Window { axis, size, stride, dilation })
            }
            "recurrence" => self.recurrence(operands)?,
            "gather" => {
                let axis = self.count("axis")?;
                Op::Gather { axis, is_checked: !self.text.eat("within") }
            }
            _ => self.named(name, place)?,
        })
    }

    /// All but the step, which stands below.
    fn recurrence(&mut self, operands: &[NodeId]) -> Result<Op, ParseError> {
        let axis = self.count("axis")?;
        let reverse = self.text.eat("reverse");
        let result = match self.text.is_at("each") {
            true => StepResult::Each(self.count("each")?),
            false => StepResult::Last(self.count("last")?),
        };
        let place = self.text.place();
        let carries = self.count("carries")?;
        if carries >= operands.len() {
            return Err(self.text.error_at(place, format!("there are no {carries} carries")));
        }
        let body = Arc::new(Body::new(Graph::default(), carries, Vec::new()));
        Ok(Op::Recurrence { axis, reverse, body, result })
    }

    /// An operation that is called by its own name.
    fn named(&mut self, name: &str, place: Place) -> Result<Op, ParseError> {
        if let Some(op) = UnaryOp::ALL.into_iter().find(|op| op.name() == name) {
            return Ok(Op::Unary(op));
        }
        if let Some(op) = BinaryOp::ALL.into_iter().find(|op| op.name() == name) {
            return Ok(Op::Binary(op));
        }
        if let Some(op) = ReduceOp::ALL.into_iter().find(|op| op.name() == name) {
            return Ok(Op::Reduce { op, axes: self.axes("axes")? });
        }
        if let Some(op) = ReduceOp::ALL.into_iter().find(|op| op.is_scan() && op.scan_name() == name) {
            let axis = self.count("axis")?;
            let (reverse, exclusive) = (self.text.eat("reverse"), self.text.eat("exclusive"));
            return Ok(Op::Scan { op, axis, reverse, exclusive });
        }
        if let Some(op) = ReduceOp::ALL.into_iter().find(|op| op.scatter_name() == name) {
            return Ok(Op::Scatter { op, axis: self.count("axis")?, extent: self.count("extent")? });
        }
        for result in [Sorted::Values, Sorted::Positions] {
            if (Op::Sort { axis: 0, extent: 0, descending: false, result }).name() == name {
                let (axis, extent) = (self.count("axis")?, self.count("extent")?);
                return Ok(Op::Sort { axis, extent, descending: self.text.eat("descending"), result });
            }
        }
        Err(self.text.error_at(place, format!("no operation is called `{name}`")))
    }
}

/// `src/main.rs:12:5`
fn parsed_location(text: &str) -> Option<SourceLocation> {
    let (rest, column) = text.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    let location = (line.parse().ok()?, column.parse().ok()?);
    Some(SourceLocation { file: interned(file), line: location.0, column: location.1 })
}

/// A name that lives as long as the program, as those do that the compiler has made.
fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<Option<FxHashSet<&'static str>>> = Mutex::new(None);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_default();
    match names.get(name) {
        Some(known) => known,
        None => {
            let name: &'static str = Box::leak(name.into());
            names.insert(name);
            name
        }
    }
}
