//! caissond(8) lists every verb and every SITE command there is, in the order of the tables, and no other.

use std::{fs, path::Path};

use worker::ftp::table::{TABLE, site_names};

#[test]
fn caissond_lists_every_command_and_no_other() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../man/caissond.8");
    let page = fs::read_to_string(page).unwrap();
    let section = page.split(".Ss Commands\n").nth(1).unwrap().split(".El\n").next().unwrap();
    let listed: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix(".It Cm ")).collect();
    let verbs = TABLE.iter().map(|verb| verb.name.to_owned());
    let known: Vec<String> = verbs.chain(site_names().map(|name| format!("SITE {name}"))).collect();
    assert_eq!(listed, known);
}
