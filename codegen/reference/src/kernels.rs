//! Kernels without a compiler: each value for all positions of its axes at once, by the reference's own operations.
//!
//! A kernel has no loops; it says what each value is and over which axes it varies. So it is evaluated like a graph, one
//! array a value, broadcast to the axes of whoever uses it. Only what a recurrence's steps give to each other goes
//! position by position. Nothing is shared with schedules, nests and printers, so that passes, fusion and lowering are
//! tested apart from these: the same as the graph gives, up to the rounding that kernels leave out (16-bit floats are
//! `F32` between loads, casts and stores). Every access is checked, and that every element of an output is written.

use std::rc::Rc;

use lazuli_codegen::index::{Atom, AxisId, Bound, IndexExpr};
use lazuli_codegen::ir::{AxisKind, Kernel, Recurrence, Store, ValueId, ValueOp};
use lazuli_codegen::{ReduceOp, Scalar};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use smallvec::SmallVec;

use crate::error::broken;
use crate::extents::{Extents, elements, ensure_room};
use crate::scan::Scan;
use crate::sort::{self, Sort};
use crate::values::for_any;
use crate::{Element, Error, Result, Values};
use crate::{cast, random, reduce, scalar, scan, scatter, views};

/// What a kernel is called with.
pub struct Launch<'a> {
    /// What runs.
    pub kernel: &'a Kernel,
    /// The values of its arguments.
    pub arguments: &'a [Scalar],
    /// The position of each offset.
    pub offset: &'a dyn Fn(AxisId) -> u64,
    /// The elements of its inputs, in order.
    pub inputs: &'a [&'a [u8]],
}

/// What a kernel gives.
pub struct Results {
    /// The elements of its outputs, in order.
    pub outputs: Vec<Vec<u8>>,
    /// A check that failed, and the value that is no position.
    pub failed: Option<(u32, i64)>,
}

/// Runs a kernel.
///
/// # Errors
/// [`Error::OutOfMemory`]; [`Error::Broken`] if it reads or writes beyond a buffer, leaves elements of an output unwritten,
/// or is not sound.
///
/// ```
/// use lazuli_reference::kernels::{Launch, run};
/// let kernel = "\
/// kernel twice
///   map i0 < 2
///   input in0: u8 [2]
///   output out0: u8 [2]
///   v0: u8 = load in0[i0]
///   v1: u8 = add v0 v0
///   store out0[i0] = v1
/// ";
/// let kernel = kernel.parse().unwrap();
/// let launch = Launch { kernel: &kernel, arguments: &[], offset: &|_| 0, inputs: &[&[3, 4]] };
/// assert_eq!(run(launch).unwrap().outputs, [[6, 8]]);
/// ```
pub fn run(launch: Launch<'_>) -> Result<Results> {
    let kernel = launch.kernel;
    let of_kernel = |error| match error {
        Error::Broken(message) => Error::Broken(format!("{message}, in\n{kernel}")),
        other => other,
    };
    Interpreter::new(launch).and_then(Interpreter::run).map_err(of_kernel)
}

type Axes = SmallVec<[AxisId; 6]>;

/// A value at all positions of its axes, row-major.
#[derive(Clone)]
struct Array {
    axes: Axes,
    values: Rc<Values>,
}

/// The positions that something is computed at: all of some axes, and one of another.
#[derive(Clone, Default)]
struct Space {
    axes: Axes,
    shape: Extents,
    at: Option<(AxisId, usize)>,
}

impl Space {
    /// How many positions there are.
    fn count(&self) -> usize {
        elements(&self.shape)
    }
}

struct Interpreter<'a> {
    launch: Launch<'a>,
    inputs: Vec<Values>,
    arrays: Vec<Option<Array>>,
    /// How many values, stores and next steps are still to use each value.
    uses: Vec<usize>,
    failed: Option<(u32, i64)>,
}

