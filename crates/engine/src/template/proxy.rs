//! The proxy that agents talk to the outside through.

use drover_api::addon::{AddOnDeploymentConfigSpec, ProxyConfig};
use serde_json::{Value, json};

/// The volume with the proxy's certificates.
pub(super) const VOLUME: &str = "proxy-ca-bundle";
/// Where that volume is mounted.
pub(super) const FOLDER: &str = "/managed/proxy-ca";
/// The file with the proxy's certificates.
const FILE: &str = "ca-bundle.crt";

/// Something that is not a list of certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoCertificates;

/// The certificates that the proxy is checked against, if there are any.
pub(super) fn certificates(settings: &AddOnDeploymentConfigSpec) -> Result<Option<&str>, NoCertificates> {
    let bundle = settings.proxy_config.as_ref().and_then(|proxy| proxy.ca_bundle.as_ref());
    let Some(bundle) = bundle.filter(|bundle| !bundle.0.is_empty()) else { return Ok(None) };
    let text = str::from_utf8(&bundle.0).map_err(|_| NoCertificates)?;
    let (begins, ends) = (text.find("-----BEGIN CERTIFICATE-----"), text.rfind("-----END CERTIFICATE-----"));
    let is_pem = begins.zip(ends).is_some_and(|(begins, ends)| begins < ends);
    is_pem.then_some(Some(text)).ok_or(NoCertificates)
}

/// The variables that tell programs which proxy to use. Not all programs read the same ones.
pub(super) fn environment(proxy: &ProxyConfig) -> Vec<(&'static str, &str)> {
    let set = |value: &'_ Option<String>| value.as_deref().is_some_and(|value| !value.is_empty());
    let uses_proxy = set(&proxy.http_proxy) || set(&proxy.https_proxy);
    let pairs = [
        (["HTTP_PROXY", "http_proxy"], &proxy.http_proxy),
        (["HTTPS_PROXY", "https_proxy"], &proxy.https_proxy),
        (["NO_PROXY", "no_proxy"], &proxy.no_proxy),
    ];
    let pairs = pairs.into_iter().filter(|(_, value)| uses_proxy && set(value));
    pairs.flat_map(|(names, value)| names.map(|name| (name, value.as_deref().unwrap_or_default()))).collect()
}

/// The variable that tells programs where the proxy's certificates are.
pub(super) fn certificates_variable() -> (&'static str, String) {
    ("CA_BUNDLE_FILE_PATH", format!("{FOLDER}/{FILE}"))
}

/// The name of the ConfigMap that brings the certificates to the cluster.
pub(super) fn config_map_name(addon: &str) -> String {
    format!("{addon}-proxy-ca")
}

/// The ConfigMap that brings the certificates to the cluster.
pub(super) fn config_map(addon: &str, namespace: &str, certificates: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": config_map_name(addon), "namespace": namespace },
        "data": { FILE: certificates },
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    fn with_bundle(bytes: &[u8]) -> AddOnDeploymentConfigSpec {
        let proxy = ProxyConfig { ca_bundle: Some(ByteString(bytes.to_vec())), ..ProxyConfig::default() };
        AddOnDeploymentConfigSpec { proxy_config: Some(proxy), ..AddOnDeploymentConfigSpec::default() }
    }

    #[test]
    fn programs_find_the_proxy_under_both_spellings() {
        let text = |value: &str| Some(value.to_owned());
        let proxy = ProxyConfig { http_proxy: text("http://p"), no_proxy: text("local"), ..ProxyConfig::default() };
        let expected =
            [("HTTP_PROXY", "http://p"), ("http_proxy", "http://p"), ("NO_PROXY", "local"), ("no_proxy", "local")];
        assert_eq!(environment(&proxy), expected);
        let proxy = ProxyConfig { https_proxy: text("p"), http_proxy: text(""), ..ProxyConfig::default() };
        assert_eq!(environment(&proxy), [("HTTPS_PROXY", "p"), ("https_proxy", "p")]);
    }

    #[test]
    fn exceptions_from_no_proxy_say_nothing() {
        let proxy = ProxyConfig { no_proxy: Some("local".to_owned()), ..ProxyConfig::default() };
        assert_eq!(environment(&proxy), []);
    }

    #[test]
    fn certificates_are_a_text_in_pem() {
        let pem = "# ours\n-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
        assert_eq!(certificates(&with_bundle(pem.as_bytes())), Ok(Some(pem)));
        assert_eq!(certificates(&with_bundle(b"")), Ok(None));
        assert_eq!(certificates(&AddOnDeploymentConfigSpec::default()), Ok(None));
        for other in [&b"LS0tLS1CRUdJTg=="[..], b"\xff\xfe", b"-----END CERTIFICATE----------BEGIN CERTIFICATE-----"] {
            assert_eq!(certificates(&with_bundle(other)), Err(NoCertificates));
        }
    }
}
