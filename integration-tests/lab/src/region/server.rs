//! The HTTP side: accepts connections, answers calls, acts out dropped and slow replies.
//!
//! Invariant: the world is locked only while a handler runs, never across an await; every task
//! belongs to the handle and ends with it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::clock::Clock;
use super::dispatch::{self, Answer};
use super::faults::Fault;
use super::sqs;
use super::wire::{AwsError, Body, Request, Result as Reply, render};
use super::world::World;

/// Most bytes of a request, far above what any call of an autoscaler needs.
const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The world with its clock and the signals of its changes.
#[derive(Debug)]
pub struct Shared {
    world: Mutex<World>,
    clock: Clock,
    /// Revision of the instances.
    pub changed: watch::Sender<u64>,
    /// Messages sent so far.
    sent: watch::Sender<u64>,
    /// Wakes the task that carries out timed changes.
    tick: Notify,
}

/// Why a connection ends without a reply.
#[derive(Debug, Error)]
enum Dropped {
    #[error("the script closes the connection")]
    Scripted,
    #[error("the request could not be read: {0}")]
    Unreadable(String),
}

impl Shared {
    /// A world and its clock.
    pub fn new(world: World, clock: Clock) -> Shared {
        Shared {
            world: Mutex::new(world),
            clock,
            changed: watch::Sender::new(0),
            sent: watch::Sender::new(0),
            tick: Notify::new(),
        }
    }

    /// Looks at or changes the world, at the present moment, and tells who waits for changes.
    pub fn with<T>(&self, act: impl FnOnce(&mut World, Timestamp) -> T) -> T {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        world.advance(now);
        let result = act(&mut world, now);
        let sent: u64 = world.queues.values().map(|queue| queue.sent()).sum();
        let moved = |new: u64| move |seen: &mut u64| std::mem::replace(seen, new) != new;
        self.sent.send_if_modified(moved(sent));
        if self.changed.send_if_modified(moved(world.revision)) {
            self.tick.notify_one();
        }
        result
    }
}

/// Carries out timed changes when they are due.
pub async fn keep_time(shared: Arc<Shared>) {
    loop {
        match shared.with(|world, _| world.next_due()) {
            Some(due) => {
                let due = shared.clock.instant(due);
                tokio::select! {
                    () = tokio::time::sleep_until(due) => {}
                    () = shared.tick.notified() => {}
                }
            }
            None => shared.tick.notified().await,
        }
    }
}

/// Accepts connections until dropped.
pub async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, Arc::clone(&shared)));
                }
                Err(error) => tracing::debug!(%error, "accept failed"),
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(move |request| exchange(Arc::clone(&shared), request));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "connection ended");
    }
}

async fn exchange(
    shared: Arc<Shared>,
    request: http::Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Dropped> {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, REQUEST_BYTES_MAX).collect().await;
    let body = body.map_err(|error| Dropped::Unreadable(error.to_string()))?.to_bytes();
    let request = match Request::parse(&parts, &body) {
        Ok(request) => request,
        Err(error) => return Ok(unrecognised(&error)),
    };
    let mut sent = shared.sent.subscribe();
    let (arrived, answer) = shared.with(|world, now| (now, dispatch::answer(world, &request, now)));
    let Answer { request_id, outcome, fault } = answer;
    match fault {
        Some(Fault::DropBefore | Fault::DropAfter) => return Err(Dropped::Scripted),
        Some(Fault::Slow(millis)) => {
            tokio::time::sleep(Duration::from_millis(u64::from(millis))).await;
        }
        Some(Fault::Error(_) | Fault::Throttle) | None => {}
    }
    let until = sqs::poll_until(&request, arrived);
    let outcome = long_poll(&shared, &request, outcome, (until, &mut sent)).await;
    Ok(render(&request, &request_id, &outcome))
}

/// Asks an empty queue again, whenever something was `sent` or becomes visible, `until` the end of
/// the poll.
async fn long_poll(
    shared: &Shared,
    request: &Request,
    mut outcome: Reply<Body>,
    (until, sent): (Timestamp, &mut watch::Receiver<u64>),
) -> Reply<Body> {
    while sqs::found_nothing(request, &outcome) && shared.clock.now() < until {
        let visible = shared.with(|world, now| world.next_message(now));
        let wake = shared.clock.instant(visible.map_or(until, |visible| visible.min(until)));
        tokio::select! {
            () = tokio::time::sleep_until(wake) => {}
            _ = sent.changed() => {}
        }
        outcome = shared.with(|world, now| dispatch::handle(world, request, now));
    }
    outcome
}

fn unrecognised(error: &AwsError) -> Response<Full<Bytes>> {
    let mut reply = Response::new(Full::new(Bytes::from(error.to_string())));
    *reply.status_mut() = http::StatusCode::NOT_FOUND;
    reply
}
