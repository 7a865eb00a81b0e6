package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	podreqs "sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/utils/daemonset"
	"sigs.k8s.io/karpenter/pkg/utils/nodepool"
)

// solved is what Karpenter answers, and what answering took.
type solved struct {
	results        scheduling.Results
	seconds        float64
	allocatedBytes uint64
}

// solve plans a world the way Karpenter's provisioner does. Only Solve is measured.
func solve(all *world, types []*cloudprovider.InstanceType, workers int) (solved, error) {
	log.SetLogger(logging.NopLogger)
	ctx := options.ToContext(injection.WithControllerName(context.Background(), "provisioner"), &options.Options{
		PreferencePolicy:  options.PreferencePolicyRespect,
		MinValuesPolicy:   options.MinValuesPolicyStrict,
		IgnoreDRARequests: true,
		FeatureGates:      options.DefaultFeatureGates(),
	})
	scheduler, err := newScheduler(ctx, all, types, workers)
	if err != nil {
		return solved{}, err
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	started := time.Now()
	results, err := scheduler.Solve(ctx, all.pending)
	seconds := time.Since(started).Seconds()
	runtime.ReadMemStats(&after)
	if err != nil {
		return solved{}, fmt.Errorf("solving: %w", err)
	}
	results = results.TruncateInstanceTypes(ctx, scheduling.MaxInstanceTypes)
	return solved{results, seconds, after.TotalAlloc - before.TotalAlloc}, nil
}

func newScheduler(
	ctx context.Context, all *world, types []*cloudprovider.InstanceType, workers int,
) (*scheduling.Scheduler, error) {
	kube := all.client()
	wall := clock.RealClock{}
	cluster := state.NewCluster(wall, kube, provider{types: types})
	if err := fill(ctx, cluster, all); err != nil {
		return nil, err
	}
	byPool := map[string][]*cloudprovider.InstanceType{}
	for _, pool := range all.pools {
		byPool[pool.Name] = types
	}
	nodepool.OrderByWeight(all.pools)
	nodes := cluster.DeepCopyNodes().Active()
	chosen := []scheduling.Options{
		scheduling.DisableReservedCapacityFallback,
		scheduling.NumConcurrentReconciles(workers),
		scheduling.MinValuesPolicy(options.MinValuesPolicyStrict),
	}
	volumes, err := volumeRequirements(ctx, kube, all.pending)
	if err != nil {
		return nil, err
	}
	topology, err := scheduling.NewTopology(ctx, kube, cluster, nodes, all.pools, byPool, all.pending, chosen...)
	if err != nil {
		return nil, fmt.Errorf("counting topology: %w", err)
	}
	recorder := events.NewRecorder(&record.FakeRecorder{})
	return scheduling.NewScheduler(ctx, kube, all.pools, cluster, nodes, topology, byPool, daemonPods(all),
		recorder, wall, volumes, nil, chosen...), nil
}

// fill tells the cluster state what the watches would: claims before nodes, nodes before pods.
func fill(ctx context.Context, cluster *state.Cluster, all *world) error {
	for _, claim := range all.claims {
		cluster.UpdateNodeClaim(claim)
	}
	for _, node := range all.nodes {
		if err := cluster.UpdateNode(ctx, node); err != nil {
			return fmt.Errorf("node %s: %w", node.Name, err)
		}
	}
	for _, pod := range all.bound {
		if err := cluster.UpdatePod(ctx, pod); err != nil {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
	}
	for _, set := range all.daemonSets {
		if err := cluster.UpdateDaemonSet(ctx, set); err != nil {
			return fmt.Errorf("daemon set %s: %w", set.Name, err)
		}
	}
	return nil
}

func volumeRequirements(
	ctx context.Context, kube client.Client, pods []*corev1.Pod,
) (map[ktypes.UID][]podreqs.Requirements, error) {
	volumes := map[ktypes.UID][]podreqs.Requirements{}
	topology := scheduling.NewVolumeTopology(kube)
	for _, pod := range pods {
		found, err := topology.GetRequirements(ctx, pod)
		if err != nil {
			return nil, fmt.Errorf("volumes of pod %s: %w", pod.Name, err)
		}
		if len(found) > 0 {
			volumes[pod.UID] = found
		}
	}
	return volumes, nil
}

func daemonPods(all *world) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, set := range all.daemonSets {
		pods = append(pods, daemonset.PodForDaemonSet(set))
	}
	return pods
}

// cheapest is the cheapest available offering that a planned node may still become.
func cheapest(claim *scheduling.NodeClaim) (string, *cloudprovider.Offering) {
	var name string
	var best *cloudprovider.Offering
	for _, kind := range claim.InstanceTypeOptions {
		fit := kind.Offerings.Available().Compatible(claim.Requirements)
		if len(fit) == 0 {
			continue
		}
		if found := fit.Cheapest(); best == nil || found.Price < best.Price {
			name, best = kind.Name, found
		}
	}
	return name, best
}

// peakRSSBytes is the largest resident set of this process; 0 where the system does not say.
func peakRSSBytes() uint64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}
