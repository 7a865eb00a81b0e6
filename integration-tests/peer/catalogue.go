package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// zones are those in which everything is sold, as in Longshore's reading of the same file.
var zones = []string{"test-zone-1", "test-zone-2", "test-zone-3"}

const (
	region = "test-region"
	mib    = int64(1) << 20
)

// row is an instance type of a neutral catalogue: allocatable CPU in thousandths, memory in MiB,
// dollars an hour.
type row struct {
	Name  string
	Arch  string
	Cpu   float64
	Mem   float64
	Pods  float64
	Price float64
}

// readCatalogue reads instance types, without those of more CPU than maxCPUMilli unless that is 0.
func readCatalogue(path string, maxCPUMilli int64) ([]*cloudprovider.InstanceType, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var rows []row
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var types []*cloudprovider.InstanceType
	for _, row := range rows {
		if maxCPUMilli == 0 || int64(row.Cpu) <= maxCPUMilli {
			types = append(types, instanceType(row))
		}
	}
	if len(types) == 0 {
		return nil, fmt.Errorf("%s: no instance type is left", path)
	}
	return types, nil
}

func instanceType(row row) *cloudprovider.InstanceType {
	arch := row.Arch
	if arch == "" {
		arch = "amd64"
	}
	in := func(key string, values ...string) *scheduling.Requirement {
		return scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, values...)
	}
	// Every well-known label must be there, even without a value.
	requirements := scheduling.NewRequirements(
		in(corev1.LabelInstanceTypeStable, row.Name),
		in(corev1.LabelArchStable, arch),
		in(corev1.LabelOSStable, string(corev1.Linux)),
		in(corev1.LabelTopologyZone, zones...),
		in(corev1.LabelTopologyRegion, region),
		in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand),
		scheduling.NewRequirement(corev1.LabelWindowsBuild, corev1.NodeSelectorOpDoesNotExist),
	)
	var offerings cloudprovider.Offerings
	for _, zone := range zones {
		offerings = append(offerings, &cloudprovider.Offering{
			Available: true,
			Price:     row.Price,
			Requirements: scheduling.NewLabelRequirements(map[string]string{
				v1.CapacityTypeLabelKey:  v1.CapacityTypeOnDemand,
				corev1.LabelTopologyZone: zone,
			}),
		})
	}
	return &cloudprovider.InstanceType{
		Name:         row.Name,
		Requirements: requirements,
		Offerings:    offerings,
		Capacity:     resources(int64(row.Cpu), int64(row.Mem), int64(row.Pods)),
		Overhead:     &cloudprovider.InstanceTypeOverhead{},
	}
}

func resources(cpuMilli, memoryMiB, pods int64) corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(cpuMilli, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memoryMiB*mib, resource.BinarySI),
	}
	if pods > 0 {
		list[corev1.ResourcePods] = *resource.NewQuantity(pods, resource.DecimalSI)
	}
	return list
}

// provider sells the catalogue to every pool. What the scheduler never asks a provider is left out:
// the embedded interface is nil.
type provider struct {
	cloudprovider.CloudProvider
	types []*cloudprovider.InstanceType
}

func (p provider) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return p.types, nil
}

func (provider) Name() string                                 { return "neutral" }
func (provider) RepairPolicies() []cloudprovider.RepairPolicy { return nil }
func (provider) GetSupportedNodeClasses() []status.Object     { return nil }
