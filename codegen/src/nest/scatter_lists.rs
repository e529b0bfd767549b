//! Lists of a scatter's elements on the CPU: a function sorts the elements of each part by the range of positions that they
//! belong to, in their order, so that a block goes over its own alone, however many ranges there are.

use super::accumulate::set;
use super::emitter::Emitter;
use super::loops::counting;
use super::passes::{launch_items, launch_over};
use super::scatter::{Scatters, bind_digits, offset, scaled};
use super::split::of_parts;
use super::stmt::Arithmetic::{Add, Div, Mul, Sub};
use super::stmt::{Builtin, Expr, LoopHint};
use super::variable::Var;
use super::{Function, INDEX, Parameter, Workspace};
use crate::index::{AxisId, IndexExpr};
use crate::ir::Kernel;
use crate::schedule::{SCATTER_LIST_LENGTH, ScatterSchedule};
use crate::{BinaryOp, DType, Language, Refusal, Scalar};

/// Where each range's elements begin, of each row and part, with one number more for the end, and one more for building it.
const BEGINS: Parameter = Parameter::Workspace(0);

/// The elements in that order.
const ORDER: Parameter = Parameter::Workspace(1);

/// The lists of a kernel.
pub(super) struct Lists<'a> {
    kernel: &'a Kernel,
    scatters: &'a Scatters,
    parts: u32,
    /// Positions of a range, and how many ranges there are.
    positions: u64,
    ranges: u64,
}