impl<'a> Interpreter<'a> {
    fn new(launch: Launch<'a>) -> Result<Interpreter<'a>> {
        let kernel = launch.kernel;
        let buffers = kernel.buffers.iter().filter(|buffer| !buffer.is_output);
        let inputs: Vec<Values> = (buffers.clone().zip(launch.inputs))
            .map(|(buffer, bytes)| Values::from_bytes(buffer.dtype, bytes))
            .collect();
        let is_complete = buffers.clone().count() == inputs.len()
            && buffers.zip(&inputs).all(|(buffer, input)| input.len() as u64 == buffer.elements)
            && launch.arguments.len() == kernel.arguments.len();
        if !is_complete {
            return Err(broken("a kernel is called with too few or too short inputs"));
        }
        let (arrays, uses) = (vec![None; kernel.values.len()], vec![0; kernel.values.len()]);
        Ok(Interpreter { launch, inputs, arrays, uses, failed: None })
    }

    fn run(mut self) -> Result<Results> {
        let kernel = self.launch.kernel;
        let mut outputs: Vec<Values> = Vec::new();
        for buffer in kernel.buffers.iter().filter(|buffer| buffer.is_output) {
            ensure_room(&[buffer.elements as usize], buffer.dtype)?;
            outputs.push(Values::filled(Scalar::from_i64(buffer.dtype, 0), buffer.elements as usize));
        }
        if outputs.iter().all(Values::is_empty) {
            // It is not launched: there may be positions all the same, of what nothing is computed from.
            return Ok(Results { outputs: vec![Vec::new(); outputs.len()], failed: None });
        }
        for component in self.order() {
            self.component(&component)?;
            for id in component {
                for operand in self.needed_by(id) {
                    self.uses[operand.index()] -= 1;
                    if self.uses[operand.index()] == 0 {
                        self.arrays[operand.index()] = None;
                    }
                }
            }
        }
        let mut written: Vec<Vec<bool>> = outputs.iter().map(|output| vec![false; output.len()]).collect();
        let first = self.inputs.len();
        for store in &kernel.stores {
            let number = store.buffer.index() - first;
            self.store(store, &mut outputs[number], &mut written[number])?;
        }
        if let Some(output) = written.iter().position(|written| written.contains(&false)) {
            return Err(broken(format!("not all elements of out{output} are written")));
        }
        let outputs = outputs.iter().map(|output| output.bytes().to_vec()).collect();
        Ok(Results { outputs, failed: self.failed })
    }

    /// What a value follows from: its operands, and of a carry or its end what the step gives.
    fn needed_by(&self, id: ValueId) -> SmallVec<[ValueId; 4]> {
        let kernel = self.launch.kernel;
        let op = &kernel.value(id).op;
        let mut needed: SmallVec<[ValueId; 4]> = kernel.operands(op).into_iter().collect();
        let carry = match op {
            ValueOp::Carry { .. } => Some(id),
            ValueOp::Last { carry } => Some(*carry),
            _ => None,
        };
        needed.extend(carry.and_then(|carry| self.recurrence(carry)).map(|recurrence| recurrence.next));
        needed
    }

    fn recurrence(&self, carry: ValueId) -> Option<&'a Recurrence> {
        self.launch.kernel.recurrences.iter().find(|recurrence| recurrence.carry == carry)
    }

    /// What the stores need, in an order to compute it in: the values of a loop together. Counts the uses.
    fn order(&mut self) -> Vec<Vec<ValueId>> {
        let kernel = self.launch.kernel;
        let mut graph: DiGraph<ValueId, ()> = DiGraph::new();
        let mut nodes: Vec<Option<NodeIndex>> = vec![None; kernel.values.len()];
        let mut pending: Vec<ValueId> = Vec::new();
        for store in &kernel.stores {
            pending.push(store.value);
            pending.extend(kernel.computed_axes(&store.index).into_iter().map(|(_, value)| value));
        }
        pending.iter().for_each(|id| self.uses[id.index()] += 1);
        let mut live = Vec::new();
        while let Some(id) = pending.pop() {
            if nodes[id.index()].is_none() {
                nodes[id.index()] = Some(graph.add_node(id));
                live.push(id);
                pending.extend(self.needed_by(id));
            }
        }
        for &id in &live {
            for needed in self.needed_by(id) {
                self.uses[needed.index()] += 1;
                if let (Some(from), Some(to)) = (nodes[id.index()], nodes[needed.index()]) {
                    graph.add_edge(from, to, ());
                }
            }
        }
        let components = kosaraju_scc(&graph).into_iter();
        components
            .map(|component| {
                let mut ids: Vec<ValueId> = component.into_iter().map(|node| graph[node]).collect();
                ids.sort_unstable();
                ids
            })
            .collect()
    }

