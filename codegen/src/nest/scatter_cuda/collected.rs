//! Where most elements are none of a block's: its threads look at many, those that are the block's are put into a list,
//! in their order, and the list is combined. Each position belongs to one warp, or, without columns, all belong to one
//! warp whose lanes take turns.

use super::{LANES, Writer};
use crate::nest::INDEX;
use crate::nest::accumulate::{mul_add, set};
use crate::nest::emitter::Emitter;
use crate::nest::scatter::{TRUTH, digit, offset};
use crate::nest::stmt::Arithmetic::{Add, And, Equal, Less, Min, Mul, Rem, Sub};
use crate::nest::stmt::{Builtin, Expr, LoopHint, Step, Stmt, Type};
use crate::nest::variable::Var;
use crate::nest::walk::count_loop;

/// Warps of a block.
const WARPS: u64 = 8;

impl Writer<'_> {
    pub(super) fn walk_collected(&self, emitter: &mut Emitter, each: u64) {
        let scatters = self.scatters;
        let (x, y) = (|| Expr::Builtin(Builtin::ThreadX), || Expr::Builtin(Builtin::ThreadY));
        let (segments, chunk) = (WARPS * each, WARPS * each * LANES);
        let index_array = |emitter: &mut Emitter, name: &'static str, len: u64| {
            emitter.share(name, Type::Index, len);
        };
        index_array(emitter, "counts", segments);
        index_array(emitter, "places", chunk);
        // Without columns a thread reads its element itself, and lists the value.
        let by_value = self.schedule.columns == 1;
        let mut values = Vec::new();
        match by_value {
            false => index_array(emitter, "elements", chunk),
            true => {
                values.extend(self.shared.iter().map(|shared| {
                    emitter.shared("values", shared.array, Type::Register(shared.dtype), chunk)
                }))
            }
        }
        let extent = emitter.extent(scatters.over);
        let over = scatters.over;
        emitter.open(&[], false);
        for (name, ty) in [("place", INDEX), ("listed", TRUTH)] {
            emitter.array(name, ty, each);
        }
        let turn = || Expr::name("turn");
        let segment = || offset(y(), Expr::Int(each), turn());
        let own = |emitter: &mut Emitter| {
            let place = mul_add(segment(), Expr::Int(LANES), x());
            emitter.bind("own", INDEX, Expr::name("start").then(Add, place));
            // Lanes beyond the last element read it too, and list nothing.
            let last = extent.clone().then(Sub, Expr::Int(1));
            emitter.bind(over, INDEX, Expr::name("own").then(Min, last));
            emitter.bind_axes(&[scatters.over]);
        };
        let for_turns =
            |body: Vec<Stmt>| count_loop("turn", Expr::Int(0), Expr::Int(each), LoopHint::Unroll, body);

        // All that a thread looks at is read before anything waits for it.
        emitter.open(&[], false);
        own(emitter);
        scatters.bind_position(emitter);
        let (is_own, place) = self.place();
        let inside = Expr::name("own").then(Less, extent.clone());
        let listed = is_own.map_or(inside.clone(), |is_own| inside.then(And, is_own));
        emitter.push(set(Expr::element("place", turn()), place));
        emitter.push(set(Expr::element("listed", turn()), listed));
        let body = emitter.close();
        emitter.push(for_turns(body));

        emitter.open(&[], false);
        let votes = Expr::Votes(Box::new(Expr::element("listed", turn())));
        emitter.bind("votes", INDEX, votes);
        let first = x().then(Equal, Expr::Int(0));
        let count = set(Expr::element("counts", segment()), Expr::name("votes"));
        emitter.push(Stmt::If { condition: first, then: vec![count], otherwise: Vec::new() });
        let body = emitter.close();
        emitter.push(for_turns(body));
        emitter.push(Stmt::Barrier);

        let total = |emitter: &mut Emitter, name: &'static str, init: Expr, to: Expr| {
            let hint = if let Expr::Int(_) = to { LoopHint::Unroll } else { LoopHint::None };
            emitter.variable(name, INDEX, init);
            let more = Expr::name(name).then(Add, Expr::element("counts", Expr::name("before")));
            let body = vec![set(Expr::name(name), more)];
            emitter.push(count_loop("before", Expr::Int(0), to, hint, body));
        };
        emitter.open(&[], false);
        own(emitter);
        let votes = Expr::VotesBefore(Box::new(Expr::element("listed", turn())));
        emitter.bind("votes", INDEX, votes);
        emitter.open_pinned();
        total(emitter, "line", Expr::name("votes"), segment());
        let line = || Expr::name("line");
        emitter.push(set(Expr::element("places", line()), Expr::element("place", turn())));
        match by_value {
            false => emitter.push(set(Expr::element("elements", line()), Expr::name(over))),
            true => {
                for (shared, array) in self.shared.iter().zip(&values) {
                    let value = emitter.value(shared.operand);
                    emitter.push(set(Expr::element(array, line()), value));
                }
            }
        }
        let then = emitter.close();
        let condition = Expr::element("listed", turn());
        emitter.push(Stmt::If { condition, then, otherwise: Vec::new() });
        let body = emitter.close();
        emitter.push(for_turns(body));
        emitter.push(Stmt::Barrier);

        total(emitter, "length", Expr::Int(0), Expr::Int(segments));
        match by_value {
            true => self.apply_values(emitter, &values),
            false => self.apply_elements(emitter),
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
            var: "start".into(),
            from,
            to: extent,
            step: Step::Add(step),
            hint: LoopHint::None,
            body,
        });
    }

    /// Each warp goes along the list for the positions that are its own, a lane for a column.
    fn apply_elements(&self, emitter: &mut Emitter) {
        let scatters = self.scatters;
        let over = scatters.over;
        let columns = self.schedule.columns;
        emitter.open(&[], false);
        emitter.bind("at", INDEX, Expr::element("places", Expr::name("line")));
        emitter.open_pinned();
        emitter.bind(over, INDEX, Expr::element("elements", Expr::name("line")));
        emitter.bind_axes(&[scatters.over]);
        emitter.open(&[], true);
        let tile = digit("tile", &Expr::Int(self.tiles));
        let within = mul_add(Expr::name("k"), Expr::Int(LANES), Expr::Builtin(Builtin::ThreadX));
        emitter.bind(
            "within",
            INDEX,
            if columns == LANES { Expr::Builtin(Builtin::ThreadX) } else { within },
        );
        let own = offset(tile, Expr::Int(columns), Expr::name("within"));
        let column = scatters.column_name();
        let is_even = self.columns.is_multiple_of(columns);
        // Lanes beyond the last column do the same as it, and store nothing.
        let last = Expr::Int(self.columns - 1);
        if !is_even {
            emitter.bind("own_column", INDEX, own.clone());
        }
        emitter.bind(column, INDEX, if is_even { own } else { Expr::name("own_column").then(Min, last) });
        match scatters.inner.as_slice() {
            [_] => emitter.bind_axes(&scatters.inner),
            _ => emitter.unflatten(column, &scatters.inner, 1),
        }
        let at = mul_add(Expr::name("at"), Expr::Int(columns), Expr::name("within"));
        for shared in &self.shared {
            let value = emitter.value(shared.operand);
            shared.combine(emitter, &at, value);
        }
        let body = emitter.close();
        match columns {
            LANES => body.into_iter().for_each(|stmt| emitter.push(stmt)),
            _ => emitter.push(count_loop(
                "k",
                Expr::Int(0),
                Expr::Int(columns / LANES),
                LoopHint::Unroll,
                body,
            )),
        }
        let then = emitter.close();
        let warp = Expr::name("at").then(Rem, Expr::Int(WARPS));
        let condition = warp.then(Equal, Expr::Builtin(Builtin::ThreadY));
        emitter.push(Stmt::If { condition, then, otherwise: Vec::new() });
        let body = emitter.close();
        emitter.push(count_loop("line", Expr::Int(0), Expr::name("length"), LoopHint::None, body));
    }

    /// The first warp goes along the list.
    fn apply_values(&self, emitter: &mut Emitter, values: &[Var]) {
        emitter.open(&[], false);
        emitter.bind("line", INDEX, Expr::name("from").then(Add, Expr::Builtin(Builtin::ThreadX)));
        emitter.bind("active", TRUTH, Expr::name("line").then(Less, Expr::name("length")));
        let place = Expr::element("places", Expr::name("line"));
        let nowhere = Expr::Int(self.schedule.positions);
        let place = Expr::Select(Box::new(Expr::name("active")), Box::new(place), Box::new(nowhere));
        emitter.bind("at", INDEX, place);
        emitter.open_pinned();
        for (shared, array) in self.shared.iter().zip(values) {
            let value = Expr::element(array, Expr::name("line"));
            shared.combine(emitter, &Expr::name("at"), value);
        }
        let body = emitter.close();
        emitter.push(Stmt::InTurns { key: Expr::name("at"), active: Expr::name("active"), body });
        let body = emitter.close();
        let walk = Stmt::For {
            var: "from".into(),
            from: Expr::Int(0),
            to: Expr::name("length"),
            step: Step::Add(Expr::Int(LANES)),
            hint: LoopHint::None,
            body,
        };
        let first = Expr::Builtin(Builtin::ThreadY).then(Equal, Expr::Int(0));
        emitter.push(Stmt::If { condition: first, then: vec![walk], otherwise: Vec::new() });
    }
}
