//! Where the versions are kept that operators are upgraded to, so that whoever goes on after a restart goes for the same; and where the operators are, for
//! whoever watches from elsewhere.

use std::{collections::BTreeMap, str::FromStr};

use anyhow::Context as _;
use drover_api::cluster::OperatorRef;
use drover_engine::upgrade::{approval::Targets, operator_work::REPORT};
use drover_runtime::clock::Clock;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{PAUSE, announce};

/// The key of the ConfigMap under which the versions are.
const TARGETS: &str = "targets";

/// An operator, as it stands in the ConfigMap.
#[derive(Debug, Serialize, Deserialize)]
struct OperatorTarget {
    #[serde(flatten)]
    operator: OperatorRef,
    /// The version that it is upgraded to, and not beyond.
    version: String,
}

/// The namespace and the name of the ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordName {
    namespace: String,
    name: String,
}

/// A text that names no ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InvalidRecord(String);

impl std::error::Error for InvalidRecord {}

impl std::fmt::Display for InvalidRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} names no ConfigMap: write its namespace and name, such as default/approved-operators", self.0)
    }
}

impl FromStr for RecordName {
    type Err = InvalidRecord;

    fn from_str(text: &str) -> Result<Self, InvalidRecord> {
        let parts = text.split_once('/').filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty());
        let (namespace, name) =
            parts.filter(|(_, name)| !name.contains('/')).ok_or_else(|| InvalidRecord(text.to_owned()))?;
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

/// The ConfigMap. The versions in it are written once and never changed.
pub(super) struct Record {
    maps: Api<ConfigMap>,
    place: RecordName,
    clock: Clock,
}

impl Record {
    pub(super) fn new(client: &Client, place: &RecordName, clock: Clock) -> Self {
        Self { maps: Api::namespaced(client.clone(), &place.namespace), place: place.clone(), clock }
    }

    /// What was recorded, if anything was.
    pub(super) async fn read(&self) -> anyhow::Result<Option<Targets>> {
        self.get().await?.map_or(Ok(None), |map| self.targets(&map))
    }

    async fn get(&self) -> anyhow::Result<Option<ConfigMap>> {
        loop {
            match self.maps.get_opt(&self.place.name).await {
                Ok(map) => return Ok(map),
                Err(error) => self.rest(error).await.with_context(|| format!("could not read {}", self.name()))?,
            }
        }
    }

    /// Records versions, unless some are recorded already. Those that are in force are returned.
    pub(super) async fn make(&self, targets: Targets) -> anyhow::Result<Targets> {
        let data = BTreeMap::from([(TARGETS.to_owned(), written(&targets)?)]);
        loop {
            let stored = self.get().await?;
            if let Some(recorded) = stored.as_ref().map_or(Ok(None), |map| self.targets(map))? {
                return Ok(recorded);
            }
            match self.write(stored, &data).await {
                Ok(_) => return Ok(targets),
                // Whoever wrote it was here before us, or we were, and did not hear the answer.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => self.rest(error).await.with_context(|| {
                    format!(
                        "could not make {}, and approves nothing without: see that its namespace is there",
                        self.name()
                    )
                })?,
            }
        }
    }

    /// Writes into the map as it was found, or makes it.
    async fn write(&self, stored: Option<ConfigMap>, data: &BTreeMap<String, String>) -> kube::Result<ConfigMap> {
        let Some(stored) = stored else {
            let metadata = ObjectMeta { name: Some(self.place.name.clone()), ..ObjectMeta::default() };
            let map = ConfigMap { metadata, data: Some(data.clone()), ..ConfigMap::default() };
            return self.maps.create(&PostParams::default(), &map).await;
        };
        let patch = json!({ "metadata": { "resourceVersion": stored.metadata.resource_version }, "data": data });
        self.maps.patch(&self.place.name, &PatchParams::default(), &Patch::Merge(patch)).await
    }

    /// Says where the operators are.
    pub(super) async fn report(&self, text: &str) -> kube::Result<()> {
        let patch = Patch::Merge(json!({ "data": { (REPORT): text } }));
        self.maps.patch(&self.place.name, &PatchParams::default(), &patch).await.map(drop)
    }

    /// Waits for a better moment, if there may be one.
    async fn rest(&self, error: kube::Error) -> kube::Result<()> {
        let is_passing = match &error {
            kube::Error::Api(status) => status.code == 429 || status.code >= 500,
            _ => true,
        };
        if !is_passing {
            return Err(error);
        }
        announce(format_args!("the server did not answer for {}, and will be asked again: {error}", self.name()));
        self.clock.sleep(PAUSE).await;
        Ok(())
    }

    fn name(&self) -> String {
        format!("the ConfigMap {}/{}", self.place.namespace, self.place.name)
    }

    /// What a map holds, if anything was recorded in it.
    fn targets(&self, map: &ConfigMap) -> anyhow::Result<Option<Targets>> {
        let Some(text) = map.data.as_ref().and_then(|data| data.get(TARGETS)) else { return Ok(None) };
        let targets: Vec<OperatorTarget> = serde_json::from_str(text).with_context(|| {
            format!("{} does not hold what was recorded under `{TARGETS}`: delete it to begin anew", self.name())
        })?;
        Ok(Some(targets.into_iter().map(|target| (target.operator, target.version)).collect()))
    }
}

/// Versions, as they stand in the ConfigMap.
fn written(targets: &Targets) -> serde_json::Result<String> {
    let target = |(operator, version): (&OperatorRef, &String)| OperatorTarget {
        operator: operator.clone(),
        version: version.clone(),
    };
    serde_json::to_string(&targets.iter().map(target).collect::<Vec<_>>())
}
