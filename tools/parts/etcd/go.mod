// Builds etcd and etcdctl from their published modules.
module longshore-parts/etcd

go 1.26.0

require (
	go.etcd.io/etcd/etcdctl/v3 v3.6.14
	go.etcd.io/etcd/server/v3 v3.6.14
)
