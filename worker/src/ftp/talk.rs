//! One client's conversation: the state, and the whole of it with made-up answers for fuzzers.

use child_ipc::{
    link::{
        settings::FtpSettings,
        worker_broker::{Attrs, Done, Kind, Op, Opened, Storage, Why},
    },
    types::{Blob, BrokerId, Port, SessionId, VirtPath},
};

use super::{
    Context, Event, Order, Out, Shield, State,
    data::{Ending, How},
    line,
    state::Wait,
};

/// One client's conversation.
#[derive(Debug, Default)]
pub struct Talk {
    state: State,
}

impl Talk {
    /// The greeting (RFC 959 5.4).
    pub fn greet(&self, cx: &Context<'_>, out: &mut Out) {
        out.greeting(cx.settings.banner.as_bytes());
    }

    /// One step.
    pub fn on(&mut self, event: Event<'_>, cx: &Context<'_>, out: &mut Out) {
        // A step that panics ends the process, so Closing is never seen in between.
        self.state = std::mem::replace(&mut self.state, State::Closing).on(event, cx, out);
    }

    /// Whether a line may be given; otherwise it waits for an event.
    pub fn takes_lines(&self) -> bool {
        self.state.takes_lines()
    }

    /// Whether data moves: see [`Event::Abort`] and [`Event::Status`].
    pub fn transferring(&self) -> bool {
        self.state.transferring()
    }

    /// How long the client may be silent, seconds; 0 is for ever.
    pub fn idle_secs(&self, settings: &FtpSettings) -> u32 {
        let ready = match &self.state {
            State::Ready(ready) => ready,
            State::Moving(moving) => moving.ready(),
            _ => return settings.idle_timeout_secs,
        };
        ready.idle.unwrap_or(settings.idle_timeout_secs)
    }

    /// What is waited for.
    pub fn wait(&self) -> Wait {
        self.state.wait()
    }
}

/// Holds the whole conversation of a client that sends `bytes`, with made-up answers to every question, and returns
/// what it is told. For fuzz targets: must hold for every input, without a panic, and with every line ended by CR LF.
pub fn rehearse(settings: &FtpSettings, bytes: &[u8]) -> Vec<u8> {
    let shield = Shield { possible: settings.tls.is_some(), ..Shield::default() };
    let mut cx = Context { settings, peer: std::net::Ipv4Addr::LOCALHOST.into(), proxied: false, shield, now: 0 };
    let (mut talk, mut out) = (Talk::default(), Out::default());
    let (mut reader, mut queue, mut said) = (line::Reader::default(), Vec::new(), Vec::new());
    talk.greet(&cx, &mut out);
    reader.feed(bytes, &mut queue);
    let mut rest = queue.as_slice();
    while talk.takes_lines() {
        let Some((line, behind)) = line::next(rest) else { break };
        rest = behind;
        talk.on(Event::Line(line), &cx, &mut out);
        while !out.orders.is_empty() {
            for order in std::mem::take(&mut out.orders) {
                match order {
                    Order::Secure => cx.shield.on = true,
                    Order::Shield(shield) => cx.shield = shield,
                    _ => {}
                }
                if let Some(event) = made_up(&order) {
                    talk.on(event, &cx, &mut out);
                }
            }
        }
        said.append(&mut out.bytes);
    }
    said
}

fn made_up(order: &Order) -> Option<Event<'static>> {
    let port = Port::new(50_000)?;
    Some(match order {
        Order::Check(..) => Event::Granted(SessionId(1), BrokerId(1)),
        Order::Ask(op) => Event::Answer(answer(op)),
        Order::Listen { with_address } => {
            Event::Listening(Some((port, with_address.then(|| std::net::Ipv4Addr::LOCALHOST.into()))))
        }
        Order::Move(_) => Event::Ended(Ending { bytes: 0, how: How::Complete }),
        Order::Work(_) => Event::Worked(Ok(vec![0xab; 4])),
        Order::Abort => Event::Ended(Ending { bytes: 0, how: How::Aborted }),
        Order::ReadListing(_) => Event::Listing(Some(b"213 End\r\nfile\r\n".to_vec())),
        Order::Host(_)
        | Order::Secure
        | Order::Shield(_)
        | Order::Logout
        | Order::Unlisten
        | Order::Open(_)
        | Order::Cut
        | Order::Log(..)
        | Order::Close => return None,
    })
}

