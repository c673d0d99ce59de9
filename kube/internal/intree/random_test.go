package intree

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"pgregory.net/rapid"
)

type fwkPodInfo = fwk.PodInfo

const zoneLabel = v1.LabelTopologyZone

// sized returns a node.
func sized(name string, labels map[string]string, cpu, memory, pods string) *v1.Node {
	all := map[string]string{v1.LabelHostname: name}
	for k, v := range labels {
		all[k] = v
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory), v1.ResourcePods: resource.MustParse(pods)}},
	}
}

// plain returns a pod that requests nothing.
func plain(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c"}}},
	}
}

func pick[T any](t *rapid.T, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(t, label)
}

// chance draws true in one of n cases.
func chance(t *rapid.T, label string, n int) bool { return rapid.IntRange(1, n).Draw(t, label) == 1 }

func drawNode(t *rapid.T, name string) *v1.Node {
	labels := map[string]string{"disk": pick(t, "disk", "ssd", "hdd")}
	if !chance(t, "no zone", 6) {
		labels[zoneLabel] = pick(t, "zone", "z1", "z2", "z3")
	}
	n := sized(name, labels, pick(t, "cpu", "1", "2", "4"), pick(t, "memory", "2Gi", "4Gi"), pick(t, "pods", "2", "5", "20"))
	n.Spec.Unschedulable = chance(t, "cordoned", 8)
	if !chance(t, "no features", 3) {
		n.Status.DeclaredFeatures = []string{restartFeature}
	}
	if chance(t, "tainted", 4) {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: pick(t, "key", "team", "gpu"), Value: pick(t, "value", "a", "b"),
			Effect: pick(t, "effect", v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute, v1.TaintEffectPreferNoSchedule)})
	}
	return n
}

// drawPod draws a pod. Most have one or two kinds of constraint, so that some node is
// feasible.
func drawPod(t *rapid.T, name string) *v1.Pod {
	p := plain(name)
	p.Namespace = pick(t, "namespace", "default", "default", "other")
	p.Labels = map[string]string{"app": pick(t, "app", "web", "db", "batch")}
	p.Spec.Containers[0].Resources.Requests = v1.ResourceList{}
	if chance(t, "requests", 2) {
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(pick(t, "cpu", "100m", "500m", "1500m")),
			v1.ResourceMemory: resource.MustParse(pick(t, "memory", "100Mi", "1Gi"))}
	}
	for _, draw := range []func(*rapid.T, *v1.Pod){drawTolerations, drawSelector, drawNodeAffinity, drawPorts, drawSpread, drawPodAffinity, drawVolumes, drawFeatures} {
		if chance(t, "constraint", 3) {
			draw(t, p)
		}
	}
	return p
}

func drawTolerations(t *rapid.T, p *v1.Pod) {
	toleration := v1.Toleration{Key: pick(t, "key", "team", "gpu", v1.TaintNodeUnschedulable, ""), Operator: v1.TolerationOpExists}
	if toleration.Key == "team" && chance(t, "equal", 2) {
		toleration.Operator, toleration.Value = v1.TolerationOpEqual, pick(t, "value", "a", "b")
	}
	toleration.Effect = pick(t, "effect", v1.TaintEffectNoSchedule, "")
	p.Spec.Tolerations = append(p.Spec.Tolerations, toleration)
}

func drawSelector(t *rapid.T, p *v1.Pod) {
	p.Spec.NodeSelector = map[string]string{"disk": pick(t, "disk", "ssd", "hdd")}
}

func drawNodeAffinity(t *rapid.T, p *v1.Pod) {
	term := v1.NodeSelectorTerm{}
	switch rapid.IntRange(0, 2).Draw(t, "kind of node affinity") {
	case 0:
		term.MatchFields = []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{pick(t, "node", "n0", "n1", "n2", "nowhere")}}}
	case 1:
		term.MatchExpressions = []v1.NodeSelectorRequirement{{Key: zoneLabel, Operator: pick(t, "op", v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn), Values: []string{pick(t, "zone", "z1", "z2")}}}
	case 2:
		term.MatchExpressions = []v1.NodeSelectorRequirement{{Key: zoneLabel, Operator: pick(t, "op", v1.NodeSelectorOpExists, v1.NodeSelectorOpDoesNotExist)}}
	}
	affinityOf(p).NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}}}
}

func affinityOf(p *v1.Pod) *v1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{}
	}
	return p.Spec.Affinity
}

func drawPorts(t *rapid.T, p *v1.Pod) {
	port := int32(pick(t, "port", 80, 443))
	p.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: port, HostPort: port, HostIP: pick(t, "ip", "", "127.0.0.1", "10.0.0.1"),
		Protocol: pick(t, "protocol", v1.ProtocolTCP, v1.ProtocolUDP)}}
}

func drawSpread(t *rapid.T, p *v1.Pod) {
	p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
		MaxSkew: int32(rapid.IntRange(1, 2).Draw(t, "skew")), TopologyKey: pick(t, "topology", zoneLabel, v1.LabelHostname),
		WhenUnsatisfiable: pick(t, "when", v1.DoNotSchedule, v1.DoNotSchedule, v1.ScheduleAnyway),
		LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(t, "app", "web", "db", "batch")}},
	}}
	if chance(t, "policies", 2) {
		honor, ignore := v1.NodeInclusionPolicyHonor, v1.NodeInclusionPolicyIgnore
		p.Spec.TopologySpreadConstraints[0].NodeAffinityPolicy = pick(t, "affinity policy", &honor, &ignore)
		p.Spec.TopologySpreadConstraints[0].NodeTaintsPolicy = pick(t, "taints policy", &honor, &ignore)
	}
}

