output "controller_role_arn" {
  description = "For the chart's serviceAccount.annotations, as eks.amazonaws.com/role-arn."
  value       = aws_iam_role.controller.arn
}

output "node_role_name" {
  description = "For an EC2NodeClass's spec.role."
  value       = aws_iam_instance_profile.node.role
}

output "instance_profile_name" {
  description = "For an EC2NodeClass's spec.instanceProfile, or the chart's settings.defaultInstanceProfile."
  value       = aws_iam_instance_profile.node.name
}

output "queue_name" {
  description = "For the chart's settings.interruptionQueue."
  value       = aws_sqs_queue.interruptions.name
}
