//! Each rule refuses a small nest that breaks it, and lets the same nest pass that does not.

use super::{NestError, verify};
use crate::DType::{Bool, F32};
use crate::index::{AxisId, IndexExpr};
use crate::ir::{AxisKind, BufferId, Kernel};
use crate::nest::stmt::Arithmetic::{Add, Div, Equal, Less, Min, Rem};
use crate::nest::stmt::{Builtin, Expr, LoopHint, Step, Stmt, Type};
use crate::nest::variable::{Local, LocalId, Space, Var};
use crate::nest::{Body, Function, Nest, Parameter};
use crate::schedule::Launch;
use crate::{BinaryOp, Scalar};

const INPUT: BufferId = BufferId(0);
const OUTPUT: BufferId = BufferId(1);
const AXIS: AxisId = AxisId(0);

/// A function over 64 elements with blocks of threads, and these variables of its own.
fn checked(
    block: [u32; 2],
    locals: &[(Type, Option<u64>, Space)],
    statements: Vec<Stmt>,
) -> Result<(), NestError> {
    checked_with(block, locals, |number| format!("v{number}"), statements)
}

/// The same with names for them.
fn checked_with(
    block: [u32; 2],
    locals: &[(Type, Option<u64>, Space)],
    name: impl Fn(usize) -> String,
    statements: Vec<Stmt>,
) -> Result<(), NestError> {
    let mut kernel = Kernel::new("kernel");
    kernel.add_axis(AxisKind::Map, 64, false);
    kernel.add_input(F32, 64);
    kernel.add_output(F32, 64);
    let locals = locals.iter().enumerate().map(|(number, &(ty, len, space))| Local {
        hint: name(number),
        ty,
        len,
        space,
    });
    let body = Body { statements, locals: locals.collect() };
    let launch = Launch { block: [block[0], block[1], 1], ..Launch::default() };
    verify(&Nest {
        functions: vec![Function { name: "kernel".into(), body, launch }],
        parameters: vec![Parameter::Buffer(INPUT), Parameter::Buffer(OUTPUT)],
        workspaces: Vec::new(),
        wide_index: false,
        kernel,
    })
}

fn local(number: u32) -> Var {
    Var::Local(LocalId(number))
}

fn value(number: i64) -> Expr {
    Expr::Literal(Scalar::from_i64(F32, number))
}

fn thread() -> Expr {
    Expr::Builtin(Builtin::ThreadX)
}

fn set(target: Expr, value: Expr) -> Stmt {
    Stmt::Assign { target, value }
}

fn when(condition: Expr, then: Vec<Stmt>) -> Stmt {
    Stmt::If { condition, then, otherwise: Vec::new() }
}

fn count(var: impl Into<Var>, to: u64, body: Vec<Stmt>) -> Stmt {
    let (var, step) = (var.into(), Step::Add(Expr::Int(1)));
    Stmt::For { var, from: Expr::Int(0), to: Expr::Int(to), step, hint: LoopHint::None, body }
}

fn input(at: Expr) -> Expr {
    Expr::FromMemory(F32, Box::new(Expr::element(INPUT, at)))
}

fn store(at: Expr, value: Expr) -> Stmt {
    set(Expr::element(OUTPUT, at), Expr::ToMemory(F32, Box::new(value)))
}

const REGISTER: Type = Type::Register(F32);
const CONSTANT: (Type, Option<u64>, Space) = (REGISTER, None, Space::Constant);
const VARIABLE: (Type, Option<u64>, Space) = (REGISTER, None, Space::Thread);

#[test]
fn variables_are_defined_before_they_are_used() {
    let define = Stmt::Let { var: local(0), value: value(1) };
    let use_it = store(Expr::Int(0), Expr::Name(local(0)));
    assert_eq!(checked([1, 1], &[CONSTANT], vec![define.clone(), use_it.clone()]), Ok(()));
    let undefined = Err(NestError::Undefined("v0".into()));
    assert_eq!(checked([1, 1], &[CONSTANT], vec![use_it.clone(), define.clone()]), undefined);
    assert_eq!(checked([1, 1], &[CONSTANT], vec![Stmt::Block(vec![define]), use_it]), undefined);
    let axis = Expr::Index(IndexExpr::axis(AXIS));
    let beside = vec![count(AXIS, 64, Vec::new()), store(axis, value(1))];
    assert_eq!(checked([1, 1], &[], beside), Err(NestError::Undefined("i0".into())));
}

