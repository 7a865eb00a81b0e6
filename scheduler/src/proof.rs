//! Whether a watcher is the cluster that it says it is.
//!
//! Invariant: where a connection has proved an identity, nothing that is said over it about name,
//! account and region of the cluster contradicts that: not at first, and not later.

use longshore_proto::cluster::v1::Hello;
use longshore_proto::reason::Reason;
use longshore_proto::types::v1::ClusterFacts;
use longshore_runtime::identity::Identity;
use tonic::Status;

/// Checks who says hello, and fills in what it leaves to its certificate.
///
/// # Errors
/// When it is another cluster than its certificate says.
pub fn complete(hello: &mut Hello, identity: Option<&Identity>) -> Result<(), Box<Status>> {
    let Some(Identity::Cluster { account, region, .. }) = identity else { return Ok(()) };
    check(identity, [&hello.account_id, &hello.region, &hello.cluster_id])?;
    hello.account_id.clone_from(account);
    hello.region.clone_from(region);
    Ok(())
}

/// Checks what is told of a cluster.
///
/// # Errors
/// When it is told of another one.
pub fn confirm(facts: &ClusterFacts, identity: Option<&Identity>) -> Result<(), Box<Status>> {
    check(identity, [&facts.account_id, &facts.region, &facts.name])
}

/// Account, region and name as they are said, and as they are proven; what is not said is not
/// wrong.
fn check(identity: Option<&Identity>, said: [&String; 3]) -> Result<(), Box<Status>> {
    let Some(proven @ Identity::Cluster { account, region, name }) = identity else {
        return Ok(());
    };
    let agree = |(said, proven): (&&String, _)| said.is_empty() || *said == proven;
    if said.iter().zip([account, region, name]).all(agree) {
        return Ok(());
    }
    let [account, region, name] = said.map(|part| if part.is_empty() { "?" } else { part });
    Err(Box::new(Reason::Forbidden.status(format!(
        "the certificate is of {proven}, and the watcher speaks for cluster {account}/{region}/{name}; \
         start it with --cluster-name, --region and --account-id of its certificate, or enroll that \
         cluster"
    ))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prod() -> Identity {
        "longshore://cluster/111122223333/us-east-1/prod".parse().unwrap()
    }

    fn hello(account: &str, region: &str, name: &str) -> Hello {
        let [account_id, region, cluster_id] = [account, region, name].map(str::to_owned);
        Hello { account_id, region, cluster_id, ..Hello::default() }
    }

    #[test]
    fn a_watcher_is_its_own_cluster_and_no_other() {
        let told = |mut hello: Hello| complete(&mut hello, Some(&prod())).map(|()| hello);
        let whole = hello("111122223333", "us-east-1", "prod");
        assert_eq!(told(whole.clone()).unwrap(), whole);
        assert_eq!(told(hello("", "", "prod")).unwrap(), whole, "the certificate says the rest");
        for wrong in [
            hello("", "", "staging"),
            hello("", "eu-west-1", "prod"),
            hello("444455556666", "", "prod"),
        ] {
            let status = told(wrong.clone()).unwrap_err();
            assert!(status.message().contains(&wrong.cluster_id), "{status}");
            assert_eq!(status.code(), tonic::Code::PermissionDenied);
        }
    }

    #[test]
    fn what_is_told_later_is_of_the_same_cluster() {
        let facts = |region: &str| ClusterFacts {
            name: "prod".to_owned(),
            region: region.to_owned(),
            ..ClusterFacts::default()
        };
        assert!(confirm(&facts("us-east-1"), Some(&prod())).is_ok());
        assert!(confirm(&facts(""), Some(&prod())).is_ok());
        assert!(confirm(&facts("eu-west-1"), Some(&prod())).is_err());
        assert!(confirm(&facts("eu-west-1"), None).is_ok(), "nothing was proven");
    }
}