    /// Computes a value, or the values of a loop.
    fn component(&mut self, ids: &[ValueId]) -> Result<()> {
        let kernel = self.launch.kernel;
        let carries: Vec<&Recurrence> = ids.iter().filter_map(|&id| self.recurrence(id)).collect();
        let Some(first) = carries.first() else {
            for &id in ids {
                let space = self.space(kernel.value(id).axes.iter().copied());
                let values = self.compute(id, &space)?;
                self.arrays[id.index()] = Some(Array { axes: space.axes, values });
            }
            return Ok(());
        };
        let (along, reverse) = (first.axis, first.reverse);
        if carries.iter().any(|carry| (carry.axis, carry.reverse) != (along, reverse)) {
            return Err(broken("a loop goes along two axes"));
        }
        let steps = self.extent(along);
        let mut rows: Vec<Vec<Rc<Values>>> = vec![Vec::with_capacity(steps); ids.len()];
        let mut spaces = Vec::with_capacity(ids.len());
        for &id in ids {
            spaces.push(self.space(kernel.value(id).axes.iter().copied().filter(|&axis| axis != along)));
        }
        for step in 0..steps {
            let position = if reverse { steps - 1 - step } else { step };
            let mut begins = Vec::new();
            for (&id, space) in ids.iter().zip(&mut spaces) {
                space.at = Some((along, position));
                if let ValueOp::Carry { init, .. } = kernel.value(id).op {
                    let next = self.recurrence(id).map_or(init, |recurrence| recurrence.next);
                    let last = Space {
                        at: Some((along, if reverse { position + 1 } else { position.wrapping_sub(1) })),
                        ..space.clone()
                    };
                    begins.push((
                        id,
                        if step == 0 { self.operand(init, space)? } else { self.operand(next, &last)? },
                    ));
                }
            }
            for (id, values) in begins {
                let space = &spaces[ids.iter().position(|&other| other == id).unwrap_or(0)];
                self.arrays[id.index()] = Some(Array { axes: space.axes.clone(), values });
            }
            for ((&id, space), rows) in ids.iter().zip(&spaces).zip(&mut rows) {
                let values = match &self.arrays[id.index()] {
                    Some(array) if self.recurrence(id).is_some() => array.values.clone(),
                    _ => self.compute(id, space)?,
                };
                self.arrays[id.index()] = Some(Array { axes: space.axes.clone(), values: values.clone() });
                rows.push(values);
            }
        }
        for ((&id, space), mut rows) in ids.iter().zip(&spaces).zip(rows) {
            if reverse {
                rows.reverse();
            }
            let bytes: Vec<u8> = rows.iter().flat_map(|row| row.bytes()).copied().collect();
            let values = Rc::new(Values::from_bytes(kernel.value(id).dtype, &bytes));
            let axes = std::iter::once(along).chain(space.axes.iter().copied()).collect();
            self.arrays[id.index()] = Some(Array { axes, values });
        }
        Ok(())
    }

    fn extent(&self, axis: AxisId) -> usize {
        self.launch.kernel.axis(axis).extent as usize
    }

    fn space(&self, axes: impl Iterator<Item = AxisId>) -> Space {
        let axes: Axes = axes.collect();
        let shape = axes.iter().map(|&axis| self.extent(axis)).collect();
        Space { axes, shape, at: None }
    }

    /// A value at the positions of a space.
    fn operand(&self, id: ValueId, space: &Space) -> Result<Rc<Values>> {
        let array = self.arrays[id.index()].as_ref();
        let array = array.ok_or_else(|| broken(format!("v{} is used before it is there", id.0)))?;
        if array.axes == space.axes {
            return Ok(array.values.clone());
        }
        let mut strides: SmallVec<[i64; 6]> = SmallVec::from_elem(0, space.axes.len());
        let (mut stride, mut base) = (1, 0);
        for &axis in array.axes.iter().rev() {
            match (space.axes.iter().position(|&other| other == axis), space.at) {
                (Some(place), _) => strides[place] = stride,
                (None, Some((held, position))) if held == axis => base += position as i64 * stride,
                _ => return Err(broken(format!("v{} varies along more axes than its user", id.0))),
            }
            stride *= self.extent(axis) as i64;
        }
        ensure_room(&space.shape, array.values.dtype())?;
        Ok(Rc::new(
            for_any!(&*array.values, x => Element::wrap(views::gather(x, base, &space.shape, &strides))),
        ))
    }

