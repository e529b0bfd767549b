//! Elements and positions that are counted out: triangles of matrices, combinations and tuples of elements. How many there are
//! follows from sizes alone, and which one is at a place from its number: nothing is kept in memory.

use std::borrow::Borrow;

use super::gather::looked_up;
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::tensor::view::join::borrowed;
use crate::{DType, Indexing, Result, Shape, Tensor};

impl Tensor {
    /// Where the elements of the lower triangle of a matrix are, row by row: `I64` of shape `[2, count]`, the rows and then the
    /// columns, which exceed the row by at most `offset`. PyTorch's `tril_indices`; the two are indices for [`Tensor::index`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let places = Tensor::tril_indices(3, 2, 0);
    /// assert_eq!(places.to_vec::<i64>()?, [0, 1, 1, 2, 2, 0, 0, 1, 0, 1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn tril_indices(rows: usize, columns: usize, offset: isize) -> Tensor {
        let call = Call::here("tril_indices");
        call.composed(|| {
            Ok(Tensor::stack(&Triangle { rows, columns, offset, is_lower: true }.places(call)?, 0))
        })
    }

    /// Where the elements of the upper triangle of a matrix are, row by row: as [`Tensor::tril_indices`] where the column
    /// exceeds the row by at least `offset`. PyTorch's `triu_indices`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// // All pairs of three.
    /// assert_eq!(Tensor::triu_indices(3, 3, 1).to_vec::<i64>()?, [0, 0, 1, 1, 2, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn triu_indices(rows: usize, columns: usize, offset: isize) -> Tensor {
        let call = Call::here("triu_indices");
        call.composed(|| {
            Ok(Tensor::stack(&Triangle { rows, columns, offset, is_lower: false }.places(call)?, 0))
        })
    }

    /// All choices of `count` elements of a vector, each in the vector's order, as rows: what Python's
    /// `itertools.combinations` gives, and in its order; `with_replacement`, an element may be chosen again. PyTorch's
    /// `combinations`: so no element of none, whose result has one dimension.
    ///
    /// Invalid for another number of dimensions than one, and for a count of more than 64.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[5, 7, 9], [3]);
    /// assert_eq!(x.combinations(2, false).to_vec::<i32>()?, [5, 7, 5, 9, 7, 9]);
    /// assert_eq!(x.slice(0, ..2).combinations(2, true).to_vec::<i32>()?, [5, 5, 5, 7, 7, 7]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn combinations(&self, count: usize, with_replacement: bool) -> Tensor {
        let call = Call::here("combinations");
        call.composed(|| combinations(call, self, count, with_replacement))
    }

    /// All tuples of an element of each vector, as rows, of which the last vector's elements change first: what Python's
    /// `itertools.product` gives. In the promoted dtype; of one vector itself. PyTorch's `cartesian_prod`.
    ///
    /// Invalid for no tensor, and for one that has not one dimension.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (x, y) = (Tensor::from_slice(&[1, 2], [2]), Tensor::from_slice(&[7, 8], [2]));
    /// assert_eq!(Tensor::cartesian_prod(&[x, y]).to_vec::<i32>()?, [1, 7, 1, 8, 2, 7, 2, 8]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cartesian_prod<T: Borrow<Tensor>>(tensors: impl AsRef<[T]>) -> Tensor {
        let tensors = tensors.as_ref();
        let call = Call::here("cartesian_prod");
        call.composed(|| {
            let vectors = borrowed(tensors);
            for vector in &vectors {
                needs_vector(call, vector)?;
            }
            if let [only] = vectors[..] {
                return Ok(only.clone());
            }
            let columns: Vec<Tensor> =
                Tensor::meshgrid(&vectors, Indexing::Ij).iter().map(Tensor::ravel).collect();
            if columns.is_empty() {
                return call.fail("there is no tensor to take elements of");
            }
            Ok(Tensor::stack(&columns, 1))
        })
    }
}

fn needs_vector(call: Call, x: &Tensor) -> Result<usize> {
    let (shape, dtype) = x.known()?;
    match shape[..] {
        [count] => Ok(count),
        _ => call.fail(format!("needs one dimension, got {dtype} {shape}")),
    }
}

/// The elements of a matrix at and on one side of a diagonal.
#[derive(Clone, Copy)]
pub(crate) struct Triangle {
    pub rows: usize,
    pub columns: usize,
    pub offset: isize,
    pub is_lower: bool,
}

