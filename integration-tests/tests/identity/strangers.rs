//! Clients without credentials, with those of others, and servers that are not what was asked for.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use longshore_authority::{Authority, RENEWED_LIFE, days};
use longshore_it::stage::keys::Keys;
use longshore_lab::region::ACCOUNT;
use longshore_proto::cluster::v1::cluster_service_client::ClusterServiceClient;
use longshore_proto::cluster::v1::sync_request::Message;
use longshore_proto::cluster::v1::{Hello, SyncRequest};
use longshore_proto::limits::PROTOCOL_VERSION;
use longshore_runtime::client::{channel, channel_to};
use longshore_runtime::identity::Identity;
use longshore_runtime::net::Network;
use longshore_runtime::platform::Platform;
use longshore_runtime::tls::Server;
use tonic::transport::{Certificate, Channel, ClientTlsConfig};
use tonic::{Code, Status};

use super::{ANY_PORT, APPLY, REGION, SYNC, Stand, call, is_forbidden};

const LIMIT: Duration = Duration::from_secs(60);

/// A channel of somebody who knows the authority and shows nothing.
fn without_certificate(url: &str, ca: &std::path::Path) -> Result<Channel> {
    let ca = Certificate::from_pem(std::fs::read(ca)?);
    let tls = ClientTlsConfig::new().ca_certificate(ca).domain_name("longshore");
    Ok(Channel::from_shared(url.to_owned())?.tls_config(tls)?.connect_lazy())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_shows_no_certificate_is_not_spoken_with() -> Result<()> {
    let stand = Stand::start().await?;
    let known = stand.keys.sign(&Identity::Scheduler)?.tls_ca.context("no file")?;
    for (url, method) in [(stand.scheduler.url(), SYNC), (stand.actuator.url(), APPLY)] {
        let plain = channel(&url.replace("https://", "http://"), &Network::System)?;
        for caller in [plain, without_certificate(&url, &known)?] {
            let status = call(caller, method).await.err().context("it was answered")?;
            ensure!(!is_forbidden(&status), "it was let as far as the table: {status:?}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_of_others_and_of_the_past_open_nothing() -> Result<()> {
    let stand = Stand::start().await?;
    let elsewhere = tempfile::tempdir()?;
    let foreign = Keys::new(elsewhere.path())?.platform(&Identity::Scheduler)?;
    let url = stand.actuator.url();
    let status = refused(&url, &foreign).await?;
    ensure!(status.message().contains("no authority of --tls-ca"), "{status:?}");
    // It trusts the authority, which does not know it.
    let other = Authority::new(SystemTime::now())?;
    let forged = other.sign(&Identity::Scheduler.into(), SystemTime::now(), RENEWED_LIFE)?;
    let past = SystemTime::now() - days(91);
    let over = stand.keys.sign_at(&Identity::Scheduler, past, RENEWED_LIFE)?;
    for (name, signed) in [("forged", forged), ("over", over)] {
        let credentials = stand.keys.write(name, &signed)?.credentials()?;
        refused(&url, &Platform { credentials, ..Platform::system() }).await?;
    }
    Ok(())
}

/// What a scheduler hears that is not let in.
async fn refused(url: &str, caller: &Platform) -> Result<Status> {
    let answer = call(channel_to(Server::Actuator, url, caller)?, APPLY).await;
    let status = answer.err().context("it was answered")?;
    // The connection fails: before the call, or when the call is on its way already, as a client
    // has done its part of the handshake before it hears what the server makes of it.
    let failed = matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled);
    ensure!(failed && !is_forbidden(&status), "{status:?}");
    Ok(status)
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_speaks_with_a_server_of_another_kind() -> Result<()> {
    let stand = Stand::start().await?;
    let watcher = "longshore://cluster/111122223333/us-east-1/lab".parse()?;
    let watcher = stand.keys.platform(&watcher)?;
    let answer = call(channel_to(Server::Scheduler, &stand.actuator.url(), &watcher)?, SYNC).await;
    let status = answer.err().context("it was answered")?;
    let parts = ["wanted Scheduler", "longshore://actuator/111122223333/us-east-1"];
    ensure!(parts.iter().all(|part| status.message().contains(part)), "{status:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_actuator_answers_for_its_own_region_only() -> Result<()> {
    let mut stand = Stand::start().await?;
    let [own, other] = [REGION, "eu-west-1"].map(|region| Identity::Actuator {
        account: ACCOUNT.to_owned(),
        region: region.to_owned(),
    });
    let signed = stand.keys.sign_at(&other, SystemTime::now(), RENEWED_LIFE)?;
    stand.keys.write(&own.to_string(), &signed)?;
    stand.actuator.process.wait_for_line("certificate changed", LIMIT).await?;
    let actuators = [stand.actuator.url()];
    let mut scheduler =
        stand.surroundings.start_scheduler_as("second", ANY_PORT, &actuators).await?;
    let line = scheduler.process.wait_for_line("answers for", LIMIT).await?;
    let parts = [other.to_string(), own.to_string()];
    ensure!(parts.iter().all(|part| line.contains(part)), "{line}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_speaks_for_its_own_cluster_only() -> Result<()> {
    let stand = Stand::start().await?;
    let watcher = "longshore://cluster/111122223333/us-east-1/lab".parse()?;
    let watcher = stand.keys.platform(&watcher)?;
    let channel = channel_to(Server::Scheduler, &stand.scheduler.url(), &watcher)?;
    let greet = async |cluster: &str, region: &str| {
        let hello = Hello {
            cluster_id: cluster.to_owned(),
            region: region.to_owned(),
            session_epoch: 1,
            protocol_version: PROTOCOL_VERSION,
            ..Hello::default()
        };
        let request = SyncRequest { message: Some(Message::Hello(hello)) };
        let mut client = ClusterServiceClient::new(channel.clone());
        client.sync(tokio_stream::once(request)).await.map(drop)
    };
    for (cluster, region) in [("prod", ""), ("lab", "eu-west-1")] {
        let status = greet(cluster, region).await.err().context("it was served")?;
        ensure!(is_forbidden(&status), "{status:?}");
        ensure!(status.message().contains("111122223333/us-east-1/lab"), "{status:?}");
    }
    greet("lab", "").await?;
    Ok(())
}
