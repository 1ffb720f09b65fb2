//! The manual pages are the truth, and these tests keep the parser to them: keywords both ways and in order, with types, ranges
//! and defaults; examples that load; usage texts; permissions; events of the log; and `mandoc -T lint` silent.

#[path = "../../../tests/src/skip.rs"]
mod skip;

use std::{fs, path::PathBuf, process::Command};

use child_ipc::{link::log::Event, types::Permission};
use config::{CONFIG, Keyword, REPEATED, REQUIRED, Source, UNSET, USER};

fn path(page: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../man").join(page)
}

fn page(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap()
}

/// The items a macro begins, each with the text up to the next item or the end of the list.
fn items(page: &str, macro_name: &str) -> Vec<(String, String)> {
    let mut items: Vec<(String, String)> = Vec::new();
    let mut open = false;
    for line in page.lines() {
        if let Some(name) = line.strip_prefix(&format!(".It {macro_name} ")) {
            items.push((name.to_owned(), String::new()));
            open = true;
        } else if line.starts_with(".It ") || line == ".El" {
            open = false;
        } else if let (true, Some((_, text))) = (open, items.last_mut()) {
            text.push_str(&line.replace("\\e", "\\"));
            text.push('\n');
        }
    }
    items
}

/// What the page must say of each keyword.
fn sentences<T: 'static>(words: impl IntoIterator<Item = &'static Keyword<T>>) -> Vec<(String, String)> {
    let sentence = |word: &Keyword<T>| {
        let default = match word.default {
            REQUIRED => "required.".to_owned(),
            UNSET => "not set by default.".to_owned(),
            default => format!("the default is {default}."),
        };
        (word.name.to_owned(), format!("Takes {}; {default}\n", word.kind.expected()))
    };
    words.into_iter().map(sentence).collect()
}

fn compare(page: &str, expected: &[(String, String)]) {
    let items = items(page, "Ic");
    let names = |list: &[(String, String)]| list.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&items), names(expected));
    for ((name, text), (_, sentence)) in items.iter().zip(expected) {
        assert!(text.ends_with(sentence), "{name}: the page says\n{text}\nand not: {sentence}");
    }
}

/// Keywords of caisson.toml(5) in the order of the page: the top, the repeated sections, the others.
fn config_sentences() -> Vec<(String, String)> {
    let mut all = sentences(CONFIG.iter().filter(|word| word.section.is_empty()));
    all.extend(sentences(REPEATED));
    all.extend(sentences(CONFIG.iter().filter(|word| !word.section.is_empty())));
    all
}

#[test]
fn caisson_toml_describes_every_keyword_and_no_other() {
    compare(&page("caisson.toml.5"), &config_sentences());
}

#[test]
fn caisson_users_describes_every_keyword_and_no_other() {
    compare(&page("caisson-users.5"), &sentences(USER));
}

#[test]
fn caisson_users_lists_every_permission() {
    let listed: Vec<String> = items(&page("caisson-users.5"), "Cm").into_iter().map(|(name, _)| name).collect();
    let known: Vec<&str> = Permission::ALL.iter().map(|(name, _)| *name).chain(["all"]).collect();
    assert_eq!(listed, known);
}

/// Every event. The match makes a new one fail here until it is listed.
fn events() -> Vec<Event> {
    use Event::{Breach, Change, Connect, Disconnect, Fault, Limit, Login, LoginFailed, Process, Refused, Transfer};
    let all = vec![Connect, Disconnect, Login, LoginFailed, Transfer, Change, Refused, Breach, Fault, Process, Limit];
    for event in &all {
        match event {
            Connect | Disconnect | Login | LoginFailed | Transfer | Change | Refused | Breach | Fault | Process
            | Limit => {}
        }
    }
    all
}

#[test]
fn caissond_lists_every_event_of_the_log() {
    let listed: Vec<String> =
        items(&page("caissond.8"), "Sy").into_iter().map(|(name, _)| name.replace('-', "")).collect();
    let known: Vec<String> = events().iter().map(|event| format!("{event:?}").to_lowercase()).collect();
    assert_eq!(listed, known);
}

