//! What users of the API rely on, checked on the CustomResourceDefinitions themselves.

mod case;
mod dependencies;
mod descriptions;
mod ocm;
mod reading;
mod rules;
mod schema;
