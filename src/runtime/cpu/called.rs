//! Helper functions that take the compiler longer than the kernels that call them: products of tiles, sorts of rows. Each is a
//! translation unit of its own, compiled once for a machine and linked to every kernel that calls it.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use super::together::{definitions, functions, id, names};

/// Bytes of a function with the definitions that it needs, from which on it is worth a run of the compiler.
const LEAST: usize = 2000;
/// The argument that a function is specialised for where its parameter is `const`: a stride of one.
const UNIT_STRIDE: &str = "1";
/// Stays in its kernel's text: specialised for the strides of its only call, it is 3 to 8 % faster
/// (`benches/notes/first_calls.md`).
const STAYS: &str = "lz_multiply_dots_bf16";
/// How a definition begins that may become a unit of its own.
const CALLED: &str = "static __attribute__((noinline";
const INLINED: &str = "static inline __attribute__((always_inline)) ";

/// A function as a translation unit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Function {
    /// With a hash of the text: kernels that need other versions of a function call other names.
    name: String,
    /// The unit's source.
    text: String,
}

/// What a definition says before its body: `static __attribute__((noinline, OTHERS)) RESULT NAME(PARAMETERS) {`.
struct Head<'a> {
    others: &'a str,
    result: &'a str,
    name: &'a str,
    parameters: Vec<&'a str>,
    /// `static __attribute__((noinline, OTHERS)) `.
    qualifiers: &'a str,
}

impl<'a> Head<'a> {
    fn of(definition: &'a str) -> Option<Head<'a>> {
        let begin = definition.lines().find(|line| line.starts_with(CALLED))?;
        let (attributes, rest) = begin[CALLED.len()..].split_once(")) ")?;
        let (declared, rest) = rest.split_once('(')?;
        let (result, name) = declared.rsplit_once(' ')?;
        let parameters: Vec<&str> = rest.strip_suffix(") {")?.split(", ").collect();
        let qualifiers = &begin[..begin.len() - rest.len() - 1 - declared.len()];
        // How vectors are passed depends on the flags of both units: functions of vectors alone stay.
        let has_memory = parameters.iter().any(|parameter| parameter.contains('*'));
        (has_memory && name != STAYS).then_some(Head {
            others: attributes,
            result,
            name,
            parameters,
            qualifiers,
        })
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

/// A call in a text: its arguments, and where they begin and end.
struct Call<'a> {
    begin: usize,
    end: usize,
    arguments: Vec<&'a str>,
}

/// The calls of a function; `None` if its name is used in another way.
fn calls<'a>(text: &'a str, name: &str) -> Option<Vec<Call<'a>>> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let found = text.match_indices(name).filter(|&(at, _)| {
        let before = at.checked_sub(1).map(|before| text.as_bytes()[before]);
        let after = text.as_bytes().get(at + name.len());
        !before.is_some_and(is_word) && !after.is_some_and(|&byte| is_word(byte))
    });
    found.map(|(at, _)| arguments(text, at + name.len())).collect()
}

fn arguments(text: &str, at: usize) -> Option<Call<'_>> {
    let begin = at + 1;
    let inside = text[at..].strip_prefix('(')?;
    let (mut depth, mut from, mut arguments) = (0usize, 0, Vec::new());
    for (place, letter) in inside.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            ')' | ',' if depth == 0 => {
                arguments.push(inside[from..place].trim());
                from = place + 1;
                if letter == ')' {
                    return Some(Call { begin, end: begin + place, arguments });
                }
            }
            _ => {}
        }
    }
    None
}

/// A kernel's source with declarations in the place of functions that are units of their own, and these.
pub(super) fn split(source: &str) -> (String, Vec<Function>) {
    let at = functions(source);
    let definitions = definitions(&source[..at]);
    let (mut before, mut own) = (source[..at].to_owned(), source[at..].to_owned());
    let mut functions = Vec::new();
    for definition in &definitions {
        let Some(head) = Head::of(definition) else { continue };
        // What another helper calls stays beside it.
        let is_own = definitions
            .iter()
            .all(|other| other == definition || !words(other).any(|word| word == head.name));
        let Some((function, declaration, calling)) =
            is_own.then(|| apart(&definitions, definition, &head, &own)).flatten()
        else {
            continue;
        };
        before = before.replacen(*definition, &declaration, 1);
        own = calling;
        functions.push(function);
    }
    (before + &own, functions)
}

