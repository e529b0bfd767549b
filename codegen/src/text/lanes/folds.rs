//! Loops that merge lanes, half of them with the other half: of vectors, and then within one.

use super::super::Printer;
use super::whole::{MOST_LANES, Room};
use super::{Folded, Loop};
use crate::intrinsics::lanes::{Kind, Lanes};
use crate::nest::stmt::{Expr, LoopHint, Stmt, Type};
use crate::nest::variable::Var;

impl Printer<'_> {
    /// Prints a loop that merges lanes, half of them with the other half, as one of vectors and then as one within a
    /// vector; prints nothing and is false if it is none.
    pub(in crate::text) fn fold_of_vectors(&mut self, step: Var, from: &Expr, body: &[Stmt]) -> bool {
        let [Stmt::For { var, from: Expr::Int(0), to: Expr::Name(to), hint: LoopHint::Simd, body, .. }] =
            body
        else {
            return false;
        };
        let &Expr::Int(half) = from else { return false };
        if *to != step || !half.is_power_of_two() {
            return false;
        }
        let (text, helpers, lanes) = (self.text.len(), self.helpers.clone(), self.lanes.clone());
        let is_printed = self.fold(*var, step, half, body).is_some();
        self.settle(is_printed, (text, helpers, lanes))
    }

    fn fold(&mut self, var: Var, step: Var, half: u64, body: &[Stmt]) -> Option<()> {
        let (lane, name, ty) = (self.name(var), self.name(step), self.type_name(Type::Index));
        let depth = self.depth;
        self.line(&format!("for ({ty} {name} = {half}; {name} >= LANES; {name} /= 2) {{"));
        self.depth += 1;
        self.line(&format!("for ({ty} {lane} = 0; {lane} < {name}; {lane} += LANES) {{"));
        self.depth += 1;
        let mut vectors = Loop::new(self, (var, &Expr::Int(0)));
        let printed = vectors.statements(body).filter(|()| vectors.is_worth_it && vectors.is_wide);
        self.depth = depth;
        printed?;
        self.line("  }");
        self.line("}");
        let mut arrays = Vec::new();
        let mut see = |expr: &Expr| {
            if let Expr::Element(array, _) = expr
                && !arrays.contains(array)
            {
                arrays.push(*array);
            }
        };
        for stmt in body {
            stmt.expressions().into_iter().for_each(|expr| expr.visit(&mut see));
        }
        let mut folded = Folded { step, arrays: Vec::new(), assigned: Vec::new() };
        for array in arrays {
            let local = self.local(array)?;
            let Type::Register(dtype) = local.ty else { return None };
            let dtype = dtype.compute();
            let is_part = self.is_part(array, (var, half));
            let (load, kind) = if is_part { Lanes::load_first(dtype) } else { Lanes::load(dtype) };
            let own = self.name(array);
            if kind == Kind::Mask || local.len? < 2 * half {
                return None;
            }
            self.line(&format!("{} {own}v = {load}({own}, {});", kind.vector(), 2 * half));
            folded.arrays.push((array, kind));
        }
        self.line("#pragma GCC unroll 8");
        self.line(&format!(
            "for ({ty} {name} = {half} < LANES ? {half} : LANES / 2; {name} > 0; {name} /= 2) {{"
        ));
        self.depth += 1;
        let mut vectors = Loop { folded: Some(folded), ..Loop::new(self, (var, &Expr::Int(0))) };
        let printed = vectors.statements(body);
        let folded = vectors.folded.take();
        self.depth = depth;
        printed?;
        self.line("}");
        for (array, _) in folded?.arrays {
            let Type::Register(dtype) = self.local(array)?.ty else { return None };
            let (dtype, is_part) = (dtype.compute(), self.is_part(array, (var, half)));
            let (store, _) = if is_part { Lanes::store_first(dtype) } else { Lanes::store(dtype) };
            let own = self.name(array);
            self.line(&format!("{store}({own}, {own}v, {});", 2 * half));
        }
        Some(())
    }

    /// Whether an array's lanes may fill a part of a vector for which it has room. The whole of it is loaded and stored then, as
    /// everywhere: where a masked access takes its address, gcc keeps the array in memory, and each addition waits for the
    /// one before to be stored.
    fn is_part(&self, array: Var, (lane, half): (Var, u64)) -> bool {
        let room = self.rooms.at(self.kernel, (lane, &Expr::Int(0)), array, &Expr::Name(lane));
        2 * half < MOST_LANES && room != Room::Counted
    }
}
