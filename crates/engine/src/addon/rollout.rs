//! Add-ons as what is rolled out: their revisions are sets of configurations.

use drover_api::grammar::SetFingerprint;

use super::configuration::{ConfigName, Problem};
use crate::{
    revision::{Overrides, Set},
    rollout::Revision,
};

impl Revision for Set {
    type Overrides = Overrides;
    type Part = ConfigName;
    type Problem = Problem;

    fn with_overrides(&self, overrides: &Overrides) -> SetFingerprint {
        self.with(overrides).fingerprint()
    }
}
