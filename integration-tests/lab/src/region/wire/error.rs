//! Errors as AWS sends them: a code, a message, an HTTP status.
//!
//! Invariant: every refusal a client can see is one of these, with AWS's own code.

/// Outcome of one API call.
pub type Result<T> = std::result::Result<T, AwsError>;

/// An AWS error reply. `Display` shows code and message as SDKs do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct AwsError {
    /// HTTP status.
    pub status: u16,
    /// AWS error code, for example `InvalidInstanceID.NotFound`.
    pub code: String,
    /// Text for people.
    pub message: String,
}

/// The protocols spoken here; they differ in how a reply is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// EC2's variant of Query, XML replies without a result wrapper.
    Ec2Query,
    /// Query with XML replies (IAM, STS); the namespace is the service's own.
    Query(&'static str),
    /// JSON with an `X-Amz-Target` header; the version is part of the content type.
    Json(&'static str),
    /// REST with JSON bodies (EKS).
    RestJson,
}

impl AwsError {
    /// An error of the caller: status 400.
    pub fn client(code: impl Into<String>, message: impl Into<String>) -> AwsError {
        AwsError { status: 400, code: code.into(), message: message.into() }
    }

    /// An error with a status of its own.
    pub fn with_status(
        status: u16,
        code: impl Into<String>,
        message: impl Into<String>,
    ) -> AwsError {
        AwsError { status, code: code.into(), message: message.into() }
    }

    /// EC2's complaint about a parameter that has to be there.
    pub fn missing_parameter(name: &str) -> AwsError {
        let message = format!("The request must contain the parameter {name}");
        AwsError::client("MissingParameter", message)
    }

    /// EC2's complaint about a value.
    pub fn invalid_parameter(message: impl Into<String>) -> AwsError {
        AwsError::client("InvalidParameterValue", message)
    }

    /// What a dry run answers when the real call would have gone through.
    pub fn dry_run() -> AwsError {
        let message = "Request would have succeeded, but DryRun flag is set.";
        AwsError::with_status(412, "DryRunOperation", message)
    }

    /// Throttling, in the code that the protocol's services use.
    pub fn throttled(protocol: Protocol) -> AwsError {
        match protocol {
            Protocol::Ec2Query => {
                AwsError::with_status(503, "RequestLimitExceeded", "Request limit exceeded.")
            }
            Protocol::Query(_) => AwsError::client("Throttling", "Rate exceeded"),
            Protocol::Json(_) | Protocol::RestJson => {
                AwsError::client("ThrottlingException", "Rate exceeded")
            }
        }
    }
}