#[test]
fn names_say_which_variable_is_meant() {
    let store_of = |inner: &str| {
        let mut body = vec![Stmt::Let { var: local(0), value: value(1) }];
        let inside = Stmt::Let { var: local(1), value: value(2) };
        body.push(Stmt::Block(vec![inside, store(Expr::Int(0), Expr::Name(local(0)))]));
        let names = ["outer", inner];
        checked_with([1, 1], &[CONSTANT, CONSTANT], |number| names[number].into(), body)
    };
    assert_eq!(store_of("inner"), Ok(()));
    assert_eq!(store_of("outer"), Err(NestError::Hidden("outer".into())));
}

#[test]
fn loops_go_along_free_axes() {
    let inner = count(AXIS, 64, Vec::new());
    assert_eq!(checked([1, 1], &[], vec![inner.clone(), inner.clone()]), Ok(()));
    assert_eq!(
        checked([1, 1], &[], vec![count(AXIS, 64, vec![inner])]),
        Err(NestError::Redefined("i0".into()))
    );
}

#[test]
fn only_variables_change() {
    let change = set(Expr::Name(local(0)), value(2));
    let begin = Stmt::Declare { var: local(0), init: Some(value(1)) };
    assert_eq!(checked([1, 1], &[VARIABLE], vec![begin, change.clone()]), Ok(()));
    let begin = Stmt::Let { var: local(0), value: value(1) };
    assert_eq!(checked([1, 1], &[CONSTANT], vec![begin, change]), Err(NestError::Immutable("v0".into())));
    let write = set(Expr::element(INPUT, Expr::Int(0)), Expr::ToMemory(F32, Box::new(value(1))));
    assert_eq!(checked([1, 1], &[], vec![write]), Err(NestError::Immutable("in0".into())));
}

#[test]
fn operands_are_of_the_types_that_they_must_be() {
    let store_of = |value: Expr| checked([1, 1], &[], vec![store(Expr::Int(0), value)]);
    let sum = |dtype, a: Expr, b: Expr| Expr::Binary(BinaryOp::Add, dtype, Box::new(a), Box::new(b));
    assert_eq!(store_of(sum(F32, value(1), value(2))), Ok(()));
    let truth = Expr::Literal(Scalar::from_bool(true));
    for wrong in [
        sum(F32, value(1), truth.clone()),
        sum(Bool, truth.clone(), truth.clone()),
        sum(F32, value(1), Expr::Int(2)),
        Expr::element(INPUT, Expr::Int(0)),
        Expr::Select(Box::new(value(1)), Box::new(value(1)), Box::new(value(2))),
        Expr::Name(INPUT.into()),
    ] {
        assert!(matches!(store_of(wrong), Err(NestError::Mistyped { .. })));
    }
    let by_value = store(value(1), value(1));
    assert!(matches!(checked([1, 1], &[], vec![by_value]), Err(NestError::Mistyped { .. })));
}

#[test]
fn all_threads_come_to_a_barrier() {
    let run = |condition: Expr| checked([64, 2], &[], vec![when(condition, vec![Stmt::Barrier])]);
    assert_eq!(run(Expr::Builtin(Builtin::BlockX).then(Equal, Expr::Int(0))), Ok(()));
    let divergent = Err(NestError::Divergent("a barrier"));
    assert_eq!(run(thread().then(Equal, Expr::Int(0))), divergent);
    assert_eq!(run(Expr::Builtin(Builtin::ThreadY).then(Equal, Expr::Int(0))), divergent);
    let early = when(thread().then(Less, Expr::Int(3)), vec![Stmt::Return]);
    assert_eq!(checked([64, 1], &[], vec![early, Stmt::Barrier]), divergent);
    // A variable that a loop changes by thread, and then decides.
    let counter = (Type::Index, None, Space::Thread);
    let decide = when(Expr::Name(local(0)).then(Less, Expr::Int(9)), vec![Stmt::Barrier]);
    let change = set(Expr::Name(local(0)), thread());
    let body =
        vec![Stmt::Declare { var: local(0), init: Some(Expr::Int(0)) }, count(AXIS, 4, vec![decide, change])];
    assert_eq!(checked([64, 1], &[counter], body), divergent);
}

#[test]
fn all_lanes_of_a_warp_take_part_in_an_exchange() {
    let exchange = |condition: Expr| {
        let other = Expr::ShuffleXor { value: Box::new(value(1)), mask: Box::new(Expr::Int(1)), width: 32 };
        checked([64, 1], &[CONSTANT], vec![when(condition, vec![Stmt::Let { var: local(0), value: other }])])
    };
    assert_eq!(exchange(thread().then(Div, Expr::Int(32)).then(Equal, Expr::Int(0))), Ok(()));
    let divergent = Err(NestError::Divergent("an exchange of a warp"));
    assert_eq!(exchange(thread().then(Rem, Expr::Int(32)).then(Equal, Expr::Int(0))), divergent);
}

