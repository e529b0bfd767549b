//! What a kernel is measured to be fastest as: under a schedule, or as several kernels.

use std::fmt;
use std::str::FromStr;

use lazuli_codegen::schedule::Schedule;

use crate::DType;

/// How a kernel runs fastest.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Chosen {
    /// As one kernel, under this schedule.
    Under(Schedule),
    /// As several, because fusion does not make this merge.
    Cut(Place),
}

/// A merge that can be undone, as people read it: by a value of the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) side: Side,
    /// The operation whose result the value is, as the user called it.
    pub(crate) operation: String,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    /// Which of the kernel's values of this operation, dtype and shape it is, from 1 on.
    pub(crate) number: usize,
}

/// On which side of a value kernels part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// The value is stored, and who reads it is another kernel.
    Below,
    /// The kernel that stores the value stores no other one.
    Beside,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Chosen::Under(schedule) => write!(f, "{schedule}"),
            Chosen::Cut(place) => write!(f, "cut {place}"),
        }
    }
}

impl FromStr for Chosen {
    type Err = String;

    fn from_str(text: &str) -> Result<Chosen, String> {
        if let Some(place) = text.strip_prefix("cut ") {
            let place = Place::parse(place.trim())
                .ok_or_else(|| format!("`{text}` is no cut, such as `cut below exp f32 [4096, 1000]`"))?;
            return Ok(Chosen::Cut(place));
        }
        // Its own place counts from its beginning.
        text.parse().map(Chosen::Under).map_err(|error| format!("`{text}` is no schedule: {error}"))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { side, operation, dtype, shape, number } = self;
        let side = match side {
            Side::Below => "below",
            Side::Beside => "beside",
        };
        write!(f, "{side} {operation} {dtype} {shape:?}")?;
        if *number > 1 { write!(f, " #{number}") } else { Ok(()) }
    }
}

impl Place {
    fn parse(text: &str) -> Option<Place> {
        let (side, text) = text.split_once(' ')?;
        let side = match side {
            "below" => Side::Below,
            "beside" => Side::Beside,
            _ => return None,
        };
        let (operation, text) = text.split_once(' ')?;
        let (dtype, text) = text.split_once(' ')?;
        let (shape, number) = text.strip_prefix('[')?.split_once(']')?;
        let extents = shape.split(',').map(str::trim).filter(|extent| !extent.is_empty());
        let number = match number.trim() {
            "" => 1,
            number => number.strip_prefix('#')?.parse().ok().filter(|&number| number > 1)?,
        };
        Some(Place {
            side,
            operation: operation.to_owned(),
            dtype: dtype.parse().ok()?,
            shape: extents.map(|extent| extent.parse().ok()).collect::<Option<_>>()?,
            number,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_read_back() {
        for text in
            ["cut below exp f32 [40, 1000]", "cut beside sum i64 [] #2", "pointwise(elements_per_block=4096)"]
        {
            assert_eq!(text.parse::<Chosen>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn damaged_texts_are_errors() {
        for text in [
            "cut above exp f32 [4]",
            "cut below exp f31 [4]",
            "cut below exp f32",
            "cut below exp f32 [4",
            "cut below exp f32 [a]",
            "cut below exp f32 [-1]",
            "cut below exp f32 [4] 2",
            "cut below exp f32 [4] #1",
            "cut ",
        ] {
            let error = text.parse::<Chosen>().unwrap_err();
            assert_eq!(error, format!("`{text}` is no cut, such as `cut below exp f32 [4096, 1000]`"));
        }
        assert!("none".parse::<Chosen>().unwrap_err().starts_with("`none` is no schedule: "));
    }
}
