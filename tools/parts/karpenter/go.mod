// Builds Karpenter's AWS controller from its published module.
module longshore-parts/karpenter

go 1.26.0

require github.com/aws/karpenter-provider-aws v1.14.1

// The revision of the core that it names is served by no registry.
replace sigs.k8s.io/karpenter => sigs.k8s.io/karpenter v1.14.1
