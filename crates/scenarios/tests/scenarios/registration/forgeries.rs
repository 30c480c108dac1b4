//! Requests that are not an add-on's agent's, however much they look like it: a table of them, each made by a real requester.

use std::{net::Ipv4Addr, time::Duration};

use drover_api::names::{ADDON_NAME_LABEL, CLUSTER_NAME_LABEL};
use drover_testkit::{World, play::Wish};
use kube::Client;
use serde_json::{Value, json};

use super::{Ground, Site, decision};

drover_testkit::scenarios! {
    Own { what_is_not_an_agents_own_is_denied }
}

/// Signers that the hub has been granted: one that the add-on registers with, and one that it does not.
const OWN: &str = "example.com/own";
const OTHER: &str = "example.com/other";
/// One that it has not been granted.
const FOREIGN: &str = "example.com/foreign";

/// Who asks.
struct Cast {
    one: Client,
    ten: Client,
    bootstrap: Client,
    admin: Client,
    /// Somebody who is called like an agent of c1 with something behind it, and is in its group.
    longer: Client,
    /// Somebody who is called like the agent of c1, and is not in its group.
    groupless: Client,
}

impl Cast {
    async fn assemble(site: &Site) -> Self {
        let (one, ten) = (site.join("c1").await, site.join("c10").await);
        let (world, bootstrappers) = (site.world(), "system:bootstrappers:managedcluster");
        let agents = "system:open-cluster-management:c1";
        Self {
            one: one.client(),
            ten: ten.client(),
            bootstrap: world.certified("system:bootstrap:drover", &[bootstrappers]).await,
            admin: world.client(),
            longer: world.certified(&format!("{agents}:agent:more"), &[agents, bootstrappers]).await,
            groupless: world.certified(&format!("{agents}:agent"), &[bootstrappers]).await,
        }
    }
}

/// A request, who makes it, and what the denial says; nothing if the hub does not decide on it.
struct Row<'a> {
    what: &'static str,
    who: &'a Client,
    wish: Wish,
    denial: Option<&'static str>,
}

/// What agents are to ask for.
struct Honest {
    /// c1's add-on with the hub, and with its own signer.
    one: Wish,
    one_custom: Wish,
    /// c10's with the hub.
    ten: Wish,
}

fn registration() -> Value {
    json!([
        { "type": "KubeClient", "kubeClient": {} },
        { "type": "CustomSigner", "customSigner": {
            "signerName": OWN,
            "subject": { "user": "user1", "groups": ["g1", "g2"], "organizationUnit": ["o1"] },
            "signingCA": { "name": "ca-secret" },
        } },
    ])
}

/// Shorthand for a row that is denied.
fn denied<'a>(what: &'static str, who: &'a Client, wish: Wish, denial: &'static str) -> Row<'a> {
    Row { what, who, wish, denial: Some(denial) }
}

fn rows<'a>(cast: &'a Cast, honest: &Honest) -> Vec<Row<'a>> {
    let mut rows = of_strangers(cast, honest);
    rows.extend(of_the_agent(&cast.one, honest));
    rows.extend(undecided(&cast.one, honest));
    rows
}

/// What somebody asks for who is not the cluster's agent.
fn of_strangers<'a>(cast: &'a Cast, honest: &Honest) -> Vec<Row<'a>> {
    let (one, ten) = (|| honest.one.clone(), || honest.ten.clone());
    let (not_of_one, not_of_ten) = ("is no agent of the cluster c1:", "is no agent of the cluster c10:");
    let relabelled = ten().labelled(CLUSTER_NAME_LABEL, "c1");
    vec![
        denied("c1 asks as c10", &cast.one, ten(), not_of_ten),
        denied("c10 asks as c1", &cast.ten, one(), not_of_one),
        denied("c10 asks for itself under the label of c1", &cast.ten, relabelled, not_of_one),
        denied("c10 asks as c1 of its own signer", &cast.ten, honest.one_custom.clone(), not_of_one),
        denied("somebody who brings clusters in asks", &cast.bootstrap, one(), not_of_one),
        denied("an administrator asks", &cast.admin, one(), not_of_one),
        denied("an administrator asks of its own signer", &cast.admin, honest.one_custom.clone(), not_of_one),
        denied("whose name goes on after an agent's asks", &cast.longer, one(), not_of_one),
        denied("who is not in the cluster's group asks", &cast.groupless, one(), not_of_one),
    ]
}

