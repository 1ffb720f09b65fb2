//! The user table: records read from a sealed memfd the monitor passed.
//!
//! The whole table or nothing: one bad record, and the table before stays. Bytes are copied out of the memfd once,
//! piece by piece, and parsed from the copy; what is not sealed is refused, for it could be of any length tomorrow.
//! Not here: uid, home and permissions of an account (the monitor's own copy of the table).

use std::{
    collections::HashMap,
    fmt, io,
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
};

use child_ipc::{
    link::{
        user_record::{CERTIFICATES, CertificateLogin, Fingerprint, UserRecord},
        worker_authd::Check,
    },
    types::{HostName, UserName},
};
use rustix::fs::SealFlags;
use stored_hash::{Cost, Stored, Unusable};
use zeroize::Zeroize;

use crate::{certificate::Shown, reason::Reason};

/// Longest table in bytes.
pub const MAX_BYTES: u64 = 32 << 20;
/// Most accounts.
pub const MAX_ACCOUNTS: usize = 131_072;

/// Every account, and a stand-in for those that do not exist.
pub struct Table {
    accounts: HashMap<UserName, Account>,
    /// Costs what most accounts cost, and is right for no password.
    stand_in: Arc<Stored>,
}

struct Account {
    stored: Option<Arc<Stored>>,
    locked: bool,
    any_password: bool,
    /// None: on any.
    hosts: Box<[HostName]>,
    needs_tls: bool,
    certificate_login: CertificateLogin,
    certificates: Box<[Fingerprint]>,
}

/// How a client has come, by its worker's word.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Came {
    /// The host it has named.
    pub host: Option<HostName>,
    /// Its control connection is under TLS.
    pub secured: bool,
}

impl Came {
    /// As a check has it.
    pub fn of(check: &Check) -> Self {
        Came { host: check.host.clone(), secured: check.secured }
    }
}

/// How a login of a name is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// Any password is right.
    Any,
    /// The certificate is right, and enough.
    Certificate,
    /// The password must have this hash; the certificate is right, where one is needed.
    Password(Arc<Stored>),
    /// No password is right, or not without the certificate. This hash is checked all the same, so that the answer takes as long; why is for the log.
    Never(Arc<Stored>, Reason),
}

/// Why a table was not taken.
#[derive(Debug)]
pub enum TableError {
    /// It could be changed while it is read.
    NotSealed,
    /// More than [`MAX_BYTES`] or [`MAX_ACCOUNTS`].
    TooLarge,
    /// Record number (from 1): length out of range, cut short, not a record, or left-over bytes.
    Malformed(usize),
    /// The account's hash cannot be used.
    Hash(UserName, Unusable),
    /// The account has too many certificates.
    Certificates(UserName),
    /// The account is there twice.
    Twice(UserName),
    /// pread(2) or getrandom(2) failed.
    Io(io::Error),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableError::NotSealed => write!(f, "its memfd is not sealed"),
            TableError::TooLarge => write!(f, "more than {MAX_BYTES} bytes or {MAX_ACCOUNTS} accounts"),
            TableError::Malformed(number) => write!(f, "record {number} is malformed"),
            TableError::Hash(user, Unusable(why)) => {
                write!(f, "account \"{user}\": hash: {why}; make one with caissonctl hash-password")
            }
            TableError::Certificates(user) => write!(f, "account \"{user}\" has more than {CERTIFICATES} certificates"),
            TableError::Twice(user) => write!(f, "account \"{user}\" is there twice"),
            TableError::Io(error) => write!(f, "cannot be read: {error}"),
        }
    }
}

impl Table {
    /// A table without accounts.
    pub fn empty() -> io::Result<Self> {
        Ok(Table { accounts: HashMap::new(), stand_in: stand_in(Cost::DEFAULT)? })
    }

    /// Reads a table whole.
    pub fn read(memfd: BorrowedFd<'_>) -> Result<Self, TableError> {
        let seals = rustix::fs::fcntl_get_seals(memfd).map_err(|_| TableError::NotSealed)?;
        if !seals.contains(SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK) {
            return Err(TableError::NotSealed);
        }
        let mut source = Source::new(memfd);
        let mut accounts = HashMap::new();
        for number in 1.. {
            let Some(record) = source.next_record(number)? else { break };
            if accounts.len() >= MAX_ACCOUNTS {
                return Err(TableError::TooLarge);
            }
            let (name, account) = Account::check(record)?;
            if accounts.insert(name.clone(), account).is_some() {
                return Err(TableError::Twice(name));
            }
        }
        let stand_in = stand_in(usual_cost(&accounts)).map_err(TableError::Io)?;
        Ok(Table { accounts, stand_in })
    }

