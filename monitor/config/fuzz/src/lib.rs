//! What the parser's targets assert: a configuration, or one line that names the file.

use config::Source;

/// Judges a caisson.toml and a users.toml.
pub fn files(config: &[u8], users: &[u8]) {
    let source = |file: &str, text: &[u8]| Source { file: file.to_owned(), text: String::from_utf8_lossy(text).into_owned() };
    let (config, users) = (source("caisson.toml", config), source("users.toml", users));
    let judged = config::settings(&config, false).and_then(|settings| config::accounts(&users, &config, &settings));
    if let Err(line) = judged {
        assert!(!line.contains('\n') && line.contains(".toml"), "{line}");
    }
}
