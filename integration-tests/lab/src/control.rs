//! The control port: what an operator of the lab sees of its region, and has happen there, over
//! HTTP and JSON.
//!
//! A request goes one way: `server` reads it, `route` finds what is asked, `orders` reads its body
//! and hands it to the region, and the answer is written here. `help` is what `GET /` shows.
//!
//! Invariant: an order either takes effect or is refused, with its kind and the way out; nothing is
//! done by halves, and nothing of the region is kept here.

mod help;
mod orders;
mod refusal;
mod route;
mod server;

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub use refusal::Refusal;
pub use server::BODY_BYTES_MAX;

use crate::kubelet::Kubelets;
use crate::region::RegionHandle;
use route::Asked;

/// The control port without its sockets. Clones are the same.
#[derive(Clone, Debug)]
pub struct Control {
    region: RegionHandle,
    kubelets: Option<Arc<Kubelets>>,
}

/// A control port that listens; it ends with this.
#[derive(Debug)]
pub struct ControlHandle {
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Control {
    /// Controls a region; `kubelets` are those of the cluster that its machines join, where they
    /// join one.
    #[must_use]
    pub fn new(region: RegionHandle, kubelets: Option<Arc<Kubelets>>) -> Self {
        Self { region, kubelets }
    }

    /// Serves it at an address; port 0 is a free one.
    ///
    /// # Errors
    /// When the address is not to be had.
    pub async fn listen(self, address: SocketAddr) -> std::io::Result<ControlHandle> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let mut tasks = JoinSet::new();
        tasks.spawn(server::accept(listener, self));
        Ok(ControlHandle { address, _tasks: tasks })
    }

    /// Answers a request whose body is at most [`BODY_BYTES_MAX`] long.
    #[must_use]
    pub fn answer(&self, request: &Request<Bytes>) -> Response<Bytes> {
        match self.asked(request) {
            Ok(answer) => answer,
            Err(refusal) => refused(&refusal),
        }
    }

    fn asked(&self, request: &Request<Bytes>) -> Result<Response<Bytes>, Refusal> {
        let asked = Asked::of(request.method(), request.uri())?;
        let host = request.headers().get(http::header::HOST);
        let body = request.body();
        Ok(match asked {
            Asked::Help => {
                let host = host.and_then(|it| it.to_str().ok()).unwrap_or("localhost");
                respond(
                    StatusCode::OK,
                    "text/plain; charset=utf-8",
                    help::text(host, &self.region.example_offer()),
                )
            }
            Asked::State => told(&self.state()?),
            Asked::Calls(since) => told(&orders::value(&self.region.count_calls(since)?)?),
            Asked::Faults => told(&orders::faults(&self.region, body)?),
            Asked::NoFaults => {
                let (calls, launches) = self.region.withdraw_faults();
                told(&json!({ "withdrawn": { "calls": calls, "launches": launches } }))
            }
            Asked::Capacity => told(&orders::capacity(&self.region, body)?),
            Asked::Prices => told(&orders::prices(&self.region, body)?),
            Asked::Interruptions => told(&orders::interruptions(&self.region, body)?),
        })
    }

    /// What there is, and why machines that are there do not join.
    fn state(&self) -> Result<Value, Refusal> {
        let mut state = orders::value(&self.region.survey())?;
        let refusals = self.kubelets.as_ref().map(|kubelets| kubelets.refusals());
        state["never_join"] = orders::value(&refusals.unwrap_or_default())?;
        Ok(state)
    }
}

impl ControlHandle {
    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

fn refused(refusal: &Refusal) -> Response<Bytes> {
    let mut response = json_of(refusal.status(), &refusal.json());
    if let Some(methods) = refusal.methods() {
        // Names of methods are fit for a header.
        response.headers_mut().extend(HeaderValue::from_str(methods).map(|it| (ALLOW, it)));
    }
    response
}

fn told(value: &Value) -> Response<Bytes> {
    json_of(StatusCode::OK, value)
}

fn json_of(status: StatusCode, value: &Value) -> Response<Bytes> {
    respond(status, "application/json", format!("{value:#}\n"))
}

fn respond(status: StatusCode, content_type: &'static str, text: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