    /// A value that is none of a loop's carries, at the positions of a space that has all its axes.
    fn compute(&mut self, id: ValueId, space: &Space) -> Result<Rc<Values>> {
        let value = self.launch.kernel.value(id);
        let count = space.count();
        ensure_room(&space.shape, value.dtype)?;
        let result = match &value.op {
            ValueOp::Load { buffer, index, guard } => {
                let guard = guard.map(|guard| self.operand(guard, space)).transpose()?;
                self.load(buffer.index(), index, guard, space)?
            }
            ValueOp::Literal(scalar) => Values::filled(*scalar, count),
            ValueOp::Argument(argument) => Values::filled(self.launch.arguments[argument.index()], count),
            ValueOp::Position(index) => Values::I64(self.index(index, space)?),
            ValueOp::InBounds(bounds) => Values::Bool(self.in_bounds(bounds, space)?),
            ValueOp::Random { seed, index } => {
                let seed = self.launch.arguments[seed.index()].to_bits();
                let index = self.index(index, space)?;
                random::uniform_at(seed, index.into_iter().map(|index| index as u64), value.dtype)?
            }
            ValueOp::Unary(op, a) => scalar::unary(*op, &*self.operand(*a, space)?)?,
            ValueOp::Binary(op, a, b) => {
                scalar::binary(*op, &*self.operand(*a, space)?, &*self.operand(*b, space)?)?
            }
            ValueOp::Select(condition, a, b) => {
                let condition = self.operand(*condition, space)?;
                scalar::select(&condition, &*self.operand(*a, space)?, &*self.operand(*b, space)?)?
            }
            ValueOp::Cast(to, a) => {
                let rounded = cast::cast(&*self.operand(*a, space)?, *to);
                if *to == value.dtype { rounded } else { cast::cast(&rounded, value.dtype) }
            }
            &ValueOp::Scan { op, axis, reverse, exclusive, operand } => {
                let place = self.place(axis, space)?;
                let scan = Scan { op, axis: place, reverse, exclusive };
                scan::scan(scan, &*self.operand(operand, space)?, &space.shape)?
            }
            ValueOp::Carry { .. } => return Err(broken("a carry of no loop")),
            ValueOp::Last { carry } => {
                let recurrence = self.recurrence(*carry).ok_or_else(|| broken("the end of no loop"))?;
                let steps = self.extent(recurrence.axis);
                let last = if recurrence.reverse { 0 } else { steps.saturating_sub(1) };
                let at = Space { at: Some((recurrence.axis, last)), ..space.clone() };
                return match self.launch.kernel.value(*carry).op {
                    ValueOp::Carry { init, .. } if steps == 0 => self.operand(init, space),
                    _ => self.operand(recurrence.next, &at),
                };
            }
            &ValueOp::Scatter { op, axis, over, index, check, operand } => {
                self.scatter(op, [axis, over], (index, check), operand, space)?
            }
            ValueOp::Sort { .. } => self.sort(&value.op, space)?,
            ValueOp::Reduce { .. } => self.reduce(&value.op, space)?,
        };
        if result.dtype() != value.dtype || result.len() != count {
            return Err(broken(format!("v{} is {} {}", id.0, result.len(), result.dtype())));
        }
        Ok(Rc::new(result))
    }

    fn in_bounds(&mut self, bounds: &[Bound], space: &Space) -> Result<Vec<bool>> {
        let mut all = vec![true; space.count()];
        for bound in bounds {
            let index = self.index(&bound.expr, space)?;
            all.iter_mut().zip(index).for_each(|(all, index)| *all &= (bound.lo..bound.hi).contains(&index));
        }
        Ok(all)
    }

