//! The template of a set of works as what is rolled out: it is known by its name alone, because no
//! user can ask for something else instead of a part of it on one cluster.

use std::convert::Infallible;

use drover_api::grammar::SetFingerprint;

use crate::rollout::Revision;

/// The template of a set of works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template;

impl Revision for Template {
    type Overrides = Infallible;
    type Part = Infallible;
    type Problem = Infallible;

    fn with_overrides(&self, overrides: &Infallible) -> SetFingerprint {
        match *overrides {}
    }
}