    /// How many accounts there are.
    pub fn accounts(&self) -> usize {
        self.accounts.len()
    }

    /// How a login of `user` is decided, for a client that has come like this and shown this.
    pub fn proof(&self, user: &UserName, came: &Came, shown: &Shown) -> Proof {
        let stand_in = || Arc::clone(&self.stand_in);
        let Some(account) = self.accounts.get(user) else { return Proof::Never(stand_in(), Reason::Unknown) };
        match (account.refuses(came, shown), &account.stored) {
            (Some(why), stored) => Proof::Never(stored.clone().unwrap_or_else(stand_in), why),
            (None, _) if account.any_password => Proof::Any,
            (None, _) if account.certificate_login == CertificateLogin::Login => Proof::Certificate,
            (None, Some(stored)) => Proof::Password(Arc::clone(stored)),
            (None, None) => Proof::Never(stand_in(), Reason::NoPassword),
        }
    }

    /// Whether a certificate is one of the account's.
    pub fn is_own(&self, user: &UserName, fingerprint: &Fingerprint) -> bool {
        self.accounts.get(user).is_some_and(|account| account.certificates.contains(fingerprint))
    }

    /// Whether the account has certificates.
    pub fn has_certificates(&self, user: &UserName) -> bool {
        self.accounts.get(user).is_some_and(|account| !account.certificates.is_empty())
    }
}

impl Account {
    fn check(record: UserRecord) -> Result<(UserName, Self), TableError> {
        let UserRecord { name, hash, locked, any_password, hosts, needs_tls, certificate_login, certificates } = record;
        let stored = match hash.map(|phc| Stored::parse(phc.as_bytes())).transpose() {
            Ok(stored) => stored.map(Arc::new),
            Err(why) => return Err(TableError::Hash(name, why)),
        };
        if certificates.len() > CERTIFICATES {
            return Err(TableError::Certificates(name));
        }
        let (hosts, certificates) = (hosts.into(), certificates.into());
        Ok((name, Account { stored, locked, any_password, hosts, needs_tls, certificate_login, certificates }))
    }

    /// Why nobody is let in, whatever the password.
    fn refuses(&self, came: &Came, shown: &Shown) -> Option<Reason> {
        if self.locked {
            return Some(Reason::Locked);
        }
        if !self.hosts.is_empty() && !came.host.as_ref().is_some_and(|host| self.hosts.contains(host)) {
            return Some(Reason::OtherHost);
        }
        // Before certificates: without TLS there can be none.
        if self.needs_tls && !came.secured {
            return Some(Reason::NoTls);
        }
        match shown {
            _ if self.certificate_login == CertificateLogin::No => None,
            Shown::Proved(proved) if self.certificates.contains(&proved.fingerprint) => None,
            Shown::Nothing => Some(Reason::NoCertificate),
            Shown::Used(_) => Some(Reason::UsedCertificate),
            Shown::Proved(_) | Shown::Other(_) => Some(Reason::WrongCertificate),
        }
    }
}

/// The cost most accounts have, the greater one of two that are as frequent; the default for a table without hashes.
fn usual_cost(accounts: &HashMap<UserName, Account>) -> Cost {
    let mut frequency = HashMap::new();
    for stored in accounts.values().filter_map(|account| account.stored.as_ref()) {
        *frequency.entry(stored.cost()).or_insert(0_usize) += 1;
    }
    frequency.into_iter().map(|(cost, count)| (count, cost)).max().map_or(Cost::DEFAULT, |(_, cost)| cost)
}

/// A hash of nothing: salt and digest are random.
fn stand_in(cost: Cost) -> io::Result<Arc<Stored>> {
    let mut random = [0; 48];
    getrandom::fill(&mut random).map_err(|e| io::Error::other(format!("getrandom: {e}")))?;
    let (salt, digest) = random.split_at(16);
    Stored::new(cost, salt, digest).map(Arc::new).ok_or_else(|| io::Error::other("a stand-in that is out of range"))
}

