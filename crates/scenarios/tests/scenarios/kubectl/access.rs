//! Who somebody is, what he may do, and his credentials.

use drover_testkit::World;
use k8s_openapi::ByteString;
use serde_json::json;

use super::Desk;

drover_testkit::scenarios! {
    Shared {
        rights_are_told,
        people_are_told_who_they_are,
        a_token_says_whose_it_is,
        certificates_are_approved_and_denied,
    }
}

async fn rights_are_told(world: World) {
    let desk = Desk::new(world).await;
    desk.says("create serviceaccount robot").await;
    desk.says("create role reader --verb=get,list --resource=configmaps").await;
    desk.says(&format!("create rolebinding robots --role=reader --serviceaccount={}:robot", desk.namespace)).await;
    let robot = format!("system:serviceaccount:{}:robot", desk.namespace);

    assert_eq!(desk.says("auth can-i create deployments").await, "yes\n");
    assert_eq!(desk.says(&format!("auth can-i get configmaps --as={robot}")).await, "yes\n");
    // A no is no complaint, but no success either.
    let refused = desk.run(&format!("auth can-i delete configmaps --as={robot}"), &[]).await;
    assert_eq!((refused.failure(), refused.printed()), (String::new(), "no\n".to_owned()));
    let list = desk.says(&format!("auth can-i --list --as={robot}")).await;
    let rights = list.lines().find(|line| line.starts_with("configmaps ")).expect("its role is listed");
    assert_eq!(rights.split_whitespace().collect::<Vec<_>>(), ["configmaps", "[]", "[]", "[get", "list]"]);
    let refused = format!(
        "Error from server (Forbidden): secrets is forbidden: User \"{robot}\" cannot list resource \"secrets\" in API \
        group \"\" in the namespace \"{}\"\n",
        desk.namespace
    );
    assert_eq!(desk.complains(&format!("get secrets --as={robot}")).await, refused);
}

async fn people_are_told_who_they_are(world: World) {
    let desk = Desk::new(world).await;
    let own = desk.says("auth whoami -o jsonpath={.status.userInfo.groups}").await;
    assert_eq!(own, r#"["system:masters","system:authenticated"]"#);
    let other = desk.says("auth whoami --as=jane --as-group=people").await;
    assert_eq!(other, "ATTRIBUTE   VALUE\nUsername    jane\nGroups      [people system:authenticated]\n");
}

async fn a_token_says_whose_it_is(world: World) {
    let desk = Desk::new(world).await;
    desk.says("create serviceaccount robot").await;
    let token = desk.says("create token robot --duration=1h").await;
    let review =
        json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": token.trim() } });
    let answer = desk.feed("create -o jsonpath={.status.user.username} -f -", &review.to_string()).await.success();
    assert_eq!(answer, format!("system:serviceaccount:{}:robot", desk.namespace));
    let absent = desk.complains("create token nobody").await;
    assert_eq!(absent, "error: failed to create token: serviceaccounts \"nobody\" not found\n");
}

async fn certificates_are_approved_and_denied(world: World) {
    let desk = Desk::new(world).await;
    let request = ByteString(REQUEST.into());
    for (verb, past) in [("approve", "Approved"), ("deny", "Denied")] {
        let name = desk.world.unique("request");
        let object = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": { "name": name },
            "spec": { "request": request, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"] },
        });
        desk.feed("create -f -", &object.to_string()).await.success();
        let said = desk.says(&format!("certificate {verb} {name}")).await;
        let past_in_words = past.to_lowercase();
        assert_eq!(said, format!("certificatesigningrequest.certificates.k8s.io/{name} {past_in_words}\n"));
        let conditions = desk.says(&format!("get csr {name} -o jsonpath={{.status.conditions[*].type}}")).await;
        assert_eq!(conditions, past);
        if verb == "approve" {
            desk.says(&format!("wait csr {name} --for=jsonpath={{.status.certificate}} --timeout=60s")).await;
        }
        let state = desk.says(&format!("get csr {name} --no-headers")).await;
        let expected = if verb == "approve" { "Approved,Issued" } else { "Denied" };
        assert_eq!(state.split_whitespace().last(), Some(expected));
    }
}

/// A request for a client's certificate.
const REQUEST: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIHbMIGCAgEAMCAxDzANBgNVBAoMBnBlb3BsZTENMAsGA1UEAwwEamFuZTBZMBMG
ByqGSM49AgEGCCqGSM49AwEHA0IABEb1wiDXbK6YKHqlUoNRAh6FmkSAaH5l6fPq
2xZw1xt4ukemz1LKjrGfKjsuxnJR8BAZnoYA3mohozKlnvZiSYmgADAKBggqhkjO
PQQDAgNIADBFAiEA+txkYQay0I9UDrIf+LeL5FRiULQnhpOp58JoYA50eHwCIHyw
GRgFmI/U3KzyEcc45yNH0xD5m+xn2t0SSbeSJFm/
-----END CERTIFICATE REQUEST-----
";
