//! Amounts of a resource as numbers that can be compared and added up.

use drover_api::grammar::Quantity;
use serde_json::Value;

/// Billionths, the smallest part that a quantity can name.
const ONE: i128 = 1_000_000_000;

/// The amount in billionths, if it can be read.
pub(crate) fn billionths(quantity: &Quantity) -> Option<i128> {
    match quantity {
        Quantity::Integer(number) => Some(i128::from(*number) * ONE),
        Quantity::Text(text) => parse(text),
    }
}

/// Whether two values of an object are the same amount, which has many spellings: `1`, `1000m` and `1e0` are the same amount of CPU.
pub(crate) fn is_same(left: &Value, right: &Value) -> bool {
    let amount = |value: &Value| match value {
        Value::String(text) => parse(text),
        Value::Number(number) => parse(&number.to_string()),
        _ => None,
    };
    amount(left).zip(amount(right)).is_some_and(|(left, right)| left == right)
}

/// The sum of amounts of one resource, written as the first of them is: in units of 1024 or of 1000. What can not be read is nothing.
pub(crate) fn sum<'a>(quantities: impl IntoIterator<Item = &'a Quantity>) -> Quantity {
    let mut quantities = quantities.into_iter().peekable();
    let is_binary = matches!(quantities.peek(), Some(Quantity::Text(text)) if text.ends_with('i'));
    write(quantities.filter_map(billionths).sum(), is_binary)
}

fn write(amount: i128, is_binary: bool) -> Quantity {
    let units: &[(&str, i128)] = if is_binary && amount % (ONE << 10) == 0 {
        &[("Ti", ONE << 40), ("Gi", ONE << 30), ("Mi", ONE << 20), ("Ki", ONE << 10)]
    } else {
        &[("", ONE), ("m", ONE / 1000), ("u", ONE / 1_000_000), ("n", 1)]
    };
    let unit = units.iter().find(|(_, size)| amount % size == 0);
    let (suffix, size) = unit.copied().unwrap_or(("n", 1));
    Quantity::Text(format!("{}{suffix}", amount / size).into())
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
    use serde_json::json;

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
    fn amounts_are_added_up_in_the_units_they_are_written_in() {
        let sum_of = |texts: &[&str]| {
            let quantities: Vec<_> = texts.iter().map(|text| Quantity::Text((*text).into())).collect();
            sum(&quantities).to_string()
        };
        assert_eq!(sum_of(&["4", "500m"]), "4500m");
        assert_eq!(sum_of(&["1500m", "500m"]), "2");
        assert_eq!(sum_of(&["16Gi", "512Mi"]), "16896Mi");
        assert_eq!(sum_of(&["16393228Ki", "16393228Ki"]), "32786456Ki");
        assert_eq!(sum_of(&["1Ki", "1"]), "1025");
        assert_eq!(sum_of(&["1", "nonsense"]), "1");
        assert_eq!(sum_of(&[]), "0");
    }

    #[test]
    fn what_is_no_quantity_has_no_amount() {
        for text in ["", "x", "1x", "1.2.3", "Gi", "1e", "1e99", "9999999999999999999999999999999999999999999999Ei"] {
            assert_eq!(billionths(&Quantity::Text(text.into())), None, "{text}");
        }
    }

    #[test]
    fn amounts_have_many_spellings() {
        for (left, right) in [
            (json!("1000m"), json!("1")),
            (json!("1"), json!(1)),
            (json!(0.5), json!("500m")),
            (json!("1Gi"), json!("1024Mi")),
            (json!("1.5Gi"), json!("1536Mi")),
            (json!("1k"), json!("1e3")),
            (json!("1000000000n"), json!("1")),
            (json!("2E"), json!("2000P")),
            (json!("+1"), json!("1")),
        ] {
            assert!(is_same(&left, &right), "{left} {right}");
        }
    }

    #[test]
    fn what_differs_or_is_no_amount_is_not_the_same() {
        for (left, right) in [
            (json!("1"), json!("2")),
            (json!("1G"), json!("1Gi")),
            (json!("a"), json!("a")),
            (json!(""), json!("0")),
            (json!("1x"), json!("1")),
            (json!("99999999999999999999999999999999999999999"), json!("1")),
            (json!("1e99999"), json!("1")),
            (json!(true), json!(true)),
        ] {
            assert!(!is_same(&left, &right), "{left} {right}");
        }
    }
}
