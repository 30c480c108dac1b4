//! What users of the API rely on, checked on the CustomResourceDefinitions themselves.

mod dependencies;
mod descriptions;
mod ocm;
mod rules;
mod schema;
