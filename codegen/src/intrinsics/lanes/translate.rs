//! From C of numbers to C of vectors: the same operations in the same order, so that each lane has the same bits.

use super::conversions::{AVX2, conversion};
use super::kind::{Kind, Narrow};
use super::syntax::{self, Node, Statement};
use super::vectorised::Vectorised;
use super::{Lanes, Value};
use crate::Language;
use crate::intrinsics::{Helpers, call, parenthesise};

/// Functions of the C library that vectors have, by their names for double precision.
const OF_LIBRARY: [&str; 8] = ["sqrt", "fabs", "floor", "ceil", "rint", "trunc", "copysign", "fma"];

/// Helpers that a processor has instructions for, and where (`(AVX2)` stands for [`AVX2`]): see `primitives`.
const INSTRUCTIONS: [(&str, &str, &str); 7] = [
    ("lz_scale_f32v", "ifdef MASKS", "lz_scalef(x, n)"),
    ("lz_scale_f64v", "ifdef MASKS", "lz_scalef_wide(x, n)"),
    ("lz_product_u32v", "if defined(MASKS) || (AVX2)", "lz_low_product(a, b)"),
    // A bit is what most of three have there: both extremes, and all ones but for the sign.
    (
        "lz_maximum_f32v",
        "ifdef MASKS",
        "(f32v)lz_majority_i32v((i32v)lz_max_f32v(a, b), (i32v)lz_max_f32v(b, a), lz_splat_i32v(0x7fffffff))",
    ),
    (
        "lz_maximum_f64v",
        "ifdef MASKS",
        "(f64v)lz_majority_i64v((i64v)lz_max_f64v(a, b), (i64v)lz_max_f64v(b, a), lz_splat_i64v(0x7fffffffffffffffLL))",
    ),
    // There and back.
    (
        "lz_round_f16v",
        "if defined(__AVX512F__) && LANES == 16",
        "__builtin_ia32_vcvtph2ps512_mask(__builtin_ia32_vcvtps2ph512_mask(x, 0, (i16v){ 0 }, -1), (f32v){ 0 }, -1, 4)",
    ),
    (
        "lz_round_f16v",
        "elif defined(__F16C__) && LANES == 8",
        "__builtin_ia32_vcvtph2ps256(__builtin_ia32_vcvtps2ph256(x, 0))",
    ),
];

/// The variables that a text refers to.
pub type Scope<'a> = [(&'a str, &'a Value)];

/// The parameters of a vector function.
struct Parameters {
    scope: Vec<(String, Value)>,
    kinds: Vec<Kind>,
    /// As they are declared.
    head: String,
}

/// Rounds of a helper's loop, at most, that are spelled out.
const MOST_UNROLLED: u32 = 16;

impl Parameters {
    /// `None` if one is of a type that is none of lanes.
    fn of(definition: &syntax::Definition) -> Option<Parameters> {
        let (mut scope, mut kinds, mut head) = (Vec::new(), Vec::new(), Vec::new());
        for (ty, name) in &definition.parameters {
            let (ty, pointer) = match ty.strip_suffix('*') {
                Some(ty) => (ty, "*"),
                None => (ty.as_str(), ""),
            };
            let (kind, _) = Kind::of_type(ty)?;
            kinds.push(kind);
            head.push(format!("{} {pointer}{name}", kind.vector()));
            scope.push((
                name.clone(),
                match kind {
                    Kind::Same => Value::scalar(name.clone(), Kind::U64),
                    kind => Value::vector(name.clone(), kind),
                },
            ));
        }
        Some(Parameters { scope, kinds, head: head.join(", ") })
    }
}

impl Lanes {
    /// The vectors for an expression in C, of whose names some are vectors. `None` if it is none of theirs. What
    /// functions need besides is noted in the helpers.
    pub fn translate(&mut self, text: &str, scope: &Scope, helpers: &mut Helpers) -> Option<Value> {
        let node = syntax::expression(text)?;
        let scope: Vec<(String, Value)> =
            scope.iter().map(|(name, value)| ((*name).to_string(), (*value).clone())).collect();
        self.node(&node, &scope, helpers)
    }

