//! Who is let in, who is spoken with, and what becomes of files that change.

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType, date_time_ymd,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

const CLUSTER: &str = "longshore://cluster/111122223333/us-east-1/prod";
const SCHEDULER: &str = "longshore://scheduler";

/// An authority, and a folder for what it signs.
struct World {
    authority: CertifiedIssuer<'static, KeyPair>,
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(params, key).unwrap();
        Self { authority, dir: tempfile::tempdir().unwrap() }
    }

    fn of(uri: &str) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.subject_alt_names.push(SanType::URI(uri.try_into().unwrap()));
        params
    }

    /// Writes the files of somebody.
    fn write(&self, name: &str, params: &CertificateParams) -> TlsArgs {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        let put = |kind: &str, text: String| {
            let path = self.dir.path().join(format!("{name}.{kind}"));
            std::fs::write(&path, text).unwrap();
            Some(path)
        };
        TlsArgs {
            tls_cert: put("crt", certificate.pem()),
            tls_key: put("key", key.serialize_pem()),
            tls_ca: put("ca", self.authority.pem()),
            allow_plaintext: false,
        }
    }

    fn credentials(&self, uri: &str) -> Arc<Credentials> {
        let name = uri.replace([':', '/'], "-");
        self.write(&name, &Self::of(uri)).credentials().unwrap().unwrap()
    }
}

fn pair() -> (Stream, Stream) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    (Stream::new(ours), Stream::new(theirs))
}

/// What comes of a connection, at its server and at its client.
async fn meet(
    server: &Credentials,
    client: &Credentials,
    wanted: Server,
) -> (io::Result<Stream>, io::Result<Stream>) {
    let (ours, theirs) = pair();
    tokio::join!(server.accept(ours), client.connect(theirs, wanted))
}

fn said(outcome: io::Result<Stream>) -> String {
    outcome.err().map(|error| error.to_string()).unwrap_or_default()
}

#[tokio::test]
async fn both_ends_know_each_other() {
    let world = World::new();
    let (scheduler, watcher) = (world.credentials(SCHEDULER), world.credentials(CLUSTER));
    let (server, client) = meet(&scheduler, &watcher, Server::Scheduler).await;
    let (mut server, mut client) = (server.unwrap(), client.unwrap());
    assert_eq!(server.peer().identity.as_ref().map(ToString::to_string).as_deref(), Some(CLUSTER));
    assert_eq!(client.peer().tenant(), SCHEDULER);
    client.write_all(b"plan").await.unwrap();
    client.flush().await.unwrap();
    let mut heard = [0; 4];
    server.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"plan");
}

#[tokio::test]
async fn a_server_of_another_kind_is_not_spoken_with() {
    let world = World::new();
    let (scheduler, watcher) = (world.credentials(SCHEDULER), world.credentials(CLUSTER));
    let (_, client) = meet(&scheduler, &watcher, Server::Actuator).await;
    assert_eq!(said(client), "wanted Actuator, and this is longshore://scheduler");
    let (_, client) = meet(&watcher, &scheduler, Server::Scheduler).await;
    assert!(said(client).contains(CLUSTER));
}

#[tokio::test]
async fn strangers_are_not_let_in() {
    let (world, elsewhere) = (World::new(), World::new());
    let scheduler = world.credentials(SCHEDULER);
    let (server, client) =
        meet(&scheduler, &elsewhere.credentials(CLUSTER), Server::Scheduler).await;
    assert_eq!(
        (said(client).as_str(), server.is_err()),
        ("the other end's certificate is from no authority of --tls-ca", true)
    );

    // Speaks no TLS at all.
    let (ours, mut theirs) = pair();
    theirs.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    assert!(scheduler.accept(ours).await.is_err());
}

#[tokio::test]
async fn what_has_run_out_or_names_nobody_proves_nothing() {
    let world = World::new();
    let scheduler = world.credentials(SCHEDULER);
    let mut old = World::of(CLUSTER);
    (old.not_before, old.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(2001, 1, 1));
    let old = world.write("old", &old).credentials().unwrap().unwrap();
    let (server, _) = meet(&scheduler, &old, Server::Scheduler).await;
    assert!(said(server).contains("expired"));

    let nobody = world.write("nobody", &CertificateParams::default()).credentials();
    assert!(format!("{:#}", nobody.unwrap_err()).contains("carries no URI"));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_waited_for_longer_than_a_handshake_takes() {
    let scheduler = World::new().credentials(SCHEDULER);
    let (ours, _theirs) = pair();
    assert!(said(scheduler.accept(ours).await).contains("no TLS handshake in time"));
}

#[tokio::test]
async fn files_that_change_are_taken_over_and_useless_ones_are_not() {
    let world = World::new();
    let args = world.write("mine", &World::of(SCHEDULER));
    let mine = args.credentials().unwrap().unwrap();
    let actuator = "longshore://actuator/111122223333/us-east-1";
    let mut refused = None;

    world.write("mine", &World::of(actuator));
    mine.look(&mut refused);
    assert_eq!(mine.identity().to_string(), actuator);

    for (path, content) in [(&args.tls_key, "no key"), (&args.tls_cert, "")] {
        std::fs::write(path.as_deref().unwrap(), content).unwrap();
        mine.look(&mut refused);
        assert_eq!(mine.identity().to_string(), actuator, "{content}");
        assert!(refused.is_some());
    }
    world.write("mine", &World::of(SCHEDULER));
    mine.look(&mut refused);
    assert_eq!((mine.identity(), refused.is_none()), (Identity::Scheduler, true));
}

#[test]
fn errors_name_the_file() {
    let world = World::new();
    let good = world.write("good", &World::of(SCHEDULER));
    let other = world.write("other", &World::of(SCHEDULER));
    let missing = Some(Path::new("/nowhere/key").to_owned());
    for (args, says) in [
        (TlsArgs { tls_key: missing, ..good.clone() }, "/nowhere/key: the private key"),
        (TlsArgs { tls_key: other.tls_key, ..good.clone() }, "good.crt and"),
        (
            TlsArgs { tls_ca: good.tls_key.clone(), ..good.clone() },
            "good.key: holds no certificate",
        ),
    ] {
        let error = format!("{:#}", args.credentials().unwrap_err());
        assert!(error.contains(says), "{error}");
    }
    assert!(TlsArgs::default().credentials().unwrap().is_none());
}
