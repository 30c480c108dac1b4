//! The functions that there are, with the types that they take and make.

use std::{collections::HashMap, sync::LazyLock};

use super::Type;

/// One way to call a function.
#[derive(Debug)]
pub(super) struct Overload {
    /// Whether it is called on its first argument.
    pub(super) is_member: bool,
    pub(super) args: Vec<Type<'static>>,
    pub(super) result: Type<'static>,
    /// How many types in it may be any: those that are not known with numbers below.
    pub(super) vars: usize,
}

/// The types that can be named, by their names.
const TYPES: [(&str, &str); 15] = [
    ("bool", "bool"),
    ("bytes", "bytes"),
    ("double", "double"),
    ("int", "int"),
    ("list", "list(dyn)"),
    ("map", "map(dyn,dyn)"),
    ("null_type", "null"),
    ("string", "string"),
    ("type", "type"),
    ("uint", "uint"),
    ("optional_type", "optional_type(dyn)"),
    ("google.protobuf.Timestamp", "timestamp"),
    ("google.protobuf.Duration", "duration"),
    ("net.IP", "net.IP"),
    ("net.CIDR", "net.CIDR"),
];

static FUNCTIONS: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let lines = include_str!("functions.txt").lines().filter(|line| !line.starts_with("# "));
    let read = |line: &'static str| {
        let mut words = line.split(' ');
        Some((words.next()?, words.filter_map(Overload::read).collect()))
    };
    lines.filter_map(read).collect()
});

/// The ways to call a function; nothing if there is none of this name.
pub(super) fn function(name: &str) -> Option<&'static [Overload]> {
    FUNCTIONS.get(name).map(Vec::as_slice)
}

/// The type of a name that is the name of a type.
pub(super) fn type_named(name: &str) -> Option<Type<'static>> {
    let (_, text) = TYPES.iter().find(|(own, _)| *own == name)?;
    Some(Type::made("type", vec![read_type(&mut { *text }, &mut Vec::new())?]))
}

impl Overload {
    fn read(text: &'static str) -> Option<Self> {
        let mut rest = text.trim_start_matches('.');
        let mut letters = Vec::new();
        let args = read_list(&mut rest, &mut letters)?;
        let result = read_type(&mut rest, &mut letters)?;
        Some(Self { is_member: text.starts_with('.'), args, result, vars: letters.len() })
    }
}

/// Types in brackets.
fn read_list(rest: &mut &'static str, letters: &mut Vec<&'static str>) -> Option<Vec<Type<'static>>> {
    let mut types = Vec::new();
    *rest = rest.strip_prefix('(')?;
    while !rest.starts_with(')') {
        types.push(read_type(rest, letters)?);
        *rest = rest.trim_start_matches(',');
    }
    *rest = &rest[1..];
    Some(types)
}

fn read_type(rest: &mut &'static str, letters: &mut Vec<&'static str>) -> Option<Type<'static>> {
    let (name, after) = rest.split_at(rest.find(['(', ')', ',']).unwrap_or(rest.len()));
    *rest = after;
    let of = if rest.starts_with('(') { read_list(rest, letters)? } else { Vec::new() };
    match name {
        "" => None,
        "dyn" => Some(Type::Dyn),
        letter if letter.len() == 1 => {
            Some(Type::Var(letters.iter().position(|own| *own == letter).unwrap_or_else(|| {
                letters.push(letter);
                letters.len() - 1
            })))
        }
        name => Some(Type::made(name, of)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_declarations_can_be_read() {
        let lines = include_str!("functions.txt").lines().filter(|line| !line.starts_with("# "));
        for line in lines {
            let mut words = line.split(' ');
            let overloads = words.next().and_then(function).expect(line);
            assert_eq!(overloads.len(), words.count(), "{line}");
        }
        let contains = &function("sets.contains").unwrap()[0];
        assert_eq!(contains.args, [Type::list(Type::Var(0)), Type::list(Type::Var(0))]);
        assert!(TYPES.iter().all(|(name, _)| type_named(name).is_some()));
    }
}
