//! Call ids in use, for formats in which each must be unique over the whole conversation.

use std::hash::Hasher;

use crate::transcript::{HashKey, hasher};

/// An open-addressed table of keyed hashes of ids, with how often each was asked for.
pub(crate) struct Ids {
    /// Hash, never 0, and count; a power of two of them.
    slots: Vec<(u64, u32)>,
    used: usize,
    key: HashKey,
}

impl Ids {
    pub(crate) fn new(key: HashKey) -> Ids {
        Ids { slots: Vec::new(), used: 0, key }
    }

    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.used = 0;
    }

    /// Takes an id, or, where it is taken, one made from it; none where it stays as it is. The
    /// same ids in the same order give the same answers.
    pub(crate) fn take(&mut self, id: &str) -> Option<String> {
        let at = self.slot(id);
        self.slots[at].1 += 1;
        if self.slots[at].1 == 1 || id.is_empty() {
            return None;
        }
        let mut count = self.slots[at].1;
        loop {
            // Strict vendors allow letters, digits, `_` and `-`.
            let name = format!("{id}_{count}");
            let other = self.slot(&name);
            if self.slots[other].1 == 0 {
                self.slots[other].1 = 1;
                let at = self.slot(id);
                self.slots[at].1 = count;
                return Some(name);
            }
            count += 1;
        }
    }

    /// Whether an id was asked for before; nothing is made from it.
    pub(crate) fn repeats(&mut self, id: &str) -> bool {
        let at = self.slot(id);
        self.slots[at].1 += 1;
        self.slots[at].1 > 1
    }

    /// The slot of an id, which it gets if it has none.
    fn slot(&mut self, id: &str) -> usize {
        if self.used * 2 >= self.slots.len() {
            let larger = vec![(0, 0); (self.slots.len() * 2).max(16)];
            for entry in std::mem::replace(&mut self.slots, larger) {
                if entry.0 != 0 {
                    let at = self.find(entry.0);
                    self.slots[at] = entry;
                }
            }
        }
        let mut hash = hasher(self.key);
        hash.write(id.as_bytes());
        let hash = hash.finish() | 1;
        let at = self.find(hash);
        if self.slots[at].0 == 0 {
            self.slots[at].0 = hash;
            self.used += 1;
        }
        at
    }

    fn find(&self, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = (hash >> 1) as usize & mask;
        while self.slots[at].0 != 0 && self.slots[at].0 != hash {
            at = (at + 1) & mask;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_is_given_once() {
        let mut ids = Ids::new((1, 2));
        let asked = ["a", "b", "a", "a_2", "a", "a_3", "", ""];
        let given = asked.map(|id| ids.take(id).unwrap_or_else(|| id.to_owned()));
        assert_eq!(given, ["a", "b", "a_2", "a_2_2", "a_3", "a_3_2", "", ""]);
        ids.clear();
        assert_eq!(ids.take("a"), None);
    }

    #[test]
    fn many_ids_and_one_id_many_times_are_told_apart() {
        let mut ids = Ids::new((3, 4));
        for at in 0..20_000 {
            assert_eq!(ids.take(&format!("x{at}")), None);
        }
        assert_eq!(ids.take("call"), None);
        for at in 2..20_000 {
            assert_eq!(ids.take("call"), Some(format!("call_{at}")));
        }
    }
}
