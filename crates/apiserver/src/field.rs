//! Fields of objects, and what is wrong with them, as Kubernetes spells both.

use std::fmt;

use serde_json::Value;

/// Where something is in an object. It borrows what it is made of, so that walking an object costs nothing until there is something to say.
#[derive(Clone, Copy, Debug)]
pub enum Path<'a> {
    /// The object itself.
    Root,
    /// A field of what is there.
    Field(&'a Path<'a>, &'a str),
    /// An item of the list that is there.
    Index(&'a Path<'a>, usize),
    /// An entry of the map that is there.
    Key(&'a Path<'a>, &'a str),
}

impl<'a> Path<'a> {
    /// A field of what is here.
    #[must_use]
    pub fn field(&'a self, name: &'a str) -> Self {
        Self::Field(self, name)
    }

    /// An item of the list that is here.
    #[must_use]
    pub fn index(&'a self, index: usize) -> Self {
        Self::Index(self, index)
    }

    /// An entry of the map that is here.
    #[must_use]
    pub fn key(&'a self, key: &'a str) -> Self {
        Self::Key(self, key)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Path::Root, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
            Self::Key(parent, key) => write!(f, "{parent}[{key}]"),
        }
    }
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// In which way it is wrong.
    pub kind: ErrorKind,
    /// The field, as it is spelled to users.
    pub field: String,
    /// What it says, where that is worth repeating.
    pub value: Option<Value>,
    /// What to know about it.
    pub detail: String,
}

/// In which way a field can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// It is not there.
    Required,
    /// It says something that it may not.
    Invalid,
    /// It is of another type.
    TypeInvalid,
    /// It is none of the values that it may have.
    NotSupported,
    /// It is there already.
    Duplicate,
    /// It may not be there.
    Forbidden,
    /// It is too long.
    TooLong,
    /// There are too many.
    TooMany,
    /// What it refers to is not there.
    NotFound,
    /// It can not be looked at.
    Internal,
}

impl ErrorKind {
    /// The reason of a cause in a Status.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
        }
    }
}

impl FieldError {
    /// Something is wrong with the field at this path, which says this.
    pub fn new(kind: ErrorKind, path: &Path<'_>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self { kind, field: path.to_string(), value: Some(value.into()), detail: detail.into() }
    }

    /// Something is wrong with the field at this path, whatever it says.
    pub fn bare(kind: ErrorKind, path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self { kind, field: path.to_string(), value: None, detail: detail.into() }
    }

    /// What is said in a cause, which names the field itself.
    #[must_use]
    pub fn body(&self) -> String {
        let mut text = self.kind.words().to_owned();
        let says_value = !matches!(self.kind, ErrorKind::Required | ErrorKind::Forbidden | ErrorKind::TooLong);
        if let Some(value) = self.value.as_ref().filter(|_| says_value) {
            text.push_str(": ");
            text.push_str(&value.to_string());
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = if self.field.is_empty() { "<nil>" } else { &self.field };
        write!(f, "{field}: {}", self.body())
    }
}