    fn node(&mut self, node: &Node, scope: &[(String, Value)], helpers: &mut Helpers) -> Option<Value> {
        Some(match node {
            Node::Number(text) => Value::scalar(text.clone(), Kind::of_number(text)),
            Node::Name(name) => scope.iter().rev().find(|(own, _)| own == name)?.1.clone(),
            Node::Unary(operator, operand) => {
                let operand = self.node(operand, scope, helpers)?;
                self.unary(*operator, operand)?
            }
            Node::Binary(operator, a, b) => {
                let (a, b) = (self.node(a, scope, helpers)?, self.node(b, scope, helpers)?);
                self.binary(operator, a, b)?
            }
            Node::Choice(condition, a, b) => {
                if let Some(extreme) = self.extreme(node, scope, helpers) {
                    return Some(extreme);
                }
                let [condition, a, b] = [condition, a, b].map(|node| self.node(node, scope, helpers));
                self.select(condition?, a?, b?)
            }
            Node::Cast(ty, operand) => {
                let operand = self.node(operand, scope, helpers)?;
                self.cast(ty, operand)?
            }
            Node::Call(name, arguments) => self.call(name, arguments, scope, helpers)?,
        })
    }

    fn unary(&mut self, operator: char, operand: Value) -> Option<Value> {
        let text = parenthesise(&operand.text);
        if !operand.is_vector {
            let kind = if operator == '!' { Kind::Mask } else { operand.kind };
            return Some(Value { text: format!("{operator}{text}"), kind, is_vector: false });
        }
        match (operator, operand.kind) {
            ('!', Kind::Mask) => Some(Value::vector(format!("~{text}"), Kind::Mask)),
            ('!', kind) => Some(self.compare("==", operand, Value::scalar("0".into(), kind))),
            ('-', Kind::Mask) => {
                let number = self.to_vector(&operand, Kind::I32);
                Some(Value::vector(format!("-{number}"), Kind::I32))
            }
            ('-' | '~', kind) if kind != Kind::Mask => Some(Value::vector(format!("{operator}{text}"), kind)),
            _ => None,
        }
    }

    fn binary(&mut self, operator: &str, a: Value, b: Value) -> Option<Value> {
        let is_comparison = matches!(operator, "==" | "!=" | "<" | "<=" | ">" | ">=");
        if !a.is_vector && !b.is_vector {
            let text = format!("{} {operator} {}", parenthesise(&a.text), parenthesise(&b.text));
            let kind = match operator {
                "||" | "&&" => Kind::Mask,
                "<<" | ">>" => a.kind.common(Kind::I32),
                _ if is_comparison => Kind::Mask,
                _ => a.kind.common(b.kind),
            };
            return Some(Value::scalar(text, kind));
        }
        let are_masks = a.kind == Kind::Mask && b.kind == Kind::Mask;
        match operator {
            "||" | "&&" => {
                let (a, b) = (self.truth(a), self.truth(b));
                Some(Value::vector(format!("{a} {} {b}", &operator[..1]), Kind::Mask))
            }
            "|" | "&" | "^" if are_masks => {
                let (a, b) = (self.truth(a), self.truth(b));
                Some(Value::vector(format!("{a} {operator} {b}"), Kind::Mask))
            }
            "==" | "!=" if are_masks => {
                let (a, b) = (self.truth(a), self.truth(b));
                let text = if operator == "==" { format!("~({a} ^ {b})") } else { format!("{a} ^ {b}") };
                Some(Value::vector(text, Kind::Mask))
            }
            _ if is_comparison => Some(self.compare(operator, a, b)),
            "<<" | ">>" => {
                let kind = a.kind.common(Kind::I32);
                let a = self.to_vector(&a, kind);
                let b = if b.is_vector { self.to_vector(&b, kind) } else { parenthesise(&b.text) };
                Some(Value::vector(format!("{a} {operator} {b}"), kind))
            }
            _ => {
                let kind = a.kind.common(b.kind);
                let (a, b) = (self.operand(&a, kind), self.operand(&b, kind));
                Some(Value::vector(format!("{a} {operator} {b}"), kind))
            }
        }
    }

