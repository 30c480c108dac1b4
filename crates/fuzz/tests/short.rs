//! The short form: every target is given its corpus, and random changes of it, on the stack that a
//! request has.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use drover_fuzz::{TARGETS, Target, accept};
use serde_json::json;

/// How long each target runs. With `DROVER_FUZZ_SECONDS`, longer.
const TIME: Duration = Duration::from_millis(400);
/// The stack of a thread that answers requests.
const STACK: usize = 2 << 20;
/// What bodies and patches are often made of.
const PARTS: [&[u8]; 24] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"a\":",
    b",",
    b"\"",
    b"null",
    b"{\"a\":",
    b"[{\"a\":",
    b"- ",
    b"a:\n  ",
    b"&a ",
    b"*a ",
    b"<<: *a",
    b"\n---\n",
    b"\"$patch\":\"delete\"",
    b"\"metadata\":{",
    b"\"managedFields\":[",
    b"\"fieldsV1\":{",
    b"1e400",
    b"\xff",
    b"\\u0000",
    b"\"op\":\"copy\",\"from\":\"/data\",\"path\":\"/data/b\"",
];

fn corpus_of(target: &str) -> Vec<Vec<u8>> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut files: Vec<_> =
        fs::read_dir(&folder).expect("a target has a corpus").flatten().map(|it| it.path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).expect("a file can be read")).collect()
}

/// Numbers that look random, and are the same again.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap_or_default()
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap_or_default()
    }

    /// An input with a few changes.
    fn changed(&mut self, input: &[u8]) -> Vec<u8> {
        let mut input = input.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(input.len() + 1);
            match self.below(5) {
                0 if at < input.len() => input[at] = self.byte(),
                1 => drop(input.splice(at..at, [self.byte()])),
                2 => {
                    let part = PARTS[self.below(PARTS.len())].repeat(1 + self.below(4) * self.below(200));
                    drop(input.splice(at..at, part));
                }
                3 => drop(input.drain(at..(at + self.below(8)).min(input.len()))),
                _ => {
                    let copied = input[at..(at + self.below(64)).min(input.len())].to_vec();
                    let to = self.below(input.len() + 1);
                    drop(input.splice(to..to, copied));
                }
            }
        }
        input
    }
}

fn run((name, target): Target) {
    let corpus = corpus_of(name);
    for input in &corpus {
        target(input);
    }
    let seconds = std::env::var("DROVER_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let (time, begun) = (seconds.map_or(TIME, Duration::from_secs), Instant::now());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut executions = corpus.len();
    while begun.elapsed() < time {
        let chosen = random.below(corpus.len());
        let input = random.changed(&corpus[chosen]);
        target(&input);
        executions += 1;
    }
    assert!(executions > corpus.len(), "{name} was given nothing new");
}

macro_rules! targets {
    ($($name:ident: $at:literal),+ $(,)?) => {
        $(
            #[test]
            fn $name() {
                let thread = std::thread::Builder::new().stack_size(STACK).spawn(|| run(TARGETS[$at]));
                thread.unwrap().join().unwrap();
            }
        )+

        #[test]
        fn every_target_is_run() {
            assert_eq!([$($at),+].len(), TARGETS.len());
        }
    };
}

targets! {
    json_body: 0,
    yaml_body: 1,
    protobuf_body: 2,
    json_patch: 3,
    json_patch_operations: 4,
    merge_patch: 5,
    strategic_merge_patch: 6,
    apply_patch: 7,
}

/// The property itself: an object that is one level too deep is not accepted.
#[test]
#[should_panic(expected = "what is accepted is within the limit")]
fn planted_object_that_is_too_deep_is_found() {
    accept(&(0..=drover_apiserver::depth::MAX_DEPTH).fold(json!(1), |inner, _| json!({ "a": inner })));
}
