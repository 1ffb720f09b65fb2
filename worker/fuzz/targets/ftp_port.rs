//! The arguments of PORT and EPRT (RFC 959 4.1.2, RFC 2428 2).
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Some((ip, port)) = worker::ftp::cmd::port::parse(data) {
        let [a, b, c, d] = ip.octets();
        let again = format!("{a},{b},{c},{d},{},{}", port >> 8, port & 0xff);
        assert_eq!(worker::ftp::cmd::port::parse(again.as_bytes()), Some((ip, port)));
    }
    if let Some(Ok((ip, port))) = worker::ftp::cmd::eprt::parse(data) {
        let again = format!("|{}|{ip}|{port}|", if ip.is_ipv4() { 1 } else { 2 });
        assert!(matches!(worker::ftp::cmd::eprt::parse(again.as_bytes()), Some(Ok(same)) if same == (ip, port)));
    }
});
