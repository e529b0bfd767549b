//! Sums of small matrices change places among the four lanes that have a row of them, so that each has longer vectors of neighbours.

use super::Writer;
use super::plan::EXCHANGED;
use crate::nest::INDEX;
use crate::nest::accumulate::{mul_add, set};
use crate::nest::emitter::Emitter;
use crate::nest::loops::counting;
use crate::nest::scatter::TRUTH;
use crate::nest::stmt::Arithmetic::{Add, Div, Less, Mul, Rem};
use crate::nest::stmt::{Expr, LoopHint};
use crate::nest::variable::Var;

impl<'k> Writer<'k> {
    /// Four lanes have two neighbours in each row of a small matrix, eight columns wide. Of two matrices, one lane of a pair gets the
    /// other's neighbours of the first, and that one these of the second: four columns each. Lanes of the two pairs do the same with
    /// those of two matrices and the next two: eight columns.
    pub(super) fn exchange(&self, emitter: &mut Emitter<'k>, sums: &[Var], vector: u64) {
        // Compilers do not move a shuffle above the wait for the last products, nor then what depends on its result: without it they read
        // sums before the wait, and `ptxas` makes products wait for each other.
        let lane = Expr::Name(self.v.lane);
        let quad = Expr::ShuffleXor { value: Box::new(lane), mask: Box::new(Expr::Int(0)), width: 32 };
        let quad = Expr::Name(emitter.bind("of_four", INDEX, quad.then(Rem, 4)));
        for &sums in sums {
            self.exchange_with(emitter, sums, 1, quad.clone().then(Rem, 2));
            if vector == EXCHANGED {
                self.exchange_with(emitter, sums, 2, quad.clone().then(Div, 2));
            }
        }
        // The lane's first vector: of the matrix whose number it has among two or four.
        let own = match vector {
            EXCHANGED => quad,
            _ => mul_add(quad.clone().then(Rem, 2), 2, quad.then(Div, 2)),
        };
        emitter.bind(self.v.exchanged, INDEX, self.v.warp_column.then(Div, vector).then(Add, own));
    }

    /// Pairs of lanes whose numbers differ by the mask: the first one gives its sum of the second matrix for the other's of the first
    /// matrix. The two matrices are as far from each other as the lanes.
    fn exchange_with(&self, emitter: &mut Emitter<'k>, sums: Var, mask: u64, is_second: Expr) {
        let [.., of_matrix] = self.layout.sum_steps;
        let dtype = self.plan.contraction.sum;
        let gives_first = emitter.fresh("gives_first");
        let gives_first = Expr::Name(emitter.bind(gives_first, TRUTH, Expr::Int(0).then(Less, is_second)));
        let either = |a: &Expr, b: &Expr| {
            Expr::Select(Box::new(gives_first.clone()), Box::new(a.clone()), Box::new(b.clone()))
        };
        let apart = mask * of_matrix;
        let pair = counting(self.v.n, 0, self.sums_of_thread() / 2, LoopHint::Unroll);
        emitter.repeat(pair, |emitter| {
            let place = self.v.n.then(Div, apart).then(Mul, 2 * apart).then(Add, self.v.n.then(Rem, apart));
            let at = emitter.bind("at", INDEX, place);
            let (first, second) = (Expr::element(sums, at), Expr::element(sums, at.then(Add, apart)));
            let value = Box::new(either(&first, &second));
            let given = Expr::ShuffleXor { value, mask: Box::new(Expr::Int(mask)), width: 32 };
            let given = emitter.named(given, dtype);
            let kept = emitter.named(either(&second, &first), dtype);
            emitter.push(set(first, either(&given, &kept)));
            emitter.push(set(second, either(&kept, &given)));
        });
    }
}
