//! Sorting: what is compared, and calls of what compares. See `helpers/sort_items.h`.

use super::Helpers;
use crate::{DType, Language};

/// What a sort compares: 64 bits of a key and a place, or 128 with the place first and the key second.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SortPart {
    /// Key and place, of a value and its place.
    Item,
    /// The key alone, of a value.
    Key,
    /// The place alone, of a value and its place: a sign that the key does not have is part of it.
    Place,
    /// The value, of an item, or of a key and a place.
    Value,
    /// The place as an `I64`, of an item or a place.
    Position,
}

impl SortPart {
    /// All parts.
    pub const ALL: [SortPart; 5] =
        [SortPart::Item, SortPart::Key, SortPart::Place, SortPart::Value, SortPart::Position];

    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            SortPart::Item => "sort_item",
            SortPart::Key => "sort_key",
            SortPart::Place => "sort_place",
            SortPart::Value => "sort_value",
            SortPart::Position => "sort_position",
        }
    }
}

/// Whether items of the dtype are two elements.
pub(crate) fn is_wide(dtype: DType) -> bool {
    matches!(dtype, DType::I64 | DType::F64)
}

/// A part of an item, or what is made of items.
pub fn sort_part(
    language: Language,
    part: SortPart,
    (dtype, descending): (DType, bool),
    [a, b]: [&str; 2],
    helpers: &mut Helpers,
) -> String {
    let of = match dtype.compute() {
        DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 => DType::I32,
        dtype => dtype,
    };
    let flag = if descending { "1" } else { "0" };
    match part {
        SortPart::Item => helpers.call(language, &format!("lz_sort_item_{of}"), &[a, b, flag]),
        SortPart::Key => helpers.call(language, &format!("lz_sort_key_{of}"), &[a, flag]),
        SortPart::Place => helpers.call(language, &format!("lz_sort_place_{of}"), &[a, b]),
        SortPart::Value if is_wide(of) => helpers.call(language, &format!("lz_sorted_{of}"), &[a, b, flag]),
        SortPart::Value => helpers.call(language, &format!("lz_sorted_{of}"), &[a, flag]),
        SortPart::Position => helpers.call(language, "lz_sorted_place", &[a]),
    }
}

/// What puts items in order.
pub fn sort(language: Language, by: &str, wide: bool, arguments: &[String], helpers: &mut Helpers) -> String {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let bits = if wide { "i128" } else { "i64" };
    helpers.call(language, &format!("lz_sort_{by}_{bits}"), &arguments)
}