fn answer(op: &Op) -> Result<Done, Why> {
    let stat = Done::Stat(Attrs { kind: Kind::File, size: 5, modified: 0, mode: 0o644 });
    Ok(match op {
        Op::OpenRead(_) => {
            Done::Opened(Opened { size: 5, created: false, chosen: None, storage: Storage::MEMORY, staged: None })
        }
        Op::OpenWrite { .. } => Done::Opened(Opened {
            size: 0,
            created: true,
            chosen: VirtPath::root().join(b"x\r\n").ok(),
            storage: Storage::MEMORY,
            staged: None,
        }),
        Op::Stat(_) | Op::SetModified(..) | Op::SetFacts { .. } | Op::SetTimes { .. } => stat,
        Op::Space(_) => Done::Space(1 << 40),
        Op::Copy { .. } => Done::Copying { bytes: 5, devices: (1, 2) },
        Op::List { .. } => Done::Listing { bytes: 5, directory: true },
        Op::Facts { .. } => Done::Line(Blob::cut(b"type=file; \r\n230 x")),
        Op::RemoveDir(_) => return Err(Why::NotEmpty),
        Op::ChangeDir(_)
        | Op::MakeDir(..)
        | Op::Remove(_)
        | Op::Rename { .. }
        | Op::SetMode(..)
        | Op::Symlink { .. }
        | Op::Publish { .. }
        | Op::Discard(_) => Done::Nothing,
    })
}

#[cfg(test)]
mod tests {
    use child_ipc::link::{
        settings::{Require, Tls},
        worker_authd::Outcome,
    };

    use super::*;

    fn settings() -> FtpSettings {
        FtpSettings {
            log_level: child_ipc::link::log::Level::Info,
            banner: Blob::cut(b"Hello\n220 you"),
            login_timeout_secs: 60,
            idle_timeout_secs: 300,
            data_connect_timeout_secs: 30,
            stall_timeout_secs: 60,
            session_timeout_secs: 0,
            max_login_failures: 3,
            active: true,
            sync_uploads: false,
            passive_address: None,
            places: Default::default(),
            max_sessions: 10,
            max_sessions_per_address: 0,
            address_prefixes: (32, 64),
            tls: None,
            sendfile: true,
            splice: true,
            buffer_pool_bytes: 1 << 20,
            transfer_chunk_bytes: 1 << 16,
        }
    }

    fn told(lines: &str) -> Vec<String> {
        let said = rehearse(&settings(), format!("USER u\r\nPASS p\r\n{lines}").as_bytes());
        let said = String::from_utf8(said).unwrap();
        said.split_terminator("\r\n").skip(4).map(str::to_owned).collect()
    }

    fn codes(lines: &str) -> Vec<String> {
        told(lines).iter().filter(|line| !line.starts_with(' ')).map(|line| line.chars().take(4).collect()).collect()
    }

    #[test]
    fn the_greeting_and_a_login() {
        let said = rehearse(&settings(), b"PWD\r\nFEAT\r\nUSER u\r\nPASS p\r\nQUIT\r\nNOOP\r\n");
        let said = String::from_utf8(said).unwrap();
        assert!(said.starts_with("220-Hello\r\n220 220 you\r\n530 "), "{said}");
        assert!(said.contains("211-Features:\r\n AVBL\r\n CLNT\r\n EPRT\r\n EPSV\r\n HASH SHA-256*;"), "{said}");
        assert!(
            said.ends_with(" UTF8\r\n211 End\r\n331 Password, please.\r\n230 Logged in.\r\n221 Good-bye.\r\n"),
            "{said}"
        );
    }

