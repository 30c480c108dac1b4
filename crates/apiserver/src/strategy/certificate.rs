//! Requests for certificates.

use k8s_openapi::ByteString;
use serde_json::{Value, json};
use x509_cert::der::Decode;

use super::{
    look::{alike, copy, list, list_mut, member, number, object, put, text, texts},
    rbac::unsupported,
};
use crate::{
    field::{ErrorKind, FieldError, Path},
    metadata::names,
    user::{Part, User},
};

const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";

/// What a certificate may be for, in the order in which it is listed to users.
const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// A request says who made it, whatever was sent, and nothing is decided of it.
pub(super) fn prepare_create(request: &mut Value, user: &User) {
    put(request, "status", Some(json!({})));
    let Some(spec) = object(request, "spec") else { return };
    let text = |text: &str| (!text.is_empty()).then(|| json!(text));
    put(spec, "username", text(&user.name));
    put(spec, "uid", text(&user.uid));
    put(spec, "groups", (!user.groups.is_empty()).then(|| json!(user.groups)));
    put(spec, "extra", (!user.extra.is_empty()).then(|| json!(user.extra)));
}

/// A decision is a change of conditions and of nothing else.
pub(super) fn keep_all_but_conditions(new: &mut Value, old: &Value, now: &str) {
    stamp_conditions(new, old, now);
    let conditions = new.pointer("/status/conditions").cloned();
    copy(old, new, "spec");
    copy(old, new, "status");
    if let Some(status) = object(new, "status") {
        put(status, "conditions", conditions);
    }
}

/// A change of status leaves decisions as they are.
pub(super) fn keep_decision(new: &mut Value, old: &Value, now: &str) {
    for decision in ["Approved", "Denied"] {
        let kept: Vec<Value> = conditions(old, decision).into_iter().cloned().collect();
        if kept.len() == conditions(new, decision).len() {
            let found = list_mut(new, "/status/conditions").filter(|condition| text(condition, "/type") == decision);
            found.zip(kept).for_each(|(condition, kept)| *condition = kept);
        }
    }
    stamp_conditions(new, old, now);
}

fn stamp_conditions(new: &mut Value, old: &Value, now: &str) {
    for condition in list_mut(new, "/status/conditions") {
        if member(condition, "lastUpdateTime").is_none() {
            put(condition, "lastUpdateTime", Some(json!(now)));
        }
        if member(condition, "lastTransitionTime").is_none() {
            let is_same = |other: &&Value| other["type"] == condition["type"] && other["status"] == condition["status"];
            let before = list(old, "/status/conditions").iter().find(is_same);
            let time = before.and_then(|before| member(before, "lastTransitionTime")).cloned();
            put(condition, "lastTransitionTime", Some(time.unwrap_or_else(|| json!(now))));
        }
    }
}

fn conditions<'a>(request: &'a Value, type_: &str) -> Vec<&'a Value> {
    list(request, "/status/conditions").iter().filter(|condition| text(condition, "/type") == type_).collect()
}

/// What is wrong with a request.
pub(super) fn rules(request: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let path = Path::Root.field("spec");
    let mut errors = Vec::new();
    let sent = text(request, "/spec/request");
    if let Some(problem) = request_problem(sent) {
        let shown = if sent.is_empty() { Value::Null } else { sent.into() };
        errors.push(FieldError::new(ErrorKind::Invalid, &path.field("request"), shown, problem));
    }
    errors.extend(usage_rules(request, &path.field("usages")));
    errors.extend(signer_rules(text(request, "/spec/signerName"), &path.field("signerName")));
    if let Some(seconds) = number(request, "/spec/expirationSeconds").filter(|seconds| *seconds < 600) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::new(ErrorKind::Invalid, &path.field("expirationSeconds"), seconds, detail));
    }
    errors.extend(condition_rules(request));
    let certificate = |request: &Value| text(request, "/status/certificate").to_owned();
    if old.is_none_or(|old| certificate(old) != certificate(request)) {
        errors.extend(certificate_rule(&certificate(request)));
    }
    errors
}

fn usage_rules(request: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let usages = texts(request, "/spec/usages");
    if usages.is_empty() {
        return vec![FieldError::bare(ErrorKind::Required, path, "")];
    }
    let numbered = || usages.iter().enumerate();
    let unknown = numbered().filter(|(_, usage)| !USAGES.contains(usage));
    let twice = numbered().filter(|(index, usage)| usages[..*index].contains(usage));
    let unknown = unknown.map(|(index, usage)| unsupported(&path.index(index), *usage, USAGES));
    let twice = twice.map(|(index, usage)| FieldError::new(ErrorKind::Duplicate, &path.index(index), *usage, ""));
    unknown.chain(twice).collect()
}

fn signer_rules(signer: &str, path: &Path<'_>) -> Vec<FieldError> {
    if signer.is_empty() {
        return vec![FieldError::bare(ErrorKind::Required, path, "")];
    }
    let invalid = |detail: String| FieldError::new(ErrorKind::Invalid, path, signer, detail);
    if signer == LEGACY_SIGNER {
        return vec![invalid("the legacy signerName is not allowed via this API version".to_owned())];
    }
    let Some((domain, name)) = signer.split_once('/').filter(|(_, name)| !name.contains('/')) else {
        return vec![invalid(
            "must be a fully qualified domain and path of the form 'example.com/signer-name'".to_owned(),
        )];
    };
    let at = |part: &str, detail: String| FieldError::new(ErrorKind::Invalid, path, part, detail);
    let mut errors: Vec<FieldError> =
        label_problems(domain, names::label).into_iter().map(|problem| at(domain, problem)).collect();
    if !domain.contains('.') {
        errors.push(at(domain, "should be a domain with at least two segments separated by dots".to_owned()));
    }
    errors.extend(label_problems(name, names::subdomain).into_iter().map(|problem| at(name, problem)));
    errors
}

