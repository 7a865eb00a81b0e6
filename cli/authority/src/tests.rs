//! What is signed, by whom, and for how long.

use super::*;

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + days(20_000)
}

fn watcher() -> Who {
    "longshore://cluster/111122223333/us-east-1/prod".parse::<Identity>().unwrap().into()
}

#[test]
fn a_certificate_says_who_and_for_how_long() {
    let authority = Authority::new(now()).unwrap();
    let signed = authority.sign(&watcher(), now(), RENEWED_LIFE).unwrap();
    let (known, signer) =
        (Known::read(&signed.certificate).unwrap(), Known::read(&authority.own().certificate));
    assert!(known.is_of(&watcher()));
    assert_eq!((known.not_before, known.not_after), (now() - BEFORE, now() + RENEWED_LIFE));
    assert!(known.is_signed_by(&signer.unwrap()));
    assert!(!known.is_past(66, now() + days(59)) && known.is_past(66, now() + days(60)));
}

#[test]
fn an_authority_is_read_again_and_signs_as_before() {
    let first = Authority::new(now()).unwrap();
    let again = Authority::read(first.own().clone()).unwrap();
    let signed = again.sign(&Identity::Scheduler.into(), now(), RENEWED_LIFE).unwrap();
    let signer = Known::read(&first.own().certificate).unwrap();
    assert!(Known::read(&signed.certificate).unwrap().is_signed_by(&signer));
    assert_eq!(signer.identity, None);
}

#[test]
fn nobody_signs_with_what_is_not_an_authority() {
    let (authority, other) = (Authority::new(now()).unwrap(), Authority::new(now()).unwrap());
    let leaf = authority.sign(&watcher(), now(), RENEWED_LIFE).unwrap();
    let mixed = Signed { key: other.own().key.clone(), ..authority.own().clone() };
    for wrong in [leaf, mixed] {
        assert!(matches!(Authority::read(wrong), Err(AuthorityError::Mismatch)));
    }
    let (certificate, key) = ("nonsense".to_owned(), authority.own().key.clone());
    let read = Authority::read(Signed { certificate, key });
    assert!(matches!(read, Err(AuthorityError::Certificate(_))));
}

#[test]
fn a_bundle_has_each_authority_once_and_none_that_has_run_out() {
    let old = Authority::new(now()).unwrap();
    let new = Authority::new(now() + days(3_000)).unwrap();
    let texts = [new.own(), old.own(), new.own()].map(|own| own.certificate.as_str());
    let kept = |now| bundle(&texts, now).unwrap().matches("BEGIN CERTIFICATE").count();
    assert_eq!(kept(now() + days(3_001)), 2);
    assert_eq!(kept(now() + days(3_651)), 1);
    let both = bundle(&texts, now()).unwrap();
    assert!(both.starts_with(&new.own().certificate) && both.ends_with(&old.own().certificate));
}

#[test]
fn servers_have_names_for_clients_of_other_makes() {
    let authority = Authority::new(now()).unwrap();
    let hosts = vec!["longshore-scheduler.longshore.svc".to_owned()];
    let who = Who { identity: Identity::Scheduler, hosts };
    let signed = authority.sign(&who, now(), RENEWED_LIFE).unwrap();
    let known = Known::read(&signed.certificate).unwrap();
    assert!(known.is_of(&who) && !known.is_of(&Identity::Scheduler.into()));
    assert_eq!(who.names(), ["longshore", "longshore-scheduler.longshore.svc"]);
    assert_eq!(watcher().names(), Vec::<String>::new());
}
