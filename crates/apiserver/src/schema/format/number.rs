//! Numbers with a check digit.

/// A card's number, with whatever between the digits.
pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).map(|byte| byte - b'0').collect();
    is_issued(&digits) && luhn(&digits).is_multiple_of(10)
}

/// Whether the first digits and the length are those of an issuer.
fn is_issued(digits: &[u8]) -> bool {
    match digits {
        [4, ..] => digits.len() == 13 || digits.len() == 16,
        [5, 1..=5, ..] | [6, 0, 1, 1, ..] | [6 | 3, 5, ..] => digits.len() == 16,
        [3, 4 | 7, ..] | [2, 1, 3, 1, ..] | [1, 8, 0, 0, ..] => digits.len() == 15,
        [3, 0, 0..=5, ..] | [3, 6 | 8, ..] => digits.len() == 14,
        _ => false,
    }
}

fn luhn(digits: &[u8]) -> u32 {
    let weigh = |(position, digit): (usize, &u8)| match (position % 2, u32::from(*digit)) {
        (0, digit) => digit,
        (_, digit) if digit > 4 => digit * 2 - 9,
        (_, digit) => digit * 2,
    };
    digits.iter().rev().enumerate().map(weigh).sum()
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let digits = without_separators(text);
    let Some((check, others)) = digits.split_last() else { return false };
    if digits.len() != 10 || !others.iter().all(u8::is_ascii_digit) || !(check.is_ascii_digit() || *check == b'X') {
        return false;
    }
    let value = |byte: &u8| if *byte == b'X' { 10 } else { u32::from(byte - b'0') };
    let sum: u32 = (1..).zip(&digits).map(|(weight, digit)| weight * value(digit)).sum();
    sum.is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let digits = without_separators(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 = weights.zip(&digits).map(|(weight, digit)| weight * u32::from(digit - b'0')).sum();
    sum.is_multiple_of(10)
}

fn without_separators(text: &str) -> Vec<u8> {
    text.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'-').collect()
}
