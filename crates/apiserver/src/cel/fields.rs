//! The fields of objects as their schema describes them, and what they are called in expressions.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use crate::schema::{Schema, Type};

/// The words that can not be names of fields.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];
/// What stands for characters that names in expressions can not have.
const ESCAPES: [(&str, &str); 4] = [("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")];

static TEXT: LazyLock<Arc<Schema>> =
    LazyLock::new(|| Arc::new(Schema { type_: Some(Type::String), ..Schema::default() }));
/// The only metadata that expressions about custom objects can ask about.
static METADATA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let names = ["name", "generateName"].map(|name| (name.to_owned(), TEXT.clone()));
    Arc::new(Schema { type_: Some(Type::Object), properties: BTreeMap::from(names), ..Schema::default() })
});

/// What a field with this name in JSON is. Of resources, everybody sees what they are and what they are called.
pub(super) fn property<'s>(schema: &'s Schema, is_resource: bool, name: &str) -> Option<&'s Schema> {
    if is_resource && !tells_names(schema) {
        match name {
            "apiVersion" | "kind" => return Some(&TEXT),
            "metadata" => return Some(&METADATA),
            _ => {}
        }
    }
    schema.properties.get(name).map(Arc::as_ref)
}

/// Whether a schema says all itself that is to be seen of any resource.
fn tells_names(schema: &Schema) -> bool {
    let is = |schema: &Schema, name: &str, type_| schema.properties.get(name).is_some_and(|it| it.type_ == Some(type_));
    let has_names =
        |metadata: &Arc<Schema>| ["name", "generateName"].into_iter().all(|name| is(metadata, name, Type::String));
    is(schema, "kind", Type::String)
        && is(schema, "apiVersion", Type::String)
        && is(schema, "metadata", Type::Object)
        && schema.properties.get("metadata").is_some_and(has_names)
}

/// Whether expressions can see values of a schema at all.
pub(super) fn is_seen(schema: &Schema) -> bool {
    use crate::schema::Additional;
    match schema.type_ {
        _ if schema.int_or_string => true,
        None => false,
        Some(Type::Array) => schema.items.as_deref().is_some_and(is_seen),
        Some(Type::Object) => match &schema.additional_properties {
            Some(Additional::Schema(entry)) => is_seen(entry),
            _ => true,
        },
        Some(_) => true,
    }
}

/// The name of a field in expressions; nothing for names that can not be written in one.
pub(super) fn escaped(name: &str) -> Option<Cow<'_, str>> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__").into());
    }
    let is_writable = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    if !name.chars().all(is_writable) {
        return None;
    }
    let needs_none = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.chars().all(needs_none) && !name.contains("__") {
        return Some(name.into());
    }
    Some(ESCAPES.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to)).into())
}

/// The name in JSON of what is called so in expressions; nothing where that is no name.
pub(super) fn unescaped(name: &str) -> Option<Cow<'_, str>> {
    if !name.contains("__") {
        return Some(name.into());
    }
    if let Some(word) = name.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"))
        && RESERVED.contains(&word)
    {
        return Some(word.into());
    }
    let mut output = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("__") {
        output.push_str(&rest[..at]);
        rest = &rest[at..];
        let (from, to) = ESCAPES.iter().find(|(_, to)| rest.starts_with(to))?;
        output.push_str(from);
        rest = &rest[to.len()..];
    }
    output.push_str(rest);
    Some(output.into())
}

/// Whether it is a word that can not be a name.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_they_were() {
        for (name, expected) in [
            ("spec", "spec"),
            ("namespace", "__namespace__"),
            ("a-b.c/d", "a__dash__b__dot__c__slash__d"),
            ("a__b", "a__underscores__b"),
            ("a_b", "a_b"),
            ("a___b", "a__underscores___b"),
        ] {
            assert_eq!(escaped(name).unwrap(), expected);
            assert_eq!(unescaped(expected).unwrap(), name);
        }
        assert!(escaped("1a").is_none() && escaped("").is_none() && escaped("ä").is_none());
        assert!(unescaped("a__b").is_none());
    }
}
