//! Numbers of variables: each definition has one of its own, in the order of the statements.

use super::Body;
use super::stmt::{Expr, Step, Stmt};
use super::variable::{Local, LocalId, Var};

impl Body {
    /// The statements with these variables, some of which may be defined several times, one beside another.
    pub(super) fn numbered(mut statements: Vec<Stmt>, locals: Vec<Local>) -> Body {
        let mut numbers = Numbers { own: vec![None; locals.len()], locals, numbered: Vec::new() };
        numbers.statements(&mut statements);
        Body { statements, locals: numbers.numbered }
    }
}

struct Numbers {
    locals: Vec<Local>,
    numbered: Vec<Local>,
    /// By its number so far: which one it is at this statement.
    own: Vec<Option<LocalId>>,
}

impl Numbers {
    fn statements(&mut self, statements: &mut [Stmt]) {
        let mut defined = Vec::new();
        for stmt in statements {
            if let Stmt::For { var, from, to, step, body, .. } = stmt {
                [from, to].into_iter().for_each(|expr| self.expression(expr));
                let before = self.define(var);
                if let Step::Add(step) = step {
                    self.expression(step);
                }
                self.statements(body);
                self.restore(before);
                continue;
            }
            stmt.expressions_mut().into_iter().for_each(|expr| self.expression(expr));
            stmt.vars_mut().into_iter().for_each(|var| self.variable(var));
            defined.extend(stmt.definition_mut().and_then(|var| self.define(var)));
            stmt.bodies_mut().into_iter().for_each(|body| self.statements(body));
        }
        defined.into_iter().rev().for_each(|before| self.restore(Some(before)));
    }

    fn expression(&mut self, expr: &mut Expr) {
        expr.change(&mut |expr| expr.var_mut().into_iter().for_each(|var| self.variable(var)));
    }

    /// A number for what is defined here, and what it has been before.
    fn define(&mut self, var: &mut Var) -> Option<(LocalId, Option<LocalId>)> {
        let Var::Local(id) = *var else { return None };
        let own = LocalId(self.numbered.len() as u32);
        self.numbered.push(self.locals[id.index()].clone());
        *var = Var::Local(own);
        Some((id, self.own[id.index()].replace(own)))
    }

    fn restore(&mut self, before: Option<(LocalId, Option<LocalId>)>) {
        if let Some((id, before)) = before {
            self.own[id.index()] = before;
        }
    }

    /// What is not defined here gets a number that nothing defines, which the verifier refuses.
    fn variable(&mut self, var: &mut Var) {
        let Var::Local(id) = *var else { return };
        *var = match self.own[id.index()] {
            Some(own) => Var::Local(own),
            None => {
                self.numbered.push(self.locals[id.index()].clone());
                Var::Local(LocalId(self.numbered.len() as u32 - 1))
            }
        };
    }
}
