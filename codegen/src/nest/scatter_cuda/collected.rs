//! Where most elements are none of a block's: its threads look at many, those that are the block's are put into a list,
//! in their order, and the list is combined. Each position belongs to one warp, or, without columns, all belong to one
//! warp whose lanes take turns.

use super::{LANES, Writer};
use crate::nest::INDEX;
use crate::nest::accumulate::{mul_add, set};
use crate::nest::emitter::Emitter;
use crate::nest::loops::{counting, stepping};
use crate::nest::scatter::{Partials, TRUTH, offset};
use crate::nest::split::interleaved;
use crate::nest::stmt::Arithmetic::{Add, And, Equal, Less, Rem};
use crate::nest::stmt::{Builtin, Expr, LoopHint, Stmt, Type};
use crate::nest::variable::Var;

/// Warps of a block.
const WARPS: u64 = 8;

/// What a list has of each element.
enum Listed {
    /// Its number.
    Elements(Var),
    /// The values of each scatter.
    Values(Vec<Var>),
}

/// Where a chunk of elements is looked at: what the block's threads leave to each other.
struct Lists {
    /// How many elements a thread looks at.
    each: u64,
    /// Elements of the block's that each warp has found in each of its turns.
    counts: Var,
    /// The list: positions, and what belongs to them.
    places: Var,
    listed: Listed,
    /// Of each of the thread's elements: its position, and whether it is the block's.
    place: Var,
    is_listed: Var,
    /// Where the chunk begins, and which of its elements the thread is at.
    start: Var,
    turn: Var,
}

impl Lists {
    fn turn(&self) -> Expr {
        Expr::Name(self.turn)
    }

    /// The number of a warp's turn among all warps'.
    fn segment(&self) -> Expr {
        offset(Expr::Builtin(Builtin::ThreadY), Expr::Int(self.each), self.turn())
    }

    /// What a thread does with each of its elements.
    fn each(&self, emitter: &mut Emitter, body: impl FnOnce(&mut Emitter)) {
        emitter.repeat(counting(self.turn, 0, self.each, LoopHint::Unroll), body);
    }

    /// A variable that has counted the elements of the warps' turns before.
    fn total(&self, emitter: &mut Emitter, name: &'static str, init: Expr, to: Expr) -> Var {
        let hint = if let Expr::Int(_) = to { LoopHint::Unroll } else { LoopHint::None };
        let (total, before) = (emitter.variable(name, INDEX, init), emitter.index("before"));
        let more = total.then(Add, Expr::element(self.counts, before));
        let body = vec![set(total, more)];
        emitter.push(counting(before, 0, to, hint).of(body));
        total
    }
}

