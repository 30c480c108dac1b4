//! How manifests are divided among works.
//!
//! They stay in their order, and a work is full when the next one does not fit. So where a manifest goes depends on those before it alone:
//! a change never moves what stands before it, and what is added at the end moves nothing.

/// How many bytes of manifests a work holds. An API server takes 500 KiB well, and a part of them is for what is said of the manifests.
pub(super) const LIMIT: usize = 409_600;

/// How many manifests of these sizes each work gets, one after the other. One that is larger than a work gets a work of its own.
pub(super) fn split(sizes: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut counts: Vec<usize> = Vec::new();
    let mut room = 0;
    for size in sizes {
        match counts.last_mut() {
            Some(count) if size <= room => *count += 1,
            _ => {
                counts.push(1);
                room = LIMIT;
            }
        }
        room = room.saturating_sub(size);
    }
    counts
}

#[cfg(test)]
mod tests;
