//! Files of TLS certificates and keys: opened here and handed to authd unread, which judges them, keeps the keys, and tells workers.
//!
//! Runs as root. Reads from: authd, whether they can be used. At start, at each reload, and every minute, for files change: all
//! of them are taken over, or nothing changes.
//! Not here: what a pair must be (authd/src/keys.rs), who signs (authd/src/sign).

use std::time::Duration;

use ipc::link::{log::Event, log::Level, monitor_authd::ToAuthd};
use ipc::{MAX_FDS, types::Blob};

use crate::config::{self, Fresh};
use crate::monitor::{Monitor, Stage};
use crate::{reload, timer::Alarm};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(60);

/// What authd is asked and has not answered: about those of a new configuration perhaps, for which clients wait.
pub(crate) type Asked = Option<(Option<Fresh>, Vec<u32>)>;

/// Has authd judge the files, those of a new configuration perhaps. One that is started again is asked again.
pub(crate) fn ask(m: &mut Monitor, fresh: Option<Fresh>, clients: Vec<u32>) {
    let (new, config) = (fresh.is_some(), fresh.as_ref().map_or(&m.config, |fresh| &fresh.config));
    let paths = config.certificates.iter().take(MAX_FDS);
    let files = paths.map(|path| config::open(path, "[[certificate]]")).collect();
    m.asked = Some((fresh, clients));
    match (files, m.authd.as_mut()) {
        (Ok(files), Some(authd)) => authd.send(ToAuthd::Certificates(new), files),
        (Ok(_), None) => {}
        (Err(why), _) => conclude(m, Err(why)),
    }
}

/// authd has judged: nothing is wrong, or this is with the file at this place.
pub(crate) fn judged(m: &mut Monitor, place: u8, why: &Blob<512>) {
    let fresh = m.asked.as_ref().and_then(|(fresh, _)| fresh.as_ref());
    let path = fresh.map_or(&m.config, |fresh| &fresh.config).certificates.get(usize::from(place));
    let wrong = path.filter(|_| !why.is_empty()).map(|path| format!("{} {why}", path.display()));
    conclude(m, wrong.map_or(Ok(()), Err));
}

/// A reload goes on, or not.
fn conclude(m: &mut Monitor, verdict: Result<(), String>) {
    match (m.asked.take(), verdict) {
        (Some((Some(fresh), clients)), Ok(())) => {
            let done = reload::swap(m, fresh);
            if done.is_err() {
                ask(m, None, Vec::new());
            }
            reload::tell(m, &clients, done);
        }
        (Some((Some(_), clients)), wrong) => reload::tell(m, &clients, wrong),
        (None, _) | (_, Ok(())) => {}
        (_, Err(why)) if m.stage == Stage::Starting => m.failure = Some(why),
        (_, Err(why)) => m.log.own(Level::Error, Event::Process, format!("certificates stay as they were: {why}")),
    }
    reload::next(m);
}

/// Has authd look whether files have changed.
pub(crate) fn look(m: &mut Monitor) {
    m.timers.set(LOOK, Alarm::Look);
    if m.asked.is_none() && !m.config.certificates.is_empty() {
        ask(m, None, Vec::new());
    }
}
