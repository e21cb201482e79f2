//! A ring buffer of fixed capacity: the newest items push the oldest out.

/// Keeps the last `capacity` items that were pushed.
#[derive(Debug, Clone)]
pub struct RingBuffer<T> {
    items: Vec<T>,
    capacity: usize,
    next: usize,
}

impl<T> RingBuffer<T> {
    /// An empty buffer. Panics when `capacity` is zero.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a ring buffer holds at least one item");
        RingBuffer { items: Vec::with_capacity(capacity), capacity, next: 0 }
    }

    /// Adds an item; returns the oldest one when it had to go.
    pub fn push(&mut self, item: T) -> Option<T> {
        if self.items.len() < self.capacity {
            self.items.push(item);
            return None;
        }
        let old = std::mem::replace(&mut self.items[self.next], item);
        self.next = (self.next + 1) % self.capacity;
        Some(old)
    }

    /// From the oldest to the newest item.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let (newer, older) = self.items.split_at(self.next);
        older.iter().chain(newer.iter())
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_push_the_oldest_out() {
        let mut buffer = RingBuffer::new(3);
        let gone: Vec<_> = (1..=5).filter_map(|n| buffer.push(n)).collect();
        assert_eq!(gone, [1, 2]);
        assert_eq!(buffer.iter().copied().collect::<Vec<_>>(), [3, 4, 5]);
    }
}
