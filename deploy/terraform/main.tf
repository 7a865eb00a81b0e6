# What Longshore needs in an account: a role for itself, a role and an instance profile for its nodes,
# and a queue with interruption notices. The documents are those of deploy/iam.

data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}
data "aws_region" "current" {}

locals {
  documents = "${path.module}/../iam"
  queue     = jsondecode(templatefile("${local.documents}/interruption-queue.json", local.values))
  rules     = jsondecode(templatefile("${local.documents}/interruption-rules.json", local.values))
  trust     = var.oidc_provider == null ? "controller-trust-pod-identity" : "controller-trust"

  values = {
    cluster         = var.cluster_name
    account         = data.aws_caller_identity.current.account_id
    partition       = data.aws_partition.current.partition
    region          = data.aws_region.current.name
    oidc_provider   = var.oidc_provider == null ? "" : var.oidc_provider
    namespace       = var.namespace
    service_account = var.service_account
  }
}

# --- controller ---------------------------------------------------------------------------------

resource "aws_iam_role" "controller" {
  name               = "KarpenterControllerRole-${var.cluster_name}"
  assume_role_policy = templatefile("${local.documents}/${local.trust}.json", local.values)
  tags               = var.tags
}

resource "aws_iam_role_policy" "controller" {
  name   = "controller"
  role   = aws_iam_role.controller.id
  policy = templatefile("${local.documents}/controller.json", local.values)
}

# The controller's policy names the role that is made here; another one is passed by this.
resource "aws_iam_role_policy" "pass_node_role" {
  count = var.node_role_name == null ? 0 : 1
  name  = "pass-node-role"
  role  = aws_iam_role.controller.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid      = "PassNodeRole"
      Effect   = "Allow"
      Action   = "iam:PassRole"
      Resource = data.aws_iam_role.node[0].arn
    }]
  })
}

resource "aws_iam_role_policy" "optional" {
  count  = var.optional_permissions ? 1 : 0
  name   = "optional"
  role   = aws_iam_role.controller.id
  policy = templatefile("${local.documents}/controller-optional.json", local.values)
}

resource "aws_eks_pod_identity_association" "controller" {
  count           = var.oidc_provider == null ? 1 : 0
  cluster_name    = var.cluster_name
  namespace       = var.namespace
  service_account = var.service_account
  role_arn        = aws_iam_role.controller.arn
  tags            = var.tags
}

# --- nodes --------------------------------------------------------------------------------------

data "aws_iam_role" "node" {
  count = var.node_role_name == null ? 0 : 1
  name  = var.node_role_name
}

resource "aws_iam_role" "node" {
  count              = var.node_role_name == null ? 1 : 0
  name               = "KarpenterNodeRole-${var.cluster_name}"
  assume_role_policy = file("${local.documents}/node-trust.json")
  tags               = var.tags
}

resource "aws_iam_role_policy_attachment" "node" {
  for_each = var.node_role_name == null ? toset([
    "AmazonEC2ContainerRegistryReadOnly",
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonSSMManagedInstanceCore",
  ]) : []
  role       = aws_iam_role.node[0].name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/${each.key}"
}

resource "aws_iam_instance_profile" "node" {
  name = "KarpenterNode-${var.cluster_name}"
  role = var.node_role_name == null ? aws_iam_role.node[0].name : var.node_role_name
  tags = var.tags
}

# Lets instances with the role join. A role that is there already has its entry.
resource "aws_eks_access_entry" "node" {
  count         = var.node_role_name == null ? 1 : 0
  cluster_name  = var.cluster_name
  principal_arn = aws_iam_role.node[0].arn
  type          = "EC2_LINUX"
  tags          = var.tags
}

# --- interruptions ------------------------------------------------------------------------------

resource "aws_sqs_queue" "interruptions" {
  name                      = local.queue.QueueName
  message_retention_seconds = local.queue.Attributes.MessageRetentionPeriod
  sqs_managed_sse_enabled   = local.queue.Attributes.SqsManagedSseEnabled
  tags                      = var.tags
}

resource "aws_sqs_queue_policy" "interruptions" {
  queue_url = aws_sqs_queue.interruptions.url
  policy    = templatefile("${local.documents}/interruption-queue-policy.json", local.values)
}

resource "aws_cloudwatch_event_rule" "interruptions" {
  for_each      = local.rules
  name          = each.key
  event_pattern = jsonencode(each.value)
  tags          = var.tags
}

resource "aws_cloudwatch_event_target" "interruptions" {
  for_each = local.rules
  rule     = aws_cloudwatch_event_rule.interruptions[each.key].name
  arn      = aws_sqs_queue.interruptions.arn
}
