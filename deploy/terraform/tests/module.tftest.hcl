# terraform test: no account is needed, the provider is mocked.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "111122223333" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_region" {
    defaults = { name = "ap-northeast-2" }
  }
  mock_data "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111122223333:role/existing" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111122223333:role/mock" }
  }
  mock_resource "aws_sqs_queue" {
    defaults = { arn = "arn:aws:sqs:ap-northeast-2:111122223333:mock" }
  }
}

variables {
  cluster_name  = "w1"
  oidc_provider = "oidc.eks.ap-northeast-2.amazonaws.com/id/EXAMPLED539D4633E53DE1B71EXAMPLE"
}

run "controller_has_the_policy_of_deploy_iam" {
  assert {
    condition     = jsondecode(aws_iam_role_policy.controller.policy) == jsondecode(file("../iam/rendered/w1-controller.json"))
    error_message = "the controller's policy differs from deploy/iam/rendered/w1-controller.json"
  }
  assert {
    condition     = strcontains(aws_iam_role.controller.assume_role_policy, "system:serviceaccount:kube-system:longshore")
    error_message = "the role does not trust the service account"
  }
  assert {
    condition     = length(aws_eks_pod_identity_association.controller) == 0
    error_message = "IRSA and Pod Identity at once"
  }
}

run "names_are_those_that_the_policy_admits" {
  assert {
    condition     = output.queue_name == "Karpenter-w1-SpotInterruptionQueue"
    error_message = "the policy admits another queue than ${output.queue_name}"
  }
  assert {
    condition     = output.node_role_name == "KarpenterNodeRole-w1"
    error_message = "the policy passes another role than ${output.node_role_name}"
  }
  assert {
    condition     = length(aws_cloudwatch_event_target.interruptions) == 5
    error_message = "five kinds of events reach the queue"
  }
}

run "an_existing_node_role_is_reused" {
  variables {
    node_role_name = "existing"
  }
  assert {
    condition     = length(aws_iam_role.node) == 0 && length(aws_eks_access_entry.node) == 0
    error_message = "a node role was made beside the existing one"
  }
  assert {
    condition     = strcontains(aws_iam_role_policy.pass_node_role[0].policy, "role/existing")
    error_message = "the controller may not pass the existing role"
  }
  assert {
    condition     = output.instance_profile_name == "KarpenterNode-w1"
    error_message = "no instance profile for the existing role"
  }
}

run "pod_identity_without_an_oidc_provider" {
  variables {
    oidc_provider = null
  }
  assert {
    condition     = length(aws_eks_pod_identity_association.controller) == 1
    error_message = "nothing ties the service account to the role"
  }
  assert {
    condition     = strcontains(aws_iam_role.controller.assume_role_policy, "pods.eks.amazonaws.com")
    error_message = "the role does not trust Pod Identity"
  }
}
