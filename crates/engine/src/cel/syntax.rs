//! Expressions as text, and how they become a tree, whatever they are about.
//!
//! The parser is generated, takes up to a hundred kilobytes of the stack for one operator, panics in places, and makes one negation of two. All who
//! read expressions read them here.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use kube_cel::cel::{
    IdedExpr,
    common::ast::SourceInfo,
    parser::{ParseErrors, Parser},
};
use parking_lot::Mutex;

/// How many expressions are remembered: more than all definitions and policies of a usual server have.
const REMEMBERED: usize = 2000;

/// Expressions that were parsed before, which takes long: every version of a kind has the same ones, and policies are read again and again.
static PARSED: LazyLock<Mutex<HashMap<String, Arc<IdedExpr>>>> = LazyLock::new(Mutex::default);

/// The stack that is taken for each character of an expression. What is not used costs nothing.
const STACK: usize = 64 << 10;
/// For how many characters there is a stack at least: what is done with the tree needs some too.
const LEAST: usize = 1024;
const GAVE_UP: &str = "the parser gave up";

/// Something that is wrong with an expression, and where: on a line, after so many characters of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// The line; the first is 1.
    pub line: usize,
    /// The characters before it on its line.
    pub column: usize,
    /// What is wrong.
    pub text: String,
}

/// Parses an expression, and does something with its tree where the stack is large enough for it. What is wrong is told in one line.
pub fn parse<T: Send>(source: &str, read: impl FnOnce(IdedExpr) -> T + Send) -> Result<T, String> {
    on_a_stack_for(source, || parsed(source).map(read).map_err(|errors| one_line(&errors.to_string())))
        .unwrap_or_else(|| Err(GAVE_UP.to_owned()))
}

/// The same, and what is wrong is told with its places. To the reader goes what tells the places of parts of the tree.
pub fn parse_with_places<T: Send>(
    source: &str,
    read: impl FnOnce(IdedExpr, &dyn Fn() -> Places) -> T + Send,
) -> Result<T, Vec<Mistake>> {
    let work = || parsed(source).map(|tree| read(tree, &|| Places::of(source))).map_err(|errors| mistakes(&errors));
    on_a_stack_for(source, work)
        .unwrap_or_else(|| Err(vec![Mistake { line: 1, column: 0, text: format!("Syntax error: {GAVE_UP}") }]))
}

fn parsed(source: &str) -> Result<IdedExpr, ParseErrors> {
    let remembered = || PARSED.lock();
    if let Some(tree) = remembered().get(source).map(Arc::clone) {
        return Ok(IdedExpr::clone(&tree));
    }
    let parser = Parser::new().max_recursion_depth(u16::MAX).enable_optional_syntax(true);
    let tree = parser.parse(&without_double_negations(source))?;
    let mut remembered = remembered();
    if remembered.len() >= REMEMBERED {
        remembered.clear();
    }
    remembered.insert(source.to_owned(), Arc::new(tree.clone()));
    Ok(tree)
}

fn mistakes(errors: &ParseErrors) -> Vec<Mistake> {
    let number = |number: isize| usize::try_from(number).unwrap_or_default();
    let mistake = |(line, column): (isize, isize), text: &str| Mistake {
        line: number(line).max(1),
        column: number(column).saturating_sub(1),
        text: text.to_owned(),
    };
    errors.errors.iter().map(|error| mistake(error.pos, &error.msg)).collect()
}

/// Does something on a thread of its own, for its stack; nothing comes back where it panics.
fn on_a_stack_for<T: Send>(source: &str, work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let stack = source.len().max(LEAST) * STACK;
        let thread = std::thread::Builder::new().stack_size(stack).spawn_scoped(scope, work);
        thread.ok()?.join().ok()
    })
}

/// Where the parts of a tree are in the text.
pub struct Places {
    source: String,
    info: Option<Arc<SourceInfo>>,
}

