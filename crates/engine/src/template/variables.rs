//! Variables in manifests: `{{NAME}}`, in texts and nowhere else.
//!
//! Values are put into texts that were read already, so none of them can change the structure around it. Whatever else has braces belongs to
//! somebody else's templates and is left alone.

use std::{borrow::Cow, collections::BTreeMap};

use drover_api::addon::CustomizedVariable;
use serde_json::Value;

use super::flaw::Fault;

/// The variable with the cluster's name.
pub(super) const CLUSTER_NAME: &str = "CLUSTER_NAME";
/// The variable with the namespace on the cluster that the agent runs in.
pub(super) const INSTALL_NAMESPACE: &str = "INSTALL_NAMESPACE";
/// The variable with the file by which the agent finds the hub.
pub(super) const HUB_KUBECONFIG: &str = "HUB_KUBECONFIG";

/// The values of variables on one cluster.
#[derive(Clone, Debug)]
pub(super) struct Variables<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Variables<'a> {
    /// What is known before it is known where the agent runs. Users may define all but what tells one cluster from another.
    pub(super) fn new(cluster: &'a str, kubeconfig: &'a str, customized: &'a [CustomizedVariable]) -> Self {
        let own = customized.iter().map(|variable| (variable.name.as_str(), variable.value.as_str()));
        let mut values = BTreeMap::from([(HUB_KUBECONFIG, kubeconfig)]);
        values.extend(own);
        values.remove(INSTALL_NAMESPACE);
        values.insert(CLUSTER_NAME, cluster);
        Self(values)
    }

    /// The same, and where the agent runs.
    pub(super) fn in_namespace<'b>(&self, namespace: &'b str) -> Variables<'b>
    where
        'a: 'b,
    {
        let mut values: BTreeMap<&'b str, &'b str> = self.0.clone();
        values.insert(INSTALL_NAMESPACE, namespace);
        Variables(values)
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }

    /// Puts values in the place of all variables in a manifest.
    pub(super) fn fill_in(&self, value: &mut Value) -> Result<(), Fault> {
        match value {
            Value::String(text) => {
                if let Cow::Owned(filled) = self.filled_in(text)? {
                    *text = filled;
                }
                Ok(())
            }
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.fill_in(item)),
            Value::Object(fields) => fields.values_mut().try_for_each(|field| self.fill_in(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    /// The text with values in the place of variables.
    pub(super) fn filled_in<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, Fault> {
        let mut filled = String::new();
        let mut left = text;
        while let Some(variable) = Variable::first_in(left) {
            let value = self.get(variable.name).ok_or_else(|| Fault::UnknownVariable(variable.name.to_owned()))?;
            filled.push_str(variable.before);
            filled.push_str(value);
            left = variable.after;
        }
        if left.len() == text.len() {
            return Ok(Cow::Borrowed(text));
        }
        filled.push_str(left);
        Ok(Cow::Owned(filled))
    }
}

/// Whether there is any variable in a manifest.
pub(super) fn has_variables(value: &Value) -> bool {
    match value {
        Value::String(text) => Variable::first_in(text).is_some(),
        Value::Array(items) => items.iter().any(has_variables),
        Value::Object(fields) => fields.values().any(has_variables),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A variable in a text, with what is around it.
struct Variable<'t> {
    before: &'t str,
    name: &'t str,
    after: &'t str,
}

impl<'t> Variable<'t> {
    fn first_in(text: &'t str) -> Option<Self> {
        let mut from = 0;
        while let Some(braces) = text[from..].find("{{") {
            let start = from + braces;
            if let Some((name, after)) = name_at(&text[start + 2..]) {
                return Some(Self { before: &text[..start], name, after });
            }
            // The second of these braces may be the first of a variable's.
            from = start + 1;
        }
        None
    }
}

/// The name that a text begins with and what comes after its braces, if it is a variable's.
fn name_at(text: &str) -> Option<(&str, &str)> {
    let is_of_name = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    let end = text.bytes().position(|byte| !is_of_name(byte))?;
    let (name, after) = text.split_at(end);
    let begins_well = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    let after = after.strip_prefix("}}")?;
    begins_well.then_some((name, after))
}

#[cfg(test)]
mod tests;
