//! What every link's target asserts: what decodes, encodes and decodes to the same again.

use child_ipc::{Record, wire};

/// Feeds one datagram to the decoder of `R`.
pub fn record<R: Record>(data: &[u8]) {
    let Ok(record) = wire::decode::<R>(data) else { return };
    let mut first = vec![0; R::CAP];
    let first = wire::encode(&record, &mut first).expect("what was decoded fits the cap again");
    let again: R = wire::decode(first).unwrap_or_else(|breach| panic!("encoded, then refused: {breach}"));
    let mut second = vec![0; R::CAP];
    assert_eq!(Some(first), wire::encode(&again, &mut second).map(|b| &*b));
}
