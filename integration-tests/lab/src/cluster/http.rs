//! The API server's HTTP surface.
//!
//! Invariant: transport only. Each request becomes one verb on [`Server`], and each outcome the
//! code and body a real API server would send.

pub mod discovery;
mod openapi;
mod route;
mod validation;
mod verbs;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::error::ApiError;
use super::faults::{Faults, Verdict};
use super::server::Server;
use route::{Parameters, Route};

/// Largest request body; the real server's limit.
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// What every request needs.
#[derive(Clone)]
pub struct Endpoint {
    /// The API server.
    pub server: Arc<Server>,
    /// Scripted refusals and delays.
    pub faults: Arc<Faults>,
    /// Ends all watches.
    pub stop: CancellationToken,
    /// Pause between bookmarks of a quiet watch.
    pub bookmark_interval: Duration,
    /// Minor version that is claimed, `35` for 1.35.
    pub kubernetes_minor: u32,
}

/// The routes, to be served or called in-process.
pub fn router(endpoint: Endpoint) -> Router {
    Router::new().fallback(answer).with_state(endpoint)
}

async fn answer(State(endpoint): State<Endpoint>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let asked = Asked {
        verb: parts.method.as_str().to_owned(),
        content_type: header(&parts, CONTENT_TYPE.as_str()),
        route: Route::parse(parts.uri.path()),
        parameters: match Parameters::of(&parts.uri) {
            Ok(parameters) => parameters,
            Err(error) => return refusal(&error),
        },
    };
    let path = parts.uri.path().to_owned();
    match endpoint.faults.judge(&asked.verb, &path).await {
        Verdict::Pass => {}
        Verdict::Refuse(error) => return refusal(&error),
    }
    let body = match axum::body::to_bytes(body, BODY_BYTES_MAX).await {
        Ok(body) => body,
        Err(error) => return refusal(&ApiError::BadRequest(error.to_string())),
    };
    match dispatch(&endpoint, &asked, &body) {
        Ok(response) => response,
        Err(error) => refusal(&error),
    }
}

/// A request after parsing.
struct Asked {
    verb: String,
    content_type: String,
    route: Route,
    parameters: Parameters,
}

fn header(parts: &http::request::Parts, name: &str) -> String {
    let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

fn dispatch(endpoint: &Endpoint, asked: &Asked, body: &Bytes) -> Result<Response, ApiError> {
    let registry = || endpoint.server.lock();
    let document = |found: Option<Value>| found.ok_or(ApiError::NoResource).map(|v| json(200, &v));
    match &asked.route {
        Route::Health => Ok(text("ok")),
        Route::Version => Ok(json(200, &discovery::version(endpoint.kubernetes_minor))),
        Route::CoreVersions => Ok(json(200, &discovery::core_versions())),
        Route::Groups => Ok(json(200, &discovery::groups(&registry().registry))),
        Route::Group(name) => document(discovery::group(&registry().registry, name)),
        Route::Resources { group, version } => {
            document(discovery::resources(&registry().registry, group, version))
        }
        Route::OpenApi => Ok(json(200, &openapi::index(&registry().registry))),
        Route::OpenApiOf { group, version } => {
            document(openapi::document(&registry().registry, group, version))
        }
        Route::Resource(path) => verbs::serve(endpoint, asked, (path, body)),
        Route::Unknown => Err(ApiError::NoResource),
    }
}

fn refusal(error: &ApiError) -> Response {
    let mut response = json(error.code(), &error.status());
    if let Some(seconds) = error.retry_after_seconds() {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

fn json(code: u16, value: &Value) -> Response {
    bytes(code, Bytes::from(value.to_string()))
}

fn bytes(code: u16, body: Bytes) -> Response {
    respond(code, "application/json", Body::from(body))
}

fn text(body: &'static str) -> Response {
    respond(200, "text/plain", Body::from(body))
}

fn respond(code: u16, content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    let content_type = http::HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
