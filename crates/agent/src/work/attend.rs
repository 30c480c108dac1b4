//! One look at a work: its objects are read, brought to what the manifests say, and what is seen is noted.

use std::{collections::BTreeMap, sync::Arc};

use drover_api::{
    names::WORK_APPLIED,
    work::{AppliedManifestWork, AppliedResource, ManifestResourceMeta, ManifestWork},
};
use drover_engine::{
    plan::WriteResult,
    work::{
        Applied, Fact, Fate, Flaw, Former, Known, Located, Manifest, Moment, Options, Owner, Presence, Rules, Step,
        Strategy, Target, Wanted, applied_resources, apply_order, before_applying, digest, entry, fate, is_complete,
        is_manifest_complete, leftovers, options, unseen,
    },
};
use drover_runtime::{cache::SharedCache, clock::Clock};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DynamicObject, Patch},
    core::Status,
};
use serde_json::{Value, json};
use tracing::debug;

use super::{
    course::Piece,
    executor,
    kinds::{self, Kind, NotLocated},
    object::{Place, changing, read, send},
    outcome::{Outcome, Retry, Seen, text},
    packed::unpack,
    remove::remove_in_turn,
    site::Site,
};

/// How often somebody else may be faster before a manifest is left for later.
const ATTEMPTS: usize = 5;

/// One look at one state of a work.
pub(super) struct Attendance {
    pub(super) managed: Client,
    pub(super) site: SharedCache<Site>,
    pub(super) clock: Clock,
    pub(super) work: Arc<ManifestWork>,
    pub(super) applied: Arc<AppliedManifestWork>,
}

/// A manifest of the work, and how far it is.
struct Item {
    ordinal: usize,
    read: Result<Manifest, Flaw>,
    piece: Piece,
}

impl Attendance {
    /// Looks at everything that is due. What goes wrong with one manifest holds up no other; the error is that the cluster did not answer at all.
    pub(super) async fn attend(&self) -> Result<(), kube::Error> {
        let mut items = self.due();
        apply_order(&mut items, |item| item.read.as_ref().ok());
        let targets = self.locate(&items).await?;
        self.watch_for(&targets);
        self.record_intent(&items, &targets).await?;
        for item in &items {
            let target = targets.get(&item.ordinal);
            let outcome = self.attend_item(item, target).await?;
            self.note(item, target.and_then(|target| target.as_ref().ok()), &outcome);
        }
        self.clear().await
    }

    /// The manifests that are to be looked at.
    fn due(&self) -> Vec<Item> {
        let site = self.site.read();
        let Some(course) = site.course(&self.work.name_any()).filter(|course| course.is_of(&self.work)) else {
            return Vec::new();
        };
        let manifests = self.work.spec.manifests().iter().zip(&course.pieces).enumerate();
        let due = manifests.filter(|(_, (_, piece))| piece.is_due(self.clock.now()));
        due.map(|(ordinal, (object, piece))| Item {
            ordinal,
            read: Manifest::read(ordinal, &unpack(object)),
            piece: piece.clone(),
        })
        .collect()
    }

    fn generation(&self) -> i64 {
        self.work.metadata.generation.unwrap_or_default()
    }

    fn owner(&self) -> Owner {
        Owner { name: self.applied.name_any(), uid: self.applied.uid().unwrap_or_default() }
    }

    fn recorded(&self) -> Vec<AppliedResource> {
        let site = self.site.read();
        let applied = site.applied.get(&site.applied_key(&self.work.name_any()));
        applied
            .and_then(|applied| applied.status.as_ref())
            .map(|status| status.applied_resources.clone())
            .unwrap_or_default()
    }

    /// Finds out where the objects are, as far as the cluster serves them.
    async fn locate(&self, items: &[Item]) -> Result<BTreeMap<usize, Result<Target, NotApplied>>, kube::Error> {
        let mut targets = BTreeMap::new();
        for item in items {
            let Ok(manifest) = &item.read else { continue };
            let target = match self.located(manifest).await {
                Ok(located) => manifest.locate(&located).map_err(NotApplied::Flaw),
                Err(NotLocated::Unanswered(error)) if !matches!(error, kube::Error::Api(_)) => return Err(error),
                Err(error) => Err(NotApplied::NotLocated(error)),
            };
            targets.insert(item.ordinal, target);
        }
        Ok(targets)
    }

