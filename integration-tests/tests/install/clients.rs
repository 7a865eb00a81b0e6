//! Standalone mode answers other clients, whom it knows by their certificates.

use anyhow::{Context, Result, ensure};
use longshore_it::parts::poll;
use longshore_lab::region::ACCOUNT;

use super::site::{CLUSTER, LIMIT, REGION, Site};

/// Has the release answer, and asks it as somebody that it knows, and as somebody that it does not.
pub async fn are_answered(site: &Site) -> Result<()> {
    site.shell.run(&format!(
        "helm upgrade longshore deploy/chart --namespace kube-system --reuse-values --wait \
         --set planning.enabled=true,planning.clients.me={{explain}},settings.region={REGION} \
         --set-string settings.accountId={ACCOUNT}"
    ))?;
    let pods = site.shell.quiet("kubectl get pods --selector app=inflate --output name")?;
    let pod = pods.lines().next().context("no pod of inflate")?.trim_start_matches("pod/");
    let [known, unknown] = ["me", "stranger"].map(|who| question(site, who, pod));
    let (known, unknown) = (known?, unknown?);
    // The copy that works puts itself behind the Service once it does.
    poll::until("a client is answered", LIMIT, || async { site.shell.quiet(&known) }).await?;
    site.shell.run(&known)?;
    let refused = site.shell.run(&unknown).err().map(|error| error.to_string());
    let refused = refused.unwrap_or_default();
    ensure!(refused.contains("longshore://client/stranger may not call"), "{refused}");
    Ok(())
}

/// Gives somebody a certificate; returns how they ask where a pod goes.
fn question(site: &Site, who: &str, pod: &str) -> Result<String> {
    site.shell.run(&format!(
        "longshore enroll longshore://client/{who} --namespace kube-system --secret {who} \
         | kubectl apply --namespace kube-system --filename - && mkdir {who}"
    ))?;
    for file in ["tls.crt", "tls.key", "ca.crt"] {
        site.shell.quiet(&format!(
            "kubectl get secret {who} --namespace kube-system \
             --output go-template='{{{{index .data \"{file}\" | base64decode}}}}' >{who}/{file}"
        ))?;
    }
    let service = "kubectl get service longshore-scheduler --namespace kube-system";
    let address =
        site.shell.quiet(&format!("{service} --output jsonpath='{{.spec.clusterIP}}'"))?;
    Ok(format!(
        "longshore explain pod default/{pod} --cluster {CLUSTER} --scheduler https://{address}:7400 \
         --tls-cert {who}/tls.crt --tls-key {who}/tls.key --tls-ca {who}/ca.crt"
    ))
}