    /// An operand of vector arithmetic: one number stands for all lanes.
    fn operand(&mut self, value: &Value, kind: Kind) -> String {
        match value.is_vector || value.kind == Kind::Mask {
            true => self.to_vector(value, kind),
            false if value.kind == kind => parenthesise(&value.text),
            false => format!("({}){}", kind.scalar(), parenthesise(&value.text)),
        }
    }

    fn truth(&mut self, value: Value) -> String {
        self.to_vector(&value, Kind::Mask)
    }

    fn compare(&mut self, operator: &str, a: Value, b: Value) -> Value {
        let kind = a.kind.common(b.kind);
        let (a, b) = (self.to_vector(&a, kind), self.to_vector(&b, kind));
        let (name, a, b) = match operator {
            "==" => ("eq", a, b),
            "!=" => ("ne", a, b),
            "<" => ("lt", a, b),
            "<=" => ("le", a, b),
            ">" => ("lt", b, a),
            _ => ("le", b, a),
        };
        let name = self.primitive(name, kind);
        Value::vector(call(&name, &[a, b]), Kind::Mask)
    }

    /// `condition ? a : b`.
    fn select(&mut self, condition: Value, a: Value, b: Value) -> Value {
        let are_masks = a.kind == Kind::Mask && b.kind == Kind::Mask;
        let kind = if are_masks { Kind::Mask } else { a.kind.common(b.kind) };
        if !condition.is_vector && !a.is_vector && !b.is_vector {
            let [condition, a, b] = [condition, a, b].map(|value| parenthesise(&value.text));
            return Value::scalar(format!("{condition} ? {a} : {b}"), kind);
        }
        let (a, b) = (self.to_vector(&a, kind), self.to_vector(&b, kind));
        if !condition.is_vector {
            return Value::vector(format!("{} ? {a} : {b}", parenthesise(&condition.text)), kind);
        }
        let condition = self.truth(condition);
        let text = match kind {
            Kind::Mask => format!("({condition} & {a}) | (~{condition} & {b})"),
            _ => call(&self.primitive("select", kind), &[condition, a, b]),
        };
        Value::vector(text, kind)
    }

    /// `a < b ? a : b` and its kin are instructions.
    fn extreme(&mut self, node: &Node, scope: &[(String, Value)], helpers: &mut Helpers) -> Option<Value> {
        let Node::Choice(condition, first, second) = node else { return None };
        let Node::Binary(operator @ ("<" | ">"), a, b) = &**condition else { return None };
        let is_swapped = match () {
            _ if (a, b) == (first, second) => false,
            _ if (a, b) == (second, first) => true,
            _ => return None,
        };
        let name = if (*operator == "<") != is_swapped { "min" } else { "max" };
        let (a, b) = (self.node(first, scope, helpers)?, self.node(second, scope, helpers)?);
        let kind = a.kind.common(b.kind);
        let is_vector = a.is_vector || b.is_vector;
        if !is_vector || !kind.is_float() {
            return None;
        }
        let (a, b) = (self.to_vector(&a, kind), self.to_vector(&b, kind));
        Some(Value::vector(call(&self.primitive(name, kind), &[a, b]), kind))
    }

    fn cast(&mut self, ty: &str, value: Value) -> Option<Value> {
        let (kind, narrow) = Kind::of_type(ty)?;
        if !value.is_vector {
            return Some(Value::scalar(format!("({ty}){}", parenthesise(&value.text)), kind));
        }
        let is_truth = value.kind == Kind::Mask;
        let text = self.to_vector(&value, kind);
        let text = match narrow.filter(|_| !is_truth) {
            None => text,
            Some(Narrow::Unsigned(bits)) => format!("{text} & {}", (1 << bits) - 1),
            Some(Narrow::Signed(bits)) => format!("({text} << {0}) >> {0}", 32 - bits),
        };
        Some(Value::vector(text, kind))
    }

