//! What a request asks for, read from its address.

use std::{collections::BTreeMap, fmt};

use crate::failure::Failure;

/// What an address names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Objects.
    Objects(Place),
    /// Something that the server says about itself, or nothing that there is.
    Path(Vec<String>),
}

/// Where objects are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The namespace, if the address names one.
    pub namespace: Option<String>,
    /// The name of the kind in addresses, such as `configmaps`.
    pub plural: String,
    /// The object's name, if the address names one.
    pub name: Option<String>,
    /// The part of the object, if the address names one, such as `status`.
    pub subresource: Option<String>,
    /// Whether the address itself says that objects are watched, as was usual before the parameter `watch`.
    pub is_watch: bool,
}

impl Target {
    /// Reads the path of an address.
    #[must_use]
    pub fn read(path: &str) -> Self {
        let path = decoded(path);
        let path = path.trim_start_matches('/');
        let path = path.strip_suffix('/').unwrap_or(path);
        let parts: Vec<_> = if path.is_empty() { Vec::new() } else { path.split('/').map(str::to_owned).collect() };
        let texts: Vec<_> = parts.iter().map(String::as_str).collect();
        let place = match *texts.as_slice() {
            ["api", version, ref rest @ ..] => Place::read("", version, rest),
            ["apis", group, version, ref rest @ ..] => Place::read(group, version, rest),
            _ => None,
        };
        place.map_or(Self::Path(parts), Self::Objects)
    }
}

impl Place {
    fn read(group: &str, version: &str, rest: &[&str]) -> Option<Self> {
        let (is_watch, rest) = match *rest {
            ["watch", ref rest @ ..] => (true, rest),
            _ => (false, rest),
        };
        let (namespace, rest) = match *rest {
            // A namespace itself, or a part of it.
            ["namespaces"] | ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, ref rest @ ..] => (Some(namespace.to_owned()), rest),
            _ => (None, rest),
        };
        let (plural, name, subresource) = match *rest {
            [plural] => (plural, None, None),
            [plural, name] => (plural, Some(name), None),
            [plural, name, subresource] => (plural, Some(name), Some(subresource)),
            _ => return None,
        };
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace,
            plural: plural.to_owned(),
            name: name.map(str::to_owned),
            subresource: subresource.map(str::to_owned),
            is_watch,
        })
    }
}

/// A text of an address with its escapes undone. What can not be undone stays.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = escaped.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// What the question mark of an address brings. Of several of one name the first counts, where only one is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    /// Reads what follows the question mark.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut fields = BTreeMap::<_, Vec<_>>::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let plain = |text: &str| decoded(&text.replace('+', " "));
            fields.entry(plain(name)).or_default().push(plain(value));
        }
        Self(fields)
    }

    /// What is said under a name; nothing where that is empty.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).first().map(String::as_str).filter(|text| !text.is_empty())
    }

    /// All that is said under a name, even if it is empty.
    #[must_use]
    pub fn texts(&self, name: &str) -> &[String] {
        self.0.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether something is asked for. As in Go, nearly everything that is said means that it is.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.texts(name)
            .first()
            .is_some_and(|text| !matches!(text.as_str(), "false" | "0" | "F" | "f" | "False" | "FALSE"))
    }

    /// A number.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Failure>
    where
        T::Err: fmt::Display,
    {
        let Some(text) = self.text(name) else { return Ok(None) };
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let problem = if is_number { "value out of range" } else { "invalid syntax" };
        let malformed = |_| Failure::bad_request(format!("strconv.ParseInt: parsing {text:?}: {problem}"));
        text.parse().map(Some).map_err(malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str) -> String {
        match Target::read(path) {
            Target::Path(parts) => format!("path {}", parts.join("|")),
            Target::Objects(Place { group, version, namespace, plural, name, subresource, is_watch }) => {
                let version = if is_watch { format!("{version} watch") } else { version };
                let parts = [Some(group), Some(version), namespace, Some(plural), name, subresource];
                parts.map(|part| part.unwrap_or_else(|| "-".to_owned())).join("|")
            }
        }
    }

    #[test]
    fn an_address_names_objects_or_something_else() {
        for (path, expected) in [
            ("/api/v1/configmaps", "|v1|-|configmaps|-|-"),
            ("/api/v1/namespaces/a/configmaps", "|v1|a|configmaps|-|-"),
            ("/api/v1/namespaces/a/configmaps/b", "|v1|a|configmaps|b|-"),
            ("/api/v1/namespaces", "|v1|-|namespaces|-|-"),
            ("/api/v1/namespaces/a", "|v1|-|namespaces|a|-"),
            ("/api/v1/namespaces/a/status", "|v1|-|namespaces|a|status"),
            ("/api/v1/namespaces/a/finalize", "|v1|-|namespaces|a|finalize"),
            ("/api/v1/namespaces/a/serviceaccounts/b/token", "|v1|a|serviceaccounts|b|token"),
            ("/apis/apps/v1/namespaces/a/deployments/b/status", "apps|v1|a|deployments|b|status"),
            ("/apis/x.io/v1/things/b", "x.io|v1|-|things|b|-"),
            ("/apis/rbac.io/v1/clusterroles/system%3Aadmin", "rbac.io|v1|-|clusterroles|system:admin|-"),
            ("/api/v1/watch/namespaces/a/configmaps/b", "|v1 watch|a|configmaps|b|-"),
            ("/apis/x.io/v1/watch/things", "x.io|v1 watch|-|things|-|-"),
            ("/api/v1/watch", "path api|v1|watch"),
            ("/api", "path api"),
            ("/api/v1", "path api|v1"),
            ("/apis/apps/v1", "path apis|apps|v1"),
            ("/healthz", "path healthz"),
            ("/openapi/v3/apis/apps/v1", "path openapi|v3|apis|apps|v1"),
            ("/", "path "),
            ("/api/v1/namespaces/a/b/c/d/e", "path api|v1|namespaces|a|b|c|d|e"),
        ] {
            assert_eq!(place(path), expected, "{path}");
        }
    }

    #[test]
    fn escapes_are_undone_once_and_nonsense_stays() {
        assert_eq!(decoded("a%2Fb%252F"), "a/b%2F");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz%4"), "%zz%4");
        assert_eq!(place("/api/v1/namespaces/a/configmaps/b%2Fstatus"), "|v1|a|configmaps|b|status");
        assert_eq!(place("/api/v1//configmaps"), "|v1|-||configmaps|-");
        assert_eq!(decoded("%ff"), "\u{fffd}");
    }

    #[test]
    fn a_query_says_texts_flags_and_numbers() {
        let query = Query::read("&limit=500&watch=true&labelSelector=a%3Db%2Cc+in+(d)&dryRun=&force=false&pretty");
        assert_eq!(query.text("labelSelector"), Some("a=b,c in (d)"));
        assert_eq!((query.text("dryRun"), query.text("none")), (None, None));
        assert_eq!((query.flag("watch"), query.flag("force"), query.flag("pretty")), (true, false, true));
        assert_eq!(query.number::<u64>("limit"), Ok(Some(500)));
        assert_eq!(Query::read("limit=ten").number::<u64>("limit").map_err(|failure| failure.code), Err(400));
        assert_eq!(Query::read("limit=1&limit=2").number::<u64>("limit"), Ok(Some(1)));
    }
}
