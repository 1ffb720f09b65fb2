//! What the target asserts of bytes a taken-over worker may want signed.

use authd::sign::input::{self, Input};
use rustls::SignatureScheme;

/// Judges `message`; what is accepted is read once more, from its end, as a client would build it.
pub fn sign_input(message: &[u8]) {
    match input::judge(message) {
        None => {}
        Some(Input::Tls13) => {
            let hash = message.len() - 98;
            assert!(hash == 32 || hash == 48);
            assert!(message.starts_with(&[b' '; 64]));
            assert_eq!(&message[64..98], b"TLS 1.3, server CertificateVerify\0");
            assert!(!Input::Tls13.takes(SignatureScheme::RSA_PKCS1_SHA256));
        }
        Some(Input::Tls12) => {
            let (randoms, point) = (64, usize::from(message[67]));
            assert_eq!(message.len(), randoms + 4 + point);
            assert!(matches!(
                (&message[64..67], point, message[68]),
                ([3, 0, 0x17], 65, 4) | ([3, 0, 0x18], 97, 4) | ([3, 0, 0x1d], 32, _)
            ));
        }
    }
}
