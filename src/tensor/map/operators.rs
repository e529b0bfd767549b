//! `+ - * / % & | ^ << >> ! -` on tensors by value and by reference, with numbers on either side.
//!
//! `/` is the true quotient and `%` has the divisor's sign, as in PyTorch. On the right stands whatever is
//! an [`Operand`]; on the left of a tensor a number is `f64`, `i64` or, for bits, `bool`. A reference's reference is what
//! closures and iterators hand out.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

use super::binary::binary;
use super::operands::Rule;
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::Operand;
use crate::{BinaryOp, Tensor};

macro_rules! operator {
    ($trait:ident, $method:ident, $name:literal, $op:ident, $rule:ident: $($number:ty),*) => {
        operator!(@right $trait, $method, $name, $op, $rule: Tensor, &Tensor, &&Tensor);
        $(operator!(@left $trait, $method, $name, $op, $rule, $number: Tensor, &Tensor, &&Tensor);)*
    };
    (@right $trait:ident, $method:ident, $name:literal, $op:ident, $rule:ident: $($left:ty),*) => {$(
        impl<R: Into<Operand>> $trait<R> for $left {
            operator!(@body $method, $name, $op, $rule: R);
        }
    )*};
    (@left $trait:ident, $method:ident, $name:literal, $op:ident, $rule:ident, $number:ty: $($right:ty),*) => {$(
        impl $trait<$right> for $number {
            operator!(@body $method, $name, $op, $rule: $right);
        }
    )*};
    (@body $method:ident, $name:literal, $op:ident, $rule:ident: $right:ty) => {
        type Output = Tensor;

        #[track_caller]
        fn $method(self, right: $right) -> Tensor {
            let operands = [self.into(), right.into()];
            Tensor::or_invalid(binary(Call::here($name), BinaryOp::$op, Rule::$rule, operands))
        }
    };
}

// One number type of each kind on the left: with two, the type of `1.0 - &x` would be ambiguous, and
// `(1.0 - &x).exp()` would not compile. Numbers lose nothing by it: their width never counts.
operator!(Add, add, "add", Add, Promoted: f64, i64);
operator!(Sub, sub, "sub", Sub, Promoted: f64, i64);
operator!(Mul, mul, "mul", Mul, Promoted: f64, i64);
operator!(Div, div, "div", Div, Float: f64, i64);
operator!(Rem, rem, "remainder", Rem, Promoted: f64, i64);
operator!(BitAnd, bitand, "bitwise_and", And, Promoted: bool, i64);
operator!(BitOr, bitor, "bitwise_or", Or, Promoted: bool, i64);
operator!(BitXor, bitxor, "bitwise_xor", Xor, Promoted: bool, i64);
operator!(Shl, shl, "bitwise_left_shift", Shl, Promoted: i64);
operator!(Shr, shr, "bitwise_right_shift", Shr, Promoted: i64);

macro_rules! prefix_operator {
    ($trait:ident, $method:ident, $call:ident: $($ty:ty),*) => {$(
        impl $trait for $ty {
            type Output = Tensor;

            #[track_caller]
            fn $method(self) -> Tensor {
                Tensor::$call(&self)
            }
        }
    )*};
}

prefix_operator!(Neg, neg, neg: Tensor, &Tensor, &&Tensor);
prefix_operator!(Not, not, bitwise_not: Tensor, &Tensor, &&Tensor);

#[cfg(test)]
mod tests {
    use crate::tensor::tests::{mistake, recorded};
    use crate::{DType, Tensor};

    #[test]
    fn operators_are_methods() {
        let (x, y) = (Tensor::from_slice(&[1.0f32], [1]), Tensor::from_slice(&[2.0f32], [1]));
        let (i, j) = (Tensor::from_slice(&[1i32], [1]), Tensor::from_slice(&[2i32], [1]));
        for (operator, op) in [
            (&x + &y, "add"),
            (&x - y.clone(), "sub"),
            (x.clone() * &y, "mul"),
            (x.clone() / y.clone(), "div"),
            (&x % &y, "remainder"),
            (&i & &j, "and"),
            (&i | &j, "or"),
            (&i ^ &j, "xor"),
        ] {
            assert_eq!(recorded(&operator), ["input", "input", op]);
        }
        assert_eq!(recorded(&-&x), ["input", "neg"]);
        assert_eq!(recorded(&-x), ["input", "neg"]);
        assert_eq!(recorded(&!&i), ["input", "bitnot"]);
        // References of references, as iterators over them give.
        let (x, i) = (&y, &i);
        let twice: &&Tensor = &x;
        assert_eq!(recorded(&(twice + twice)), ["input", "add"]);
        assert_eq!(recorded(&(1 - &x)), recorded(&(1 - x)));
        assert_eq!(recorded(&(-&x)), ["input", "neg"]);
        assert_eq!(recorded(&!i.lt(0)), ["input", "constant 0i32 argument", "expand", "lt", "not"]);
    }

    #[test]
    fn numbers_stand_on_either_side() {
        let x = Tensor::from_slice(&[1.0f32], [1]);
        let right = ["input", "constant 2.0f32 argument", "expand", "sub"];
        let left = ["constant 2.0f32 argument", "input", "expand", "sub"];
        for difference in [&x - 2.0f32, &x - 2.0, &x - 2, &x - 2i64, x.clone() - 2] {
            assert_eq!(recorded(&difference), right);
        }
        for difference in [2.0 - &x, 2.0 - x.clone(), 2 - &x, 2 - x.clone()] {
            assert_eq!(recorded(&difference), left);
        }
        // Literals need no annotation, whatever follows.
        assert_eq!(recorded(&(2.0 - &x).exp())[3..], ["sub", "exp"]);
        assert_eq!(recorded(&((&x - 2).exp() * 2)).last().map(String::as_str), Some("mul"));
        assert_eq!(recorded(&(1.0 / (1.0 + (-&x).exp()))).last().map(String::as_str), Some("div"));
        assert_eq!((Tensor::ones([2], DType::Bool) & true).dtype().unwrap(), DType::Bool);
        assert_eq!((1 | Tensor::ones([2], DType::U8)).dtype().unwrap(), DType::U8);
        assert_eq!((Tensor::ones([2], DType::I64) / 2).dtype().unwrap(), DType::F32);
    }

    #[test]
    fn mistakes_point_at_the_operator() {
        let (x, y) = (Tensor::ones([2], DType::F32), Tensor::ones([3], DType::F32));
        mistake!(
            x % y,
            "remainder: shapes [2] and [3] do not broadcast: 2 against 3 in dimension -1, which must be equal or 1"
        );
        mistake!(
            -Tensor::ones([], DType::Bool),
            "neg: not defined for bool []; to invert a mask use .logical_not() or the operator !"
        );
        mistake!(!Tensor::ones([2], DType::F16), "bitwise_not: needs an integer or bool tensor, got f16 [2]");
    }
}
