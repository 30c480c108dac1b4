//! What the server says about itself.

use serde_json::{Value, json};

use super::{
    Server, all_kinds,
    answer::{Body, Head},
    call::{not_allowed, unavailable},
};
use crate::{
    discovery::{self, AGGREGATED, Root},
    failure::Failure,
    negotiation::{Clause, Writing, clauses, writing},
    openapi,
    request::Query,
};

/// The version of Kubernetes whose API this is.
const MINOR: u32 = 36;

/// Where the server says how it is.
const PROBES: [&str; 3] = ["healthz", "livez", "readyz"];
/// What is looked at to see how the server is.
const CHECKS: [&str; 1] = ["ping"];

impl Server {
    pub(super) fn describe(&self, head: &Head, parts: &[String]) -> Result<Body, Failure> {
        let described = self.described(head, parts)?;
        let is_read = matches!(head.method.as_str(), "GET" | "HEAD");
        // Some answer whatever is done to them.
        let first = parts.first().map(String::as_str).unwrap_or_default();
        let answers_all = PROBES.contains(&first) || (first == "apis" && parts.len() == 1);
        if is_read || answers_all { Ok(described) } else { Err(not_allowed()) }
    }

    fn described(&self, head: &Head, parts: &[String]) -> Result<Body, Failure> {
        let texts: Vec<_> = parts.iter().map(String::as_str).collect();
        let served = self.served();
        let kinds = || all_kinds(&served);
        let found = match *texts.as_slice() {
            [probe] if PROBES.contains(&probe) => return Ok(Body::plain(200, health(probe, &head.query))),
            [probe, check] if PROBES.contains(&probe) && CHECKS.contains(&check) => return Ok(Body::plain(200, "ok")),
            ["version"] if writing(head.accept.as_deref()) != Writing::Json => {
                return Err(unavailable(&[Writing::Json.media_type()]));
            }
            ["version"] => return Ok(Body::value(200, &version())),
            ["api"] if wants_all(head) => return Ok(aggregated(&discovery::aggregated(&kinds(), Root::Core))),
            ["apis"] if wants_all(head) => return Ok(aggregated(&discovery::aggregated(&kinds(), Root::Groups))),
            ["api"] => Some(discovery::api_versions("")),
            ["apis"] => Some(discovery::group_list(&kinds())),
            ["api", version] => discovery::resource_list(&kinds(), "", version),
            ["apis", group] => discovery::group(&kinds(), group),
            ["apis", group, version] => discovery::resource_list(&kinds(), group, version),
            ["openapi", "v2"] => return Ok(older(head)),
            ["openapi", "v3"] => Some(openapi::index(served.documents())),
            ["openapi", "v3", ..] => {
                let path = texts[2..].join("/");
                let document = served.documents().iter().find(|document| document.path == path);
                let nothing = || Body { media_type: String::new(), ..Body::json(404, "") };
                return Ok(document.map_or_else(nothing, |document| Body::json(200, document.text.clone())));
            }
            [".well-known", "openid-configuration"] => Some(openid()),
            ["openid", "v1", "jwks"] => Some(self.issuer.key_set()),
            [] => Some(
                json!({ "paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"] }),
            ),
            _ => None,
        };
        let nothing = || match *texts.as_slice() {
            ["api" | "version", ..] => Failure::no_such_path(),
            ["apis", group, ..] => served.nothing_in(group),
            _ => Failure::no_such_page(),
        };
        let found = found.ok_or_else(nothing)?;
        Ok(Body::written(200, &found, writing(head.accept.as_deref())))
    }
}

/// How the server is. It answers, so it is well; who asks for more hears what was looked at.
fn health(probe: &str, query: &Query) -> String {
    if !query.flag("verbose") {
        return "ok".to_owned();
    }
    let is_excluded = |check: &str| query.text("exclude") == Some(check);
    let line = |check: &&str| format!("[+]{check} {}ok\n", if is_excluded(check) { "excluded: " } else { "" });
    let looked_at: String = CHECKS.iter().map(line).collect();
    format!("{looked_at}{probe} check passed\n")
}

/// What is said in the older OpenAPI, as text or as protobuf.
fn older(head: &Head) -> Body {
    let clauses = clauses(head.accept.as_deref().unwrap_or_default());
    if clauses.iter().any(|clause| openapi::older::ASKED.contains(&clause.media_type)) {
        return Body { media_type: openapi::older::PROTOBUF.to_owned(), ..Body::json(200, openapi::older::protobuf()) };
    }
    Body::value(200, &openapi::older::document())
}

fn aggregated(value: &Value) -> Body {
    Body { media_type: AGGREGATED.to_owned(), ..Body::value(200, value) }
}

/// Whether everything is asked for in one answer.
fn wants_all(head: &Head) -> bool {
    let is_all = |clause: &Clause<'_>| {
        clause.parameter("as") == Some("APIGroupDiscoveryList")
            && clause.parameter("g") == Some("apidiscovery.k8s.io")
            && clause.parameter("v") == Some("v2")
    };
    clauses(head.accept.as_deref().unwrap_or_default()).iter().any(is_all)
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": MINOR.to_string(),
        "emulationMajor": "1",
        "emulationMinor": MINOR.to_string(),
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": (MINOR - 1).to_string(),
        "gitVersion": format!("v1.{MINOR}.0"),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    })
}

/// The machine, as Kubernetes calls it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// How others check the tokens of service accounts.
fn openid() -> Value {
    let issuer = super::AUDIENCE;
    json!({
        "issuer": issuer,
        "jwks_uri": format!("{issuer}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    })
}
