//! Durations: as Go writes them, or else anything in which a number is followed by a unit.

/// The units, with what they may be called; a name may go on after the last of each.
const UNITS: [&[&str]; 8] = [
    &["ns", "nano"],
    &["us", "µs", "micro"],
    &["ms", "milli"],
    &["s", "sec"],
    &["m", "min"],
    &["h", "hr", "hour"],
    &["d", "day"],
    &["w", "wk", "week"],
];

pub(super) fn is_duration(text: &str) -> bool {
    is_of_go(text) || has_number_with_unit(text)
}

/// Whether Go reads it.
pub(super) fn is_of_go(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    let mut is_valid = !rest.is_empty();
    while is_valid && !rest.is_empty() {
        let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (digits, after) = rest.split_at(number);
        let unit = after.len() - after.trim_start_matches(|c: char| !c.is_ascii_digit() && c != '.').len();
        let (unit, after) = after.split_at(unit);
        let is_number = digits.matches('.').count() < 2 && digits.contains(|c: char| c.is_ascii_digit());
        is_valid = is_number && ["ns", "us", "µs", "μs", "ms", "s", "m", "h"].contains(&unit);
        rest = after;
    }
    is_valid
}

fn has_number_with_unit(text: &str) -> bool {
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let number = &rest[start..];
        let after = number.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = &number[..number.len() - after.len()];
        let name = after.trim_start();
        let end = name.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(name.len());
        if end > 0 {
            if digits.parse::<i64>().is_err() {
                return false;
            }
            found |= is_unit(&name[..end].to_lowercase());
        }
        rest = &name[end..];
    }
    found
}

fn is_unit(name: &str) -> bool {
    UNITS.iter().any(|names| names.contains(&name) || names.last().is_some_and(|last| name.starts_with(last)))
}
