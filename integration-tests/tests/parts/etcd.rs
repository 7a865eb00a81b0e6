//! An etcd cluster of three: it outlives a member, stops without a quorum, and heals.

use anyhow::{Context, Result};
use longshore_it::parts::EtcdCluster;

#[tokio::test]
async fn a_quorum_goes_on_without_its_leader_and_the_leader_catches_up() -> Result<()> {
    let mut etcd = EtcdCluster::start(3).await?;
    let mut client = etcd.client().await?;
    client.put("before", "1", None).await?;

    let leader = etcd.leader().await?;
    etcd.kill(leader)?;
    etcd.ready().await?;
    assert_ne!(etcd.leader().await?, leader, "a killed member leads");
    client.put("after", "2", None).await?;

    etcd.restart(leader).await?;
    let endpoint = etcd.endpoints()[leader].clone();
    let mut restarted = etcd_client::Client::connect([endpoint], None).await?;
    for (key, value) in [("before", "1"), ("after", "2")] {
        let answer = restarted.get(key, None).await?;
        let found = answer.kvs().first().with_context(|| format!("{key} is lost"))?;
        assert_eq!(found.value_str()?, value);
    }
    Ok(())
}

#[tokio::test]
async fn a_member_without_a_quorum_refuses_to_write() -> Result<()> {
    let mut etcd = EtcdCluster::start(3).await?;
    etcd.kill(1)?;
    etcd.kill(2)?;
    let options =
        etcd_client::ConnectOptions::new().with_timeout(std::time::Duration::from_secs(1));
    let mut client = etcd_client::Client::connect(&etcd.endpoints()[..1], Some(options)).await?;
    assert!(client.put("key", "value", None).await.is_err(), "one of three members wrote alone");

    etcd.restart(1).await?;
    client.put("key", "value", None).await?;
    Ok(())
}
