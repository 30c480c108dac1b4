//! Objects that are written down in YAML, sent to a server and compared with what comes back.

use std::{fs, path::Path};

use drover_testkit::World;
use kube::{
    Api, Client,
    api::{DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams, Request, ValidationDirective},
    core::Status,
    discovery::{Scope, pinned_kind},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The YAML documents in a file of the repository.
pub(crate) fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Vec<T> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The repository's folder.
pub(crate) fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The YAML that a page of the documentation shows.
pub(crate) fn documented(page: &str) -> Vec<String> {
    let page = fs::read_to_string(repository().join(page)).expect("the page is there");
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.map(str::to_owned).collect()
}

/// One object that was written down. Which namespace it goes to is for the scenario to say.
#[derive(Clone, Debug)]
pub(crate) struct Document(Value);

impl Document {
    pub(crate) fn new(mut object: Value) -> Self {
        object["metadata"].as_object_mut().map(|metadata| metadata.remove("namespace"));
        Self(object)
    }

    pub(crate) fn kind(&self) -> &str {
        self.0["kind"].as_str().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.0["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub(crate) fn rename(&mut self, name: String) {
        self.0["metadata"]["name"] = name.into();
    }

    /// The object as it is created: the status has to be written on its own.
    fn without_status(&self) -> Value {
        let mut object = self.0.clone();
        object.as_object_mut().expect("an object is a map").remove("status");
        object
    }

    /// Where objects of this kind are: in `namespace`, if they are in any.
    async fn api(&self, client: Client, namespace: &str) -> Api<DynamicObject> {
        let api_version = self.0["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = GroupVersionKind::gvk(group, version, self.kind());
        match pinned_kind(&client, &kind).await {
            Ok((resource, capabilities)) if capabilities.scope == Scope::Cluster => Api::all_with(client, &resource),
            Ok((resource, _)) => Api::namespaced_with(client, namespace, &resource),
            Err(error) => panic!("{kind:?} is not served: {error}"),
        }
    }

    /// Creates the object and its status under strict validation, and returns what the server has stored.
    pub(crate) async fn store(&self, world: &World, namespace: &str) -> Result<Value, Box<Status>> {
        let api = self.api(world.client(), namespace).await;
        let mut stored = create(&api, &self.without_status()).await?;
        if let Some(status) = self.0.get("status") {
            let patch = Patch::Merge(json!({ "status": status }));
            let strict = PatchParams { field_validation: Some(ValidationDirective::Strict), ..Default::default() };
            stored = api.patch_status(self.name(), &strict, &patch).await.map_err(refusal)?;
        }
        Ok(serde_json::to_value(stored).expect("an object is JSON"))
    }

    /// Replaces the stored object by this one.
    pub(crate) async fn replace(&self, world: &World, namespace: &str) -> Result<(), Box<Status>> {
        let api = self.api(world.client(), namespace).await;
        let mut object: DynamicObject = serde_json::from_value(self.without_status()).expect("an object");
        object.metadata.resource_version = api.get(self.name()).await.map_err(refusal)?.metadata.resource_version;
        api.replace(self.name(), &PostParams::default(), &object).await.map_err(refusal)?;
        Ok(())
    }

    /// Every value of the document that `stored` lacks or has otherwise, as sentences.
    pub(crate) fn lost_in(&self, stored: &Value) -> Vec<String> {
        let mut lost = Vec::new();
        compare("", &self.0, stored, &mut lost);
        lost
    }
}

/// Creates an object under strict validation, for which kube's own parameters have no setting.
async fn create(api: &Api<DynamicObject>, object: &Value) -> Result<DynamicObject, Box<Status>> {
    let body = serde_json::to_vec(object).expect("an object is JSON");
    let mut request = Request::new(api.resource_url()).create(&PostParams::default(), body).expect("a valid request");
    let strict = format!("{}&fieldValidation=Strict", request.uri());
    *request.uri_mut() = strict.parse().expect("a valid address");
    api.clone().into_client().request(request).await.map_err(refusal)
}

fn refusal(error: kube::Error) -> Box<Status> {
    match error {
        kube::Error::Api(status) => status,
        error => panic!("the server did not answer: {error}"),
    }
}

fn compare(path: &str, written: &Value, stored: &Value, lost: &mut Vec<String>) {
    match (written, stored) {
        (Value::Object(written), Value::Object(stored)) => compare_maps(path, written, stored, lost),
        (Value::Array(written), Value::Array(stored)) if written.len() == stored.len() => {
            for (index, (written, stored)) in written.iter().zip(stored).enumerate() {
                compare(&format!("{path}[{index}]"), written, stored, lost);
            }
        }
        (written, stored) if written == stored => {}
        (written, stored) => lost.push(format!("{path} was written as {written} and came back as {stored}")),
    }
}

fn compare_maps(path: &str, written: &Map<String, Value>, stored: &Map<String, Value>, lost: &mut Vec<String>) {
    for (key, value) in written {
        match stored.get(key) {
            Some(stored) => compare(&format!("{path}.{key}"), value, stored, lost),
            None => lost.push(format!("{path}.{key} was written and did not come back")),
        }
    }
}

#[test]
fn what_is_lost_on_the_way_is_found() {
    let document = Document::new(json!({ "metadata": {}, "spec": { "kept": 1, "lost": 2, "list": [{ "a": 1 }] } }));
    let stored = json!({ "metadata": { "uid": "x" }, "spec": { "kept": 1, "list": [{ "a": 2, "added": 3 }] } });
    assert_eq!(
        document.lost_in(&stored),
        [".spec.list[0].a was written as 1 and came back as 2", ".spec.lost was written and did not come back"]
    );
}