    /// Has objects be watched from before they are written, so that nothing is missed of what becomes of them.
    fn watch_for(&self, targets: &BTreeMap<usize, Result<Target, NotApplied>>) {
        self.site.update(|site, queues| {
            site.progress(&self.work, queues, |course| {
                for (ordinal, target) in targets {
                    if let (Some(piece), Ok(target)) = (course.pieces.get_mut(*ordinal), target) {
                        piece.place = Some(Place::of(target));
                    }
                }
            });
            site.index(&self.work.name_any());
        });
    }

    async fn located(&self, manifest: &Manifest) -> Result<Located, NotLocated> {
        let kind = Kind::of(manifest);
        if let Some(located) = self.site.read().kinds.get(&kind) {
            return Ok(located.clone());
        }
        let located = kinds::locate(&self.managed, &kind).await?;
        self.site.update(|site, _| site.kinds.note(kind, located.clone()));
        Ok(located)
    }

    /// Records what is about to be applied, before it is.
    async fn record_intent(
        &self,
        items: &[Item],
        targets: &BTreeMap<usize, Result<Target, NotApplied>>,
    ) -> Result<(), kube::Error> {
        let is_written = |target: &&Target| !matches!(self.options(target).strategy, Strategy::ReadOnly);
        let located = items.iter().filter_map(|item| targets.get(&item.ordinal)?.as_ref().ok());
        let metas = located.filter(is_written).map(Target::resource_meta);
        match before_applying(&self.recorded(), metas).filter(|_| !is_complete(&self.work)) {
            Some(resources) => self.record(resources).await,
            None => Ok(()),
        }
    }

    async fn record(&self, resources: Vec<AppliedResource>) -> Result<(), kube::Error> {
        if resources == self.recorded() {
            Ok(())
        } else {
            record(&self.managed, &self.site, &self.applied.name_any(), &resources).await
        }
    }

