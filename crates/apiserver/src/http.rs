//! The server's face: requests as HTTP brings them, and answers as it takes them.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Router,
    body::Body as HttpBody,
    extract::{Request, State},
    response::Response,
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{
    Extensions, HeaderMap, HeaderValue, StatusCode, Version,
    header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT, WARNING},
};
use tower_http::compression::CompressionLayer;

use crate::{
    failure::Failure,
    identity::{anonymous, of_certificate},
    request::Query,
    server::{Answer, Body, Head, MAX_BODY, Server, Watching},
    user::User,
};

/// How long an answer is at least that is worth compressing.
const WORTH_COMPRESSING: usize = 128 << 10;

/// How many warnings one response has at most. Clients refuse responses with more than 100 headers.
const MAX_WARNINGS: usize = 50;

/// How much is read at most of what is too much.
const MAX_WASTE: usize = 10 * MAX_BODY;

/// The certificate that the other side of a connection has shown, and that was found to be one of ours.
#[derive(Clone, Debug)]
pub(crate) struct Peer(pub(crate) Arc<[u8]>);

/// Who the other side of a connection is known to be without showing anything, because it is in this process.
#[derive(Clone, Debug)]
pub(crate) struct Known(pub(crate) User);

/// The mark of an answer that is worth compressing.
#[derive(Clone, Copy)]
struct Large;

/// All of the server, as something that answers requests.
pub(crate) fn router(server: Arc<Server>) -> Router {
    let is_large = |_: StatusCode, _: Version, _: &HeaderMap, marks: &Extensions| marks.get::<Large>().is_some();
    Router::new().fallback(answer).with_state(server).layer(CompressionLayer::new().compress_when(is_large))
}

async fn answer(State(server): State<Arc<Server>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let version = parts.version;
    let user = match identify(&server, &parts.headers, &parts.extensions) {
        Ok(user) => user,
        Err(failure) => return last(text(Body::failed(&failure, &head(parts))), version),
    };
    // Who may not send anything hears that, however much it was.
    match read(body).await {
        Received::All(body) => respond(server.answer(user, &head(parts), Some(body)).await),
        Received::TooMuch => respond(server.answer(user, &head(parts), None).await),
        Received::Endless => last(respond(server.answer(user, &head(parts), None).await), version),
    }
}

/// What came with a request.
enum Received {
    All(Bytes),
    /// More than is accepted, read to its end.
    TooMuch,
    /// More than that.
    Endless,
}

/// Reads what came with a request. What is too much is read to its end all the same, and thrown away: who is cut off while he sends hears no answer.
async fn read(body: HttpBody) -> Received {
    let (mut chunks, mut bytes, mut length) = (body.into_data_stream(), Vec::new(), 0);
    while let Some(chunk) = chunks.next().await {
        let Ok(chunk) = chunk else { return Received::Endless };
        length += chunk.len();
        if length <= MAX_BODY {
            bytes.extend_from_slice(&chunk);
        } else if length <= MAX_WASTE {
            bytes = Vec::new();
        } else {
            return Received::Endless;
        }
    }
    if length <= MAX_BODY { Received::All(bytes.into()) } else { Received::TooMuch }
}

fn respond(answer: Answer) -> Response {
    match answer {
        Answer::Text(body) => text(body),
        Answer::Watch(watching) => watch(watching),
    }
}

/// Says that the connection is closed after this answer, because not all was read that came with the request: who sends the next one on it would get no
/// answer. Of HTTP/2, connections outlive that.
fn last(mut response: Response, version: Version) -> Response {
    if version < Version::HTTP_2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn head(parts: http::request::Parts) -> Head {
    let value = |name: http::HeaderName| parts.headers.get(name).and_then(|it| it.to_str().ok()).map(str::to_owned);
    let impersonation = parts.headers.iter().filter(|(name, _)| name.as_str().starts_with("impersonate-"));
    let impersonation =
        impersonation.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
    Head {
        accept: value(ACCEPT),
        content_type: value(CONTENT_TYPE),
        user_agent: value(USER_AGENT).unwrap_or_default(),
        impersonation: impersonation.collect(),
        query: Query::read(parts.uri.query().unwrap_or_default()),
        path: parts.uri.path().to_owned(),
        method: parts.method,
    }
}

/// Who asks: by a token, by a certificate, or nobody in particular.
fn identify(server: &Server, headers: &HeaderMap, marks: &Extensions) -> Result<User, Failure> {
    if let Some(Known(user)) = marks.get() {
        return Ok(user.clone());
    }
    if let Some(Peer(certificate)) = marks.get() {
        return of_certificate(certificate).map_err(|_| Failure::unauthorized());
    }
    let Some(authorization) = headers.get(AUTHORIZATION) else { return Ok(anonymous()) };
    let token = authorization.to_str().ok().and_then(|text| text.split_once(' '));
    match token {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
            server.holder(token.trim()).ok_or_else(Failure::unauthorized)
        }
        _ => Ok(anonymous()),
    }
}

/// The first warnings, and how many more there are.
fn limited(mut warnings: Vec<String>) -> Vec<String> {
    if warnings.len() > MAX_WARNINGS {
        let others = warnings.split_off(MAX_WARNINGS - 1).len();
        warnings.push(format!("and {others} more warnings"));
    }
    warnings
}

fn text(body: Body) -> Response {
    let Body { code, media_type, bytes, warnings, retry_after } = body;
    let is_large = bytes.len() >= WORTH_COMPRESSING;
    let mut response = Response::new(HttpBody::from(bytes));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if !media_type.is_empty() {
        let media_type = HeaderValue::from_str(&media_type).unwrap_or(HeaderValue::from_static("text/plain"));
        headers.insert(CONTENT_TYPE, media_type);
    }
    headers.insert("cache-control", HeaderValue::from_static("no-cache, private"));
    for warning in limited(warnings) {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            headers.append(WARNING, value);
        }
    }
    if let Some(seconds) = retry_after {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    if is_large {
        response.extensions_mut().insert(Large);
    }
    response
}

fn watch(watching: Box<Watching>) -> Response {
    let frames = stream::unfold(watching, async |mut watching| {
        let frame = watching.next().await?;
        Some((Ok::<Bytes, Infallible>(frame), watching))
    });
    let mut response = Response::new(HttpBody::from_stream(frames));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_have_fewer_headers_than_clients_accept() {
        let warnings = |count: usize| (0..count).map(|at| format!("warning {at}")).collect::<Vec<_>>();
        assert_eq!(limited(warnings(MAX_WARNINGS)), warnings(MAX_WARNINGS));
        let few = limited(warnings(1000));
        assert_eq!(few.len(), MAX_WARNINGS);
        assert_eq!(few.last().map(String::as_str), Some("and 951 more warnings"));
    }
}
