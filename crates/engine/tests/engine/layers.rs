//! Modules of the engine use only modules above them in a list of layers, so that a reader of one
//! module never has to know those below it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    str::FromStr,
};

use proc_macro2::{TokenStream, TokenTree};

/// The layers, from the top. Modules of one row may use each other, without a cycle.
const LAYERS: [&[&str]; 10] = [
    &["plan"],
    &["condition", "hash", "cel", "jsonpath", "quantity", "dialect", "certificate", "owner", "plural", "time", "words"],
    &["cluster", "cluster_set", "join", "placement"],
    &["revision", "presence", "manifestwork", "workreport", "steering"],
    &["member"],
    &["rollout"],
    &["tracker"],
    &["template", "registration"],
    &["addon", "work", "upgrade"],
    &["explain"],
];

type Edges = BTreeMap<String, BTreeSet<String>>;

#[test]
fn modules_use_only_modules_of_layers_above() {
    let edges = edges();
    let mut wrong: BTreeSet<_> = edges.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to))).collect();
    wrong.retain(|(from, to)| layer_of(to) > layer_of(from));
    assert!(wrong.is_empty(), "move what is used to a layer above: {wrong:?}");
}

#[test]
fn modules_of_one_layer_form_no_cycle() {
    let edges = edges();
    for layer in LAYERS {
        let mut left: BTreeSet<_> = layer.iter().copied().collect();
        // Modules that use none of those that are left are not part of a cycle.
        while let Some(free) = left.iter().find(|module| !uses_any(&edges, module, &left)).copied() {
            left.remove(free);
        }
        assert!(left.is_empty(), "a cycle: {left:?}");
    }
}

#[test]
fn every_module_is_in_a_layer() {
    let known: BTreeSet<_> = LAYERS.into_iter().flatten().copied().collect();
    for module in modules() {
        assert!(known.contains(module.as_str()), "{module} is in no layer");
    }
}

#[test]
fn uses_are_found_in_code_and_not_in_comments() {
    let code = "//! [`crate::doc`]\nuse crate::{a::B, c::{D, e}}; // crate::no\nfn f() -> crate::g::H { \"crate::text\"; super::i() }";
    assert_eq!(used_by(code), ["a", "c", "g"].map(str::to_owned).into());
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn uses_any(edges: &Edges, module: &str, others: &BTreeSet<&str>) -> bool {
    edges.get(module).is_some_and(|used| used.iter().any(|used| others.contains(used.as_str())))
}

/// The modules that each module uses, itself not among them.
fn edges() -> Edges {
    let mut edges = Edges::new();
    for (module, file) in sources() {
        let code = fs::read_to_string(&file).expect("a source can be read");
        let used = used_by(&code).into_iter().filter(|used| *used != module);
        edges.entry(module.clone()).or_default().extend(used);
    }
    assert!(edges.len() > 10, "the sources are not where they are looked for");
    edges
}

fn modules() -> BTreeSet<String> {
    sources().into_iter().map(|(module, _)| module).collect()
}

/// Each file of the engine, with the module at the root of the crate that it is part of.
fn sources() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = files_in(&root);
    files.retain(|file| *file != root.join("lib.rs"));
    let module = |file: &Path| {
        let first = file.strip_prefix(&root).expect("it is below").iter().next().expect("it has a name");
        first.to_string_lossy().trim_end_matches(".rs").to_owned()
    };
    files.into_iter().map(|file| (module(&file), file)).collect()
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder can be read").map(|entry| entry.expect("an entry").path());
    let nested = |path: PathBuf| if path.is_dir() { files_in(&path) } else { vec![path] };
    entries.flat_map(nested).filter(|path| path.extension().is_some_and(|it| it == "rs")).collect()
}

/// The modules at the root of the crate that some code names: those after each `crate::`.
fn used_by(code: &str) -> BTreeSet<String> {
    let tokens = TokenStream::from_str(code).expect("a source can be parsed");
    let mut used = BTreeSet::new();
    collect(tokens, &mut used);
    used
}

fn collect(tokens: TokenStream, used: &mut BTreeSet<String>) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => collect(group.stream(), used),
            TokenTree::Ident(name) if name == "crate" => used.extend(first_names(&tokens[at + 1..])),
            _ => {}
        }
    }
}

/// The first name of each path that goes on like this after `crate`: one, or several in braces.
fn first_names(rest: &[TokenTree]) -> Vec<String> {
    match rest {
        [TokenTree::Punct(_), TokenTree::Punct(_), TokenTree::Ident(name), ..] => vec![name.to_string()],
        [TokenTree::Punct(_), TokenTree::Punct(_), TokenTree::Group(list), ..] => names_in(list.stream()),
        _ => Vec::new(),
    }
}

/// The first name of each path in a list of them.
fn names_in(list: TokenStream) -> Vec<String> {
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ',');
    let tokens: Vec<_> = list.into_iter().collect();
    let first = |path: &[TokenTree]| path.first().map(ToString::to_string);
    tokens.split(is_comma).filter_map(first).collect()
}
