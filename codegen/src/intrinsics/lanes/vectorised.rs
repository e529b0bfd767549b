//! Helpers as functions of vectors, each translated once a process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::kind::SLOW_PATH;
use super::{Lanes, Signature, syntax};
use crate::Language;
use crate::intrinsics::Helpers;
use crate::intrinsics::helpers::definition;

/// What a function is translated from: the C library's, mostly one call a lane, have other definitions for lanes.
fn of_lanes(name: &str) -> &str {
    match name {
        "fmodf" => "lz_fmod_lanes_f32",
        "fmod" => "lz_fmod_lanes_f64",
        _ => name,
    }
}

/// What a text gets that calls the vector function of a helper.
pub(super) struct Vectorised {
    /// The function, unless lanes can have none.
    own: Option<Function>,
    /// Whether it and what it calls are made of vectors, without a call for each lane.
    is_translated: bool,
    /// What it calls for single lanes.
    helpers: Helpers,
    /// What it calls for vectors, and what that calls.
    others: Vec<Arc<Vectorised>>,
}

struct Function {
    order: usize,
    name: Arc<str>,
    code: Arc<str>,
    signature: Arc<Signature>,
}

impl Lanes {
    /// The vector function of a helper, which the text has from now on: its name, the kinds of its parameters, and of its
    /// result.
    pub(super) fn function(
        &mut self,
        name: &str,
        helpers: &mut Helpers,
    ) -> Option<(Arc<str>, Arc<Signature>)> {
        let known = Vectorised::of(name)?;
        known.others.iter().for_each(|other| self.take(other, helpers));
        self.take(&known, helpers);
        known.own.as_ref().map(|own| (own.name.clone(), own.signature.clone()))
    }

    fn take(&mut self, function: &Vectorised, helpers: &mut Helpers) {
        if let Some(Function { order, name, code, signature }) = &function.own
            && !self.signatures.contains_key(name)
        {
            self.functions.insert((*order, name.clone()), code.clone());
            self.signatures.insert(name.clone(), signature.clone());
            helpers.add(&function.helpers);
        }
    }
}

impl Vectorised {
    /// Whether a helper has a function of vectors that is more than a call for each lane.
    pub(super) fn is_of_vectors(name: &str) -> bool {
        Vectorised::of(name).is_some_and(|function| function.is_translated)
    }

    /// `None` if the name is no helper's.
    fn of(name: &str) -> Option<Arc<Vectorised>> {
        static KNOWN: Mutex<BTreeMap<String, Arc<Vectorised>>> = Mutex::new(BTreeMap::new());
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = known().get(name) {
            return Some(function.clone());
        }
        let (order, code) = definition(Language::C, of_lanes(name))?;
        // Without the lock: what it calls is looked up as well.
        let function = Arc::new(Vectorised::new(name, order, code));
        known().insert(name.to_string(), function.clone());
        Some(function)
    }

    fn new(name: &str, order: usize, code: &str) -> Vectorised {
        // How many lanes there are does not matter.
        let mut lanes = Lanes::new(4);
        let own_name: Arc<str> = format!("{name}v").into();
        let mut helpers = Helpers::new();
        let translated = syntax::definition(code).and_then(|definition| match name.starts_with(SLOW_PATH) {
            true => lanes.slow_path(order, name, &definition, &mut helpers),
            false => lanes.translated(order, &own_name, &definition, &mut Helpers::new()),
        });
        let is_own = translated.is_some();
        let signature = translated.or_else(|| lanes.lane_by_lane(order, name, code, &mut helpers));
        let place = (order, own_name.clone());
        let own = signature.zip(lanes.functions.remove(&place)).map(|(signature, code)| Function {
            order,
            name: own_name,
            code,
            signature: signature.into(),
        });
        let called = lanes.signatures.keys().filter_map(|name| name.strip_suffix('v'));
        let others: Vec<Arc<Vectorised>> = called.filter_map(Vectorised::of).collect();
        let is_translated = is_own && others.iter().all(|other| other.is_translated);
        Vectorised { own, is_translated, helpers, others }
    }
}
