//! `listing_time` of caisson.toml(5): LIST in local time, everything else in UTC (RFC 3659 2.3).

use std::process::Command;

use e2e::{Daemon, Site, root_or_skip};

/// Past and future changes of the clocks, and both sides of a midnight.
const OLD: [&str; 6] =
    ["20050101223000", "20050101233000", "20050701033000", "20050701043000", "20050701213000", "20050701223000"];

fn daemon(zone: &str) -> Option<Daemon> {
    let mut site = Site::new();
    site.set(&format!("listing_time = \"{zone}\""));
    root_or_skip("listing_time").then(|| Daemon::start(site))
}

/// The three columns of the time, and the name.
fn dates<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<[String; 4]> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    lines.filter_map(|line| words(line).get(5..9)?.to_vec().try_into().ok()).collect()
}

/// Old files by their time, and one a week for half a year, so that the clocks change in between.
fn furnish(daemon: &Daemon) {
    let mut client = daemon.login("alice");
    for time in OLD {
        daemon.put("alice", time, b"");
        client.expect(format!("MFMT {time} {time}"), &[213]);
    }
    for weeks in 0..25_u64 {
        let name = format!("{weeks:02}-weeks");
        daemon.put("alice", &name, b"");
        let time = std::time::SystemTime::now() - std::time::Duration::from_secs(weeks * 7 * 86_400 + 3600);
        let file = std::fs::File::options().write(true).open(daemon.home("alice", &name)).expect("open");
        file.set_modified(time).expect("utimensat");
    }
}

#[test]
fn list_shows_the_time_that_ls_shows_in_that_zone_in_summer_and_winter() {
    for (setting, variable) in [
        ("Europe/Berlin", Some("Europe/Berlin")),
        ("America/New_York", Some("America/New_York")),
        ("Asia/Kathmandu", Some("Asia/Kathmandu")),
        ("utc", Some("UTC")),
        ("local", None),
    ] {
        let Some(daemon) = daemon(setting) else { return };
        furnish(&daemon);
        let mut ls = Command::new("ls");
        ls.arg("-l").arg(daemon.home("alice", "")).env("LC_ALL", "C").env_remove("TZ");
        ls.envs(variable.map(|zone| ("TZ", zone)));
        let expected = String::from_utf8(ls.output().expect("ls").stdout).expect("ASCII");
        let got = daemon.login("alice").list("LIST");
        assert_eq!(dates(got.iter().map(String::as_str)), dates(expected.lines()), "{setting}");
        assert_eq!(got.len(), OLD.len() + 25);
    }
}

#[test]
fn a_reload_shows_another_zone_to_new_logins_though_an_older_session_goes_on() {
    let Some(mut daemon) = daemon("utc") else { return };
    furnish(&daemon);
    let mut before = daemon.login("alice");
    daemon.site.set("listing_time = \"Asia/Kathmandu\"");
    daemon.site.write();
    daemon.signal(nix::sys::signal::Signal::SIGHUP);
    daemon.logged(&["reloaded"]);
    let midnight = |client: &mut e2e::ftp::Client, shown: &str| {
        let lines = client.list("LIST");
        assert!(lines.iter().any(|line| line.ends_with(&format!(" {shown} 20050101223000"))), "{shown}: {lines:?}");
    };
    midnight(&mut daemon.login("alice"), "Jan  2  2005");
    midnight(&mut before, "Jan  1  2005");
}

#[test]
fn a_midnight_in_berlin_is_an_hour_away_in_winter_and_two_in_summer_and_facts_stay_utc() {
    let Some(daemon) = daemon("Europe/Berlin") else { return };
    furnish(&daemon);
    let mut client = daemon.login("alice");
    let lines = client.list("LIST");
    for (name, shown) in
        OLD.iter().zip(["Jan  1  2005", "Jan  2  2005", "Jul  1  2005", "Jul  1  2005", "Jul  1  2005", "Jul  2  2005"])
    {
        assert!(lines.iter().any(|line| line.ends_with(&format!(" {shown} {name}"))), "{name}: {lines:?}");
    }
    for time in OLD {
        let facts = client.list("MLSD").into_iter().find(|l| l.ends_with(&format!(" {time}"))).expect("listed");
        assert!(facts.to_lowercase().contains(&format!("modify={time};")), "{facts}");
        assert!(client.expect(format!("MDTM {time}"), &[213]).text().contains(time));
    }
}