    #[test]
    fn a_transfer_needs_a_port_each_time_and_answers_twice() {
        assert_eq!(
            codes("RETR f\r\nEPSV\r\nRETR f\r\nRETR f\r\nPASV\r\nSTOU\r\n"),
            ["425 ", "229 ", "150 ", "226 ", "425 ", "227 ", "150 ", "226 "]
        );
    }

    #[test]
    fn a_name_that_stou_made_up_cannot_end_a_line() {
        assert_eq!(told("EPSV\r\nSTOU\r\n").get(1).map(String::as_str), Some("150 FILE: x??"));
    }

    #[test]
    fn rest_is_spent_by_the_next_transfer() {
        assert_eq!(
            codes("TYPE I\r\nREST 9\r\nEPSV\r\nRETR f\r\nEPSV\r\nRETR f\r\nREST 5\r\nEPSV\r\nRETR f\r\nREST x\r\n"),
            ["200 ", "350 ", "229 ", "554 ", "229 ", "150 ", "226 ", "350 ", "229 ", "150 ", "226 ", "501 "]
        );
        assert_eq!(codes("REST 3\r\nEPSV\r\nRETR f\r\n"), ["350 ", "229 ", "554 "]);
    }

    #[test]
    fn rnto_needs_an_rnfr_that_is_not_spent() {
        assert_eq!(codes("RNTO e\r\nRNFR a\r\nRNTO b\r\nRNTO c\r\n"), ["503 ", "350 ", "250 ", "503 "]);
    }

    #[test]
    fn a_second_user_ends_the_first_ones_rights() {
        assert_eq!(
            codes("USER b\r\nLIST\r\nPASS x\r\nPWD\r\nREIN\r\nPWD\r\n"),
            ["331 ", "530 ", "230 ", "257 ", "220 ", "530 "]
        );
    }

    #[test]
    fn ports_of_others_and_privileged_ports_are_refused() {
        assert_eq!(
            codes(
                "PORT 10,0,0,1,4,1\r\nPORT 127,0,0,1,0,21\r\nPORT 127,0,0,1,4,1\r\nEPRT |2|::1|5000|\r\nEPRT |1|127.0.0.1|5000|\r\nEPRT |3|x|1|\r\nEPSV 2\r\nEPSV 1\r\nEPSV ALL\r\nPASV\r\nPORT 127,0,0,1,4,1\r\nEPSV\r\n"
            ),
            ["501 ", "501 ", "200 ", "522 ", "200 ", "522 ", "522 ", "229 ", "200 ", "503 ", "503 ", "229 "]
        );
    }

    #[test]
    fn replies_of_several_lines_are_closed_by_their_own_code_only() {
        for (line, code) in [
            ("STAT .", "212"),
            ("STAT", "211"),
            ("HELP", "214"),
            ("MLST", "250"),
            ("SITE HELP", "214"),
            ("FEAT", "211"),
        ] {
            let told = told(&format!("{line}\r\n"));
            let (last, inner) = told.split_last().unwrap();
            assert!(last.starts_with(&format!("{code} ")), "{line}: {last}");
            assert!(inner[0].starts_with(&format!("{code}-")), "{line}");
            assert!(inner[1..].iter().all(|text| text.starts_with(' ')), "{line}: {inner:?}");
        }
    }

