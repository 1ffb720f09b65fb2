//! The verbs: one row each, sorted. FEAT and HELP come from here.

use super::{Context, Out, State, cmd, state::Ready};

/// What runs a verb.
#[derive(Debug, Clone, Copy)]
pub enum Run {
    /// In every state that takes lines.
    Any(fn(State, &[u8], &Context<'_>, &mut Out) -> State),
    /// Only when logged in: 530 before.
    Ready(fn(Ready, &[u8], &Context<'_>, &mut Out) -> State),
}

/// Whether FEAT has a line for a verb.
#[derive(Debug, Clone, Copy)]
pub enum Feature {
    /// It belongs to RFC 959: none.
    None,
    /// This one.
    Line(&'static str),
    /// This one, if there is a certificate (RFC 4217 6).
    IfSecure(&'static str),
    /// This one, if active mode is on.
    IfActive(&'static str),
    /// These.
    Lines(&'static [&'static str]),
    /// The algorithms of HASH, with a star behind the one in force.
    Hash,
    /// The facts of MLST, with stars behind those in force.
    Facts,
}

/// A verb.
#[derive(Debug, Clone, Copy)]
pub struct Verb {
    /// In upper case.
    pub name: &'static str,
    /// Its arguments, for HELP.
    pub args: &'static str,
    /// It uses a data connection: 425 when no port was agreed on.
    pub data: bool,
    /// Its line in FEAT.
    pub feature: Feature,
    /// What runs it.
    pub run: Run,
}

const DATA: bool = true;
const ____: bool = false;

const fn any(
    name: &'static str,
    args: &'static str,
    feature: Feature,
    run: fn(State, &[u8], &Context<'_>, &mut Out) -> State,
) -> Verb {
    Verb { name, args, data: false, feature, run: Run::Any(run) }
}

const fn ready(
    name: &'static str,
    args: &'static str,
    data: bool,
    feature: Feature,
    run: fn(Ready, &[u8], &Context<'_>, &mut Out) -> State,
) -> Verb {
    Verb { name, args, data, feature, run: Run::Ready(run) }
}

/// The rows.
#[rustfmt::skip]
pub const TABLE: &[Verb] = &[
    ready("ABOR", "", ____, Feature::None, cmd::abor::run),
    ready("ACCT", "information", ____, Feature::None, cmd::acct::run),
    any  ("ADAT", "base64-data", Feature::None, cmd::security::behind_auth),
    ready("ALLO", "bytes [R bytes]", ____, Feature::None, cmd::allo::run),
    ready("APPE", "path", DATA, Feature::None, cmd::appe::run),
    any  ("AUTH", "TLS", Feature::IfSecure("AUTH TLS"), cmd::auth::run),
    ready("AVBL", "[path]", ____, Feature::Line("AVBL"), cmd::avbl::run),
    any  ("CCC", "", Feature::None, cmd::ccc::run),
    ready("CDUP", "", ____, Feature::None, cmd::cdup::run),
    any  ("CLNT", "name", Feature::Line("CLNT"), cmd::clnt::run),
    any  ("CONF", "base64-data", Feature::None, cmd::security::behind_auth),
    ready("CWD", "path", ____, Feature::None, cmd::cwd::run),
    ready("DELE", "path", ____, Feature::None, cmd::dele::run),
    any  ("ENC", "base64-data", Feature::None, cmd::security::behind_auth),
    ready("EPRT", "|family|address|port|", ____, Feature::IfActive("EPRT"), cmd::eprt::run),
    ready("EPSV", "[1|2|ALL]", ____, Feature::Line("EPSV"), cmd::epsv::run),
    any  ("FEAT", "", Feature::None, cmd::feat::run),
    ready("HASH", "path", ____, Feature::Hash, cmd::hash::run),
    any  ("HELP", "[command]", Feature::None, cmd::help::run),
    any  ("HOST", "name", Feature::Line("HOST"), cmd::host::run),
    any  ("LANG", "[EN[-subtags]]", Feature::None, cmd::lang::run),
    ready("LIST", "[-a] [path]", DATA, Feature::None, cmd::list::run),
    ready("MDTM", "path", ____, Feature::Line("MDTM"), cmd::mdtm::run),
    ready("MFCT", "YYYYMMDDHHMMSS path", ____, Feature::None, cmd::mfct::run),
    ready("MFF", "fact=value;... path", ____, Feature::Line("MFF Modify;UNIX.mode;"), cmd::mff::run),
    ready("MFMT", "YYYYMMDDHHMMSS path", ____, Feature::Line("MFMT"), cmd::mfmt::run),
    any  ("MIC", "base64-data", Feature::None, cmd::security::behind_auth),
    ready("MKD", "path", ____, Feature::None, cmd::mkd::run),
    ready("MLSD", "[path]", DATA, Feature::None, cmd::mlsd::run),
    ready("MLST", "[path]", ____, Feature::Facts, cmd::mlst::run),
    ready("MODE", "S", ____, Feature::None, cmd::mode::run),
    ready("NLST", "[-a] [path]", DATA, Feature::None, cmd::nlst::run),
    any  ("NOOP", "", Feature::None, cmd::noop::run),
    any  ("OPTS", "UTF8 ON | MLST fact;... | HASH algorithm", Feature::None, cmd::opts::run),
    any  ("PASS", "password", Feature::None, cmd::pass::run),
    ready("PASV", "", ____, Feature::None, cmd::pasv::run),
    any  ("PBSZ", "0", Feature::IfSecure("PBSZ"), cmd::pbsz::run),
    ready("PORT", "h1,h2,h3,h4,p1,p2", ____, Feature::None, cmd::port::run),
    any  ("PROT", "C | P", Feature::IfSecure("PROT"), cmd::prot::run),
    ready("PWD", "", ____, Feature::None, cmd::pwd::run),
    any  ("QUIT", "", Feature::None, cmd::quit::run),
    ready("RANG", "first last", ____, Feature::Line("RANG STREAM"), cmd::rang::run),
    any  ("REIN", "", Feature::None, cmd::rein::run),
    ready("REST", "bytes", ____, Feature::Line("REST STREAM"), cmd::rest::run),
    ready("RETR", "path", DATA, Feature::None, cmd::retr::run),
    ready("RMD", "path", ____, Feature::None, cmd::rmd::run),
    ready("RNFR", "path", ____, Feature::None, cmd::rnfr::run),
    ready("RNTO", "path", ____, Feature::None, cmd::rnto::run),
    ready("SITE", "command ...", ____, Feature::Lines(cmd::site::FEATURES), cmd::site::run),
    ready("SIZE", "path", ____, Feature::Line("SIZE"), cmd::size::run),
    ready("STAT", "[-a] [path]", ____, Feature::None, cmd::stat::run),
    ready("STOR", "path", DATA, Feature::None, cmd::stor::run),
    ready("STOU", "[path]", DATA, Feature::None, cmd::stou::run),
    ready("STRU", "F", ____, Feature::None, cmd::stru::run),
    any  ("SYST", "", Feature::None, cmd::syst::run),
    ready("TYPE", "A | I | L 8", ____, Feature::None, cmd::type_::run),
    any  ("USER", "name", Feature::None, cmd::user::run),
    ready("XCRC", "path [first behind-last]", ____, Feature::Line("XCRC"), cmd::xsum::crc32),
    ready("XCUP", "", ____, Feature::None, cmd::cdup::run),
    ready("XCWD", "path", ____, Feature::None, cmd::cwd::run),
    ready("XMD5", "path [first behind-last]", ____, Feature::Line("XMD5"), cmd::xsum::md5),
    ready("XMKD", "path", ____, Feature::None, cmd::mkd::run),
    ready("XPWD", "", ____, Feature::None, cmd::pwd::run),
    ready("XRMD", "path", ____, Feature::None, cmd::rmd::run),
    ready("XSHA1", "path [first behind-last]", ____, Feature::Line("XSHA1"), cmd::xsum::sha1),
    ready("XSHA256", "path [first behind-last]", ____, Feature::Line("XSHA256"), cmd::xsum::sha256),
    ready("XSHA512", "path [first behind-last]", ____, Feature::Line("XSHA512"), cmd::xsum::sha512),
];

/// The names of the SITE commands, sorted.
pub fn site_names() -> impl Iterator<Item = &'static str> {
    cmd::site::TABLE.iter().map(|(name, ..)| *name)
}

/// The row of a verb, whatever its case.
pub fn find(verb: &[u8]) -> Option<&'static Verb> {
    let mut upper = [0; 8];
    let upper = upper.get_mut(..verb.len())?;
    upper.copy_from_slice(verb);
    upper.make_ascii_uppercase();
    let at = TABLE.binary_search_by(|row| row.name.as_bytes().cmp(upper)).ok()?;
    TABLE.get(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_each_is_found_in_any_case() {
        assert!(TABLE.is_sorted_by(|a, b| a.name < b.name));
        for row in TABLE {
            assert_eq!(find(row.name.to_ascii_lowercase().as_bytes()).map(|found| found.name), Some(row.name));
        }
        assert!(find(b"").is_none() && find(b"NO").is_none() && find(&[b'A'; 40]).is_none());
    }
}
