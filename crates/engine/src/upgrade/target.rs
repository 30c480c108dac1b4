//! What clusters are upgraded to, and how a cluster stands to it.

use drover_api::{
    cluster::TargetVersion,
    grammar::{SetFingerprint, Version},
};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::feedback::Running;

/// What clusters are upgraded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    written: TargetVersion,
    name: SetFingerprint,
}

/// How a cluster stands to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nobody can tell.
    Unknown,
    /// It has to be upgraded.
    Below,
    /// It is there.
    There,
    /// It is beyond it.
    Above,
}

impl Target {
    /// The target that is written so. A text that is empty says nothing.
    #[must_use]
    pub fn of(written: &TargetVersion) -> Self {
        let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let written = TargetVersion {
            channel: said(&written.channel),
            version: said(&written.version),
            upstream: said(&written.upstream),
            image: said(&written.image),
        };
        let digest = Sha256::digest(json!({ "target": written }).to_string());
        let mut name = [0; 8];
        name.copy_from_slice(&digest[..8]);
        Self { written, name: SetFingerprint::of(name) }
    }

    /// What was written, without what says nothing.
    #[must_use]
    pub fn written(&self) -> &TargetVersion {
        &self.written
    }

    /// By which the target is known.
    #[must_use]
    pub fn name(&self) -> &SetFingerprint {
        &self.name
    }

    /// The version, if one is named.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.written.version.as_deref()
    }

    /// What people call it.
    #[must_use]
    pub fn title(&self) -> &str {
        let TargetVersion { version, image, channel, .. } = &self.written;
        version.as_deref().or(image.as_deref()).or(channel.as_deref()).unwrap_or_default()
    }

    /// How a cluster stands to it that has told its version, and nothing else.
    #[must_use]
    pub fn place_of(&self, version: &str) -> Place {
        let Some(wanted) = self.version() else { return Place::Unknown };
        match (compare(version, wanted), &self.written.image) {
            // Whether a version is the image that is asked for, and not another of the same version, nobody can tell.
            (Place::Below | Place::There, Some(_)) => Place::Unknown,
            (place, _) => place,
        }
    }

    /// How a cluster stands to it whose ClusterVersion says this.
    #[must_use]
    pub fn place(&self, running: &Running) -> Place {
        let TargetVersion { channel, version, image, .. } = &self.written;
        if version.is_none() && image.is_none() {
            return match &running.channel {
                Some(at) if Some(at) == channel.as_ref() => Place::There,
                Some(_) => Place::Below,
                None => Place::Unknown,
            };
        }
        if !running.is_complete {
            return if running.version.is_some() { Place::Below } else { Place::Unknown };
        }
        match (image, version) {
            (Some(image), _) if running.image.as_ref() == Some(image) => Place::There,
            (None, Some(wanted)) => running.version.as_deref().map_or(Place::Unknown, |at| compare(at, wanted)),
            (Some(_), wanted) => match (running.version.as_deref(), wanted) {
                (None, _) => Place::Unknown,
                (Some(at), Some(wanted)) if compare(at, wanted) == Place::Above => Place::Above,
                _ => Place::Below,
            },
            (None, None) => Place::Unknown,
        }
    }

    /// Whether it is a step of more than a patch from a version. What can not be compared is taken for one.
    #[must_use]
    pub fn is_minor_step_from(&self, version: &str) -> bool {
        let minor = |text: &str| -> Option<(u64, u64)> {
            let mut parts = text.split('.');
            Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
        };
        let wanted = self.version().and_then(minor);
        wanted.is_none() || minor(version) != wanted
    }
}

fn compare(at: &str, wanted: &str) -> Place {
    if at == wanted {
        return Place::There;
    }
    match (at.parse::<Version>(), wanted.parse::<Version>()) {
        (Ok(at), Ok(wanted)) if at > wanted => Place::Above,
        (Ok(_), Ok(_)) => Place::Below,
        _ => Place::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(version: &str, image: &str, channel: &str) -> Target {
        let some = |text: &str| Some(text.to_owned());
        Target::of(&TargetVersion {
            version: some(version),
            image: some(image),
            channel: some(channel),
            upstream: None,
        })
    }

    fn running(version: &str, is_complete: bool) -> Running {
        Running { version: Some(version.to_owned()), is_complete, ..Running::default() }
    }

    #[test]
    fn what_says_nothing_makes_no_difference() {
        let written = TargetVersion { version: Some("4.12.0".to_owned()), ..TargetVersion::default() };
        assert_eq!(target("4.12.0", "", ""), Target::of(&written));
        assert_ne!(target("4.12.0", "", "stable-4.12").name(), Target::of(&written).name());
    }

    #[test]
    fn a_cluster_is_there_when_it_has_finished_with_the_version() {
        let wanted = target("4.12.0", "", "stable-4.12");
        let places = ["4.11.30", "4.12.0", "4.12.1"].map(|version| wanted.place(&running(version, true)));
        assert_eq!(places, [Place::Below, Place::There, Place::Above]);
        assert_eq!(wanted.place(&running("4.12.0", false)), Place::Below, "it is on its way");
        assert_eq!(wanted.place(&running("4.13.0", false)), Place::Below, "it may never get there");
        assert_eq!(wanted.place(&Running::default()), Place::Unknown);
        assert_eq!(wanted.place(&running("nightly", true)), Place::Below, "text sorts below versions");
    }

    #[test]
    fn an_image_is_reached_by_the_image_and_a_channel_by_the_channel() {
        let digest = format!("registry.example.com/release@sha256:{}", "a".repeat(64));
        let wanted = target("4.12.0", &digest, "");
        assert_eq!(wanted.place_of("4.12.0"), Place::Unknown, "it may be another image of the same version");
        assert_eq!(wanted.place_of("4.13.0"), Place::Above, "as if more were known");
        assert_eq!(wanted.place(&running("4.12.0", true)), Place::Below);
        assert_eq!(wanted.place(&Running { image: Some(digest), ..running("4.12.0", true) }), Place::There);
        assert_eq!(wanted.place(&running("4.13.0", true)), Place::Above);
        let wanted = target("", "", "stable-4.12");
        let on = |channel: &str| Running { channel: Some(channel.to_owned()), ..running("4.12.0", true) };
        assert_eq!([wanted.place(&on("stable-4.12")), wanted.place(&on("fast-4.12"))], [Place::There, Place::Below]);
    }

    #[test]
    fn a_patch_is_no_minor_step() {
        let wanted = target("4.12.5", "", "");
        assert!(!wanted.is_minor_step_from("4.12.0"));
        assert!(wanted.is_minor_step_from("4.11.30") && wanted.is_minor_step_from("nightly"));
    }
}
