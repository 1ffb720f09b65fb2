//! SITE IDLE: how long this client may be silent, at most as long as `idle_timeout_secs` of caisson.toml(5) says.

use crate::ftp::{Context, Out, State, state::Ready};

/// The longest, where the server has no limit: a week in seconds.
const MOST: u32 = 7 * 24 * 3600;

pub(super) fn run(mut ready: Ready, arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    let configured = cx.settings.idle_timeout_secs;
    let most = if configured == 0 { MOST } else { configured };
    if !arg.is_empty() {
        match parse(arg).filter(|secs| (1..=most).contains(secs)) {
            Some(secs) => ready.idle = Some(secs),
            None => {
                out.reply_fmt(501, format_args!("Use SITE IDLE and 1 to {most} seconds."));
                return State::Ready(ready);
            }
        }
    }
    match ready.idle.unwrap_or(configured) {
        0 => out.reply(200, "There is no limit to idle time."),
        secs => out.reply_fmt(200, format_args!("Idle time is limited to {secs} seconds.")),
    }
    State::Ready(ready)
}

fn parse(arg: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(arg).ok()?;
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
