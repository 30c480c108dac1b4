//! How it is looked for a case in which a property does not hold.
//!
//! The cases are random, and the same in every run. `PROPTEST_CASES` makes it look longer.

use proptest::{
    strategy::Strategy,
    test_runner::{Config, TestCaseError, TestError, TestRng, TestRunner},
};

/// How many cases are tried where nothing is said.
const CASES: u32 = 64;
/// How many steps are taken to make a case smaller in which a property does not hold.
const STEPS: u32 = 4000;

/// Whether a property holds in a case.
pub(crate) type Checked = Result<(), TestCaseError>;

/// Looks for a case in which a property does not hold.
pub(crate) fn counterexample<S: Strategy>(strategy: &S, property: impl Fn(S::Value) -> Checked) -> Option<String> {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    counterexample_of(strategy, cases.unwrap_or(CASES), STEPS, property)
}

/// Looks for one among so many, and makes it as small as so many steps can.
pub(crate) fn counterexample_of<S: Strategy>(
    strategy: &S,
    cases: u32,
    max_shrink_iters: u32,
    property: impl Fn(S::Value) -> Checked,
) -> Option<String> {
    let config = Config { cases, failure_persistence: None, max_shrink_iters, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    match TestRunner::new_with_rng(config, rng).run(strategy, property) {
        Ok(()) => None,
        Err(TestError::Fail(reason, case)) => Some(format!("{reason}\n{case:?}")),
        Err(TestError::Abort(reason)) => Some(reason.to_string()),
    }
}

/// Makes a test of each property: that it holds for the engine.
macro_rules! holds_for_the_engine {
    ($($property:ident in $strategy:expr;)*) => {$(
        mod $property {
            use super::*;

            #[test]
            fn holds() {
                if let Some(case) = counterexample(&$strategy, |case| super::$property(&Engine, &case)) {
                    panic!("{case}");
                }
            }
        }
    )*};
}

pub(crate) use holds_for_the_engine;