    fn sort(&mut self, op: &ValueOp, space: &Space) -> Result<Values> {
        let &ValueOp::Sort { axis, over, descending, is_position, operand } = op else {
            return Err(broken("no sort"));
        };
        let place = self.place(axis, space)?;
        let mut source = self.space(space.axes.iter().map(|&own| if own == axis { over } else { own }));
        source.at = space.at;
        let sort = Sort { axis: place, extent: space.shape[place], descending, is_position };
        Ok(sort::sort(&*self.operand(operand, &source)?, &source.shape, sort))
    }

    fn reduce(&mut self, op: &ValueOp, space: &Space) -> Result<Values> {
        let ValueOp::Reduce { op, axes, operand, position } = op else {
            return Err(broken("no reduction"));
        };
        let mut whole = self.space(space.axes.iter().chain(axes).copied());
        whole.at = space.at;
        let reduced: Vec<usize> = (space.axes.len()..whole.axes.len()).collect();
        let elements = self.operand(*operand, &whole)?;
        match (reduce::reduce(*op, &elements, &whole.shape, &reduced)?, position) {
            (Values::I64(found), Some(position)) => {
                let length = whole.shape[space.axes.len()..].iter().product::<usize>();
                let Values::I64(positions) = &*self.operand(*position, &whole)? else {
                    return Err(broken("a position is no i64"));
                };
                let of_row = |(row, at): (usize, i64)| positions[row * length + at as usize];
                Ok(Values::I64(found.into_iter().enumerate().map(of_row).collect()))
            }
            (values, _) => Ok(values),
        }
    }

    fn place(&self, axis: AxisId, space: &Space) -> Result<usize> {
        let place = space.axes.iter().position(|&other| other == axis);
        place.ok_or_else(|| broken("a value does not vary along its own axis"))
    }

    /// An index expression at each position of a space.
    fn index(&mut self, index: &IndexExpr, space: &Space) -> Result<Vec<i64>> {
        let mut sum = vec![index.constant_term(); space.count()];
        for (atom, factor) in index.terms() {
            let values = match atom {
                Atom::Axis(axis) => self.positions(*axis, space)?,
                Atom::Div(inner, by) => {
                    let mut values = self.index(inner, space)?;
                    values.iter_mut().for_each(|value| *value = value.div_euclid(*by));
                    values
                }
                Atom::Mod(inner, by) => {
                    let mut values = self.index(inner, space)?;
                    values.iter_mut().for_each(|value| *value = value.rem_euclid(*by));
                    values
                }
            };
            sum.iter_mut()
                .zip(values)
                .for_each(|(sum, value)| *sum = sum.wrapping_add(factor.wrapping_mul(value)));
        }
        Ok(sum)
    }

    /// An axis's own position at each position of a space.
    fn positions(&mut self, axis: AxisId, space: &Space) -> Result<Vec<i64>> {
        let count = space.count();
        match self.launch.kernel.axis(axis).kind {
            AxisKind::Offset { .. } => Ok(vec![(self.launch.offset)(axis) as i64; count]),
            AxisKind::Computed { value, check } => {
                let Values::I64(mut positions) = Values::clone(&*self.operand(value, space)?) else {
                    return Err(broken("a position is no i64"));
                };
                let extent = self.extent(axis);
                let Some(check) = check else {
                    let is_one = |position: &i64| (0..extent as i64).contains(position);
                    return match positions.iter().all(is_one) {
                        true => Ok(positions),
                        false => Err(broken("a position beyond its axis that nothing checks")),
                    };
                };
                positions.iter_mut().for_each(|position| *position = self.checked(*position, extent, check));
                Ok(positions)
            }
            AxisKind::Map | AxisKind::Reduce => match space.at {
                Some((held, position)) if held == axis => Ok(vec![position as i64; count]),
                _ => {
                    let place = self.place(axis, space)?;
                    let inner: usize = space.shape[place + 1..].iter().product();
                    let extent = space.shape[place];
                    Ok((0..count).map(|n| (n / inner % extent) as i64).collect())
                }
            },
        }
    }

    /// A position below the extent; notes what is none.
    fn checked(&mut self, position: i64, extent: usize, check: u32) -> i64 {
        let last = extent.saturating_sub(1) as i64;
        if !(0..extent as i64).contains(&position) {
            self.failed.get_or_insert((check, position));
        }
        position.clamp(0, last)
    }

