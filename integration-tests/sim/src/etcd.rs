//! etcd, as the actuators of a site share it: one store behind three members.
//!
//! Invariant: what a member answers is what the store says at that moment; a member without a
//! quorum answers nothing, and leases wait until there is a leader again, as etcd's do.

mod election;
mod member;
mod model;
mod serve;

/// The wire, generated from the part of etcd's API that is served.
#[allow(
    missing_docs,
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    reason = "generated from etcd's own names and numbers"
)]
mod etcdserverpb {
    tonic::include_proto!("etcdserverpb");
}

/// The wire of elections.
#[allow(
    missing_docs,
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    reason = "generated from etcd's own names and numbers"
)]
mod v3electionpb {
    tonic::include_proto!("v3electionpb");
}

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::clock::WallClock;
use crate::net::Net;
use crate::random::Random;

pub use model::{Change, Model};

/// Members of a cluster.
pub const MEMBERS: usize = 3;
/// Port that members listen on.
const PORT: u16 = 2379;

/// What goes wrong with etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Troubles {
    /// There is no leader: nothing is answered.
    pub no_quorum: bool,
    /// This member has lost the others.
    pub cut_member: Option<usize>,
    /// Percent of the requests that are refused without effect.
    pub refused: u64,
    /// Percent of the requests that take effect, and are answered with an error.
    pub reply_lost: u64,
}

/// Is told of each change, before anybody else can see it.
pub type Observer = Box<dyn Fn(&Change) + Send>;

struct State {
    model: Model,
    troubles: Troubles,
    random: Random,
    observers: Vec<Observer>,
}

/// The etcd of a site. Clones are the same one.
#[derive(Clone)]
pub struct Etcd {
    state: Arc<Mutex<State>>,
    clock: WallClock,
    /// Grows whenever a key, a lease or the weather changes.
    changed: watch::Sender<u64>,
    /// Grows whenever all streams of observers are ended.
    cut: watch::Sender<u64>,
    /// Number of the site.
    site: u8,
}

impl Etcd {
    /// An empty one; its members listen once [`Etcd::serve`] is called.
    #[must_use]
    pub fn new(site: usize, clock: WallClock, random: Random) -> Self {
        let state = State {
            model: Model::default(),
            troubles: Troubles::default(),
            random,
            observers: Vec::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            clock,
            changed: watch::Sender::new(0),
            cut: watch::Sender::new(0),
            site: u8::try_from(site).unwrap_or(u8::MAX),
        }
    }

    /// Address of a member.
    #[must_use]
    pub fn host(&self, member: usize) -> IpAddr {
        let last = u8::try_from(member).unwrap_or(u8::MAX);
        IpAddr::V4(Ipv4Addr::new(10, 4, self.site, last))
    }

    /// Where all members listen.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        (0..MEMBERS).map(|member| format!("http://{}", self.address(member))).collect()
    }

    /// Begins to serve, and to end leases when their time has come.
    pub fn serve(&self, net: &Net) {
        for member in 0..MEMBERS {
            let listener = net.listen(self.address(member));
            crate::process::start(serve::serve(self.clone(), member, listener));
        }
        crate::process::start(self.clone().keep_time());
    }

    /// Tells `observer` of all changes from now on.
    pub fn observe(&self, observer: Observer) {
        self.lock().observers.push(observer);
    }

    /// Changes what goes wrong. When there is a leader again, it gives all leases their whole life
    /// anew.
    pub fn set(&self, change: impl FnOnce(&mut Troubles)) {
        let mut state = self.lock();
        let before = state.troubles.no_quorum;
        change(&mut state.troubles);
        if before && !state.troubles.no_quorum {
            let now_ms = self.clock.now_ms();
            state.model.extend_leases(now_ms);
        }
        drop(state);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Ends the streams of those who observe an election, as a compaction that overtakes them does.
    pub fn cut_observers(&self) {
        self.cut.send_modify(|count| *count += 1);
    }

    /// Ends all leases at once, as somebody with etcdctl can.
    pub fn revoke_leases(&self) {
        self.with(|model, _| model.expire(i64::MAX));
    }

    /// Forgets all keys of which the name contains this; nobody is told.
    pub fn forget(&self, part: &str) {
        let mut state = self.lock();
        let all: Vec<Vec<u8>> = state.model.under(b"").map(|entry| entry.key.clone()).collect();
        for key in all.iter().filter(|key| String::from_utf8_lossy(key).contains(part)) {
            state.model.delete(key);
        }
        state.model.take_changes();
    }

    /// Looks at or changes the store at the present moment.
    pub fn with<T>(&self, act: impl FnOnce(&mut Model, i64) -> T) -> T {
        let mut state = self.lock();
        let now_ms = self.clock.now_ms();
        if !state.troubles.no_quorum {
            state.model.expire(now_ms);
        }
        let due_ms = state.model.next_due_ms();
        let result = act(&mut state.model, now_ms);
        let prolonged = due_ms != state.model.next_due_ms();
        let changes = state.model.take_changes();
        for change in &changes {
            state.observers.iter().for_each(|observer| observer(change));
        }
        drop(state);
        if prolonged || !changes.is_empty() {
            self.changed.send_modify(|count| *count += 1);
        }
        result
    }

    /// Looks at the store as it is.
    pub fn read<T>(&self, read: impl FnOnce(&Model) -> T) -> T {
        read(&self.lock().model)
    }

    /// True while a member can answer.
    fn answers(&self, member: usize) -> bool {
        let state = self.lock();
        !state.troubles.no_quorum && state.troubles.cut_member != Some(member)
    }

    /// By chance: whether a request is refused.
    fn refuses(&self) -> bool {
        let mut state = self.lock();
        let percent = state.troubles.refused;
        percent > 0 && state.random.chance(percent)
    }

    /// By chance: whether an answer is lost.
    fn loses(&self) -> bool {
        let mut state = self.lock();
        let percent = state.troubles.reply_lost;
        percent > 0 && state.random.chance(percent)
    }

    async fn keep_time(self) {
        let mut changes = self.changed.subscribe();
        loop {
            changes.mark_unchanged();
            let due_ms = {
                let state = self.lock();
                state.model.next_due_ms().filter(|_| !state.troubles.no_quorum)
            };
            let due = async {
                match due_ms {
                    Some(due_ms) => tokio::time::sleep_until(self.clock.instant(due_ms)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                // The sender is ours: it is there for as long as we are.
                _ = changes.changed() => {}
                () = due => self.with(|_, _| ()),
            }
        }
    }

    fn address(&self, member: usize) -> SocketAddr {
        SocketAddr::new(self.host(member), PORT)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
