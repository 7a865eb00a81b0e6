//! `longshore certificates` and `longshore enroll`: who is who, without any service beside.
//!
//! Invariant: what is to be signed is decided by [`renewal`], which reads neither clock nor
//! cluster; here are the files and Secrets around it. A private key is printed by `enroll` alone.

mod files;
mod renewal;
mod secrets;

use std::time::SystemTime;

use anyhow::Context as _;
use longshore_authority::{Authority, Known, Who, days};
use serde::Serialize;

use self::renewal::{Change, Pair};
use crate::args::{AuthorityArgs, Certificates, EnrollArgs, Output, RenewArgs, SignArgs};
use crate::terminal::{Answer, Ending, Style, table_text};

/// Makes or renews certificates.
pub async fn run(what: &Certificates, style: Style) -> Answer {
    answered(match what {
        Certificates::Authority(args) => authority(args),
        Certificates::Sign(args) => sign(args),
        Certificates::Renew(args) => renew(args, style).await,
    })
}

/// Gives a further cluster its identity.
pub async fn enroll(args: &EnrollArgs) -> Answer {
    answered(enrolled(args).await)
}

fn answered(outcome: anyhow::Result<String>) -> Answer {
    match outcome {
        Ok(text) => Answer { text, ..Answer::default() },
        Err(error) => Answer::error(Ending::Failed, &format!("{error:#}")),
    }
}

fn authority(args: &AuthorityArgs) -> anyhow::Result<String> {
    let authority = Authority::new(SystemTime::now())?;
    files::write_authority(&args.out_dir, authority.own())?;
    let folder = args.out_dir.display();
    Ok(format!("{folder}/ca.crt: what others trust\n{folder}/ca.key: what signs; keep it secret\n"))
}

fn sign(args: &SignArgs) -> anyhow::Result<String> {
    let own = files::read_authority(&args.authority_dir)?;
    let folder = args.authority_dir.display();
    let authority = Authority::read(own).with_context(|| folder.to_string())?;
    let life = days(args.days.into());
    let who = Who { identity: args.identity.clone(), hosts: args.hosts.clone() };
    let signed = authority.sign(&who, SystemTime::now(), life)?;
    files::write(&args.out_dir, &signed, &authority.own().certificate)?;
    let folder = args.out_dir.display();
    Ok(format!(
        "{} for {} days: --tls-cert {folder}/tls.crt --tls-key {folder}/tls.key --tls-ca {folder}/ca.crt\n",
        args.identity, args.days
    ))
}

/// What became of a certificate.
#[derive(Serialize)]
struct Row {
    secret: String,
    identity: String,
    until: String,
    change: Change,
}

async fn renew(args: &RenewArgs, style: Style) -> anyhow::Result<String> {
    let secrets = secrets::Secrets::new(args.access.client().await?, &args.namespace);
    let now = SystemTime::now();
    let (pair, change) =
        secrets.change(&args.authority, |held| renewal::authority(held, now)).await?;
    let mut rows = vec![row(&args.authority, "authority", &pair, change)?];
    for wanted in &args.certificates {
        let decide = |held: Option<Pair>| renewal::certificate(held, &wanted.who, &pair, now);
        let (signed, change) = secrets.change(&wanted.secret, decide).await?;
        rows.push(row(&wanted.secret, &wanted.who.identity.to_string(), &signed, change)?);
    }
    Ok(match args.output {
        Output::Json => serde_json::to_string_pretty(&rows)? + "\n",
        Output::Table => {
            let mut table = style.table(&["SECRET", "IDENTITY", "UNTIL", ""]);
            for Row { secret, identity, until, change } in &rows {
                table.add_row([secret, identity, until, change.as_str()]);
            }
            table_text(&table)
        }
    })
}

fn row(secret: &str, identity: &str, pair: &Pair, change: Change) -> anyhow::Result<Row> {
    let until = jiff::Timestamp::try_from(Known::read(&pair.certificate)?.not_after)?;
    Ok(Row {
        secret: secret.to_owned(),
        identity: identity.to_owned(),
        until: until.strftime("%Y-%m-%d").to_string(),
        change,
    })
}

async fn enrolled(args: &EnrollArgs) -> anyhow::Result<String> {
    let secrets = secrets::Secrets::new(args.access.client().await?, &args.namespace);
    let held = secrets.read(&args.authority).await?.with_context(|| {
        format!(
            "there is no Secret {}/{}; name the authority's with --authority and --namespace",
            args.namespace, args.authority
        )
    })?;
    let trusted = held.trusted.clone();
    let who = Who { identity: args.identity.clone(), hosts: args.hosts.clone() };
    let authority = Authority::read(held.signed()).with_context(|| args.authority.clone())?;
    let signed = authority.sign(&who, SystemTime::now(), days(args.days.into()))?;
    let pair = Pair { trusted, next: None, ..Pair::of(signed) };
    secrets::manifest(&args.secret, &pair)
}
