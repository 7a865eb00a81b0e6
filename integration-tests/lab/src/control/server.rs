//! The sockets of the control port: HTTP/1.1, one request after the other.
//!
//! Invariant: connections, bodies and the wait for a request have bounds; every connection ends
//! with the port.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Control, Refusal, refused};

/// Most bytes of a body: an order that names ten thousand instances.
pub const BODY_BYTES_MAX: usize = 256 * 1024;
/// Most bytes that are read and thrown away of a body that is too long.
const DISCARDED_BYTES_MAX: usize = 16 * BODY_BYTES_MAX;
/// Most connections at a time: there is one operator, with a few scripts.
const CONNECTIONS_MAX: usize = 64;
/// How long a request may take to arrive, and a connection may be silent before one.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(30);

/// Accepts connections until it is dropped; while there are enough, further ones wait to be
/// accepted.
pub async fn accept(listener: TcpListener, control: Control) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, control.clone()));
                }
                Err(error) => tracing::debug!(%error, "accept failed"),
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, control: Control) {
    let service = service_fn(move |request| {
        let control = control.clone();
        async move { Ok::<_, std::convert::Infallible>(exchange(&control, request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(ARRIVAL_LIMIT);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "connection ended");
    }
}

async fn exchange(control: &Control, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let answer = match arrived(body).await {
        Ok(body) => control.answer(&Request::from_parts(parts, body)),
        Err(refusal) => refused(&refusal),
    };
    answer.map(Full::new)
}

async fn arrived(body: Incoming) -> Result<Bytes, Refusal> {
    let late = |_| Refusal::CutOff(format!("not whole after {ARRIVAL_LIMIT:?}"));
    timeout(ARRIVAL_LIMIT, collected(body)).await.map_err(late)?
}

/// What is too long is read on for a while, so that its sender comes to reading the refusal.
async fn collected(mut body: Incoming) -> Result<Bytes, Refusal> {
    let (mut whole, mut length) = (BytesMut::new(), 0_usize);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Refusal::CutOff(error.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length <= BODY_BYTES_MAX {
            whole.extend_from_slice(&data);
        } else if length > DISCARDED_BYTES_MAX {
            break;
        }
    }
    if length > BODY_BYTES_MAX { Err(Refusal::TooLong) } else { Ok(whole.freeze()) }
}
