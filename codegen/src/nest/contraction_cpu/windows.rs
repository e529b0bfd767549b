//! Columns that are windows of an image: its part is computed once, and laid out as the products read it.

use super::super::INDEX;
use super::super::accumulate::set;
use super::super::emitter::Emitter;
use super::super::loops::counting;
use super::super::passes::launch_items;
use super::super::stmt::Arithmetic::{Add, Div, Less, Max, Min, Mul, Sub};
use super::super::stmt::{Expr, LoopHint, Stmt};
use super::super::variable::Var;
use super::Writer;
use super::image::Part;
use crate::ir::{Kernel, ValueId};
use crate::schedule::{Contraction, Windows};

/// Lines of one image that a block has.
struct Lines {
    first: Expr,
    count: Expr,
    /// Which of the block's images, and how many lines each has; 0 for one that is alone.
    image: Expr,
    of_image: u64,
}

impl Writer<'_> {
    /// Whether filters have more elements than the image that they go over. Neighbouring blocks, which one thread computes,
    /// have the same rows then, so that threads do not read each other's.
    pub(super) fn has_more_filters(&self) -> bool {
        let Contraction { rows, lines, column, windows, .. } = self.contraction;
        let columns = launch_items(self.kernel, lines).saturating_mul(self.kernel.axis(*column).extent);
        windows.is_some() && !rows.is_empty() && launch_items(self.kernel, rows) > columns
    }

    /// Columns of the block, whatever line they are of.
    pub(super) fn all_columns(&self) -> Expr {
        match self.contraction.lines.is_empty() {
            true => Expr::Name(self.columns.count),
            false => self.lines.count.then(Mul, self.columns.count),
        }
    }

    /// The columns of all lines of one term side by side, then those of the next one.
    pub(super) fn pack_windows<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        part: &'k Part<'k>,
        value: ValueId,
        [image, packed]: [Var; 2],
    ) {
        let places = Expr::Int(part.windows.places());
        let channels = self.terms.then(Div, places.clone());
        let channel = emitter.index("channel");
        emitter.repeat_along(&[self.depth], counting(channel, 0, channels, LoopHint::None), |emitter| {
            let term = self.term.then(Add, channel.then(Mul, places));
            emitter.bind(self.depth, INDEX, term);
            let first = match part.windows.places() {
                // The image's lines are those of the columns.
                1 => channel.then(Mul, self.width()),
                _ => part.channel(channel),
            };
            self.each_image(emitter, |emitter, lines| {
                let (array, of_image) = match part.windows.places() {
                    1 => (packed, Expr::Int(lines.of_image).then(Mul, self.columns.count)),
                    _ => (image, Expr::Int(part.of_image())),
                };
                let first = first.clone().then(Add, lines.image.clone().then(Mul, of_image));
                self.compute_image(emitter, (part, lines), value, array, &first);
            });
            match part.windows.places() {
                1 => emitter.push(self.zeros_behind(packed, first)),
                _ => self.lay_out(emitter, part, &Expr::Name(channel), [image, packed], &first),
            }
        });
    }

    /// A loop over the images that a block has whole, which binds their axes; once if it is of one.
    fn each_image<'k>(&self, emitter: &mut Emitter<'k>, body: impl FnOnce(&mut Emitter<'k>, &Lines)) {
        let Contraction { lines, windows, .. } = self.contraction;
        let Some((of_image, windows)) = windows.and_then(|windows| windows.of_image.zip(Some(windows)))
        else {
            let [first, count] = [self.lines.first, self.lines.count].map(Expr::Name);
            return body(emitter, &Lines { first, count, image: Expr::Int(0), of_image: 0 });
        };
        let images = &lines[..lines.len() - usize::from(windows.line.is_some())];
        let image = emitter.index("image");
        let all = self.lines.count.then(Div, of_image);
        emitter.repeat_along(images, counting(image, 0, all, LoopHint::None), |emitter| {
            let at_image = self.lines.first.then(Div, of_image).then(Add, image);
            let at_image = emitter.bind("at_image", INDEX, at_image);
            emitter.unflatten(at_image, images, 1);
            let (first, count, image) = (Expr::Int(0), Expr::Int(of_image), Expr::Name(image));
            body(emitter, &Lines { first, count, image, of_image });
        });
    }

    /// A channel of the image as far as the block's windows reach.
    fn compute_image<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        (part, lines): (&'k Part<'k>, &Lines),
        value: ValueId,
        array: Var,
        first: &Expr,
    ) {
        let Windows { line, column, .. } = part.windows;
        let reach = |windows: Expr, step: u64, between: u64| match (step, between) {
            (1, 0) => windows,
            _ => windows.then(Sub, 1).then(Mul, step).then(Add, between + 1),
        };
        let (count, at_line) = match line {
            Some(line) => {
                let first = lines.first.clone().then(Mul, line.step);
                (reach(lines.count.clone(), line.step, line.between()), first)
            }
            None => (Expr::Int(1), Expr::Int(0)),
        };
        let number = emitter.index("line");
        emitter.repeat_along(&[part.image.line], counting(number, 0, count, LoopHint::None), |emitter| {
            emitter.bind(part.image.line, INDEX, at_line.then(Add, number));
            let row = first.clone().then(Add, number.then(Mul, part.columns));
            let before = self.columns.first.then(Mul, column.step);
            let columns = reach(Expr::Name(self.columns.count), column.step, column.between());
            let columns = Expr::Name(emitter.bind("reach", INDEX, columns));
            let lanes = |emitter: &mut Emitter<'k>,
                         kernel: &'k Kernel,
                         from: Expr,
                         to: Expr,
                         hint: LoopHint| {
                emitter.repeat_along(&[part.image.column], counting(Var::Lane, from, to, hint), |emitter| {
                    let lane = Expr::name(Var::Lane);
                    emitter.bind(part.image.column, INDEX, before.clone().then(Add, lane.clone()));
                    let value = emitter.using(kernel, |emitter| self.factor(emitter, value));
                    emitter.push(set(Expr::element(array, row.clone().then(Add, lane)), value));
                });
            };
            match &part.interior {
                None => lanes(emitter, &part.image.kernel, Expr::Int(0), columns, LoopHint::SimdSpilling),
                Some(interior) => {
                    let clamp = |at: u64| {
                        Expr::Int(at).then(Sub, before.clone()).then(Max, 0).then(Min, columns.clone())
                    };
                    let (mut low, mut high) = (clamp(interior.low), clamp(interior.high));
                    if !interior.conditions.is_empty() {
                        // Lines of the border have no interior.
                        let holds = Box::new(Expr::InBounds(interior.conditions.clone()));
                        let or_none =
                            |at: Expr| Expr::Select(holds.clone(), Box::new(at), Box::new(columns.clone()));
                        (low, high) = (or_none(low), or_none(high));
                    }
                    let border = if part.is_masked { LoopHint::SimdSpilling } else { LoopHint::None };
                    let low = Expr::Name(emitter.bind("low", INDEX, low));
                    let high = Expr::Name(emitter.bind("high", INDEX, high));
                    lanes(emitter, &part.image.kernel, Expr::Int(0), low.clone(), border);
                    emitter.under(Some(low.clone().then(Less, &high)), |emitter| {
                        lanes(emitter, &interior.kernel, low, high.clone(), LoopHint::SimdSpilling);
                    });
                    lanes(emitter, &part.image.kernel, high, columns, border);
                }
            }
        });
    }

    /// Zeros for the lanes behind the last column of a term.
    fn zeros_behind(&self, packed: Var, row: Expr) -> Stmt {
        let zero = vec![set(Expr::element(packed, row.then(Add, Var::Lane)), self.zero())];
        let (filled, end) = (self.all_columns(), self.filled(self.all_columns()));
        counting(Var::Lane, filled, end, LoopHint::SimdSpilling).of(zero)
    }

    /// Each place's elements in all windows of the block, and zeros for the lanes behind the last one.
    fn lay_out(
        &self,
        emitter: &mut Emitter,
        part: &Part,
        channel: &Expr,
        [image, packed]: [Var; 2],
        first: &Expr,
    ) {
        let Windows { line, column, .. } = *part.windows;
        let (of_line, of_column) = (line.map_or(1, |line| line.extent()), column.extent());
        let [place_line, place, number, own] =
            ["place0", "place1", "line", "image"].map(|hint| emitter.index(hint));
        let lane = Expr::name(Var::Lane);
        let at = |index: Expr, stride: u64| index.then(Mul, stride);
        let name = |var| Expr::Name(var);
        let place_at = at(name(place_line), of_column).then(Add, name(place));
        let term = channel.clone().then(Mul, of_line * of_column).then(Add, place_at);
        let row = at(term, self.width());
        let (mut to_line, mut first) = (name(number), first.clone());
        if let Some(of_image) = part.windows.of_image {
            to_line = own.then(Mul, of_image).then(Add, to_line);
            first = first.then(Add, own.then(Mul, part.of_image()));
        }
        let to = row.clone().then(Add, to_line.then(Mul, name(self.columns.count)));
        let from_line = line.map_or(name(number), |line| {
            at(name(number), line.step).then(Add, at(name(place_line), line.spread))
        });
        let from = first.then(Add, at(from_line, part.columns)).then(Add, at(name(place), column.spread));
        emitter.open(&[], false);
        let from = emitter.bind("from", INDEX, from);
        let to = emitter.bind("to", INDEX, to);
        let element = Expr::element(image, name(from).then(Add, at(lane.clone(), column.step)));
        let copy = vec![set(Expr::element(packed, name(to).then(Add, lane)), element)];
        let columns = name(self.columns.count);
        emitter.push(counting(Var::Lane, 0, columns, LoopHint::SimdSpilling).of(copy));
        let line_body = emitter.close();
        let lines = match (line, part.windows.of_image) {
            (Some(_), None) => counting(number, 0, self.lines.count, LoopHint::None).of(line_body),
            (None, None) => counting(number, 0, Expr::Int(1), LoopHint::None).of(line_body),
            (_, Some(of_image)) => {
                let of_one = counting(number, 0, Expr::Int(of_image), LoopHint::None).of(line_body);
                let images = self.lines.count.then(Div, of_image);
                counting(own, 0, images, LoopHint::None).of(vec![of_one])
            }
        };
        let mut body = vec![lines, self.zeros_behind(packed, row)];
        for (var, count) in [(place, of_column), (place_line, of_line)] {
            body = vec![counting(var, 0, Expr::Int(count), LoopHint::None).of(body)];
        }
        emitter.append(body);
    }
}
