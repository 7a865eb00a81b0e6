module longshore/actuator/data/generator/peer

go 1.26.0

require github.com/aws/karpenter-provider-aws v1.14.1

// The core that the provider itself pins is a pseudo-version that the module proxy does not serve.
replace sigs.k8s.io/karpenter => sigs.k8s.io/karpenter v1.14.1
