//! Tokens by which agents of add-ons prove themselves to the hub, as far as it matters to who keeps them.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

/// What a token says of itself. Whether that is true is the hub's to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Since when it is valid.
    pub issued: Timestamp,
    /// Until when.
    pub expires: Timestamp,
    /// The UID of the service account that it is for.
    pub account: Option<String>,
}

/// That a token can not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has to be a JSON Web Token that says when it was issued and when it expires")]
pub struct Unreadable;

impl Token {
    /// Reads a token.
    pub fn read(text: &[u8]) -> Result<Self, Unreadable> {
        let claims = claims(text).ok_or(Unreadable)?;
        let time = |name: &str| claims[name].as_i64().and_then(|second| Timestamp::from_second(second).ok());
        Ok(Self {
            issued: time("iat").ok_or(Unreadable)?,
            expires: time("exp").ok_or(Unreadable)?,
            account: claims["kubernetes.io"]["serviceaccount"]["uid"].as_str().map(str::to_owned),
        })
    }

    /// When it is to be renewed: when a fifth of its time is left.
    #[must_use]
    pub fn renewal(&self) -> Timestamp {
        let left = self.expires.duration_since(self.issued) / 5;
        self.expires.checked_sub(left).unwrap_or(self.issued)
    }
}

/// The second of the three parts that a token has.
fn claims(text: &[u8]) -> Option<Value> {
    let parts: Vec<_> = str::from_utf8(text).ok()?.split('.').collect();
    let &[_, claims, _] = parts.as_slice() else { return None };
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn encoded(claims: &Value) -> String {
        format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    #[test]
    fn a_token_tells_for_whom_and_how_long_it_is() {
        let claims =
            json!({ "iat": 1000, "exp": 2000, "kubernetes.io": { "serviceaccount": { "name": "a", "uid": "u" } } });
        let token = Token::read(encoded(&claims).as_bytes()).expect("a token");
        let at = |second| Timestamp::from_second(second).expect("a valid time");
        assert_eq!(token, Token { issued: at(1000), expires: at(2000), account: Some("u".to_owned()) });
        assert_eq!(token.renewal(), at(1800));
    }

    #[test]
    fn what_is_no_token_is_not_read() {
        let timeless = encoded(&json!({ "iat": 1 }));
        for text in ["", "a.b.c", "a.b", &timeless, &format!("{timeless}.d")] {
            assert_eq!(Token::read(text.as_bytes()), Err(Unreadable), "{text}");
        }
    }
}
