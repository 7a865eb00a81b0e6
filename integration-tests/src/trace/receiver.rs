//! An OTLP receiver over gRPC, in this process.
//!
//! Invariant: keeps everything it was sent, in the order it came.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::ResourceSpans;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

type Store = Arc<Mutex<Vec<ResourceSpans>>>;

/// A running receiver; it ends with its handle.
pub struct TraceReceiver {
    endpoint: String,
    store: Store,
    _tasks: JoinSet<()>,
}

impl TraceReceiver {
    /// Starts a receiver on a free port of the loopback interface.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("trace receiver")?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let store = Store::default();
        let service = TraceServiceServer::new(Service(Arc::clone(&store)));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let incoming = TcpListenerStream::new(listener);
            // It ends when its handle is dropped; there is nobody left to tell then.
            let _ = Server::builder().add_service(service).serve_with_incoming(incoming).await;
        });
        Ok(Self { endpoint, store, _tasks: tasks })
    }

    /// Value for OTEL_EXPORTER_OTLP_ENDPOINT.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Everything received so far.
    #[must_use]
    pub fn received(&self) -> Vec<ResourceSpans> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Service(Store);

#[tonic::async_trait]
impl TraceService for Service {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let spans = request.into_inner().resource_spans;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(spans);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}