    fn options(&self, target: &Target) -> Options<'_> {
        options(&self.work.spec.manifest_configs, target)
    }

    async fn attend_item(
        &self,
        item: &Item,
        target: Option<&Result<Target, NotApplied>>,
    ) -> Result<Outcome, kube::Error> {
        match (&item.read, target) {
            (Err(flaw), _) => Ok(Outcome::failed(flaw)),
            (Ok(_), Some(Ok(target))) => self.apply(item, target).await,
            (Ok(manifest), Some(Err(NotApplied::NotLocated(error)))) => {
                let is_early = self.defines(manifest) && item.piece.may_be_establishing(self.clock.now());
                let retry = if is_early { Retry::Establishing } else { Retry::Backoff };
                Ok(Outcome { retry, ..Outcome::failed(error) })
            }
            (Ok(_), Some(Err(error))) => Ok(Outcome::failed(error)),
            (Ok(_), None) => Ok(Outcome::failed(&"it could not be found out where its kind is served")),
        }
    }

    /// Whether the work itself defines the kind of one of its manifests.
    fn defines(&self, manifest: &Manifest) -> bool {
        self.work.spec.manifests().iter().map(unpack).any(|other| {
            let is = |pointer: &str, text: &str| other.pointer(pointer).and_then(Value::as_str) == Some(text);
            is("/kind", "CustomResourceDefinition")
                && is("/spec/group", &manifest.group)
                && is("/spec/names/kind", &manifest.kind)
        })
    }

    /// Brings one object to what its manifest says.
    async fn apply(&self, item: &Item, target: &Target) -> Result<Outcome, kube::Error> {
        let place = Place::of(target);
        let api = place.api(self.managed.clone());
        let is_over =
            is_complete(&self.work) || is_manifest_complete(self.work.status.as_ref(), &target.resource_meta());
        if is_over {
            return Ok(Outcome { applied: Applied::Kept, ..Outcome::seen(&api, &place).await? });
        }
        let options = self.options(target);
        let fate = fate(self.work.spec.delete_option.as_ref(), target);
        if let Some(denied) = self.denied(target, fate).await? {
            let seen = Outcome::seen(&api, &place).await?;
            return Ok(Outcome { applied: Applied::Failed(denied), retry: Retry::Rights, ..seen });
        }
        let wanted = Wanted { target, strategy: &options.strategy, owner: &self.owner(), fate };
        let mut known = item.piece.known.clone();
        for _ in 0..ATTEMPTS {
            let live = match read(&api, place.name()).await {
                Err(error) => return Outcome::refused(error),
                Ok(live) => live,
            };
            if is_another(live.as_ref(), &item.piece.presence) {
                known = Known::New;
            }
            match self.settle(&wanted, live, &known, &api, place.name()).await {
                Ok(outcome) => return Ok(outcome),
                // Somebody else was faster: what is there now is looked at.
                Err(kube::Error::Api(status)) if was_faster(&status) => debug!(%place, "somebody else was faster"),
                // A repair that is not possible may be so where the manifest was changed besides.
                Err(kube::Error::Api(status)) if status.code == 422 && known != Known::New => known = Known::New,
                Err(error) => {
                    let Outcome { applied, .. } = Outcome::refused(error)?;
                    return Ok(Outcome { applied, retry: Retry::Backoff, ..Outcome::seen(&api, &place).await? });
                }
            }
        }
        Ok(Outcome { retry: Retry::Backoff, ..Outcome::failed(&"somebody else changes the object all the time") })
    }

    /// Why the account in whose name the work is applied may not write an object, if there is one and it may not.
    async fn denied(&self, target: &Target, fate: Fate) -> Result<Option<String>, kube::Error> {
        let Some(executor) = &self.work.spec.executor else { return Ok(None) };
        match executor::check(&self.managed, &self.site, executor, (target, fate), self.clock.now()).await {
            Ok(allowed) => Ok(allowed.err()),
            // What can not be tried in its name is not done in another's.
            Err(kube::Error::Api(status)) => {
                Ok(Some(format!("it could not be found out whether the account may apply it: {}", status.message)))
            }
            Err(error) => Err(error),
        }
    }

    /// Takes the step that leads from one state of an object to what is wanted.
    async fn settle(
        &self,
        wanted: &Wanted<'_>,
        live: Option<Value>,
        known: &Known,
        api: &Api<DynamicObject>,
        name: &str,
    ) -> Result<Outcome, kube::Error> {
        let step = match wanted.step(live.as_ref(), known) {
            Ok(step) => step,
            Err(error) => {
                let applied = Applied::IgnoreFields(error.to_string());
                return Ok(Outcome { applied, seen: Seen::of(live), retry: Retry::Backoff, is_repair: false });
            }
        };
        let is_applied = matches!(step, Step::Apply { .. });
        let is_repair = step != Step::Nothing && *known != Known::New;
        let mut live = send(api, name, step).await?.or(live);
        // The owner is not part of what is applied.
        if let Some(answer) = live.as_ref().filter(|_| is_applied) {
            live = send(api, name, wanted.owners(answer)).await?.or(live);
        }
        Ok(Outcome { applied: Applied::Done, seen: Seen::of(live), retry: Retry::No, is_repair })
    }

    /// Notes what came of a manifest.
    fn note(&self, item: &Item, target: Option<&Target>, outcome: &Outcome) {
        let meta = match (&item.read, target) {
            (_, Some(target)) => target.resource_meta(),
            _ => item.piece.meta.clone(),
        };
        let moment = self.moment();
        let rules = target.map(|target| Rules::compile(self.options(target).conditions)).unwrap_or_default();
        let feedback = target.map(|target| self.options(target).feedback).unwrap_or_default();
        let (applied, sight) = (outcome.applied.clone(), outcome.seen.sight());
        let fact = Fact { meta: meta.clone(), applied, sight, feedback, rules: &rules };
        let said = (outcome.retry != Retry::Establishing).then(|| entry(self.former(&item.piece), &fact, &moment));
        let now = moment.now;
        let work = self.work.name_any();
        self.site.update(|site, queues| {
            site.progress(&self.work, queues, |course| {
                let Some(piece) = course.pieces.get_mut(item.ordinal) else { return };
                piece.meta = meta;
                piece.place = target.map(Place::of);
                piece.presence = outcome.seen.presence();
                piece.see(outcome.seen.version(), &item.piece);
                if outcome.applied == Applied::Done
                    && let Seen::Live(live) = &outcome.seen
                {
                    piece.known = Known::Written { settled: Some(digest(live)) };
                }
                if said.is_some() {
                    piece.entry = said;
                }
                if outcome.is_repair {
                    piece.repaired(now);
                }
                match outcome.retry {
                    Retry::No => piece.succeed(),
                    retry => piece.fail(now, retry.rest()),
                }
            });
            site.index(&work);
        });
    }

    fn moment(&self) -> Moment {
        let raw_json = self.site.read().settings.raw_json;
        Moment { generation: self.generation(), now: self.clock.now(), raw_json }
    }

    /// What was last said of a manifest: by this agent, or, as long as it has said nothing, by what the hub has.
    fn former<'a>(&'a self, piece: &'a Piece) -> Former<'a> {
        match &piece.entry {
            Some(entry) => Former::Entry(entry),
            None => Former::Status(self.work.status.as_ref()),
        }
    }

    /// Removes what the work has no manifests for any more, and records what is there now.
    async fn clear(&self) -> Result<(), kube::Error> {
        let work = self.work.name_any();
        let Some(seen) = self.seen(&work) else { return Ok(()) };
        let recorded = self.recorded();
        let hub_has_applied = self
            .work
            .status
            .as_ref()
            .is_some_and(|status| status.conditions.iter().any(|condition| condition.type_ == WORK_APPLIED));
        let may_remove = hub_has_applied && seen.iter().all(|(meta, _)| meta.name.is_some());
        let left = leftovers(&recorded, &seen, hub_has_applied);
        let option = self.work.spec.delete_option.as_ref();
        let left = remove_in_turn(&self.managed, left, &self.owner(), option).await?;
        let kept = if may_remove { left } else { unseen(&recorded, &seen) };
        self.record(applied_resources(&recorded, &seen, &kept)).await?;
        let now = self.clock.now();
        // What may not be removed yet, because the hub has to be told first, is looked at again.
        let is_cleared = kept.is_empty();
        self.site.update(|site, queues| {
            site.progress(&self.work, queues, |course| course.leftovers.note(is_cleared, now));
            site.index(&work);
        });
        Ok(())
    }

    /// What was seen of all manifests; nothing if the work has changed meanwhile.
    fn seen(&self, work: &str) -> Option<Vec<(ManifestResourceMeta, Presence)>> {
        let site = self.site.read();
        let course = site.course(work).filter(|course| course.is_of(&self.work))?;
        Some(course.pieces.iter().map(|piece| (piece.meta.clone(), piece.presence.clone())).collect())
    }
}