/// The SYNOPSIS of a page as plain text, one line a use.
fn synopsis(page: &str) -> String {
    let body = page.split(".Sh SYNOPSIS\n").nth(1).unwrap().split(".Sh ").next().unwrap();
    let mut text = String::new();
    for line in body.lines() {
        let mut words = line.split(' ').peekable();
        let optional = words.next_if_eq(&".Op").is_some();
        let mut out = Vec::new();
        while let Some(word) = words.next() {
            match if word == "..." { word } else { word.trim_start_matches('.') } {
                "Nm" => text.push('\n'),
                "Fl" => out.push(format!("-{}", words.next().unwrap())),
                "Ar" | "Cm" => {}
                word => out.push(word.to_owned()),
            }
        }
        let out = out.join(" ");
        let separator = if text.ends_with('\n') { "" } else { " " };
        text.push_str(separator);
        text.push_str(&if optional { format!("[{out}]") } else { out });
    }
    text.trim().to_owned()
}

fn usage(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim_start_matches("usage:").trim());
    lines.collect::<Vec<_>>().join("\n")
}

/// The usage text of a program that is not linked here, read from its source.
fn usage_in(source: &str) -> String {
    let source = fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(source)).unwrap();
    usage(source.split("USAGE: &str = \"\\\n").nth(1).unwrap().split("\";").next().unwrap())
}

#[test]
fn the_synopses_of_caissond_and_caissonctl_are_their_usage_texts() {
    assert_eq!(synopsis(&page("caissond.8")), usage_in("src/args.rs"));
    assert_eq!(synopsis(&page("caissonctl.8")), usage_in("ctl/src/lib.rs"));
}

/// The literal displays of a page.
fn examples(page: &str) -> Vec<String> {
    let blocks = page.split(".Bd -literal -offset indent\n").skip(1);
    blocks.map(|block| block.split(".Ed\n").next().unwrap().replace("\\e", "\\")).collect()
}

/// Judges both files, with users that every system has and, without root, our own.
fn loads(config: &str, users: &str) {
    let uid = rustix::process::geteuid().as_raw();
    let settings = ["worker_user = \"games\"", "authd_user = \"irc\""];
    let settings: String = settings
        .iter()
        .filter(|line| !config.contains(line.split(' ').next().unwrap()))
        .map(|line| format!("{line}\n"))
        .collect();
    let config = format!("{settings}{config}\n");
    let own = |text: &str| {
        let lines = text.lines().map(|line| match line.split(' ').next() {
            Some("uid" | "gid") if uid != 0 => line.split(' ').next().unwrap().to_owned() + &format!(" = {uid}"),
            _ => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let source = |file: &str, text: &str| Source { file: file.to_owned(), text: own(text) };
    let file = source("caisson.toml", &config);
    let settings = config::settings(&file, uid == 0).unwrap_or_else(|e| panic!("{e}\n{config}"));
    config::accounts(&source("users.toml", users), &file, &settings).unwrap_or_else(|e| panic!("{e}\n{users}"));
}

#[test]
fn the_examples_load() {
    let configs = examples(&page("caisson.toml.5"));
    let users = examples(&page("caisson-users.5"));
    assert_eq!((configs.len(), users.len()), (2, 2));
    configs.iter().for_each(|config| loads(config, ""));
    let config = "[[listen]]\naddress = \"127.0.0.1:2121\"\n[[certificate]]\ncertificate = \"/c\"\nkey = \"/k\"\n";
    users.iter().for_each(|users| loads(config, users));
}

#[test]
fn every_default_is_a_value_of_its_own_keyword() {
    let mut text = String::new();
    let mut section = "";
    for word in CONFIG.iter().filter(|word| word.default != UNSET) {
        if word.section != section {
            section = word.section;
            text.push_str(&format!("[{section}]\n"));
        }
        // The users of the system may be missing on this one.
        if !["worker_user", "authd_user"].contains(&word.name) {
            text.push_str(&format!("{} = {}\n", word.name, word.default));
        }
    }
    loads(&format!("{text}[[listen]]\naddress = \"127.0.0.1:2121\"\n"), "");
    let mut text = String::from("[[user]]\nname = \"a\"\nuid = 4711\ngid = 4711\nhome = \"/\"\n");
    for word in USER.iter().filter(|word| word.default != UNSET && word.default != REQUIRED) {
        text.push_str(&format!("{} = {}\n", word.name, word.default));
    }
    loads("[[listen]]\naddress = \"127.0.0.1:2121\"\n", &text);
}

#[test]
fn mandoc_finds_nothing_to_warn_of() {
    let pages: Vec<PathBuf> = fs::read_dir(path("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(pages.contains(&path("caissond.8")), "{pages:?}");
    for page in pages {
        let Ok(lint) = Command::new("mandoc").args(["-T", "lint", "-W", "warning"]).arg(page).output() else {
            return skip::skipped("mandoc -T lint", "no mandoc (tests/setup)");
        };
        assert!(lint.status.success(), "{}", String::from_utf8_lossy(&lint.stdout));
    }
}
