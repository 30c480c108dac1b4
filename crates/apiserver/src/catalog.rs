//! All kinds that are served: those that are always there, and those that CustomResourceDefinitions bring.

mod events;
mod kinds;
mod openapi;
mod table;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

pub use events::{core_event, new_event};
pub use kinds::Kinds;
pub use openapi::definitions;

use crate::{
    kind::{Kind, Version},
    schema::Schema,
};

/// The only version that built-in kinds have.
const VERSION: &str = "v1";

/// The kinds that are always there. Their tables are made elsewhere, so they have no columns.
pub fn built_in() -> Vec<Kind> {
    static BUILT_IN: OnceLock<Vec<Kind>> = OnceLock::new();
    BUILT_IN.get_or_init(read).clone()
}

/// What the options of a deletion are made of.
#[must_use]
pub fn delete_options() -> Arc<Schema> {
    static OPTIONS: OnceLock<Arc<Schema>> = OnceLock::new();
    let read = || openapi::Schemas::new(definitions()).read("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions");
    Arc::clone(OPTIONS.get_or_init(|| read().unwrap_or_default()))
}

/// Where a group of built-in kinds stands among all that a server lists; nothing for all others.
#[must_use]
pub fn place_of_group(group: &str) -> Option<usize> {
    table::GROUPS.iter().position(|(name, _)| *name == group)
}

fn read() -> Vec<Kind> {
    let schemas = openapi::Schemas::new(definitions());
    let rows = table::GROUPS.iter().flat_map(|(group, rows)| rows.iter().map(move |row| (*group, row)));
    rows.map(|(group, row)| kind(group, row, &schemas)).collect()
}

fn kind(group: &str, row: &table::Row, schemas: &openapi::Schemas<'_>) -> Kind {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let (openapi, schema) = schemas.of_kind(group, VERSION, row.kind);
    Kind {
        group: group.to_owned(),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        short_names: texts(row.short_names),
        categories: texts(row.categories),
        scope: row.scope,
        versions: vec![Version {
            name: VERSION.to_owned(),
            is_served: true,
            is_stored: true,
            deprecation: None,
            schema,
            openapi,
            columns: Vec::new(),
            subresources: row.subresources(),
            selectable_fields: texts(row.selectable_fields),
        }],
        origin: row.origin,
    }
}
