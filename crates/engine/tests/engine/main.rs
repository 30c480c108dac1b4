//! What the engine promises, by rule and by property.

mod dependencies;
mod faulty;
mod fleet;
mod properties;
mod rollout_examples;
mod rollout_world;
mod rules;
mod sets;
mod signing_request;
