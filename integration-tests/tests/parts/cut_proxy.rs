//! The proxy passes bytes unchanged, and each fault does what it says to an echo server.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Result;
use longshore_it::parts::{CutProxy, Faults};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// Long enough for an echo on loopback on a busy machine.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// Nothing may arrive within this.
const SILENCE: Duration = Duration::from_millis(200);

/// A proxy in front of a server that sends back what it gets.
struct Echo {
    proxy: CutProxy,
    _server: JoinSet<()>,
}

impl Echo {
    async fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let proxy = CutProxy::start(listener.local_addr()?).await?;
        let mut server = JoinSet::new();
        server.spawn(echo(listener));
        Ok(Self { proxy, _server: server })
    }

    async fn connect(&self) -> Result<TcpStream> {
        Ok(TcpStream::connect(self.proxy.address()).await?)
    }
}

async fn echo(listener: TcpListener) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(async move {
            let (mut read, mut write) = stream.into_split();
            let _ = tokio::io::copy(&mut read, &mut write).await;
        });
    }
}

/// Sends `text` and returns what comes back until as many bytes have come, or the end.
async fn ask(stream: &mut TcpStream, text: &str) -> Result<String> {
    stream.write_all(text.as_bytes()).await?;
    let mut answer = Vec::new();
    let mut limited = stream.take(u64::try_from(text.len())?);
    timeout(ANSWER_LIMIT, limited.read_to_end(&mut answer)).await??;
    Ok(String::from_utf8(answer)?)
}

#[tokio::test]
async fn without_faults_bytes_pass_unchanged() -> Result<()> {
    let echo = Echo::start().await?;
    let mut stream = echo.connect().await?;
    let text = "0123456789".repeat(10_000);
    assert_eq!(ask(&mut stream, &text).await?, text);
    assert_eq!(echo.proxy.connections_total(), 1);
    Ok(())
}

#[tokio::test]
async fn a_server_answers_after_the_client_closed_its_side() -> Result<()> {
    let echo = Echo::start().await?;
    let mut stream = echo.connect().await?;
    stream.write_all(b"last words").await?;
    stream.shutdown().await?;
    let mut answer = String::new();
    timeout(ANSWER_LIMIT, stream.read_to_string(&mut answer)).await??;
    assert_eq!(answer, "last words");
    Ok(())
}

#[tokio::test]
async fn a_connection_is_cut_at_the_byte() -> Result<()> {
    let echo = Echo::start().await?;
    for (faults, expected) in [
        (Faults { cut_after_request_bytes: Some(0), ..Faults::default() }, ""),
        (Faults { cut_after_response_bytes: Some(4), ..Faults::default() }, "4567"),
        (Faults { cut_after_response_bytes: Some(0), ..Faults::default() }, ""),
    ] {
        echo.proxy.heal();
        let mut stream = echo.connect().await?;
        assert_eq!(ask(&mut stream, "0123").await?, "0123");
        echo.proxy.set(faults.clone());
        assert_eq!(ask(&mut stream, "456789").await.unwrap_or_default(), expected, "{faults:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_half_open_connection_is_silent_and_lives() -> Result<()> {
    let echo = Echo::start().await?;
    let mut stream = echo.connect().await?;
    assert_eq!(ask(&mut stream, "heard").await?, "heard");

    echo.proxy.set(Faults::half_open());
    stream.write_all(b"lost").await?;
    let mut byte = [0];
    assert!(timeout(SILENCE, stream.read(&mut byte)).await.is_err(), "a half-open peer spoke");

    echo.proxy.heal();
    assert_eq!(ask(&mut stream, "again").await?, "again");
    Ok(())
}

#[tokio::test]
async fn what_waits_on_a_stalled_connection_arrives_late_and_whole() -> Result<()> {
    let echo = Echo::start().await?;
    let mut stream = echo.connect().await?;
    assert_eq!(ask(&mut stream, "heard").await?, "heard");

    echo.proxy.set(Faults::stalled());
    stream.write_all(b"late").await?;
    let mut bytes = [0; 4];
    assert!(timeout(SILENCE, stream.read(&mut bytes)).await.is_err(), "a stalled peer spoke");

    echo.proxy.heal();
    timeout(ANSWER_LIMIT, stream.read_exact(&mut bytes)).await??;
    assert_eq!(&bytes, b"late");
    Ok(())
}

#[tokio::test]
async fn the_servers_behind_a_proxy_take_turns_and_one_that_is_gone_is_passed_over() -> Result<()> {
    let (one, two) = (Echo::start().await?, Echo::start().await?);
    let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?.local_addr()?;
    let both = [one.proxy.address(), gone, two.proxy.address()];
    let proxy = CutProxy::before(&both).await?;
    for _ in 0..both.len() {
        let mut stream = TcpStream::connect(proxy.address()).await?;
        assert_eq!(ask(&mut stream, "heard").await?, "heard");
    }
    let [first, second] = [&one, &two].map(|echo| echo.proxy.connections_total());
    assert_eq!((first, second), (1, 2));
    Ok(())
}

#[tokio::test]
async fn latency_is_added_and_cuts_and_refusals_end_connections() -> Result<()> {
    let echo = Echo::start().await?;
    let latency = Duration::from_millis(40);
    echo.proxy.set(Faults { latency, ..Faults::default() });
    let mut stream = echo.connect().await?;
    let started = Instant::now();
    ask(&mut stream, "slow").await?;
    assert!(started.elapsed() >= 2 * latency, "there and back took {:?}", started.elapsed());

    echo.proxy.cut();
    assert_eq!(timeout(ANSWER_LIMIT, stream.read(&mut [0])).await?.unwrap_or(0), 0);
    echo.proxy.set(Faults { refuse: true, ..Faults::default() });
    let mut refused = echo.connect().await?;
    assert_eq!(timeout(ANSWER_LIMIT, refused.read(&mut [0])).await?.unwrap_or(0), 0);
    Ok(())
}
