//! Watches: resume, selectors, bookmarks, expiry, streaming lists.

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::runtime::watcher;
use serde_json::json;

use super::support::{cluster, create, names, within};

fn told(event: &WatchEvent<ConfigMap>) -> String {
    let name = |map: &ConfigMap| map.metadata.name.clone().unwrap_or_default();
    match event {
        WatchEvent::Added(map) => format!("ADDED {}", name(map)),
        WatchEvent::Modified(map) => format!("MODIFIED {}", name(map)),
        WatchEvent::Deleted(map) => format!("DELETED {}", name(map)),
        WatchEvent::Bookmark(_) => "BOOKMARK".to_owned(),
        WatchEvent::Error(status) => format!("ERROR {} {}", status.code, status.reason),
    }
}

async fn first(
    maps: &Api<ConfigMap>,
    params: &WatchParams,
    since: &str,
    count: usize,
) -> Vec<String> {
    let stream = maps.watch(params, since).await.unwrap();
    within("events of the watch", stream.take(count).map_ok(|event| told(&event)).try_collect())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_watch_resumes_where_it_is_told() {
    let (cluster, client) = cluster().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let made = create(&maps, json!({ "metadata": { "name": "a" } })).await;
    create(&maps, json!({ "metadata": { "name": "b" } })).await;
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let since = made.metadata.resource_version.unwrap();
    let seen = first(&maps, &WatchParams::default(), &since, 2).await;
    assert_eq!(seen, ["ADDED b", "DELETED a"]);
    let seen = first(&maps, &WatchParams::default(), "0", 1).await;
    assert_eq!(seen, ["ADDED b"], "without a version the present state comes first");
    cluster.stop().await;
}

#[tokio::test]
async fn leaving_a_selector_is_a_deletion_and_entering_it_an_addition() {
    let (cluster, client) = cluster().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let made = create(&maps, json!({ "metadata": { "name": "a", "labels": { "on": "1" } } })).await;
    for value in ["0", "1"] {
        let patch = json!({ "metadata": { "labels": { "on": value } } });
        maps.patch("a", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
    let params = WatchParams::default().labels("on=1");
    let seen = first(&maps, &params, &made.metadata.resource_version.unwrap(), 2).await;
    assert_eq!(seen, ["DELETED a", "ADDED a"]);
    cluster.stop().await;
}

#[tokio::test]
async fn compacted_history_is_gone_and_a_watcher_recovers_from_it() {
    let (cluster, client) = cluster().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let made = create(&maps, json!({ "metadata": { "name": "a" } })).await;
    create(&maps, json!({ "metadata": { "name": "b" } })).await;
    cluster.compact();
    let since = made.metadata.resource_version.unwrap();
    let seen = first(&maps, &WatchParams::default(), &since, 1).await;
    assert_eq!(seen, ["ERROR 410 Expired"]);
    let listed = super::support::until(&maps, "both maps", |maps| maps.len() >= 2).await;
    assert!(names(&listed).contains(&"b".to_owned()));
    cluster.stop().await;
}

#[tokio::test]
async fn a_streaming_list_ends_with_a_marked_bookmark() {
    let (cluster, client) = cluster().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "kube-public");
    create(&maps, json!({ "metadata": { "name": "a" } })).await;
    let config = watcher::Config::default().streaming_lists();
    let stream = watcher(maps.clone(), config);
    let events: Vec<String> =
        within("initial events", stream.take(3).map_ok(|event| event.to_string()).try_collect())
            .await
            .unwrap();
    assert_eq!(events, ["Init", "InitApply(a)", "InitDone"]);
    cluster.stop().await;
}

#[tokio::test]
async fn a_quiet_watch_ends_with_its_timeout_and_a_bookmark() {
    let (cluster, client) = cluster().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let params = WatchParams::default().timeout(1);
    let since = maps.list(&Default::default()).await.unwrap().metadata.resource_version.unwrap();
    let stream = maps.watch(&params, &since).await.unwrap();
    let all: Vec<String> =
        within("the end of the watch", stream.map_ok(|event| told(&event)).try_collect())
            .await
            .unwrap();
    assert_eq!(all, ["BOOKMARK"]);
    cluster.stop().await;
}
