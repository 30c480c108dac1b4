//! Sets for tests.

use drover_api::{
    addon::{ConfigGroupResource, ConfigReferent, ConfigSpecHash},
    drover::SetConfig,
    grammar::Version,
};
use k8s_openapi::jiff::Timestamp;

use super::Set;

pub(crate) fn type_(resource: &str) -> ConfigGroupResource {
    ConfigGroupResource { group: "example.com".to_owned(), resource: resource.to_owned() }
}

/// A configuration without a namespace.
pub(crate) fn config(resource: &str, name: &str, hash: &str) -> SetConfig {
    let referent = ConfigReferent { namespace: None, name: name.to_owned() };
    let spec_hash = hash.parse().expect("any text is a hash");
    SetConfig { group_resource: type_(resource), config: ConfigSpecHash { referent, spec_hash } }
}

/// A set of one configuration.
pub(crate) fn hub(name: &str, hash: &str) -> Set {
    Set::new([config("hubs", name, hash)], None)
}

pub(crate) fn version(text: &str) -> Version {
    text.parse().expect("a version")
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a valid time")
}
