package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// demand is pods of one kind: CPU in thousandths, memory in MiB, how many.
type demand struct {
	cpuMilli, memoryMiB int64
	count               int
}

// readWorkload makes a world of one pool without requirements and the pods of a workload file. Pods
// are named as Longshore names them, so that their plans can be compared.
func readWorkload(path, daemonSet string) (*world, error) {
	rows, err := readDemand(path)
	if err != nil {
		return nil, err
	}
	all := &world{}
	pool := &v1.NodePool{}
	pool.Name = "catalogue"
	objects := []error{all.add(pool)}
	if daemonSet != "" {
		set, err := daemon(daemonSet)
		if err != nil {
			return nil, err
		}
		objects = append(objects, all.add(set))
	}
	for n, row := range rows {
		for index := range row.count {
			pod := &corev1.Pod{Spec: podSpec(row.cpuMilli, row.memoryMiB)}
			pod.Name = fmt.Sprintf("%06d#%08d", n, index)
			pod.UID = types.UID(pod.Name)
			objects = append(objects, all.add(pod))
		}
	}
	for _, err := range objects {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func podSpec(cpuMilli, memoryMiB int64) corev1.PodSpec {
	requests := resources(cpuMilli, memoryMiB, 0)
	container := corev1.Container{Name: "a", Resources: corev1.ResourceRequirements{Requests: requests}}
	return corev1.PodSpec{Containers: []corev1.Container{container}}
}

func daemon(text string) (*appsv1.DaemonSet, error) {
	cpu, memory, found := strings.Cut(text, ",")
	cpuMilli, wrongCPU := strconv.ParseInt(cpu, 10, 64)
	memoryMiB, wrongMemory := strconv.ParseInt(memory, 10, 64)
	if !found || wrongCPU != nil || wrongMemory != nil {
		return nil, fmt.Errorf("--daemonset %s: write CPU_MILLI,MEM_MIB", text)
	}
	set := &appsv1.DaemonSet{}
	set.Name = "daemon"
	set.Spec.Selector = &metav1.LabelSelector{}
	set.Spec.Template.Spec = podSpec(cpuMilli, memoryMiB)
	return set, nil
}

// readDemand reads [[cpu, memory, count], …] or a trace in CSV with a line for each pod.
func readDemand(path string) ([]demand, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(strings.TrimSpace(string(text)), "[") {
		return readTrace(path, string(text))
	}
	var rows [][3]float64
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var all []demand
	for _, row := range rows {
		all = append(all, demand{int64(row[0]), int64(row[1]), int(row[2])})
	}
	return all, nil
}

func readTrace(path, text string) ([]demand, error) {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	column := map[string]int{}
	for at, name := range lines[0] {
		column[name] = at
	}
	cpu, hasCPU := column["cpu_milli"]
	memory, hasMemory := column["memory_mib"]
	if !hasCPU || !hasMemory {
		return nil, fmt.Errorf("%s: no columns cpu_milli and memory_mib", path)
	}
	counts := map[[2]int64]int{}
	for _, line := range lines[1:] {
		cpuMilli, wrongCPU := strconv.ParseInt(line[cpu], 10, 64)
		memoryMiB, wrongMemory := strconv.ParseInt(line[memory], 10, 64)
		if wrongCPU != nil || wrongMemory != nil {
			return nil, fmt.Errorf("%s: %v is no pod", path, line)
		}
		counts[[2]int64{cpuMilli, memoryMiB}]++
	}
	var all []demand
	for request, count := range counts {
		all = append(all, demand{request[0], request[1], count})
	}
	sort.Slice(all, func(i, j int) bool {
		if all[i].cpuMilli != all[j].cpuMilli {
			return all[i].cpuMilli < all[j].cpuMilli
		}
		return all[i].memoryMiB < all[j].memoryMiB
	})
	return all, nil
}
