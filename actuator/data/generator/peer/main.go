// Command peer asks Karpenter's own code what nodes of every instance type offer.
//
//	peer INSTANCE_TYPES.json.gz
//
// It prints a JSON object for each setting and type: allocatable, and under the first setting the
// labels. src/node/tests/peer.rs has the same settings by the same names and expects the same.
package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"log"
	"maps"
	"os"
	"slices"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/aws/karpenter-provider-aws/pkg/operator/options"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instancetype"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

type setting struct {
	name               string
	family             string
	maxPods            *int32
	podsPerCore        *int32
	reservedENIs       int
	kubeReserved       map[string]string
	systemReserved     map[string]string
	evictionHard       map[string]string
	instanceStoreRAID0 bool
}

var settings = []setting{
	{name: "default", family: "AL2023"},
	{name: "bottlerocket", family: "Bottlerocket", maxPods: number(58), podsPerCore: number(3)},
	{
		name:               "tuned",
		family:             "AL2",
		maxPods:            number(110),
		podsPerCore:        number(10),
		kubeReserved:       map[string]string{"cpu": "200m", "memory": "1Gi"},
		systemReserved:     map[string]string{"cpu": "100m", "memory": "256Mi"},
		evictionHard:       map[string]string{"memory.available": "5%", "nodefs.available": "15%"},
		instanceStoreRAID0: true,
	},
	{name: "reserved-enis", family: "Custom", reservedENIs: 1},
	{name: "windows", family: "Windows2022"},
}

type row struct {
	Setting     string            `json:"setting"`
	Type        string            `json:"type"`
	Allocatable map[string]int64  `json:"allocatable"`
	Labels      map[string]string `json:"labels,omitempty"`
}

func main() {
	log.SetFlags(0)
	types, err := read(os.Args[1])
	if err != nil {
		log.Fatalf("peer: %v", err)
	}
	out := json.NewEncoder(os.Stdout)
	for position, setting := range settings {
		for _, name := range slices.Sorted(maps.Keys(types)) {
			node := setting.resolve(types[name])
			row := row{Setting: setting.name, Type: name, Allocatable: amounts(node.Allocatable())}
			if position == 0 {
				row.Labels = labels(node)
			}
			if err := out.Encode(row); err != nil {
				log.Fatalf("peer: %v", err)
			}
		}
	}
}

func read(path string) (map[string]ec2types.InstanceTypeInfo, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	types := map[string]ec2types.InstanceTypeInfo{}
	return types, json.NewDecoder(unzipped).Decode(&types)
}

func (s setting) resolve(info ec2types.InstanceTypeInfo) *cloudprovider.InstanceType {
	ctx := options.ToContext(context.Background(), &options.Options{
		VMMemoryOverheadPercent: 0.075,
		ReservedENIs:            s.reservedENIs,
	})
	var storePolicy *v1.InstanceStorePolicy
	if s.instanceStoreRAID0 {
		raid0 := v1.InstanceStorePolicyRAID0
		storePolicy = &raid0
	}
	return instancetype.NewInstanceType(ctx, info, "us-east-1", nil, nil, nil, storePolicy, nil,
		s.maxPods, s.podsPerCore, s.kubeReserved, s.systemReserved, s.evictionHard, nil, s.family, nil)
}

// amounts are whole units, CPU in thousandths; what a node has none of is left out.
func amounts(list corev1.ResourceList) map[string]int64 {
	found := map[string]int64{}
	for name, quantity := range list {
		value := quantity.Value()
		if name == corev1.ResourceCPU {
			value = quantity.MilliValue()
		}
		if value != 0 {
			found[string(name)] = value
		}
	}
	return found
}

// labels are the requirements that leave one value, as Karpenter puts them on a node.
func labels(node *cloudprovider.InstanceType) map[string]string {
	found := map[string]string{}
	for key, requirement := range node.Requirements {
		if requirement.Operator() == corev1.NodeSelectorOpIn && requirement.Len() == 1 {
			found[key] = requirement.Any()
		}
	}
	return found
}

func number(value int32) *int32 { return &value }
