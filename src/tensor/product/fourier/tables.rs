//! The cosines and sines of transforms.

use std::f64::consts::TAU;
use std::num::NonZeroUsize;
use std::sync::{LazyLock, Mutex, PoisonError};

use lru::LruCache;

use crate::tensor::arguments::call::Call;
use crate::{DType, Device, Result, Shape, Tensor};

/// The real and the imaginary part.
pub(in super::super) type Complex = (Tensor, Tensor);

/// Cosines and sines that transforms multiply by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Table {
    /// Of `2π * row * column / of`.
    Turns { rows: usize, columns: usize, of: usize },
    /// Of `2π * row / of`, in one dimension.
    Circle { rows: usize, of: usize },
    /// Of [`Table::Turns`], half of `n` rows, weighted so that products with both halves' numbers are the inverse.
    Halves { n: usize },
    /// Of `π * k² / n`, for k up to ±n around `padded` elements.
    Squares { n: usize, padded: usize },
}

impl Table {
    fn shape(self) -> Shape {
        match self {
            Table::Turns { rows, columns, .. } => [rows, columns].into(),
            Table::Circle { rows, .. } => [rows].into(),
            Table::Halves { n } => [n / 2 + 1, n].into(),
            Table::Squares { padded, .. } => [padded].into(),
        }
    }

    /// Cosines and sines, each of an angle that is reduced before it is rounded.
    fn values(self) -> (Vec<f64>, Vec<f64>) {
        let turn =
            |numerator: u128, of: usize| (TAU * ((numerator % of as u128) as f64 / of as f64)).sin_cos();
        let product = |a: usize, b: usize| a as u128 * b as u128;
        let pairs: Vec<(f64, f64)> = match self {
            Table::Turns { rows, columns, of } => (0..rows)
                .flat_map(|row| (0..columns).map(move |column| turn(product(row, column), of)))
                .collect(),
            Table::Circle { rows, of } => (0..rows).map(|row| turn(row as u128, of)).collect(),
            Table::Halves { n } => (0..n / 2 + 1)
                .flat_map(|row| {
                    let both = if row == 0 || 2 * row == n { 1.0 } else { 2.0 };
                    (0..n).map(move |column| {
                        let (sin, cos) = turn(product(row, column), n);
                        (sin * both / n as f64, cos * both / n as f64)
                    })
                })
                .collect(),
            Table::Squares { n, padded } => (0..padded)
                .map(|place| match place.min(padded - place) {
                    k if k < n => turn(product(k, k), 2 * n),
                    _ => (0.0, 0.0),
                })
                .collect(),
        };
        let (sin, cos) = pairs.into_iter().unzip();
        (cos, sin)
    }
}

/// Larger tables are not kept.
const LARGEST_KEPT: usize = 1 << 18;

type Kept = LruCache<(Table, DType, Device), Complex>;

/// The tables that were used last: making one takes longer than using it.
static KEPT: LazyLock<Mutex<Kept>> =
    LazyLock::new(|| Mutex::new(LruCache::new(NonZeroUsize::new(64).unwrap_or(NonZeroUsize::MIN))));

/// A table in the dtype of `beside` and on its device. May only be called while a call is composed.
pub(super) fn table(call: Call, table: Table, beside: &Tensor) -> Result<Complex> {
    let (shape, (_, dtype)) = (table.shape(), beside.known()?);
    call.needs_addressable(&shape)?;
    let device = beside.node.device.unwrap_or_default();
    let key = (table, dtype, device);
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = kept().get(&key) {
        return Ok(found.clone());
    }
    let (cos, sin) = table.values();
    let tensor = |values: Vec<f64>| {
        let tensor = match dtype {
            DType::F64 => Tensor::from_vec(values, shape.clone()),
            _ => Tensor::from_vec(values.iter().map(|&value| value as f32).collect(), shape.clone()),
        };
        call.transfer(&tensor, device)
    };
    let made = (tensor(cos)?, tensor(sin)?);
    if shape.elements() <= LARGEST_KEPT {
        kept().put(key, made.clone());
    }
    Ok(made)
}
