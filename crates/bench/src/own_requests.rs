//! The requests that this program itself sends: a server does not tell in its counts who has sent what, so they are taken out.

use std::sync::Arc;

use http::{Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder},
};
use parking_lot::{Mutex, MutexGuard};
use tower::util::{MapRequestLayer, MapResponseLayer};

use crate::server_counts::{Requests, Sort};

/// What was sent by the clients that were made with this.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnRequests(Arc<Mutex<Requests>>);

impl OwnRequests {
    /// A client whose requests are counted.
    pub(crate) fn client(&self, mut config: Config) -> kube::Result<Client> {
        // What was sent again by kube itself would be counted once.
        config.default_retry = false;
        let (sent, refused) = (self.clone(), self.clone());
        let count_request = move |request: Request<Body>| {
            if let Some(sort) = sort(&request) {
                sent.requests().add(sort, 1);
            }
            request
        };
        let builder = ClientBuilder::try_from(config)?.with_layer(&MapRequestLayer::new(count_request));
        let count_conflict = move |response: Response<_>| {
            if response.status() == StatusCode::CONFLICT {
                refused.requests().conflicts += 1;
            }
            response
        };
        Ok(builder.with_layer(&MapResponseLayer::new(count_conflict)).build())
    }

    /// How many there are by now.
    pub(crate) fn count(&self) -> Requests {
        self.requests().clone()
    }

    /// Numbers are whole whatever happened to who counted them.
    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.0.lock()
    }
}

/// As what an API server counts a request.
pub(crate) fn sort<B>(request: &Request<B>) -> Option<Sort> {
    let (resource, is_named) = target(request.uri().path())?;
    let is_watch = request.uri().query().is_some_and(|query| query.split('&').any(|part| part == "watch=true"));
    let is_apply =
        request.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/apply-patch"));
    let verb = match *request.method() {
        Method::GET if is_watch => "WATCH",
        Method::GET if !is_named => "LIST",
        Method::PATCH if is_apply => "APPLY",
        Method::DELETE if !is_named => "DELETECOLLECTION",
        ref other => other.as_str(),
    };
    Some((resource, verb.to_owned()))
}

/// The resource of a path, with its part if one is meant, and whether the path names an object.
fn target(path: &str) -> Option<(String, bool)> {
    let parts: Vec<_> = path.trim_matches('/').split('/').collect();
    let (["api", _version, within_group @ ..] | ["apis", _, _version, within_group @ ..]) = parts.as_slice() else {
        return None;
    };
    let of_namespace = ["status", "finalize"];
    let (resource, name) = match within_group {
        ["namespaces", _, resource, name @ ..] if !of_namespace.contains(resource) => (resource, name),
        [resource, name @ ..] => (resource, name),
        [] => return None,
    };
    Some(match name {
        [] => ((*resource).to_owned(), false),
        [_] => ((*resource).to_owned(), true),
        [_, part, ..] => (format!("{resource}/{part}"), true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_as_the_server_counts_it() {
        let cases = [
            ("POST", "/api/v1/namespaces", "namespaces POST"),
            ("GET", "/api/v1/namespaces/east", "namespaces GET"),
            ("PATCH", "/api/v1/namespaces/east/status", "namespaces/status PATCH"),
            ("GET", "/api/v1/namespaces/east/secrets?limit=500", "secrets LIST"),
            ("DELETE", "/api/v1/namespaces/east/secrets", "secrets DELETECOLLECTION"),
            ("GET", "/apis/g.io/v1/works?watch=true&labelSelector=a", "works WATCH"),
            ("PATCH", "/apis/g.io/v1/namespaces/east/works/one/status", "works/status PATCH"),
            ("PUT", "/apis/g.io/v1/clusters/east", "clusters PUT"),
        ];
        for (method, path, expected) in cases {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            let (resource, verb) = sort(&request).unwrap();
            assert_eq!(format!("{resource} {verb}"), expected, "{method} {path}");
        }
        let metrics = Request::builder().uri("/metrics").body(()).unwrap();
        assert_eq!(sort(&metrics), None);
    }
}
