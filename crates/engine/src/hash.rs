//! The hash of a configuration: OCM's to the letter, so that both agree on every object.
//!
//! OCM hashes the text that Go's `encoding/json` makes of an object. That text is the [`content`] here, and it is also
//! what is kept of a configuration, so that a hash can be checked against it.

use std::fmt::Write as _;

use drover_api::grammar::SpecHash;
use serde_json::{Number, Value};
use sha2::{Digest, Sha256};

/// What of an object is not its content: what it is called, and what became of it.
const NOT_CONTENT: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// The content of an object as it is served, as Go would write it. An object without any is `{}`.
#[must_use]
pub fn content(object: &Value) -> String {
    let fields = object.as_object().into_iter().flatten();
    let fields = fields.filter(|(field, _)| !NOT_CONTENT.contains(&field.as_str()));
    let mut text = String::new();
    write_fields(&mut text, fields);
    text
}

/// The hash of a content.
#[must_use]
pub fn spec_hash(content: &str) -> SpecHash {
    SpecHash::Sha256(Sha256::digest(content).into())
}

/// By what the name of something is told from the same name in another namespace.
#[must_use]
pub(crate) fn name_suffix(namespace: &str, name: &str) -> String {
    let digest = Sha256::digest(format!("{namespace}/{name}"));
    let mut suffix = [0; 4];
    suffix.copy_from_slice(&digest[..4]);
    format!("{:08x}", u32::from_be_bytes(suffix))
}

/// Drops fields that are null. In a list, a null has its place.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => write_number(text, number),
        Value::String(string) => write_string(text, string),
        Value::Array(items) => {
            text.push('[');
            write_separated(text, items, write_value);
            text.push(']');
        }
        Value::Object(fields) => write_fields(text, fields),
    }
}

/// Fields stand in the order of the bytes of their names. serde's own order depends on how it was built.
fn write_fields<'a>(text: &mut String, fields: impl IntoIterator<Item = (&'a String, &'a Value)>) {
    let mut fields: Vec<_> = fields.into_iter().collect();
    fields.sort_unstable_by_key(|(field, _)| *field);
    text.push('{');
    write_separated(text, fields, |text, (field, value)| {
        write_string(text, field);
        text.push(':');
        write_value(text, value);
    });
    text.push('}');
}

fn write_separated<T>(text: &mut String, items: impl IntoIterator<Item = T>, write: fn(&mut String, T)) {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(text, item);
    }
}

/// Kubernetes reads a number that fits into 64 bits with a sign as an integer, and all others as floating point.
fn write_number(text: &mut String, number: &Number) {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => push(text, format_args!("{integer}")),
        (None, Some(float)) => write_float(text, float),
        // Without serde's arbitrary precision, which nobody here asks for, every number is one of both.
        (None, None) => push(text, format_args!("{number}")),
    }
}

/// Very small and very large numbers are written with an exponent. The bounds are Go's.
fn write_float(text: &mut String, float: f64) {
    if float == 0.0 {
        // A server writes the negative zero as `-0`, which Kubernetes reads as an integer, and so without the sign.
        return text.push('0');
    }
    let scientific = shortest(float.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    if float < 0.0 {
        text.push('-');
    }
    if (1e-6..1e21).contains(&float.abs()) {
        write_plain(text, &mantissa.replace('.', ""), exponent.parse().unwrap_or(0));
    } else {
        let sign = if exponent.starts_with('-') { "" } else { "+" };
        push(text, format_args!("{mantissa}e{sign}{exponent}"));
    }
}

/// The fewest digits that are read as this number again, with an exponent. Where two such texts are equally near to it, Go takes
/// the one with an even digit at the end, and Rust the larger one.
fn shortest(float: f64) -> String {
    let short = format!("{float:e}");
    let decimals = short.split('e').next().map_or(0, |mantissa| mantissa.len().saturating_sub(2));
    let near = format!("{float:.decimals$e}");
    if near.parse() == Ok(float) { near } else { short }
}

/// Writes digits without an exponent. The first of them stands for so many tens.
fn write_plain(text: &mut String, digits: &str, exponent: i32) {
    match usize::try_from(exponent) {
        Ok(exponent) if exponent + 1 < digits.len() => {
            let (whole, fraction) = digits.split_at(exponent + 1);
            push(text, format_args!("{whole}.{fraction}"));
        }
        Ok(exponent) => push(text, format_args!("{digits:0<width$}", width = exponent + 1)),
        Err(_) => {
            text.push_str("0.");
            text.extend(std::iter::repeat_n('0', exponent.unsigned_abs() as usize - 1));
            text.push_str(digits);
        }
    }
}

/// Go also escapes what could end a script in a web page, or a line in JavaScript.
fn write_string(text: &mut String, string: &str) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                push(text, format_args!("\\u{:04x}", u32::from(character)));
            }
            _ => text.push(character),
        }
    }
    text.push('"');
}