    #[test]
    fn a_sum_is_told_in_the_form_of_its_verb() {
        assert_eq!(
            told("HASH f\r\nRANG 1 3\r\nHASH f\r\nHASH f\r\nOPTS HASH crc32\r\nHASH f\r\nXCRC f\r\nXMD5 \"f\" 1 2\r\n"),
            [
                "213 SHA-256 0-4 abababab /f",
                "350 Bytes 1 to 3 are next.",
                "213 SHA-256 1-3 abababab /f",
                "213 SHA-256 0-4 abababab /f",
                "200 CRC32",
                "213 CRC32 0-4 abababab /f",
                "250 ABABABAB",
                "250 ABABABAB",
            ]
        );
        assert_eq!(codes("RANG 5 5\r\nHASH f\r\nXCRC \"f\" 0 6\r\nOPTS HASH x\r\n"), ["350 ", "554 ", "550 ", "501 "]);
    }

    #[test]
    fn rang_and_rest_take_each_others_place_and_are_spent() {
        assert_eq!(
            codes("TYPE I\r\nREST 9\r\nRANG 0 1\r\nEPSV\r\nRETR f\r\nRANG 0 1\r\nREST 9\r\nEPSV\r\nRETR f\r\n"),
            ["200 ", "350 ", "350 ", "229 ", "150 ", "226 ", "350 ", "350 ", "229 ", "554 "]
        );
        assert_eq!(
            codes("TYPE I\r\nRANG 0 1\r\nEPSV\r\nSTOR f\r\nSTOR f\r\nRANG 0 1\r\nEPSV\r\nSTOU\r\n"),
            ["200 ", "350 ", "229 ", "554 ", "150 ", "226 ", "350 ", "229 ", "554 "]
        );
    }

    #[test]
    fn host_comes_before_user_and_never_after() {
        let said =
            rehearse(&settings(), b"HOST ftp.example.com\r\nHOST a b\r\nUSER u\r\nHOST x\r\nPASS p\r\nHOST x\r\n");
        let said = String::from_utf8(said).unwrap();
        let codes: Vec<&str> = said.split_terminator("\r\n").skip(2).map(|line| &line[..4]).collect();
        assert_eq!(codes, ["220 ", "501 ", "331 ", "503 ", "230 ", "503 "]);
    }

    #[test]
    fn host_greets_with_its_own_banner_and_knows_no_other_names() {
        use child_ipc::{
            link::places::{Host, Places},
            types::HostName,
        };
        let host = |name: &[u8], banner: Option<&[u8]>| Host {
            name: HostName::new(name).unwrap(),
            banner: banner.map(Blob::cut),
        };
        let hosts = vec![host(b"a.test", Some(b"At A")), host(b"b.test", None), host(b"c.test", Some(b""))];
        let places = Places { hosts, ..Places::default() };
        let settings = FtpSettings { places, banner: Blob::cut(b"All"), ..settings() };
        let said = rehearse(&settings, b"HOST A.test.\r\nHOST b.test\r\nHOST c.test\r\nHOST d.test\r\nHOST a b\r\n");
        assert_eq!(
            String::from_utf8(said).unwrap(),
            "220 All\r\n220 At A\r\n220 All\r\n220 Ready.\r\n504 No host of that name is here.\r\n501 Use HOST and a host \
             name, an IPv4 address, or an IPv6 address in brackets.\r\n"
        );
    }

    #[test]
    fn cpto_needs_a_cpfr_that_is_not_spent() {
        assert_eq!(
            codes("SITE CPTO b\r\nSITE CPFR a\r\nSITE CPTO b\r\nSITE CPTO c\r\n"),
            ["503 ", "350 ", "250 ", "503 "]
        );
    }

    #[test]
    fn idle_time_is_bounded_by_the_configured_one() {
        assert_eq!(
            codes(
                "SITE IDLE\r\nSITE IDLE 300\r\nSITE IDLE 301\r\nSITE IDLE 0\r\nSITE IDLE x\r\nSITE UMASK 027\r\nSITE UMASK 8\r\n"
            ),
            ["200 ", "200 ", "501 ", "501 ", "501 ", "200 ", "501 "]
        );
    }

