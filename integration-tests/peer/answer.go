package main

import (
	"fmt"
	"math"
	"sort"

	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// summary has the keys of Longshore's bench; what Karpenter does not have is null.
type summary struct {
	Pods               int      `json:"pods"`
	Placed             int      `json:"placed"`
	Nodes              int      `json:"nodes"`
	PriceUSDPerHour    float64  `json:"price_usd_per_hour"`
	LowerBound         *float64 `json:"lower_bound_usd_per_hour"`
	CertificateChecked *bool    `json:"certificate_checked"`
	Violations         *int     `json:"violations"`
	PlanSeconds        float64  `json:"plan_seconds"`
	PeakRSSBytes       uint64   `json:"peak_rss_bytes"`
	AllocatedBytes     uint64   `json:"allocated_bytes"`
	Effort             *string  `json:"effort"`
	*details
}

// details are the plan itself.
type details struct {
	NewNodes []newNode           `json:"new_nodes"`
	Existing map[string][]string `json:"on_existing_nodes"`
	Unplaced map[string]string   `json:"unplaced"`
}

// newNode is a node to launch, as its cheapest offering.
type newNode struct {
	Pool          string            `json:"pool"`
	Labels        map[string]string `json:"labels"`
	InstanceTypes []string          `json:"instance_types"`
	InstanceType  string            `json:"instance_type"`
	Zone          string            `json:"zone"`
	CapacityType  string            `json:"capacity_type"`
	Price         float64           `json:"price_usd_per_hour"`
	Pods          []string          `json:"pods"`
}

func pack(set settings, types []*cloudprovider.InstanceType) (summary, error) {
	all, err := readWorkload(set.workload, set.daemonSet)
	if err != nil {
		return summary{}, err
	}
	return answer(all, types, set)
}

func plan(set settings, types []*cloudprovider.InstanceType) (summary, error) {
	all, err := readManifests(set.manifests)
	if err != nil {
		return summary{}, err
	}
	set.nodes = true
	return answer(all, types, set)
}

func answer(all *world, types []*cloudprovider.InstanceType, set settings) (summary, error) {
	solved, err := solve(all, types, set.workers)
	if err != nil {
		return summary{}, err
	}
	found, err := describe(solved)
	if err != nil {
		return summary{}, err
	}
	sum := summary{
		Pods:           len(all.pending),
		Placed:         len(all.pending) - len(found.Unplaced),
		Nodes:          len(found.NewNodes),
		PlanSeconds:    solved.seconds,
		AllocatedBytes: solved.allocatedBytes,
		PeakRSSBytes:   peakRSSBytes(),
	}
	micros := 0.0
	for _, node := range found.NewNodes {
		micros += math.Round(node.Price * 1e6)
	}
	sum.PriceUSDPerHour = micros / 1e6
	if set.nodes {
		sum.details = &found
	}
	return sum, nil
}

func describe(solved solved) (details, error) {
	found := details{NewNodes: []newNode{}, Existing: map[string][]string{}, Unplaced: map[string]string{}}
	for _, claim := range solved.results.NewNodeClaims {
		name, offering := cheapest(claim)
		if offering == nil {
			return found, fmt.Errorf("a planned node of pool %s has no offering left", claim.NodePoolName)
		}
		node := newNode{
			Pool:         claim.NodePoolName,
			InstanceType: name,
			Zone:         offering.Requirements.Get(corev1.LabelTopologyZone).Any(),
			CapacityType: offering.Requirements.Get(v1.CapacityTypeLabelKey).Any(),
			Price:        offering.Price,
			Pods:         uids(claim.Pods),
		}
		for _, kind := range claim.InstanceTypeOptions {
			node.InstanceTypes = append(node.InstanceTypes, kind.Name)
		}
		node.Labels = claim.ToNodeClaim().Labels
		found.NewNodes = append(found.NewNodes, node)
	}
	for _, node := range solved.results.ExistingNodes {
		if len(node.Pods) > 0 {
			found.Existing[node.Name()] = uids(node.Pods)
		}
	}
	for pod, err := range solved.results.PodErrors {
		found.Unplaced[string(pod.UID)] = err.Error()
	}
	return found, nil
}

func uids(pods []*corev1.Pod) []string {
	names := make([]string, 0, len(pods))
	for _, pod := range pods {
		names = append(names, string(pod.UID))
	}
	sort.Strings(names)
	return names
}
