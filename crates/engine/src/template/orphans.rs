//! What becomes of applied objects when their work goes.

use drover_api::work::{DeleteOption, DeletePropagationPolicy, OrphaningRule, SelectivelyOrphan};

use super::{home::Home, piece::Piece};

/// What the template says, and that the manifests which are marked so are kept.
pub(super) fn delete_option(
    template: Option<&DeleteOption>,
    pieces: &[Piece],
    home: Option<Home<'_>>,
) -> Option<DeleteOption> {
    let marked = pieces.iter().filter(|piece| piece.is_kept()).map(|piece| piece.object.orphaning_rule());
    let marked: Vec<_> = marked.collect();
    let policy = template.map_or_else(DeletePropagationPolicy::default, |option| option.propagation_policy);
    if policy == DeletePropagationPolicy::Orphan || (marked.is_empty() && policy == DeletePropagationPolicy::Foreground)
    {
        return template.cloned();
    }
    // Rules without the policy that goes with them are asleep, and nobody has asked to wake them.
    let mut rules =
        if policy == DeletePropagationPolicy::SelectivelyOrphan { rules(template, home) } else { Vec::new() };
    let new: Vec<_> = marked.into_iter().filter(|rule| !rules.contains(rule)).collect();
    rules.extend(new);
    Some(DeleteOption {
        propagation_policy: DeletePropagationPolicy::SelectivelyOrphan,
        selectively_orphans: Some(SelectivelyOrphan { orphaning_rules: rules }),
        ttl_seconds_after_finished: template.and_then(|option| option.ttl_seconds_after_finished),
    })
}

/// The template's own rules, for the objects as they are on the cluster.
fn rules(template: Option<&DeleteOption>, home: Option<Home<'_>>) -> Vec<OrphaningRule> {
    let rules = template.and_then(|option| option.selectively_orphans.as_ref());
    let rules = rules.into_iter().flat_map(|orphans| &orphans.orphaning_rules);
    rules.map(|rule| home.map_or_else(|| rule.clone(), |home| home.rule(rule))).collect()
}

#[cfg(test)]
mod tests {
    use drover_api::names::ORPHAN_ANNOTATION;
    use serde_json::{Value, json};

    use super::*;
    use crate::template::manifest::Object;

    fn piece(name: &str, annotations: &Value) -> Piece {
        let metadata = json!({ "name": name, "namespace": "ns", "annotations": annotations });
        let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
        let object = Object::of(&manifest).expect("a whole manifest");
        Piece { was: object.clone(), object, manifest, size: 0, workload: None }
    }

    fn pieces() -> [Piece; 3] {
        let kept = |value: Value| json!({ ORPHAN_ANNOTATION: value });
        [piece("gone", &json!({})), piece("kept", &kept(json!(""))), piece("too", &kept(json!("false")))]
    }

    fn option(option: &Value) -> DeleteOption {
        serde_json::from_value(option.clone()).expect("a delete option")
    }

    fn rule(name: &str) -> Value {
        json!({ "resource": "configmaps", "namespace": "ns", "name": name })
    }

    fn selectively(rules: &[&str]) -> Value {
        let rules: Vec<_> = rules.iter().map(|name| rule(name)).collect();
        json!({ "propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": { "orphaningRules": rules } })
    }

    #[test]
    fn what_is_marked_is_kept_whatever_the_mark_says() {
        let expected = option(&selectively(&["kept", "too"]));
        assert_eq!(delete_option(None, &pieces(), None), Some(expected.clone()));
        let foreground = option(&json!({ "propagationPolicy": "Foreground" }));
        assert_eq!(delete_option(Some(&foreground), &pieces(), None), Some(expected));
    }

    #[test]
    fn nothing_marked_leaves_what_the_template_says() {
        let unmarked = &pieces()[..1];
        assert_eq!(delete_option(None, unmarked, None), None);
        for template in
            [json!({ "ttlSecondsAfterFinished": 9 }), json!({ "propagationPolicy": "Orphan" }), selectively(&["gone"])]
        {
            let template = option(&template);
            assert_eq!(delete_option(Some(&template), unmarked, None), Some(template));
        }
    }

    #[test]
    fn rules_are_added_to_those_of_the_template() {
        let template = option(&selectively(&["gone", "kept"]));
        let expected = option(&selectively(&["gone", "kept", "too"]));
        assert_eq!(delete_option(Some(&template), &pieces(), None), Some(expected));
        let lasting = DeleteOption { ttl_seconds_after_finished: Some(9), ..template };
        let found = delete_option(Some(&lasting), &pieces(), None).expect("something is said");
        assert_eq!(found.ttl_seconds_after_finished, Some(9));
    }

    #[test]
    fn who_keeps_everything_needs_no_rules() {
        let all = option(&json!({ "propagationPolicy": "Orphan" }));
        assert_eq!(delete_option(Some(&all), &pieces(), None), Some(all));
    }

    #[test]
    fn rules_that_were_asleep_stay_so() {
        let mut asleep = selectively(&["gone"]);
        asleep["propagationPolicy"] = json!("Foreground");
        let found = delete_option(Some(&option(&asleep)), &pieces(), None);
        assert_eq!(found, Some(option(&selectively(&["kept", "too"]))));
    }
}
