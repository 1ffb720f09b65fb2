//! Every record of every link: there and back, too long, cut short, a descriptor too many, one too few.

#[path = "links/samples.rs"]
mod samples;

use std::{
    collections::HashSet,
    fmt::Debug,
    io::IoSlice,
    mem::{Discriminant, MaybeUninit, discriminant},
    os::fd::{AsFd, OwnedFd},
};

use child_ipc::{
    Breach, Channel, MAX_FDS, Record, RecvError, SendError,
    link::{CannotStart, control, monitor_worker},
    types::{Blob, Permissions, UserName},
};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use samples::*;

fn a_descriptor() -> OwnedFd {
    std::fs::File::open("/dev/null").unwrap().into()
}

fn descriptors(count: usize) -> Vec<OwnedFd> {
    (0..count).map(|_| a_descriptor()).collect()
}

/// Sends raw bytes with descriptors, as a hostile process would.
fn send_raw(to: &OwnedFd, bytes: &[u8], fds: &[OwnedFd]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2 * MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let borrowed: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
    if !borrowed.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(&borrowed)));
    }
    sendmsg(to, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).unwrap();
}

fn receive_raw<R: Record>(bytes: &[u8], fds: &[OwnedFd]) -> Result<R, RecvError> {
    let (mut channel, peer) = Channel::<R, R>::pair().unwrap();
    send_raw(&peer, bytes, fds);
    channel.recv().map(|received| received.record)
}

fn encode<R: Record>(record: &R) -> Vec<u8> {
    let mut buffer = vec![0; R::CAP];
    child_ipc::wire::encode(record, &mut buffer).expect("the longest values fit the cap").to_vec()
}

fn breach<R: Record + Debug>(received: Result<R, RecvError>) -> Breach {
    match received {
        Err(RecvError::Breach(breach)) => breach,
        other => panic!("not a breach: {other:?}"),
    }
}

fn hold<R: Record + Debug>(samples: Vec<R>) {
    for record in samples {
        goes_there_and_back(&record);
        is_refused_cut_short_and_with_more_behind(&record);
        is_refused_with_the_wrong_number_of_descriptors(&record);
    }
    let too_long = vec![0; R::CAP + 1];
    assert_eq!(breach(receive_raw::<R>(&too_long, &[])), Breach::TooLong(R::CAP));
    let many = descriptors(2 * MAX_FDS);
    assert_eq!(breach(receive_raw::<R>(&[0], &many)), Breach::DescriptorsCut);
}

fn goes_there_and_back<R: Record + Debug>(record: &R) {
    for count in [*record.descriptors().start(), *record.descriptors().end()] {
        let (mut here, there) = Channel::<R, R>::pair().unwrap();
        let mut there = Channel::<R, R>::from_fd(there).unwrap();
        let fds = descriptors(count);
        let borrowed: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        here.send(record, &borrowed).unwrap();
        let received = there.recv().unwrap();
        assert_eq!(format!("{record:?}"), format!("{:?}", received.record));
        assert_eq!(encode(record), encode(&received.record));
        assert_eq!(received.fds.len(), count);
    }
}

fn is_refused_cut_short_and_with_more_behind<R: Record + Debug>(record: &R) {
    let bytes = encode(record);
    let fds = descriptors(*record.descriptors().start());
    for cut in 1..bytes.len().min(64) {
        assert_eq!(breach(receive_raw::<R>(&bytes[..bytes.len() - cut], &fds)), Breach::Malformed);
    }
    let mut longer = bytes;
    longer.push(0);
    if longer.len() <= R::CAP {
        assert_eq!(breach(receive_raw::<R>(&longer, &fds)), Breach::LeftOver(1));
    }
}

fn is_refused_with_the_wrong_number_of_descriptors<R: Record + Debug>(record: &R) {
    let (least, most) = record.descriptors().into_inner();
    let bytes = encode(record);
    let mut wrong = vec![];
    if least > 0 {
        wrong.push(least - 1);
    }
    if most < MAX_FDS {
        wrong.push(most + 1);
    }
    for count in wrong {
        let fds = descriptors(count);
        assert!(matches!(breach(receive_raw::<R>(&bytes, &fds)), Breach::Descriptors { got, .. } if got == count));
        let borrowed: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        let (mut channel, _peer) = Channel::<R, R>::pair().unwrap();
        assert!(matches!(channel.send(record, &borrowed), Err(SendError::Contract(_))));
    }
}

fn variants<R>(samples: &[R]) -> usize {
    samples.iter().map(discriminant).collect::<HashSet<Discriminant<R>>>().len()
}

#[test]
fn every_record_of_the_monitor_worker_link_holds() {
    assert_eq!(variants(&to_worker()), 12);
    assert_eq!(variants(&from_worker()), 7);
    hold(to_worker());
    hold(from_worker());
}

