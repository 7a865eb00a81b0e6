//! A client of a few lines: requests that look signed, replies read by tag or by JSON pointer.
//!
//! Invariant: one connection per request, so that a dropped one harms no other.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use longshore_lab::region::{CONTROLLER_KEY, Region, RegionConfig, RegionHandle};
use serde_json::Value;
use tokio::net::TcpStream;

/// A region under test and who calls it.
#[derive(Clone)]
pub struct Client {
    pub region: RegionHandle,
    key: String,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub request_id: String,
    pub body: String,
}

/// The default region with changes.
pub async fn start(change: impl FnOnce(&mut RegionConfig)) -> Client {
    let mut config = RegionConfig::simple("us-east-1").expect("data of us-east-1");
    change(&mut config);
    let region = Region::start(config).await.expect("region starts");
    Client::of(region)
}

impl Client {
    /// Calls a region as its controller.
    pub fn of(region: RegionHandle) -> Client {
        Client { region, key: CONTROLLER_KEY.to_owned() }
    }

    /// The same region, called with another access key.
    pub fn with_key(&self, key: &str) -> Client {
        Client { region: self.region.clone(), key: key.to_owned() }
    }

    /// A Query call: `Name=value` pairs.
    pub async fn query(&self, service: &str, action: &str, params: &[(&str, &str)]) -> Reply {
        self.try_query(service, action, params).await.expect("a reply")
    }

    /// As `query`, for calls whose connection may be closed.
    pub async fn try_query(
        &self,
        service: &str,
        action: &str,
        params: &[(&str, &str)],
    ) -> Option<Reply> {
        let version = match service {
            "ec2" => "2016-11-15",
            "iam" => "2010-05-08",
            _ => "2011-06-15",
        };
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("Action", action).append_pair("Version", version);
        form.extend_pairs(params);
        let request = self
            .request(Method::POST, "/", service)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Full::from(form.finish()))
            .expect("request");
        self.send(request).await
    }

    /// An EC2 call.
    pub async fn ec2(&self, action: &str, params: &[(&str, &str)]) -> Reply {
        self.query("ec2", action, params).await
    }

    /// A JSON call.
    pub async fn json(&self, target: &str, body: Value) -> Reply {
        let request = self
            .request(Method::POST, "/", "sqs")
            .header("x-amz-target", target)
            .body(Full::from(body.to_string()))
            .expect("request");
        self.send(request).await.expect("a reply")
    }

    /// A GET.
    pub async fn get(&self, path: &str) -> Reply {
        let request =
            self.request(Method::GET, path, "eks").body(Full::default()).expect("request");
        self.send(request).await.expect("a reply")
    }

    fn request(&self, method: Method, path: &str, service: &str) -> http::request::Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.address())
            .header("authorization", authorization(&self.key, service))
    }

    fn address(&self) -> String {
        self.region.endpoint_url().trim_start_matches("http://").to_owned()
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Option<Reply> {
        send(&self.address(), request).await
    }
}

/// What a call of a service looks signed by.
pub fn authorization(key: &str, service: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential={key}/20260901/us-east-1/{service}/aws4_request, \
         SignedHeaders=host, Signature=0"
    )
}

/// Sends a request to an address over a connection of its own; none when that is closed.
pub async fn send(address: &str, request: Request<Full<Bytes>>) -> Option<Reply> {
    let stream = TcpStream::connect(address).await.expect("somebody listens");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    let exchange = async move {
        let reply = sender.send_request(request).await.ok()?;
        let (parts, body) = reply.into_parts();
        Some((parts, body.collect().await.ok()?.to_bytes()))
    };
    let (answer, _) = tokio::join!(exchange, connection);
    let (parts, body) = answer?;
    let id = parts.headers.get("x-amzn-requestid").and_then(|id| id.to_str().ok());
    Some(Reply {
        status: parts.status,
        request_id: id.unwrap_or_default().to_owned(),
        body: String::from_utf8(body.to_vec()).expect("text"),
    })
}

