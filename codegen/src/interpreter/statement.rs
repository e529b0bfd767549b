//! What statements do, to all threads that come to them.

use crate::nest::stmt::{
    Copying, Expr, GROUP_LINE, GROUP_ROWS, GROUP_TERMS, GROUP_THREADS, GroupFactor, GroupProduct, Lines,
    MatrixProduct, ProductStep, SCANNED_TOGETHER, Scanning, SortBy, Sorting, Step, Stmt, TileProduct,
    Turning, Type,
};
use crate::nest::variable::{Space, Var};
use crate::{BinaryOp, DType, Language};

use super::expression::{WARP, mul_add};
use super::{Array, Begun, Copied, Machine, Slot, Thread, Value};
use super::{Result, broken};
use crate::Scalar;

/// Rows of a tile whose products are added up at once.
const TILE_ROWS: i64 = 6;

/// Lines that become neighbours.
const LINES: i64 = 16;

/// Rows that a network sorts side by side.
const SORT_LANES: i64 = 8;

impl Machine<'_> {
    pub(super) fn statements(&mut self, statements: &[Stmt], threads: &[usize]) -> Result<()> {
        for stmt in statements {
            let active: Vec<usize> = threads.iter().copied().filter(|&n| !self.threads[n].is_done).collect();
            if active.is_empty() {
                return Ok(());
            }
            self.statement(stmt, &active)?;
        }
        Ok(())
    }

    /// What an expression is worth to each thread.
    fn values(&mut self, expr: &Expr, active: &[usize]) -> Result<Vec<Value>> {
        active.iter().map(|&thread| self.value(expr, thread, active)).collect()
    }

    pub(super) fn indices(&mut self, expr: &Expr, active: &[usize]) -> Result<Vec<i64>> {
        Ok(self.values(expr, active)?.into_iter().map(Value::index).collect())
    }

    fn set_all(&mut self, var: Var, active: &[usize], values: Vec<Value>) -> Result<()> {
        active.iter().zip(values).try_for_each(|(&thread, value)| self.set(var, thread, value))
    }

    /// The threads for which a condition holds, and the others.
    fn divided(&mut self, condition: &Expr, active: &[usize]) -> Result<[Vec<usize>; 2]> {
        let mut parts = [Vec::new(), Vec::new()];
        for (&thread, value) in active.iter().zip(self.values(condition, active)?) {
            parts[usize::from(!value.truth())].push(thread);
        }
        Ok(parts)
    }

    fn statement(&mut self, stmt: &Stmt, active: &[usize]) -> Result<()> {
        match stmt {
            Stmt::Let { var, value } => {
                let values = self.values(value, active)?;
                self.set_all(*var, active, values)
            }
            Stmt::Declare { var, init } => self.declare(*var, init.as_ref(), active),
            Stmt::Assign { target, value } => self.assign(target, value, active),
            Stmt::For { var, from, to, step, body, .. } => self.repeat(*var, [from, to], step, body, active),
            Stmt::Block(body) => self.statements(body, active),
            Stmt::If { condition, then, otherwise } => {
                let [holds, fails] = self.divided(condition, active)?;
                self.statements(then, &holds)?;
                self.statements(otherwise, &fails)
            }
            Stmt::VectorLoad { array, at, buffer, index, width, .. } => {
                self.copy([*buffer, *array], [index, at], *width, active)
            }
            Stmt::VectorStore { array, at, buffer, index, width, .. } => {
                self.copy([*array, *buffer], [at, index], *width, active)
            }
            // Nothing that anyone could see.
            Stmt::Prefetch { .. } => Ok(()),
            Stmt::MultiplyTile(tile) => self.multiply_tile(tile, active),
            Stmt::Turn(turning) => self.turn(turning, active),
            // As on a processor without such products.
            Stmt::Pair(_) => Ok(()),
            Stmt::Scan(scanning) => self.scan(scanning, active),
            Stmt::Sort(sorting) => self.sort(sorting, active),
            Stmt::LoadMatrices { parts, at, shared, index, turns, .. } => {
                self.load_matrices([*parts, *shared], [at, index], *turns, active)
            }
            Stmt::BeginCopy(copying) => self.begin_copy(copying, active),
            Stmt::Bulk(step) => self.bulk(step, active),
            Stmt::CommitCopies => {
                active.iter().for_each(|&thread| self.threads[thread].groups += 1);
                Ok(())
            }
            Stmt::AwaitCopies { but } => self.await_copies(*but, active),
            Stmt::MultiplyMatrices(product) => self.multiply_matrices(product, active),
            Stmt::MultiplyGroup(product) => self.begin_product(product, active),
            Stmt::Products(ProductStep::Await(but)) => self.await_products(*but, active),
            Stmt::Products(ProductStep::Commit) => {
                active.iter().for_each(|&thread| self.threads[thread].product_groups += 1);
                Ok(())
            }
            Stmt::Products(ProductStep::Publish | ProductStep::Begin) => Ok(()),
            Stmt::Positions { table, positions } => {
                self.put(*table, active, || Slot::Positions(positions.clone()))
            }
            Stmt::Buffers { table, buffers, .. } => {
                self.put(*table, active, || Slot::Buffers(buffers.clone()))
            }
            Stmt::Part { part, table, number, .. } => self.part([*part, *table], number, active),
            Stmt::InTurns { key, active: condition, body } => self.in_turns([key, condition], body, active),
            // All threads have come here before any goes on.
            Stmt::Barrier => Ok(()),
            Stmt::Arrive { counters, index, count } => self.arrive(*counters, [index, count], active),
            Stmt::Add { target, value, dtype } => {
                let operands = Box::new(target.clone());
                let sum = Expr::Binary(BinaryOp::Add, *dtype, operands, Box::new(value.clone()));
                active.iter().try_for_each(|thread| self.assign(target, &sum, std::slice::from_ref(thread)))
            }
            Stmt::Return => {
                active.iter().for_each(|&thread| self.threads[thread].is_done = true);
                Ok(())
            }
        }
    }

    fn put(&mut self, var: Var, active: &[usize], slot: impl Fn() -> Slot) -> Result<()> {
        let (id, _) = self.local(var).ok_or_else(|| broken("what is declared is no variable"))?;
        active.iter().for_each(|&thread| self.threads[thread].locals[id.index()] = slot());
        Ok(())
    }

    fn declare(&mut self, var: Var, init: Option<&Expr>, active: &[usize]) -> Result<()> {
        let (id, local) = self.local(var).ok_or_else(|| broken("what is declared is no variable"))?;
        match (local.space, local.len) {
            (Space::Shared(_) | Space::Launch(_), len) => {
                self.shared.entry(id).or_insert_with(|| Array::new(local.ty, len.unwrap_or(1)));
                Ok(())
            }
            (_, Some(len)) => self.put(var, active, || Slot::Array(Array::new(local.ty, len))),
            (_, None) => match init {
                None => self.put(var, active, || Slot::Plain(None)),
                Some(init) => {
                    let values = self.values(init, active)?;
                    self.set_all(var, active, values)
                }
            },
        }
    }

    fn assign(&mut self, target: &Expr, value: &Expr, active: &[usize]) -> Result<()> {
        let values = self.values(value, active)?;
        match target {
            Expr::Name(var) => self.set_all(*var, active, values),
            Expr::Element(array, index) => {
                let indices = self.indices(index, active)?;
                for ((&thread, at), value) in active.iter().zip(indices).zip(values) {
                    self.write(*array, at, thread, value)?;
                }
                Ok(())
            }
            _ => Err(broken("what is assigned is no variable")),
        }
    }

    fn repeat(
        &mut self,
        var: Var,
        [from, to]: [&Expr; 2],
        step: &Step,
        body: &[Stmt],
        active: &[usize],
    ) -> Result<()> {
        let first = self.values(from, active)?;
        self.set_all(var, active, first)?;
        let mut active = active.to_vec();
        loop {
            let goes_on = match step {
                Step::Halve => self
                    .values(&Expr::Name(var), &active)?
                    .into_iter()
                    .map(|at| at.index() > 0)
                    .collect::<Vec<_>>(),
                Step::Add(_) => {
                    let ends = self.indices(to, &active)?;
                    self.indices(&Expr::Name(var), &active)?
                        .into_iter()
                        .zip(ends)
                        .map(|(at, end)| at < end)
                        .collect()
                }
            };
            active = active
                .into_iter()
                .zip(goes_on)
                .filter_map(|(thread, goes_on)| goes_on.then_some(thread))
                .collect();
            if active.is_empty() {
                return Ok(());
            }
            self.statements(body, &active)?;
            active.retain(|&thread| !self.threads[thread].is_done);
            let places = self.indices(&Expr::Name(var), &active)?;
            let next: Vec<Value> = match step {
                Step::Halve => places.into_iter().map(|at| Value::Index(at / 2)).collect(),
                Step::Add(step) => {
                    let steps = self.indices(step, &active)?;
                    places.into_iter().zip(steps).map(|(at, step)| Value::Index(at + step)).collect()
                }
            };
            self.set_all(var, &active, next)?;
        }
    }

    /// Copies neighbouring elements from one array to another, as one access of either.
    fn copy(
        &mut self,
        [from, to]: [Var; 2],
        [source, target]: [&Expr; 2],
        width: u64,
        active: &[usize],
    ) -> Result<()> {
        let (sources, targets) = (self.indices(source, active)?, self.indices(target, active)?);
        for ((&thread, source), target) in active.iter().zip(sources).zip(targets) {
            if source % width as i64 != 0 || target % width as i64 != 0 {
                return Err(broken(format!("an access of {width} elements at {source} and {target}")));
            }
            for n in 0..width as i64 {
                let value = self.read(from, source + n, thread)?;
                self.write(to, target + n, thread, value)?;
            }
        }
        Ok(())
    }

    /// What is there until the copy is awaited is nothing that may be read.
    fn begin_copy(&mut self, copying: &Copying, active: &[usize]) -> Result<()> {
        let (places, sources) = (self.indices(&copying.at, active)?, self.indices(&copying.index, active)?);
        let wanted = match &copying.condition {
            Some(condition) => self.values(condition, active)?.into_iter().map(Value::truth).collect(),
            None => vec![true; active.len()],
        };
        let width = copying.width as i64;
        for (n, &thread) in active.iter().enumerate() {
            let (at, source) = (places[n], sources[n]);
            if at % width != 0 || source % width != 0 {
                return Err(broken(format!("a copy of {width} elements from {source} to {at}")));
            }
            let element = |place| match wanted[n] {
                true => self.read(copying.buffer, place, thread),
                false => Ok(Value::Index(0).held(Type::Memory(copying.dtype))),
            };
            let values = (source..source + width).map(element).collect::<Result<Vec<Value>>>()?;
            (at..at + width).try_for_each(|place| self.put_at(copying.shared, place, thread, None))?;
            let Thread { copies, groups, .. } = &mut self.threads[thread];
            copies.push(Copied { to: copying.shared, at, values, group: *groups });
        }
        Ok(())
    }

    fn await_copies(&mut self, but: u32, active: &[usize]) -> Result<()> {
        for &thread in active {
            let Thread { copies, groups, .. } = &mut self.threads[thread];
            let first = groups.saturating_sub(but);
            let (done, under_way) = std::mem::take(copies).into_iter().partition(|copy| copy.group < first);
            *copies = under_way;
            let done: Vec<Copied> = done;
            for Copied { to, at, values, .. } in done {
                for (place, value) in (at..).zip(values) {
                    self.write(to, place, thread, value)?;
                }
            }
        }
        Ok(())
    }

    fn part(&mut self, [part, table]: [Var; 2], number: &Expr, active: &[usize]) -> Result<()> {
        let (part, _) = self.local(part).ok_or_else(|| broken("a part is no variable"))?;
        let (table, _) = self.local(table).ok_or_else(|| broken("a table is no variable"))?;
        for (&thread, number) in active.iter().zip(self.indices(number, active)?) {
            let locals = &mut self.threads[thread].locals;
            let found = match &locals[table.index()] {
                Slot::Buffers(buffers) => usize::try_from(number).ok().and_then(|number| buffers.get(number)),
                _ => None,
            };
            let found = *found.ok_or_else(|| broken(format!("there is no buffer {number} in the table")))?;
            locals[part.index()] = Slot::Alias(found);
        }
        Ok(())
    }

    /// Threads of a warp with equal keys one after the other, in their order.
    fn in_turns(&mut self, [key, condition]: [&Expr; 2], body: &[Stmt], active: &[usize]) -> Result<()> {
        let [taking_part, _] = self.divided(condition, active)?;
        let keys = self.indices(key, &taking_part)?;
        let before = |n: usize| {
            let is_equal =
                |&other: &usize| keys[other] == keys[n] && taking_part[other] / WARP == taking_part[n] / WARP;
            (0..n).filter(is_equal).count()
        };
        let turns: Vec<usize> = (0..taking_part.len()).map(before).collect();
        for turn in 0..turns.iter().max().map_or(0, |most| most + 1) {
            let own = taking_part.iter().zip(&turns).filter(|&(_, &own)| own == turn);
            let own: Vec<usize> = own.map(|(&thread, _)| thread).collect();
            self.statements(body, &own)?;
        }
        Ok(())
    }

    fn arrive(&mut self, counters: Var, [index, count]: [&Expr; 2], active: &[usize]) -> Result<()> {
        let Some(&first) = active.first() else { return Ok(()) };
        let at = self.value(index, first, active)?.index();
        let count = self.value(count, first, active)?.index();
        let arrived = self.read(counters, at, first)?.index() + 1;
        self.write(counters, at, first, Value::Index(arrived))?;
        if arrived != count {
            active.iter().for_each(|&thread| self.threads[thread].is_done = true);
        }
        Ok(())
    }

    fn multiply_tile(&mut self, tile: &TileProduct, active: &[usize]) -> Result<()> {
        for &thread in active {
            let parts = [&tile.left_at, &tile.right_at, &tile.sums_at, &tile.depth, &tile.width, &tile.adds];
            let mut numbers = [0; 6];
            for (number, expr) in numbers.iter_mut().zip(parts) {
                *number = self.value(expr, thread, active)?.index();
            }
            let [left, right, sums, depth, width, adds] = numbers;
            let rows = match &tile.rows {
                Some(rows) => self.value(rows, thread, active)?.index(),
                None => TILE_ROWS,
            };
            let wide = tile.dtype.compute();
            let (of_term, of_column) =
                if tile.lines { (1, tile.right_row as i64) } else { (tile.right_row as i64, 1) };
            for (row, column) in (0..rows).flat_map(|row| (0..width).map(move |column| (row, column))) {
                let at = sums + row * tile.sums_row as i64 + column;
                let mut sum = Scalar::from_i64(wide, 0);
                for term in 0..depth {
                    let a = self.read(
                        tile.left,
                        left + row * tile.left_row as i64 + term * tile.left_term as i64,
                        thread,
                    )?;
                    let b = self.read(tile.right, right + term * of_term + column * of_column, thread)?;
                    sum = mul_add(wide, a.number(wide), b.number(wide), sum);
                }
                if adds != 0 {
                    let before = self.read(tile.sums, at, thread)?.number(wide);
                    sum = mul_add(wide, before, Scalar::from_i64(wide, 1), sum);
                }
                self.write(tile.sums, at, thread, Value::Number(sum))?;
            }
        }
        Ok(())
    }

    /// Line after line, elements of one place become neighbours.
    fn turn(&mut self, turning: &Turning, active: &[usize]) -> Result<()> {
        for &thread in active {
            let parts = [&turning.to_at, &turning.from_at, &turning.depth];
            let mut numbers = [0; 3];
            for (number, expr) in numbers.iter_mut().zip(parts) {
                *number = self.value(expr, thread, active)?.index();
            }
            let [to, from, depth] = numbers;
            let lines = match &turning.rows {
                Some(rows) => self.value(rows, thread, active)?.index(),
                None => LINES,
            };
            for (place, line) in (0..depth).flat_map(|place| (0..lines).map(move |line| (place, line))) {
                let value = self.read(turning.from, from + line * turning.from_row as i64 + place, thread)?;
                let value = Value::Number(value.number(turning.dtype.compute()));
                self.write(turning.to, to + place * turning.to_row as i64 + line, thread, value)?;
            }
        }
        Ok(())
    }

    /// Sixteen at a time, in the order that [`Scanning`] states.
    fn scan(&mut self, scanning: &Scanning, active: &[usize]) -> Result<()> {
        let Scanning { op, to, from, running, .. } = scanning;
        let dtype = scanning.dtype.compute();
        let op = op.plain().ok_or_else(|| broken("running results are combined by one operation"))?;
        let both = |a, b| op.apply(a, b).ok_or_else(|| broken("numbers of two dtypes are combined"));
        for &thread in active {
            let parts = [&scanning.to_at, &scanning.from_at, &scanning.count];
            let mut numbers = [0; 3];
            for (number, expr) in numbers.iter_mut().zip(parts) {
                *number = self.value(expr, thread, active)?.index();
            }
            let [to_at, from_at, count] = numbers;
            let mut before = self.value(running, thread, active)?.number(dtype);
            for first in (0..count).step_by(SCANNED_TOGETHER) {
                let places = first..count.min(first + SCANNED_TOGETHER as i64);
                let own = places.clone().map(|n| Ok(self.read(*from, from_at + n, thread)?.number(dtype)));
                let mut own = own.collect::<Result<Vec<Scalar>>>()?;
                for distance in [1, 2, 4, 8] {
                    for n in (distance..own.len()).rev() {
                        own[n] = both(own[n - distance], own[n])?;
                    }
                }
                let mut last = before;
                for (n, number) in places.zip(own) {
                    last = both(before, number)?;
                    self.write(*to, to_at + n, thread, Value::Number(last))?;
                }
                before = last;
            }
            self.assign(running, &Expr::Literal(before), &[thread])?;
        }
        Ok(())
    }

    fn sort(&mut self, sorting: &Sorting, active: &[usize]) -> Result<()> {
        // Threads of a block do it together.
        let together = if self.language == Language::Cuda { 1 } else { active.len() };
        for &thread in &active[..together] {
            let first = self.value(&sorting.at, thread, active)?.index();
            let each = if sorting.wide { 2 } else { 1 };
            let rows: Vec<Vec<i64>> = match &sorting.by {
                SortBy::Row(row) => {
                    let count = self.value(&row.count, thread, active)?.index();
                    vec![(0..count).map(|n| first + n * each).collect()]
                }
                SortBy::Lanes { count } => {
                    let count = self.value(count, thread, active)?.index();
                    let of_lane =
                        |lane| (0..count).map(move |n| first + (n * SORT_LANES + lane) * each).collect();
                    (0..SORT_LANES).map(of_lane).collect()
                }
                SortBy::Block { items, length, .. } => {
                    let (items, length) = (*items as i64, *length as i64);
                    let of_row = |row| (0..length).map(move |n| first + (row * length + n) * each).collect();
                    (0..items / length).map(of_row).collect()
                }
            };
            for places in rows {
                let mut items = Vec::new();
                for &place in &places {
                    let low = self.read(sorting.items, place, thread)?.index();
                    let high =
                        if sorting.wide { self.read(sorting.items, place + 1, thread)?.index() } else { low };
                    items.push((high, low));
                }
                items.sort_unstable();
                for (place, (high, low)) in places.into_iter().zip(items) {
                    for (n, number) in [low, high].into_iter().take(each as usize).enumerate() {
                        let number = Value::Number(Scalar::from_i64(DType::I64, number));
                        self.write(sorting.items, place + n as i64, thread, number)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Each lane gets two neighbours of row `lane / 4` of each of four matrices, whose rows the lanes name in order.
    fn load_matrices(
        &mut self,
        [parts, shared]: [Var; 2],
        [at, index]: [&Expr; 2],
        turns: bool,
        active: &[usize],
    ) -> Result<()> {
        if !active.len().is_multiple_of(WARP) {
            return Err(broken("not all lanes of a warp load small matrices"));
        }
        let (targets, rows) = (self.indices(at, active)?, self.indices(index, active)?);
        for (n, &thread) in active.iter().enumerate() {
            let (lane, first) = (n % WARP, n / WARP * WARP);
            for matrix in 0..4 {
                let element = |machine: &Self, own: usize, other: usize| {
                    let (row, column) = if turns { (other, own) } else { (own, other) };
                    let value =
                        machine.read(shared, rows[first + 8 * matrix + row] + column as i64, thread)?;
                    Ok(match value {
                        Value::Number(number) => number.to_bits(),
                        Value::Index(index) => index as u64,
                    })
                };
                let low: Result<u64> = element(self, lane / 4, lane % 4 * 2);
                let part = low? | element(self, lane / 4, lane % 4 * 2 + 1)? << 16;
                let part = Value::Number(Scalar::from_bits(DType::U32, part));
                self.write(parts, targets[n] + matrix as i64, thread, part)?;
            }
        }
        Ok(())
    }

    /// The sums of a warp are 16 × 8, of 16 terms: see the instruction `mma.m16n8k16`.
    fn multiply_matrices(&mut self, product: &MatrixProduct, active: &[usize]) -> Result<()> {
        if !active.len().is_multiple_of(WARP) {
            return Err(broken("not all lanes of a warp multiply small matrices"));
        }
        let lefts = self.indices(&product.left_at, active)?;
        let rights = self.indices(&product.right_at, active)?;
        let sums = self.indices(&product.sums_at, active)?;
        for (n, &thread) in active.iter().enumerate() {
            let (lane, first) = (n % WARP, n / WARP * WARP);
            for number in 0..4 {
                let (row, column) = (lane / 4 + number / 2 * 8, lane % 4 * 2 + number % 2);
                let mut sum = self.read(product.sums, sums[n] + number as i64, thread)?.number(DType::F32);
                for term in 0..16 {
                    let place = |own: usize| first + own % 8 * 4 + term % 8 / 2;
                    let (a, b) = (place(row), place(column));
                    let part_of_left = (row / 8 + term / 8 * 2) as i64;
                    let left = match self.local(product.left).map(|(_, local)| local.ty) {
                        Some(Type::Memory(dtype)) => {
                            let at = lefts[a] + part_of_left * 2 + (term % 2) as i64;
                            self.read(product.left, at, active[a])?.number(dtype).cast(DType::F32)
                        }
                        _ => {
                            let at = lefts[a] + part_of_left;
                            self.half(product.left, at, active[a], (term, product.dtype))?
                        }
                    };
                    let right = rights[b] + (term / 8) as i64;
                    let right = self.half(product.right, right, active[b], (term, product.dtype))?;
                    sum = mul_add(DType::F32, left, right, sum);
                }
                self.write(product.sums, sums[n] + number as i64, thread, Value::Number(sum))?;
            }
        }
        Ok(())
    }

    /// Nothing is added before it is awaited: whoever changes a factor or asks for the sums earlier finds that out.
    fn begin_product(&mut self, product: &GroupProduct, active: &[usize]) -> Result<()> {
        if !(active.len() as u64).is_multiple_of(GROUP_THREADS) {
            return Err(broken("not all threads of a group of warps multiply"));
        }
        let lefts = self.indices(&product.left.at, active)?;
        let rights = self.indices(&product.right.at, active)?;
        let sums = self.indices(&product.sums_at, active)?;
        for (n, &thread) in active.iter().enumerate() {
            let own = &mut self.threads[thread];
            own.products.push(Begun {
                product: product.clone(),
                left: lefts[n],
                right: rights[n],
                sums: sums[n],
                thread: n as u64 % GROUP_THREADS,
                group: own.product_groups,
            });
        }
        Ok(())
    }

    fn await_products(&mut self, but: u32, active: &[usize]) -> Result<()> {
        for &thread in active {
            let own = &mut self.threads[thread];
            let first = own.product_groups.saturating_sub(but);
            let (done, under_way) =
                std::mem::take(&mut own.products).into_iter().partition(|product| product.group < first);
            own.products = under_way;
            let done: Vec<Begun> = done;
            done.iter().try_for_each(|begun| self.add_product(begun, thread))?;
        }
        Ok(())
    }

    /// A thread's sums of a group: of two rows, eight apart, two neighbours in each eight columns.
    fn add_product(&mut self, begun: &Begun, thread: usize) -> Result<()> {
        let Begun { product, left, right, sums, thread: number, .. } = begun;
        let (warp, lane) = (number / WARP as u64, number % WARP as u64);
        for n in 0..u64::from(product.columns) * GROUP_ROWS / GROUP_THREADS {
            let row = warp * 16 + lane / 4 + n / 2 % 2 * 8;
            let column = n / 4 * 8 + lane % 4 * 2 + n % 2;
            let place = sums + n as i64;
            let mut sum = self.read(product.sums, place, thread)?.number(DType::F32);
            for term in 0..GROUP_TERMS {
                let factor = |factor: &GroupFactor, at: i64, own: u64| {
                    let at = at as u64 + factor.offset(own, term);
                    if factor.lines == Lines::Own {
                        // Two neighbours of each eight terms are a thread's of the four that have a row.
                        let owner = thread - lane as usize % 4 + term as usize % 8 / 2;
                        let value = self.read(factor.array, at as i64, owner)?;
                        return Ok(value.number(product.dtype).cast(DType::F32));
                    }
                    let (line, chunk, rest) = (at / GROUP_LINE, at / 8 % 8, at % 8);
                    let at = line * GROUP_LINE + (chunk ^ (line % 8)) * 8 + rest;
                    let value = self.read(factor.array, at as i64, thread)?;
                    Ok(value.number(product.dtype).cast(DType::F32))
                };
                let (a, b) = (factor(&product.left, *left, row)?, factor(&product.right, *right, column)?);
                sum = mul_add(DType::F32, a, b, sum);
            }
            self.write(product.sums, place, thread, Value::Number(sum))?;
        }
        Ok(())
    }

    /// One of the two numbers of a part.
    fn half(&self, parts: Var, at: i64, thread: usize, (term, dtype): (usize, DType)) -> Result<Scalar> {
        let part = self.read(parts, at, thread)?.index() as u64;
        Ok(Scalar::from_bits(dtype, part >> (term % 2 * 16) & 0xffff).cast(DType::F32))
    }
}
