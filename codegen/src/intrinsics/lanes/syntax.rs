//! Reads the C that helpers and intrinsics are written in: declarations, assignments and expressions of numbers.

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Node {
    /// A literal, or a call of a function without operands such as `__builtin_inff()`: as it is written.
    Number(String),
    Name(String),
    Unary(char, Box<Node>),
    Binary(&'static str, Box<Node>, Box<Node>),
    Choice(Box<Node>, Box<Node>, Box<Node>),
    /// A conversion to a type of this name.
    Cast(String, Box<Node>),
    Call(String, Vec<Node>),
}

/// A statement.
#[derive(Clone, Debug)]
pub(super) enum Statement {
    /// `const` or not, type, and names with what they begin as.
    Declare(bool, String, Vec<(String, Option<Node>)>),
    /// A name (or `*name`), and what it becomes.
    Assign(bool, String, Node),
    /// What stands between the parentheses, and the body.
    For(String, Vec<Statement>),
    Return(Node),
}

/// A function.
#[derive(Debug)]
pub(super) struct Definition {
    pub result: String,
    /// Types, a `*` at their end for pointers, and names.
    pub parameters: Vec<(String, String)>,
    pub body: Vec<Statement>,
}

/// Operators from the loosest to the tightest.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

const TYPE_WORDS: [&str; 9] =
    ["unsigned", "signed", "char", "short", "int", "long", "float", "double", "const"];

/// The expression that a text is; `None` if it is more than these, or none.
pub(super) fn expression(text: &str) -> Option<Node> {
    let mut reader = Reader::new(text)?;
    let node = reader.choice()?;
    reader.is_done().then_some(node)
}

/// The function that a text defines.
pub(super) fn definition(text: &str) -> Option<Definition> {
    let mut reader = Reader::new(text)?;
    let result = reader.type_name()?;
    reader.word()?;
    reader.take("(")?;
    let mut parameters = Vec::new();
    while reader.take(")").is_none() {
        let ty = reader.type_name()?;
        let pointer = if reader.take("*").is_some() { "*" } else { "" };
        parameters.push((format!("{ty}{pointer}"), reader.word()?));
        let _ = reader.take(",");
    }
    let body = reader.block()?;
    reader.is_done().then_some(Definition { result, parameters, body })
}

struct Reader {
    tokens: Vec<String>,
    at: usize,
}

impl Reader {
    fn new(text: &str) -> Option<Reader> {
        let mut tokens = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let length = if first.is_ascii_digit() {
                number_length(rest)
            } else if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else if rest.starts_with("//") {
                rest = rest.split_once('\n')?.1.trim_start();
                continue;
            } else if first == '"' {
                rest[1..].find('"')? + 2
            } else {
                let pairs = ["||", "&&", "==", "!=", "<=", ">=", "<<", ">>", "++", "+=", "-=", "*="];
                let is_shift_and_set = rest.starts_with(">>=") || rest.starts_with("<<=");
                if is_shift_and_set {
                    3
                } else if pairs.iter().any(|pair| rest.starts_with(pair)) {
                    2
                } else {
                    1
                }
            };
            tokens.push(rest.get(..length)?.to_string());
            rest = rest[length..].trim_start();
        }
        Some(Reader { tokens, at: 0 })
    }

    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn is_done(&self) -> bool {
        self.at == self.tokens.len()
    }

    fn take(&mut self, token: &str) -> Option<()> {
        (self.peek() == token).then(|| self.at += 1)
    }

    fn word(&mut self) -> Option<String> {
        let word = self.peek().to_string();
        let is_word = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        is_word.then(|| {
            self.at += 1;
            word
        })
    }

    fn is_type(&self) -> bool {
        TYPE_WORDS.contains(&self.peek())
    }

    fn type_name(&mut self) -> Option<String> {
        let mut words = Vec::new();
        while self.is_type() {
            words.push(self.word()?);
        }
        (!words.is_empty()).then(|| words.join(" "))
    }

    fn block(&mut self) -> Option<Vec<Statement>> {
        self.take("{")?;
        let mut body = Vec::new();
        while self.take("}").is_none() {
            body.push(self.statement()?);
        }
        Some(body)
    }

    fn statement(&mut self) -> Option<Statement> {
        if self.take("return").is_some() {
            let value = self.choice()?;
            self.take(";")?;
            return Some(Statement::Return(value));
        }
        if self.take("for").is_some() {
            self.take("(")?;
            let (first, mut depth) = (self.at, 1);
            while depth > 0 {
                depth = match self.peek() {
                    "" => return None,
                    "(" => depth + 1,
                    ")" => depth - 1,
                    _ => depth,
                };
                self.at += 1;
            }
            let head = self.tokens[first..self.at - 1].join(" ");
            return Some(Statement::For(head, self.block()?));
        }
        if self.is_type() {
            let ty = self.type_name()?;
            let is_constant = ty.starts_with("const ");
            let mut names = Vec::new();
            loop {
                let name = self.word()?;
                let value = if self.take("=").is_some() { Some(self.choice()?) } else { None };
                names.push((name, value));
                if self.take(",").is_none() {
                    break;
                }
            }
            self.take(";")?;
            return Some(Statement::Declare(is_constant, ty.trim_start_matches("const ").into(), names));
        }
        let is_place = self.take("*").is_some();
        let name = self.word()?;
        let operator = match self.peek() {
            "=" => None,
            "+=" => Some("+"),
            "-=" => Some("-"),
            "*=" => Some("*"),
            _ => return None,
        };
        self.at += 1;
        let mut value = self.choice()?;
        if let Some(operator) = operator {
            value = Node::Binary(operator, Box::new(Node::Name(name.clone())), Box::new(value));
        }
        self.take(";")?;
        Some(Statement::Assign(is_place, name, value))
    }

    fn choice(&mut self) -> Option<Node> {
        let condition = self.binary(0)?;
        if self.take("?").is_none() {
            return Some(condition);
        }
        let first = self.choice()?;
        self.take(":")?;
        let second = self.choice()?;
        Some(Node::Choice(Box::new(condition), Box::new(first), Box::new(second)))
    }

    fn binary(&mut self, level: usize) -> Option<Node> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.peek() == **operator) {
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = Node::Binary(operator, Box::new(left), Box::new(right));
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Node> {
        for operator in ["-", "!", "~", "&"] {
            if self.take(operator).is_some() {
                let operand = self.unary()?;
                return Some(Node::Unary(operator.chars().next()?, Box::new(operand)));
            }
        }
        if self.peek() == "(" {
            self.at += 1;
            if self.is_type() {
                let ty = self.type_name()?;
                self.take(")")?;
                return Some(Node::Cast(ty, Box::new(self.unary()?)));
            }
            let inner = self.choice()?;
            self.take(")")?;
            return Some(inner);
        }
        if self.peek().starts_with(|c: char| c.is_ascii_digit()) {
            self.at += 1;
            return Some(Node::Number(self.tokens[self.at - 1].clone()));
        }
        let name = self.word()?;
        if self.take("(").is_none() {
            return Some(Node::Name(name));
        }
        let mut arguments = Vec::new();
        if name.starts_with("__builtin_") {
            let text = if self.peek().starts_with('"') { self.peek().to_string() } else { String::new() };
            self.at += usize::from(!text.is_empty());
            self.take(")")?;
            return Some(Node::Number(format!("{name}({text})")));
        }
        while self.take(")").is_none() {
            arguments.push(self.choice()?);
            let _ = self.take(",");
        }
        Some(Node::Call(name, arguments))
    }
}

/// The length of the number at the start: a sign belongs to it behind an exponent's letter.
fn number_length(text: &str) -> usize {
    let is_hexadecimal = text.starts_with("0x");
    let mut previous = ' ';
    for (position, c) in text.char_indices() {
        let is_exponent = matches!(previous, 'p' | 'P') || !is_hexadecimal && matches!(previous, 'e' | 'E');
        if !(c.is_ascii_alphanumeric() || c == '.' || is_exponent && matches!(c, '+' | '-')) {
            return position;
        }
        previous = c;
    }
    text.len()
}
