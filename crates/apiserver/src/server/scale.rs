//! How many replicas an object has, as a thing of its own.

use drover_engine::jsonpath::JsonPath;
use serde_json::{Value, json};

use super::{answer::Body, call::Call, update::Wanted};
use crate::{
    depth::{MAX_DEPTH, TooDeep},
    failure::{About, Failure},
    field::{ErrorKind, FieldError, Path},
    kind::Scale,
    metadata,
};

impl Call<'_> {
    fn scale(&self) -> Result<&Scale, Failure> {
        self.version().subresources.scale.as_ref().ok_or_else(Failure::no_such_path)
    }

    /// The Scale of an object.
    pub(super) fn scale_of(&self, object: &Value) -> Result<Value, Failure> {
        let scale = self.scale()?;
        let at = |path: &str| JsonPath::parse(path).ok().and_then(|path| path.first(object).cloned());
        let mut status = json!({ "replicas": at(&scale.status_replicas).unwrap_or_else(|| json!(0)) });
        let selector = scale.label_selector.as_deref().and_then(at);
        let of_labels = || crate::selector::Labels::read(object.pointer("/spec/selector")).ok();
        let selector = selector.and_then(|text| text.as_str().map(str::to_owned));
        if let Some(text) = selector.or_else(|| of_labels().map(|labels| labels.to_string())) {
            status["selector"] = text.into();
        }
        let meta = |name: &str| metadata::field(object, name).cloned();
        let kept = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
        let fields = kept.iter().filter_map(|name| Some(((*name).to_owned(), meta(name)?)));
        let spec = at(&scale.spec_replicas).map_or_else(|| json!({}), |replicas| json!({ "replicas": replicas }));
        Ok(json!({
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": fields.collect::<serde_json::Map<_, _>>(),
            "spec": spec,
            "status": status,
        }))
    }

    /// Changes how many replicas an object is to have, by what is made of its Scale.
    pub(super) async fn rescale(
        &self,
        name: &str,
        make: impl Fn(&Value) -> Result<Value, Failure>,
    ) -> Result<Body, Failure> {
        let path = self.scale()?.spec_replicas.clone();
        let wanted = |old: &Value| {
            let scale = make(&self.scale_of(old)?)?;
            let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
            if replicas < 0 {
                let why = "must be greater than or equal to 0";
                let spec = Path::Root.field("spec");
                let error = FieldError::new(ErrorKind::Invalid, &spec.field("replicas"), replicas, why);
                return Err(Failure::invalid(About { group: "autoscaling", name: "Scale" }, name, &[error]));
            }
            // What is put at a path nests as deeply as the path is long.
            if path.matches('.').count() > MAX_DEPTH {
                return Err(Failure::unprocessable(TooDeep.to_string()));
            }
            let mut new = old.clone();
            put(&mut new, &path, json!(replicas));
            if let Some(version) = metadata::field(&scale, "resourceVersion") {
                metadata::set(&mut new, "resourceVersion", Some(version.clone()));
            }
            Ok(Wanted { object: new, is_applied: false })
        };
        let changed = self.change(name, wanted).await?;
        Ok(self.written(200, &self.scale_of(&changed)?))
    }
}

/// Puts a value at a path such as `.spec.replicas`.
fn put(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[part];
    }
    *place = value;
}
