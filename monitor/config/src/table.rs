//! Writes the tables of [`child_ipc::table`]: accounts for the monitor, and for authd names and hashes, which the monitor never reads.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use child_ipc::link::monitor_config::Account;
use child_ipc::link::settings::Require;
use child_ipc::link::user_record::UserRecord;
use child_ipc::table::SEALS;
use child_ipc::types::UserName;
use postcard::to_stdvec;
use rustix::fs::{MemfdFlags, fcntl_add_seals, memfd_create};

use crate::{Judged, Users};

/// Both tables: the monitor's, and authd's.
pub(crate) fn tables(users: &Users) -> io::Result<[OwnedFd; 2]> {
    let account = |(name, of): (&UserName, &Judged)| to_stdvec(&Account { name: name.clone(), user: of.user.clone() });
    let record = |(name, of): (&UserName, &Judged)| {
        let (hash, hosts) = (of.hash.clone(), of.hosts.clone());
        let (locked, any_password) = (of.user.locked, of.any_password);
        let needs_tls = Require::of(of.user.tls_required) != Require::No;
        let (certificate_login, certificates) = (of.certificate_login, of.certificates.clone());
        let name = name.clone();
        to_stdvec(&UserRecord { name, hash, locked, any_password, hosts, needs_tls, certificate_login, certificates })
    };
    Ok([sealed("accounts", users.iter().map(account))?, sealed("users", users.iter().map(record))?])
}

/// Puts records into a memfd nobody can change any more; it has this name in /proc.
fn sealed(name: &str, records: impl Iterator<Item = postcard::Result<Vec<u8>>>) -> io::Result<OwnedFd> {
    let mut table = Vec::new();
    for record in records {
        let record = record.map_err(io::Error::other)?;
        let length = u32::try_from(record.len()).map_err(io::Error::other)?;
        table.extend_from_slice(&length.to_le_bytes());
        table.extend_from_slice(&record);
    }
    let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(&table)?;
    fcntl_add_seals(&file, SEALS)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use child_ipc::link::monitor_config::User;
    use child_ipc::types::Blob;

    use super::*;

    fn users() -> Users {
        let user = User { locked: true, home: "/srv".into(), ..User::default() };
        let hash = Some(Blob::new(b"$argon2id$").unwrap());
        Users::from([(UserName::new(b"alice").unwrap(), Judged { hash, user, ..Judged::default() })])
    }

    fn bytes(table: &OwnedFd) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        let length = rustix::io::pread(table, &mut bytes, 0).unwrap();
        bytes.truncate(length);
        bytes
    }

    #[test]
    fn the_monitor_gets_accounts_without_hashes() {
        let [accounts, _] = tables(&users()).unwrap();
        assert!(!bytes(&accounts).windows(8).any(|part| part == b"argon2id"));
        let read: Vec<Account> = child_ipc::table::read(accounts, 1).unwrap();
        assert_eq!(
            read,
            [Account { name: UserName::new(b"alice").unwrap(), user: users().pop_first().unwrap().1.user }]
        );
    }

    #[test]
    fn authd_gets_names_and_hashes_and_nobody_can_change_either_table() {
        let both = tables(&users()).unwrap();
        let table = bytes(&both[1]);
        let (length, record) = table.split_first_chunk().unwrap();
        assert_eq!(u32::from_le_bytes(*length) as usize, record.len());
        let record: UserRecord = postcard::from_bytes(record).unwrap();
        assert_eq!((record.name.as_bytes(), record.locked, record.hash.is_some()), (&b"alice"[..], true, true));
        for table in &both {
            assert!(rustix::io::write(table.as_fd(), b"x").is_err() && rustix::fs::ftruncate(table, 0).is_err());
        }
    }

    #[test]
    fn a_table_that_is_long_cut_or_not_sealed_is_refused() {
        let [accounts, _] = tables(&users()).unwrap();
        assert!(child_ipc::table::read::<Account>(accounts, 0).unwrap_err().to_string().contains("too many"));
        let cut = sealed("cut", [Ok(vec![0; 4])].into_iter()).unwrap();
        assert!(child_ipc::table::read::<Account>(cut, 9).is_err());
        let open = memfd_create("open", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        assert!(child_ipc::table::read::<Account>(open, 9).unwrap_err().to_string().contains("not sealed"));
    }
}
