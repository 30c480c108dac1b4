//! Configurations, put beside those that stood in their place before.
//!
//! A configuration is often replaced by one of another name, such as `hub-config-xxx` by `hub-config-yyy`. What is said of the new one
//! includes what ran before, so both have to be brought together.

use drover_api::{addon::ConfigSpecHash, drover::SetConfig};

/// For each configuration, the state that stood in its place: that of the same object, or else one of the same type that has no
/// successor of its own name, in the order of both.
pub(super) fn beside<'a>(configs: &[SetConfig], before: &'a [SetConfig]) -> Vec<Option<&'a ConfigSpecHash>> {
    let is_same = |one: &SetConfig, other: &SetConfig| {
        one.group_resource == other.group_resource && one.config.referent == other.config.referent
    };
    let mut replaced: Vec<_> = before.iter().filter(|old| !configs.iter().any(|config| is_same(config, old))).collect();
    let mut take = |config: &SetConfig| {
        let index = replaced.iter().position(|old| old.group_resource == config.group_resource)?;
        Some(replaced.remove(index))
    };
    let predecessor = |config: &SetConfig| {
        let same = before.iter().find(|old| is_same(config, old));
        same.or_else(|| take(config)).map(|old| &old.config)
    };
    configs.iter().map(predecessor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::fixtures;

    /// `type/name`.
    fn config(text: &str) -> SetConfig {
        let (resource, name) = text.split_once('/').expect("type/name");
        fixtures::config(resource, name, "hash")
    }

    #[test]
    fn names_go_before_types_and_nothing_is_used_twice() {
        let rows: [(&[&str], &[&str], &[&str]); 7] = [
            (&["a/one"], &["a/one"], &["one"]),
            (&["a/yyy"], &["a/xxx"], &["xxx"]),
            (&["a/yyy"], &["b/xxx"], &[""]),
            (&["a/yyy", "a/zzz"], &["a/xxx"], &["xxx", ""]),
            (&["a/new", "a/one"], &["a/one", "a/old"], &["old", "one"]),
            (&["a/new", "b/new"], &["b/old", "a/old"], &["old", "old"]),
            (&["a/one"], &[], &[""]),
        ];
        for (configs, before, expected) in rows {
            let configs: Vec<_> = configs.iter().map(|text| config(text)).collect();
            let before: Vec<_> = before.iter().map(|text| config(text)).collect();
            let found = beside(&configs, &before);
            let names: Vec<_> = found.iter().map(|old| old.map_or("", |old| old.referent.name.as_str())).collect();
            assert_eq!(names, expected);
        }
    }
}