impl Writer<'_> {
    pub(super) fn sweep_collected(&self, emitter: &mut Emitter, each: u64) {
        let (segments, chunk) = (WARPS * each, WARPS * each * LANES);
        let counts = emitter.share("counts", Type::Index, segments);
        let places = emitter.share("places", Type::Index, chunk);
        // Without columns a thread reads its element itself, and lists the value.
        let listed = match self.schedule.columns {
            1 => {
                let array = |shared: &Partials| {
                    emitter.shared("values", shared.array, Type::Register(shared.dtype), chunk)
                };
                Listed::Values(self.shared.iter().map(array).collect())
            }
            _ => Listed::Elements(emitter.share("elements", Type::Index, chunk)),
        };
        let (start, turn) = (emitter.index("start"), emitter.index("turn"));
        emitter.open(&[], false);
        let place = emitter.array("place", INDEX, each);
        let is_listed = emitter.array("listed", TRUTH, each);
        let lists = Lists { each, counts, places, listed, place, is_listed, start, turn };
        self.look(emitter, &lists);
        self.list(emitter, &lists);
        let length = lists.total(emitter, "length", Expr::Int(0), Expr::Int(segments));
        match &lists.listed {
            Listed::Values(values) => self.apply_values(emitter, (places, length), values),
            Listed::Elements(elements) => self.apply_elements(emitter, (places, length), *elements),
        }
        emitter.push(Stmt::Barrier);
        let body = emitter.close();
        let (from, step) = interleaved(self.schedule.splits, Expr::Int(0), chunk);
        emitter
            .push(stepping(start, (from, emitter.extent(self.scatters.over)), step, LoopHint::None).of(body));
    }

    /// Binds the axis to the element of the thread's turn. Lanes beyond the last one list nothing.
    fn bind_listed(&self, emitter: &mut Emitter, lists: &Lists) -> Expr {
        let number = mul_add(lists.segment(), LANES, Builtin::ThreadX);
        self.bind_element(emitter, lists.start.then(Add, number))
    }

    /// Finds which elements are the block's, and counts them. All that a thread looks at is read before anything waits for it.
    fn look(&self, emitter: &mut Emitter, lists: &Lists) {
        lists.each(emitter, |emitter| {
            let inside = self.bind_listed(emitter, lists);
            let at = self.scatters.bind_position(emitter, "at");
            let (is_own, place) = self.place(at);
            let is_listed = is_own.map_or(inside.clone(), |is_own| inside.then(And, is_own));
            emitter.push(set(Expr::element(lists.place, lists.turn()), place));
            emitter.push(set(Expr::element(lists.is_listed, lists.turn()), is_listed));
        });
        lists.each(emitter, |emitter| {
            let votes = Expr::Votes(Box::new(Expr::element(lists.is_listed, lists.turn())));
            let votes = emitter.bind("votes", INDEX, votes);
            let first = Builtin::ThreadX.then(Equal, 0);
            let count = set(Expr::element(lists.counts, lists.segment()), votes);
            emitter.push(Stmt::If { condition: first, then: vec![count], otherwise: Vec::new() });
        });
        emitter.push(Stmt::Barrier);
    }

    /// Lists them, in their order.
    fn list(&self, emitter: &mut Emitter, lists: &Lists) {
        lists.each(emitter, |emitter| {
            self.bind_listed(emitter, lists);
            let votes = Expr::VotesBefore(Box::new(Expr::element(lists.is_listed, lists.turn())));
            let votes = emitter.bind("votes", INDEX, votes);
            emitter.open_pinned();
            let line = lists.total(emitter, "line", Expr::Name(votes), lists.segment());
            let line = || Expr::Name(line);
            emitter.push(set(Expr::element(lists.places, line()), Expr::element(lists.place, lists.turn())));
            match &lists.listed {
                Listed::Elements(elements) => {
                    emitter.push(set(Expr::element(elements, line()), self.scatters.over));
                }
                Listed::Values(values) => {
                    for (shared, array) in self.shared.iter().zip(values) {
                        let value = emitter.value(shared.operand);
                        emitter.push(set(Expr::element(array, line()), value));
                    }
                }
            }
            let then = emitter.close();
            let condition = Expr::element(lists.is_listed, lists.turn());
            emitter.push(Stmt::If { condition, then, otherwise: Vec::new() });
        });
        emitter.push(Stmt::Barrier);
    }

    /// Each warp goes along the list for the positions that are its own, a lane for a column.
    fn apply_elements(&self, emitter: &mut Emitter, (places, length): (Var, Var), elements: Var) {
        let scatters = self.scatters;
        let over = scatters.over;
        let columns = self.schedule.columns;
        let (line, k) = (emitter.index("line"), emitter.index("k"));
        emitter.repeat(counting(line, 0, length, LoopHint::None), |emitter| {
            let at = emitter.bind("at", INDEX, Expr::element(places, line));
            emitter.open_pinned();
            emitter.bind(over, INDEX, Expr::element(elements, line));
            emitter.bind_axes(&[scatters.over]);
            // A lane has some of the columns: no loop of its own goes along all of them.
            emitter.open(&[], false);
            let within = mul_add(k, LANES, Builtin::ThreadX);
            let within = if columns == LANES { Expr::Builtin(Builtin::ThreadX) } else { within };
            let within = emitter.bind("within", INDEX, within);
            let own = offset(self.tile.clone(), Expr::Int(columns), Expr::Name(within));
            self.bind_column(emitter, own, columns);
            self.combine(emitter, &mul_add(at, columns, within));
            let body = emitter.close();
            match columns {
                LANES => emitter.append(body),
                _ => emitter.push(counting(k, 0, columns / LANES, LoopHint::Unroll).of(body)),
            }
            let then = emitter.close();
            let warp = at.then(Rem, WARPS);
            let condition = warp.then(Equal, Builtin::ThreadY);
            emitter.push(Stmt::If { condition, then, otherwise: Vec::new() });
        });
    }

    /// The first warp goes along the list.
    fn apply_values(&self, emitter: &mut Emitter, (places, length): (Var, Var), values: &[Var]) {
        let from = emitter.index("from");
        emitter.open(&[], false);
        let line = emitter.bind("line", INDEX, from.then(Add, Builtin::ThreadX));
        let active = emitter.bind("active", TRUTH, line.then(Less, length));
        let place = Expr::element(places, line);
        let nowhere = Expr::Int(self.schedule.positions);
        let place = Expr::Select(Box::new(Expr::Name(active)), Box::new(place), Box::new(nowhere));
        let at = emitter.bind("at", INDEX, place);
        emitter.open_pinned();
        for (shared, array) in self.shared.iter().zip(values) {
            let value = Expr::element(array, line);
            shared.combine(emitter, &Expr::Name(at), value);
        }
        let body = emitter.close();
        emitter.push(Stmt::InTurns { key: Expr::Name(at), active: Expr::Name(active), body });
        let body = emitter.close();
        let sweep = stepping(from, (0, length), LANES, LoopHint::None).of(body);
        let first = Builtin::ThreadY.then(Equal, 0);
        emitter.push(Stmt::If { condition: first, then: vec![sweep], otherwise: Vec::new() });
    }
}
