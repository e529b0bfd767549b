//! Nests that differ in numbers alone have texts that do: such a text is printed once, and has other numbers put in from
//! then on.
//!
//! A nest's numbers are taken out of it, each distinct one for a stand-in, and what is left is the key: with it go all
//! numbers that decide how something is printed (short loops, whole vectors, powers of two, distances of lanes, positions
//! that 32 bits hold). The text of the nest with stand-ins is compared with the text of the nest: if putting the numbers in
//! their places does not give it, there is no pattern, and each is printed.

use std::any::Any;
use std::fmt::Write;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, OnceLock};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::lanes::has_long_vectors;
use super::{c, streams};
use crate::index::{Bound, IndexExpr};
use crate::ir::Kernel;
use crate::nest::stmt::{Arithmetic, Expr, Step, Stmt};
use crate::nest::variable::Var;
use crate::nest::{Body, Nest, Parameter, Workspace, is_verified};

/// Patterns that are kept; then all are forgotten.
const MOST_KNOWN: usize = 512;
/// Distinct numbers of a text; more are no gain.
const MOST_NUMBERS: usize = 1024;
/// Stand-ins: this and some, which few numbers are.
const FIRST: u64 = 1_300_000_000;
/// From one to the next.
const APART: u64 = 32;

/// A text without its numbers.
#[derive(Debug)]
pub struct Pattern {
    /// All that stays.
    text: String,
    /// After how many bytes of it which number follows.
    slots: Vec<(usize, usize)>,
    /// How many numbers there are.
    numbers: usize,
    /// What others have made of it.
    pub(crate) made: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// The pattern of a text, and the numbers that are put in. Not compared: it says nothing that the text does not.
#[derive(Clone, Debug)]
pub struct Filled {
    pub(crate) pattern: Arc<Pattern>,
    pub(crate) values: Vec<u64>,
}

impl PartialEq for Filled {
    fn eq(&self, _: &Filled) -> bool {
        true
    }
}

/// The text of a nest in C, and its pattern if it has one.
pub(crate) fn print(nest: &mut Nest) -> (String, Option<Filled>) {
    let condition = streams::condition(nest);
    let (decisions, constants) = decisions(nest);
    let mut numbers = Numbers::default();
    each_number(nest, constants, &mut |value, role| numbers.take(value, role));
    let marked = condition.as_deref().map(|condition| numbers.take_of_text(condition));
    let key = Key::of(nest, &decisions, marked.as_deref());
    let hash = FxBuildHasher.hash_one(&key);
    let is_too_much = numbers.values.len() > MOST_NUMBERS;
    let known = if is_too_much { Some(None) } else { with_known(|known| known.find(hash, &key)) };
    match known {
        Some(Some(pattern)) => {
            let source = pattern.fill(&numbers.values);
            if is_verified() {
                numbers.put_back(nest, constants);
                debug_assert_eq!(source, c::print(nest, condition.as_deref()));
            }
            (source, Some(Filled { pattern, values: numbers.values }))
        }
        Some(None) => {
            numbers.put_back(nest, constants);
            (c::print(nest, condition.as_deref()), None)
        }
        None => {
            let key = key.owned();
            let stand_ins = c::print(nest, marked.as_deref());
            numbers.put_back(nest, constants);
            let source = c::print(nest, condition.as_deref());
            let pattern = Pattern::of(&stand_ins, &source, &numbers.values).map(Arc::new);
            with_known(|known| known.add(hash, key, pattern.clone()));
            let filled = pattern.map(|pattern| Filled { pattern, values: numbers.values });
            (source, filled)
        }
    }
}

impl Pattern {
    /// Of two texts that differ in numbers alone, stand-ins in one of them; `None` if they differ in more.
    fn of(stand_ins: &str, source: &str, values: &[u64]) -> Option<Pattern> {
        let functions = stand_ins.find("\nstatic void ")?;
        let (mut text, rest) = (stand_ins[..functions].to_owned(), &stand_ins[functions..]);
        let mut source = source.strip_prefix(text.as_str())?;
        let mut slots = Vec::new();
        for token in tokens(rest) {
            match number_of(token) {
                Some(number) => {
                    let value = values.get(number)?.to_string();
                    source = source.strip_prefix(value.as_str())?;
                    if source.starts_with(|c: char| c.is_ascii_digit()) {
                        return None;
                    }
                    slots.push((text.len(), number));
                }
                None => {
                    source = source.strip_prefix(token)?;
                    text.push_str(token);
                }
            }
        }
        let pattern = Pattern { text, slots, numbers: values.len(), made: OnceLock::new() };
        source.is_empty().then_some(pattern)
    }

