//! Paths as a client sees them: absolute, below the account's root, with no `.` and `..` left in them.
//!
//! A path that is not of this form cannot be decoded, so no record can carry one. That is not what confines a
//! broker (openat2 with `RESOLVE_IN_ROOT` and the mount namespace do, monitor/broker/src/resolve.rs); it makes one
//! path have one spelling, so that rules and logs speak of the same thing.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Blob;

/// A virtual path: `/`, or `/` and components of 1 to 255 bytes joined by `/`; at most [`VirtPath::MAX`] bytes.
///
/// Bytes other than NUL and `/` are kept as they are (RFC 3659 2.2); there is no character set.
///
/// Inside, the root is empty: that is where most sessions stand, and nothing is allocated for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtPath(Blob<{ VirtPath::MAX }>);

/// Why bytes are not a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathError {
    /// Holds a NUL byte.
    Nul,
    /// Longer than [`VirtPath::MAX`], or a component longer than 255 bytes.
    TooLong,
}

impl VirtPath {
    /// Longest path in bytes (PATH_MAX less the final NUL).
    pub const MAX: usize = 4095;

    /// The account's root.
    pub fn root() -> Self {
        VirtPath(Blob::default())
    }

    /// Resolves what a client wrote against this directory: `.` and empty components vanish, `..` removes the
    /// component before it, and the root is its own parent (RFC 3659 6).
    pub fn join(&self, written: &[u8]) -> Result<Self, PathError> {
        if written.contains(&0) {
            return Err(PathError::Nul);
        }
        let mut path = if written.first() == Some(&b'/') { Vec::new() } else { self.0.as_bytes().to_vec() };
        for component in written.split(|&b| b == b'/') {
            match component {
                b"" | b"." => {}
                b".." => path.truncate(path.iter().rposition(|&b| b == b'/').unwrap_or(0)),
                name if name.len() > 255 => return Err(PathError::TooLong),
                name => {
                    path.push(b'/');
                    path.extend_from_slice(name);
                }
            }
        }
        Blob::new(&path).map(VirtPath).map_err(|_| PathError::TooLong)
    }

    /// The bytes, which begin with `/`.
    pub fn as_bytes(&self) -> &[u8] {
        if self.is_root() { b"/" } else { self.0.as_bytes() }
    }

    /// Whether this is the account's root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Parent directory and last component; `None` for the root.
    pub fn split(&self) -> Option<(VirtPath, &[u8])> {
        let bytes = self.0.as_bytes();
        let slash = bytes.iter().rposition(|&b| b == b'/')?;
        Some((VirtPath(Blob::cut(&bytes[..slash])), &bytes[slash + 1..]))
    }

    /// How a client in this directory may call it: without the directory in front if it is below.
    pub fn seen_from(&self, directory: &VirtPath) -> &[u8] {
        let below = self.0.as_bytes().strip_prefix(directory.0.as_bytes());
        below.and_then(|below| below.strip_prefix(b"/")).filter(|rest| !rest.is_empty()).unwrap_or(self.as_bytes())
    }

    fn is_normal(bytes: &[u8]) -> bool {
        let Some((b'/', rest)) = bytes.split_first() else { return false };
        rest.split(|&b| b == b'/')
            .all(|name| !matches!(name, b"" | b"." | b"..") && name.len() <= 255 && !name.contains(&0))
    }
}

impl Serialize for VirtPath {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(self.as_bytes())
    }
}

impl<'de> Deserialize<'de> for VirtPath {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bytes = Blob::deserialize(from)?;
        match bytes.as_bytes() {
            b"/" => Ok(VirtPath::root()),
            path if Self::is_normal(path) => Ok(VirtPath(bytes)),
            _ => Err(de::Error::custom("not an absolute path in normal form")),
        }
    }
}

impl fmt::Display for VirtPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(dir: &str, written: &[u8]) -> Vec<u8> {
        let dir = VirtPath::root().join(dir.as_bytes()).unwrap();
        dir.join(written).unwrap().as_bytes().to_vec()
    }

    #[test]
    fn the_root_is_its_own_parent() {
        assert_eq!(joined("/", b".."), b"/");
        assert_eq!(joined("/a", b"../../../x"), b"/x");
        assert_eq!(joined("/a/b", b"/../x"), b"/x");
    }

    #[test]
    fn relative_paths_start_from_the_directory_and_absolute_ones_do_not() {
        assert_eq!(joined("/a/b", b"c//d/./e/"), b"/a/b/c/d/e");
        assert_eq!(joined("/a/b", b"/c"), b"/c");
        assert_eq!(joined("/a/b", b""), b"/a/b");
    }

    #[test]
    fn names_are_kept_byte_for_byte() {
        assert_eq!(joined("/", b" lead\xff..x"), b"/ lead\xff..x");
        assert_eq!(joined("/", b"..."), b"/...");
    }

    #[test]
    fn nul_and_overlong_names_are_refused() {
        assert_eq!(VirtPath::root().join(b"a\0b"), Err(PathError::Nul));
        assert_eq!(VirtPath::root().join(&[b'a'; 256]), Err(PathError::TooLong));
        assert_eq!(VirtPath::root().join(&b"a/".repeat(2100)), Err(PathError::TooLong));
    }

    #[test]
    fn split_gives_parent_and_name() {
        let path = VirtPath::root().join(b"a/b").unwrap();
        let (parent, name) = path.split().unwrap();
        assert_eq!((parent.as_bytes(), name), (&b"/a"[..], &b"b"[..]));
        let (parent, name) = parent.split().map(|(p, n)| (p, n.to_vec())).unwrap();
        assert_eq!((parent.as_bytes(), &name[..]), (&b"/"[..], &b"a"[..]));
        assert!(parent.split().is_none());
    }

    #[test]
    fn a_path_below_a_directory_is_called_without_it() {
        let path = |text: &str| VirtPath::root().join(text.as_bytes()).unwrap();
        for (file, directory, seen) in [
            ("/d/f", "/", "d/f"),
            ("/d/f", "/d", "f"),
            ("/dd/f", "/d", "/dd/f"),
            ("/f", "/d", "/f"),
            ("/d", "/d", "/d"),
            ("/", "/", "/"),
        ] {
            assert_eq!(path(file).seen_from(&path(directory)), seen.as_bytes());
            assert_eq!(path(directory).join(path(file).seen_from(&path(directory))), Ok(path(file)));
        }
    }

    #[test]
    fn a_record_cannot_carry_a_path_that_climbs() {
        for bad in [&b"/../etc"[..], b"etc", b"", b"/a/../b", b"/a//b", b"/a/", b"/a\0", b"/."] {
            let encoded = postcard::to_stdvec(&Blob::<4095>::new(bad).unwrap()).unwrap();
            assert!(postcard::from_bytes::<VirtPath>(&encoded).is_err(), "{}", bad.escape_ascii());
        }
    }
}
