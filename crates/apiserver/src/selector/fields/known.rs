//! The fields that objects of each kind can be selected by.

use std::sync::Arc;

use drover_engine::jsonpath::{self, JsonPath};
use serde_json::Value;

use crate::kind::{Kind, Origin, Scope, Version};

/// A field that can be selected by.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// The first of these places that is not empty, and what it is where all are.
    At(&'static [&'static str], &'static str),
    /// A place in objects of a custom kind.
    Custom(Arc<JsonPath>),
}

const NAME: Known = Known::At(&["/metadata/name"], "");
const NAMESPACE: Known = Known::At(&["/metadata/namespace"], "");

impl Known {
    /// The field of a kind that goes by a label, or why there is none.
    pub(super) fn of(kind: &Kind, version: &Version, label: &str) -> Result<Self, String> {
        if kind.origin == Origin::Custom {
            return custom(kind, version, label).ok_or_else(|| format!("field label not supported: {label}"));
        }
        let fields = match (kind.group.as_str(), kind.plural.as_str()) {
            ("", "pods") => pod,
            ("", "nodes") => node,
            ("", "namespaces") => namespace,
            ("", "secrets") => secret,
            ("", "services") => service,
            ("", "events") => event,
            ("events.k8s.io", "events") => new_event,
            ("certificates.k8s.io", "certificatesigningrequests") => certificate_request,
            ("batch", "jobs") => {
                return job(label).ok_or_else(|| format!("field label {label:?} not supported for Job"));
            }
            _ => {
                let why = || {
                    format!("{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
                };
                return metadata(label).ok_or_else(why);
            }
        };
        fields(label).ok_or_else(|| format!("field label not supported: {label}"))
    }

    /// What the field says in an object.
    pub(super) fn of_object(&self, object: &Value) -> String {
        match self {
            Self::At(places, otherwise) => {
                let found = places.iter().filter_map(|place| object.pointer(place));
                found.map(jsonpath::text).find(|text| !text.is_empty()).unwrap_or_else(|| (*otherwise).to_owned())
            }
            Self::Custom(path) => {
                path.first(object).filter(|value| !value.is_null()).map(jsonpath::text).unwrap_or_default()
            }
        }
    }
}

fn metadata(label: &str) -> Option<Known> {
    match label {
        "metadata.name" => Some(NAME),
        "metadata.namespace" => Some(NAMESPACE),
        _ => None,
    }
}

fn custom(kind: &Kind, version: &Version, label: &str) -> Option<Known> {
    if label == "metadata.name" || kind.scope == Scope::Namespaced && label == "metadata.namespace" {
        return metadata(label);
    }
    let path = version.selectable_fields.iter().find(|path| path.trim_start_matches('.') == label)?;
    JsonPath::parse(path).ok().map(|path| Known::Custom(Arc::new(path)))
}

fn pod(label: &str) -> Option<Known> {
    Some(match label {
        "spec.nodeName" | "spec.host" => Known::At(&["/spec/nodeName"], ""),
        "spec.restartPolicy" => Known::At(&["/spec/restartPolicy"], ""),
        "spec.schedulerName" => Known::At(&["/spec/schedulerName"], ""),
        "spec.serviceAccountName" => Known::At(&["/spec/serviceAccountName"], ""),
        "spec.hostNetwork" => Known::At(&["/spec/hostNetwork"], "false"),
        "status.phase" => Known::At(&["/status/phase"], ""),
        "status.podIP" => Known::At(&["/status/podIPs/0/ip"], ""),
        // It may be asked for, and nobody ever said what it is.
        "status.podIPs" => Known::At(&[], ""),
        "status.nominatedNodeName" => Known::At(&["/status/nominatedNodeName"], ""),
        _ => return metadata(label),
    })
}

fn node(label: &str) -> Option<Known> {
    match label {
        "metadata.name" => Some(NAME),
        "spec.unschedulable" => Some(Known::At(&["/spec/unschedulable"], "false")),
        _ => None,
    }
}

fn namespace(label: &str) -> Option<Known> {
    match label {
        "metadata.name" => Some(NAME),
        "status.phase" => Some(Known::At(&["/status/phase"], "")),
        _ => None,
    }
}

fn secret(label: &str) -> Option<Known> {
    match label {
        "type" => Some(Known::At(&["/type"], "")),
        _ => metadata(label),
    }
}

fn service(label: &str) -> Option<Known> {
    match label {
        "spec.clusterIP" => Some(Known::At(&["/spec/clusterIP"], "")),
        "spec.type" => Some(Known::At(&["/spec/type"], "")),
        _ => metadata(label),
    }
}

fn certificate_request(label: &str) -> Option<Known> {
    match label {
        "metadata.name" => Some(NAME),
        "spec.signerName" => Some(Known::At(&["/spec/signerName"], "")),
        _ => None,
    }
}

fn job(label: &str) -> Option<Known> {
    match label {
        "status.successful" => Some(Known::At(&["/status/succeeded"], "0")),
        _ => metadata(label),
    }
}

/// Events are told in two ways, and either can be selected from.
fn event(label: &str) -> Option<Known> {
    Some(match label {
        "involvedObject.kind" => Known::At(&["/involvedObject/kind", "/regarding/kind"], ""),
        "involvedObject.namespace" => Known::At(&["/involvedObject/namespace", "/regarding/namespace"], ""),
        "involvedObject.name" => Known::At(&["/involvedObject/name", "/regarding/name"], ""),
        "involvedObject.uid" => Known::At(&["/involvedObject/uid", "/regarding/uid"], ""),
        "involvedObject.apiVersion" => Known::At(&["/involvedObject/apiVersion", "/regarding/apiVersion"], ""),
        "involvedObject.resourceVersion" => {
            Known::At(&["/involvedObject/resourceVersion", "/regarding/resourceVersion"], "")
        }
        "involvedObject.fieldPath" => Known::At(&["/involvedObject/fieldPath", "/regarding/fieldPath"], ""),
        "reason" => Known::At(&["/reason"], ""),
        "reportingComponent" => Known::At(&["/reportingComponent", "/reportingController"], ""),
        "source" => Known::At(
            &["/source/component", "/deprecatedSource/component", "/reportingComponent", "/reportingController"],
            "",
        ),
        "type" => Known::At(&["/type"], ""),
        _ => return metadata(label),
    })
}

fn new_event(label: &str) -> Option<Known> {
    match label {
        "reportingController" => event("reportingComponent"),
        "reason" | "type" | "metadata.name" | "metadata.namespace" => event(label),
        _ => event(&format!("involvedObject.{}", label.strip_prefix("regarding.")?)),
    }
}
