//! The controllers whose keys a plan of another controller can enqueue.

/// A controller whose keys a plan can enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Controller {
    /// The controller of an add-on on one cluster: works and status. Its key is a ManagedClusterAddOn.
    AddOn,
    /// The controller of certificate requests of add-on agents. Its key is a request, or a ManagedClusterAddOn.
    AddOnRegistration,
    /// The controller of what the agent of an add-on may do on the hub. Its key is a ManagedClusterAddOn.
    Permission,
}
