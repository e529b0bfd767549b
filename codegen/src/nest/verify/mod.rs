//! What every loop nest must fulfil, whatever schedule made it. Debug builds of the workspace check it of each.

mod bounds;
mod error;
mod scope;
mod threads;

use super::Nest;
pub use error::NestError;

/// Checks a nest.
///
/// # Errors
/// The first rule that it breaks.
pub fn verify(nest: &Nest) -> Result<(), NestError> {
    for function in &nest.functions {
        scope::check(nest, function)?;
        threads::check(nest, function)?;
        bounds::check(nest, function)?;
    }
    Ok(())
}
