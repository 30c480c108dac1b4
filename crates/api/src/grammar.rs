//! Values with a grammar, parsed once where they enter.
//!
//! Each type here keeps the text it was read from and serialises as exactly that text, so that an
//! object which passes through Drover comes out as its author wrote it. Each type's schema carries the rule that
//! the API server checks, with a message that says what to write instead.

mod count;
mod duration;
mod fingerprint;
mod hash;
mod lenient;
mod quantity;
mod version;

pub use count::{Amount, CountOrPercentage, InvalidCount, WindowSize};
pub use duration::{Deadline, GoDuration, InvalidDuration, Timeout};
pub use fingerprint::{InvalidFingerprint, SetFingerprint};
pub use hash::SpecHash;
pub use lenient::Lenient;
pub use quantity::Quantity;
pub use version::{InvalidVersion, Version};

/// Implements serde and schema for a type that is one string on the wire: it is parsed with
/// `FromStr`, and written with `Display`, which gives back the text it was parsed from.
macro_rules! string_on_the_wire {
    ($type:ty, $schema:expr) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    };
}
use string_on_the_wire;
