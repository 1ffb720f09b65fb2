//! The answers: one file a request, each named in table.rs. Their counterparts in workers are called `ask_…`.

pub(crate) mod connect_back;
pub(crate) mod grant;
pub(crate) mod passive_sockets;
pub(crate) mod session_ended;