/// What the cluster's agent asks for that is not its add-on's.
fn of_the_agent<'a>(agent: &'a Client, honest: &Honest) -> Vec<Row<'a>> {
    let (one, custom) = (|| honest.one.clone(), || honest.one_custom.clone());
    let (name, groups, units) = ("exactly one common name", "the organisations in the subject", "organisational units");
    let (usages, cluster) =
        ("certificate is for client auth", Wish::of_cluster("c10").labelled(CLUSTER_NAME_LABEL, "c1"));
    let extensions = "asks for extensions, such as alternative names";
    let row = |what, wish, denial| denied(what, agent, wish, denial);
    vec![
        row(
            "the group of all agents too",
            one().also_in_group("system:open-cluster-management:managed-clusters"),
            groups,
        ),
        row("the group of everybody too", one().also_in_group("system:authenticated"), groups),
        row("the group of nodes too", one().also_in_group("system:nodes"), groups),
        row("no group", one().in_groups::<&str>(&[]), groups),
        row("without the cluster's group", one().in_groups(&one().groups()[1..]), groups),
        row("without the add-on's group", one().in_groups(&one().groups()[..1]), groups),
        row("the groups of c10", one().in_groups(honest.ten.groups()), groups),
        row("a unit", one().in_units(&["o1"]), units),
        row("the name of an administrator", one().called("kubernetes-admin"), name),
        row("the name of another add-on's agent", one().called(&user("c1", "other")), name),
        row("the name of c10's agent", one().called(&user("c10", "hello")), name),
        row("the agent of another cluster", cluster.labelled(ADDON_NAME_LABEL, "hello"), name),
        row("for servers", one().used_for(&["digital signature", "key encipherment", "server auth"]), usages),
        row("for servers too", one().used_for(&["client auth", "server auth"]), usages),
        row("for signing", one().used_for(&["client auth", "cert sign"]), usages),
        row("for no clients", one().used_for(&["digital signature"]), usages),
        row("for a second host", one().for_host("kubernetes.default.svc"), extensions),
        row("for another host", one().for_no_host().for_host("kubernetes.default.svc"), extensions),
        row("for the host of another add-on", one().for_no_host().for_host(&host("other")), extensions),
        row("for its host twice", one().for_host(&host("hello")), extensions),
        row("for an address too", one().for_address(Ipv4Addr::LOCALHOST), extensions),
        row("for an address", one().for_no_host().for_address(Ipv4Addr::LOCALHOST), extensions),
        row("for its host as a server", one().for_server(), extensions),
        row("for a server", one().for_no_host().for_server(), extensions),
        row(
            "of a signer that is not the add-on's",
            one().signed_by(OTHER),
            "register with the signer example.com/other",
        ),
        row("of its own signer, the hub's client", one().signed_by(OWN), name),
        row("of the hub, its own signer's client", custom().signed_by("kubernetes.io/kube-apiserver-client"), name),
        row("of its own signer, another name", custom().called("user2"), name),
        row("of its own signer, a group less", custom().in_groups(&["g1"]), groups),
        row("of its own signer, a group more", custom().also_in_group("g3"), groups),
        row("of its own signer, no unit", custom().in_units(&[]), units),
        row("of its own signer, another unit", custom().in_units(&["o1", "o2"]), units),
        row("of its own signer, for servers too", custom().used_for(&["client auth", "server auth"]), usages),
        row("of its own signer, for a host too", custom().for_host("example.com"), extensions),
    ]
}

/// What nobody has asked the hub to decide on, or it may not.
fn undecided<'a>(agent: &'a Client, honest: &Honest) -> Vec<Row<'a>> {
    let row = |what, wish| Row { what, who: agent, wish, denial: None };
    vec![
        row("of a signer that is not the hub's", honest.one.clone().signed_by(FOREIGN)),
        row("of the signer for nodes", honest.one.clone().signed_by("kubernetes.io/kube-apiserver-client-kubelet")),
        row("for an add-on that is not there", honest.one.clone().labelled(ADDON_NAME_LABEL, "none")),
    ]
}

/// The host that OCM's agents name in requests for an add-on.
fn host(addon: &str) -> String {
    format!("{addon}.addon.open-cluster-management.io")
}

fn user(cluster: &str, addon: &str) -> String {
    format!("system:open-cluster-management:cluster:{cluster}:addon:{addon}:agent:{addon}-agent")
}

async fn what_is_not_an_agents_own_is_denied(world: World) {
    let ground = Ground::prepare(world).await;
    ground.grant_signers("signers", &[OWN, OTHER]).await;
    let site = ground.start().await;
    let cast = Cast::assemble(&site).await;
    site.deploy("hello", registration(), &["c1", "c10"]).await;
    let honest = {
        let (one, ten) = (site.registrations("c1", "hello").await, site.registrations("c10", "hello").await);
        Honest {
            one: Wish::of_addon("c1", "hello", &one[0]),
            one_custom: Wish::of_addon("c1", "hello", &one[1]),
            ten: Wish::of_addon("c10", "hello", &ten[0]),
        }
    };
    let rows = rows(&cast, &honest);
    let mut asked = Vec::new();
    for row in &rows {
        asked.push(site.ask(row.who, &row.wish).await);
    }

    let mut complaints = Vec::new();
    for (row, asked) in rows.iter().zip(&asked) {
        let Some(denial) = row.denial else { continue };
        let (type_, reason, message) = site.decided(asked.name()).await;
        if (&*type_, &*reason) != ("Denied", "NotAnAddOnsRequest") || !message.contains(denial) {
            complaints.push(format!("{}: {type_}, {reason}: {message}", row.what));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));

    // Those who ask for their own are not held up, and what came before theirs was attended to before. They need not name a host.
    let hostless = honest.one.clone().for_no_host();
    for (agent, wish) in [(&cast.one, &honest.one), (&cast.one, &hostless), (&cast.ten, &honest.ten)] {
        site.ask(agent, wish).await.certificate(site.world()).await;
    }
    for (row, asked) in rows.iter().zip(&asked) {
        let request = site.requests().get(asked.name()).await.expect("the request is there");
        let type_ = decision(&request).map(|(type_, ..)| type_);
        assert_eq!(type_.as_deref(), row.denial.map(|_| "Denied"), "{}", row.what);
        let certificate = request.status.and_then(|status| status.certificate);
        assert_eq!(certificate, None, "{}", row.what);
    }

    // What the hub could not deny for want of a right, it denies when it has it.
    let foreign = rows.iter().zip(&asked).find(|(row, _)| row.what == "of a signer that is not the hub's");
    let (_, foreign) = foreign.expect("there is such a row");
    site.ground.grant_signers("more-signers", &[FOREIGN]).await;
    site.clock.advance(Duration::from_mins(10));
    let (type_, _, message) = site.later(site.decided(foreign.name())).await;
    assert!(type_ == "Denied" && message.contains("register with the signer example.com/foreign"), "{message}");
    site.hub.stop().await;
}
