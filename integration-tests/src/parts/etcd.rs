//! An etcd cluster of real members on loopback, any of which can be killed, frozen and restarted.
//!
//! Invariant: a member keeps its name, ports and data folder over restarts. fsync is off: a killed
//! process loses nothing (the page cache survives it), and tests do not wait for the disk.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use etcd_client::{Client, ConnectOptions};
use tempfile::TempDir;

use super::{Process, binary, poll, ports};

/// Within this a member or the cluster has to become ready on a busy machine.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// Longest wait for one answer while asking whether a cluster is ready.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// A running etcd cluster.
pub struct EtcdCluster {
    members: Vec<Member>,
    // Removed after the members, which write into it, are gone.
    _dir: TempDir,
}

struct Member {
    name: String,
    client_port: u16,
    peer_port: u16,
    dir: PathBuf,
    /// None while killed.
    process: Option<Process>,
}

impl EtcdCluster {
    /// Starts `size` members and waits until they serve linearizable reads.
    ///
    /// # Errors
    /// When etcd is not installed or does not become ready; the error holds the end of its log.
    pub async fn start(size: usize) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("longshore-etcd-").tempdir()?;
        let members = (0..size).map(|index| Member::new(index, dir.path())).collect::<Result<_>>();
        let mut cluster = Self { members: members?, _dir: dir };
        for index in 0..size {
            cluster.launch(index)?;
        }
        cluster.ready().await?;
        Ok(cluster)
    }

    /// Client addresses of all members, killed ones too: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(Member::endpoint).collect()
    }

    /// Where all members serve clients, for a [`super::CutProxy`] in front of one.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let ports = self.members.iter().map(|member| member.client_port);
        ports.map(|port| (Ipv4Addr::LOCALHOST, port).into()).collect()
    }

    /// A client that knows all members.
    ///
    /// # Errors
    /// When none of them can be reached.
    pub async fn client(&self) -> Result<Client> {
        Ok(Client::connect(self.endpoints(), None).await?)
    }

    /// Kills a member (SIGKILL) and waits until it is gone.
    ///
    /// # Errors
    /// When there is no such member or it is down already.
    pub fn kill(&mut self, member: usize) -> Result<()> {
        self.process(member)?.kill()?;
        self.member(member)?.process = None;
        Ok(())
    }

    /// Starts a killed member again, on its data, and waits until it serves.
    ///
    /// # Errors
    /// When there is no such member or it does not become ready.
    pub async fn restart(&mut self, member: usize) -> Result<()> {
        self.launch(member)?;
        let endpoint = self.member(member)?.endpoint();
        self.serves(vec![endpoint]).await
    }

    /// Freezes a member: its connections stay open and nothing answers.
    ///
    /// # Errors
    /// When there is no such member or it is down.
    pub fn freeze(&mut self, member: usize) -> Result<()> {
        self.process(member)?.freeze()
    }

    /// Lets a frozen member go on.
    ///
    /// # Errors
    /// When there is no such member or it is down.
    pub fn thaw(&mut self, member: usize) -> Result<()> {
        self.process(member)?.thaw()
    }

    /// Index of the member that leads the cluster.
    ///
    /// # Errors
    /// When no member answers, or the answering ones know no leader.
    pub async fn leader(&self) -> Result<usize> {
        for (index, member) in self.members.iter().enumerate() {
            let Ok(mut client) = connect(vec![member.endpoint()]).await else { continue };
            let Ok(status) = client.status().await else { continue };
            let own = status.header().context("etcd's status has no header")?.member_id();
            if status.leader() == own {
                return Ok(index);
            }
        }
        anyhow::bail!("no running etcd member says that it leads; wait for an election to end")
    }

    /// Waits until a quorum serves reads.
    ///
    /// # Errors
    /// When it does not become ready, with the log of a member that ended.
    pub async fn ready(&mut self) -> Result<()> {
        self.serves(self.endpoints()).await
    }

    async fn serves(&mut self, endpoints: Vec<String>) -> Result<()> {
        poll::until("etcd serves", READY_LIMIT, || {
            let mut running = self.members.iter_mut().filter_map(|it| it.process.as_mut());
            let alive = running.try_for_each(Process::ensure_running);
            let endpoints = endpoints.clone();
            async move {
                if alive.is_err() {
                    return Ok(alive);
                }
                connect(endpoints).await?.get("ready", None).await?;
                anyhow::Ok(Ok(()))
            }
        })
        .await?
    }

    fn launch(&mut self, index: usize) -> Result<()> {
        let peers: Vec<String> = self.members.iter().map(Member::peer).collect();
        self.member(index)?.launch(&peers.join(","))
    }

    fn member(&mut self, index: usize) -> Result<&mut Member> {
        let size = self.members.len();
        let member = self.members.get_mut(index);
        member.with_context(|| format!("etcd member {index} of {size} does not exist"))
    }

    fn process(&mut self, index: usize) -> Result<&mut Process> {
        let member = self.member(index)?;
        let down = || format!("etcd member {index} is down; restart it first");
        member.process.as_mut().with_context(down)
    }
}

impl Member {
    fn new(index: usize, dir: &Path) -> Result<Self> {
        Ok(Self {
            name: format!("etcd-{index}"),
            client_port: ports::free()?,
            peer_port: ports::free()?,
            dir: dir.to_owned(),
            process: None,
        })
    }

    fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.client_port)
    }

    fn peer(&self) -> String {
        format!("{}=http://127.0.0.1:{}", self.name, self.peer_port)
    }

    fn launch(&mut self, cluster: &str) -> Result<()> {
        let client = self.endpoint();
        let peer = format!("http://127.0.0.1:{}", self.peer_port);
        let mut command = Command::new(binary::part_program("etcd", "etcd")?);
        command.arg("--name").arg(&self.name).arg("--data-dir").arg(self.dir.join(&self.name));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", cluster, "--initial-cluster-state", "new"]);
        command.args(["--unsafe-no-fsync", "--log-level", "warn"]);
        self.process = Some(Process::start(&self.name, command, &self.dir)?);
        Ok(())
    }
}

async fn connect(endpoints: Vec<String>) -> Result<Client> {
    let options =
        ConnectOptions::new().with_timeout(ANSWER_LIMIT).with_connect_timeout(ANSWER_LIMIT);
    Ok(Client::connect(endpoints, Some(options)).await?)
}
