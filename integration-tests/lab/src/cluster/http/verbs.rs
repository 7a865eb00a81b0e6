//! From method and path to a verb of the API server, and back to a response.
//!
//! Invariant: subresources that a kind does not have are 404, methods it does not have 405.

use axum::body::Body;
use axum::response::Response;
use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};

use super::route::ResourcePath;
use super::validation::{unknown_fields, warn_of};
use super::watch::{Watcher, encoded};
use super::{Asked, Endpoint, bytes, json as respond_json, respond};
use crate::cluster::error::ApiError;
use crate::cluster::patch::Patch;
use crate::cluster::server::{DeleteOptions, Deleted, Page, Propagation, Target};
use crate::cluster::store::{Key, Stored};

type Outcome = Result<Response, ApiError>;

pub(super) fn serve(
    endpoint: &Endpoint,
    asked: &Asked,
    (path, body): (&ResourcePath, &Bytes),
) -> Outcome {
    if path.group == "authorization.k8s.io" {
        return review(endpoint, body);
    }
    let found = endpoint.server.lock().registry.find(&path.group, &path.version, &path.plural);
    let target = Target {
        resource: found.ok_or(ApiError::NoResource)?,
        version: path.version.clone(),
        key: Key::new(&path.namespace, &path.name),
    };
    match (path.name.as_str(), path.subresource.as_str()) {
        ("", _) => collection(endpoint, asked, (&target, body)),
        (_, "" | "status") => single(endpoint, asked, (path, &target), body),
        (_, "scale") if target.resource.scale => scale(endpoint, asked, (&target, body)),
        (_, "binding") if path.plural == "pods" => bind(endpoint, &target, body),
        (_, "eviction") if path.plural == "pods" => evict(endpoint, asked, (&target, body)),
        (_, "finalize") if path.plural == "namespaces" => finalize(endpoint, &target, body),
        _ => Err(ApiError::NoResource),
    }
}

fn collection(endpoint: &Endpoint, asked: &Asked, (target, body): (&Target, &Bytes)) -> Outcome {
    let (server, parameters) = (&endpoint.server, &asked.parameters);
    match asked.verb.as_str() {
        "GET" if parameters.flag("watch") => {
            let (interval, stop) = (endpoint.bookmark_interval, endpoint.stop.clone());
            let watcher =
                Watcher::start(server.clone(), target.clone(), parameters, interval, stop)?;
            Ok(respond(200, "application/json", Body::from_stream(watcher.events())))
        }
        "GET" => Ok(bytes(200, page(&server.list(target, &parameters.list()?)?, target))),
        "POST" => {
            let validation = parameters.text("fieldValidation");
            let unknown = unknown_fields(target, validation, body)?;
            let stored = server.create(target, read(body)?, &parameters.write(""))?;
            Ok(warn_of(&unknown, bytes(201, encoded(&stored, target))))
        }
        "DELETE" => {
            let options = delete_options(asked, body)?;
            server.delete_collection(target, &parameters.list()?, &options)?;
            Ok(respond_json(200, &plain_success(200)))
        }
        _ => Err(ApiError::MethodNotAllowed),
    }
}

fn single(
    endpoint: &Endpoint,
    asked: &Asked,
    (path, target): (&ResourcePath, &Target),
    body: &Bytes,
) -> Outcome {
    let server = &endpoint.server;
    if path.subresource == "status" && !target.resource.status {
        return Err(ApiError::NoResource);
    }
    let options = asked.parameters.write(&path.subresource);
    match asked.verb.as_str() {
        "GET" => server.get(target).map(|stored| bytes(200, encoded(&stored, target))),
        "PUT" => {
            let validation = asked.parameters.text("fieldValidation");
            let unknown = unknown_fields(target, validation, body)?;
            let stored = server.update(target, read(body)?, &options)?;
            Ok(warn_of(&unknown, bytes(200, encoded(&stored, target))))
        }
        "PATCH" => {
            let validation = asked.parameters.text("fieldValidation");
            let patch = read_patch(asked, body)?;
            let unknown = unknown_fields(target, validation, body)?;
            let stored = server.patch(target, &patch, &options)?;
            Ok(warn_of(&unknown, bytes(200, encoded(&stored, target))))
        }
        "DELETE" if path.subresource.is_empty() => {
            let outcome = server.delete(target, &delete_options(asked, body)?)?;
            Ok(deleted(&outcome, target))
        }
        _ => Err(ApiError::MethodNotAllowed),
    }
}

fn deleted(outcome: &Deleted, target: &Target) -> Response {
    match outcome {
        Deleted::Pending(stored) => bytes(200, encoded(stored, target)),
        // Pods answer with themselves also when they go at once.
        Deleted::Gone(stored) if target.resource.kind == "Pod" => {
            bytes(200, encoded(stored, target))
        }
        Deleted::Gone(stored) => respond_json(200, &success(stored, target)),
    }
}

fn plain_success(code: u16) -> Value {
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": code,
    })
}

fn success(stored: &Stored, target: &Target) -> Value {
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {
            "name": target.key.name,
            "group": target.resource.group,
            "kind": target.resource.plural,
            "uid": crate::cluster::object::uid(&stored.value),
        },
    })
}

fn scale(endpoint: &Endpoint, asked: &Asked, (target, body): (&Target, &Bytes)) -> Outcome {
    let (server, options) = (&endpoint.server, asked.parameters.write("scale"));
    let scale = match asked.verb.as_str() {
        "GET" => server.scale(target)?,
        "PUT" => {
            let wanted = read(body)?;
            server.set_scale(target, |_| Ok(wanted), &options)?
        }
        "PATCH" => {
            let patch = read_patch(asked, body)?;
            server.set_scale(target, |scale| patch.apply_to(&scale, true), &options)?
        }
        _ => return Err(ApiError::MethodNotAllowed),
    };
    Ok(respond_json(200, &scale))
}

