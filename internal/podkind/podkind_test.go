package podkind

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEveryFieldIsClassified lists the fields of a pod, a container and a volume that are
// read, and those that no filter of kube-scheduler reads. A field that a later version of
// Kubernetes adds fails the test until it is found out which filters read it.
func TestEveryFieldIsClassified(t *testing.T) {
	tests := []struct {
		of           any
		read, unread string
	}{
		{
			v1.PodSpec{},
			"NodeSelector Tolerations Affinity TopologySpreadConstraints InitContainers Containers Volumes ResourceClaims HostNetwork HostUsers",
			`EphemeralContainers RestartPolicy TerminationGracePeriodSeconds ActiveDeadlineSeconds DNSPolicy ServiceAccountName
			DeprecatedServiceAccount AutomountServiceAccountToken NodeName HostPID HostIPC ShareProcessNamespace SecurityContext
			ImagePullSecrets Hostname Subdomain SchedulerName HostAliases PriorityClassName Priority DNSConfig ReadinessGates
			RuntimeClassName EnableServiceLinks PreemptionPolicy Overhead SetHostnameAsFQDN OS SchedulingGates Resources
			HostnameOverride SchedulingGroup`,
		},
		{
			v1.Container{}, "Ports RestartPolicy RestartPolicyRules",
			`Name Image Command Args WorkingDir EnvFrom Env Resources ResizePolicy VolumeMounts VolumeDevices LivenessProbe
			ReadinessProbe StartupProbe Lifecycle TerminationMessagePath TerminationMessagePolicy ImagePullPolicy
			SecurityContext Stdin StdinOnce TTY`,
		},
		{v1.Volume{}, "Name VolumeSource", ""},
		{
			v1.VolumeSource{},
			"PersistentVolumeClaim Ephemeral CSI GCEPersistentDisk AWSElasticBlockStore AzureDisk Cinder RBD ISCSI VsphereVolume PortworxVolume",
			`HostPath EmptyDir GitRepo Secret NFS Glusterfs FlexVolume CephFS Flocker DownwardAPI FC AzureFile ConfigMap
			Quobyte PhotonPersistentDisk Projected ScaleIO StorageOS Image`,
		},
		{v1.ContainerPort{}, "HostPort HostIP Protocol", "Name ContainerPort"},
		{v1.Toleration{}, "Key Operator Value Effect", "TolerationSeconds"},
		{v1.Affinity{}, "NodeAffinity PodAffinity PodAntiAffinity", ""},
		{v1.PodAffinityTerm{}, "LabelSelector Namespaces TopologyKey NamespaceSelector MatchLabelKeys MismatchLabelKeys", ""},
		{v1.TopologySpreadConstraint{}, "MaxSkew TopologyKey WhenUnsatisfiable LabelSelector MinDomains NodeAffinityPolicy NodeTaintsPolicy MatchLabelKeys", ""},
	}
	for _, tt := range tests {
		of := reflect.TypeOf(tt.of)
		known := slices.Concat(strings.Fields(tt.read), strings.Fields(tt.unread))
		var fields []string
		for i := range of.NumField() {
			fields = append(fields, of.Field(i).Name)
		}
		slices.Sort(known)
		slices.Sort(fields)
		if !slices.Equal(known, fields) {
			t.Errorf("%s has the fields\n%v\nand the test knows\n%v", of, fields, known)
		}
	}
}

var selectWeb = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}

// keyPod returns a pod of which filters read much.
func keyPod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "uid-p", Labels: map[string]string{"app": "web", "index": "0"}},
		Spec: v1.PodSpec{
			Containers:   []v1.Container{{Name: "c", Ports: []v1.ContainerPort{{HostPort: 80, ContainerPort: 80, Protocol: v1.ProtocolTCP}}}},
			NodeSelector: map[string]string{"disk": "ssd"},
			Tolerations:  []v1.Toleration{{Key: "gpu", Operator: v1.TolerationOpExists}},
			TopologySpreadConstraints: []v1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: selectWeb}},
			Volumes: []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "a"}}}},
		},
	}
}