impl Places {
    /// The parser tells places only with errors. So it is given the same once more with an error at the end, which leaves the tree as it was.
    fn of(source: &str) -> Self {
        let errors = parsed(&format!("{source}\n)")).err();
        let info = errors.and_then(|errors| errors.errors.into_iter().find_map(|error| error.source_info));
        Self { source: source.to_owned(), info }
    }

    /// What is wrong with the part of a tree that has this number.
    #[must_use]
    pub fn mistake(&self, id: u64, text: String) -> Mistake {
        let start = self.info.as_ref().and_then(|info| info.offset_for(id)).map_or(0, |(start, _)| start as usize);
        let before = self.source.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Mistake { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count(), text }
    }
}

/// How many brackets stand around each other. Those in texts and comments do not count. After a text that the parser cannot read, it may go on anywhere: all
/// brackets count there.
#[must_use]
pub fn bracket_depth(source: &str) -> usize {
    let is_opening = |c: char| matches!(c, '(' | '[' | '{');
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        match first {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
        match token_length(source, at) {
            Some(length) => at += length,
            None => return deepest.max(depth + source[at..].chars().filter(|c| is_opening(*c)).count()),
        }
    }
    deepest
}

/// How long what begins at a place is: a text, a comment or a character. Nothing if it is a text that the parser cannot read.
fn token_length(source: &str, at: usize) -> Option<usize> {
    let rest = &source[at..];
    match rest.chars().next()? {
        '\'' | '"' => text_length(rest, is_raw(&source[..at])?),
        '/' if rest.starts_with("//") => Some(rest.find('\n').unwrap_or(rest.len())),
        other => Some(other.len_utf8()),
    }
}

