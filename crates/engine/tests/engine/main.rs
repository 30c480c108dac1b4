//! What the engine promises, by rule and by property.

mod addon_request;
mod approval_properties;
mod certificate;
mod counterexample;
mod dependencies;
mod faulty;
mod fleet;
mod properties;
mod replica_set_properties;
mod rollout_examples;
mod rollout_faulty;
mod rollout_history;
mod rollout_oracle;
mod rollout_properties;
mod rollout_world;
mod rules;
mod sets;
mod signing_request;
mod template_digest;
mod template_golden;
mod template_world;
mod upgrade_faulty;
mod upgrade_history;
mod upgrade_properties;
mod upgrade_site;
mod upgrade_world;
