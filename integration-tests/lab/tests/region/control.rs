//! The control port: each order is seen to take effect through the region's own wire, or is
//! refused.
//!
//! Invariant: most of it is asked in process; `socket` asks the same over a socket.

mod faults;
mod help;
mod market;
mod reading;
mod refusals;
mod socket;

use bytes::Bytes;
use http::{Request, StatusCode};
use longshore_lab::control::Control;
use longshore_lab::instance::InstanceSource as _;
use serde_json::{Value, json};

use crate::support::{Client, fleet, start, subnets, template};

/// A region, its subnets, and its control port without a socket.
struct Desk {
    client: Client,
    subnets: Vec<String>,
    control: Control,
}

/// A region with a template, whose machines boot, and shut down, for an hour.
async fn desk() -> Desk {
    let client = start(|config| {
        config.timing.boot_min_ms = 3_600_000;
        config.timing.boot_max_ms = 3_600_000;
        config.timing.shutdown_ms = 3_600_000;
    })
    .await;
    template(&client, &[]).await.ok();
    let subnets = subnets(&client).await;
    let control = Control::new(client.region.clone(), None);
    Desk { client, subnets, control }
}

impl Desk {
    /// Asks the control port.
    fn ask(&self, method: &str, path: &str, body: impl Into<String>) -> (StatusCode, String) {
        let request = Request::builder().method(method).uri(path).header("host", "127.0.0.1:65535");
        let answer = self.control.answer(&request.body(Bytes::from(body.into())).expect("request"));
        let text = String::from_utf8(answer.body().to_vec()).expect("text");
        (answer.status(), text)
    }

    /// What is answered to an order that takes effect.
    fn order(&self, path: &str, body: &Value) -> Value {
        let (status, text) = self.ask("POST", path, body.to_string());
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).expect("JSON")
    }

    fn get(&self, path: &str) -> Value {
        let (status, text) = self.ask("GET", path, "");
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Status and error of what is refused.
    fn refused(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let (status, text) = self.ask(method, path, body);
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        assert!(answer["error"].is_object(), "{method} {path} {body} was not refused: {text}");
        (status.as_u16(), answer["error"].clone())
    }

    /// Launches one m5.large in the first zone; its id.
    async fn launch(&self, market: &str) -> String {
        let one = [("m5.large", self.subnets[0].as_str())];
        fleet(&self.client, (1, market), &one, &[]).await.ok();
        let newest = self.client.region.instances().pop().expect("launched");
        newest.instance_id
    }

    /// Code of the refusal of a launch; none when it goes through.
    async fn launch_refused(&self, market: &str) -> Option<String> {
        let one = [("m5.large", self.subnets[0].as_str())];
        let reply = fleet(&self.client, (1, market), &one, &[]).await.ok();
        reply.all("errorCode").into_iter().next()
    }
}

/// The offering that these tests are about.
fn offering(capacity_type: &str) -> Value {
    json!({ "instance_type": "m5.large", "zone": "us-east-1a", "capacity_type": capacity_type })
}

/// The same with one field more.
fn with(mut object: Value, field: &str, value: impl Into<Value>) -> Value {
    object[field] = value.into();
    object
}
