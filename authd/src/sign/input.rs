//! What may be signed: the two things a TLS server signs in a handshake, to the byte, and nothing else.
//!
//! Reads from: a worker (hostile). One that was taken over could otherwise have anything signed with the server's key: a
//! certificate request, a code update, a login elsewhere.
//! Not here: who holds which key (keys.rs).

use rustls::SignatureScheme;

/// What is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The parameters of a TLS 1.2 ServerKeyExchange behind both random values (RFC 8422 5.4).
    Tls12,
    /// A TLS 1.3 CertificateVerify of a server (RFC 8446 4.4.3).
    Tls13,
}

/// How a TLS 1.3 server's begins: 64 spaces, the context, a zero.
const CONTEXT: &[u8] = b"TLS 1.3, server CertificateVerify\0";
/// Of them so many.
pub const SPACES: usize = 64;
/// Lengths of transcript hashes: SHA-256, and SHA-384 (RFC 8446 B.4).
pub const HASHES: [usize; 2] = [32, 48];
/// ClientHello.random and ServerHello.random.
const RANDOMS: usize = 64;
/// ECCurveType named_curve (RFC 8422 5.4).
const NAMED_CURVE: u8 = 3;

/// What a message is; `None`: nothing to be signed.
#[must_use]
pub fn judge(message: &[u8]) -> Option<Input> {
    if is_tls13(message) {
        Some(Input::Tls13)
    } else if is_tls12(message) {
        Some(Input::Tls12)
    } else {
        None
    }
}

impl Input {
    /// Whether a scheme may sign it: PKCS#1 v1.5 signs no TLS 1.3 handshake (RFC 8446 4.2.3).
    #[must_use]
    pub fn takes(self, scheme: SignatureScheme) -> bool {
        use SignatureScheme as S;
        self == Input::Tls12 || !matches!(scheme, S::RSA_PKCS1_SHA256 | S::RSA_PKCS1_SHA384 | S::RSA_PKCS1_SHA512)
    }
}

fn is_tls13(message: &[u8]) -> bool {
    let Some((spaces, rest)) = message.split_at_checked(SPACES) else { return false };
    let hash = rest.strip_prefix(CONTEXT);
    spaces.iter().all(|&byte| byte == b' ') && hash.is_some_and(|hash| HASHES.contains(&hash.len()))
}

fn is_tls12(message: &[u8]) -> bool {
    let Some((_, params)) = message.split_at_checked(RANDOMS) else { return false };
    let [NAMED_CURVE, high, low, length, point @ ..] = params else { return false };
    let group = u16::from_be_bytes([*high, *low]);
    usize::from(*length) == point.len() && is_point(group, point)
}

/// Whether a point is one of a group, by its form; groups of the supported groups registry (RFC 8446 4.2.7).
fn is_point(group: u16, point: &[u8]) -> bool {
    // The form of points is uncompressed where there is a choice (RFC 8422 5.4.1).
    match (group, point) {
        // secp256r1, secp384r1
        (0x17, [4, x_and_y @ ..]) => x_and_y.len() == 64,
        (0x18, [4, x_and_y @ ..]) => x_and_y.len() == 96,
        // x25519
        (0x1d, u) => u.len() == 32,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tls13(hash: usize) -> Vec<u8> {
        [&[b' '; 64][..], CONTEXT, &vec![7; hash]].concat()
    }

    fn tls12(group: u8, point: &[u8]) -> Vec<u8> {
        [&[9; 64][..], &[3, 0, group, point.len() as u8], point].concat()
    }

    fn uncompressed(length: usize) -> Vec<u8> {
        [&[4][..], &vec![5; length]].concat()
    }

    #[test]
    fn what_a_tls_server_signs_is_signed() {
        assert_eq!([32, 48].map(|hash| judge(&tls13(hash))), [Some(Input::Tls13); 2]);
        let points = [(0x17, uncompressed(64)), (0x18, uncompressed(96)), (0x1d, vec![1; 32])];
        for (group, point) in points {
            assert_eq!(judge(&tls12(group, &point)), Some(Input::Tls12), "{group}");
        }
    }

    #[test]
    fn a_message_of_another_length_or_with_one_byte_wrong_is_not() {
        for good in [tls13(32), tls13(48)] {
            // Behind the context every byte is the hash's.
            for place in 0..SPACES + CONTEXT.len() {
                let mut bad = good.clone();
                bad[place] ^= 1;
                assert_eq!(judge(&bad), None, "{place}");
            }
        }
        for (group, length) in [(0x17, 64), (0x18, 96)] {
            let good = tls12(group, &uncompressed(length));
            for place in RANDOMS..RANDOMS + 5 {
                let mut bad = good.clone();
                bad[place] ^= 0x80;
                assert_eq!(judge(&bad), None, "{place}");
            }
            assert_eq!(judge(&good[..good.len() - 1]), None);
            assert_eq!(judge(&[&good[..], &[0]].concat()), None);
        }
        for length in [0, 1, 31, 33, 47, 49, 64] {
            assert_eq!(judge(&tls13(length)), None, "{length}");
        }
        for nothing in [&b""[..], &[b' '; 64], &[b' '; 200], &[0; 64], &[0; 68], CONTEXT] {
            assert_eq!(judge(nothing), None);
        }
    }

    #[test]
    fn what_others_sign_is_not() {
        // A client's CertificateVerify differs in one word.
        let client = [&[b' '; 64][..], b"TLS 1.3, client CertificateVerify\0", &[7; 32]].concat();
        // Finite fields, explicit curves, compressed points, curves nobody here has.
        let explicit = [&[9; 64][..], &[1, 0, 0x17, 65], &uncompressed(64)].concat();
        let compressed = [&[2][..], &[5; 64]].concat();
        for bad in [client, explicit, tls12(0x17, &compressed), tls12(0x19, &uncompressed(132)), tls12(0x1e, &[1; 56])]
        {
            assert_eq!(judge(&bad), None);
        }
    }

    #[test]
    fn pkcs1_signs_tls_1_2_alone() {
        assert!(!Input::Tls13.takes(SignatureScheme::RSA_PKCS1_SHA256));
        assert!(Input::Tls12.takes(SignatureScheme::RSA_PKCS1_SHA256));
        assert!(Input::Tls13.takes(SignatureScheme::RSA_PSS_SHA256));
    }
}
