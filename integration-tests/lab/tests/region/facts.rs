//! Facts the region tells: types, offerings, prices, images, cluster.
//!
//! Invariant: what is told equals the embedded data and what the handle has set, nothing else.

use longshore_lab::region::{CLUSTER, RELEASES, Release};
use serde_json::json;

use crate::support::{Client, image, start};

async fn pages(client: &Client, action: &str, tag: &str, params: &[(&str, &str)]) -> Vec<String> {
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let mut params = params.to_vec();
        if !token.is_empty() {
            params.push(("NextToken", &token));
        }
        let reply = client.ec2(action, &params).await.ok();
        found.extend(reply.all(tag));
        match reply.all("nextToken").pop() {
            Some(next) => token = next,
            None => return found,
        }
    }
}

#[tokio::test]
async fn types_come_in_pages_and_by_filter() {
    let client = start(|_| {}).await;
    let filters = [
        ("Filter.1.Name", "processor-info.supported-architecture"),
        ("Filter.1.Value.1", "arm64"),
        ("Filter.2.Name", "instance-type"),
        ("Filter.2.Value.1", "t4g.*"),
        ("MaxResults", "5"),
    ];
    let types = pages(&client, "DescribeInstanceTypes", "instanceType", &filters).await;
    assert_eq!(types.len(), 7);
    let one = client.ec2("DescribeInstanceTypes", &[("InstanceType.1", "m5.large")]).await.ok();
    assert_eq!(one.first("sizeInMiB"), "8192");
    assert_eq!(one.first("ipv4AddressesPerInterface"), "10");
    assert!(one.first("supportedUsageClasses").contains("spot"));
    let unknown = client.ec2("DescribeInstanceTypes", &[("InstanceType.1", "m5.tiny")]).await;
    assert_eq!(unknown.error().0, "InvalidInstanceType");
}

#[tokio::test]
async fn offerings_name_zones() {
    let client = start(|_| {}).await;
    let params = [
        ("LocationType", "availability-zone"),
        ("Filter.1.Name", "instance-type"),
        ("Filter.1.Value.1", "m5.large"),
    ];
    let zones = pages(&client, "DescribeInstanceTypeOfferings", "location", &params).await;
    assert!(zones.contains(&"us-east-1a".to_owned()), "{zones:?}");
}

#[tokio::test]
async fn spot_prices_have_a_history() {
    let client = start(|_| {}).await;
    client.region.set_spot_price("m5.large", "us-east-1a", 12_345);
    let params = [
        ("InstanceType.1", "m5.large"),
        ("ProductDescription.1", "Linux/UNIX"),
        ("AvailabilityZone", "us-east-1a"),
        ("MaxResults", "1"),
    ];
    let prices = pages(&client, "DescribeSpotPriceHistory", "spotPrice", &params).await;
    assert_eq!((prices.len(), prices[0].as_str()), (2, "0.012345"));
    let now = [&params[..], &[("StartTime", "2100-01-01T00:00:00Z")]].concat();
    let newest = pages(&client, "DescribeSpotPriceHistory", "spotPrice", &now).await;
    assert_eq!(newest, ["0.012345"]);
}

#[tokio::test]
async fn on_demand_prices_follow_the_region_s() {
    let client = start(|_| {}).await;
    client.region.set_on_demand_price("m5.large", 100_000);
    let filter =
        |field: &str, value: &str| json!({"Type": "TERM_MATCH", "Field": field, "Value": value});
    let filters = json!([
        filter("instanceType", "m5.large"),
        filter("regionCode", "us-east-1"),
        filter("tenancy", "Shared"),
        filter("productFamily", "Compute Instance"),
    ]);
    let body = json!({"ServiceCode": "AmazonEC2", "Filters": filters});
    let reply = client.json("AWSPriceListService.GetProducts", body).await.ok().value();
    let products = reply["PriceList"].as_array().expect("list");
    assert_eq!(products.len(), 1);
    assert!(products[0].as_str().expect("text").contains(r#""USD":"0.1000000000""#));
}

#[tokio::test]
async fn a_release_moves_the_recommended_image() {
    let client = start(|_| {}).await;
    let before = image(&client, "arm64").await;
    client.region.release_images(&Release {
        al2023: "v20261001",
        bottlerocket: "1.47.0",
        created: "2026-10-01T00:00:00.000Z",
    });
    let after = image(&client, "arm64").await;
    assert_ne!(before, after);
    let described = client.ec2("DescribeImages", &[("ImageId.1", &after)]).await.ok();
    assert_eq!(described.first("name"), "amazon-eks-node-al2023-arm64-standard-1.34-v20261001");
    let old = format!(
        "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/standard/\
         amazon-eks-node-al2023-arm64-standard-1.34-{}/image_id",
        RELEASES[1].al2023
    );
    let body = json!({"Names": [old, "/absent"]});
    let reply = client.json("AmazonSSM.GetParameters", body).await.ok().value();
    assert_eq!(reply["Parameters"][0]["Value"], before);
    assert_eq!(reply["InvalidParameters"], json!(["/absent"]));
}

#[tokio::test]
async fn the_cluster_describes_itself() {
    let client = start(|_| {}).await;
    let reply = client.get(&format!("/clusters/{CLUSTER}")).await.ok().value();
    assert_eq!(reply["cluster"]["kubernetesNetworkConfig"]["serviceIpv4Cidr"], "10.100.0.0/16");
    let absent = client.get("/clusters/absent").await;
    assert_eq!(
        (absent.status.as_u16(), absent.value()["__type"].clone()),
        (404, json!("ResourceNotFoundException"))
    );
}

#[tokio::test]
async fn subnets_are_found_by_wildcard_tags() {
    let client = start(|config| {
        let name = "EksCluster/EKSVpc/PrivateSubnet1".to_owned();
        config.subnets[1].tags.insert("Name".to_owned(), name);
    })
    .await;
    let filter =
        [("Filter.1.Name", "tag:Name"), ("Filter.1.Value.1", "EksCluster/EKSVpc/PrivateSubnet*")];
    let found = client.ec2("DescribeSubnets", &filter).await.ok();
    assert_eq!(found.all("availabilityZone"), ["us-east-1b"]);
    let odd = [("Filter.1.Name", "colour"), ("Filter.1.Value.1", "red")];
    assert_eq!(client.ec2("DescribeSubnets", &odd).await.error().0, "InvalidParameterValue");
}
