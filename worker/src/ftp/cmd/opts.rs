//! OPTS: options of other commands (RFC 2389 4): UTF8 (names are bytes here, so ON is what happens anyway), the facts
//! of MLST (RFC 3659 7.9), the sum of HASH (draft-bryan-ftpext-hash 3.2).

use child_ipc::link::worker_broker::Facts;

use crate::ftp::{Context, Out, State, data::Algorithm};

pub(in crate::ftp) fn run(state: State, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    let end = arg.iter().position(|&b| b == b' ').unwrap_or(arg.len());
    let (name, rest) = arg.split_at_checked(end).unwrap_or((arg, b""));
    let value = rest.get(1..).unwrap_or_default();
    match name.to_ascii_uppercase().as_slice() {
        b"UTF8" | b"UTF-8" => utf8(state, value, out),
        b"MLST" => facts(state, value, out),
        b"HASH" => algorithm(state, value, out),
        _ => {
            out.reply(501, "Only UTF8, MLST and HASH have options.");
            state
        }
    }
}

fn utf8(state: State, value: &[u8], out: &mut Out) -> State {
    if value.is_empty() || value.eq_ignore_ascii_case(b"ON") {
        out.reply(200, "UTF8 is on.");
    } else {
        out.reply(501, "UTF8 is always on.");
    }
    state
}

fn facts(state: State, value: &[u8], out: &mut Out) -> State {
    let State::Ready(mut ready) = state else {
        out.reply(530, "Log in with USER and PASS first.");
        return state;
    };
    ready.facts = choose(value);
    out.reply_fmt(200, format_args!("MLST OPTS{}", names(ready.facts)));
    State::Ready(ready)
}

fn algorithm(state: State, value: &[u8], out: &mut Out) -> State {
    let State::Ready(mut ready) = state else {
        out.reply(530, "Log in with USER and PASS first.");
        return state;
    };
    let wanted = Algorithm::ALL.into_iter().find(|known| known.name().as_bytes().eq_ignore_ascii_case(value));
    match wanted {
        None if !value.is_empty() => out.reply(501, "Unknown algorithm; the selection is not changed."),
        wanted => {
            ready.algorithm = wanted.unwrap_or(ready.algorithm);
            out.reply(200, ready.algorithm.name());
        }
    }
    State::Ready(ready)
}

/// Facts that are not known are left out without a word (RFC 3659 7.9).
fn choose(value: &[u8]) -> Facts {
    let mut chosen = 0;
    for wanted in value.split(|&b| b == b';') {
        for (bit, name) in Facts::ALL {
            if name.as_bytes().eq_ignore_ascii_case(wanted) {
                chosen |= bit;
            }
        }
    }
    Facts(chosen)
}

fn names(facts: Facts) -> String {
    let mut text = String::new();
    for (bit, name) in Facts::ALL {
        if facts.has(bit) {
            text.push_str(if text.is_empty() { " " } else { "" });
            text.push_str(name);
            text.push(';');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_in_force_are_told_in_their_order() {
        assert_eq!(names(choose(b"size;TYPE;nonsense;")), " type;size;");
        assert_eq!(names(choose(b"")), "");
    }
}
