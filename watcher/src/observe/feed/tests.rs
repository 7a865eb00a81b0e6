//! What a feed makes of API servers that stream lists, do not, break off, or forget.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::stream;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

/// How the newest state is asked for as a stream: no cache may answer with what was before.
const STREAMED: &str = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=";

/// How an answer ends.
#[derive(Clone, Copy)]
enum End {
    /// There is no more.
    Over,
    /// It stays open, and says nothing.
    Open,
}

/// An answer, and what the query that asks for it has in it.
struct Answer {
    asked: &'static str,
    code: u16,
    lines: Vec<Value>,
    end: End,
}

fn answer(asked: &'static str, lines: Vec<Value>, end: End) -> Answer {
    Answer { asked, code: 200, lines, end }
}

fn refusal(asked: &'static str, code: u16) -> Answer {
    Answer { asked, code, lines: vec![status(code)], end: End::Over }
}

fn status(code: u16) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no",
        "reason": "No", "code": code })
}

fn object(name: &str, version: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": name, "resourceVersion": version } })
}

fn event(kind: &str, name: &str, version: &str) -> Value {
    json!({ "type": kind, "object": object(name, version) })
}

fn bookmark(version: &str, ends: bool) -> Value {
    let ends = if ends { json!({ LIST_ENDS: "true" }) } else { json!({}) };
    json!({ "type": "BOOKMARK", "object": { "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "resourceVersion": version, "annotations": ends } } })
}

fn page(names: &[&str], more: &str) -> Value {
    let items: Vec<Value> = names.iter().map(|name| object(name, "1")).collect();
    json!({ "apiVersion": "v1", "kind": "NamespaceList", "items": items,
        "metadata": { "resourceVersion": "7", "continue": more } })
}

/// An API server that gives these answers, one after the other, and then none.
fn serving(answers: impl IntoIterator<Item = Answer>) -> Feed<Namespace> {
    let answers: Arc<Mutex<VecDeque<Answer>>> = Arc::new(Mutex::new(answers.into_iter().collect()));
    let call = move |request: Request<Body>| {
        let answer = answers.lock().unwrap().pop_front();
        async move {
            let Some(answer) = answer else { return std::future::pending().await };
            let query = request.uri().query().unwrap_or_default();
            let has = |pair| query.split('&').any(|given| given == pair);
            assert!(answer.asked.split('&').all(has), "{query} has not {}", answer.asked);
            let lines = answer
                .lines
                .into_iter()
                .map(|line| Ok::<_, Infallible>(Frame::data(Bytes::from(format!("{line}\n")))));
            let rest = match answer.end {
                End::Over => stream::empty().boxed(),
                End::Open => stream::pending().boxed(),
            };
            let body = StreamBody::new(stream::iter(lines).chain(rest));
            let mut response = Response::new(body);
            *response.status_mut() = StatusCode::from_u16(answer.code).unwrap();
            Ok::<_, Infallible>(response)
        }
    };
    Feed::new(Api::all(Client::new(service_fn(call), "default")))
}

/// What is told until nothing is for an hour, a loss as what it says.
async fn told(feed: &mut Feed<Namespace>, losses: usize) -> Vec<String> {
    let mut told = Vec::new();
    for _ in 0..=losses {
        let run = feed.run(|event| told.push(event.to_string()));
        match timeout(Duration::from_secs(3600), run).await {
            Ok(lost) => told.push(format!("lost: {lost}")),
            Err(_) => break,
        }
    }
    told
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_is_the_newest_state_with_what_goes_before_its_end() {
    let list = vec![
        event("ADDED", "a", "3"),
        event("ADDED", "b", "4"),
        bookmark("5", false),
        event("DELETED", "a", "6"),
        bookmark("6", true),
        event("MODIFIED", "b", "8"),
        bookmark("9", false),
    ];
    let mut feed = serving([
        answer(STREAMED, list, End::Over),
        answer("resourceVersion=9", vec![event("ADDED", "c", "10")], End::Open),
    ]);
    let expected =
        ["Init", "InitApply(a)", "InitApply(b)", "Delete(a)", "InitDone", "Apply(b)", "Apply(c)"];
    assert_eq!(told(&mut feed, 0).await, expected);
}

#[tokio::test(start_paused = true)]
async fn where_lists_are_not_streamed_they_come_in_pages() {
    let mut feed = serving([
        refusal(STREAMED, 422),
        answer("limit=500", vec![page(&["a"], "more")], End::Over),
        answer("continue=more", vec![page(&["b"], "")], End::Over),
        answer("resourceVersion=7", vec![event("DELETED", "a", "8")], End::Open),
    ]);
    let expected = ["Init", "InitApply(a)", "InitApply(b)", "InitDone", "Delete(a)"];
    assert_eq!(told(&mut feed, 0).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_asked_for_the_other_way() {
    let begun = || vec![event("ADDED", "a", "3")];
    let mut feed = serving([
        answer(STREAMED, begun(), End::Open),
        answer("limit=500", vec![page(&["a"], "more")], End::Over),
        refusal("continue=more", 410),
        answer(STREAMED, begun(), End::Over),
        answer("limit=500", vec![page(&["a"], "")], End::Over),
    ]);
    let told = told(&mut feed, 3).await;
    let expected = [
        "Init",
        "InitApply(a)",
        "lost: nothing came for 30s in the midst of a list",
        "Init",
        "InitApply(a)",
        "lost: cannot list: ",
        "Init",
        "InitApply(a)",
        "lost: a list ended before it was whole",
        "Init",
        "InitApply(a)",
        "InitDone",
    ];
    assert_eq!(told.len(), expected.len(), "{told:?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told} is not {expected}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_an_error_a_watch_goes_on_and_after_history_is_gone_all_is_listed() {
    let ended = |code| json!({ "type": "ERROR", "object": status(code) });
    let list = || vec![bookmark("6", true)];
    let with = |more: Vec<Value>| list().into_iter().chain(more).collect::<Vec<_>>();
    let first = with(vec![ended(500), event("ADDED", "a", "7"), ended(410)]);
    let mut feed = serving([
        answer(STREAMED, first, End::Over),
        answer(STREAMED, list(), End::Over),
        refusal("resourceVersion=6", 410),
        answer(STREAMED, list(), End::Open),
    ]);
    let told = told(&mut feed, 3).await;
    let kinds: Vec<&str> = told.iter().map(|told| told.split(':').next().unwrap()).collect();
    let expected = [
        "Init", "InitDone", "lost", "Apply(a)", "lost", "Init", "InitDone", "lost", "Init",
        "InitDone",
    ];
    assert_eq!(kinds, expected, "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_as_soon_as_it_began_is_a_loss_and_goes_on() {
    let list = vec![bookmark("6", true)];
    let mut feed = serving([
        answer(STREAMED, list, End::Over),
        answer("resourceVersion=6", vec![], End::Over),
        answer("resourceVersion=6", vec![event("ADDED", "a", "7")], End::Over),
        answer("resourceVersion=7", vec![bookmark("8", false)], End::Over),
        answer("resourceVersion=8", vec![event("ADDED", "b", "9")], End::Open),
    ]);
    let brief = "lost: a watch ended as soon as it began";
    assert_eq!(told(&mut feed, 1).await, ["Init", "InitDone", brief, "Apply(a)", "Apply(b)"]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_passed_over() {
    let odd = json!({ "type": "ADDED", "object": 7 });
    let list = vec![bookmark("6", true), odd, event("ADDED", "b", "8")];
    let mut feed = serving([answer(STREAMED, list, End::Open)]);
    let told = told(&mut feed, 1).await;
    assert!(told[2].starts_with("lost: cannot watch"), "{told:?}");
    assert_eq!(told[3..], ["Apply(b)"]);
}
