//! What etcd 3.6 does, as far as an actuator depends on it.

use super::super::etcdserverpb::compare::CompareResult;
use super::*;

fn put(key: &str, value: &str, lease: i64) -> RequestOp {
    let put = PutRequest { key: key.into(), value: value.into(), lease };
    RequestOp { request: Some(Request::RequestPut(put)) }
}

fn delete(key: &str) -> RequestOp {
    let gone = DeleteRangeRequest { key: key.into(), range_end: Vec::new() };
    RequestOp { request: Some(Request::RequestDeleteRange(gone)) }
}

fn write(model: &mut Model, operations: Vec<RequestOp>) -> i64 {
    let request = TxnRequest { success: operations, ..TxnRequest::default() };
    let answer = model.txn(&request).unwrap();
    answer.header.unwrap().revision
}

fn compare(key: &str, result: CompareResult, target: TargetUnion) -> Compare {
    let result = result.into();
    Compare { result, key: key.into(), target_union: Some(target) }
}

fn entry(model: &Model, key: &str) -> Option<KeyValue> {
    let request = RangeRequest { key: key.into(), ..RangeRequest::default() };
    model.range(&request).unwrap().kvs.pop()
}

fn keys(answer: &RangeResponse) -> Vec<String> {
    let name = |entry: &KeyValue| String::from_utf8_lossy(&entry.key).into_owned();
    answer.kvs.iter().map(name).collect()
}

#[test]
fn all_writes_of_a_transaction_share_a_revision_and_reads_take_none() {
    let mut model = Model::default();
    assert_eq!(model.header().unwrap().revision, 1);
    assert_eq!(write(&mut model, vec![put("a", "1", 0), put("b", "1", 0)]), 2);
    assert_eq!(write(&mut model, vec![delete("nothing")]), 2, "nothing was written");
    assert_eq!(write(&mut model, vec![put("a", "2", 0)]), 3);
    let a = entry(&model, "a").unwrap();
    assert_eq!((a.create_revision, a.mod_revision, a.version), (2, 3, 2));
    assert_eq!(write(&mut model, vec![delete("a")]), 4);
    assert_eq!(write(&mut model, vec![put("a", "3", 0)]), 5);
    let again = entry(&model, "a").unwrap();
    assert_eq!((again.create_revision, again.mod_revision, again.version), (5, 5, 1));
}

#[test]
fn comparisons_hold_as_in_etcd() {
    use CompareResult::{Equal, Greater, Less, NotEqual};
    use TargetUnion::{CreateRevision, ModRevision, Value, Version};
    let mut model = Model::default();
    write(&mut model, vec![put("k", "m", 0)]);
    write(&mut model, vec![put("k", "m", 0)]);
    let cases = [
        (compare("k", Equal, CreateRevision(2)), true),
        (compare("k", Equal, CreateRevision(3)), false),
        (compare("k", Equal, ModRevision(3)), true),
        (compare("k", Less, ModRevision(4)), true),
        (compare("k", Greater, Version(1)), true),
        (compare("k", Equal, Value(b"m".to_vec())), true),
        (compare("k", NotEqual, Value(b"m".to_vec())), false),
        (compare("k", Greater, Value(b"a".to_vec())), true),
        // A key that is not there has zero for each number, and no value at all.
        (compare("none", Equal, Version(0)), true),
        (compare("none", Equal, CreateRevision(0)), true),
        (compare("none", NotEqual, Value(b"m".to_vec())), false),
    ];
    for (compare, wanted) in cases {
        let request = TxnRequest {
            compare: vec![compare.clone()],
            success: vec![],
            failure: vec![put("failed", "", 0)],
        };
        assert_eq!(model.clone().txn(&request).unwrap().succeeded, wanted, "{compare:?}");
    }
}

