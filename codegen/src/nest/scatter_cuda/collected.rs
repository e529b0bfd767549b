//! Where most elements are none of a block's: its threads look at many, those that are the block's are put into a list,
//! in their order, and the list is combined. Each position belongs to one warp, or, without columns, all belong to one
//! warp whose lanes take turns.

use super::{LANES, Writer};
use crate::nest::INDEX;
use crate::nest::accumulate::{mul_add, set};
use crate::nest::emitter::Emitter;
use crate::nest::scatter::{Partials, TRUTH, offset};
use crate::nest::stmt::Arithmetic::{Add, And, Equal, Less, Min, Mul, Rem, Sub};
use crate::nest::stmt::{Builtin, Expr, LoopHint, Step, Stmt, Type};
use crate::nest::variable::Var;
use crate::nest::walk::count_loop;

/// Warps of a block.
const WARPS: u64 = 8;

/// What a list has of each element.
enum Listed {
    /// Its number.
    Elements(Var),
    /// The values of each scatter.
    Values(Vec<Var>),
}

impl Writer<'_> {
    pub(super) fn walk_collected(&self, emitter: &mut Emitter, each: u64) {
        let scatters = self.scatters;
        let (x, y) = (|| Expr::Builtin(Builtin::ThreadX), || Expr::Builtin(Builtin::ThreadY));
        let (segments, chunk) = (WARPS * each, WARPS * each * LANES);
        let index_array =
            |emitter: &mut Emitter, name: &'static str, len: u64| emitter.share(name, Type::Index, len);
        let counts = index_array(emitter, "counts", segments);
        let places = index_array(emitter, "places", chunk);
        // Without columns a thread reads its element itself, and lists the value.
        let by_value = self.schedule.columns == 1;
        let listed_by = match by_value {
            false => Listed::Elements(index_array(emitter, "elements", chunk)),
            true => {
                let array = |shared: &Partials| {
                    emitter.shared("values", shared.array, Type::Register(shared.dtype), chunk)
                };
                Listed::Values(self.shared.iter().map(array).collect())
            }
        };
        let (start, turn_var) = (emitter.index("start"), emitter.index("turn"));
        let extent = emitter.extent(scatters.over);
        let over = scatters.over;
        emitter.open(&[], false);
        let [place, listed] =
            [("place", INDEX), ("listed", TRUTH)].map(|(name, ty)| emitter.array(name, ty, each));
        let turn = || Expr::Name(turn_var);
        let segment = || offset(y(), Expr::Int(each), turn());
        let own = |emitter: &mut Emitter| {
            let number = mul_add(segment(), Expr::Int(LANES), x());
            let own = emitter.bind("own", INDEX, Expr::Name(start).then(Add, number));
            // Lanes beyond the last element read it too, and list nothing.
            let last = extent.clone().then(Sub, Expr::Int(1));
            emitter.bind(over, INDEX, Expr::Name(own).then(Min, last));
            emitter.bind_axes(&[scatters.over]);
            own
        };
        let for_turns =
            |body: Vec<Stmt>| count_loop(turn_var, Expr::Int(0), Expr::Int(each), LoopHint::Unroll, body);

        // All that a thread looks at is read before anything waits for it.
        emitter.open(&[], false);
        let own_element = own(emitter);
        let at = scatters.bind_position(emitter, "at");
        let (is_own, own_place) = self.place(at);
        let inside = Expr::Name(own_element).then(Less, extent.clone());
        let is_listed = is_own.map_or(inside.clone(), |is_own| inside.then(And, is_own));
        emitter.push(set(Expr::element(place, turn()), own_place));
        emitter.push(set(Expr::element(listed, turn()), is_listed));
        let body = emitter.close();
        emitter.push(for_turns(body));

        emitter.open(&[], false);
        let votes = Expr::Votes(Box::new(Expr::element(listed, turn())));
        let votes = emitter.bind("votes", INDEX, votes);
        let first = x().then(Equal, Expr::Int(0));
        let count = set(Expr::element(counts, segment()), Expr::Name(votes));
        emitter.push(Stmt::If { condition: first, then: vec![count], otherwise: Vec::new() });
        let body = emitter.close();
        emitter.push(for_turns(body));
        emitter.push(Stmt::Barrier);

        let total = |emitter: &mut Emitter, name: &'static str, init: Expr, to: Expr| {
            let hint = if let Expr::Int(_) = to { LoopHint::Unroll } else { LoopHint::None };
            let (total, before) = (emitter.variable(name, INDEX, init), emitter.index("before"));
            let more = Expr::Name(total).then(Add, Expr::element(counts, Expr::Name(before)));
            let body = vec![set(Expr::Name(total), more)];
            emitter.push(count_loop(before, Expr::Int(0), to, hint, body));
            total
        };
        emitter.open(&[], false);
        own(emitter);
        let votes = Expr::VotesBefore(Box::new(Expr::element(listed, turn())));
        let votes = emitter.bind("votes", INDEX, votes);
        emitter.open_pinned();
        let line = total(emitter, "line", Expr::Name(votes), segment());
        let line = || Expr::Name(line);
        emitter.push(set(Expr::element(places, line()), Expr::element(place, turn())));
        match &listed_by {
            Listed::Elements(elements) => {
                emitter.push(set(Expr::element(elements, line()), Expr::name(over)));
            }
            Listed::Values(values) => {
                for (shared, array) in self.shared.iter().zip(values) {
                    let value = emitter.value(shared.operand);
                    emitter.push(set(Expr::element(array, line()), value));
                }
            }
        }
        let then = emitter.close();
        let condition = Expr::element(listed, turn());
        emitter.push(Stmt::If { condition, then, otherwise: Vec::new() });
        let body = emitter.close();
        emitter.push(for_turns(body));
        emitter.push(Stmt::Barrier);

        let length = total(emitter, "length", Expr::Int(0), Expr::Int(segments));
        match &listed_by {
            Listed::Values(values) => self.apply_values(emitter, (places, length), values),
            Listed::Elements(elements) => self.apply_elements(emitter, (places, length), *elements),
        }
        emitter.push(Stmt::Barrier);
        let body = emitter.close();
        let (from, step) = match self.schedule.splits {
            1 => (Expr::Int(0), Expr::Int(chunk)),
            _ => (
                Expr::Builtin(Builtin::BlockY).then(Mul, Expr::Int(chunk)),
                Expr::Builtin(Builtin::GridY).then(Mul, Expr::Int(chunk)),
            ),
        };
        emitter.push(Stmt::For {
            var: start,
            from,
            to: extent,
            step: Step::Add(step),
            hint: LoopHint::None,
            body,
        });
    }

    /// Each warp goes along the list for the positions that are its own, a lane for a column.
    fn apply_elements(&self, emitter: &mut Emitter, (places, length): (Var, Var), elements: Var) {
        let scatters = self.scatters;
        let over = scatters.over;
        let columns = self.schedule.columns;
        let (line, k) = (emitter.index("line"), emitter.index("k"));
        emitter.open(&[], false);
        let at = emitter.bind("at", INDEX, Expr::element(places, Expr::Name(line)));
        emitter.open_pinned();
        emitter.bind(over, INDEX, Expr::element(elements, Expr::Name(line)));
        emitter.bind_axes(&[scatters.over]);
        emitter.open(&[], true);
        let within = mul_add(Expr::Name(k), Expr::Int(LANES), Expr::Builtin(Builtin::ThreadX));
        let within = if columns == LANES { Expr::Builtin(Builtin::ThreadX) } else { within };
        let within = emitter.bind("within", INDEX, within);
        let own = offset(self.tile.clone(), Expr::Int(columns), Expr::Name(within));
        let column = scatters.column_name(emitter);
        let is_even = self.columns.is_multiple_of(columns);
        // Lanes beyond the last column do the same as it, and store nothing.
        let own = match is_even {
            true => own,
            false => {
                let own = emitter.bind("own_column", INDEX, own);
                Expr::Name(own).then(Min, Expr::Int(self.columns - 1))
            }
        };
        emitter.bind(column, INDEX, own);
        match scatters.inner.as_slice() {
            [_] => emitter.bind_axes(&scatters.inner),
            _ => emitter.unflatten(column, &scatters.inner, 1),
        }
        let slot = mul_add(Expr::Name(at), Expr::Int(columns), Expr::Name(within));
        for shared in &self.shared {
            let value = emitter.value(shared.operand);
            shared.combine(emitter, &slot, value);
        }
        let body = emitter.close();
        match columns {
            LANES => body.into_iter().for_each(|stmt| emitter.push(stmt)),
            _ => {
                emitter.push(count_loop(k, Expr::Int(0), Expr::Int(columns / LANES), LoopHint::Unroll, body))
            }
        }
        let then = emitter.close();
        let warp = Expr::Name(at).then(Rem, Expr::Int(WARPS));
        let condition = warp.then(Equal, Expr::Builtin(Builtin::ThreadY));
        emitter.push(Stmt::If { condition, then, otherwise: Vec::new() });
        let body = emitter.close();
        emitter.push(count_loop(line, Expr::Int(0), Expr::Name(length), LoopHint::None, body));
    }

    /// The first warp goes along the list.
    fn apply_values(&self, emitter: &mut Emitter, (places, length): (Var, Var), values: &[Var]) {
        let from = emitter.index("from");
        emitter.open(&[], false);
        let line = emitter.bind("line", INDEX, Expr::Name(from).then(Add, Expr::Builtin(Builtin::ThreadX)));
        let active = emitter.bind("active", TRUTH, Expr::Name(line).then(Less, Expr::Name(length)));
        let place = Expr::element(places, Expr::Name(line));
        let nowhere = Expr::Int(self.schedule.positions);
        let place = Expr::Select(Box::new(Expr::Name(active)), Box::new(place), Box::new(nowhere));
        let at = emitter.bind("at", INDEX, place);
        emitter.open_pinned();
        for (shared, array) in self.shared.iter().zip(values) {
            let value = Expr::element(array, Expr::Name(line));
            shared.combine(emitter, &Expr::Name(at), value);
        }
        let body = emitter.close();
        emitter.push(Stmt::InTurns { key: Expr::Name(at), active: Expr::Name(active), body });
        let body = emitter.close();
        let walk = Stmt::For {
            var: from,
            from: Expr::Int(0),
            to: Expr::Name(length),
            step: Step::Add(Expr::Int(LANES)),
            hint: LoopHint::None,
            body,
        };
        let first = Expr::Builtin(Builtin::ThreadY).then(Equal, Expr::Int(0));
        emitter.push(Stmt::If { condition: first, then: vec![walk], otherwise: Vec::new() });
    }
}
