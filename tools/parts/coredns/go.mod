// Builds CoreDNS from its published module.
module longshore-parts/coredns

go 1.26.0

require github.com/coredns/coredns v1.14.7