/// What is wrong with the first bad label of a name.
fn label_problems(name: &str, rule: fn(&str) -> Vec<String>) -> Vec<String> {
    let bad = name.split('.').map(|label| (label, rule(label))).find(|(_, problems)| !problems.is_empty());
    let Some((label, problems)) = bad else { return Vec::new() };
    problems.into_iter().map(|problem| format!("validating label {label:?}: {problem}")).collect()
}

fn condition_rules(request: &Value) -> Vec<FieldError> {
    let status = Path::Root.field("status");
    let path = status.field("conditions");
    let conditions = list(request, "/status/conditions");
    let mut errors = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        let item = path.index(index);
        let (type_, status) = (text(condition, "/type"), text(condition, "/status"));
        if type_.is_empty() {
            errors.push(FieldError::bare(ErrorKind::Required, &item.field("type"), ""));
        }
        let decides = matches!(type_, "Approved" | "Denied" | "Failed");
        let allowed: &[&str] = if decides { &["True"] } else { &["False", "True", "Unknown"] };
        if status.is_empty() {
            errors.push(FieldError::bare(ErrorKind::Required, &item.field("status"), ""));
        } else if !allowed.contains(&status) {
            errors.push(unsupported(&item.field("status"), status, allowed));
        }
        let other = if type_ == "Approved" { "Denied" } else { "Approved" };
        if matches!(type_, "Approved" | "Denied") && seen.contains(&other) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::new(ErrorKind::Invalid, &path, type_, detail));
        }
        if seen.contains(&type_) {
            errors.push(FieldError::new(ErrorKind::Duplicate, &item.field("type"), type_, ""));
        }
        seen.push(type_);
    }
    errors
}

/// What a change may not do to a request.
pub(super) fn update_rules(part: Part, new: &Value, old: &Value) -> Vec<FieldError> {
    let status = Path::Root.field("status");
    let path = status.field("conditions");
    let forbidden = |path: &Path<'_>, detail: String| FieldError::bare(ErrorKind::Forbidden, path, detail);
    let mut errors = Vec::new();
    for type_ in ["Approved", "Denied", "Failed"] {
        if conditions(new, type_).len() < conditions(old, type_).len() {
            errors.push(forbidden(&path, format!("updates may not remove a condition of type {type_:?}")));
        }
    }
    for type_ in ["Approved", "Denied"].into_iter().filter(|_| part != Part::Approval) {
        let (is, was) = (conditions(new, type_), conditions(old, type_));
        if is.len() > was.len() {
            errors.push(forbidden(&path, format!("updates may not add a condition of type {type_:?}")));
        } else if is.len() == was.len() && !is.iter().zip(&was).all(|(is, was)| alike(Some(is), Some(was))) {
            errors.push(forbidden(&path, format!("updates may not modify a condition of type {type_:?}\n")));
        }
    }
    let (is, was) = (text(new, "/status/certificate"), text(old, "/status/certificate"));
    let path = status.field("certificate");
    if is != was && part != Part::Status {
        errors.push(forbidden(&path, "updates may not set certificate content".to_owned()));
    } else if is != was && !was.is_empty() {
        errors.push(forbidden(&path, "updates may not modify existing certificate content".to_owned()));
    }
    errors
}

/// What is wrong with what is to be signed.
fn request_problem(sent: &str) -> Option<String> {
    let wrong_type = || Some("PEM block type must be CERTIFICATE REQUEST".to_owned());
    let Some(pem) = decoded(sent) else { return wrong_type() };
    let Some(Block { label, der }) = first_block(&pem) else { return wrong_type() };
    if label != "CERTIFICATE REQUEST" {
        return wrong_type();
    }
    let parsed = x509_cert::request::CertReq::from_der(&der);
    parsed.err().map(|_| "asn1: structure error: malformed certificate request".to_owned())
}

fn certificate_rule(certificate: &str) -> Option<FieldError> {
    let pem = decoded(certificate).filter(|pem| !pem.is_empty())?;
    let problem = match first_block(&pem) {
        None => "must contain at least one CERTIFICATE PEM block".to_owned(),
        Some(block) if block.label != "CERTIFICATE" => {
            format!("only CERTIFICATE PEM blocks are allowed, found {:?}", block.label)
        }
        Some(block) => {
            x509_cert::Certificate::from_der(&block.der).err()?;
            "x509: malformed certificate".to_owned()
        }
    };
    let status = Path::Root.field("status");
    let path = status.field("certificate");
    Some(FieldError::new(ErrorKind::Invalid, &path, "<certificate data>", problem))
}

/// A block of PEM.
struct Block {
    label: String,
    der: Vec<u8>,
}

fn first_block(pem: &str) -> Option<Block> {
    let (_, rest) = pem.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let body: String = body.split_whitespace().collect();
    let der = serde_json::from_value::<ByteString>(json!(body)).ok()?.0;
    Some(Block { label: label.to_owned(), der })
}

fn decoded(data: &str) -> Option<String> {
    let bytes = serde_json::from_value::<ByteString>(json!(data)).ok()?.0;
    String::from_utf8(bytes).ok()
}