fn bind(endpoint: &Endpoint, target: &Target, body: &Bytes) -> Outcome {
    let binding = read(body)?;
    let node = binding["target"]["name"].as_str().unwrap_or_default();
    if node.is_empty() {
        return Err(ApiError::BadRequest("target.name: the name of a node is required".into()));
    }
    endpoint.server.bind(target, node)?;
    Ok(respond_json(201, &plain_success(201)))
}

fn evict(endpoint: &Endpoint, asked: &Asked, (target, body): (&Target, &Bytes)) -> Outcome {
    let eviction = read(body)?;
    let mut options = options_of(&eviction["deleteOptions"]);
    options.dry_run |= asked.parameters.text("dryRun") == "All";
    endpoint.server.evict(target, &options)?;
    Ok(respond_json(201, &plain_success(201)))
}

fn finalize(endpoint: &Endpoint, target: &Target, body: &Bytes) -> Outcome {
    let finalizers = read(body)?["spec"]["finalizers"].take();
    let part = crate::cluster::server::Part::Main;
    let stored = endpoint
        .server
        .modify(target, part, |namespace| namespace["spec"]["finalizers"] = finalizers)?;
    Ok(bytes(200, encoded(&stored, target)))
}

/// Access reviews: allowed unless a scripted denial says otherwise.
fn review(endpoint: &Endpoint, body: &Bytes) -> Outcome {
    let mut review = read(body)?;
    let attributes = &review["spec"]["resourceAttributes"];
    let text = |field: &str| attributes[field].as_str().unwrap_or_default().to_owned();
    let allowed =
        !endpoint.faults.is_denied(&text("verb"), &text("resource"), &text("subresource"));
    review["status"] = json!({ "allowed": allowed });
    Ok(respond_json(201, &review))
}

fn page(page: &Page, target: &Target) -> Bytes {
    let mut metadata = json!({ "resourceVersion": page.revision.to_string() });
    if let Some(token) = &page.continue_token {
        metadata["continue"] = json!(token);
        metadata["remainingItemCount"] = json!(page.remaining);
    }
    let mut body = BytesMut::new();
    body.put_slice(b"{\"kind\":");
    body.put_slice(json!(target.resource.list_kind()).to_string().as_bytes());
    body.put_slice(b",\"apiVersion\":");
    let api_version = target.resource.api_version(&target.version);
    body.put_slice(json!(api_version).to_string().as_bytes());
    body.put_slice(b",\"metadata\":");
    body.put_slice(metadata.to_string().as_bytes());
    body.put_slice(b",\"items\":[");
    for (index, stored) in page.items.iter().enumerate() {
        if index > 0 {
            body.put_u8(b',');
        }
        body.put(encoded(stored, target));
    }
    body.put_slice(b"]}");
    body.freeze()
}

fn read(body: &Bytes) -> Result<Value, ApiError> {
    serde_json::from_slice(body)
        .map_err(|error| ApiError::BadRequest(format!("the body is not JSON: {error}")))
}

fn read_patch(asked: &Asked, body: &Bytes) -> Result<Patch, ApiError> {
    let media = asked.content_type.split(';').next().unwrap_or_default().trim();
    Ok(match media {
        "application/json-patch+json" => Patch::Json(read(body)?),
        "application/merge-patch+json" => Patch::Merge(read(body)?),
        "application/strategic-merge-patch+json" => Patch::Strategic(read(body)?),
        "application/apply-patch+yaml" | "application/apply-patch+json" => {
            Patch::Apply { config: read_yaml(body)?, force: asked.parameters.flag("force") }
        }
        other => return Err(ApiError::UnsupportedMediaType(other.to_owned())),
    })
}

fn read_yaml(body: &Bytes) -> Result<Value, ApiError> {
    if let Ok(value) = serde_json::from_slice(body) {
        return Ok(value);
    }
    serde_saphyr::from_slice(body)
        .map_err(|error| ApiError::BadRequest(format!("the body is not YAML: {error}")))
}

fn delete_options(asked: &Asked, body: &Bytes) -> Result<DeleteOptions, ApiError> {
    let stated = if body.is_empty() { Value::Null } else { read(body)? };
    let mut options = options_of(&stated);
    let parameters = &asked.parameters;
    options.grace_seconds = parameters.number("gracePeriodSeconds").or(options.grace_seconds);
    if !parameters.text("propagationPolicy").is_empty() {
        options.propagation = propagation(parameters.text("propagationPolicy"));
    }
    options.dry_run |= parameters.text("dryRun") == "All";
    Ok(options)
}

fn options_of(stated: &Value) -> DeleteOptions {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    DeleteOptions {
        grace_seconds: stated["gracePeriodSeconds"].as_i64(),
        propagation: propagation(stated["propagationPolicy"].as_str().unwrap_or_default()),
        uid: text(&stated["preconditions"]["uid"]),
        resource_version: text(&stated["preconditions"]["resourceVersion"]),
        dry_run: stated["dryRun"].as_array().is_some_and(|list| !list.is_empty()),
    }
}

fn propagation(policy: &str) -> Propagation {
    match policy {
        "Foreground" => Propagation::Foreground,
        "Orphan" => Propagation::Orphan,
        _ => Propagation::Background,
    }
}
