//! What is said once, what is cut, and when it is published.

use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use tower::service_fn;

use super::*;

#[test]
fn long_notes_are_cut_between_characters() {
    assert_eq!(shortened("short"), "short");
    let cut = shortened(&"ä".repeat(600));
    assert!(cut.len() <= NOTE_BYTES_MAX && cut.ends_with("ä…"));
}

fn happening(note: &str) -> Happening {
    Happening {
        about: ObjectReference::default(),
        warning: false,
        reason: "Evicted".to_owned(),
        note: note.to_owned(),
    }
}

#[tokio::test]
async fn the_same_event_is_said_once_in_a_while() {
    let (sender, mut queue) = mpsc::channel(8);
    let (recent, counters) = (Arc::default(), Counters::default());
    let clock = Clock::reading(|| 0);
    let events = Events { queue: sender, recent, counters, clock };
    events.publish(happening("a"));
    events.publish(happening("a"));
    events.publish(happening("b"));
    for note in ["a", "b"] {
        let handed = queue.recv().await.unwrap();
        assert!(matches!(&handed, Handed::Happening(it) if it.note == note), "{handed:?}");
    }
    assert!(queue.try_recv().is_err());
    let later_ms = REPEAT_AFTER_MS;
    assert!(!events.is_repeated(&happening("a"), later_ms));
}

/// Milliseconds from the beginning, and the note.
type Said = (u128, String);

/// An API server that takes so long for each Event, and what it is sent while `drive` hands in.
async fn published(takes: Duration, drive: impl AsyncFnOnce(Events)) -> Vec<Said> {
    let (begun, log) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
    let said = Arc::clone(&log);
    let call = move |request: Request<Body>| {
        let said = Arc::clone(&said);
        async move {
            let body = request.into_body().collect().await?.to_bytes();
            let event: Event = serde_json::from_slice(&body)?;
            let at_ms = begun.elapsed().as_millis();
            said.lock().unwrap().push((at_ms, event.note.unwrap_or_default()));
            tokio::time::sleep(takes).await;
            Ok::<_, tower::BoxError>(Response::new(Body::from(body)))
        }
    };
    let client = Client::new(service_fn(call), "default");
    let (events, publisher) = events(client, "test", Counters::default(), &Platform::system());
    let ((), ended) = tokio::join!(drive(events), publisher.run());
    ended.unwrap();
    log.lock().unwrap().clone()
}

fn nominated(claim: &str) -> Nominated {
    let workload =
        Workload { namespace: "default".to_owned(), controller: "Deployment/web".to_owned() };
    Nominated {
        about: ObjectReference::default(),
        workload: Some(workload),
        pods: 1,
        claim: claim.to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn nominations_of_a_workload_are_published_together() {
    let pause = Duration::from_millis(300);
    let said = published(Duration::ZERO, async |events| {
        events.nominate(nominated("c1"));
        tokio::time::sleep(pause).await;
        events.nominate(nominated("c2"));
        events.publish(happening("something else"));
        tokio::time::sleep(pause).await;
        events.nominate(nominated("c3"));
        drop(events);
    });
    let together =
        "2 nodes for this pod and 1 more of its workload are being launched: NodeClaims c1, c2";
    let last = "a node for this pod is being launched: NodeClaim c3";
    let wanted = [(300, "something else"), (500, together), (600, last)];
    assert_eq!(said.await, wanted.map(|(at_ms, note)| (at_ms, note.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_never_empty_keeps_no_nomination_back() {
    let takes = Duration::from_millis(300);
    let said = published(takes, async |events| {
        events.nominate(nominated("c1"));
        for number in 0..5 {
            events.publish(happening(&number.to_string()));
        }
        tokio::time::sleep(GATHERED_FOR).await;
    })
    .await;
    let place = said.iter().position(|(_, note)| note.contains("c1"));
    assert_eq!(place, Some(3), "its window is over when the third has been published: {said:?}");
}
