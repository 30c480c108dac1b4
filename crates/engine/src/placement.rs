//! Which clusters a placement selects, in which order and in which groups.
//!
//! A decision is made in three steps, so that its cost goes with what changed. [`Program::compile`] reads the placement,
//! once for each edit. [`Program::judge`] looks at one cluster, once for each change of that cluster, and notes what
//! there is to know of it; [`verdicts`] keeps what was found. [`Program::decide`] compares the verdicts and looks at no cluster again. [`plan::changes`]
//! then says in which order the decision is written.
//!
//! The same facts give the same decision, in whatever order they come, and what is selected stays where it is for as long
//! as it may: a change elsewhere moves nobody.

mod arrange;
mod decide;
mod misconfigured;
mod pack;
pub mod plan;
mod predicate;
mod prioritize;
mod program;
mod scores;
mod selector;
pub mod sets;
mod slices;
mod spread;
pub mod status;
mod toleration;
mod verdict;
pub mod verdicts;

pub use decide::{Decision, Facts};
pub use misconfigured::{Misconfigured, Plugin, Problem};
pub use prioritize::Column;
pub use program::{Program, SCHEDULING_DISABLED_ANNOTATION, is_disabled};
pub use scores::Scores;
pub(crate) use selector::by_labels;
pub use slices::{Group, MAX_SLICE, Slice};
pub use verdict::{Candidate, LeftOut, Outcome, Verdict};
