//! How the manifests of works are kept: as text.
//!
//! As a tree of values a manifest takes several times the memory, and most works are looked at once in their life.

use drover_api::work::ManifestWork;
use serde_json::Value;

/// Has the manifests of a work be text.
pub(super) fn pack(work: &mut ManifestWork) {
    for manifest in work.spec.workload.iter_mut().flat_map(|workload| &mut workload.manifests) {
        let mut text = manifest.to_string();
        text.shrink_to_fit();
        *manifest = Value::String(text);
    }
}

/// A manifest of a work that was packed, as it was before. The same manifests are the same text.
pub(super) fn unpack(manifest: &Value) -> Value {
    manifest.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_packed_is_found_again() {
        let manifests = json!([{ "kind": "ConfigMap", "data": { "b": "1", "a": 1.10 } }, "no object", null]);
        let work = json!({ "metadata": { "name": "w" }, "spec": { "workload": { "manifests": manifests } } });
        let mut work: ManifestWork = serde_json::from_value(work).expect("a work");
        pack(&mut work);
        assert!(work.spec.manifests().iter().all(Value::is_string));
        let unpacked: Vec<_> = work.spec.manifests().iter().map(unpack).collect();
        assert_eq!(Value::Array(unpacked), manifests);
    }
}