/// The function's unit, its declaration, and the kernel's text with the calls as that declares them. It is specialised for
/// [`UNIT_STRIDE`] alone: other strides differ from kernel to kernel, and each would be another unit.
fn apart(
    definitions: &[&str],
    definition: &str,
    head: &Head<'_>,
    own: &str,
) -> Option<(Function, String, String)> {
    let calls = calls(own, head.name)?;
    if calls.is_empty() || calls.iter().any(|call| call.arguments.len() != head.parameters.len()) {
        return None;
    }
    let is_known = |place: usize| {
        let first = calls[0].arguments[place];
        head.parameters[place].starts_with("const idx ")
            && first == UNIT_STRIDE
            && calls.iter().all(|call| call.arguments[place] == first)
    };
    let known: Vec<bool> = (0..head.parameters.len()).map(is_known).collect();
    let left: Vec<&str> = head
        .parameters
        .iter()
        .zip(&known)
        .filter(|(_, known)| !**known)
        .map(|(parameter, _)| *parameter)
        .collect();
    let passed: Vec<&str> = (head.parameters.iter().zip(&known).enumerate())
        .map(|(place, (parameter, &known))| match known {
            true => calls[0].arguments[place],
            false => words(parameter).last().unwrap_or_default(),
        })
        .collect();
    let needed = needed(definitions, definition);
    // A recursive function cannot be inlined into the one that is exported.
    let is_recursive = words(definition).filter(|word| *word == head.name).count() > 1;
    let inlined =
        if is_recursive { definition.to_owned() } else { definition.replacen(head.qualifiers, INLINED, 1) };
    let (result, left, passed) = (head.result, left.join(", "), passed.join(", "));
    let (core, others) = (head.name, head.others);
    let own_text = format!("{needed}{inlined}");
    if own_text.len() < LEAST {
        return None;
    }
    let name = format!("{core}_{}", id(&format!("{own_text}{others}{passed}")));
    let returned = if result == "void" { "" } else { "return " };
    let text = format!(
        "{own_text}__attribute__((visibility(\"hidden\"){others})) {result} {name}({left});\n\
         \n{result} {name}({left}) {{\n  {returned}{core}({passed});\n}}\n"
    );
    let declaration = format!("__attribute__((visibility(\"hidden\"))) {result} {name}({left});\n");
    let mut calling = String::with_capacity(own.len());
    let mut done = 0;
    for call in &calls {
        let arguments = call.arguments.iter().zip(&known).filter(|(_, known)| !**known);
        let arguments: Vec<&str> = arguments.map(|(argument, _)| *argument).collect();
        // Up to the name, which is before the parenthesis.
        calling.push_str(&own[done..call.begin - 1 - core.len()]);
        calling.push_str(&format!("{name}({}", arguments.join(", ")));
        done = call.end;
    }
    calling.push_str(&own[done..]);
    Some((Function { name, text }, declaration, calling))
}

/// The definitions that another one needs, in their order.
fn needed(definitions: &[&str], definition: &str) -> String {
    let mut wanted: BTreeSet<&str> = words(definition).collect();
    let mut all = Vec::new();
    // Later definitions are not visible there, and may reuse names: LANES is a macro after it and an enumerator in it.
    let before = definitions.iter().position(|&other| other == definition).unwrap_or(0);
    for &other in definitions[..before].iter().rev() {
        let is_wanted = names(other).iter().any(|name| wanted.contains(name))
            || other.starts_with("typedef long long idx;");
        if is_wanted {
            wanted.extend(words(other));
            all.push(other);
        }
    }
    all.iter().rev().copied().collect()
}

/// An object file, once somebody has compiled it.
type Object = Arc<OnceLock<Option<Vec<u8>>>>;

/// By the compiler with its flags, and by name.
static OBJECTS: LazyLock<Mutex<FxHashMap<(String, String), Object>>> = LazyLock::new(Mutex::default);

