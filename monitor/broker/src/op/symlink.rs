//! `Symlink` (SITE SYMLINK): a link to another path of the account.
//!
//! It is stored relative to its own directory. An absolute one would lead elsewhere for programs that see the whole
//! machine; and a relative one is right only if the way to its directory has no links, so that is refused.

use child_ipc::{link::worker_broker::Why, types::VirtPath};
use rustix::fs::symlinkat;

use super::{NOTHING, Outcome};
use crate::{account::Account, why::why};

pub(super) fn run(account: &Account, target: &VirtPath, link: &VirtPath) -> Outcome {
    let place = account.root.place_without_links(link)?;
    let text = relative(target, link);
    if text.len() > VirtPath::MAX {
        return Err(Why::Invalid);
    }
    symlinkat(text.as_slice(), &place.directory, place.name).map_err(why)?;
    NOTHING
}

/// The way from the directory of `link` to `target`.
fn relative(target: &VirtPath, link: &VirtPath) -> Vec<u8> {
    let names = |path: &VirtPath| -> Vec<Vec<u8>> {
        path.as_bytes().split(|&b| b == b'/').filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
    };
    let (target, mut directory) = (names(target), names(link));
    directory.pop();
    let common = target.iter().zip(&directory).take_while(|(a, b)| a == b).count();
    let up = directory.iter().skip(common).map(|_| b"..".to_vec());
    let way: Vec<Vec<u8>> = up.chain(target.iter().skip(common).cloned()).collect();
    if way.is_empty() { b".".to_vec() } else { way.join(&b'/') }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_from_a_link_to_its_target_is_relative() {
        let path = |text: &str| VirtPath::root().join(text.as_bytes()).unwrap();
        for (target, link, expected) in [
            ("/f", "/l", "f"),
            ("/a/f", "/l", "a/f"),
            ("/f", "/a/b/l", "../../f"),
            ("/a/c/f", "/a/b/l", "../c/f"),
            ("/a", "/a/l", "."),
            ("/", "/a/l", ".."),
            ("/a/b", "/a/b", "b"),
        ] {
            assert_eq!(relative(&path(target), &path(link)), expected.as_bytes(), "{target} {link}");
        }
    }
}
