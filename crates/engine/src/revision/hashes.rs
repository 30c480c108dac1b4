//! The hashes that a work carries: from which configurations, and in which state of each, it was made.

use std::{collections::BTreeMap, fmt};

use drover_api::{
    drover::SetConfig,
    grammar::SpecHash,
    names::{CONFIG_SPEC_HASH_ANNOTATION, FLAT_CONFIG_SPEC_HASH_ANNOTATION},
};
use serde_json::Value;

use super::Set;

/// In what a work differs from a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// What the work carries is no list of hashes; says why.
    Unreadable(String),
    /// The set has a configuration without content, from which nothing can be made.
    NoContent(String),
    /// The work was made without this configuration.
    Without(String),
    /// The work was made from another state of this configuration.
    OtherState(String),
    /// The work was made from this one too, which is not in the set.
    Besides(String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "has hashes that can not be read: {error}"),
            Self::NoContent(config) => write!(f, "can not be made, because {config} does not exist"),
            Self::Without(config) => write!(f, "was made without {config}"),
            Self::OtherState(config) => write!(f, "was made from another state of {config}"),
            Self::Besides(config) => write!(f, "was made from {config}, which does not count any more"),
        }
    }
}

/// The hashes that a work made from the set carries, under OCM's name and the specification's. One that was made from no configuration carries
/// none.
#[must_use]
pub fn annotations(set: &Set) -> BTreeMap<String, String> {
    if set.configs().is_empty() {
        return BTreeMap::new();
    }
    let written = |key: fn(&SetConfig) -> String| {
        let hashes = set.configs().iter().map(|config| (key(config), config.config.spec_hash.to_string().into()));
        Value::Object(hashes.collect::<BTreeMap<_, Value>>().into_iter().collect()).to_string()
    };
    BTreeMap::from([
        (CONFIG_SPEC_HASH_ANNOTATION.to_owned(), written(key)),
        (FLAT_CONFIG_SPEC_HASH_ANNOTATION.to_owned(), written(flat_key)),
    ])
}

/// In what a work that carries these hashes differs from the set; nothing if it was made from
/// exactly these configurations.
pub(crate) fn difference(set: &Set, carried: Option<&str>) -> Option<Difference> {
    let carried = match parse(carried) {
        Ok(carried) => carried,
        Err(error) => return Some(Difference::Unreadable(error.to_string())),
    };
    let lacking = set.configs().iter().find_map(|config| lacking(config, &carried));
    lacking.or_else(|| {
        let besides = carried.into_keys().find(|key| !set.configs().iter().any(|config| is_key_of(key, config)))?;
        Some(Difference::Besides(besides))
    })
}

/// The hashes on a work, under OCM's name or the specification's. One that carries none was made from no configuration.
pub(crate) fn carried_by(annotations: &BTreeMap<String, String>) -> Option<&String> {
    annotations.get(CONFIG_SPEC_HASH_ANNOTATION).or_else(|| annotations.get(FLAT_CONFIG_SPEC_HASH_ANNOTATION))
}

fn parse(carried: Option<&str>) -> Result<BTreeMap<String, String>, serde_json::Error> {
    carried.map_or_else(|| Ok(BTreeMap::new()), serde_json::from_str)
}

fn lacking(config: &SetConfig, carried: &BTreeMap<String, String>) -> Option<Difference> {
    let hash = &config.config.spec_hash;
    let mut found = carried.iter().filter(|(key, _)| is_key_of(key, config)).peekable();
    if hash.is_missing() {
        Some(Difference::NoContent(key(config)))
    } else if found.peek().is_none() {
        Some(Difference::Without(key(config)))
    } else if found.any(|(_, carried)| *hash != parsed(carried)) {
        Some(Difference::OtherState(key(config)))
    } else {
        None
    }
}

fn parsed(hash: &str) -> SpecHash {
    let Ok(hash) = hash.parse();
    hash
}

/// The key of a configuration, as OCM writes it.
fn key(config: &SetConfig) -> String {
    let referent = &config.config.referent;
    let namespace = referent.namespace.as_deref().unwrap_or_default();
    format!("{}/{namespace}/{}", config.group_resource, referent.name)
}

/// The key of a configuration, as the specification writes it.
fn flat_key(config: &SetConfig) -> String {
    key(config).replace("//", "/")
}