    /// The text with these numbers.
    fn fill(&self, values: &[u64]) -> String {
        let mut source = String::with_capacity(self.text.len() + 12 * self.slots.len());
        let mut done = 0;
        for &(at, number) in &self.slots {
            source.push_str(&self.text[done..at]);
            // Writing to a string does not fail.
            let _ = write!(source, "{}", values.get(number).copied().unwrap_or_default());
            done = at;
        }
        source.push_str(&self.text[done..]);
        source
    }

    /// The text with stand-ins for numbers: see [`number_of_stand_in`].
    pub(crate) fn with_stand_ins(&self) -> String {
        let stand_ins: Vec<u64> = (0..self.numbers as u64).map(|number| FIRST + APART * number).collect();
        self.fill(&stand_ins)
    }
}

/// Which number a stand-in is for.
pub(crate) fn number_of_stand_in(value: u64) -> Option<usize> {
    let most = FIRST + APART * MOST_NUMBERS as u64;
    (FIRST..most).contains(&value).then(|| ((value - FIRST) / APART) as usize)
}

/// Whether a text has a stand-in in it.
pub(crate) fn has_stand_ins(text: &str) -> bool {
    tokens(text).any(|token| number_of(token).is_some())
}

/// The number that a token of digits stands in for.
fn number_of(token: &str) -> Option<usize> {
    let is_number = token.starts_with(|c: char| c.is_ascii_digit());
    token.parse().ok().filter(|_| is_number).and_then(number_of_stand_in)
}

/// Words, runs of digits that are no part of one, and what is between.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let length = rest.find(|c: char| is_word(c) != is_word(first)).unwrap_or(rest.len());
        let (token, behind) = rest.split_at(length);
        rest = behind;
        Some(token)
    })
}

/// What decides about a text but for its numbers.
#[derive(PartialEq, Hash)]
struct Key<B> {
    /// Names, kinds and dtypes.
    header: Vec<u64>,
    names: String,
    parameters: Vec<Parameter>,
    bodies: B,
}

impl<'a> Key<Vec<&'a Body>> {
    fn of(nest: &'a Nest, decisions: &[u64], condition: Option<&str>) -> Key<Vec<&'a Body>> {
        let Nest { functions, parameters, workspaces, maps: _, wide_index, kernel } = nest;
        let Kernel { name, axes, buffers, arguments, .. } = kernel;
        let mut header = vec![u64::from(*wide_index), axes.len() as u64, buffers.len() as u64];
        let mut names = format!("{name} {}", condition.unwrap_or_default());
        let mut add = |name: &str, facts: u64| {
            names.push(' ');
            names.push_str(name);
            header.push(facts);
        };
        for axis in axes {
            add(&axis.name, u64::from(axis.is_argument) + 2 * u64::from(axis.is_lane));
        }
        for (number, buffer) in buffers.iter().enumerate() {
            let is_over = kernel.is_written_over(crate::ir::BufferId(number as u32));
            let facts = u64::from(buffer.is_output) + 2 * u64::from(is_over);
            add(&buffer.name, 4 * buffer.dtype as u64 + facts);
        }
        for argument in arguments {
            add(&argument.name, argument.value.dtype() as u64);
        }
        for Workspace { name, dtype, zeroed, .. } in workspaces {
            add(name, 2 * *dtype as u64 + u64::from(*zeroed));
        }
        functions.iter().for_each(|function| add(&function.name, 0));
        header.extend(decisions);
        let bodies = functions.iter().map(|function| &function.body).collect();
        Key { header, names, parameters: parameters.clone(), bodies }
    }

    fn owned(self) -> Key<Vec<Body>> {
        let Key { header, names, parameters, bodies } = self;
        Key { header, names, parameters, bodies: bodies.into_iter().cloned().collect() }
    }

    fn is(&self, other: &Key<Vec<Body>>) -> bool {
        self.header == other.header
            && self.names == other.names
            && self.parameters == other.parameters
            && self.bodies.iter().copied().eq(&other.bodies)
    }
}

/// A key and its pattern; `None` for nests that have none.
type Entry = (Key<Vec<Body>>, Option<Arc<Pattern>>);

/// Patterns by hashes of keys.
#[derive(Default)]
struct Known {
    patterns: FxHashMap<u64, Vec<Entry>>,
    count: usize,
}

impl Known {
    #[allow(clippy::option_option, reason = "unknown, or known to have none")]
    fn find(&self, hash: u64, key: &Key<Vec<&Body>>) -> Option<Option<Arc<Pattern>>> {
        let known = self.patterns.get(&hash)?;
        known.iter().find(|(other, _)| key.is(other)).map(|(_, pattern)| pattern.clone())
    }

