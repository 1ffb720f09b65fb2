//! What the targets assert of bytes a taken-over worker may want signed, or may show as a client's proof.

use authd::{
    certificate::Shown,
    sign::input::{self, Input},
};
use child_ipc::{
    link::worker_authd::{CERTIFICATE, Possession, SIGNATURE},
    types::Blob,
};
use rustls::SignatureScheme;

/// What a worker may say that a client has shown, for an account that has every certificate: nothing is proved by bytes alone.
pub fn shown(bytes: &[u8]) {
    let (scheme, rest) = bytes.split_first_chunk().map_or((0, bytes), |(scheme, rest)| (u16::from_be_bytes(*scheme), rest));
    let (transcript, rest) = rest.split_at(rest.len().min(32));
    let (signature, certificate) = rest.split_at(rest.len().min(SIGNATURE).min(72));
    let possession = Possession {
        certificate: Blob::<CERTIFICATE>::cut(certificate),
        transcript: Blob::cut(transcript),
        scheme,
        signature: Blob::cut(signature),
    };
    assert!(Shown::judge(Some(&possession), |_| true).is_err());
    assert!(matches!(Shown::judge(Some(&possession), |_| false), Ok(Shown::Other(_))));
}

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
