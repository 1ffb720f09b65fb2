//! The answers: one file a request, each named in table.rs. Their counterparts in workers are called `ask_…`.

mod connect_back;
mod grant;
mod passive_sockets;
mod session_ended;

pub(crate) use connect_back::answer_connect_back;
pub(crate) use grant::{answer_grant, grant_waiting, sessions_of};
pub(crate) use passive_sockets::answer_passive_pool;
pub(crate) use session_ended::{answer_session_ended, release, retire_idle_broker};