impl Reply {
    /// Texts of all elements of a name, in order.
    pub fn all(&self, tag: &str) -> Vec<String> {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        let pieces = self.body.split(&open).skip(1);
        let texts = pieces.map(|piece| piece.split(&close).next().unwrap_or_default());
        texts.map(|text| quick_xml::escape::unescape(text).expect("escaped").into_owned()).collect()
    }

    /// Text of the first element of a name.
    pub fn first(&self, tag: &str) -> String {
        self.all(tag).into_iter().next().unwrap_or_else(|| panic!("no <{tag}> in {}", self.body))
    }

    /// The reply as JSON.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// Error code and message of an XML reply; panics when the call went through.
    pub fn error(&self) -> (String, String) {
        assert!(!self.status.is_success(), "expected an error: {}", self.body);
        (self.first("Code"), self.first("Message"))
    }

    /// The reply itself; panics when the call was refused.
    pub fn ok(self) -> Reply {
        assert!(self.status.is_success(), "{}", self.body);
        self
    }
}

/// Id of the newest AL2023 image of an EC2 architecture, through SSM as anyone finds it.
pub async fn image(client: &Client, architecture: &str) -> String {
    let name = format!(
        "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/{architecture}/standard/\
         recommended/image_id"
    );
    let reply = client.json("AmazonSSM.GetParameter", serde_json::json!({"Name": name})).await.ok();
    reply.value()["Parameter"]["Value"].as_str().expect("image id").to_owned()
}

/// Ids of the subnets in order of zone.
pub async fn subnets(client: &Client) -> Vec<String> {
    client.ec2("DescribeSubnets", &[]).await.ok().all("subnetId")
}

/// Creates a launch template named `t` with the node profile and more parameters.
pub async fn template(client: &Client, more: &[(&str, &str)]) -> Reply {
    let image = image(client, "x86_64").await;
    let mut params = vec![
        ("LaunchTemplateName", "t"),
        ("LaunchTemplateData.ImageId", &image),
        ("LaunchTemplateData.NetworkInterface.1.DeviceIndex", "0"),
        ("LaunchTemplateData.NetworkInterface.1.SecurityGroupId.1", "sg-00000000000000001"),
    ];
    if !more.iter().any(|(name, _)| *name == "LaunchTemplateData.IamInstanceProfile.Name") {
        let profile = longshore_lab::region::NODE_PROFILE;
        params.push(("LaunchTemplateData.IamInstanceProfile.Name", profile));
    }
    if !more.iter().any(|(name, _)| *name == "LaunchTemplateData.UserData") {
        params.push(("LaunchTemplateData.UserData", "aGVsbG8="));
    }
    params.extend_from_slice(more);
    client.ec2("CreateLaunchTemplate", &params).await
}

/// A fleet of template `t`: total, market, overrides of (type, subnet), and more parameters.
pub async fn fleet(
    client: &Client,
    (total, market): (u32, &str),
    overrides: &[(&str, &str)],
    more: &[(&str, &str)],
) -> Reply {
    let params = fleet_params((total, market), overrides, more);
    let params: Vec<(&str, &str)> =
        params.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    client.ec2("CreateFleet", &params).await
}

/// The parameters of `fleet`.
pub fn fleet_params(
    (total, market): (u32, &str),
    overrides: &[(&str, &str)],
    more: &[(&str, &str)],
) -> Vec<(String, String)> {
    let config = "LaunchTemplateConfigs.1";
    let capacity = "TargetCapacitySpecification";
    let mut params = vec![
        ("Type".to_owned(), "instant".to_owned()),
        (format!("{capacity}.TotalTargetCapacity"), total.to_string()),
        (format!("{capacity}.DefaultTargetCapacityType"), market.to_owned()),
        (format!("{config}.LaunchTemplateSpecification.LaunchTemplateName"), "t".to_owned()),
        (format!("{config}.LaunchTemplateSpecification.Version"), "$Latest".to_owned()),
    ];
    for ((instance_type, subnet), number) in overrides.iter().zip(1..) {
        let prefix = format!("{config}.Overrides.{number}");
        params.push((format!("{prefix}.InstanceType"), (*instance_type).to_owned()));
        params.push((format!("{prefix}.SubnetId"), (*subnet).to_owned()));
    }
    let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    params.extend(more);
    params
}