/// Why a manifest was not even sent.
#[derive(Debug, thiserror::Error)]
enum NotApplied {
    #[error(transparent)]
    Flaw(Flaw),
    #[error(transparent)]
    NotLocated(NotLocated),
}

/// Whether somebody else has changed the object meanwhile. That somebody else owns fields of it is another matter: it will be so the next time.
fn was_faster(status: &Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    let owns = causes.any(|cause| cause.reason == "FieldManagerConflict");
    match WriteResult::of(status) {
        WriteResult::Exists(_) => true,
        WriteResult::Conflict => !owns,
        _ => false,
    }
}

/// Whether the object is another than the one that was written.
fn is_another(live: Option<&Value>, presence: &Presence) -> bool {
    matches!((live, presence), (Some(live), Presence::There { uid }) if text(live, "/metadata/uid") != uid)
}

/// Writes down which objects a work has on the cluster.
pub(super) async fn record(
    managed: &Client,
    site: &SharedCache<Site>,
    name: &str,
    resources: &[AppliedResource],
) -> Result<(), kube::Error> {
    let patch = Patch::Merge(json!({ "status": { "appliedResources": resources } }));
    let api = Api::<AppliedManifestWork>::all(managed.clone());
    let mut written = api.patch_status(name, &changing(), &patch).await?;
    written.metadata.managed_fields = None;
    site.apply(written);
    Ok(())
}
