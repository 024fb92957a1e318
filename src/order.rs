//! Sorting, in one small place: every sort of the standard library would be 5 KB of the wasm.

use std::collections::BinaryHeap;

/// Sorts by a number; what has equal ones stays in its order.
pub(crate) fn sort<T>(items: &mut Vec<T>, key: impl Fn(&T) -> u64) {
    if items.is_sorted_by_key(&key) {
        return;
    }
    let order = order(items.iter().map(key).collect());
    let mut old: Vec<Option<T>> = std::mem::take(items).into_iter().map(Some).collect();
    items.extend(order.into_iter().filter_map(|at| old[at].take()));
}

/// The places of the keys in ascending order.
fn order(keys: Vec<u64>) -> Vec<usize> {
    let pairs: BinaryHeap<(u64, usize)> = keys.into_iter().zip(0..).collect();
    pairs.into_sorted_vec().into_iter().map(|(_, at)| at).collect()
}