impl Function {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Its object file, which the first who asks makes while others wait; `None` where that fails.
    pub(super) fn object(&self, maker: &str, make: impl FnOnce() -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        let objects = || OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (maker.to_owned(), self.name.clone());
        let object = objects().entry(key.clone()).or_default().clone();
        let made = object.get_or_init(make).clone();
        if made.is_none() {
            // Another time there may be room.
            objects().remove(&key);
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> String {
        let body = "  to[0] += from[0] * (float)row;\n".repeat(70);
        format!(
            "typedef long long idx;\n\n\
             // Twice as much.\n\
             static inline __attribute__((always_inline)) float lz_twice(float x) {{\n  return 2 * x;\n}}\n\
             static inline __attribute__((always_inline)) float lz_other(float x) {{\n  return 3 * x;\n}}\n\
             static __attribute__((noinline, optimize(\"O2\"))) void lz_long(float* to, const idx row, const float* restrict from, idx n) {{\n\
             {body}  to[1] = lz_twice(to[0]);\n}}\n\
             static __attribute__((noinline)) void lz_short(float* to) {{\n  to[0] = 1;\n}}\n\
             \nstatic void a_blocks(float* out0) {{\n  lz_long(out0, 1, out0 + f(1, 2), 3);\n  lz_short(out0);\n  lz_long(out0, 1, out0, 4);\n}}\n\
             \nvoid a(void* const* args, idx first_block, idx end_block) {{\n  a_blocks(args[0]);\n}}\n"
        )
    }

    #[test]
    fn long_functions_are_compiled_apart() {
        let source = source();
        let (own, functions) = split(&source);
        let [function] = functions.as_slice() else { panic!("{functions:?}") };
        let name = &function.name;
        assert!(own.contains(&format!(
            "{name}(out0, out0 + f(1, 2), 3);\n  lz_short(out0);\n  {name}(out0, out0, 4);"
        )));
        assert!(own.contains(&format!("void {name}(float* to, const float* restrict from, idx n);\n")));
        assert!(own.contains("void lz_short(float* to) {") && !own.contains("from[0]"), "{own}");
        let text = &function.text;
        assert!(text.contains("lz_long(to, 1, from, n);") && text.contains("optimize(\"O2\")"), "{text}");
        assert!(text.contains("lz_twice(float x) {") && !text.contains("lz_other"), "{text}");
        // Other distances are given.
        let (own, others) = split(&source.replace("(out0, 1,", "(out0, 64,"));
        assert!(own.contains(&format!("{}(out0, 64, out0 + f(1, 2), 3)", others[0].name)), "{own}");
        assert_ne!(others[0].name, *name);
        // So they are where calls differ.
        let (own, both) = split(&source.replacen("(out0, 1,", "(out0, 32,", 1));
        assert!(own.contains(&format!("{}(out0, 32, out0 + f(1, 2), 3)", both[0].name)), "{own}");
        assert_eq!(both, others);
    }

    #[test]
    fn what_is_faster_with_its_kernel_stays() {
        let source = source().replace("lz_long", STAYS);
        assert_eq!(split(&source), (source, Vec::new()));
    }

    #[test]
    fn what_calls_itself_is_not_inlined() {
        let source = source().replace("  to[1] =", "  if (n) lz_long(to, row, from, 0);\n  to[1] =");
        let (_, functions) = split(&source);
        assert!(
            functions[0].text.contains("noinline, optimize(\"O2\"))) void lz_long("),
            "{}",
            functions[0].text
        );
    }

    #[test]
    fn a_function_is_made_once_unless_that_fails() {
        let function = split(&source()).1.remove(0);
        assert_eq!(function.object("nobody", || None), None);
        assert_eq!(function.object("nobody", || Some(vec![1])), Some(vec![1]));
        assert_eq!(function.object("nobody", || Some(vec![2])), Some(vec![1]));
        assert_eq!(function.object("somebody else", || Some(vec![3])), Some(vec![3]));
    }

    #[test]
    fn what_others_call_stays_with_them() {
        let source = source().replace("return 3 * x;", "lz_long(0, 1, 0, 2); return 3 * x;");
        // Defined before it here, but that makes no difference.
        let (own, functions) = split(&source);
        assert!(functions.is_empty());
        assert_eq!(own, source);
    }
}