func drawPodAffinity(t *rapid.T, p *v1.Pod) {
	term := v1.PodAffinityTerm{TopologyKey: pick(t, "topology", zoneLabel, v1.LabelHostname),
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(t, "app", "web", "db", "batch")}}}
	switch rapid.IntRange(0, 2).Draw(t, "namespaces") {
	case 1:
		term.Namespaces = []string{"default", "other"}
	case 2:
		term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": pick(t, "team", "a", "b")}}
	}
	if chance(t, "affinity", 3) {
		affinityOf(p).PodAffinity = &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term}}
	} else {
		affinityOf(p).PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term}}
	}
}

// claimNames are the claims of each namespace of drawObjects, and one that does not exist.
var claimNames = []string{"bound-z1", "bound-z2", "once", "waiting", "unbound", "missing"}

func drawVolumes(t *rapid.T, p *v1.Pod) {
	if chance(t, "inline", 3) {
		p.Spec.Volumes = append(p.Spec.Volumes, disk(chance(t, "read-only", 2)))
	}
	if len(p.Spec.Volumes) == 0 || chance(t, "both", 3) {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: pick(t, "claim", claimNames...)}}})
	}
}

// disk returns a volume that only pods that read it can share.
func disk(readOnly bool) v1.Volume {
	return v1.Volume{Name: "disk", VolumeSource: v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{TargetPortal: "10.0.0.9", IQN: "iqn.2026-01.example:disk", ReadOnly: readOnly}}}
}

// restartFeature is a feature that nodes declare and pods with certain rules for restarts
// need.
const restartFeature = "RestartAllContainersOnContainerExits"

func drawFeatures(_ *rapid.T, p *v1.Pod) {
	p.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestartAllContainers}}
}

// drawObjects adds namespaces, storage classes, volumes, claims and limits of drivers.
func drawObjects(t *rapid.T, w *world, nodes int) {
	immediate, wait := storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer
	w.put(t, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "now"}, VolumeBindingMode: &immediate, Provisioner: "example.com/now"})
	w.put(t, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "later"}, VolumeBindingMode: &wait, Provisioner: "kubernetes.io/no-provisioner"})
	for _, namespace := range []string{"default", "other"} {
		w.put(t, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"team": pick(t, "team", "a", "b")}}})
		drawBound(t, w, namespace, "bound-z1", "z1", v1.ReadWriteOnce)
		drawBound(t, w, namespace, "bound-z2", "z2", v1.ReadWriteOnce)
		drawBound(t, w, namespace, "once", "", v1.ReadWriteOncePod)
		w.put(t, claim(namespace, "waiting", "later", "", v1.ReadWriteOnce))
		w.put(t, claim(namespace, "unbound", "now", "", v1.ReadWriteOnce))
	}
	for i := range 2 { // volumes for the claims that wait
		pv := volume(fmt.Sprintf("free-%d", i), "later", v1.ReadWriteOnce)
		pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{fmt.Sprintf("n%d", rapid.IntRange(0, nodes-1).Draw(t, "local"))}}}}}}}
		w.put(t, pv)
	}
	for i := range nodes {
		if chance(t, "limited", 2) {
			count := int32(rapid.IntRange(1, 2).Draw(t, "limit"))
			name := fmt.Sprintf("n%d", i)
			w.put(t, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
				Name: "example.com/now", NodeID: name, Allocatable: &storagev1.VolumeNodeResources{Count: &count}}}}})
		}
	}
}

// drawBound adds a claim and the volume that it is bound to.
func drawBound(t *rapid.T, w *world, namespace, name, zone string, mode v1.PersistentVolumeAccessMode) {
	pv := volume(namespace+"-"+name, "now", mode)
	if zone != "" {
		pv.Labels = map[string]string{zoneLabel: zone}
	}
	pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + name)}
	pv.Status.Phase = v1.VolumeBound
	w.put(t, pv)
	w.put(t, claim(namespace, name, "now", pv.Name, mode))
}

func volume(name, class string, mode v1.PersistentVolumeAccessMode) *v1.PersistentVolume {
	return &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}, Spec: v1.PersistentVolumeSpec{
		StorageClassName: class, AccessModes: []v1.PersistentVolumeAccessMode{mode}, Capacity: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")},
		PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "example.com/now", VolumeHandle: name}},
	}, Status: v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable}}
}

func claim(namespace, name, class, bound string, mode v1.PersistentVolumeAccessMode) *v1.PersistentVolumeClaim {
	c := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "1", UID: types.UID("uid-" + namespace + name)}, Spec: v1.PersistentVolumeClaimSpec{
		StorageClassName: &class, VolumeName: bound, AccessModes: []v1.PersistentVolumeAccessMode{mode},
		Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}}}}
	if bound != "" {
		c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
		c.Status.Phase = v1.ClaimBound
	}
	return c
}