    fn add(&mut self, hash: u64, key: Key<Vec<Body>>, pattern: Option<Arc<Pattern>>) {
        if self.count == MOST_KNOWN {
            self.patterns.clear();
            self.count = 0;
        }
        self.count += 1;
        self.patterns.entry(hash).or_default().push((key, pattern));
    }
}

#[cfg(not(test))]
fn with_known<T>(f: impl FnOnce(&mut Known) -> T) -> T {
    use std::sync::{Mutex, PoisonError};
    static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    f(known.get_or_insert_default())
}

/// Tests count what they make known: each has a thread of its own.
#[cfg(test)]
fn with_known<T>(f: impl FnOnce(&mut Known) -> T) -> T {
    thread_local! {
        static KNOWN: std::cell::RefCell<Known> = std::cell::RefCell::default();
    }
    KNOWN.with_borrow_mut(f)
}

/// The distinct numbers that are taken out of a nest.
#[derive(Default)]
struct Numbers {
    values: Vec<u64>,
    of_values: FxHashMap<u64, usize>,
}

/// What a number is to what prints it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Nothing but a number: lanes are some elements apart by small ones.
    Plain,
    /// A length or the end of a loop: whole vectors are spelled out, and so are short loops.
    Length,
    /// The end of a loop over lanes, in a nest with others that are no short ones: whether it is one of whole vectors.
    Lanes,
}

/// Whether a number stays what it is: how something is printed may follow from it.
fn decides(value: u64, role: Role) -> bool {
    let is_plain = value <= 16 || value.is_power_of_two() || value >= 1 << 59;
    match role {
        Role::Plain => is_plain,
        Role::Length => is_plain || value <= 128 && value.is_multiple_of(8),
        Role::Lanes => value == 0 || value.is_multiple_of(8) || value >= 1 << 59,
    }
}

/// How many whole vectors a length is may be asked as well.
fn vectors(value: u64, role: Role) -> u64 {
    if role == Role::Plain {
        return 1;
    }
    match value.trailing_zeros() {
        0..3 => 1,
        3 => 8,
        _ => 16,
    }
}

impl Numbers {
    /// Puts a stand-in in the place of a number.
    fn take(&mut self, value: &mut u64, role: Role) {
        if decides(*value, role) {
            return;
        }
        let next = self.values.len();
        let number = *self.of_values.entry(*value).or_insert(next);
        if number == next {
            self.values.push(*value);
        }
        *value = FIRST + APART * number as u64 + vectors(*value, role) % APART;
    }

    /// The same in a text.
    fn take_of_text(&mut self, text: &str) -> String {
        let token = |token: &str| match token.parse() {
            Ok(mut value) => {
                self.take(&mut value, Role::Length);
                value.to_string()
            }
            Err(_) => token.to_owned(),
        };
        tokens(text).map(token).collect()
    }

    /// Undoes what [`Numbers::take`] has done.
    fn put_back(&self, nest: &mut Nest, constants: Constants) {
        each_number(nest, constants, &mut |value, _| {
            *value = number_of_stand_in(*value).map_or(*value, |number| self.values[number]);
        });
    }
}

/// Whether the constants of indices are numbers, or stay what they are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Constants {
    Taken,
    /// Lanes that are some elements apart go by their remainders.
    Kept,
}

/// What is asked of numbers beyond themselves: lengths of loops, positions in 32 bits, lanes that are some elements apart.
fn decisions(nest: &Nest) -> (Vec<u64>, Constants) {
    let (ranges, launched) = (nest.kernel.ranges(), super::lanes::launched_ranges(&nest.kernel));
    let (mut decisions, mut constants) = (Vec::new(), Constants::Taken);
    let mut see = |expr: &Expr| {
        let is_distance = |factor: i64| (2..=4).contains(&factor.abs());
        match expr {
            Expr::Position(index) => {
                decisions.push(u64::from(super::lanes::are_short(index.range(&ranges))));
            }
            Expr::InBounds(bounds) => {
                decisions.push(u64::from(super::lanes::bounds_are_short(bounds, &ranges)));
                let short = bounds.iter().map(|bound| super::lanes::is_compared_short(bound, &launched));
                decisions.extend(short.map(u64::from));
            }
            Expr::Index(index) if index.terms().iter().any(|&(_, factor)| is_distance(factor)) => {
                constants = Constants::Kept;
            }
            Expr::Arithmetic(Arithmetic::Mul, a, b)
                if [a, b].iter().any(|factor| matches!(***factor, Expr::Int(2..=4))) =>
            {
                constants = Constants::Kept;
            }
            _ => {}
        }
    };
    let mut lengths = Vec::new();
    let are_lanes = has_long_vectors(nest);
    fn visit(body: &[Stmt], are_lanes: bool, see: &mut dyn FnMut(&Expr), lengths: &mut Vec<u64>) {
        for stmt in body {
            let role = role_in(stmt, are_lanes);
            if let Stmt::For { from: Expr::Int(from), to: Expr::Int(to), .. } = stmt {
                let length = to.saturating_sub(*from);
                let is_kept = decides(length, role);
                lengths.push(if is_kept { length } else { u64::MAX - vectors(length, role) });
            }
            stmt.expressions().into_iter().for_each(|expr| expr.visit(&mut *see));
            let are_lanes = are_lanes && !is_of_vectors(stmt);
            stmt.bodies().into_iter().for_each(|body| visit(body, are_lanes, see, lengths));
        }
    }
    for function in &nest.functions {
        visit(&function.body.statements, are_lanes, &mut see, &mut lengths);
    }
    decisions.extend(lengths);
    (decisions, constants)
}