    /// The value as a vector of that kind, a primary expression.
    pub fn to_vector(&mut self, value: &Value, kind: Kind) -> String {
        let text = parenthesise(&value.text);
        if kind == Kind::Same {
            return if value.is_vector { format!("{text}[0]") } else { text };
        }
        if !value.is_vector {
            let name = self.primitive("splat", kind);
            return call(&name, &[&value.text]);
        }
        match (value.kind, kind) {
            (from, to) if from == to => text,
            (Kind::Mask, to) => {
                let (splat, select) = (self.primitive("splat", to), self.primitive("select", to));
                call(&select, &[text, format!("{splat}(1)"), format!("{splat}(0)")])
            }
            (from, Kind::Mask) => {
                let (splat, differ) = (self.primitive("splat", from), self.primitive("ne", from));
                call(&differ, &[text, format!("{splat}(0)")])
            }
            (Kind::I32, Kind::U32)
            | (Kind::U32, Kind::I32)
            | (Kind::I64, Kind::U64)
            | (Kind::U64, Kind::I64) => {
                format!("(({}){text})", kind.vector())
            }
            (from, to) => conversion(&value.text, from.vector(), to.vector()),
        }
    }

    fn call(
        &mut self,
        name: &str,
        arguments: &[Node],
        scope: &[(String, Value)],
        helpers: &mut Helpers,
    ) -> Option<Value> {
        let bits = match name {
            "lz_as_i32" => Some(Kind::I32),
            "lz_as_f32" => Some(Kind::F32),
            "lz_as_i64" => Some(Kind::I64),
            "lz_as_f64" => Some(Kind::F64),
            _ => None,
        };
        // Results by reference are named.
        let places: Vec<Option<&String>> = arguments
            .iter()
            .map(|argument| match argument {
                Node::Unary('&', name) => match &**name {
                    Node::Name(name) => Some(name),
                    _ => None,
                },
                _ => None,
            })
            .collect();
        let mut values = Vec::new();
        for (argument, place) in arguments.iter().zip(&places) {
            values.push(match place {
                Some(place) => Value::vector(format!("&{place}"), Kind::Mask),
                None => self.node(argument, scope, helpers)?,
            });
        }
        if !values.iter().any(|value| value.is_vector) {
            return None;
        }
        if let (Some(to), [value]) = (bits, &values[..]) {
            let from = match to {
                Kind::I32 => Kind::F32,
                Kind::F32 => Kind::I32,
                Kind::I64 => Kind::F64,
                _ => Kind::I64,
            };
            let from = if value.kind == Kind::U32 || value.kind == Kind::U64 { value.kind } else { from };
            let text = self.to_vector(value, from);
            return Some(Value::vector(format!("({}){text}", to.vector()), to));
        }
        let single = name.strip_suffix('f').filter(|name| OF_LIBRARY.contains(name));
        if let Some(name) = single.or(OF_LIBRARY.contains(&name).then_some(name)) {
            let kind = if single.is_some() { Kind::F32 } else { Kind::F64 };
            let values: Vec<String> = values.iter().map(|value| self.to_vector(value, kind)).collect();
            let name = self.primitive(name, kind);
            return Some(Value::vector(call(&name, &values), kind));
        }
        let (name, signature) = self.function(name, helpers)?;
        let (kinds, result) = &*signature;
        let texts: Vec<String> = values
            .iter()
            .zip(kinds)
            .map(|(value, &kind)| match value.text.starts_with('&') {
                true => value.text.clone(),
                false => self.to_vector(value, kind),
            })
            .collect();
        Some(Value::vector(call(&name, &texts), *result))
    }

