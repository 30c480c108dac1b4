//! Other registries for images: those of an add-on's settings, or those that a cluster is annotated with.

use drover_api::{addon::ImageMirror, cluster::ManagedCluster, names::IMAGE_REGISTRIES_ANNOTATION};
use kube::ResourceExt;
use serde_json::Value;

use super::flaw::Flaw;

/// Whether images are taken from the same registries on a cluster in two states.
#[must_use]
pub fn has_the_same_registries(one: &ManagedCluster, other: &ManagedCluster) -> bool {
    let named = |cluster: &ManagedCluster| cluster.annotations().get(IMAGE_REGISTRIES_ANNOTATION).cloned();
    named(one) == named(other)
}

/// The registries that a cluster takes images from, as its annotation names them.
pub fn registries_of(cluster: &ManagedCluster) -> Result<Vec<ImageMirror>, Flaw> {
    let Some(text) = cluster.annotations().get(IMAGE_REGISTRIES_ANNOTATION) else { return Ok(Vec::new()) };
    let flaw = |error: String| Flaw::Registries { cluster: cluster.name_any(), error };
    let annotation: Value = serde_json::from_str(text).map_err(|error| flaw(error.to_string()))?;
    let Value::Object(mut fields) = annotation else { return Err(flaw("it is no JSON object".to_owned())) };
    match fields.remove("registries") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(registries) => serde_json::from_value(registries).map_err(|error| flaw(error.to_string())),
    }
}

/// The image to be taken instead of this one, if another is. The last mirror that is for the image decides.
pub(super) fn mirrored(image: &str, mirrors: &[ImageMirror]) -> Option<String> {
    mirrors.iter().rev().find_map(|mirror| mirrored_by(image, mirror))
}

fn mirrored_by(image: &str, ImageMirror { source, mirror }: &ImageMirror) -> Option<String> {
    let source = source.as_deref().unwrap_or_default().trim_end_matches('/');
    let rest = if source.is_empty() { last_segment(image) } else { after_source(image, source)? };
    Some(match mirror.trim_end_matches('/') {
        "" => rest.trim_start_matches('/').to_owned(),
        mirror if rest.is_empty() || rest.starts_with(['/', ':', '@']) => format!("{mirror}{rest}"),
        mirror => format!("{mirror}/{rest}"),
    })
}

fn last_segment(image: &str) -> &str {
    image.rsplit('/').next().unwrap_or(image)
}

/// What follows the source in an image's name, if the name's path begins with it. What follows a colon is a port if a path comes after
/// it, and a host with a port is another host.
fn after_source<'a>(image: &'a str, source: &str) -> Option<&'a str> {
    let rest = image.strip_prefix(source)?;
    let is_tag = rest.starts_with(['@', ':']) && !rest.contains('/');
    (rest.is_empty() || rest.starts_with('/') || is_tag).then_some(rest)
}

#[cfg(test)]
mod tests {
    use drover_api::cluster::ManagedClusterSpec;

    use super::*;

    fn mirror(source: &str, mirror: &str) -> ImageMirror {
        ImageMirror { source: Some(source.to_owned()), mirror: mirror.to_owned() }
    }

    fn annotated(value: &str) -> ManagedCluster {
        let mut cluster = ManagedCluster::new("one", ManagedClusterSpec::default());
        cluster.annotations_mut().insert(IMAGE_REGISTRIES_ANNOTATION.to_owned(), value.to_owned());
        cluster
    }

    #[test]
    fn a_source_is_the_beginning_of_a_path() {
        for (source, target, image, expected) in [
            ("quay.io/a", "m.io", "quay.io/a/b:1", Some("m.io/b:1")),
            ("quay.io/a/", "m.io/", "quay.io/a/b:1", Some("m.io/b:1")),
            ("quay.io/a", "m.io", "quay.io/ab:1", None),
            ("quay.io/a", "m.io", "other.io/quay.io/a/b", None),
            ("quay.io/a/b", "m.io/c", "quay.io/a/b:1", Some("m.io/c:1")),
            ("quay.io/a/b", "m.io/c", "quay.io/a/b@sha256:0", Some("m.io/c@sha256:0")),
            ("quay.io/a/b", "m.io/c", "quay.io/a/b", Some("m.io/c")),
            ("localhost", "m.io", "localhost:5000/b:1", None),
            ("localhost:5000", "m.io", "localhost:5000/b:1", Some("m.io/b:1")),
            ("", "m.io/x", "quay.io/org/img:tag", Some("m.io/x/img:tag")),
            ("", "m.io/x", "img", Some("m.io/x/img")),
            ("", "", "quay.io/org/img:tag", Some("img:tag")),
            ("quay.io/a", "", "quay.io/a/b:1", Some("b:1")),
        ] {
            let found = mirrored(image, &[mirror(source, target)]);
            assert_eq!(found.as_deref(), expected, "{source} -> {target}: {image}");
        }
    }

    #[test]
    fn the_last_mirror_that_is_for_an_image_decides() {
        let mirrors = [mirror("quay.io", "one.io"), mirror("quay.io/a", "two.io"), mirror("other.io", "three.io")];
        assert_eq!(mirrored("quay.io/a/b", &mirrors).as_deref(), Some("two.io/b"));
        assert_eq!(mirrored("quay.io/c/b", &mirrors).as_deref(), Some("one.io/c/b"));
        assert_eq!(mirrored("docker.io/b", &mirrors), None);
    }

    #[test]
    fn a_cluster_says_where_its_images_come_from() {
        let text = r#"{"pullSecret":"a.b","registries":[{"source":"quay.io/a","mirror":"m.io"},{"mirror":"n.io"}]}"#;
        let found = registries_of(&annotated(text)).expect("it can be read");
        assert_eq!(found, [mirror("quay.io/a", "m.io"), ImageMirror { source: None, mirror: "n.io".to_owned() }]);
        assert_eq!(registries_of(&annotated(r#"{"pullSecret":"a.b"}"#)), Ok(Vec::new()));
        assert_eq!(registries_of(&ManagedCluster::default()), Ok(Vec::new()));
    }

    #[test]
    fn an_annotation_that_nobody_can_read_is_no_reason_to_ignore_it() {
        for text in ["", "quay.io", "[]", r#"{"registries":{}}"#, r#"{"registries":[{"source":"a"}]}"#] {
            let flaw = registries_of(&annotated(text)).expect_err("nobody can read it");
            assert!(flaw.to_string().contains("of the ManagedCluster one can not be read"), "{flaw}");
        }
    }
}
