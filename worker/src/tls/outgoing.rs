//! Bytes on their way to a client. The room keeps its length, so that records are written into it without filling it first.

/// Bytes on their way out.
#[derive(Debug, Default)]
pub struct Outgoing {
    bytes: Vec<u8>,
    filled: usize,
}

impl Outgoing {
    /// What is to be sent.
    pub fn filled(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
    }

    /// Nothing is to be sent any more; the room stays.
    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// Appends bytes as they are.
    pub fn push(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.filled += bytes.len();
    }

    /// Room for so many bytes behind what is filled; [`Outgoing::fill`] tells how many were used.
    pub fn room(&mut self, wanted: usize) -> &mut [u8] {
        let end = self.filled.saturating_add(wanted);
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes.get_mut(self.filled..end).unwrap_or_default()
    }

    /// So many bytes of the room have been written.
    pub fn fill(&mut self, written: usize) {
        self.filled = self.filled.saturating_add(written).min(self.bytes.len());
    }

    /// The first bytes have been sent.
    pub fn sent(&mut self, count: usize) {
        let count = count.min(self.filled);
        self.bytes.copy_within(count..self.filled, 0);
        self.filled -= count;
    }
}
