//! Whom a child becomes: uid, gid and groups, all of each, with no way back.
//!
//! Trusts: nothing it set without reading it back. Not here: which ids (monitor/config); root, who stays who it is.

use nix::unistd::{Gid, Uid};

use crate::{Error, Ids};

/// Becomes `ids`, in every sense the kernel knows.
pub(crate) fn take_on(ids: &Ids) -> Result<(), Error> {
    let (uid, gid) = (Uid::from_raw(ids.uid), Gid::from_raw(ids.gid));
    let groups: Vec<Gid> = ids.groups.iter().copied().map(Gid::from_raw).collect();
    nix::unistd::setgroups(&groups).map_err(Error::fault("setgroups"))?;
    nix::unistd::setresgid(gid, gid, gid).map_err(Error::fault("setresgid"))?;
    nix::unistd::setresuid(uid, uid, uid).map_err(Error::fault("setresuid"))
}

/// Reads them back, and finds no way back.
pub(crate) fn verify(ids: &Ids) -> Result<(), Error> {
    let uids = nix::unistd::getresuid().map_err(Error::fault("getresuid"))?;
    let gids = nix::unistd::getresgid().map_err(Error::fault("getresgid"))?;
    let mut groups: Vec<u32> =
        nix::unistd::getgroups().map_err(Error::fault("getgroups"))?.into_iter().map(Gid::as_raw).collect();
    let mut wanted = ids.groups.clone();
    groups.sort_unstable();
    wanted.sort_unstable();
    let same = [uids.real, uids.effective, uids.saved].iter().all(|u| u.as_raw() == ids.uid)
        && [gids.real, gids.effective, gids.saved].iter().all(|g| g.as_raw() == ids.gid)
        && groups == wanted;
    let way_back = ids.uid != 0 && nix::unistd::setuid(Uid::from_raw(0)).is_ok();
    if !same || way_back {
        return Err(Error::Broken("the change of uid, gid and groups"));
    }
    Ok(())
}
