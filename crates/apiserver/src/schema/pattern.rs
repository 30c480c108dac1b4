//! Regular expressions as Kubernetes means them: in the syntax of RE2 as Go has it, where `\d`, `\w` and `\s` are about ASCII.

use std::{collections::HashMap, iter::Peekable, str::Chars, sync::LazyLock};

use parking_lot::Mutex;
use regex::Regex;

/// How many regular expressions are remembered: more than all definitions of a usual server have.
const REMEMBERED: usize = 1000;

/// Compiles a regular expression, unless that was done before: compiling takes long, and every version of a kind has the same ones.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    static COMPILED: LazyLock<Mutex<HashMap<String, Regex>>> = LazyLock::new(Mutex::default);
    let compiled = || COMPILED.lock();
    if let Some(regex) = compiled().get(pattern) {
        return Ok(regex.clone());
    }
    let regex = Regex::new(&translated(pattern));
    let regex = regex.map_err(|error| format!("error parsing regexp: {}", reason(&error)))?;
    let mut compiled = compiled();
    if compiled.len() >= REMEMBERED {
        compiled.clear();
    }
    compiled.insert(pattern.to_owned(), regex.clone());
    Ok(regex)
}

/// The last line of what the compiler says; those before draw a picture.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

/// The same in the syntax of the compiler here, which has Unicode classes, classes in classes and counts without a start.
fn translated(pattern: &str) -> String {
    let mut output = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(character) = rest.next() {
        match character {
            '\\' => escape(&mut rest, in_class, &mut output),
            '[' if in_class => open_in_class(&mut rest, &mut output),
            '[' => {
                in_class = true;
                open_class(&mut rest, &mut output);
            }
            ']' => {
                in_class = false;
                output.push(']');
            }
            '&' | '~' if in_class => {
                output.push('\\');
                output.push(character);
            }
            '-' if in_class && rest.peek() == Some(&'-') => output.push_str("\\-"),
            '{' if !in_class && !starts_count(rest.clone()) => output.push_str("\\{"),
            other => output.push(other),
        }
    }
    output
}

fn escape(rest: &mut Peekable<Chars<'_>>, in_class: bool, output: &mut String) {
    let Some(character) = rest.next() else {
        output.push('\\');
        return;
    };
    match character {
        'd' if in_class => output.push_str("0-9"),
        'w' if in_class => output.push_str("0-9A-Za-z_"),
        's' if in_class => output.push_str("\\t\\n\\x0C\\r "),
        'd' => output.push_str("[0-9]"),
        'w' => output.push_str("[0-9A-Za-z_]"),
        's' => output.push_str("[\\t\\n\\x0C\\r ]"),
        'D' => output.push_str("[^0-9]"),
        'W' => output.push_str("[^0-9A-Za-z_]"),
        'S' => output.push_str("[^\\t\\n\\x0C\\r ]"),
        'b' if !in_class => output.push_str("(?-u:\\b)"),
        'Q' => quote(rest, output),
        'E' => {}
        other => {
            output.push('\\');
            output.push(other);
            if matches!(other, 'p' | 'P' | 'x') && rest.peek() == Some(&'{') {
                copy_through('}', rest, output);
            }
        }
    }
}

/// What stands between `\Q` and `\E` means itself.
fn quote(rest: &mut Peekable<Chars<'_>>, output: &mut String) {
    let mut quoted = String::new();
    while let Some(character) = rest.next() {
        if character == '\\' && rest.peek() == Some(&'E') {
            rest.next();
            break;
        }
        quoted.push(character);
    }
    output.push_str(&regex::escape(&quoted));
}

/// A bracket that closes directly after the opening one means itself.
fn open_class(rest: &mut Peekable<Chars<'_>>, output: &mut String) {
    output.push('[');
    if rest.next_if_eq(&'^').is_some() {
        output.push('^');
    }
    if rest.next_if_eq(&']').is_some() {
        output.push_str("\\]");
    }
}

/// In a class, a bracket opens a name such as `[:alpha:]`, or means itself.
fn open_in_class(rest: &mut Peekable<Chars<'_>>, output: &mut String) {
    if rest.peek() != Some(&':') {
        output.push_str("\\[");
        return;
    }
    output.push('[');
    copy_through(']', rest, output);
}

fn copy_through(end: char, rest: &mut Peekable<Chars<'_>>, output: &mut String) {
    for character in rest.by_ref() {
        output.push(character);
        if character == end {
            break;
        }
    }
}

/// Whether these are digits, perhaps with a comma after or among them, and the end of a count.
fn starts_count(rest: Peekable<Chars<'_>>) -> bool {
    let inside: String = rest.take_while(|character| *character != '}').collect();
    let (least, most) = inside.split_once(',').unwrap_or((&inside, "0"));
    let is_number = |text: &str| text.chars().all(|character| character.is_ascii_digit());
    !least.is_empty() && is_number(least) && is_number(most)
}

#[cfg(test)]
mod tests;
