//! AWS's error codes and what they mean: the one table.
//!
//! Invariant: a code that is not in the table is a rejection, never a silent retry; an answer that
//! never came is of unknown outcome.

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::display::DisplayErrorContext;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use crate::cloud::{Class, CloudError};

/// A capacity reservation has ended or was never there: what was in it is not to be had.
pub(super) const RESERVATION_GONE: &str = "InvalidCapacityReservationId.NotFound";

/// Codes and their classes. Words in the message decide where a code has several meanings.
const TABLE: &[(&str, Class)] = &[
    ("InsufficientInstanceCapacity", Class::Capacity),
    ("InsufficientCapacity", Class::Capacity),
    ("UnfulfillableCapacity", Class::Capacity),
    ("Unsupported", Class::Capacity),
    ("ReservationCapacityExceeded", Class::Capacity),
    (RESERVATION_GONE, Class::Capacity),
    ("InsufficientFreeAddressesInSubnet", Class::Addresses),
    ("MaxSpotInstanceCountExceeded", Class::Quota),
    ("VcpuLimitExceeded", Class::Quota),
    ("MaxFleetCountExceeded", Class::Quota),
    ("InstanceLimitExceeded", Class::Quota),
    ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", Class::SpotRole),
    ("UnauthorizedOperation", Class::Unauthorized),
    ("AccessDenied", Class::Unauthorized),
    ("AccessDeniedException", Class::Unauthorized),
    ("AuthorizationError", Class::Unauthorized),
    ("AuthFailure", Class::Unauthorized),
    ("UnrecognizedClientException", Class::Unauthorized),
    ("InvalidClientTokenId", Class::Unauthorized),
    ("ExpiredToken", Class::Unauthorized),
    ("SignatureDoesNotMatch", Class::Unauthorized),
    ("RequestLimitExceeded", Class::Throttled),
    ("Throttling", Class::Throttled),
    ("ThrottlingException", Class::Throttled),
    ("ThrottledException", Class::Throttled),
    ("TooManyRequestsException", Class::Throttled),
    ("InvalidLaunchTemplateName.NotFoundException", Class::TemplateMissing),
    ("InvalidLaunchTemplateId.NotFound", Class::TemplateMissing),
    ("IdempotentParameterMismatch", Class::TokenReused),
    ("InvalidInstanceID.NotFound", Class::NotFound),
    ("InvalidSubnetID.NotFound", Class::NotFound),
    ("InvalidGroup.NotFound", Class::NotFound),
    ("InvalidAMIID.NotFound", Class::NotFound),
    ("InvalidAMIID.Unavailable", Class::NotFound),
    ("QueueDoesNotExist", Class::NotFound),
    ("AWS.SimpleQueueService.NonExistentQueue", Class::NotFound),
    ("NoSuchEntity", Class::NotFound),
    ("ParameterNotFound", Class::NotFound),
    ("ResourceNotFoundException", Class::NotFound),
    ("InvalidLaunchTemplateName.AlreadyExistsException", Class::Exists),
    ("EntityAlreadyExists", Class::Exists),
    ("LimitExceeded", Class::Quota),
    ("InternalError", Class::Unknown),
    ("InternalFailure", Class::Unknown),
    ("ServiceUnavailable", Class::Unknown),
    ("Unavailable", Class::Unknown),
    ("RequestTimeout", Class::Unknown),
];

/// What a code and its message mean.
#[must_use]
pub fn classify(code: &str, message: &str) -> Class {
    let names_profile =
        message.contains("iamInstanceProfile.name") || message.contains("instance profile");
    if names_profile && code.starts_with("InvalidParameterValue") {
        return Class::Profile;
    }
    if message.contains("spread placement group") && message.contains("limit") {
        return Class::Capacity;
    }
    TABLE.iter().find(|(known, _)| *known == code).map_or(Class::Rejected, |(_, class)| *class)
}

/// A cloud error with its class.
#[must_use]
pub fn error(action: &'static str, code: &str, message: &str, request_id: &str) -> CloudError {
    CloudError {
        class: classify(code, message),
        action,
        code: code.to_owned(),
        message: message.to_owned(),
        request_id: request_id.to_owned(),
    }
}

/// What the SDK's error amounts to.
pub fn from_sdk<E>(action: &'static str, failure: &SdkError<E, HttpResponse>) -> CloudError
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    if let SdkError::ServiceError(answer) = failure {
        let meta = answer.err().meta();
        let request_id = meta.extra("aws_request_id").unwrap_or_default();
        let code = meta.code().unwrap_or("Unknown");
        let mut found = error(action, code, meta.message().unwrap_or_default(), request_id);
        if found.class == Class::Rejected && answer.raw().status().is_server_error() {
            found.class = Class::Unknown;
        }
        return found;
    }
    // Not even sent, when it could not be built or no credentials were found.
    let built = !matches!(failure, SdkError::ConstructionFailure(_));
    CloudError {
        class: if built { Class::Unknown } else { Class::Rejected },
        action,
        code: if built { "NoAnswer" } else { "NotSent" }.to_owned(),
        message: DisplayErrorContext(failure).to_string(),
        request_id: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_classified() {
        let table = [
            ("InsufficientInstanceCapacity", "", Class::Capacity),
            ("InsufficientFreeAddressesInSubnet", "", Class::Addresses),
            ("VcpuLimitExceeded", "", Class::Quota),
            ("UnauthorizedOperation", "", Class::Unauthorized),
            ("RequestLimitExceeded", "", Class::Throttled),
            ("IdempotentParameterMismatch", "", Class::TokenReused),
            ("InvalidLaunchTemplateName.NotFoundException", "", Class::TemplateMissing),
            ("InternalError", "", Class::Unknown),
            ("InvalidParameterValue", "subnet is odd", Class::Rejected),
            ("SomethingNew", "", Class::Rejected),
            (
                "InvalidParameterValue",
                "Value (eks-node-role-dev) for parameter iamInstanceProfile.name is invalid",
                Class::Profile,
            ),
        ];
        for (code, message, class) in table {
            assert_eq!(classify(code, message), class, "{code}");
        }
    }

    #[test]
    fn no_code_is_listed_twice() {
        let mut codes: Vec<_> = TABLE.iter().map(|(code, _)| code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), TABLE.len());
    }
}
