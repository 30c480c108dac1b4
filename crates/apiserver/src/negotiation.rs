//! In which form an answer is wanted.

use crate::{failure::Failure, table::MetaVersion};

/// The media types that objects are answered in, as failures list them.
pub(crate) const MEDIA_TYPES: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// What an answer is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The object, or the list, as it is.
    Plain,
    /// A table for people.
    Table(MetaVersion),
    /// The metadata alone.
    Metadata(MetaVersion),
}

fn meta_version(text: &str) -> Option<MetaVersion> {
    match text {
        "v1" => Some(MetaVersion::V1),
        "v1beta1" => Some(MetaVersion::V1Beta1),
        _ => None,
    }
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// As JSON.
    Json,
    /// As YAML.
    Yaml,
}

impl Writing {
    /// The media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
        }
    }
}

/// A form and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What it is made of.
    pub form: Form,
    /// How it is written.
    pub writing: Writing,
}

/// One of the forms that a client accepts.
#[derive(Debug)]
pub(crate) struct Clause<'a> {
    pub(crate) media_type: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    quality: f32,
}

impl<'a> Clause<'a> {
    fn read(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let pairs = parts.filter_map(|part| part.split_once('='));
        let pairs = pairs.map(|(name, value)| (name.trim(), value.trim().trim_matches('"')));
        let (quality, parameters): (Vec<_>, Vec<_>) = pairs.partition(|(name, _)| *name == "q");
        let quality = quality.first().and_then(|(_, value)| value.parse().ok()).unwrap_or(1.0);
        Self { media_type, parameters, quality }
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(it, _)| *it == name).map(|(_, value)| *value)
    }

    /// Whether anything is written in its media type.
    pub(crate) fn is_written(&self) -> bool {
        self.writing().is_some()
    }

    fn writing(&self) -> Option<Writing> {
        match self.media_type {
            "application/json" | "application/*" | "*/*" => Some(Writing::Json),
            "application/yaml" => Some(Writing::Yaml),
            _ => None,
        }
    }

    /// The form that is asked for; nothing if there is no such form.
    fn form(&self, of_many: bool) -> Option<Form> {
        let Some(kind) = self.parameter("as") else { return Some(Form::Plain) };
        let version = self.parameter("v").and_then(meta_version)?;
        if self.parameter("g") != Some("meta.k8s.io") {
            return None;
        }
        match kind {
            "Table" => Some(Form::Table(version)),
            "PartialObjectMetadataList" if of_many => Some(Form::Metadata(version)),
            "PartialObjectMetadata" if !of_many => Some(Form::Metadata(version)),
            _ => None,
        }
    }
}

/// What a client accepts, the best first.
pub(crate) fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<_> = accept.split(',').map(str::trim).filter(|it| !it.is_empty()).map(Clause::read).collect();
    clauses.sort_by(|one, other| other.quality.total_cmp(&one.quality));
    clauses
}

/// The first form that the client accepts and that there is. `of_many` is whether the answer is a list.
pub fn negotiate(accept: Option<&str>, of_many: bool) -> Result<Wanted, Failure> {
    let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else {
        return Ok(Wanted { form: Form::Plain, writing: Writing::Json });
    };
    let wanted = |clause: Clause<'_>| {
        let writing = clause.writing()?;
        Some(Wanted { form: clause.form(of_many)?, writing })
    };
    clauses(accept).into_iter().find_map(wanted).ok_or_else(|| Failure::not_acceptable(&MEDIA_TYPES))
}

/// How something is written that has one form only, such as a failure.
#[must_use]
pub fn writing(accept: Option<&str>) -> Writing {
    let mut plain = clauses(accept.unwrap_or_default()).into_iter().filter(|clause| clause.parameter("as").is_none());
    plain.find_map(|clause| clause.writing()).unwrap_or(Writing::Json)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(accept: &str, of_many: bool) -> Option<(Form, Writing)> {
        negotiate(Some(accept), of_many).ok().map(|wanted| (wanted.form, wanted.writing))
    }

    #[test]
    fn the_first_form_that_there_is_is_taken() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(form(table, true), Some((Form::Table(MetaVersion::V1), Writing::Json)));
        assert_eq!(
            form("application/json;as=Nothing;v=v1;g=meta.k8s.io, application/json", true).map(|it| it.0),
            Some(Form::Plain)
        );
        let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        assert_eq!(form(metadata, false).map(|it| it.0), Some(Form::Metadata(MetaVersion::V1)));
        assert_eq!(form(metadata, true), None, "a list is another kind");
        let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        assert_eq!(form(list, true).map(|it| it.0), Some(Form::Metadata(MetaVersion::V1)));
    }

    #[test]
    fn what_is_not_written_here_is_passed_over() {
        assert_eq!(form("application/vnd.kubernetes.protobuf, */*", false), Some((Form::Plain, Writing::Json)));
        assert_eq!(form("application/yaml", false), Some((Form::Plain, Writing::Yaml)));
        assert_eq!(
            form("text/html;q=0.9, application/json;q=0.1, application/yaml;q=0.5", false).map(|it| it.1),
            Some(Writing::Yaml)
        );
        assert_eq!(negotiate(Some("text/html"), false).map_err(|failure| failure.code), Err(406));
        assert_eq!(negotiate(None, false), Ok(Wanted { form: Form::Plain, writing: Writing::Json }));
    }
}
