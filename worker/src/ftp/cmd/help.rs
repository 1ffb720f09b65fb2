//! HELP: the verbs, or one verb's arguments (RFC 959 4.1.3), from the table.

use crate::ftp::{Context, Out, State, table};

/// Verbs in one line.
const PER_LINE: usize = 10;

pub(in crate::ftp) fn run(state: State, arg: &[u8], _cx: &Context<'_>, out: &mut Out) -> State {
    if arg.is_empty() {
        out.first(214, "These commands are known:");
        for rows in table::TABLE.chunks(PER_LINE) {
            let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
            out.inner(names.join(" ").as_bytes());
        }
        out.reply(214, "HELP with a command tells its arguments.");
    } else if let Some(row) = table::find(arg) {
        out.reply_fmt(
            214,
            format_args!("Syntax: {}{}{}", row.name, if row.args.is_empty() { "" } else { " " }, row.args),
        );
    } else {
        out.reply(501, "Unknown command.");
    }
    state
}
