//! An API server as one process reaches it: late, faulty, blocked or cut.
//!
//! Invariant: a request takes effect at most once; what is lost is the reply, never half an effect.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body as AxumBody;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use tokio::time::Sleep;

use crate::gate::{Gate, Standing};
use crate::net::Net;
use crate::random::Random;
use crate::verdict::Judge;

/// Time that a request takes, shortest and longest, in microseconds.
const REQUEST_US: (u64, u64) = (500, 12_000);

/// What goes wrong with requests, each in percent of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Troubles {
    /// Answered 429.
    pub overloaded: u64,
    /// Answered 500 without effect.
    pub internal: u64,
    /// Writes that are answered 409 without effect.
    pub conflicts: u64,
    /// Take effect, then the reply is lost.
    pub reply_lost: u64,
    /// Are never answered, Leases apart, which have a priority level of their own; half of them
    /// take effect.
    pub silent: u64,
    /// Minor version that it is said to have; its own when none.
    pub minor: Option<u32>,
    /// Watches that end at once.
    pub watches_cut: u64,
    /// Lists and watches of these plurals are answered 404.
    pub absent: Vec<String>,
}

/// The troubles of one API server, changed while it runs. Clones are the same.
#[derive(Clone, Default)]
pub struct Weather(Arc<Mutex<Troubles>>);

impl Weather {
    /// Changes them.
    pub fn set(&self, change: impl FnOnce(&mut Troubles)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn now(&self) -> Troubles {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A process's way to an API server.
#[derive(Clone)]
pub struct Road {
    /// The API server.
    pub server: Router,
    /// What goes wrong.
    pub weather: Weather,
    /// The network, for partitions.
    pub net: Net,
    /// The process's address.
    pub host: IpAddr,
    /// The API server's address.
    pub address: IpAddr,
    /// The process.
    pub gate: Gate,
    /// Label of the cluster.
    pub label: String,
    /// Who asks.
    pub identity: String,
    /// Who judges what is asked.
    pub judge: Judge,
    /// Choices.
    pub random: Arc<Mutex<Random>>,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Road {
    /// A client that takes this way.
    #[must_use]
    pub fn client(self) -> kube::Client {
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let road = self.clone();
            let answer: BoxFuture<'static, Result<Response<Disturbed>, BoxError>> =
                Box::pin(async move { road.carry(request).await });
            answer
        });
        kube::Client::new(service, "default")
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut Random) -> T) -> T {
        draw(&mut self.random.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn chance(&self, percent: u64) -> bool {
        percent > 0 && self.draw(|random| random.chance(percent))
    }

    async fn carry(
        self,
        request: Request<kube::client::Body>,
    ) -> Result<Response<Disturbed>, BoxError> {
        let asker = (self.label.as_str(), self.identity.as_str());
        self.judge.asks(asker, request.method(), request.uri().path());
        let took = self.draw(|random| random.between(REQUEST_US.0, REQUEST_US.1));
        tokio::time::sleep(Duration::from_micros(took / 2)).await;
        self.pass(self.host, self.address).await;
        if let Some(answer) = self.refusal(&request).or_else(|| self.version(&request)) {
            return Ok(answer.map(|body| self.disturbed(body)));
        }
        let lease = request.uri().path().contains("/leases");
        let silent = !lease && self.chance(self.weather.now().silent);
        if silent && self.chance(50) {
            return std::future::pending().await;
        }
        let mut server = self.server.clone();
        let answer = tower::Service::call(&mut server, request.map(AxumBody::new)).await?;
        if silent {
            return std::future::pending().await;
        }
        if self.chance(self.weather.now().reply_lost) {
            return Err("connection reset by the simulation".into());
        }
        self.pass(self.address, self.host).await;
        tokio::time::sleep(Duration::from_micros(took - took / 2)).await;
        if self.gate.standing() == Standing::Dead {
            return Err("the process is gone".into());
        }
        Ok(answer.map(|body| self.disturbed(body)))
    }

    /// What it says about itself since it was upgraded.
    fn version(&self, request: &Request<kube::client::Body>) -> Option<Response<AxumBody>> {
        let minor = self.weather.now().minor.filter(|_| request.uri().path() == "/version")?;
        let says = serde_json::json!({
            "major": "1",
            "minor": minor.to_string(),
            "gitVersion": format!("v1.{minor}.0"),
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "2026-06-01T00:00:00Z",
            "goVersion": "",
            "compiler": "",
            "platform": "",
        });
        let mut answer = Response::new(AxumBody::from(says.to_string()));
        let json = http::HeaderValue::from_static("application/json");
        answer.headers_mut().insert(http::header::CONTENT_TYPE, json);
        Some(answer)
    }

    fn refusal(&self, request: &Request<kube::client::Body>) -> Option<Response<AxumBody>> {
        let troubles = self.weather.now();
        let write = request.method() != http::Method::GET;
        let path = request.uri().path();
        let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let last = path.rsplit('/').next().unwrap_or_default();
        if !write && troubles.absent.iter().any(|plural| plural == last) {
            return Some(refused(StatusCode::NOT_FOUND, "NotFound"));
        }
        if self.chance(troubles.overloaded) {
            return Some(refused(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests"));
        }
        if self.chance(troubles.internal) {
            return Some(refused(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"));
        }
        if write && self.chance(troubles.conflicts) {
            return Some(refused(StatusCode::CONFLICT, "Conflict"));
        }
        if watch && self.chance(troubles.watches_cut) {
            return Some(refused(StatusCode::GONE, "Expired"));
        }
        None
    }

    fn disturbed(&self, body: AxumBody) -> Disturbed {
        Disturbed { body, road: self.clone(), held: None, gone: false }
    }

    async fn pass(&self, from: IpAddr, to: IpAddr) {
        while self.net.is_blocked(from, to) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn refused(code: StatusCode, reason: &str) -> Response<AxumBody> {
    let status = serde_json::json!({
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": "by the simulation",
        "code": code.as_u16(),
    });
    let mut response = Response::new(AxumBody::from(status.to_string()));
    *response.status_mut() = code;
    response
}

/// A reply that is held back while its way is blocked.
pub struct Disturbed {
    body: AxumBody,
    road: Road,
    held: Option<Pin<Box<Sleep>>>,
    gone: bool,
}

impl http_body::Body for Disturbed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.gone || self.road.gate.standing() == Standing::Dead {
            return Poll::Ready(None);
        }
        while self.road.net.is_blocked(self.road.address, self.road.host) {
            let pause = || Box::pin(tokio::time::sleep(Duration::from_millis(100)));
            let held = self.held.get_or_insert_with(pause);
            if Future::poll(held.as_mut(), context).is_pending() {
                return Poll::Pending;
            }
            self.held = None;
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.gone = true;
        }
        frame.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
