//! From names to variables: a schedule may refer to the innermost variable of a name; here it becomes that one's number.

use super::Body;
use super::stmt::{Expr, Step, Stmt, Type};
use super::variable::{Local, LocalId, Space, Var};
use crate::Refusal;

impl Body {
    /// Puts numbers in place of names.
    ///
    /// # Errors
    /// A name that nothing has where it is used.
    pub(super) fn resolve(&mut self) -> Result<(), Refusal> {
        let mut names = Names { locals: &mut self.locals, seen: Vec::new(), unknown: None };
        names.statements(&mut self.statements);
        match names.unknown {
            None => Ok(()),
            Some(name) => Err(Refusal::Undefined(name)),
        }
    }
}

struct Names<'a> {
    locals: &'a mut Vec<Local>,
    /// The variables of the open scopes, innermost last.
    seen: Vec<LocalId>,
    unknown: Option<&'static str>,
}

impl Names<'_> {
    fn statements(&mut self, statements: &mut [Stmt]) {
        let outside = self.seen.len();
        for stmt in statements {
            if let Stmt::For { var, from, to, step, body, .. } = stmt {
                [from, to].into_iter().for_each(|expr| self.expression(expr));
                let inside = self.seen.len();
                self.define(var);
                if let Step::Add(step) = step {
                    self.expression(step);
                }
                self.statements(body);
                self.seen.truncate(inside);
                continue;
            }
            stmt.expressions_mut().into_iter().for_each(|expr| self.expression(expr));
            stmt.vars_mut().into_iter().for_each(|var| self.variable(var));
            match stmt {
                Stmt::Let { var, .. } | Stmt::Declare { var, .. } => self.define(var),
                _ => stmt.bodies_mut().into_iter().for_each(|body| self.statements(body)),
            }
        }
        self.seen.truncate(outside);
    }

    fn expression(&mut self, expr: &mut Expr) {
        expr.change(&mut |expr| expr.var_mut().into_iter().for_each(|var| self.variable(var)));
    }

    fn define(&mut self, var: &mut Var) {
        if let Var::Named(name) = *var {
            let id = LocalId(self.locals.len() as u32);
            self.locals.push(Local { hint: name.into(), ty: Type::Index, len: None, space: Space::Constant });
            *var = Var::Local(id);
        }
        if let Var::Local(id) = *var {
            self.seen.push(id);
        }
    }

    fn variable(&mut self, var: &mut Var) {
        let Var::Named(name) = *var else { return };
        match self.seen.iter().rev().find(|id| self.locals[id.index()].hint == name) {
            Some(&id) => *var = Var::Local(id),
            None => self.unknown = Some(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_an_error() {
        let value = Expr::name("outside");
        let mut body =
            Body { statements: vec![Stmt::Let { var: "inside".into(), value }], locals: Vec::new() };
        assert_eq!(body.resolve(), Err(Refusal::Undefined("outside")));
    }
}