impl<'a> Lists<'a> {
    /// Those of the schedule, if it has any.
    pub(super) fn of(
        kernel: &'a Kernel,
        scatters: &'a Scatters,
        schedule: &ScatterSchedule,
    ) -> Option<Lists<'a>> {
        let ranges = kernel.axis(scatters.axis).extent.div_ceil(schedule.positions);
        let lists = Lists { kernel, scatters, parts: schedule.lists, positions: schedule.positions, ranges };
        (schedule.lists > 0).then_some(lists)
    }

    /// The axes along which there are other lists: rows with one index share theirs.
    fn rows(&self) -> &'a [AxisId] {
        let index = &self.kernel.value(self.scatters.index).axes;
        match self.scatters.outer.iter().any(|axis| index.contains(axis)) {
            true => &self.scatters.outer,
            false => &[],
        }
    }

    pub(super) fn workspaces(&self) -> Vec<Workspace> {
        let rows = launch_items(self.kernel, self.rows());
        let elements = self.kernel.axis(self.scatters.over).extent;
        let workspace = |name: &str, elements: u64| {
            let name = name.into();
            Workspace { name, dtype: DType::I64, elements, zeroed: false }
        };
        let begins = rows * u64::from(self.parts) * (self.ranges + 2);
        vec![workspace("begins", begins), workspace("order", rows * elements)]
    }

    fn parts(&self, emitter: &Emitter) -> Expr {
        match self.parts {
            1 => Expr::Int(1),
            _ => {
                let above = emitter.extent(self.scatters.over).then(Add, SCATTER_LIST_LENGTH - 1);
                above.then(Div, SCATTER_LIST_LENGTH)
            }
        }
    }

    /// A number of a workspace that is a position below the extent.
    fn position(&self, from: Parameter, at: Expr, extent: Expr) -> Expr {
        let position = Box::new(Expr::element(from, at));
        Expr::Checked { position, extent: Box::new(extent), check: Some(self.scatters.check) }
    }

    /// The function that makes them: a block has a part of a row's elements.
    pub(super) fn build(&self) -> Result<Function, Refusal> {
        let scatters = self.scatters;
        let mut emitter = Emitter::new(self.kernel, Language::C);
        let mut parts = self.parts(&emitter);
        if self.parts > 1 {
            parts = Expr::Name(emitter.bind("parts", INDEX, parts));
        }
        let block = Expr::Builtin(Builtin::BlockX);
        let rows = emitter.positions(self.rows());
        let [row, part] = bind_digits(&mut emitter, block.clone(), [("row", &rows), ("part", &parts)]);
        if !self.rows().is_empty() {
            scatters.bind_row(&mut emitter, &row);
        }
        let all = emitter.extent(scatters.over);
        let (from, to) = match part {
            Expr::Int(_) => (Expr::Int(0), all.clone()),
            part => emitter.part(["from", "to"], part, SCATTER_LIST_LENGTH, all.clone()),
        };
        let base = block.then(Mul, self.ranges + 2);
        let base = Expr::Name(emitter.bind("base", INDEX, base));
        let begins = |at: Expr| Expr::element(BEGINS, base.clone().then(Add, at));
        let number = |value| Expr::Literal(Scalar::from_i64(DType::I64, value));
        let plus = |a: Expr, b: Expr| Expr::Binary(BinaryOp::Add, DType::I64, Box::new(a), Box::new(b));

        // How many each range has, two places further on.
        let range = emitter.index("range");
        let place = Expr::Name(range);
        let body = vec![set(begins(place.clone()), number(0))];
        emitter.push(counting(range, 0, self.ranges + 2, LoopHint::None).of(body));
        self.each_element(&mut emitter, (&from, &to), &|emitter, range| {
            let count = begins(range.then(Add, 2));
            emitter.push(set(count.clone(), plus(count, number(1))));
        });
        // Where each begins, one place further on.
        let next = begins(place.clone().then(Add, 1));
        let body = vec![set(next.clone(), plus(next, begins(place)))];
        emitter.push(counting(range, 1, self.ranges + 1, LoopHint::None).of(body));
        // Each element goes to its range, whose end is then where the next one goes.
        let row = scaled(row, all.clone());
        self.each_element(&mut emitter, (&from, &to), &|emitter, range| {
            let end = range.then(Add, 1);
            let length = if from == Expr::Int(0) { all.clone() } else { to.clone().then(Sub, from.clone()) };
            let slot = self.position(BEGINS, base.clone().then(Add, end.clone()), length);
            let slot = Expr::Name(emitter.bind("slot", INDEX, slot));
            let slot = plus_base(&row, plus_base(&from, slot));
            let element = Expr::Position(IndexExpr::axis(scatters.over));
            emitter.push(set(Expr::element(ORDER, slot), element));
            let end = begins(end);
            emitter.push(set(end.clone(), plus(end, number(1))));
        });
        let launch = of_parts(&launch_over(self.kernel, self.rows()), self.parts);
        let name = format!("{}_lists", self.kernel.name);
        Ok(Function { name, body: emitter.finish()?, launch })
    }

    /// A loop over the elements, each with the range of its position.
    fn each_element(
        &self,
        emitter: &mut Emitter<'a>,
        (from, to): (&Expr, &Expr),
        body: &dyn Fn(&mut Emitter<'a>, Expr),
    ) {
        let over = self.scatters.over;
        emitter.repeat_along(
            &[over],
            counting(Var::Axis(over), from.clone(), to.clone(), LoopHint::None),
            |emitter| {
                let at = Expr::Name(self.scatters.bind_position(emitter, "at"));
                let range = Expr::Name(emitter.bind("own", INDEX, at.then(Div, self.positions)));
                body(emitter, range);
            },
        );
    }

    /// Loops over the elements of a row's range, in their order.
    pub(super) fn each_of_range(
        &self,
        emitter: &mut Emitter<'a>,
        (row, range): (&Expr, &Expr),
        body: &mut dyn FnMut(&mut Emitter<'a>),
    ) {
        let all = emitter.extent(self.scatters.over);
        let parts = self.parts(emitter);
        let row = if self.rows().is_empty() { Expr::Int(0) } else { row.clone() };
        let (part, place) = (emitter.index("part"), emitter.index("place"));
        emitter.open(&[], false);
        let own = match self.parts {
            1 => row.clone(),
            _ => offset(row.clone(), parts.clone(), Expr::Name(part)),
        };
        let own = plus_base(&scaled(own, Expr::Int(self.ranges + 2)), range.clone());
        let (from, length) = match self.parts {
            1 => (Expr::Int(0), all.clone()),
            _ => {
                let names = ["from", "to"];
                let (from, to) = emitter.part(names, Expr::Name(part), SCATTER_LIST_LENGTH, all.clone());
                (from.clone(), to.then(Sub, from))
            }
        };
        let past = length.then(Add, 1);
        let begin = self.position(BEGINS, own.clone(), past.clone());
        let begin = Expr::Name(emitter.bind("begin", INDEX, begin));
        let end = self.position(BEGINS, own.then(Add, 1), past);
        let end = Expr::Name(emitter.bind("stop", INDEX, end));
        emitter.repeat(counting(place, begin, end, LoopHint::None), |emitter| {
            let slot = plus_base(&scaled(row, all.clone()), plus_base(&from, Expr::Name(place)));
            let element = self.position(ORDER, slot, all);
            emitter.bind(self.scatters.over, INDEX, element);
            emitter.bind_axes(&[self.scatters.over]);
            body(emitter);
        });
        let statements = emitter.close();
        match self.parts {
            1 => emitter.append(statements),
            _ => emitter.push(counting(part, 0, parts, LoopHint::None).of(statements)),
        }
    }
}

/// The sum, where the first may be 0.
fn plus_base(base: &Expr, at: Expr) -> Expr {
    if *base == Expr::Int(0) { at } else { base.clone().then(Add, at) }
}
