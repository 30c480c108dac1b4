//! The formats that texts can be said to have, each as strict or lax as in Kubernetes.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::LazyLock,
};

use regex::Regex;

mod duration;
mod number;
mod uri;

/// Decides whether a text has a format.
pub(crate) type Check = fn(&str) -> bool;

/// How a format is checked; nothing where the format is not known, and so means nothing. Hyphens in names do not count.
pub(crate) fn check_of(name: &str) -> Option<Check> {
    Some(match name.replace('-', "").as_str() {
        "bsonobjectid" => |text| text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "byte" => is_base64,
        "cidr" => is_cidr,
        "creditcard" => number::is_credit_card,
        "date" => is_date,
        "datetime" => is_date_time,
        "duration" => duration::is_duration,
        "email" => is_email,
        "hexcolor" => is_hex_color,
        "hostname" => is_hostname,
        "ipv4" => |text| text.contains('.') && is_ip(text),
        "ipv6" => |text| text.parse::<Ipv6Addr>().is_ok(),
        "isbn" => |text| number::is_isbn10(text) || number::is_isbn13(text),
        "isbn10" => number::is_isbn10,
        "isbn13" => number::is_isbn13,
        "k8slongname" => |text| text.len() <= 253 && text.split('.').all(is_name),
        "k8sshortname" => |text| text.len() <= 63 && is_name(text),
        "mac" => is_mac,
        "password" => |_| true,
        "rgbcolor" => |text| matches(&RGB_COLOR, text),
        "ssn" => |text| text.len() == 11 && matches(&SSN, text),
        "uri" => uri::is_request_uri,
        "uuid" => |text| matches(&UUID, text),
        "uuid3" => |text| matches(&UUID3, text),
        "uuid4" => |text| matches(&UUID4, text),
        "uuid5" => |text| matches(&UUID5, text),
        _ => return None,
    })
}

/// Whether it is a duration as Go reads it, which is stricter than the format.
pub(crate) fn is_go_duration(text: &str) -> bool {
    duration::is_of_go(text)
}

/// An expression that is compiled when it is first used. Those in here are all sound; what is not would match nothing.
type Expression = LazyLock<Option<Regex>>;

fn matches(expression: &Expression, text: &str) -> bool {
    expression.as_ref().is_some_and(|expression| expression.is_match(text))
}

macro_rules! expressions {
    ($($name:ident = $pattern:literal;)*) => {
        $(static $name: Expression = LazyLock::new(|| Regex::new($pattern).ok());)*
    };
}

expressions! {
    UUID = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID3 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID4 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    UUID5 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    SSN = "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$";
    RGB_COLOR = r"^rgb\(\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*\)$";
    TIME = r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
    LABEL = r"^[a-zA-Z0-9\p{S}\p{L}](-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?$";
    DOMAIN = r"^([a-zA-Z0-9\p{S}\p{L}]([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?\.)+[a-zA-Z\p{L}]{2,63}$";
}

fn is_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends_well = |byte: Option<&u8>| byte.is_some_and(|byte| is_inner(*byte));
    let bytes = text.as_bytes();
    ends_well(bytes.first()) && ends_well(bytes.last()) && bytes.iter().all(|byte| is_inner(*byte) || *byte == b'-')
}

/// Texts that stand for no bytes at all do not count.
fn is_base64(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    let digits = text.trim_end_matches('=');
    !text.is_empty() && text.len().is_multiple_of(4) && text.len() - digits.len() <= 2 && digits.bytes().all(is_digit)
}

/// Numbers may have leading zeros, as they could in old versions of Kubernetes.
fn is_ip(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let is_byte = |part: &&str| {
        let digits = part.trim_start_matches('0');
        !part.is_empty() && (digits.is_empty() || digits.parse::<u8>().is_ok()) && !part.contains('+')
    };
    (parts.len() == 4 && parts.iter().all(is_byte)) || text.parse::<IpAddr>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let most = if address.contains(':') { 128 } else { 32 };
    let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    is_ip(address) && is_number && length.parse::<u32>().is_ok_and(|length| length <= most)
}

/// Six, eight or twenty bytes, in pairs of digits or in fours.
fn is_mac(text: &str) -> bool {
    let of_digits = |separator: char, digits: usize| {
        let groups: Vec<&str> = text.split(separator).collect();
        let is_group = |group: &&str| group.len() == digits && group.bytes().all(|byte| byte.is_ascii_hexdigit());
        groups.iter().all(is_group) && [6, 8, 20].contains(&(groups.len() * digits / 2))
    };
    of_digits(':', 2) || of_digits('-', 2) || of_digits('.', 4)
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    (digits.len() == 3 || digits.len() == 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_hostname(text: &str) -> bool {
    let is_short_enough = text.len() <= 255 && text.split('.').all(|label| label.len() <= 63);
    is_short_enough && (matches(&LABEL, text) || matches(&DOMAIN, text))
}

fn is_date(text: &str) -> bool {
    let digits = |range: std::ops::Range<usize>| {
        text.get(range).filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))?.parse::<u32>().ok()
    };
    let (Some(year), Some(month), Some(day)) = (digits(0..4), digits(5..7), digits(8..10)) else { return false };
    let has_hyphens = text.len() == 10 && text.as_bytes()[4] == b'-' && text.as_bytes()[7] == b'-';
    has_hyphens && (1..=days_of(year, month)).contains(&day)
}

fn days_of(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let within = |range: std::ops::Range<usize>, most: &str| time.get(range).is_some_and(|part| part <= most);
    is_date(date) && matches(&TIME, time) && within(0..2, "23") && within(3..5, "59") && within(6..8, "59")
}

/// An address, alone or in angle brackets after a name.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.strip_suffix('>').and_then(|text| text.rsplit_once('<')) {
        Some((_, address)) => address,
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let is_quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let is_literal = domain.starts_with('[') && domain.ends_with(']');
    (is_quoted || is_dotted(local)) && (is_literal || is_dotted(domain))
}

fn is_dotted(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii();
    text.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_allowed))
}

#[cfg(test)]
mod tests;
