//! Scenarios: what users, agents and add-on managers do, on a real Kubernetes and on Drover's own API server.
//!
//! They are one program, so that those that can share a server do.

mod addons;
mod agents;
mod approval;
mod bodies;
mod both_versions;
#[path = "../../../api/tests/api/case.rs"]
mod case;
mod clusters;
mod commands;
mod configs;
mod crds;
mod debug;
mod depth;
mod differential;
mod documents;
mod embedded;
mod environment;
mod examples;
mod hub;
mod kinds;
mod kubectl;
mod life;
mod observer;
mod parts;
mod placements;
mod policies;
mod registration;
mod rollouts;
mod round_trip;
mod rules;
mod running;
mod templates;
mod upgrades;
mod works;
