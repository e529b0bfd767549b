//! What every loop nest must fulfil, whatever schedule made it. Debug builds of the workspace check it of each.

mod bounds;
mod error;
mod scope;
mod threads;

use super::Nest;
use super::widths::Narrow;
use crate::Language;
pub use error::NestError;

/// Checks a nest as it is in this language.
///
/// # Errors
/// The first rule that it breaks.
pub fn verify(nest: &Nest, language: Language) -> Result<(), NestError> {
    let narrow = Narrow::of(nest, language);
    for function in &nest.functions {
        scope::check(nest, function)?;
        threads::check(nest, function)?;
        bounds::check(nest, function)?;
        let statements = &function.body.statements;
        if let Some(index) = narrow.as_ref().and_then(|narrow| narrow.too_narrow(statements)) {
            return Err(NestError::TooNarrow(error::index(nest, &index)));
        }
    }
    Ok(())
}