impl Triangle {
    /// The elements whose column exceeds the row by at most `offset`.
    fn count_below(self, offset: i128) -> i128 {
        let (rows, columns) = (self.rows as i128, self.columns as i128);
        let offset = offset.clamp(-rows, columns);
        // Row r has r + offset + 1 of them: none up to some row, and from another one on all.
        let first = (-offset).clamp(0, rows);
        let full = (columns - 1 - offset).clamp(first, rows);
        (full - first) * (first + full + 1 + 2 * offset) / 2 + (rows - full) * columns
    }

    /// Rows and columns of its elements, row by row. May only be called while a call is composed.
    pub(crate) fn places(self, call: Call) -> Result<[Tensor; 2]> {
        let Triangle { rows, columns, offset, is_lower } = self;
        call.needs_addressable(&[rows, columns].into())?;
        let all = rows as i128 * columns as i128;
        let count = match is_lower {
            true => self.count_below(offset as i128),
            false => all - self.count_below(offset as i128 - 1),
        };
        if count == 0 {
            return Ok([0, 1].map(|_| Tensor::zeros([0], DType::I64)));
        }
        // No further than where all or nothing is on a side, so that sums stay small.
        let (offset, columns) = (offset.clamp(-(rows as isize), columns as isize) as i64, columns as i64);
        let (before, counts) = match is_lower {
            true => (None, (counting(rows) + (offset + 1)).clamp(0, columns)),
            false => {
                let before = (counting(rows) + offset).clamp(0, columns);
                let counts = -&before + columns;
                (Some(before), counts)
            }
        };
        let ends = counts.cumsum(0);
        let place = counting(count as usize);
        let row = ends.searchsorted(&place, true);
        let column = place - looked_up(call, &(&ends - counts), &row)?;
        let column = match before {
            None => column,
            Some(before) => column + looked_up(call, &before, &row)?,
        };
        Ok([row, column])
    }
}

/// What is chosen at once, at most: each is a search of its own in the kernel.
const MOST_CHOSEN: usize = 64;

/// The number of ways to choose `k` of `n`, if it is one of an index.
fn choices(n: usize, k: usize) -> Option<usize> {
    let Some(k) = n.checked_sub(k).map(|others| others.min(k)) else { return Some(0) };
    let mut count: u128 = 1;
    for i in 0..k as u128 {
        count = count.checked_mul(n as u128 - i)? / (i + 1);
    }
    usize::try_from(count).ok().filter(|&count| i64::try_from(count).is_ok())
}