    pub(super) fn translated(
        &mut self,
        order: usize,
        name: &str,
        definition: &syntax::Definition,
        helpers: &mut Helpers,
    ) -> Option<(Vec<Kind>, Kind)> {
        let Parameters { mut scope, kinds, head } = Parameters::of(definition)?;
        let mut text = String::new();
        let result = self.body(&definition.body, &mut scope, &mut text, 1, helpers)?;
        let (kind, narrow) = Kind::of_type(&definition.result)?;
        let value = result?;
        // Questions are answered with bytes.
        let kind = if value.kind == Kind::Mask && narrow.is_some() { Kind::Mask } else { kind };
        let value = if value.is_vector { value } else { Value::scalar(value.text, kind) };
        let value =
            if value.kind == kind && value.is_vector { value.text } else { self.to_vector(&value, kind) };
        let mut body = format!("{text}    return {value};\n");
        let instructions = INSTRUCTIONS.iter().filter(|(own, ..)| *own == name);
        let branches: String = instructions
            .map(|(_, condition, instruction)| {
                format!("#{}\n    return {instruction};\n", condition.replace("(AVX2)", &format!("({AVX2})")))
            })
            .collect();
        if !branches.is_empty() {
            body = format!("{branches}#else\n{body}#endif\n");
        }
        let code = format!("{} {name}({head}) {{\n{body}}}\n", kind.vector());
        self.define(order, name, code);
        Some((kinds, kind))
    }

    /// `Some(None)` where nothing is returned.
    fn body(
        &mut self,
        body: &[Statement],
        scope: &mut Vec<(String, Value)>,
        text: &mut String,
        depth: usize,
        helpers: &mut Helpers,
    ) -> Option<Option<Value>> {
        let indent = "    ".repeat(depth);
        for (number, statement) in body.iter().enumerate() {
            match statement {
                Statement::Declare(is_constant, ty, names) => {
                    for (name, value) in names {
                        let value = match value {
                            Some(value) => Some(self.node(value, scope, helpers)?),
                            None => None,
                        };
                        let (text_of, own) = self.declared((*is_constant, ty, name), value)?;
                        text.push_str(&format!("{indent}{text_of};\n"));
                        scope.push((name.clone(), own));
                    }
                }
                Statement::Assign(is_place, name, value) => {
                    let value = self.node(value, scope, helpers)?;
                    let target = scope.iter().rev().find(|(own, _)| own == name)?.1.clone();
                    if !target.is_vector {
                        return None;
                    }
                    let value = match value.is_vector && value.kind == target.kind {
                        true => value.text,
                        false => self.to_vector(&value, target.kind),
                    };
                    let star = if *is_place { "*" } else { "" };
                    text.push_str(&format!("{indent}{star}{name} = {value};\n"));
                }
                Statement::For(head, inner) => {
                    // A loop that lanes do not go through together is none of vectors.
                    let is_of_lanes = |(name, value): &(String, Value)| {
                        value.is_vector && head.split(' ').any(|word| word == name)
                    };
                    if scope.iter().any(is_of_lanes)
                        || inner.iter().any(|s| matches!(s, Statement::Return(_)))
                    {
                        return None;
                    }
                    // At `-O2` no compiler unrolls what is longer then, and a chain of rounds would wait for each.
                    let rounds = head.split(' ').filter_map(|word| word.parse::<u32>().ok()).max();
                    if let Some(rounds @ 2..=MOST_UNROLLED) = rounds {
                        text.push_str(&format!("#pragma GCC unroll {rounds}\n"));
                    }
                    text.push_str(&format!("{indent}for ({}) {{\n", spaced(head)));
                    let seen = scope.len();
                    self.body(inner, scope, text, depth + 1, helpers)?;
                    scope.truncate(seen);
                    text.push_str(&format!("{indent}}}\n"));
                }
                Statement::Return(value) => {
                    return (number + 1 == body.len()).then(|| self.node(value, scope, helpers));
                }
            }
        }
        Some(None)
    }

    /// A declaration, and what its name stands for: constants of one number stay that, all else is a vector.
    fn declared(
        &mut self,
        (is_constant, ty, name): (bool, &str, &str),
        value: Option<Value>,
    ) -> Option<(String, Value)> {
        let (declared, _) = Kind::of_type(ty)?;
        if let Some(value) = value.as_ref().filter(|value| is_constant && !value.is_vector) {
            return Some((
                format!("const {ty} {name} = {}", value.text),
                Value::scalar(name.into(), declared),
            ));
        }
        let is_truth = |value: &Value| value.kind == Kind::Mask && value.is_vector;
        let kind = match value.as_ref().is_some_and(is_truth) && declared == Kind::I32 {
            true => Kind::Mask,
            false => declared,
        };
        let init = value.map(|value| match value.is_vector && value.kind == kind {
            true => format!(" = {}", value.text),
            false => format!(" = {}", self.to_vector(&value, kind)),
        });
        let text = format!("{} {name}{}", kind.vector(), init.unwrap_or_default());
        Some((text, Value::vector(name.into(), kind)))
    }