/// Whether a text is raw, given what is before its quote. Nothing if that is a word which only ends like the mark of one.
fn is_raw(before: &str) -> Option<bool> {
    let word = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(before, |at| {
        let end = before[at..].chars().next().map_or(0, char::len_utf8);
        &before[at + end..]
    });
    match word.to_ascii_lowercase().as_str() {
        "r" | "br" => Some(true),
        word => (!word.ends_with('r')).then_some(false),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Takes out negations of negations, for the parser makes one of two. There is as much space instead, so that the rest stays where it is.
fn without_double_negations(source: &str) -> String {
    let mut output = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '!' | '-' => match second_negation(rest, first, &output) {
                Some(length) => {
                    output.extend(std::iter::repeat_n(' ', length));
                    rest = &rest[length..];
                    continue;
                }
                None => 1,
            },
            // What cannot be read is left as it is.
            _ => token_length(source, source.len() - rest.len()).unwrap_or(rest.len()),
        };
        output.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    output
}

/// How long two negations are, with what is between them. An exclamation mark before `=` is none, nor is a minus after a value.
fn second_negation(rest: &str, sign: char, before: &str) -> Option<usize> {
    let after = rest.strip_prefix(sign)?.trim_start().strip_prefix(sign)?;
    let follows_value = || {
        let ends_value = |last: char| last.is_alphanumeric() || "_)]}'\"`".contains(last);
        before.trim_end().chars().next_back().is_some_and(ends_value)
    };
    let is_operator = if sign == '!' { after.starts_with('=') } else { follows_value() };
    (!is_operator).then(|| rest.len() - after.len())
}

/// How long the text is that begins here, with its quotes. Nothing if it does not end on its line, where it has to, or has an invalid escape.
fn text_length(rest: &str, is_raw: bool) -> Option<usize> {
    let is_long = rest.starts_with("'''") || rest.starts_with("\"\"\"");
    let quote = &rest[..if is_long { 3 } else { 1 }];
    let mut at = quote.len();
    loop {
        let left = &rest[at..];
        if left.starts_with(quote) {
            return Some(at + quote.len());
        }
        at += match left.chars().next()? {
            '\n' | '\r' if !is_long => return None,
            '\\' if !is_raw => escape_length(left)?,
            other => other.len_utf8(),
        };
    }
}

/// How long the escape is that begins here.
fn escape_length(rest: &str) -> Option<usize> {
    let (digits, radix) = match rest.chars().nth(1)? {
        'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '`' | '?' | '\\' => return Some(2),
        'x' | 'X' => (2..4, 16),
        'u' => (2..6, 16),
        'U' => (2..10, 16),
        '0'..='3' => (1..4, 8),
        _ => return None,
    };
    let end = digits.end;
    rest.get(digits)?.chars().all(|digit| digit.is_digit(radix)).then_some(end)
}

#[cfg(test)]
mod tests {
    use kube_cel::cel::common::ast::Expr;

    use super::*;

    #[test]
    fn negations_of_negations_go() {
        for (source, expected) in [
            ("!!a", "  a"),
            ("!!!a", "  !a"),
            ("! !(a != b)", "   (a != b)"),
            ("!a && !b", "!a && !b"),
            ("a == '!!' && !!b", "a == '!!' &&   b"),
            (r"a == 'it\'s !!' || r'\' == '!!'", r"a == 'it\'s !!' || r'\' == '!!'"),
            (r#"a == """!!" ä""" "#, r#"a == """!!" ä""" "#),
            ("'open !!", "'open !!"),
            ("--a - -b--c", "  a - -b--c"),
            ("a---b == - - -1", "a-  b ==     -1"),
            ("'-' --a", "'-' --a"),
            ("// don't !!\n!!a", "// don't !!\n  a"),
        ] {
            assert_eq!(without_double_negations(source), expected);
        }
    }

    #[test]
    fn brackets_in_texts_do_not_count() {
        assert_eq!(bracket_depth("(a[b({})])"), 4);
        assert_eq!(bracket_depth(r"f('((\'((') + r'((\' + g()"), 1);
        assert_eq!(bracket_depth("(a) // (((\n(b)"), 1);
        assert_eq!(bracket_depth("'''((\n((''' + \"\"\"((\"((\"\"\" + (a)"), 1);
        assert_eq!(bracket_depth(r"'\x41(\u00e9(\U0001F600(\101(' + (a)"), 1);
    }

    #[test]
    fn all_brackets_count_after_a_text_that_cannot_be_read() {
        for source in [
            "// '\n((((true))))",
            "'\n((((true)))) // '",
            "// \"\n((((true)))) // \"",
            r"'\q((((true))))'",
            r"'\x'((((true))))'",
            "'''\n((((true))))",
            r"xr'\'' + ((((true)))) + ''",
        ] {
            assert!(bracket_depth(source) >= 4, "{source}");
        }
        assert_eq!(bracket_depth("'((("), 3);
    }

    /// The number of the only name in a tree that is this.
    fn id_of(tree: &IdedExpr, name: &str) -> Option<u64> {
        match &tree.expr {
            Expr::Ident(own) => (own == name).then_some(tree.id),
            Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).find_map(|arg| id_of(arg, name)),
            Expr::Comprehension(comprehension) => id_of(&comprehension.loop_step, name),
            _ => None,
        }
    }

    #[test]
    fn parts_have_their_places() {
        for (source, line, column) in [
            ("here == 1", 1, 0),
            ("a && !!b || here", 1, 12),
            ("'日本' == 'ä' &&\n  a.all(x, x.f() && here) // here, not there", 2, 20),
            ("[1, 2].exists(x, !(x == -here))", 1, 25),
        ] {
            let read = |tree: IdedExpr, places: &dyn Fn() -> Places| {
                places().mistake(id_of(&tree, "here").expect(source), String::new())
            };
            let mistake = parse_with_places(source, read).expect(source);
            assert_eq!((mistake.line, mistake.column), (line, column), "{source}");
        }
    }

    #[test]
    fn mistakes_have_their_places() {
        let mistakes = parse_with_places("a &&\n  %", |_, _| ()).expect_err("it is none");
        assert_eq!((mistakes[0].line, mistakes[0].column), (2, 2));
        assert!(mistakes[0].text.starts_with("Syntax error: "));
    }
}