/// Whether the key is that of the configuration. One without a namespace is written with two slashes by OCM and with one
/// by the specification.
fn is_key_of(written: &str, config: &SetConfig) -> bool {
    written == key(config) || written == flat_key(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::fixtures::{config, hub};

    const SHA: &str = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

    fn in_namespace(mut config: SetConfig) -> Set {
        config.config.referent.namespace = Some("ns".to_owned());
        Set::new([config], None)
    }

    fn of_core_group(mut config: SetConfig) -> SetConfig {
        config.group_resource.group.clear();
        config
    }

    /// In what a work with an annotation differs from a set.
    fn found(set: &Set, annotation: &str, value: &str) -> Option<Difference> {
        let annotations = BTreeMap::from([(annotation.to_owned(), value.to_owned())]);
        difference(set, carried_by(&annotations).map(String::as_str))
    }

    fn hub_config(hash: &str) -> Set {
        hub("hub-yyy", hash)
    }

    #[test]
    fn every_spelling_of_the_same_hashes_is_the_same() {
        let namespaced = in_namespace(config("settings", "one", SHA));
        let core = in_namespace(of_core_group(config("configmaps", "one", "h1")));
        let rows = [
            (&namespaced, CONFIG_SPEC_HASH_ANNOTATION, format!(r#"{{"settings.example.com/ns/one":"{SHA}"}}"#)),
            (&core, CONFIG_SPEC_HASH_ANNOTATION, r#"{"configmaps/ns/one":"h1"}"#.to_owned()),
            (&hub_config("h1"), CONFIG_SPEC_HASH_ANNOTATION, r#"{"hubs.example.com//hub-yyy":"h1"}"#.to_owned()),
            (&hub_config("h1"), CONFIG_SPEC_HASH_ANNOTATION, r#"{"hubs.example.com/hub-yyy":"h1"}"#.to_owned()),
            (&hub_config("h1"), FLAT_CONFIG_SPEC_HASH_ANNOTATION, "{\"hubs.example.com/hub-yyy\":\"h1\"}\n".to_owned()),
            (&Set::new([], None), CONFIG_SPEC_HASH_ANNOTATION, "{}".to_owned()),
        ];
        for (set, annotation, value) in rows {
            assert_eq!(found(set, annotation, &value), None, "{value}");
        }
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        let namespaced = in_namespace(config("settings", "one", SHA));
        let core = in_namespace(of_core_group(config("configmaps", "one", "h1")));
        let two = Set::new([config("hubs", "b", "h2"), config("hubs", "a", "h1")], None);
        let rows = [
            (&namespaced, format!(r#"{{"settings.example.com/ns/one":"{SHA}"}}"#), None),
            (&core, r#"{"configmaps/ns/one":"h1"}"#.to_owned(), None),
            (
                &two,
                r#"{"hubs.example.com//a":"h1","hubs.example.com//b":"h2"}"#.to_owned(),
                Some(r#"{"hubs.example.com/a":"h1","hubs.example.com/b":"h2"}"#),
            ),
        ];
        for (set, ocm, flat) in rows {
            let written = annotations(set);
            assert_eq!(written[CONFIG_SPEC_HASH_ANNOTATION], ocm);
            assert_eq!(written[FLAT_CONFIG_SPEC_HASH_ANNOTATION], flat.unwrap_or(&ocm));
            for (annotation, value) in &written {
                assert_eq!(found(set, annotation, value), None);
            }
        }
        assert_eq!(annotations(&Set::new([], None)), BTreeMap::new());
    }

    #[test]
    fn every_difference_is_named() {
        let key = || "hubs.example.com//hub-yyy".to_owned();
        let other = "other.example.com/ns/one".to_owned();
        let rows = [
            ("h1", r#"{"hubs.example.com/hub-yyy":"h2"}"#, Difference::OtherState(key())),
            ("h1", r#"{"hubs.example.com/hub-yyy":""}"#, Difference::OtherState(key())),
            (
                "h1",
                r#"{"hubs.example.com/hub-yyy":"h1","hubs.example.com//hub-yyy":"h2"}"#,
                Difference::OtherState(key()),
            ),
            ("h1", r#"{"hubs.example.com/hub-xxx":"h1"}"#, Difference::Without(key())),
            ("h1", r#"{"hubs.example.com/ns/hub-yyy":"h1"}"#, Difference::Without(key())),
            ("h1", "{}", Difference::Without(key())),
            ("", r#"{"hubs.example.com/hub-yyy":""}"#, Difference::NoContent(key())),
            ("h1", r#"{"hubs.example.com/hub-yyy":"h1","other.example.com/ns/one":"h1"}"#, Difference::Besides(other)),
        ];
        for (hash, value, expected) in rows {
            let found = found(&hub_config(hash), CONFIG_SPEC_HASH_ANNOTATION, value);
            assert_eq!(found, Some(expected), "{value}");
        }
    }

    #[test]
    fn what_can_not_be_read_says_so() {
        for value in ["", "h1", "[]", r#"{"a":1}"#] {
            let found = found(&Set::new([], None), CONFIG_SPEC_HASH_ANNOTATION, value);
            let Some(Difference::Unreadable(error)) = found else { panic!("{value}: {found:?}") };
            assert!(!error.is_empty());
        }
    }

    #[test]
    fn a_work_without_hashes_was_made_from_nothing() {
        assert_eq!(difference(&Set::new([], None), None), None);
        assert!(matches!(difference(&hub_config("h1"), None), Some(Difference::Without(_))));
    }

    #[test]
    fn ocm_s_spelling_goes_before_the_other() {
        let ocm = r#"{"hubs.example.com//hub-yyy":"h1"}"#;
        let both = [(CONFIG_SPEC_HASH_ANNOTATION, ocm), (FLAT_CONFIG_SPEC_HASH_ANNOTATION, "{}")];
        let both = both.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        assert_eq!(difference(&hub_config("h1"), carried_by(&both).map(String::as_str)), None);
    }
}