    fn load(
        &mut self,
        buffer: usize,
        index: &IndexExpr,
        guard: Option<Rc<Values>>,
        space: &Space,
    ) -> Result<Values> {
        let index = self.index(index, space)?;
        let is_read: &dyn Fn(usize) -> bool = match guard.as_deref() {
            Some(Values::Bool(guard)) => &|n| guard[n],
            Some(_) => return Err(broken("a guard is no bool")),
            None => &|_| true,
        };
        let input = &self.inputs[buffer];
        let length = input.len();
        if length == 0 {
            // Of no position; indices do not show it where an axis without positions has fallen out of them.
            return Ok(Values::filled(Scalar::from_i64(input.dtype().compute(), 0), index.len()));
        }
        let beyond =
            |(n, at): (usize, &i64)| is_read(n) && usize::try_from(*at).map_or(true, |at| at >= length);
        if let Some((_, at)) = index.iter().enumerate().find(|found| beyond(*found)) {
            return Err(broken(format!("element {at} of in{buffer} is read, which has {length}")));
        }
        let loaded = for_any!(input, x => {
            let element = |(n, at): (usize, &i64)| if is_read(n) { x[*at as usize] } else { Element::from_int(0) };
            Element::wrap(index.iter().enumerate().map(element).collect())
        });
        let dtype = loaded.dtype().compute();
        Ok(if dtype == loaded.dtype() { loaded } else { cast::cast(&loaded, dtype) })
    }

    fn scatter(
        &mut self,
        op: ReduceOp,
        [axis, over]: [AxisId; 2],
        (index, check): (ValueId, u32),
        operand: ValueId,
        space: &Space,
    ) -> Result<Values> {
        let place = self.place(axis, space)?;
        let mut source = self.space(space.axes.iter().map(|&own| if own == axis { over } else { own }));
        source.at = space.at;
        let elements = self.operand(operand, &source)?;
        let Values::I64(index) = &*self.operand(index, &source)? else {
            return Err(broken("a position is no i64"));
        };
        let (count, extent) = (source.shape[place], space.shape[place]);
        let inner: usize = space.shape[place + 1..].iter().product();
        let mut targets = Vec::with_capacity(index.len());
        for (n, &position) in index.iter().enumerate() {
            let position = self.checked(position, extent, check) as usize;
            targets.push((n / (inner * count) * extent + position) * inner + n % inner);
        }
        if extent == 0 {
            return Ok(Values::filled(Scalar::from_i64(elements.dtype(), 0), 0));
        }
        scatter::combine(op, &elements, &targets, space.count())
    }

    fn store(&mut self, store: &Store, output: &mut Values, written: &mut [bool]) -> Result<()> {
        let kernel = self.launch.kernel;
        let has_loop = |axis: &AxisId| matches!(kernel.axis(*axis).kind, AxisKind::Map | AxisKind::Reduce);
        let mut axes = kernel.value(store.value).axes.clone();
        for (_, value) in kernel.computed_axes(&store.index) {
            axes.extend(&kernel.value(value).axes);
        }
        axes.extend(store.index.axes().iter().filter(|axis| has_loop(axis)));
        let space = self.space(axes.into_iter());
        let index = self.index(&store.index, &space)?;
        let values = self.operand(store.value, &space)?;
        let values = if values.dtype() == output.dtype() {
            values
        } else {
            Rc::new(cast::cast(&values, output.dtype()))
        };
        let length = output.len();
        let mut targets = Vec::with_capacity(index.len());
        for at in index {
            let target = usize::try_from(at).ok().filter(|&target| target < length);
            let target = target.ok_or_else(|| broken(format!("element {at} of {length} is written")))?;
            written[target] = true;
            targets.push(target);
        }
        let stored = for_any!(&*values, x => {
            let mut all = Element::unwrap(output).map_or_else(Vec::new, <[_]>::to_vec);
            if all.len() == length {
                targets.iter().zip(x).for_each(|(&target, &x)| all[target] = x);
            }
            Element::wrap(all)
        });
        match stored.len() == length && stored.dtype() == output.dtype() {
            true => *output = stored,
            false => return Err(broken(format!("{} is stored as {}", stored.dtype(), output.dtype()))),
        }
        Ok(())
    }
}