fn combinations(call: Call, x: &Tensor, count: usize, again: bool) -> Result<Tensor> {
    let n = needs_vector(call, x)?;
    if count == 0 {
        return Ok(x.slice(0, ..0));
    }
    if count > MOST_CHOSEN {
        return call.fail(format!("chooses at most {MOST_CHOSEN} elements at once, got {count}"));
    }
    // How many choices of 1, 2, … there are: each is counted on the way.
    let mut totals = Vec::new();
    for k in 1..=count {
        let of = if again && n > 0 { n.saturating_add(k - 1) } else { n };
        match choices(of, k) {
            Some(total) => totals.push(total as i64),
            None => return call.fail(format!("the choices of {k} of {n} elements are too many to count")),
        }
    }
    let total = totals[count - 1] as usize;
    let result = Shape::from([total, count]);
    call.needs_addressable(&result)?;
    if total == 0 {
        return Ok(x.slice(0, ..0).reshape([0, 1]).broadcast_to(result));
    }
    // Where the choices of k begin and end, in order, whose first element is each: for one more element before them, those
    // follow whose first element is behind it, or is itself.
    let first = counting(n);
    let mut tables = vec![(first.clone(), &first + 1)];
    for k in 2..=count {
        let (starts, ends) = &tables[k - 2];
        let counts = -(if again { starts } else { ends }) + totals[k - 2];
        let ends = counts.cumsum(0);
        tables.push((&ends - counts, ends));
    }
    let mut rank = counting(total);
    let mut columns = Vec::new();
    for k in (1..count).rev() {
        let (starts, ends) = &tables[k];
        let own = ends.searchsorted(&rank, true);
        let (after, behind) = &tables[k - 1];
        let next = if again { after } else { behind };
        rank = rank - looked_up(call, starts, &own)? + looked_up(call, next, &own)?;
        columns.push(own);
    }
    columns.push(rank);
    looked_up(call, x, &Tensor::stack(&columns, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::tensor::tests::mistake;

    fn whole(x: &Tensor) -> Vec<i64> {
        x.to(&Device::interpreter()).to_vec().unwrap()
    }

    #[test]
    fn triangles_have_the_places_that_loops_find() {
        let extents = [0, 1, 2, 3, 5, 12];
        for rows in extents {
            for columns in extents {
                for offset in [-99, -12, -11, -3, -2, -1, 0, 1, 2, 4, 11, 12, isize::MAX, isize::MIN] {
                    let find = |is_in: &dyn Fn(i128) -> bool| -> Vec<i64> {
                        let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
                        let found: Vec<(usize, usize)> =
                            all.filter(|&(row, column)| is_in(column as i128 - row as i128)).collect();
                        let (rows, columns): (Vec<i64>, Vec<i64>) =
                            found.into_iter().map(|(row, column)| (row as i64, column as i64)).unzip();
                        [rows, columns].concat()
                    };
                    let name = format!("{rows}×{columns}, {offset}");
                    let lower = Tensor::tril_indices(rows, columns, offset);
                    assert_eq!(whole(&lower), find(&|apart| apart <= offset as i128), "lower of {name}");
                    let upper = Tensor::triu_indices(rows, columns, offset);
                    assert_eq!(whole(&upper), find(&|apart| apart >= offset as i128), "upper of {name}");
                }
            }
        }
        mistake!(
            Tensor::tril_indices(1 << 40, 1 << 40, 0),
            "tril_indices: shape [1099511627776, 1099511627776] has more elements than can be addressed"
        );
        // Nothing is computed for what is only asked its shape.
        let large = Tensor::triu_indices(1 << 20, 1 << 20, 1);
        assert_eq!(large.shape().unwrap(), Shape::from([2, (1 << 39) - (1 << 19)]));
    }

    /// The choices of so many of the numbers from `first` on, one after the other.
    fn chosen(first: i64, n: i64, count: usize, again: bool) -> Vec<Vec<i64>> {
        if count == 0 {
            return vec![Vec::new()];
        }
        (first..n)
            .flat_map(|own| {
                let rest = chosen(if again { own } else { own + 1 }, n, count - 1, again);
                rest.into_iter().map(move |rest| [vec![own], rest].concat())
            })
            .collect()
    }

    #[test]
    fn combinations_are_those_of_loops() {
        for n in [0, 1, 2, 5, 9, 11] {
            for count in [1, 2, 3, 4] {
                for again in [false, true] {
                    let name = format!("{count} of {n}, again: {again}");
                    let expected = chosen(0, n, count, again);
                    let got = counting(n as usize).combinations(count, again);
                    assert_eq!(got.shape().unwrap(), Shape::from([expected.len(), count]), "{name}");
                    assert_eq!(whole(&got), expected.concat(), "{name}");
                }
            }
        }
        let x = Tensor::from_slice(&[1.5f32, f32::NAN, -2.0], [3]).to(&Device::interpreter());
        assert_eq!(x.combinations(3, false).to_string(), x.reshape([1, 3]).to_string());
        assert_eq!(x.combinations(0, true).shape().unwrap(), Shape::from([0]));
        assert_eq!(x.combinations(4, false).shape().unwrap(), Shape::from([0, 4]));
        let all = counting(40).combinations(38, false);
        assert_eq!(all.shape().unwrap(), Shape::from([780, 38]));
        assert_eq!(choices(66, 64), Some(2145));
        assert_eq!(choices(127, 63), None);
        mistake!(x.combinations(65, true), "combinations: chooses at most 64 elements at once, got 65");
        mistake!(
            counting(70).combinations(60, false),
            "combinations: the choices of 26 of 70 elements are too many to count"
        );
        mistake!(
            x.reshape([3, 1]).combinations(2, false),
            "combinations: needs one dimension, got f32 [3, 1]"
        );
    }

    #[test]
    fn tuples_are_pythons() {
        let (x, y) = (Tensor::from_slice(&[1, 2], [2]), Tensor::from_slice(&[0.5f32, 1.5, 2.5], [3]));
        let all = Tensor::cartesian_prod(&[&x, &y, &x]).to(&Device::interpreter());
        assert_eq!(all.shape().unwrap(), Shape::from([12, 3]));
        assert_eq!(all.to_vec::<f32>().unwrap()[..9], [1.0, 0.5, 1.0, 1.0, 0.5, 2.0, 1.0, 1.5, 1.0]);
        assert_eq!(Tensor::cartesian_prod(&[&y]).shape().unwrap(), Shape::from([3]));
        assert_eq!(Tensor::cartesian_prod(&[&y, &y.slice(0, 3..)]).shape().unwrap(), Shape::from([0, 2]));
        mistake!(
            Tensor::cartesian_prod::<Tensor>(&[]),
            "cartesian_prod: there is no tensor to take elements of"
        );
        mistake!(
            Tensor::cartesian_prod(&[x.reshape([2, 1])]),
            "cartesian_prod: needs one dimension, got i32 [2, 1]"
        );
    }
}