#[test]
fn every_record_of_the_monitor_authd_link_holds() {
    assert_eq!(variants(&to_authd()), 7);
    assert_eq!(variants(&from_authd()), 6);
    hold(to_authd());
    hold(from_authd());
}

#[test]
fn every_record_of_the_monitor_broker_link_holds() {
    assert_eq!(variants(&to_broker()), 4);
    assert_eq!(variants(&from_broker()), 4);
    hold(to_broker());
    hold(from_broker());
}

#[test]
fn every_record_of_the_monitor_config_link_holds() {
    assert_eq!(variants(&to_config()), 2);
    assert_eq!(variants(&from_config()), 3);
    hold(to_config());
    hold(from_config());
    hold(accounts());
}

#[test]
fn every_record_of_the_worker_authd_link_holds() {
    hold(worker_to_authd());
    hold(authd_to_worker());
}

#[test]
fn every_record_of_the_worker_keys_link_holds() {
    hold(to_keys());
    hold(from_keys());
    hold(chains());
}

#[test]
fn every_record_of_the_worker_broker_link_holds() {
    hold(asks());
    hold(answers());
}

#[test]
fn every_record_of_the_control_link_holds() {
    hold(requests());
    hold(replies());
}

#[test]
fn a_refused_record_leaks_no_descriptor() {
    let (read, write) = std::io::pipe().unwrap();
    let fds = [OwnedFd::from(write)];
    assert!(receive_raw::<control::Reply>(&[0xff; 3], &fds).is_err());
    assert!(receive_raw::<control::Reply>(&encode(&control::Reply::Done(true)), &fds).is_err());
    drop(fds);
    // End of file: nobody holds the writing end any more. A leaked one would block here.
    rustix::io::ioctl_fionbio(&read, true).unwrap();
    assert_eq!(rustix::io::read(&read, &mut [0; 1]), Ok(0));
}

#[test]
fn a_link_of_another_build_is_refused_at_its_first_record() {
    let mut bytes = encode(&to_worker()[0]);
    bytes[1] ^= 1; // behind the variant: the build hash
    let received = receive_raw::<monitor_worker::ToWorker>(&bytes, &[]);
    assert_eq!(breach(received), Breach::Malformed);
}

#[test]
fn a_closed_link_says_so_and_an_empty_one_would_block() {
    let (mut here, there) = Channel::<control::Reply, control::Reply>::pair().unwrap();
    here.set_nonblocking(true);
    assert!(matches!(here.recv(), Err(RecvError::WouldBlock)));
    drop(there);
    assert!(matches!(here.recv(), Err(RecvError::Closed)));
    assert!(matches!(here.send(&control::Reply::Done(true), &[]), Err(SendError::Closed)));
}

#[test]
fn a_full_link_would_block_and_loses_nothing() {
    let (mut here, there) = Channel::<control::Reply, control::Reply>::pair().unwrap();
    let mut there = Channel::<control::Reply, control::Reply>::from_fd(there).unwrap();
    here.set_nonblocking(true);
    there.set_nonblocking(true);
    let mut sent = 0;
    while here.send(&control::Reply::Done(true), &[]).is_ok() {
        sent += 1;
    }
    assert!(matches!(here.send(&control::Reply::Done(true), &[]), Err(SendError::WouldBlock)));
    let mut received = 0;
    while there.recv().is_ok() {
        received += 1;
    }
    assert_eq!(sent, received);
}

#[test]
fn a_byte_stream_is_not_a_link() {
    let (stream, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    assert!(Channel::<control::Reply, control::Reply>::from_fd(stream.into()).is_err());
    assert!(Channel::<control::Reply, control::Reply>::from_fd(a_descriptor()).is_err());
}

#[test]
fn names_and_permissions_out_of_range_are_refused() {
    for bad in [&b""[..], b"a/b", b"a:b", b"a\nb", &[b'x'; 65]] {
        assert!(UserName::new(bad).is_none(), "{}", bad.escape_ascii());
    }
    assert_eq!(Permissions::from_bits(Permissions::ALL.bits()), Some(Permissions::ALL));
    assert_eq!(Permissions::from_bits(Permissions::ALL.bits() + 1), None);
}

#[test]
fn the_last_word_of_an_end_that_was_closed_unread_arrives_and_then_the_end() {
    let (mut monitor, theirs) = monitor_worker::MonitorEnd::pair().unwrap();
    let mut worker = monitor_worker::WorkerEnd::from_fd(theirs).unwrap();
    monitor.send(&monitor_worker::ToWorker::Stop, &[]).unwrap();
    let why = Blob::new(b"no threads").unwrap();
    worker.send(&monitor_worker::FromWorker::CannotStart(CannotStart { why: why.clone() }), &[]).unwrap();
    drop(worker);
    let last = monitor.recv().unwrap().record;
    assert!(matches!(last, monitor_worker::FromWorker::CannotStart(last) if last.why == why));
    assert!(matches!(monitor.recv(), Err(RecvError::Closed)));
}