/// The memfd, copied through a small window. The window is wiped: it held hashes.
struct Source<'f> {
    memfd: BorrowedFd<'f>,
    offset: u64,
    window: Vec<u8>,
    used: usize,
    filled: usize,
}

impl<'f> Source<'f> {
    const WINDOW: usize = 64 << 10;

    fn new(memfd: BorrowedFd<'f>) -> Self {
        Source { memfd, offset: 0, window: vec![0; Self::WINDOW], used: 0, filled: 0 }
    }

    /// The next record; `None` at the end of the table.
    fn next_record(&mut self, number: usize) -> Result<Option<UserRecord>, TableError> {
        let malformed = TableError::Malformed(number);
        let Some(prefix) = self.take(4)? else {
            return if self.used == self.filled { Ok(None) } else { Err(malformed) };
        };
        let length = prefix.iter().rev().fold(0, |length, byte| (length << 8) | usize::from(*byte));
        if !(1..=UserRecord::CAP).contains(&length) {
            return Err(malformed);
        }
        match self.take(length)?.map(postcard::take_from_bytes::<UserRecord>) {
            Some(Ok((record, []))) => Ok(Some(record)),
            Some(_) | None => Err(malformed),
        }
    }

    /// The next `count` bytes; `None` when fewer are left.
    fn take(&mut self, count: usize) -> Result<Option<&[u8]>, TableError> {
        while self.filled - self.used < count {
            if !self.fill()? {
                return Ok(None);
            }
        }
        self.used += count;
        Ok(self.window.get(self.used - count..self.used))
    }

    /// Reads on; false at the end of the table.
    fn fill(&mut self) -> Result<bool, TableError> {
        self.window.copy_within(self.used..self.filled, 0);
        self.filled -= self.used;
        self.used = 0;
        let room = self.window.get_mut(self.filled..).unwrap_or_default();
        let read = rustix::io::retry_on_intr(|| rustix::io::pread(self.memfd.as_fd(), &mut *room, self.offset))
            .map_err(|errno| TableError::Io(errno.into()))?;
        self.filled += read;
        self.offset += read as u64;
        if self.offset > MAX_BYTES { Err(TableError::TooLarge) } else { Ok(read > 0) }
    }
}