    /// A vector function of a helper `condition ? result : call` that returns early where the condition holds in all lanes. Else it
    /// calls the vector function of what is called, if it has one, or the helper for each lane.
    pub(super) fn slow_path(
        &mut self,
        order: usize,
        name: &str,
        definition: &syntax::Definition,
        helpers: &mut Helpers,
    ) -> Option<(Vec<Kind>, Kind)> {
        let [Statement::Return(Node::Choice(condition, fast, slow))] = &definition.body[..] else {
            return None;
        };
        let Node::Name(result) = &**fast else { return None };
        let Parameters { scope, kinds, head } = Parameters::of(definition)?;
        let condition = self.node(condition, &scope, helpers)?;
        let condition = self.truth(condition);
        let (kind, _) = Kind::of_type(&definition.result)?;
        let vector = kind.vector();
        let own = format!("{name}v");
        let rest = match &**slow {
            Node::Call(callee, _) if Vectorised::is_of_vectors(callee) => {
                let slow = self.node(slow, &scope, helpers)?;
                let [inside, fast] = [("inside", Kind::Mask), (result.as_str(), kind)]
                    .map(|(name, kind)| Value::vector(name.into(), kind));
                let value = self.select(inside, fast, slow);
                format!("    return {};\n", value.text)
            }
            _ => {
                let lanes: Vec<String> = scope.iter().map(|(name, _)| format!("{name}[lane]")).collect();
                let lanes: Vec<&str> = lanes.iter().map(String::as_str).collect();
                let call = helpers.call(Language::C, name, &lanes);
                format!(
                    "    for (int lane = 0; lane < LANES; ++lane) {result}[lane] = {call};\n    return {result};\n"
                )
            }
        };
        let code = format!(
            "{vector} {own}({head}) {{\n    const mask inside = {condition};\n    if (lz_all(inside)) return {result};\n{rest}}}\n"
        );
        self.define(order, &own, code);
        Some((kinds, kind))
    }

    /// A vector function that calls the helper for each lane.
    pub(super) fn lane_by_lane(
        &mut self,
        order: usize,
        name: &str,
        code: &str,
        helpers: &mut Helpers,
    ) -> Option<(Vec<Kind>, Kind)> {
        let (head, rest) = code.split_once('(')?;
        let (parameters, _) = rest.split_once(')')?;
        let (ty, _) = head.rsplit_once(' ')?;
        let kind_of = |text: &str| {
            let text = text.trim();
            let exact = Kind::of_type(text);
            let without_name = text.rsplit_once(' ').and_then(|(ty, _)| Kind::of_type(ty));
            let (kind, narrow) = exact.or(without_name)?;
            Some((kind, narrow))
        };
        let (result, _) = kind_of(ty)?;
        let kinds: Vec<Kind> =
            parameters.split(',').map(|parameter| Some(kind_of(parameter)?.0)).collect::<Option<_>>()?;

        let names = ["a", "b", "c"].get(..kinds.len())?;
        let head: Vec<String> =
            kinds.iter().zip(names).map(|(kind, name)| format!("{} {name}", kind.vector())).collect();
        let arguments: Vec<String> = names.iter().map(|name| format!("{name}[lane]")).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let call = helpers.call(Language::C, name, &arguments);
        let (vector_name, vector) = (format!("{name}v"), result.vector());
        let code = format!(
            "{vector} {vector_name}({}) {{\n    {vector} result;\n    for (int lane = 0; lane < LANES; ++lane) result[lane] = {call};\n    return result;\n}}\n",
            head.join(", ")
        );
        self.define(order, &vector_name, code);
        Some((kinds, result))
    }
}

/// Tokens as one writes them.
fn spaced(head: &str) -> String {
    head.replace(" ;", ";").replace("++ ", "++").replace("( ", "(").replace(" )", ")")
}