#[test]
fn shared_memory_is_read_once_it_is_written_and_all_know() {
    let shared = [(REGISTER, Some(64), Space::Shared)];
    let begin = Stmt::Declare { var: local(0), init: None };
    let write = set(Expr::element(local(0), thread()), value(1));
    let read = |at: Expr| store(thread(), Expr::element(local(0), at));
    let run = |rest: Vec<Stmt>| checked([64, 1], &shared, [vec![begin.clone()], rest].concat());
    let other = || Expr::Int(0);
    assert_eq!(run(vec![write.clone(), Stmt::Barrier, read(other())]), Ok(()));
    assert_eq!(run(vec![write.clone(), read(thread())]), Ok(()));
    assert_eq!(run(vec![read(thread())]), Err(NestError::Unwritten("v0".into())));
    let unsynchronised = Err(NestError::Unsynchronised("v0".into()));
    assert_eq!(run(vec![write.clone(), read(other())]), unsynchronised);
    // The next round writes over what others still read.
    let round = vec![write, Stmt::Barrier, read(other())];
    assert_eq!(run(vec![count(AXIS, 4, round.clone())]), unsynchronised);
    assert_eq!(run(vec![count(AXIS, 4, [round, vec![Stmt::Barrier]].concat())]), Ok(()));
}

#[test]
fn elements_are_the_arrays() {
    let run = |to: u64, offset: i64| {
        let at = Expr::Index(IndexExpr::axis(AXIS).offset(offset));
        checked([1, 1], &[], vec![count(AXIS, to, vec![store(at.clone(), input(at))])])
    };
    assert_eq!(run(64, 0), Ok(()));
    assert_eq!(run(60, 4), Ok(()));
    assert!(matches!(run(65, 0), Err(NestError::OutOfBounds { range: (0, 64), len: 64, .. })));
    assert!(matches!(run(64, -1), Err(NestError::OutOfBounds { range: (-1, 62), .. })));
}

#[test]
fn bounds_follow_from_conditions_steps_and_minima() {
    let at = Expr::Index(IndexExpr::axis(AXIS));
    let bind = |value: Expr| Stmt::Let { var: AXIS.into(), value };
    let global = Expr::Builtin(Builtin::ThreadX);
    let guarded = |limit: u64| {
        let inside = Expr::Name(AXIS.into()).then(Less, Expr::Int(limit));
        checked([100, 1], &[], vec![bind(global.clone()), when(inside, vec![store(at.clone(), value(1))])])
    };
    assert_eq!(guarded(64), Ok(()));
    assert!(matches!(guarded(65), Err(NestError::OutOfBounds { range: (0, 64), .. })));
    let clamped = |limit: u64| {
        checked(
            [100, 1],
            &[],
            vec![bind(global.clone().then(Min, Expr::Int(limit))), store(at.clone(), value(1))],
        )
    };
    assert_eq!(clamped(63), Ok(()));
    assert!(clamped(64).is_err());
    // Vectors of four, up to a tail; and the distance from where a stretch begins.
    let index = (Type::Index, None, Space::Constant);
    let stretches = |len: u64| {
        let array = (REGISTER, Some(len), Space::Thread);
        let (start, stop) = (Expr::Name(local(0)), Expr::Name(local(1)));
        let end = start.clone().then(Add, Expr::Int(16)).then(Min, Expr::Int(50));
        let own = Expr::Name(AXIS.into()).then(crate::nest::stmt::Arithmetic::Sub, start.clone());
        let inner = Stmt::For {
            var: AXIS.into(),
            from: start,
            to: stop,
            step: Step::Add(Expr::Int(1)),
            hint: LoopHint::None,
            body: vec![set(Expr::element(local(2), own), value(1))],
        };
        let outer = Stmt::For {
            var: local(0),
            from: Expr::Int(0),
            to: Expr::Int(50),
            step: Step::Add(Expr::Int(16)),
            hint: LoopHint::None,
            body: vec![Stmt::Let { var: local(1), value: end }, inner],
        };
        let begin = Stmt::Declare { var: local(2), init: None };
        checked([1, 1], &[index, index, array], vec![begin, outer])
    };
    assert_eq!(stretches(16), Ok(()));
    assert!(matches!(stretches(15), Err(NestError::OutOfBounds { range: (0, 15), len: 15, .. })));
}
