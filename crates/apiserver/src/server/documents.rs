//! What the server says about itself.

use serde_json::{Value, json};

use super::{
    Server, all_kinds,
    call::{Body, Head},
    list::written,
};
use crate::{
    discovery::{self, AGGREGATED, Root},
    failure::Failure,
    negotiation::{clauses, negotiate},
    openapi,
    user::User,
};

/// The version of Kubernetes whose API this is.
const MINOR: u32 = 36;

impl Server {
    pub(super) fn describe(&self, _user: &User, head: &Head, parts: &[String]) -> Result<Body, Failure> {
        if !matches!(head.method.as_str(), "GET" | "HEAD") {
            return Err(super::call::not_allowed());
        }
        let texts: Vec<_> = parts.iter().map(String::as_str).collect();
        let served = self.served();
        let kinds = || all_kinds(&served);
        let found = match *texts.as_slice() {
            ["healthz" | "readyz" | "livez"] => return Ok(plain("ok")),
            ["version"] => Some(version()),
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
                return document
                    .map(|document| Body::json(200, document.text.clone()))
                    .ok_or_else(Failure::no_such_path);
            }
            [".well-known", "openid-configuration"] => Some(openid()),
            ["openid", "v1", "jwks"] => Some(self.issuer.key_set()),
            [] => Some(
                json!({ "paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"] }),
            ),
            _ => None,
        };
        let found = found.ok_or_else(Failure::no_such_page)?;
        let wanted = negotiate(head.accept.as_deref(), false).map(|wanted| wanted.writing);
        Ok(written(200, &found, wanted.unwrap_or(crate::negotiation::Writing::Json)))
    }
}

fn plain(text: &'static str) -> Body {
    Body { media_type: "text/plain; charset=utf-8".to_owned(), ..Body::json(200, text) }
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
    let is_all = |clause: &crate::negotiation::Clause<'_>| {
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
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
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