fn is_of_vectors(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For { hint, .. } if hint.is_simd())
}

/// What numbers are in a statement; `are_lanes` if the ends of loops over lanes may be anything there.
fn role_in(stmt: &Stmt, are_lanes: bool) -> Role {
    match stmt {
        Stmt::For {
            var: Var::Lane,
            from: Expr::Int(0),
            to: Expr::Int(_),
            step: Step::Add(Expr::Int(1)),
            ..
        } if are_lanes && is_of_vectors(stmt) => Role::Lanes,
        Stmt::For { .. } => Role::Length,
        _ => Role::Plain,
    }
}

/// Changes a number.
type Change<'a> = dyn FnMut(&mut u64, Role) + 'a;

/// Shows `change` all numbers that are printed as they are. Of positions that are values, those of no axis alone.
fn each_number(nest: &mut Nest, constants: Constants, change: &mut Change) {
    fn visit(body: &mut [Stmt], are_lanes: bool, constants: Constants, change: &mut Change) {
        for stmt in body {
            let role = role_in(stmt, are_lanes);
            if let (Role::Lanes, Stmt::For { to: Expr::Int(to), .. }) = (role, &mut *stmt) {
                change(to, role);
            } else {
                for expr in stmt.expressions_mut() {
                    expr.change(&mut |expr| match expr {
                        // It may be compared with where a loop begins.
                        Expr::Int(value) => change(value, Role::Length),
                        Expr::Index(index) | Expr::Random { index, .. } => of_index(index, constants, change),
                        Expr::Position(index) if index.terms().is_empty() => {
                            of_index(index, Constants::Taken, change);
                        }
                        Expr::InBounds(bounds) => {
                            bounds.iter_mut().for_each(|bound| of_bound(bound, constants, change));
                        }
                        _ => {}
                    });
                }
            }
            let are_lanes = are_lanes && !is_of_vectors(stmt);
            stmt.bodies_mut().into_iter().for_each(|body| visit(body, are_lanes, constants, change));
        }
    }
    let are_lanes = has_long_vectors(nest);
    for function in &mut nest.functions {
        let lengths = function.body.locals.iter_mut().filter_map(|local| local.len.as_mut());
        lengths.for_each(|length| change(length, Role::Length));
        visit(&mut function.body.statements, are_lanes, constants, change);
    }
}

fn of_index(index: &mut IndexExpr, constants: Constants, change: &mut Change) {
    index.change_numbers(constants == Constants::Taken, &mut |value| {
        let mut magnitude = value.unsigned_abs();
        change(&mut magnitude, Role::Plain);
        // Numbers of such a size stay.
        let magnitude = i64::try_from(magnitude).unwrap_or(i64::MAX);
        *value = if *value < 0 { -magnitude } else { magnitude };
    });
}

/// What is compared with a limit is the difference from it, and is printed so.
fn of_bound(bound: &mut Bound, constants: Constants, change: &mut Change) {
    let most = i64::MAX / 8;
    let is_plain = |limit: i64| (-most..most).contains(&limit);
    let limit = match (bound.has_lo(), bound.has_hi()) {
        (true, true) if is_plain(bound.lo) && is_plain(bound.hi) => bound.lo,
        (true, false) if is_plain(bound.lo) => bound.lo,
        (false, true) if is_plain(bound.hi) => bound.hi,
        _ => return,
    };
    bound.expr = bound.expr.offset(-limit);
    if bound.has_lo() {
        bound.lo -= limit;
    }
    if bound.has_hi() {
        bound.hi -= limit;
    }
    if bound.has_lo() && bound.has_hi() && bound.hi > 0 {
        let mut length = bound.hi as u64;
        change(&mut length, Role::Plain);
        bound.hi = i64::try_from(length).unwrap_or(bound.hi);
    }
    of_index(&mut bound.expr, constants, change);
}

#[cfg(test)]
mod tests;
