package workload

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/launch"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// ContainerName is the name of the container of the server.
	ContainerName = "server"
	portName      = "http"
	shmVolume     = "shm"
	cacheVolume   = "models"
	filesVolume   = "files"
)

// Probes: a server is given an hour to load its model. Afterwards it is restarted if it does not
// answer for three minutes.
const (
	probePeriod      = 10
	startupFailures  = 360
	livenessFailures = 18
)

// role is which pods of a replica a template is for.
type role struct {
	worker  bool   // it is not the first pod
	serves  bool   // it answers requests
	replica string // the name of a replica of several pods; "" if it has one
}

// template returns the template of the pods that are the task.
func (o Options) template(r *Replicas, server *launch.Server, task *cluster.Task, is role) (*corev1.PodTemplateSpec, error) {
	m, s := r.Model, task.Shape
	annotations, err := r.annotations(s)
	if err != nil {
		return nil, err
	}
	labels := r.labels()
	if m.Spec.Queue != "" {
		labels[v1alpha1.LabelQueue] = m.Spec.Queue
	}
	if p := m.Spec.Preemptible; p != nil {
		labels[v1alpha1.LabelPreemptible] = fmt.Sprint(*p)
	}
	if is.replica != "" {
		labels[LabelReplica] = is.replica
	}
	if is.serves {
		labels[LabelServes] = "true"
	}
	container := o.container(r, server, s, is)
	out := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
		Spec: corev1.PodSpec{
			SchedulerName: o.SchedulerName, NodeSelector: r.selectorOf(s), Tolerations: tolerationsOf(s),
			Affinity: r.affinity(is.replica), Containers: []corev1.Container{container}, Volumes: volumesOf(m),
			AutomountServiceAccountToken: new(false),
			SecurityContext:              &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		},
	}
	if m.Spec.SchedulerName != "" {
		out.Spec.SchedulerName = m.Spec.SchedulerName
	}
	if x := m.Spec.Server; x != nil {
		for _, name := range x.ImagePullSecrets {
			out.Spec.ImagePullSecrets = append(out.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
		}
	}
	return merge(out, m)
}

// annotations returns what the scheduler reads of a pod of the model.
func (r *Replicas) annotations(s *cluster.Shape) (map[string]string, error) {
	m := r.Model
	task := feed.TaskOfModel(m.Name, s)
	task.Created, task.Priority = &m.CreationTimestamp, m.Spec.Priority
	if !s.Need.None() && r.Resource != "" {
		task.Need.Resource = r.Resource
	}
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	out := map[string]string{feed.AnnotationModelTask: string(text)}
	if d := m.Spec.PreemptionDelay; d != nil {
		out[v1alpha1.AnnotationPreemptionDelay] = d.Duration.String()
	}
	if i := m.Spec.Isolation; i != nil {
		text, err := json.Marshal(i)
		if err != nil {
			return nil, err
		}
		out[v1alpha1.AnnotationIsolation] = string(text)
	}
	return out, nil
}

// container returns the container of the server.
func (o Options) container(r *Replicas, server *launch.Server, s *cluster.Shape, is role) corev1.Container {
	c := corev1.Container{
		Name: ContainerName, Image: server.Image, Command: server.Command, Env: o.variables(r, server, s), VolumeMounts: mountsOf(r.Model),
		Resources: o.resources(r, s), SecurityContext: securityOf(server.Port),
	}
	if is.worker {
		c.Command = server.Worker
	}
	if !is.serves {
		return c
	}
	c.Ports = []corev1.ContainerPort{{Name: portName, ContainerPort: server.Port, Protocol: corev1.ProtocolTCP}}
	if server.Health == "" {
		return c
	}
	probe := func(failures int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: server.Health, Port: intstr.FromString(portName)}},
			PeriodSeconds: probePeriod, TimeoutSeconds: 5, FailureThreshold: failures,
		}
	}
	c.StartupProbe, c.ReadinessProbe, c.LivenessProbe = probe(startupFailures), probe(3), probe(livenessFailures)
	return c
}

// securityOf returns what the container may do. The images of servers run as root, so that the user
// is not restricted; all else is as the Pod Security standard "restricted" demands.
func securityOf(port int32) *corev1.SecurityContext {
	out := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	if port < firstUnprivilegedPort {
		out.Capabilities.Add = []corev1.Capability{"NET_BIND_SERVICE"}
	}
	return out
}

// firstUnprivilegedPort is the first port that a process without capabilities may listen at.
const firstUnprivilegedPort = 1024

// resources returns what the container requests. Parts of devices are not requested from the
// kubelet, which could not give them.
func (o Options) resources(r *Replicas, s *cluster.Shape) corev1.ResourceRequirements {
	out := corev1.ResourceRequirements{Requests: corev1.ResourceList{}}
	for _, a := range s.Resources {
		switch {
		case a.Value == 0:
		case a.Name == cluster.CPU:
			out.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(a.Value, resource.DecimalSI)
		case a.Name == cluster.Memory:
			out.Requests[corev1.ResourceMemory] = *resource.NewQuantity(a.Value, resource.BinarySI)
		default:
			out.Requests[corev1.ResourceName(a.Name)] = *resource.NewQuantity(a.Value, resource.DecimalSI)
		}
	}
	if n := r.wholeDevices(&s.Need); n > 0 && r.Resource != "" {
		q := *resource.NewQuantity(int64(n), resource.DecimalSI)
		out.Requests[corev1.ResourceName(r.Resource)] = q
		out.Limits = corev1.ResourceList{corev1.ResourceName(r.Resource): q}
	}
	return out
}

