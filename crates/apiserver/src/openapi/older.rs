//! The older OpenAPI, of version 2. It says nothing about any kind.
//!
//! kubectl insists on it where it is given a `List`, to check the items itself. What it finds no schema for it leaves to the server, which checks everything
//! anyway, so an empty document does.

use serde_json::{Value, json};

/// How clients ask for it in protobuf: as it is answered, or in an older way that is no proper media type.
pub const ASKED: [&str; 2] = [PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"];
/// The media type of the answer in protobuf.
pub const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

const SWAGGER: &str = "2.0";
const TITLE: &str = "Kubernetes";
const VERSION: &str = "unversioned";

/// The document.
#[must_use]
pub fn document() -> Value {
    json!({"swagger": SWAGGER, "info": {"title": TITLE, "version": VERSION}, "paths": {}, "definitions": {}})
}

/// The document in protobuf.
#[must_use]
pub fn protobuf() -> Vec<u8> {
    let info = [field(1, TITLE.as_bytes()), field(2, VERSION.as_bytes())].concat();
    // The last two are the paths and the definitions.
    [field(1, SWAGGER.as_bytes()), field(2, &info), field(8, &[]), field(9, &[])].concat()
}

/// A field whose content is shorter than 128 bytes, as all are here.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap_or_default();
    [&[number << 3 | 2, length], content].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let expected = b"\x0a\x032.0\x12\x19\x0a\x0aKubernetes\x12\x0bunversioned\x42\x00\x4a\x00";
        assert_eq!(protobuf(), expected);
        assert_eq!(document()["info"], json!({"title": "Kubernetes", "version": "unversioned"}));
    }
}
