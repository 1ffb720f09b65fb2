//! `List` (LIST, NLST, MLSD): a directory's lines in a sealed memfd, sorted by the bytes of the names.
//!
//! A path that is no directory gives one line about itself (RFC 959 4.1.3) with its last component as the name (what the
//! client wrote, in the form of names), except in the form of facts, where it is `NotDirectory` (RFC 3659 7.1). The path is taken literally (RFC 3659 2.2.2); only if
//! nothing has that name, and clients expect it (`mget *.txt`), is its last component a pattern.

use child_ipc::{
    link::worker_broker::{Done, Form, Why},
    types::VirtPath,
};
use rustix::{fs::Mode, io::Errno};

use super::Outcome;
use crate::{account::Account, listing, why::why};

pub(super) fn run(account: &Account, path: &VirtPath, form: Form, hidden: bool, written: &[u8]) -> Outcome {
    let (listing, directory) = match account.root.open(path.as_bytes(), listing::READ, Mode::empty()) {
        Ok(opened) => (listing::directory(account, &opened, path, form, hidden, written)?, true),
        Err(errno) => match form {
            Form::Facts(_) => return Err(why(errno)),
            // No directory; or a link that leads nowhere, which can be shown all the same.
            Form::Long | Form::Names if matches!(errno, Errno::NOTDIR | Errno::NOENT | Errno::LOOP) => {
                match listing::single(account, path, form, written) {
                    Err(Why::NotFound) if !written.is_empty() => {
                        (listing::matching(account, path, form, written)?, true)
                    }
                    single => (single?, false),
                }
            }
            Form::Long | Form::Names => return Err(why(errno)),
        },
    };
    let (memfd, bytes) = listing.seal()?;
    Ok((Done::Listing { bytes, directory }, vec![memfd]))
}
