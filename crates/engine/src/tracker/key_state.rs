//! What a controller keeps of a key between plans, and what the entries of its queue carry.

use super::{Dirty, Rejections};

/// What a controller keeps of a key from one plan to the next. It is in use by one plan at a time,
/// and lost when planning panics.
pub trait KeyState: Default + Send + 'static {
    /// What an entry of the controller's queue carries beside the key.
    type Payload: Payload;

    /// Takes over what a queue entry carries.
    fn mark(&mut self, payload: Self::Payload);

    /// Whether nothing is kept, so that no memory is spent on the key.
    fn is_empty(&self) -> bool;
}

impl KeyState for () {
    type Payload = ();

    fn mark(&mut self, (): ()) {}

    fn is_empty(&self) -> bool {
        true
    }
}

impl<T: Send + 'static> KeyState for Option<T> {
    type Payload = ();

    fn mark(&mut self, (): ()) {}

    fn is_empty(&self) -> bool {
        self.is_none()
    }
}

impl KeyState for Rejections {
    type Payload = ();

    fn mark(&mut self, (): ()) {}

    fn is_empty(&self) -> bool {
        Self::is_empty(self)
    }
}

/// What an entry of a queue carries beside its key, for example which members have changed.
pub trait Payload: Default + Send + 'static {
    /// Adds what a further entry of the same key carries.
    fn merge(&mut self, other: Self);

    /// Whether it carries nothing.
    fn is_empty(&self) -> bool;
}

impl Payload for () {
    fn merge(&mut self, (): Self) {}

    fn is_empty(&self) -> bool {
        true
    }
}

impl Payload for Dirty {
    fn merge(&mut self, other: Self) {
        Self::merge(self, other);
    }

    fn is_empty(&self) -> bool {
        Self::is_empty(self)
    }
}
