//! Amounts of a resource as numbers that can be compared.

use drover_api::grammar::Quantity;

/// Billionths, the smallest part that a quantity can name.
const ONE: i128 = 1_000_000_000;

/// The amount in billionths, if it can be read.
pub(super) fn billionths(quantity: &Quantity) -> Option<i128> {
    match quantity {
        Quantity::Integer(number) => Some(i128::from(*number) * ONE),
        Quantity::Text(text) => parse(text),
    }
}

fn parse(text: &str) -> Option<i128> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // What is finer than a billionth even of the largest unit does not matter.
    let fraction = &fraction[..fraction.len().min(9)];
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let parts = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    let amount = digits.checked_mul(scale(suffix)?)? / parts;
    Some(if negative { -amount } else { amount })
}

/// What a suffix multiplies by, in billionths.
fn scale(suffix: &str) -> Option<i128> {
    let thousands = |power| Some(ONE * 1000_i128.pow(power));
    let binary = |power| Some(ONE << (10 * power));
    match suffix {
        "n" => Some(1),
        "u" => Some(ONE / 1_000_000),
        "m" => Some(ONE / 1000),
        "" => Some(ONE),
        "k" => thousands(1),
        "M" => thousands(2),
        "G" => thousands(3),
        "T" => thousands(4),
        "P" => thousands(5),
        "E" => thousands(6),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        exponent => power_of_ten(exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    }
}

fn power_of_ten(exponent: i32) -> Option<i128> {
    // Beyond this there is no amount of anything.
    (-9..=18)
        .contains(&exponent)
        .then(|| 10_i128.pow(exponent.unsigned_abs().min(18)))
        .map(|power| if exponent < 0 { ONE / power } else { ONE * power })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_read_as_kubernetes_reads_them() {
        let read = |text: &str| billionths(&Quantity::Text(text.into()));
        assert_eq!(read("500m"), Some(ONE / 2));
        assert_eq!(read("2"), Some(2 * ONE));
        assert_eq!(read("1.5Gi"), Some(3 * (ONE << 29)));
        assert_eq!(read("1e3"), read("1k"));
        assert_eq!(read("5e-1"), read("500m"));
        assert_eq!(read("-1"), Some(-ONE));
        assert_eq!(read("8Ei"), Some(8 * (ONE << 60)));
        assert_eq!(billionths(&Quantity::Integer(3)), Some(3 * ONE));
    }

    #[test]
    fn what_is_no_quantity_has_no_amount() {
        for text in ["", "x", "1x", "1.2.3", "Gi", "1e", "1e99", "9999999999999999999999999999999999999999999999Ei"] {
            assert_eq!(billionths(&Quantity::Text(text.into())), None, "{text}");
        }
    }
}
