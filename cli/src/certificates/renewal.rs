//! What is to be signed anew: decided by what is there, and by the time.
//!
//! Invariant: an authority is followed by one that everybody trusts already. The next one is
//! trusted from two thirds of the life of the one before, and signs from nine tenths on; the time
//! between is for those who are told by people. What cannot be read is never replaced: somebody may
//! need it.

use std::time::SystemTime;

use anyhow::Context as _;
use longshore_authority::{Authority, Known, RENEWED_LIFE, Signed, Who, bundle};
use serde::Serialize;

/// From here on a certificate is renewed, and an authority has a follower, in percent of its life.
const DUE: u32 = 66;
/// From here on an authority's follower signs.
const OVER: u32 = 90;

/// What a Secret holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pair {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
    /// Authorities to trust.
    pub trusted: String,
    /// Of an authority: the one that follows it.
    pub next: Option<Next>,
}

/// An authority that does not sign yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub certificate: String,
    pub key: String,
}

impl Pair {
    pub(super) fn of(Signed { certificate, key }: Signed) -> Self {
        Self { certificate, key, ..Self::default() }
    }

    pub(super) fn signed(&self) -> Signed {
        Signed { certificate: self.certificate.clone(), key: self.key.clone() }
    }
}

/// What became of a Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Change {
    /// It was not there.
    Made,
    /// It has a new certificate.
    Renewed,
    /// Its certificate is as before, what it trusts is not.
    Trusts,
    /// It is as before.
    Kept,
}

impl Change {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Renewed => "renewed",
            Self::Trusts => "trusts another authority too",
            Self::Kept => "kept",
        }
    }
}

/// The authority as it is to be.
pub(super) fn authority(held: Option<Pair>, now: SystemTime) -> anyhow::Result<(Pair, Change)> {
    let Some(held) = held else {
        let made = Pair::of(Authority::new(now)?.own().clone());
        return Ok((Pair { trusted: made.certificate.clone(), ..made }, Change::Made));
    };
    let known = Known::read(&held.certificate).context("tls.crt of the authority")?;
    Authority::read(held.signed()).context("the authority")?;
    let (mut pair, mut change) = (held, Change::Kept);
    if let Some(next) = pair.next.take_if(|_| known.is_past(OVER, now)) {
        (pair.certificate, pair.key) = (next.certificate, next.key);
        change = Change::Renewed;
    } else if pair.next.is_none() && known.is_past(DUE, now) {
        let Signed { certificate, key } = Authority::new(now)?.own().clone();
        pair.next = Some(Next { certificate, key });
        change = Change::Trusts;
    }
    let next = pair.next.as_ref().map_or("", |next| &next.certificate);
    let trusted = bundle(&[&pair.certificate, next, &pair.trusted], now)?;
    if trusted != pair.trusted && change == Change::Kept {
        change = Change::Trusts;
    }
    Ok((Pair { trusted, ..pair }, change))
}

/// The certificate of somebody as it is to be.
pub(super) fn certificate(
    held: Option<Pair>,
    who: &Who,
    authority: &Pair,
    now: SystemTime,
) -> anyhow::Result<(Pair, Change)> {
    let signer = Known::read(&authority.certificate)?;
    let trusted = authority.trusted.clone();
    let change = match &held {
        None => Change::Made,
        Some(held) if !is_good(held, who, &signer, now) => Change::Renewed,
        Some(held) if held.trusted != trusted => Change::Trusts,
        Some(_) => Change::Kept,
    };
    let pair = match (held, change) {
        (Some(held), Change::Trusts | Change::Kept) => held,
        _ => {
            let signer = Authority::read(authority.signed())?;
            Pair::of(signer.sign(who, now, RENEWED_LIFE)?)
        }
    };
    Ok((Pair { trusted, ..pair }, change))
}

/// True while a certificate may go on. One that cannot be read is of no use to anybody.
fn is_good(held: &Pair, who: &Who, signer: &Known, now: SystemTime) -> bool {
    Known::read(&held.certificate).is_ok_and(|known| {
        known.is_of(who) && known.is_signed_by(signer) && !known.is_past(DUE, now)
    })
}

#[cfg(test)]
mod tests {
    use longshore_authority::days;
    use longshore_runtime::identity::Identity;

    use super::*;

    fn day(count: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + days(20_000 + count)
    }

    fn scheduler(held: Option<&Pair>, authority: &Pair, now: SystemTime) -> (Pair, Change) {
        certificate(held.cloned(), &Identity::Scheduler.into(), authority, now).unwrap()
    }

    #[test]
    fn a_certificate_is_renewed_before_it_runs_out_and_not_before() {
        let (authority, made) = super::authority(None, day(0)).unwrap();
        assert_eq!(made, Change::Made);
        let (first, made) = scheduler(None, &authority, day(0));
        assert_eq!(made, Change::Made);
        assert_eq!(scheduler(Some(&first), &authority, day(59)), (first.clone(), Change::Kept));
        let (second, renewed) = scheduler(Some(&first), &authority, day(60));
        assert_eq!(renewed, Change::Renewed);
        assert!(second.certificate != first.certificate && second.key != first.key);
    }

    #[test]
    fn a_secret_of_somebody_else_or_of_nobody_is_made_anew() {
        let (authority, _) = super::authority(None, day(0)).unwrap();
        let (other, _) = super::authority(None, day(0)).unwrap();
        let watcher = "longshore://cluster/111122223333/us-east-1/prod";
        let watcher = watcher.parse::<Identity>().unwrap().into();
        let (watcher, _) = certificate(None, &watcher, &authority, day(0)).unwrap();
        let (foreign, _) = scheduler(None, &other, day(0));
        for wrong in [watcher, foreign, Pair::default()] {
            assert_eq!(scheduler(Some(&wrong), &authority, day(0)).1, Change::Renewed);
        }
    }

    #[test]
    fn an_authority_is_trusted_long_before_it_signs_and_after() {
        let (mut pair, _) = super::authority(None, day(0)).unwrap();
        let first = pair.certificate.clone();
        let mut seen = Vec::new();
        for now in (0..7_300).step_by(10).map(day) {
            let (next, change) = super::authority(Some(pair), now).unwrap();
            assert!(next.trusted.contains(&next.certificate));
            if change != Change::Kept {
                let count = next.trusted.matches("BEGIN").count();
                seen.push((change, count, next.certificate == first));
            }
            pair = next;
        }
        assert_eq!(
            seen[..3],
            [(Change::Trusts, 2, true), (Change::Renewed, 2, false), (Change::Trusts, 1, false),]
        );
    }

    #[test]
    fn those_who_trust_are_told_when_there_is_another_authority() {
        let (before, _) = super::authority(None, day(0)).unwrap();
        let (after, change) = super::authority(Some(before.clone()), day(2_420)).unwrap();
        assert_eq!(change, Change::Trusts);
        let (held, _) = scheduler(None, &before, day(2_419));
        let (told, change) = scheduler(Some(&held), &after, day(2_420));
        assert_eq!(change, Change::Trusts);
        assert_eq!((told.certificate, told.trusted), (held.certificate, after.trusted));
    }

    #[test]
    fn what_cannot_be_read_is_not_replaced_by_another_authority() {
        let broken = Pair { certificate: "nonsense".to_owned(), ..Pair::default() };
        let error = super::authority(Some(broken), day(0)).unwrap_err();
        assert!(format!("{error:#}").contains("tls.crt"), "{error:#}");
    }
}