    fn under(require: Require, lines: &str) -> Vec<String> {
        let tls = Some(Tls { require, ..Tls::default() });
        let said = rehearse(&FtpSettings { tls, ..settings() }, lines.as_bytes());
        let said = String::from_utf8(said).unwrap();
        said.split_terminator("\r\n").skip(2).map(|line| line.chars().take(4).collect()).collect()
    }

    #[test]
    fn auth_pbsz_and_prot_are_told_apart_by_their_replies() {
        let said = "pbsz 0\r\nPROT P\r\nCCC\r\nAUTH KERBEROS_V4\r\nAUTH\r\nauth tls-c\r\nAUTH SSL\r\nPROT P\r\nPBSZ x\r\nPBSZ 4096\r\n\
            PROT S\r\nPROT E\r\nPROT X\r\nPROT C\r\nPROT p\r\nCCC\r\nREIN\r\nUSER u\r\nPASS p\r\nAUTH TLS\r\n";
        assert_eq!(
            under(Require::No, said),
            [
                "503 ", "503 ", "533 ", "504 ", "501 ", "234 ", "503 ", "503 ", "501 ", "200 ", "536 ", "536 ", "504 ",
                "200 ", "200 ", "534 ", "502 ", "331 ", "230 ", "503 "
            ]
        );
        assert_eq!(codes("AUTH TLS\r\nPBSZ 0\r\nPROT P\r\nCCC\r\n"), ["504 ", "503 ", "503 ", "533 "]);
    }

    #[test]
    fn auth_after_a_name_or_a_login_keeps_neither() {
        assert_eq!(under(Require::No, "USER u\r\nAUTH TLS\r\nPASS p\r\n"), ["331 ", "234 ", "503 "]);
        assert_eq!(under(Require::No, "USER u\r\nPASS p\r\nAUTH TLS\r\nPBSZ 0\r\n"), ["331 ", "230 ", "503 ", "503 "]);
    }

    #[test]
    fn what_has_to_be_under_tls_is_not_done_without() {
        assert_eq!(
            under(Require::Login, "USER u\r\nPASS p\r\nAUTH TLS\r\nUSER u\r\n"),
            ["530 ", "503 ", "234 ", "331 "]
        );
        let login = "AUTH TLS\r\nUSER u\r\nPASS p\r\n";
        let transfers = "EPSV\r\nLIST\r\nSTOR f\r\nPBSZ 0\r\nPROT C\r\nPROT P\r\nSTOR f\r\n";
        assert_eq!(
            under(Require::Data, &format!("{login}{transfers}"))[3..],
            ["229 ", "521 ", "521 ", "200 ", "534 ", "200 ", "150 ", "226 "]
        );
        assert_eq!(under(Require::Login, &format!("{login}EPSV\r\nRETR f\r\n"))[3..], ["229 ", "150 ", "226 "]);
    }

