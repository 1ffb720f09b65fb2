//! Wildcards in the last component of a path: `*` is any bytes, `?` one byte, `[...]` one of a set, as in the shell.
//!
//! Reads from: a client, by way of a worker (hostile). A pattern is as long as a name at most, matching takes no more steps
//! than the bytes of both multiplied, and nothing recurses or is allocated. Bytes are compared, not characters.
//! Not here: when a path is a pattern (op/list.rs).

/// A pattern with at least one wildcard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pattern<'p> {
    bytes: &'p [u8],
    /// So many are behind the last `]`: no set is closed there, and none is looked for.
    open: usize,
}

impl<'p> Pattern<'p> {
    /// `None` if there is no wildcard in it.
    pub(crate) fn new(component: &'p [u8]) -> Option<Self> {
        let open = component.iter().rev().position(|&b| b == b']').unwrap_or(component.len());
        component.iter().any(|b| matches!(b, b'*' | b'?' | b'[')).then_some(Pattern { bytes: component, open })
    }

    /// Whether a name is meant. A dot in front is matched by a dot alone.
    pub(super) fn matches(self, name: &[u8]) -> bool {
        if name.first() == Some(&b'.') && self.bytes.first() != Some(&b'.') {
            return false;
        }
        let (mut pattern, mut name) = (self.bytes, name);
        // The last star: what is behind it, and how much of the name it leaves.
        let mut star: Option<(&[u8], &[u8])> = None;
        loop {
            let step = match (pattern.split_first(), name.split_first()) {
                (Some((b'*', behind)), _) => {
                    star = Some((behind, name));
                    Some((behind, name))
                }
                (Some(_), Some((&byte, rest))) => self.one(pattern, byte).map(|behind| (behind, rest)),
                (None, None) => return true,
                (_, None) => return false,
                (None, Some(_)) => None,
            };
            (pattern, name) = match (step, star) {
                (Some(step), _) => step,
                // That star takes a byte more; what an earlier one takes cannot help any more.
                (None, Some((behind, [_, rest @ ..]))) => {
                    star = Some((behind, rest));
                    (behind, rest)
                }
                (None, _) => return false,
            };
        }
    }

    /// What is behind the first element of what is left of the pattern, if that matches the byte.
    fn one(self, pattern: &'p [u8], byte: u8) -> Option<&'p [u8]> {
        let (&first, behind) = pattern.split_first()?;
        let members = if first == b'[' && behind.len() > self.open { set(behind) } else { None };
        match (first, members) {
            (b'?', _) => Some(behind),
            (_, Some((members, behind))) => has(members, byte).then_some(behind),
            (literal, None) => (literal == byte).then_some(behind),
        }
    }
}

/// The inside of `[...]`, and what is behind it; `]` in front is a member. Never closed: `[` is a byte like any other.
fn set(pattern: &[u8]) -> Option<(&[u8], &[u8])> {
    let skipped = usize::from(matches!(pattern.first(), Some(b'!' | b'^'))) + 1;
    let end = skipped + pattern.get(skipped..)?.iter().position(|&b| b == b']')?;
    Some((pattern.get(..end)?, pattern.get(end + 1..)?))
}

/// Whether a set has a byte: single ones and ranges; all others with `!` or `^` in front.
fn has(members: &[u8], byte: u8) -> bool {
    let (negated, mut members) = match members {
        [b'!' | b'^', rest @ ..] => (true, rest),
        all => (false, all),
    };
    let mut found = false;
    while let [first, rest @ ..] = members {
        (found, members) = match rest {
            [b'-', last, rest @ ..] => (found | (*first..=*last).contains(&byte), rest),
            rest => (found | (*first == byte), rest),
        };
    }
    found != negated
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pattern: &str, names: &[&str]) -> Vec<String> {
        let pattern = Pattern::new(pattern.as_bytes()).unwrap();
        names.iter().filter(|name| pattern.matches(name.as_bytes())).map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn wildcards_match_as_in_the_shell() {
        let names = ["a.txt", "b.txt", "ab", "a", ".txt", "..x", "a]b", "a-b", "a[b", "b*"];
        assert_eq!(all("*", &names), ["a.txt", "b.txt", "ab", "a", "a]b", "a-b", "a[b", "b*"]);
        assert_eq!(all("*.txt", &names), ["a.txt", "b.txt"]);
        assert_eq!(all(".*", &names), [".txt", "..x"]);
        assert_eq!(all("?", &names), ["a"]);
        assert_eq!(all("a?", &names), ["ab"]);
        assert_eq!(all("?txt", &names), [""; 0]);
        assert_eq!(all("[a-b].*", &names), ["a.txt", "b.txt"]);
        assert_eq!(all("[!a]*", &names), ["b.txt", "b*"]);
        assert_eq!(all("[^a]*", &names), ["b.txt", "b*"]);
        assert_eq!(all("[.]*", &names), [""; 0]);
        assert_eq!(all("a[]-]b", &names), ["a]b", "a-b"]);
        assert_eq!(all("a[[]b", &names), ["a[b"]);
        assert_eq!(all("a[b", &names), ["a[b"], "a set that is never closed");
        assert_eq!(all("b[*]", &names), ["b*"]);
        assert_eq!(all("**a**b**", &names), ["ab", "a]b", "a-b", "a[b"]);
        assert_eq!(all("[]", &["[]", "x"]), ["[]"]);
        assert_eq!(all("[z-a]*", &names), [""; 0]);
    }

    #[test]
    fn what_has_no_wildcard_is_no_pattern() {
        assert!(Pattern::new(b"a.txt").is_none() && Pattern::new(b"{a,b}").is_none() && Pattern::new(b"").is_none());
    }

    #[test]
    fn a_pattern_made_to_take_for_ever_does_not() {
        let pattern = [b"*a".repeat(127).as_slice(), b"b"].concat();
        let pattern = Pattern::new(&pattern).unwrap();
        assert!(!pattern.matches(&[b'a'; 255]));
        // Neither closed sets, nor one that is closed at the very end.
        let sets = [b'['; 255];
        assert!(Pattern::new(&sets).unwrap().matches(&sets));
    }
}
