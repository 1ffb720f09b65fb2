//! What has to be under TLS and must resume, by network and by account.

use child_ipc::link::settings::{FtpSettings, Require, Resumption, unpack};

use super::{Files, account, wrong_users};

const PAIR: &str = "[[certificate]]\ncertificate = \"/c.pem\"\nkey = \"/k.pem\"\n";

#[test]
fn networks_and_accounts_with_policies_of_their_own_are_told_to_whom_they_concern() {
    let networks = "tls_required = \"login\"\n\
        [[network]]\nclients = [\"10.0.0.0/8\", \"2001:db8::/32\"]\ntls_required = \"no\"\n\
        [[network]]\nclients = [\"10.1.0.0/16\"]\ntls_required = \"data\"\ndata_resumption = \"required\"\n";
    let users = [account("alice", "tls_required = \"data\""), account("bob", "")].concat();
    let (settings, users) = Files::new(&format!("{networks}{PAIR}"), &users).load().unwrap();
    let told: FtpSettings = unpack(&settings.config.workers).unwrap();
    let of = |client: &str| (told.require(client.parse().unwrap()), told.resumption(client.parse().unwrap()));
    assert_eq!(of("192.0.2.1"), (Require::Login, Resumption::IfOffered));
    assert_eq!(of("10.2.0.1"), (Require::No, Resumption::IfOffered));
    assert_eq!(of("2001:db8::1"), (Require::No, Resumption::IfOffered));
    assert_eq!(of("10.1.2.3"), (Require::Data, Resumption::Required));
    let required: Vec<Require> = users.values().map(|user| Require::of(user.user.tls_required)).collect();
    assert_eq!(required, [Require::Data, Require::No]);
}

#[test]
fn a_wrong_network_is_named_with_its_place_and_what_was_expected() {
    let net = |lines: &str| format!("[[network]]\nclients = [\"10.0.0.0/8\"]\n{lines}\n");
    let no = "tls_required = \"no\"";
    for (config, error) in [
        (
            net("tls_required = \"yes\""),
            "6:16: network.tls_required: expected \"no\" or \"login\" or \"data\", found \"yes\"",
        ),
        (
            net("data_resumption = true"),
            "6:19: network.data_resumption: expected \"required\" or \"if-offered\" or \"off\", found true",
        ),
        (
            net(no).replace("10.0.0.0/8", "10.0.0.1/8"),
            "5:11: network.clients: 10.0.0.1/8 has bits behind its prefix; did you",
        ),
        (
            net(no).replace("\"10.0.0.0/8\"", ""),
            "5:11: network.clients: expected an array of 1 to 64 addresses or networks",
        ),
        (format!("[[network]]\n{no}\n"), "4:1: network.clients: missing; expected an array of 1 to 64 addresses"),
        (net(""), "4:1: network.clients: nothing is said of them; expected tls_required or data_resumption"),
        (net(no).repeat(2), "7:1: network.clients: 10.0.0.0/8 is listed twice"),
        (net(no).replace("/8\"", "/8\", \"10.0.0.0/8\""), "4:1: network.clients: 10.0.0.0/8 is listed twice"),
        (net("tls_require = \"no\""), "6:1: tls_require: unknown keyword; did you mean tls_required?"),
    ] {
        let got = Files::new(&format!("{config}{PAIR}"), "").error();
        assert!(got.starts_with(&format!("caisson.toml:{error}")), "{got}");
    }
    assert!(Files::new(&format!("{}{PAIR}", net(no)), "").load().is_ok());
    let many: String = (0..400).map(|n| format!("[[network]]\nclients = [\"2001:db8:{n:x}::/48\"]\n{no}\n")).collect();
    assert!(Files::new(&many, "").load().is_ok());
    let many: String =
        (0..64 * 16).map(|n| format!("[[network]]\nclients = [\"2001:db8:{n:x}::/48\"]\n{no}\n")).collect();
    let got = Files::new(&many, "").error();
    assert!(
        got.contains(": network: expected less in repeated sections") && got.ends_with("more than 16384 bytes"),
        "{got}"
    );
}

#[test]
fn nothing_that_asks_for_tls_is_taken_without_a_certificate() {
    let network = |require: &str| format!("[[network]]\nclients = [\"10.0.0.0/8\"]\ntls_required = \"{require}\"\n");
    let got = Files::new(&network("login"), "").error();
    assert!(got.starts_with("caisson.toml:4:1: network.tls_required: needs a section [[certificate]]"), "{got}");
    assert!(Files::new(&network("no"), "").load().is_ok());
    for require in ["login", "data"] {
        let got = wrong_users(&account("alice", &format!("tls_required = \"{require}\"")));
        assert!(got.starts_with("users.toml:1:1: user.tls_required: needs TLS: a section [[certificate]]"), "{got}");
    }
    assert!(Files::new("", &account("alice", "tls_required = \"no\"")).load().is_ok());
    let got = wrong_users(&account("alice", "tls_required = \"always\""));
    assert!(
        got.starts_with("users.toml:7:16: user.tls_required: expected \"no\" or \"login\" or \"data\", found"),
        "{got}"
    );
}
