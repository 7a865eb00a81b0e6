//! The same over a socket.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use longshore_lab::control::{BODY_BYTES_MAX, ControlHandle};
use serde_json::json;

use super::desk;
use crate::support::{Reply, send};

async fn ask(port: &ControlHandle, method: &str, path: &str, body: String) -> Reply {
    let url = port.url();
    let address = url.trim_start_matches("http://");
    let request = Request::builder().method(method).uri(path).header("host", address);
    let request = request.body(Full::new(Bytes::from(body))).expect("request");
    send(address, request).await.expect("a reply")
}

#[tokio::test]
async fn an_order_over_a_socket_takes_effect() {
    let desk = desk().await;
    let port = desk.control.clone().listen(([127, 0, 0, 1], 0).into()).await.expect("a port");
    let help = ask(&port, "GET", "/", String::new()).await.ok();
    assert!(help.body.contains(&format!("curl {}/state", port.url())), "{}", help.body);
    let order = json!({ "kind": "throttle", "api": "ec2:DescribeSubnets" });
    ask(&port, "POST", "/faults", order.to_string()).await.ok();
    let (code, _) = desk.client.ec2("DescribeSubnets", &[]).await.error();
    assert_eq!(code, "RequestLimitExceeded");
    let calls = ask(&port, "GET", "/calls", String::new()).await.ok().value();
    let throttled = json!({
        "api": "ec2:DescribeSubnets", "outcome": "RequestLimitExceeded", "count": 1,
    });
    assert!(calls["calls"].as_array().is_some_and(|it| it.contains(&throttled)), "{calls}");
}

#[tokio::test]
async fn a_body_without_end_is_refused_and_says_so() {
    let desk = desk().await;
    let port = desk.control.clone().listen(([127, 0, 0, 1], 0).into()).await.expect("a port");
    let fits = ask(&port, "POST", "/faults", " ".repeat(BODY_BYTES_MAX)).await;
    assert_eq!(fits.value()["error"]["kind"], "unusable-body");
    let long = ask(&port, "POST", "/faults", " ".repeat(BODY_BYTES_MAX + 1)).await;
    assert_eq!(
        (long.status.as_u16(), &long.value()["error"]["kind"]),
        (413, &json!("body-too-long"))
    );
}

#[tokio::test]
async fn the_port_is_gone_with_its_handle() {
    let desk = desk().await;
    let port = desk.control.clone().listen(([127, 0, 0, 1], 0).into()).await.expect("a port");
    let url = port.url();
    let address = url.trim_start_matches("http://").to_owned();
    drop(port);
    // The task that listens is ended at its next turn.
    while tokio::net::TcpStream::connect(&address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(desk.get("/state")["instances"].is_array(), "the region lives on");
}
