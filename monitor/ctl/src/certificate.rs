//! `caissonctl make-certificate`: a self-signed certificate and its key, to begin with.
//!
//! Runs as the admin. Nothing that is there already is overwritten; the key is its owner's from its first byte on.
//! Not here: reading them back (authd/src/keys.rs).

use std::{
    fs::OpenOptions,
    io::Write as _,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use lexopt::{Arg, Parser, ValueExt};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256};

/// Ten years: nobody renews it, and clients are told to trust this very one.
const VALID: Duration = Duration::from_secs(3650 * 86_400);

/// What to make.
#[derive(Debug)]
pub struct Make {
    dir: PathBuf,
    names: Vec<String>,
}

/// Parses what stands behind `make-certificate`.
pub fn parse(parser: &mut Parser) -> Result<Make, lexopt::Error> {
    let mut words = Vec::new();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Value(word) => words.push(word),
            other => return Err(other.unexpected()),
        }
    }
    let mut words = words.into_iter();
    let dir = words.next().ok_or("make-certificate: expected a directory")?;
    let names = words.map(|word| word.string()).collect::<Result<Vec<_>, _>>()?;
    if names.is_empty() {
        return Err("make-certificate: expected the names or addresses by which clients reach this machine".into());
    }
    // Made before anything else runs elsewhere, and told whole.
    Ok(Make { dir: std::path::absolute(dir).map_err(|e| format!("make-certificate: {e}"))?, names })
}

/// Makes both files; what to write into caisson.toml.
pub fn run(make: &Make) -> Result<String, String> {
    let (certificate, key) = generate(&make.names)?;
    let (certificate_file, key_file) = (make.dir.join("certificate.pem"), make.dir.join("key.pem"));
    write(&key_file, &key, 0o600)?;
    write(&certificate_file, &certificate, 0o644)?;
    Ok(format!("[[certificate]]\ncertificate = {certificate_file:?}\nkey = {key_file:?}\n"))
}

/// Certificate and key in PEM.
fn generate(names: &[String]) -> Result<(String, String), String> {
    let fail = |e: rcgen::Error| format!("make-certificate: {e}; expected host names or addresses");
    let mut of = CertificateParams::new(names).map_err(fail)?;
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    of.not_before = rcgen::date_time_ymd(1970, 1, 1) + since_1970;
    of.not_after = of.not_before + VALID;
    of.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    of.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    of.distinguished_name.push(DnType::CommonName, names.first().map_or("", String::as_str));
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(fail)?;
    Ok((of.self_signed(&key).map_err(fail)?.pem(), key.serialize_pem()))
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), String> {
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|e| format!("make-certificate: {}: {e}; nothing is overwritten", path.display()))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::MetadataExt};

    use super::*;

    #[test]
    fn both_files_are_made_the_key_for_its_owner_alone_and_never_twice() {
        let dir = std::env::temp_dir().join(format!("caisson-make-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let make = Make { dir: dir.clone(), names: vec!["ftp.example.org".into(), "192.0.2.7".into()] };
        let section = run(&make).unwrap();
        let again = run(&make).unwrap_err();
        let (key, mode) = (fs::read_to_string(dir.join("key.pem")).unwrap(), dir.join("key.pem").metadata().unwrap());
        let certificate = fs::read_to_string(dir.join("certificate.pem")).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        assert!(section.starts_with("[[certificate]]\ncertificate = \"/") && section.contains("key.pem\"\n"));
        assert!(again.contains("key.pem") && again.contains("nothing is overwritten"), "{again}");
        assert_eq!(mode.mode() & 0o7777, 0o600);
        assert!(key.starts_with("-----BEGIN PRIVATE KEY-----") && certificate.starts_with("-----BEGIN CERTIFICATE"));
    }

    #[test]
    fn names_are_asked_for_and_judged() {
        let parsed = |words: &[&str]| parse(&mut Parser::from_args(words)).map(|make| make.names);
        assert!(parsed(&[]).unwrap_err().to_string().contains("a directory"));
        assert!(parsed(&["/d"]).unwrap_err().to_string().contains("names or addresses"));
        assert_eq!(parsed(&["/d", "a", "::1"]).unwrap(), ["a", "::1"]);
        assert!(generate(&["\u{e4}".to_owned()]).unwrap_err().contains("expected host names"));
    }
}