fn push(text: &mut String, part: std::fmt::Arguments<'_>) {
    // A text takes everything.
    let _ = text.write_fmt(part);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hash(object: &Value) -> String {
        spec_hash(&content(object)).to_string()
    }

    /// The content of an object with one field, which is read from JSON as a server sends it.
    fn written(json: &str) -> String {
        let value: Value = serde_json::from_str(json).expect("valid JSON");
        let text = content(&json!({ "v": value }));
        let inside = text.strip_prefix("{\"v\":").and_then(|text| text.strip_suffix('}'));
        inside.expect("the field is there").to_owned()
    }

    #[test]
    fn an_object_without_content_has_a_hash_too() {
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "status": {} });
        assert_eq!(content(&object), "{}");
        assert_eq!(hash(&object), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
    }

    #[test]
    fn whatever_is_at_the_top_of_an_object_counts_under_its_name() {
        let object = json!({ "metadata": { "name": "a" }, "data": { "b": "2", "a": "<x>&y" } });
        assert_eq!(content(&object), r#"{"data":{"a":"\u003cx\u003e\u0026y","b":"2"}}"#);
        assert_eq!(hash(&object), "4cd375f2daef6211a436c1cf78ee24ebef70d749c45acc9fecb83c84b8cee1ff");
    }

    #[test]
    fn ocm_gives_the_same_hash_to_the_same_object() {
        let object = json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1",
            "kind": "AddOnDeploymentConfig",
            "metadata": { "name": "test", "namespace": "default" },
            "spec": {
                "proxyConfig": {},
                "customizedVariables": [{ "value": "test", "name": "test" }],
                "agentInstallNamespace": "open-cluster-management-agent-addon",
            },
        });
        assert_eq!(hash(&object), "ea4e6089e8b2f584c1cd8b86e16a15df3186b30744f433ede7436091c93a4cc7");
    }

    #[test]
    fn only_the_top_of_an_object_is_no_content() {
        let object = json!({ "spec": { "kind": "k", "metadata": 1, "status": null }, "status": 2 });
        assert_eq!(content(&object), r#"{"spec":{"kind":"k","metadata":1,"status":null}}"#);
    }

    #[test]
    fn fields_are_in_the_order_of_their_bytes() {
        // As UTF-16, which others sort by, the last two would be the other way round.
        let object: Value =
            serde_json::from_str(r#"{"é":1,"b":1,"a":1,"B":1,"a.b":1,"":1,"\ue000":1,"𐀀":1}"#).expect("valid JSON");
        let expected = "{\"\":1,\"B\":1,\"a\":1,\"a.b\":1,\"b\":1,\"é\":1,\"\u{e000}\":1,\"\u{10000}\":1}";
        assert_eq!(content(&object), expected);
    }

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        for (read, expected) in [
            ("0", "0"),
            ("-0", "0"),
            ("1.0", "1"),
            ("-1.50", "-1.5"),
            ("1e3", "1000"),
            ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("9223372036854775808", "9223372036854776000"),
            ("-9223372036854775809", "-9223372036854776000"),
            ("18446744073709551615", "18446744073709552000"),
            ("123456789012345678901", "123456789012345680000"),
            ("0.000001", "0.000001"),
            ("0.0000009", "9e-7"),
            ("1.5e-10", "1.5e-10"),
            ("5e-324", "5e-324"),
            ("999999999999999900000", "999999999999999900000"),
            ("1e21", "1e+21"),
            ("-1.25e+30", "-1.25e+30"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("0.1", "0.1"),
            ("-3.804490737600491e-210", "-3.804490737600491e-210"),
            ("-1308175534629292.25", "-1308175534629292.2"),
            ("1308175534629292.75", "1308175534629292.8"),
            ("12300000", "12300000"),
            ("12300000.0", "12300000"),
            ("100000000.5", "100000000.5"),
        ] {
            assert_eq!(written(read), expected, "{read}");
        }
    }

    #[test]
    fn texts_are_escaped_as_go_escapes_them() {
        for (read, expected) in [
            (r#""\u0000\u0001\u001f\u007f""#, "\"\\u0000\\u0001\\u001f\u{7f}\""),
            (r#""\b\f\n\r\t""#, r#""\b\f\n\r\t""#),
            (r#""\"\\\/'""#, r#""\"\\/'""#),
            (r#""<>&""#, r#""\u003c\u003e\u0026""#),
            (r#""\u2027\u2028\u2029\u202a""#, "\"\u{2027}\\u2028\\u2029\u{202a}\""),
            (r#""é \ud83d\ude00 \ufffd""#, "\"é 😀 \u{fffd}\""),
            (r#"{"<":[true,false,null,[],{}]}"#, r#"{"\u003c":[true,false,null,[],{}]}"#),
        ] {
            assert_eq!(written(read), expected, "{read}");
        }
    }
}
