//! Launch ids, and which session made one.
//!
//! Invariant: unique among all launches of a region, whichever cluster and scheduler they stem
//! from. What a client made otherwise is as good an id, of no known session.

/// Begins the ids that schedulers make.
const PREFIX: &str = "l-";
/// Hexadecimal digits of chance: 80 bits.
const DIGITS: usize = 20;

/// A new id, of a session and 80 of these bits of chance.
#[must_use]
pub fn new(session_epoch: u64, bits: u128) -> String {
    format!("{PREFIX}{session_epoch:012x}-{:0DIGITS$x}", bits >> (128 - 4 * DIGITS))
}

/// Epoch of the session that made an id; none when it does not say.
#[must_use]
pub fn session_epoch(launch_id: &str) -> Option<u64> {
    let (epoch, chance) = launch_id.strip_prefix(PREFIX)?.split_once('-')?;
    let made = chance.len() == DIGITS && chance.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(epoch, 16).ok().filter(|_| made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_which_session_made_it() {
        for epoch in [0, 1, 1_795_582_353_954, u64::MAX] {
            for bits in [0, 1 << 48, u128::MAX] {
                let id = new(epoch, bits);
                assert_eq!(session_epoch(&id), Some(epoch), "{id}");
                assert!(id.len() <= 39, "{id}");
            }
        }
        assert_ne!(new(1, 1 << 48), new(1, 2 << 48));
    }

    #[test]
    fn others_say_nothing() {
        for id in
            ["", "l-", "l-1", "l-12-zz", "l-00112233445566778899aabbccddeeff", "unclaimed-i-1"]
        {
            assert_eq!(session_epoch(id), None, "{id}");
        }
    }
}
