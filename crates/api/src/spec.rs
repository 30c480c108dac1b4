//! Objects without a spec.

/// Lets a kind's spec be missing, which then means its default.
///
/// OCM's schemas do not require a spec for every kind, and kube makes it a mandatory field. An object that OCM
/// accepts must not be unreadable, so the spec itself is read as something that may be absent. The type derives
/// `Serialize` and `Deserialize` with `#[serde(remote = "Self")]`, which makes them functions for this to call.
macro_rules! may_be_missing {
    ($spec:ty) => {
        impl serde::Serialize for $spec {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                <$spec>::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $spec {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Present($spec);
                impl<'de> serde::Deserialize<'de> for Present {
                    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                        <$spec>::deserialize(deserializer).map(Self)
                    }
                }
                let present = Option::<Present>::deserialize(deserializer)?;
                Ok(present.map_or_else(Self::default, |Present(spec)| spec))
            }
        }
    };
}
pub(crate) use may_be_missing;
