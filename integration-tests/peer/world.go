package main

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// world is a described cluster.
type world struct {
	pools      []*v1.NodePool
	claims     []*v1.NodeClaim
	nodes      []*corev1.Node
	daemonSets []*appsv1.DaemonSet
	// pending are the pods to place.
	pending []*corev1.Pod
	// bound are the pods that have a node.
	bound []*corev1.Pod
	// others are what pods refer to: namespaces, volumes, storage classes.
	others []client.Object
}

// add sorts an object in and fills in what an API server would.
func (w *world) add(object client.Object) error {
	switch object := object.(type) {
	case *v1.NodePool:
		if object.Spec.Template.Spec.NodeClassRef == nil {
			object.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Name: "default"}
		}
		w.pools = append(w.pools, object)
	case *v1.NodeClaim:
		w.claims = append(w.claims, object)
	case *corev1.Node:
		if object.Spec.ProviderID == "" {
			object.Spec.ProviderID = "node:///" + object.Name
		}
		w.nodes = append(w.nodes, object)
	case *appsv1.DaemonSet:
		inNamespace(object)
		w.daemonSets = append(w.daemonSets, object)
	case *appsv1.Deployment:
		inNamespace(object)
		w.expand(object)
	case *corev1.Pod:
		w.addPod(object)
	case *corev1.PersistentVolumeClaim:
		inNamespace(object)
		w.others = append(w.others, object)
	case *corev1.Namespace, *corev1.PersistentVolume, *storagev1.StorageClass:
		w.others = append(w.others, object)
	default:
		return fmt.Errorf("objects like %T are not read", object)
	}
	return nil
}

func (w *world) addPod(pod *corev1.Pod) {
	inNamespace(pod)
	if pod.UID == "" {
		pod.UID = types.UID(pod.Namespace + "/" + pod.Name)
	}
	defaultRequests(pod.Spec.InitContainers)
	defaultRequests(pod.Spec.Containers)
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
	case pod.Spec.NodeName != "":
		w.bound = append(w.bound, pod)
	default:
		pod.Status.Phase = corev1.PodPending
		w.pending = append(w.pending, pod)
	}
}

// expand makes the pods that a Deployment asks for.
func (w *world) expand(set *appsv1.Deployment) {
	replicas := int32(1)
	if set.Spec.Replicas != nil {
		replicas = *set.Spec.Replicas
	}
	for n := range replicas {
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy()}
		set.Spec.Template.Spec.DeepCopyInto(&pod.Spec)
		pod.Name = fmt.Sprintf("%s-%08d", set.Name, n)
		pod.Namespace = set.Namespace
		w.addPod(pod)
	}
}

func inNamespace(object client.Object) {
	if object.GetNamespace() == "" {
		object.SetNamespace("default")
	}
}

// defaultRequests takes a limit for the request that is not given.
func defaultRequests(containers []corev1.Container) {
	for n := range containers {
		resources := &containers[n].Resources
		for name, limit := range resources.Limits {
			if _, given := resources.Requests[name]; !given {
				if resources.Requests == nil {
					resources.Requests = corev1.ResourceList{}
				}
				resources.Requests[name] = limit
			}
		}
	}
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	// Registering compiled-in kinds cannot fail.
	_ = clientgoscheme.AddToScheme(scheme)
	group := corev1.SchemeGroupVersion
	group.Group, group.Version = "karpenter.sh", "v1"
	scheme.AddKnownTypes(group, &v1.NodePool{}, &v1.NodePoolList{}, &v1.NodeClaim{}, &v1.NodeClaimList{})
	return scheme
}

// client is the API server of the described world. Pending pods are only handed to the scheduler: it
// asks the API server for pods that have a node.
func (w *world) client() client.Client {
	builder := fake.NewClientBuilder().WithScheme(newScheme())
	for _, pool := range w.pools {
		builder.WithObjects(pool)
	}
	for _, claim := range w.claims {
		builder.WithObjects(claim)
	}
	for _, node := range w.nodes {
		builder.WithObjects(node)
	}
	for _, set := range w.daemonSets {
		builder.WithObjects(set)
	}
	for _, pod := range w.bound {
		builder.WithObjects(pod)
	}
	byNode := func(object client.Object) []string { return []string{object.(*corev1.Pod).Spec.NodeName} }
	return builder.WithObjects(w.others...).WithIndex(&corev1.Pod{}, "spec.nodeName", byNode).Build()
}