impl Drop for Source<'_> {
    fn drop(&mut self) {
        self.window.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use child_ipc::types::Blob;
    use proptest::prelude::*;
    use rustix::fs::MemfdFlags;

    use super::*;

    const HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";

    fn memfd(bytes: &[u8], seals: SealFlags) -> OwnedFd {
        let fd = rustix::fs::memfd_create("users", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(&fd, rest).unwrap()..];
        }
        rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
        fd
    }

    fn sealed(bytes: &[u8]) -> OwnedFd {
        memfd(bytes, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)
    }

    fn record(name: &str, hash: Option<&str>) -> UserRecord {
        let hash = hash.map(|hash| Blob::new(hash.as_bytes()).unwrap());
        let (locked, any_password, hosts, needs_tls, certificate_login, certificates) = Default::default();
        UserRecord { name: user(name), hash, locked, any_password, hosts, needs_tls, certificate_login, certificates }
    }

    fn user(name: &str) -> UserName {
        UserName::new(name.as_bytes()).unwrap()
    }

    fn encode(records: &[UserRecord]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for record in records {
            let encoded = postcard::to_stdvec(record).unwrap();
            bytes.extend((encoded.len() as u32).to_le_bytes());
            bytes.extend(encoded);
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Table, TableError> {
        Table::read(sealed(bytes).as_fd())
    }

    fn why(bytes: &[u8]) -> String {
        read(bytes).err().expect("refused").to_string()
    }

    #[test]
    fn a_table_of_many_windows_is_read_whole() {
        let records: Vec<UserRecord> = (0..3000).map(|i| record(&format!("user{i}"), Some(HASH))).collect();
        let table = read(&encode(&records)).unwrap();
        assert_eq!(table.accounts(), 3000);
        for record in &records {
            assert!(matches!(table.proof(&record.name, &Came::default(), &Shown::Nothing), Proof::Password(_)));
        }
        assert_eq!(read(&[]).unwrap().accounts(), 0);
    }

    #[test]
    fn accounts_without_a_way_in_never_pass() {
        let locked = UserRecord { locked: true, any_password: true, ..record("locked", Some(HASH)) };
        let any = UserRecord { any_password: true, ..record("anonymous", None) };
        let table = read(&encode(&[record("nohash", None), locked, any, record("alice", Some(HASH))])).unwrap();
        let reason = |name| match table.proof(&user(name), &Came::default(), &Shown::Nothing) {
            Proof::Never(_, why) => why.name(),
            Proof::Any => "any",
            Proof::Certificate => "certificate",
            Proof::Password(_) => "password",
        };
        let all = ["nohash", "locked", "anonymous", "alice", "nobody"].map(reason);
        assert_eq!(all, ["no-password", "locked", "any", "password", "unknown"]);
    }

    #[test]
    fn an_account_of_a_host_passes_there_alone_and_costs_the_same_elsewhere() {
        let host = |name: &str| HostName::new(name.as_bytes()).unwrap();
        let hosts = || vec![host("a.test"), host("b.test")];
        let any = UserRecord { any_password: true, hosts: hosts(), ..record("anonymous", None) };
        let alice = UserRecord { hosts: hosts(), ..record("alice", Some(HASH)) };
        let table = read(&encode(&[any, alice, record("bob", Some(HASH))])).unwrap();
        let at = |at: Option<&str>| Came { host: at.map(host), ..Came::default() };
        let proof = |name: &str, host: Option<&str>| table.proof(&user(name), &at(host), &Shown::Nothing);
        let Proof::Password(stored) = proof("alice", Some("a.test")) else { panic!() };
        for at in [None, Some("c.test")] {
            assert_eq!(proof("alice", at), Proof::Never(stored.clone(), Reason::OtherHost));
            assert!(matches!(proof("anonymous", at), Proof::Never(_, Reason::OtherHost)));
            assert!(matches!(proof("bob", at), Proof::Password(_)));
        }
        assert_eq!(proof("anonymous", Some("b.test")), Proof::Any);
    }

    #[test]
    fn an_account_that_needs_tls_passes_under_tls_alone_and_costs_the_same_without() {
        let needs = |record| UserRecord { needs_tls: true, ..record };
        let any = needs(UserRecord { any_password: true, ..record("anonymous", None) });
        let (certificate_login, certificates) = (CertificateLogin::Login, vec![[1; 32]]);
        let robot = needs(UserRecord { certificate_login, certificates, ..record("robot", None) });
        let alice = needs(record("alice", Some(HASH)));
        let table = read(&encode(&[any, robot, alice, record("bob", Some(HASH))])).unwrap();
        let own = Shown::Proved(crate::certificate::Proved::unchecked([1; 32]));
        let proof = |name: &str, secured, shown| table.proof(&user(name), &Came { secured, host: None }, shown);
        let Proof::Password(stored) = proof("alice", true, &Shown::Nothing) else { panic!() };
        assert_eq!(proof("alice", false, &Shown::Nothing), Proof::Never(stored, Reason::NoTls));
        for (name, shown) in [("anonymous", &Shown::Nothing), ("robot", &own)] {
            assert!(matches!(proof(name, false, shown), Proof::Never(_, Reason::NoTls)));
            assert!(matches!(proof(name, true, shown), Proof::Any | Proof::Certificate));
        }
        assert!(matches!(proof("bob", false, &Shown::Nothing), Proof::Password(_)));
    }

    #[test]
    fn an_account_with_certificates_takes_one_of_them_and_costs_the_same_without() {
        let with = |name: &str, certificate_login, hash| {
            let certificates = vec![[1; 32], [2; 32]];
            UserRecord { certificate_login, certificates, ..record(name, hash) }
        };
        let alice = with("alice", CertificateLogin::SecondFactor, Some(HASH));
        let robot = with("robot", CertificateLogin::Login, None);
        let locked = UserRecord { locked: true, ..with("locked", CertificateLogin::Login, None) };
        let table = read(&encode(&[alice, robot, locked, record("bob", Some(HASH))])).unwrap();
        let proof = |name: &str, shown| table.proof(&user(name), &Came::default(), &shown);
        let own = |fingerprint| Shown::Proved(crate::certificate::Proved::unchecked(fingerprint));
        let Proof::Password(stored) = proof("alice", own([2; 32])) else { panic!() };
        let no = [
            (Shown::Nothing, Reason::NoCertificate),
            (Shown::Other([3; 32]), Reason::WrongCertificate),
            (own([3; 32]), Reason::WrongCertificate),
            // One that has not been proved, for it was nobody's then.
            (Shown::Other([2; 32]), Reason::WrongCertificate),
            (Shown::Used([2; 32]), Reason::UsedCertificate),
        ];
        for (shown, why) in no {
            assert_eq!(proof("alice", shown), Proof::Never(stored.clone(), why));
            assert!(matches!(proof("robot", shown), Proof::Never(_, reason) if reason == why));
            assert!(matches!(proof("bob", shown), Proof::Password(_)));
        }
        assert_eq!(proof("robot", own([1; 32])), Proof::Certificate);
        assert!(matches!(proof("locked", own([1; 32])), Proof::Never(_, Reason::Locked)));
        let many = UserRecord { certificates: vec![[0; 32]; CERTIFICATES + 1], ..record("eve", None) };
        assert_eq!(why(&encode(&[many])), "account \"eve\" has more than 8 certificates");
    }

    #[test]
    fn an_unknown_user_costs_what_most_accounts_cost() {
        let costly = HASH.replace("m=19456", "m=65536");
        let table = read(&encode(&[record("a", Some(HASH)), record("b", Some(&costly)), record("c", Some(HASH))]));
        let Proof::Never(stand_in, _) = table.unwrap().proof(&user("x"), &Came::default(), &Shown::Nothing) else {
            panic!()
        };
        assert_eq!(stand_in.cost(), Cost { memory: 19_456, passes: 2, lanes: 1 });
        let table = read(&encode(&[record("a", Some(HASH)), record("b", Some(&costly))])).unwrap();
        let Proof::Never(stand_in, _) = table.proof(&user("x"), &Came::default(), &Shown::Nothing) else { panic!() };
        assert_eq!(stand_in.cost().memory, 65_536);
    }

    #[test]
    fn one_bad_record_spoils_the_table_and_is_named() {
        let good = encode(&[record("alice", Some(HASH)), record("bob", None)]);
        assert_eq!(why(&good[..good.len() - 1]), "record 2 is malformed");
        assert_eq!(why(&[&good[..], &[1, 0]].concat()), "record 3 is malformed");
        assert_eq!(why(&[&good[..], &[0; 4]].concat()), "record 3 is malformed");
        assert_eq!(why(&[&good[..], &[0xff; 4]].concat()), "record 3 is malformed");
        assert_eq!(why(&[&good[..], &good[..]].concat()), "account \"alice\" is there twice");
        let mut long = encode(&[record("alice", None)]);
        long[0] += 1;
        long.push(0);
        assert_eq!(why(&long), "record 1 is malformed");
        let weak = HASH.replace("19456", "8192");
        assert!(why(&encode(&[record("eve", Some(&weak))])).starts_with("account \"eve\": hash: m (memory"));
    }

    #[test]
    fn a_table_that_is_not_sealed_or_no_memfd_is_refused() {
        let bytes = encode(&[record("alice", Some(HASH))]);
        for seals in [SealFlags::empty(), SealFlags::WRITE, SealFlags::GROW | SealFlags::SHRINK] {
            assert!(matches!(Table::read(memfd(&bytes, seals).as_fd()), Err(TableError::NotSealed)));
        }
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(Table::read(socket.as_fd()).is_err());
    }

    #[test]
    fn a_table_too_large_is_refused() {
        let fd = memfd(&[], SealFlags::empty());
        rustix::fs::ftruncate(&fd, MAX_BYTES + 1).unwrap();
        rustix::fs::fcntl_add_seals(&fd, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK).unwrap();
        assert!(Table::read(fd.as_fd()).is_err());
    }

    proptest! {
        #[test]
        fn no_table_makes_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
        }

        #[test]
        fn a_flipped_byte_never_makes_it_panic(at in any::<prop::sample::Index>(), flip in 1u8..) {
            let mut bytes = encode(&[record("alice", Some(HASH)), record("bob", None)]);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let _ = read(&bytes);
        }
    }
}
