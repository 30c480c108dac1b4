//! Which objects of a list are asked for: by labels, and by some of their fields.

mod fields;
mod labels;

pub use self::{
    fields::Fields,
    labels::{Labels, Unusable},
};