// keyTests are changes of keyPod, and whether its key stays the same.
var keyTests = map[string]struct {
	change func(*v1.Pod)
	same   bool
}{
	"nothing":              {func(*v1.Pod) {}, true},
	"the name":             {func(o *v1.Pod) { o.Name, o.UID = "q", "uid-q" }, true},
	"the namespace":        {func(o *v1.Pod) { o.Namespace = "other" }, true},
	"the node":             {func(o *v1.Pod) { o.Spec.NodeName = "n" }, true},
	"the image":            {func(o *v1.Pod) { o.Spec.Containers[0].Image = "i" }, true},
	"a container":          {func(o *v1.Pod) { o.Spec.Containers = append(o.Spec.Containers, v1.Container{Name: "d"}) }, true},
	"the name of a volume": {func(o *v1.Pod) { o.Spec.Volumes[0].Name = "x" }, true},
	"a volume that every node has": {func(o *v1.Pod) {
		o.Spec.Volumes = append(o.Spec.Volumes, v1.Volume{VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
	}, true},
	"a label that no term selects": {func(o *v1.Pod) { o.Labels["index"] = "1" }, true},
	"a label that a term selects":  {func(o *v1.Pod) { o.Labels["app"] = "db" }, false},
	"how long a toleration holds":  {func(o *v1.Pod) { o.Spec.Tolerations[0].TolerationSeconds = new(int64) }, true},
	"a toleration":                 {func(o *v1.Pod) { o.Spec.Tolerations[0].Key = "team" }, false},
	"the node selector":            {func(o *v1.Pod) { o.Spec.NodeSelector = map[string]string{"disk": "hdd"} }, false},
	"a host port":                  {func(o *v1.Pod) { o.Spec.Containers[0].Ports[0].HostPort = 81 }, false},
	"the protocol of a host port":  {func(o *v1.Pod) { o.Spec.Containers[0].Ports[0].Protocol = v1.ProtocolUDP }, false},
	"a port of the container":      {func(o *v1.Pod) { o.Spec.Containers[0].Ports[0].ContainerPort = 81 }, true},
	"the claim of a volume":        {func(o *v1.Pod) { o.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "b" }, false},
	"a spread constraint":          {func(o *v1.Pod) { o.Spec.TopologySpreadConstraints[0].MaxSkew = 2 }, false},
	"a preferred spread constraint": {func(o *v1.Pod) {
		o.Spec.TopologySpreadConstraints = append(o.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{WhenUnsatisfiable: v1.ScheduleAnyway})
	}, true},
	"the user namespace": {func(o *v1.Pod) { o.Spec.HostUsers = new(bool) }, false},
	"a rule for restarts": {func(o *v1.Pod) {
		o.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestartAllContainers}}
	}, false},
	"node affinity": {func(o *v1.Pod) {
		o.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{}}}
	}, false},
	"preferred affinity": {func(o *v1.Pod) {
		o.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{Weight: 1}}}}
	}, true},
	"anti-affinity": {func(o *v1.Pod) {
		o.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{TopologyKey: "zone", LabelSelector: selectWeb}}}}
	}, false},
}

func TestKey(t *testing.T) {
	want := keyOf(t, keyPod())
	if len(want) != 16 {
		t.Errorf("key %q", want)
	}
	for name, tt := range keyTests {
		t.Run(name, func(t *testing.T) {
			o := keyPod()
			tt.change(o)
			if got := keyOf(t, o); (got == want) != tt.same {
				t.Errorf("the keys are %q and %q", want, got)
			}
		})
	}
}

// TestKeyOfPlainPods: filters read nothing of these pods.
func TestKeyOfPlainPods(t *testing.T) {
	for name, o := range map[string]*v1.Pod{
		"empty": {},
		"plain": {ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"a": "b"}}, Spec: v1.PodSpec{
			NodeName: "n", Tolerations: []v1.Toleration{}, Affinity: &v1.Affinity{PodAffinity: &v1.PodAffinity{}},
			Containers: []v1.Container{{Name: "c", Ports: []v1.ContainerPort{{ContainerPort: 80}}}}}},
	} {
		if got := keyOf(t, o); got != "" {
			t.Errorf("%s: key %q", name, got)
		}
	}
}

// TestKeyOfOnePod: claims of ephemeral volumes and resource claims belong to one pod, so that
// no two pods that have them are of one kind.
func TestKeyOfOnePod(t *testing.T) {
	for name, spec := range map[string]v1.PodSpec{
		"ephemeral": {Volumes: []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}}}},
		"claim":     {ResourceClaims: []v1.PodResourceClaim{{Name: "c"}}},
	} {
		a := keyOf(t, &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a"}, Spec: spec})
		b := keyOf(t, &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "b"}, Spec: spec})
		if a == b || a == "" {
			t.Errorf("%s: keys %q and %q", name, a, b)
		}
	}
}

func keyOf(t *testing.T, o *v1.Pod) string {
	t.Helper()
	key, err := Key(o)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