// wholeDevices returns how many whole devices a task holds; 0 if it holds parts, or none.
func (r *Replicas) wholeDevices(n *cluster.Need) int {
	switch {
	case n.Layers != nil || n.Memory > 0 || n.Share > 0 && n.Share < cluster.Whole:
		return 0
	case n.WholeNode:
		return r.Devices
	}
	return n.Devices
}

// variables returns the environment of the container. A container with parts of devices sees the
// devices that the binding lists.
func (o Options) variables(r *Replicas, server *launch.Server, s *cluster.Shape) []corev1.EnvVar {
	var out []corev1.EnvVar
	for _, v := range server.Variables {
		e := corev1.EnvVar{Name: v.Name, Value: v.Value}
		if v.Field != "" {
			e = fromField(v.Name, v.Field)
		}
		out = append(out, e)
	}
	if o.DevicesEnforced && !s.Need.None() {
		out = append(out, fromField("NVIDIA_VISIBLE_DEVICES", "metadata.annotations['"+feed.AnnotationVisibleDevices+"']"))
	}
	x := r.Model.Spec.Server
	if x == nil {
		return out
	}
	if x.Cache != nil {
		mount := launch.Literal(launch.MountPath(x.Cache))
		out = append(out, corev1.EnvVar{Name: "HF_HOME", Value: mount})
		if r.Spec.Backend.Name == "llamacpp" {
			out = append(out, corev1.EnvVar{Name: "LLAMA_CACHE", Value: mount}) // HF_HOME is not read before 2026
		}
	}
	if t := x.TokenSecret; t != nil {
		key := t.Key
		if key == "" {
			key = "token"
		}
		out = append(out, corev1.EnvVar{Name: "HF_TOKEN", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: t.Name}, Key: key},
		}})
	}
	return out
}

// fromField returns a variable that has the value of a field of the pod.
func fromField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

// volumesOf returns the volumes of the pods: shared memory, which the processes of a server need,
// the cache, and the path on the nodes that the model is read from.
func volumesOf(m *v1alpha1.Model) []corev1.Volume {
	out := []corev1.Volume{{Name: shmVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}}
	if c := cacheOf(m); c != nil {
		v := corev1.Volume{Name: cacheVolume}
		if c.Claim != "" {
			v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Claim}
		} else {
			v.HostPath = &corev1.HostPathVolumeSource{Path: c.HostPath, Type: new(corev1.HostPathDirectoryOrCreate)}
		}
		out = append(out, v)
	}
	for i, path := range hostPaths(m) {
		out = append(out, corev1.Volume{Name: filesName(i), VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}})
	}
	return out
}

func mountsOf(m *v1alpha1.Model) []corev1.VolumeMount {
	out := []corev1.VolumeMount{{Name: shmVolume, MountPath: "/dev/shm"}}
	if c := cacheOf(m); c != nil {
		out = append(out, corev1.VolumeMount{Name: cacheVolume, MountPath: launch.MountPath(c)})
	}
	for i, path := range hostPaths(m) {
		out = append(out, corev1.VolumeMount{Name: filesName(i), MountPath: path, ReadOnly: true})
	}
	return out
}

// hostPaths returns the directories of the nodes that the model and its draft are read from. Of a
// GGUF file it is the directory of the file, because a model may be divided into several files.
func hostPaths(m *v1alpha1.Model) []string {
	var out []string
	for _, s := range []*v1alpha1.ModelSource{&m.Spec.Source, m.Spec.Draft} {
		if s == nil || s.LocalPath == "" {
			continue
		}
		dir := path.Clean(s.LocalPath)
		if strings.EqualFold(path.Ext(dir), ".gguf") {
			dir = path.Dir(dir)
		}
		if !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}

// filesName returns the name of the volume with the number.
func filesName(i int) string {
	if i == 0 {
		return filesVolume
	}
	return fmt.Sprintf("%s-%d", filesVolume, i)
}

func cacheOf(m *v1alpha1.Model) *v1alpha1.ModelCache {
	if m.Spec.Server == nil {
		return nil
	}
	return m.Spec.Server.Cache
}

func tolerationsOf(s *cluster.Shape) []corev1.Toleration {
	var out []corev1.Toleration
	for _, t := range s.Tolerations {
		out = append(out, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOperator(t.Operator), Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return out
}

// affinity keeps replicas that take whole nodes, and the pods of one replica, on different nodes.
// Data-parallel ranks may be on the same node.
func (r *Replicas) affinity(replica string) *corev1.Affinity {
	labels := map[string]string{}
	switch {
	case r.Spec.Place.WholeNodes:
		labels[feed.LabelModel] = r.Model.Name
	case replica != "" && r.Form.Nodes > 1:
		labels[LabelReplica] = replica
	default:
		return nil
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: corev1.LabelHostname,
	}}}}
}
