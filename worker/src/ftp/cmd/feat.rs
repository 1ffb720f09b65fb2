//! FEAT: what works beyond RFC 959 (RFC 2389 3), from the table: each line is one space and the feature.

use child_ipc::link::worker_broker::Facts;

use crate::ftp::{
    Context, Out, State,
    data::Algorithm,
    table::{Feature, TABLE},
};

pub(in crate::ftp) fn run(state: State, _arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    out.first(211, "Features:");
    for row in TABLE {
        match row.feature {
            Feature::None => {}
            Feature::Line(line) => out.inner(line.as_bytes()),
            Feature::IfSecure(line) if cx.shield.possible || cx.shield.on => out.inner(line.as_bytes()),
            Feature::IfActive(line) if cx.active() => out.inner(line.as_bytes()),
            Feature::IfActive(_) | Feature::IfSecure(_) => {}
            Feature::Lines(lines) => lines.iter().for_each(|line| out.inner(line.as_bytes())),
            Feature::Hash => out.inner(hash_line(&state).as_bytes()),
            Feature::Facts => out.inner(facts_line(&state).as_bytes()),
        }
    }
    // RFC 3659 6 and RFC 2640 3.2: no verbs of their own.
    out.inner(b"TVFS");
    out.inner(b"UTF8");
    out.reply(211, "End");
    state
}

/// RFC 3659 7.8: every fact, with a star behind those in force.
fn facts_line(state: &State) -> String {
    let chosen = match state {
        State::Ready(ready) => ready.facts,
        _ => Facts::EVERY,
    };
    let mut line = String::from("MLST ");
    for (bit, name) in Facts::ALL {
        line.push_str(name);
        line.push_str(if chosen.has(bit) { "*;" } else { ";" });
    }
    line
}

/// draft-bryan-ftpext-hash 3.1: every algorithm, with a star behind the one in force.
fn hash_line(state: &State) -> String {
    let chosen = match state {
        State::Ready(ready) => ready.algorithm,
        _ => Algorithm::default(),
    };
    let mut line = String::from("HASH ");
    for algorithm in Algorithm::ALL {
        line.push_str(algorithm.name());
        line.push_str(if algorithm == chosen { "*;" } else { ";" });
    }
    line
}
