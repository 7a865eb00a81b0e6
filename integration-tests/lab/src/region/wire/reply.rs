//! Replies written in the protocol of their service.
//!
//! Invariant: every reply carries its request id, in the header and, for XML, in the body.

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

use super::{AwsError, Element, Protocol, Request};

const EC2_NAMESPACE: &str = "http://ec2.amazonaws.com/doc/2016-11-15/";

/// Content of a successful reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Children of the result element.
    Xml(Vec<Element>),
    /// A JSON document.
    Json(Value),
}

/// Writes the outcome of a call as its HTTP reply.
pub fn render(
    request: &Request,
    request_id: &str,
    outcome: &Result<Body, AwsError>,
) -> Response<Full<Bytes>> {
    let protocol = request.service.protocol();
    let (status, body) = match outcome {
        Ok(Body::Xml(children)) => (200, xml_document(request, request_id, children)),
        Ok(Body::Json(value)) => (200, value.to_string()),
        Err(error) => (error.status, error_document(protocol, request_id, error)),
    };
    let mut reply = Response::new(Full::new(Bytes::from(body)));
    *reply.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    set_header(&mut reply, "content-type", content_type(protocol));
    set_header(&mut reply, "x-amzn-requestid", request_id);
    if let Err(error) = outcome {
        error_headers(&mut reply, request.service.protocol(), error);
    }
    reply
}

fn content_type(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Ec2Query | Protocol::Query(_) => "text/xml;charset=UTF-8",
        Protocol::Json(content_type) => content_type,
        Protocol::RestJson => "application/json",
    }
}

fn xml_document(request: &Request, request_id: &str, children: &[Element]) -> String {
    let mut inner = String::new();
    children.iter().for_each(|child| child.write(&mut inner));
    let action = &request.action;
    match request.service.protocol() {
        Protocol::Query(namespace) => format!(
            "<{action}Response xmlns=\"{namespace}\"><{action}Result>{inner}</{action}Result>\
             <ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata>\
             </{action}Response>"
        ),
        Protocol::Ec2Query | Protocol::Json(_) | Protocol::RestJson => format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{action}Response \
             xmlns=\"{EC2_NAMESPACE}\"><requestId>{request_id}</requestId>{inner}\
             </{action}Response>"
        ),
    }
}

fn error_document(protocol: Protocol, request_id: &str, error: &AwsError) -> String {
    let mut fields = String::new();
    super::text("Code", &error.code).write(&mut fields);
    super::text("Message", &error.message).write(&mut fields);
    match protocol {
        Protocol::Ec2Query => format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error>{fields}\
             </Error></Errors><RequestID>{request_id}</RequestID></Response>"
        ),
        Protocol::Query(namespace) => format!(
            "<ErrorResponse xmlns=\"{namespace}\"><Error><Type>Sender</Type>{fields}</Error>\
             <RequestId>{request_id}</RequestId></ErrorResponse>"
        ),
        Protocol::Json(_) | Protocol::RestJson => {
            json!({"__type": error.code, "message": error.message}).to_string()
        }
    }
}

fn error_headers(reply: &mut Response<Full<Bytes>>, protocol: Protocol, error: &AwsError) {
    match protocol {
        Protocol::RestJson => set_header(reply, "x-amzn-errortype", &error.code),
        Protocol::Json(_) => {
            // SQS clients made for its older protocol read the code from here.
            let legacy = match error.code.as_str() {
                "QueueDoesNotExist" => "AWS.SimpleQueueService.NonExistentQueue",
                other => other,
            };
            set_header(reply, "x-amzn-query-error", &format!("{legacy};Sender"));
        }
        Protocol::Ec2Query | Protocol::Query(_) => {}
    }
}

fn set_header(reply: &mut Response<Full<Bytes>>, name: &'static str, value: &str) {
    if let Ok(value) = http::HeaderValue::from_str(value) {
        reply.headers_mut().insert(name, value);
    }
}
