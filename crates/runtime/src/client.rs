//! The client by which a process reaches a server.

use axum::{
    BoxError,
    body::{Body, Bytes, HttpBody},
    http::{HeaderValue, Response, StatusCode, header},
};
use kube::{
    Client, Config,
    client::ClientBuilder,
    core::{Status, response::StatusDetails},
};
use tower::util::MapResponseLayer;

/// A client that repeats nothing by itself. Who writes goes by a [pace](crate::pace::Pace), watches and the election have rests
/// of their own; a second mechanism below them would hide from them that the server is busy.
pub fn connect(mut config: Config) -> kube::Result<Client> {
    config.default_retry = false;
    Ok(ClientBuilder::try_from(config)?.with_layer(&MapResponseLayer::new(explain_pause)).build())
}

/// Puts the pause that a busy server asks for where kube looks for it.
///
/// An API server that has too many requests says so in plain text with a `Retry-After`; kube reads only the body, and only JSON.
/// Answers in JSON say it themselves.
fn explain_pause<B>(response: Response<B>) -> Response<Body>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    match asked_pause(&response) {
        Some(seconds) => refusal(response.status(), seconds),
        None => response.map(Body::new),
    }
}

/// The seconds that an answer asks for without saying so in its body.
fn asked_pause<B>(response: &Response<B>) -> Option<u32> {
    let is_failure = response.status().is_client_error() || response.status().is_server_error();
    let is_json = |value: &HeaderValue| value.as_bytes().starts_with(b"application/json");
    let headers = response.headers();
    if !is_failure || headers.get(header::CONTENT_TYPE).is_some_and(is_json) {
        return None;
    }
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()
}

fn refusal(code: StatusCode, seconds: u32) -> Response<Body> {
    let message = format!("{code}: the server asks to come back in {seconds} s");
    let details = StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: seconds,
    };
    let reason = code.canonical_reason().unwrap_or_default().replace(' ', "");
    let status = Status::failure(&message, &reason).with_code(code.as_u16()).with_details(details);
    // A Status is always JSON; an empty body would still be an answer with that code.
    let mut response = Response::new(Body::from(serde_json::to_vec(&status).unwrap_or_default()));
    *response.status_mut() = code;
    response
}

#[cfg(test)]
mod tests {
    use axum::{Router, http::HeaderName};
    use k8s_openapi::api::core::v1::Namespace;
    use kube::Api;

    use super::*;

    /// What a client makes of a server that answers every request like this.
    async fn error_from<const N: usize>(
        code: StatusCode,
        headers: [(HeaderName, &'static str); N],
        body: &'static str,
    ) -> Box<Status> {
        let answer = move || async move { (code, headers, body) };
        let router = Router::new().fallback(answer);
        let builder = ClientBuilder::new(router, "default").with_layer(&MapResponseLayer::new(explain_pause));
        match Api::<Namespace>::all(builder.build()).get("a").await {
            Err(kube::Error::Api(status)) => status,
            other => panic!("not an answer of the server: {other:?}"),
        }
    }

    fn seconds(status: &Status) -> Option<u32> {
        status.details.as_ref().map(|details| details.retry_after_seconds)
    }

    #[tokio::test]
    async fn a_pause_that_only_a_header_asks_for_is_known() {
        let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::RETRY_AFTER, "7")];
        let status =
            error_from(StatusCode::TOO_MANY_REQUESTS, headers, "Too many requests, please try again later.").await;
        assert_eq!((status.code, status.reason.as_str(), seconds(&status)), (429, "TooManyRequests", Some(7)));
    }

    #[tokio::test]
    async fn an_answer_in_json_or_without_a_pause_stays_as_it_is() {
        let headers = [(header::CONTENT_TYPE, "application/json"), (header::RETRY_AFTER, "7")];
        let body = r#"{"kind":"Status","status":"Failure","code":429,"reason":"TooManyRequests","message":"etcd is slow","details":{"retryAfterSeconds":3}}"#;
        let status = error_from(StatusCode::TOO_MANY_REQUESTS, headers, body).await;
        assert_eq!((status.message.as_str(), seconds(&status)), ("etcd is slow", Some(3)));
        let status = error_from(StatusCode::SERVICE_UNAVAILABLE, [], "starting").await;
        assert_eq!((status.code, status.message.as_str(), seconds(&status)), (503, "starting", None));
    }
}
