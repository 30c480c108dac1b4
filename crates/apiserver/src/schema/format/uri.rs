//! Addresses as they stand in requests: with a scheme, or beginning with a slash.

pub(crate) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((has_scheme, rest)) = split_scheme(text) else { return false };
    let rest = rest.split('?').next().unwrap_or_default();
    if !rest.starts_with('/') {
        return has_scheme;
    }
    match rest.strip_prefix("//").filter(|_| has_scheme) {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            is_authority(authority) && has_sound_escapes(path)
        }
        None => has_sound_escapes(rest),
    }
}

/// Whether there is a scheme, and what follows; nothing where what should be one is none.
fn split_scheme(text: &str) -> Option<(bool, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
    let starts_with_letter = text.starts_with(|c: char| c.is_ascii_alphabetic());
    match end.map(|end| (end, &text[end..])) {
        Some((0, rest)) if rest.starts_with(':') => None,
        Some((end, rest)) if rest.starts_with(':') && starts_with_letter => Some((true, &text[end + 1..])),
        _ => Some((false, text)),
    }
}

fn is_authority(authority: &str) -> bool {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, port)) => (name, port),
            None => return false,
        },
        None => host.split_at(host.rfind(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| {
        port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
    };
    is_port(port) && !name.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}']) && has_sound_escapes(name)
}

/// Whether every percent sign has its two digits.
fn has_sound_escapes(text: &str) -> bool {
    let is_sound = |part: &str| part.len() >= 2 && part.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    text.split('%').skip(1).all(is_sound)
}
