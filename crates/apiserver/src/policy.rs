//! What administrators forbid by expressions: ValidatingAdmissionPolicies and their bindings.
//!
//! Parameters of policies (`paramKind`) are not served: such a policy fails as its failure policy says. Audit annotations are not made, as
//! nothing is audited.

mod authorizer;
mod definition;
mod evaluation;
mod matching;
mod request;

use std::collections::BTreeMap;

use serde_json::Value;

pub use self::{
    definition::flaws,
    request::{Operation, Request},
};
use self::{
    definition::{Binding, Definition, FailurePolicy, ValidationAction},
    evaluation::{Denial, Evaluation},
};
use crate::{
    access::Rules,
    failure::{Cause, Failure},
};

/// What to tell whoever made a request that was let through nevertheless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning(pub String);

/// All policies and their bindings, compiled.
#[derive(Debug, Default)]
pub struct Policies {
    definitions: BTreeMap<String, Definition>,
    bindings: BTreeMap<String, Binding>,
    /// The names of the bindings of each policy, whether there is such a policy or not.
    bound: BTreeMap<String, Vec<String>>,
}

impl Policies {
    /// Takes in a policy or a binding as it now is. Other kinds are none of its business.
    pub fn apply(&mut self, kind: &str, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match kind {
            "ValidatingAdmissionPolicy" => {
                self.definitions.insert(name, Definition::compile(object));
            }
            "ValidatingAdmissionPolicyBinding" => {
                self.remove(kind, &name);
                let binding = Binding::read(object);
                self.bound.entry(binding.policy.clone()).or_default().push(name.clone());
                self.bindings.insert(name, binding);
            }
            _ => {}
        }
    }

    /// Forgets a policy or a binding.
    pub fn remove(&mut self, kind: &str, name: &str) {
        match kind {
            "ValidatingAdmissionPolicy" => {
                self.definitions.remove(name);
            }
            "ValidatingAdmissionPolicyBinding" => {
                let Some(binding) = self.bindings.remove(name) else { return };
                let Some(names) = self.bound.get_mut(&binding.policy) else { return };
                names.retain(|other| other != name);
                if names.is_empty() {
                    self.bound.remove(&binding.policy);
                }
            }
            _ => {}
        }
    }

    /// Whether a request is let through, and what to tell nevertheless.
    pub fn admit(&self, request: &Request<'_>, rules: &Rules) -> Result<Vec<Warning>, Failure> {
        let mut warnings = Vec::new();
        let mut first = None;
        for (name, bindings) in self.bound.iter().filter(|_| !request.is_exempt()) {
            let Some(definition) = self.definitions.get(name) else { continue };
            let Some(version) = definition.matches.version(request) else { continue };
            if let Some(flaw) = &definition.flaw {
                if definition.failure_policy == FailurePolicy::Fail {
                    let message = format!("failed to configure policy: {flaw}");
                    first = first.or_else(|| Some(refusal(request, name, None, &Denial { message, reason: "" })));
                }
                continue;
            }
            let bindings = bindings.iter().filter_map(|name| self.bindings.get_key_value(name));
            for (binding_name, binding) in bindings.filter(|(_, binding)| binding.matches.version(request).is_some()) {
                for denial in Evaluation::denials(definition, request, version, rules) {
                    for action in &binding.actions {
                        match action {
                            ValidationAction::Deny => {
                                let refuse = || Some(refusal(request, name, Some(binding_name), &denial));
                                first = first.or_else(refuse);
                            }
                            ValidationAction::Warn => warnings.push(warning(name, binding_name, &denial)),
                            ValidationAction::Audit => {}
                        }
                    }
                }
            }
        }
        first.map_or(Ok(warnings), Err)
    }
}

fn warning(policy: &str, binding: &str, denial: &Denial) -> Warning {
    let Denial { message, .. } = denial;
    let text =
        format!("Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {message}");
    Warning(text)
}

fn refusal(request: &Request<'_>, policy: &str, binding: Option<&String>, denial: &Denial) -> Failure {
    let by = binding.map_or_else(String::new, |binding| format!(" with binding '{binding}'"));
    let message = format!("ValidatingAdmissionPolicy '{policy}'{by} denied request: {}", denial.message);
    let mut failure = Failure::forbidden(request.kind.resource(), request.told_name(), &message);
    (failure.code, failure.reason) = match denial.reason {
        "Forbidden" => (403, "Forbidden"),
        "Unauthorized" => (401, "Unauthorized"),
        "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
        _ => (422, "Invalid"),
    };
    let cause = Cause { reason: "", message, field: String::new() };
    failure.details.get_or_insert_default().causes.push(cause);
    failure
}

#[cfg(test)]
mod tests;
