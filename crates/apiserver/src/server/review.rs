//! Questions that nothing is kept of: who somebody is, what he may do, and a token for a service account.

use serde_json::Value;

use super::{AUDIENCE, answer::Body, call::Call};
use crate::{
    access::review::{self, TokenHolder},
    decode,
    failure::Failure,
    identity::{Account, TokenRequest, Why},
    metadata, protobuf,
};

impl Call<'_> {
    pub(super) fn review(&self, body: &[u8]) -> Result<Body, Failure> {
        if let Some(name) = self.place.name.as_deref() {
            return self.token(name, body);
        }
        let (mut review, twice) = self.read_body(body)?;
        self.identify(&mut review, body)?;
        self.tidy(&mut review, twice)?;
        let rules = self.server.rules();
        let answered = match self.kind.kind.as_str() {
            "SubjectAccessReview" => review::subject_access(review, &rules),
            "SelfSubjectAccessReview" => review::self_subject_access(review, &self.user, &rules),
            "LocalSubjectAccessReview" => {
                review::local_subject_access(review, self.place.namespace.as_deref().unwrap_or_default(), &rules)
            }
            "SelfSubjectRulesReview" => review::self_subject_rules(&review, &self.user, &rules),
            "SelfSubjectReview" => Ok(review::self_subject(&self.user, &self.server.now())),
            "TokenReview" => {
                let audiences = [AUDIENCE.to_owned()];
                review::token(review, &audiences, |token, audiences| self.holder(token, audiences))
            }
            _ => Err(Failure::no_such_path()),
        };
        self.show(201, &answered?)
    }

    fn holder(&self, token: &str, audiences: &[String]) -> Result<Option<TokenHolder>, String> {
        match self.server.verified(token, audiences) {
            Ok(verified) => Ok(Some(TokenHolder { user: verified.user, audiences: verified.audiences })),
            Err(Why::Foreign) => Ok(None),
            Err(why) => Err(format!("[invalid bearer token, {why}]")),
        }
    }

    fn token(&self, name: &str, body: &[u8]) -> Result<Body, Failure> {
        let (body, _) = self.read_body_as(body, "authentication.k8s.io/v1", "TokenRequest")?;
        let stored = self.server.store.get(&self.subject(name).key);
        let account = stored.ok_or_else(|| Failure::not_found(self.kind.resource(), name))?.value();
        let namespace = self.place.namespace.as_deref().unwrap_or_default();
        let account = Account { namespace, name, uid: metadata::text(&account, "uid") };
        let request = TokenRequest { body, now: self.server.clock.now(), id: self.server.ids.uid() };
        let issued = self.server.issuer.issue(request, &account, &[AUDIENCE.to_owned()])?;
        Ok(self.written(201, &issued))
    }

    /// Reads a body that is of another kind than the address.
    pub(super) fn read_body_as(
        &self,
        body: &[u8],
        api_version: &str,
        kind: &str,
    ) -> Result<(Value, Vec<String>), Failure> {
        let problem = |problem| Failure::bad_request(format!("couldn't get version/kind; json parse error: {problem}"));
        let (mut value, twice) = match self.media_type() {
            "application/vnd.kubernetes.protobuf" => (protobuf::decode_as(body, api_version, kind)?, Vec::new()),
            "application/yaml" => decode::read_yaml(body).map_err(problem)?,
            _ => decode::read_json(body).map_err(problem)?,
        };
        for (field, text) in [("apiVersion", api_version), ("kind", kind)] {
            if value.is_object() && value.get(field).is_none_or(Value::is_null) {
                value[field] = text.into();
            }
        }
        let says = |field: &str, text: &str| value.get(field).and_then(Value::as_str) == Some(text);
        if !says("apiVersion", api_version) || !says("kind", kind) {
            return Err(Failure::bad_request(format!("the body has to be a {kind} of {api_version}")));
        }
        Ok((value, twice))
    }
}
