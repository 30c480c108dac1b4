//! ManifestWorks, as far as all subjects read and write them alike.
//!
//! Of a stored work, decisions need a small part, and a fleet has many works. So each subject has a
//! view of its works, and a work is changed by a [patch](WorkPatch) that names everything that it
//! sets or removes.

mod new_work;
mod patch;
mod spec_patch;
mod view;

pub use self::{
    new_work::NewWork,
    patch::WorkPatch,
    view::{WorkMetadata, identity},
};
pub use crate::is_view_of_work;
