//! Things into bins of limited size, each left in the bin that it is in.

/// A bin that was filled.
#[derive(Debug, PartialEq)]
pub(super) struct Bin<T> {
    /// The bin that it was before, if it is not new.
    pub(super) origin: Option<usize>,
    /// What is in it, in order.
    pub(super) items: Vec<T>,
}

/// Puts things, which come in order, into as few bins as can hold them. `bin_of` says in which bin a thing is now. A thing
/// leaves it only if the bin became too small, or if one bin less is needed; then the emptiest goes. Bins that are kept come
/// in their order, new ones behind them.
pub(super) fn pack<T>(items: Vec<T>, bin_of: impl Fn(&T) -> Option<usize>, capacity: usize) -> Vec<Bin<T>> {
    let needed = items.len().div_ceil(capacity);
    let (mut bins, mut homeless) = sort(items, bin_of, capacity);
    // The fullest first; of two as full, the first. The sort is stable.
    bins.sort_by_key(|bin| std::cmp::Reverse(bin.items.len()));
    let surplus = bins.split_off(needed.min(bins.len()));
    homeless.extend(surplus.into_iter().flat_map(|bin| bin.items));
    bins.sort_by_key(|bin| bin.origin);
    bins.extend((bins.len()..needed).map(|_| Bin { origin: None, items: Vec::new() }));
    homeless.sort_unstable_by_key(|(place, _)| *place);

    let mut homeless = homeless.into_iter();
    for bin in &mut bins {
        let room = capacity - bin.items.len();
        bin.items.extend(homeless.by_ref().take(room));
        bin.items.sort_unstable_by_key(|(place, _)| *place);
    }
    bins.into_iter().map(unnumbered).collect()
}

/// A thing with its place in the order.
type Placed<T> = (usize, T);

/// Leaves things where they are, as far as there is room. The rest has no home.
fn sort<T>(
    items: Vec<T>,
    bin_of: impl Fn(&T) -> Option<usize>,
    capacity: usize,
) -> (Vec<Bin<Placed<T>>>, Vec<Placed<T>>) {
    let mut bins = std::collections::BTreeMap::<usize, Vec<Placed<T>>>::new();
    let mut homeless = Vec::new();
    for (place, item) in items.into_iter().enumerate() {
        match bin_of(&item).map(|bin| bins.entry(bin).or_default()) {
            Some(bin) if bin.len() < capacity => bin.push((place, item)),
            _ => homeless.push((place, item)),
        }
    }
    (bins.into_iter().map(|(bin, items)| Bin { origin: Some(bin), items }).collect(), homeless)
}

fn unnumbered<T>(bin: Bin<Placed<T>>) -> Bin<T> {
    Bin { origin: bin.origin, items: bin.items.into_iter().map(|(_, item)| item).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(items: &[(u32, Option<usize>)], capacity: usize) -> Vec<(Option<usize>, Vec<u32>)> {
        let bins = pack(items.to_vec(), |(_, bin)| *bin, capacity);
        bins.into_iter().map(|bin| (bin.origin, bin.items.into_iter().map(|(item, _)| item).collect())).collect()
    }

    #[test]
    fn new_things_fill_bins_in_order() {
        assert_eq!(packed(&[(1, None), (2, None), (3, None)], 2), [(None, vec![1, 2]), (None, vec![3])]);
    }

    #[test]
    fn a_newcomer_moves_nobody() {
        let items = [(1, None), (2, Some(0)), (3, Some(0)), (4, Some(1))];
        assert_eq!(packed(&items, 2), [(Some(0), vec![2, 3]), (Some(1), vec![1, 4])]);
    }

    #[test]
    fn the_emptiest_bin_goes_when_one_less_is_needed() {
        let items = [(1, Some(0)), (2, Some(1)), (3, Some(2)), (4, Some(2))];
        assert_eq!(packed(&items, 2), [(Some(0), vec![1, 2]), (Some(2), vec![3, 4])]);
    }

    #[test]
    fn what_no_longer_fits_moves_on() {
        let items = [(1, Some(7)), (2, Some(7)), (3, Some(7))];
        assert_eq!(packed(&items, 2), [(Some(7), vec![1, 2]), (None, vec![3])]);
    }
}
