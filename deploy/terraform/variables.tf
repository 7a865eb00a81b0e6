variable "cluster_name" {
  description = "Name of the EKS cluster."
  type        = string
}

variable "oidc_provider" {
  description = "OIDC provider of the cluster without https://, for IRSA. Pod Identity is used when null."
  type        = string
  default     = null
}

variable "namespace" {
  description = "Namespace that Longshore runs in."
  type        = string
  default     = "kube-system"
}

variable "service_account" {
  description = "Service account that speaks to AWS: the release's name, with -actuator in split mode."
  type        = string
  default     = "longshore"
}

variable "node_role_name" {
  description = "Role of the nodes that is there already; one is made when null."
  type        = string
  default     = null
}

variable "optional_permissions" {
  description = "Whether the controller may do what deploy/iam/README.md calls optional."
  type        = bool
  default     = true
}

variable "tags" {
  description = "Tags of everything made."
  type        = map(string)
  default     = {}
}