    #[test]
    fn what_the_account_or_the_handshake_demands_counts_where_the_settings_of_now_demand_less() {
        let settings = settings();
        let said = |required, private| {
            let shield = Shield { on: true, sized: true, private, required, ..Shield::default() };
            let peer = std::net::Ipv4Addr::LOCALHOST.into();
            let cx = Context { settings: &settings, peer, proxied: false, shield, now: 0 };
            let (mut talk, mut out) = (Talk::default(), Out::default());
            for line in [&b"USER u"[..], b"PASS p", b"EPSV", b"LIST", b"PROT C"] {
                talk.on(Event::Line(line::Line::Command(line)), &cx, &mut out);
                while let Some(order) = out.orders.pop() {
                    if let Some(event) = made_up(&order) {
                        talk.on(event, &cx, &mut out);
                    }
                }
            }
            let said = String::from_utf8(out.bytes).unwrap();
            said.split_terminator("\r\n").skip(3).map(|line| line[..4].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(said(Require::Data, false), ["521 ", "534 "]);
        assert_eq!(said(Require::Data, true), ["150 ", "226 ", "534 "]);
        assert_eq!(said(Require::Login, false), ["150 ", "226 ", "200 "]);
    }

    #[test]
    fn a_password_in_clear_is_not_tried_where_tls_has_become_a_must_meanwhile() {
        let settings = settings();
        let said = |required| {
            let (mut talk, mut out) = (Talk::default(), Out::default());
            for (line, required) in [(&b"USER u"[..], Require::No), (b"PASS p", required), (b"NOOP", required)] {
                let shield = Shield { possible: true, required, ..Shield::default() };
                let peer = std::net::Ipv4Addr::LOCALHOST.into();
                let cx = Context { settings: &settings, peer, proxied: false, shield, now: 0 };
                talk.on(Event::Line(line::Line::Command(line)), &cx, &mut out);
            }
            let checks = out.orders.iter().filter(|order| matches!(order, Order::Check(..))).count();
            (
                String::from_utf8(out.bytes).unwrap().split_terminator("\r\n").nth(1).map(|line| line[..4].to_owned()),
                checks,
            )
        };
        assert_eq!(said(Require::Login), (Some("530 ".to_owned()), 0));
        assert_eq!(said(Require::No).1, 1);
    }

    #[test]
    fn a_certificate_that_is_enough_is_answered_with_232_and_another_asks_for_the_password() {
        let settings = settings();
        let shield = Shield { possible: true, on: true, certified: true, ..Shield::default() };
        let cx =
            Context { settings: &settings, peer: std::net::Ipv4Addr::LOCALHOST.into(), proxied: false, shield, now: 0 };
        let said = |event: Event<'static>| {
            let (mut talk, mut out) = (Talk::default(), Out::default());
            talk.on(Event::Line(line::Line::Command(b"USER u")), &cx, &mut out);
            assert!(matches!(out.orders.as_slice(), [Order::Check(_, None)]) && out.bytes.is_empty());
            assert!(!talk.takes_lines());
            talk.on(event, &cx, &mut out);
            (String::from_utf8(out.bytes).unwrap(), talk.takes_lines())
        };
        let granted = said(Event::Granted(SessionId(1), BrokerId(1)));
        assert_eq!(granted, ("232 Logged in by the certificate.\r\n".to_owned(), true));
        for outcome in [Outcome::Rejected, Outcome::Busy] {
            assert_eq!(said(Event::Verdict(outcome)), ("331 Password, please.\r\n".to_owned(), true));
        }
        // authd's word alone makes nobody anything.
        assert_eq!(said(Event::Verdict(Outcome::Accepted)), (String::new(), false));
        assert!(said(Event::NoAuthd).0.starts_with("421 ") && said(Event::GrantRefused).0.starts_with("421 "));
    }

    #[test]
    fn feat_lists_tls_with_a_certificate_only() {
        let tls = |tls| rehearse(&FtpSettings { tls, ..settings() }, b"FEAT\r\n");
        let with = String::from_utf8(tls(Some(Tls::default()))).unwrap();
        for line in ["\r\n AUTH TLS\r\n", "\r\n PBSZ\r\n", "\r\n PROT\r\n"] {
            assert!(with.contains(line), "{with}");
        }
        let without = String::from_utf8(tls(None)).unwrap();
        assert!(!without.contains("AUTH") && !without.contains("PROT") && !without.contains("PBSZ"), "{without}");
    }

    #[test]
    fn nonsense_gets_one_reply_a_line() {
        assert_eq!(
            codes("\r\nXYZZY\r\nABCDEFGHIJKLMNOP\r\nTYPE\r\nMODE B\r\nSTRU R\r\nALLO x\r\nSIZE\r\nSIZE f\r\nABOR\r\n"),
            ["500 ", "500 ", "500 ", "501 ", "504 ", "504 ", "501 ", "501 ", "550 ", "226 "]
        );
    }
}
