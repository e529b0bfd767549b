//! Copies of whole tiles: what they bring is there when their round has been awaited, and until then nobody may read it.

use super::{Machine, Result, UnderWay, Value, broken};
use crate::nest::stmt::{BulkCopy, BulkStep, Type};
use crate::nest::variable::Var;
use crate::schedule::TensorMap;

/// Chunks that change places within a line, and their elements.
const CHUNKS: i64 = 8;

impl Machine<'_> {
    pub(super) fn bulk(&mut self, step: &BulkStep, active: &[usize]) -> Result<()> {
        match (step, active) {
            (BulkStep::Await(of), _) => {
                let (slots, rounds) = (self.indices(&of.slot, active)?, self.indices(&of.round, active)?);
                for (slot, round) in slots.into_iter().zip(rounds) {
                    self.await_tiles((of.arrived, slot), round, active[0])?;
                }
                Ok(())
            }
            (BulkStep::Expect { arrived, copies, .. }, [_]) => {
                self.bulk.copies.insert(*arrived, *copies);
                Ok(())
            }
            (BulkStep::Begin(copy), &[thread]) => self.begin_tile(copy, thread),
            _ => Err(broken("several threads begin to copy a tile")),
        }
    }

    fn begin_tile(&mut self, copy: &BulkCopy, thread: usize) -> Result<()> {
        let one = |machine: &mut Self, expr| machine.indices(expr, &[thread]).map(|all| all[0]);
        let map = self.nest.maps.get(copy.map as usize).ok_or_else(|| broken("a tile of no map"))?.clone();
        let positions =
            copy.positions.iter().map(|position| one(self, position)).collect::<Result<Vec<i64>>>()?;
        let (to, slot) = (one(self, &copy.at)?, one(self, &copy.slot)?);
        let extents: Vec<i64> =
            map.axes.iter().map(|&(axis, _)| self.nest.kernel.axis(axis).extent as i64).collect();
        let ty = Type::Memory(self.nest.kernel.buffers[map.buffer.index()].dtype);
        let mut elements = Vec::new();
        for line in 0..i64::from(map.lines) {
            for column in 0..i64::from(TensorMap::LINE) {
                let mut at = positions.clone();
                at[0] += column;
                at[1] += line;
                let is_inside = at.iter().zip(&extents).all(|(&at, &extent)| (0..extent).contains(&at));
                let steps = at.iter().zip(&map.axes).map(|(at, &(_, step))| at * step as i64);
                let from = map.first as i64 + steps.sum::<i64>();
                let value = match is_inside {
                    true => self.read(map.buffer.into(), from, thread)?,
                    false => Value::Index(0).held(ty),
                };
                let chunk = (column / CHUNKS) ^ (line % CHUNKS);
                let place = to + line * i64::from(TensorMap::LINE) + chunk * CHUNKS + column % CHUNKS;
                self.put_at(copy.shared, place, thread, None)?;
                elements.push((place, value));
            }
        }
        self.bulk.under_way.push(UnderWay { slot: (copy.arrived, slot), to: copy.shared, elements });
        Ok(())
    }

    /// The round's copies are there; one that was never begun would be waited for forever.
    fn await_tiles(&mut self, slot: (Var, i64), round: i64, thread: usize) -> Result<()> {
        let under_way = std::mem::take(&mut self.bulk.under_way);
        let (new, others) = under_way.into_iter().partition(|copy| copy.slot == slot);
        self.bulk.under_way = others;
        let new: Vec<UnderWay> = new;
        *self.bulk.arrived.entry(slot).or_default() += new.len() as u32;
        for UnderWay { to, elements, .. } in new {
            elements.into_iter().try_for_each(|(place, value)| self.write(to, place, thread, value))?;
        }
        let copies = self.bulk.copies.get(&slot.0).copied().unwrap_or(0);
        let arrived = self.bulk.arrived.get(&slot).copied().unwrap_or(0);
        match copies > 0 && i64::from(arrived) == i64::from(copies) * (round + 1) {
            true => Ok(()),
            false => Err(broken(format!(
                "{arrived} copies have arrived, {copies} for each of {} rounds",
                round + 1
            ))),
        }
    }
}