#[test]
fn a_lease_that_ends_takes_its_keys_along_in_one_revision() {
    let mut model = Model::default();
    let (lease, ttl_s) = model.grant(0, 1, 0).unwrap();
    assert_eq!(ttl_s, 2, "etcd grants no less");
    write(&mut model, vec![put("a", "", lease), put("b", "", lease), put("c", "", 0)]);
    write(&mut model, vec![put("a", "", 0)]);
    model.take_changes();
    model.expire(1_999);
    assert_eq!(model.renew(lease, 1_999), 2);
    model.expire(3_998);
    assert!(entry(&model, "b").is_some(), "it was renewed");
    model.expire(3_999);
    assert_eq!(entry(&model, "b"), None);
    assert!(entry(&model, "a").is_some(), "a later write took it off the lease");
    assert_eq!(model.header().unwrap().revision, 4);
    let seen: Vec<_> = model.take_changes();
    let told = seen.iter().map(|change| (change.before.is_some(), change.after.is_some()));
    assert_eq!(told.collect::<Vec<_>>(), [(true, false)]);
    assert_eq!(model.renew(lease, 4_000), 0);
    assert_eq!(model.revoke(lease), Err(Refusal::NoLease));
}

#[test]
fn a_new_leader_of_etcd_lets_no_lease_end_early() {
    let mut model = Model::default();
    let (lease, _) = model.grant(7, 3, 0).unwrap();
    assert_eq!((lease, model.grant(7, 3, 0)), (7, Err(Refusal::LeaseTaken)));
    model.extend_leases(60_000);
    model.expire(62_999);
    assert_eq!(model.next_due_ms(), Some(63_000));
}

#[test]
fn what_etcd_refuses_changes_nothing() {
    let mut model = Model::default();
    let refused = |model: &mut Model, success: Vec<RequestOp>| {
        model.txn(&TxnRequest { success, ..TxnRequest::default() }).err()
    };
    let twice = vec![put("a", "1", 0), put("a", "2", 0)];
    assert_eq!(refused(&mut model, twice), Some(Refusal::DuplicateKey));
    assert_eq!(refused(&mut model, vec![put("a", "1", 99)]), Some(Refusal::NoLease));
    let many = (0..129).map(|number| put(&number.to_string(), "", 0)).collect();
    assert_eq!(refused(&mut model, many), Some(Refusal::TooManyOperations));
    assert_eq!((model.header().unwrap().revision, model.take_changes()), (1, Vec::new()));
}

#[test]
fn ranges_are_in_order_and_come_in_pages() {
    let mut model = Model::default();
    write(
        &mut model,
        vec![put("a/2", "", 0), put("a/1", "", 0), put("a/3", "", 0), put("b", "", 0)],
    );
    let range = |key: &str, range_end: &str, limit| RangeRequest {
        key: key.into(),
        range_end: range_end.into(),
        limit,
        revision: 0,
    };
    let page = model.range(&range("a/", "a0", 2)).unwrap();
    assert_eq!((keys(&page), page.more, page.count), (vec!["a/1".into(), "a/2".into()], true, 3));
    let rest = model.range(&range("a/2\0", "a0", 2)).unwrap();
    assert_eq!((keys(&rest), rest.more), (vec!["a/3".into()], false));
    assert_eq!(model.range(&range("b", "a", 0)).unwrap().count, 0, "ends before it begins");
    assert_eq!(model.range(&range("a/2", "\0", 0)).unwrap().count, 3, "all from there on");
    assert_eq!(model.under(b"a/").count(), 3);
    let past = RangeRequest { revision: 1, ..range("b", "", 0) };
    assert_eq!(model.range(&past), Err(Refusal::OtherRevision));
}

#[test]
fn changes_name_the_term_that_they_were_made_under() {
    let mut model = Model::default();
    let leads = vec![compare("leader", CompareResult::Equal, TargetUnion::CreateRevision(0))];
    let request = TxnRequest { compare: leads, success: vec![put("a", "", 0)], failure: vec![] };
    model.txn(&request).unwrap();
    assert_eq!(model.take_changes()[0].fences, [(b"leader".to_vec(), 0)]);
}
