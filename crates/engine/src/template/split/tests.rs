use proptest::{
    collection::vec,
    prelude::*,
    sample::Index,
    test_runner::{Config, TestCaseError, TestRng, TestRunner},
};

use super::*;

type Checked = Result<(), TestCaseError>;
/// Who divides manifests.
type Splitter = fn(&[usize]) -> Vec<usize>;
/// What holds for some sizes, of which one is to change to another.
type Property = fn(Splitter, &[usize], usize, usize) -> Checked;

fn ours(sizes: &[usize]) -> Vec<usize> {
    split(sizes.iter().copied())
}

/// The work that each manifest is in.
fn works(counts: &[usize]) -> Vec<usize> {
    counts.iter().enumerate().flat_map(|(work, count)| std::iter::repeat_n(work, *count)).collect()
}

/// The sizes of what is in each work.
fn contents<'a>(counts: &[usize], mut sizes: &'a [usize]) -> Vec<&'a [usize]> {
    let mut content = |count: &usize| {
        let (content, left) = sizes.split_at(*count);
        sizes = left;
        content
    };
    counts.iter().map(&mut content).collect()
}

fn nothing_is_lost_and_nothing_is_twice(splitter: Splitter, sizes: &[usize], _: usize, _: usize) -> Checked {
    let counts = splitter(sizes);
    prop_assert_eq!(counts.iter().sum::<usize>(), sizes.len());
    prop_assert!(!counts.contains(&0), "a work is empty: {:?}", counts);
    Ok(())
}

fn no_work_is_too_large(splitter: Splitter, sizes: &[usize], _: usize, _: usize) -> Checked {
    let counts = splitter(sizes);
    prop_assume!(counts.iter().sum::<usize>() == sizes.len());
    for content in contents(&counts, sizes) {
        prop_assert!(content.iter().sum::<usize>() <= LIMIT, "{:?}", content);
    }
    Ok(())
}

fn no_work_is_begun_while_there_is_room(splitter: Splitter, sizes: &[usize], _: usize, _: usize) -> Checked {
    let counts = splitter(sizes);
    prop_assume!(counts.iter().sum::<usize>() == sizes.len() && !counts.contains(&0));
    for pair in contents(&counts, sizes).windows(2) {
        prop_assert!(pair[0].iter().sum::<usize>() + pair[1][0] > LIMIT, "{:?}", pair);
    }
    Ok(())
}

fn a_change_moves_nothing_before_it(splitter: Splitter, sizes: &[usize], place: usize, size: usize) -> Checked {
    let mut changed = sizes.to_vec();
    changed[place] = size;
    let (before, after) = (works(&splitter(sizes)), works(&splitter(&changed)));
    prop_assert_eq!(before.get(..place), after.get(..place));
    Ok(())
}

fn what_is_appended_moves_nothing(splitter: Splitter, sizes: &[usize], _: usize, size: usize) -> Checked {
    let longer = [sizes, &[size]].concat();
    let (before, after) = (works(&splitter(sizes)), works(&splitter(&longer)));
    prop_assert_eq!(Some(before.as_slice()), after.get(..before.len()));
    Ok(())
}

const PROPERTIES: [Property; 5] = [
    nothing_is_lost_and_nothing_is_twice,
    no_work_is_too_large,
    no_work_is_begun_while_there_is_room,
    a_change_moves_nothing_before_it,
    what_is_appended_moves_nothing,
];

/// Whether a property holds in all of many cases.
fn holds(property: Property, splitter: Splitter) -> bool {
    let size = || prop_oneof![1..=LIMIT, Just(LIMIT), Just(LIMIT / 2), 1..1000_usize];
    let cases = (vec(size(), 1..12), any::<Index>(), size());
    let config = Config { cases: 512, failure_persistence: None, max_global_rejects: 1 << 20, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let check = |(sizes, place, size): (Vec<usize>, Index, usize)| {
        let place = place.index(sizes.len());
        property(splitter, &sizes, place, size)
    };
    TestRunner::new_with_rng(config, rng).run(&cases, check).is_ok()
}

#[test]
fn every_property_holds() {
    for property in PROPERTIES {
        assert!(holds(property, ours));
    }
}

/// Divides into works of about one size.
fn evens_out(sizes: &[usize]) -> Vec<usize> {
    let works = ours(sizes).len();
    let each = sizes.len().div_ceil(works);
    sizes.chunks(each).map(<[usize]>::len).collect()
}

fn forgets_the_last(sizes: &[usize]) -> Vec<usize> {
    ours(&sizes[..sizes.len() - 1])
}

fn begins_with_an_empty_one(sizes: &[usize]) -> Vec<usize> {
    [vec![0], ours(sizes)].concat()
}

fn takes_one_each(sizes: &[usize]) -> Vec<usize> {
    vec![1; sizes.len()]
}

/// Takes one more when the work is full.
fn overfills(sizes: &[usize]) -> Vec<usize> {
    let (mut counts, mut used) = (vec![0], 0);
    for size in sizes {
        if used > LIMIT {
            counts.push(0);
            used = 0;
        }
        *counts.last_mut().expect("there is one") += 1;
        used += size;
    }
    counts
}

/// Begins with as few as there are too many at the end.
fn fills_from_the_end(sizes: &[usize]) -> Vec<usize> {
    let reversed: Vec<_> = sizes.iter().rev().copied().collect();
    ours(&reversed).into_iter().rev().collect()
}

#[test]
fn every_fault_is_caught() {
    for (property, splitter) in [
        (nothing_is_lost_and_nothing_is_twice as Property, forgets_the_last as Splitter),
        (nothing_is_lost_and_nothing_is_twice, begins_with_an_empty_one),
        (no_work_is_too_large, overfills),
        (no_work_is_too_large, evens_out),
        (no_work_is_begun_while_there_is_room, takes_one_each),
        (a_change_moves_nothing_before_it, evens_out),
        (a_change_moves_nothing_before_it, fills_from_the_end),
        (what_is_appended_moves_nothing, fills_from_the_end),
    ] {
        assert!(!holds(property, splitter), "{splitter:p} gets away with it");
    }
}

#[test]
fn one_that_is_too_large_is_alone() {
    assert_eq!(ours(&[1, LIMIT + 1, 1]), [1, 1, 1]);
    assert_eq!(ours(&[LIMIT, 0]), [2]);
    assert_eq!(ours(&[]), Vec::<usize>::new());
}
