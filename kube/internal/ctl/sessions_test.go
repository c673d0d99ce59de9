package ctl_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/wire"
	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/crdtest"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

var (
	sessions = flag.Int("sessions", 40, "how many random sessions TestSessions runs again")
	seed     = flag.Uint64("seed", 7, "the seed of the random changes of TestSessions")
)

// sessionWorld is a cluster in which many small sessions are run.
type sessionWorld struct {
	*world
	dice    *rand.Rand
	address string // the secure address of the scheduler
	berth   func(args ...string) string
	names   int
	filters bool // pods have what only the filters of Kubernetes read
	seen    map[uint64]bool
	files   string // the folder of the inputs of sessions
	plain   int    // how many sessions plain berth has run again
	kinds   map[string]int
}

// TestSessions makes random changes to a cluster in which berth-scheduler runs. For each session
// it takes the input from the scheduler and runs the session again: the decisions must be the
// same.
func TestSessions(t *testing.T) {
	w := newSessionWorld(t)
	w.scheduler("--secure-address", w.address, "--eviction-rate", "1000")
	for step := 0; len(w.seen) < *sessions; step++ {
		w.change(step)
		time.Sleep(time.Duration(w.dice.IntN(120)) * time.Millisecond) // so that sessions differ in size
		if step%4 == 3 {
			w.checkSessions()
		}
		if step > 50**sessions {
			t.Fatalf("only %d sessions after %d steps", len(w.seen), step)
		}
	}
	t.Logf("%d sessions are run again with the same decisions, %d of them by berth alone: %v", len(w.seen), w.plain, w.kinds)
	if *sessions < 200 {
		return // few sessions may have few kinds of decisions
	}
	for _, kind := range []string{"Bind", "Nominate", "Evict", "refusal", "assumed volume"} {
		if w.kinds[kind] == 0 {
			t.Errorf("no session has a %s", kind)
		}
	}
	if w.plain == 0 {
		t.Error("berth alone has run no session again")
	}
}

func newSessionWorld(t *testing.T) *sessionWorld {
	t.Helper()
	w := &sessionWorld{world: &world{}, dice: rand.New(rand.NewPCG(*seed, 1)), berth: buildBerth(t), files: t.ArtifactDir(), seen: map[uint64]bool{}, kinds: map[string]int{}}
	w.connect(t, controlplane.ControllerManager)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.address = listener.Addr().String()
	listener.Close()
	for i := range 6 {
		w.addNodes(node(fmt.Sprintf("node-%d", i), 2+2*(i%3), func(n *controlplane.Node) {
			n.Labels["zone"] = fmt.Sprintf("zone-%d", i%3)
			if i == 5 {
				n.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
			}
		}))
	}
	w.addClasses()
	w.addQueues()
	w.addDevices()
	return w
}

// addClasses adds priority classes and a class of volumes that wait for their first consumer.
func (w *sessionWorld) addClasses() {
	w.Helper()
	for name, value := range map[string]int32{"low": 1, "high": 100} {
		if _, err := w.client.SchedulingV1().PriorityClasses().Create(w.ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	if _, err := w.client.StorageV1().StorageClasses().Create(w.ctx, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &mode}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *sessionWorld) addQueues() {
	w.Helper()
	client, err := dynamic.NewForConfig(w.cp.Config())
	if err != nil {
		w.Fatal(err)
	}
	crdtest.Install(w.TB, client)
	queues := client.Resource(schema.GroupVersionResource{Group: "berth.dev", Version: "v1alpha1", Resource: "queues"})
	for _, name := range []string{"research", "product"} {
		text := fmt.Sprintf("apiVersion: berth.dev/v1alpha1\nkind: Queue\nmetadata: {name: %s}\nspec: {quota: {nvidia.com/gpu: 8}}\n", name)
		w.eventually(func() string {
			if _, err := queues.Create(w.ctx, crdtest.Object(w.TB, text), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return err.Error()
			}
			return ""
		})
	}
}

// addDevices adds devices of a driver to two nodes, and a template of claims for one of them.
func (w *sessionWorld) addDevices() {
	w.Helper()
	const driver = "gpu.example.com"
	request := resourcev1.DeviceRequest{Name: "one", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: driver, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}
	_, errClass := w.client.ResourceV1().DeviceClasses().Create(w.ctx, &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: driver},
		Spec:       resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: "device.driver == '" + driver + "'"}}}},
	}, metav1.CreateOptions{})
	_, errTemplate := w.client.ResourceV1().ResourceClaimTemplates(namespace).Create(w.ctx, &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec:       resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{request}}}},
	}, metav1.CreateOptions{})
	if err := errors.Join(errClass, errTemplate); err != nil {
		w.Fatal(err)
	}
	for _, node := range []string{"node-1", "node-3"} {
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "gpu-0"}, {Name: "gpu-1"}},
		}}
		if _, err := w.client.ResourceV1().ResourceSlices().Create(w.ctx, slice, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

// withDevice makes the pod claim a device of the driver.
func withDevice(p *corev1.Pod) {
	template := "one"
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "one", ResourceClaimTemplateName: &template}}
	p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "one"}}
}

// change makes one random change.
func (w *sessionWorld) change(step int) {
	w.Helper()
	if step%12 == 0 {
		w.deleteSome(1000) // room for what follows
		w.filters = step%24 == 0
	}
	switch roll := w.dice.IntN(20); {
	case roll < 8 || roll < 13 && roll > 9 && !w.filters:
		for range 1 + w.dice.IntN(4) {
			w.create(w.randomPod())
		}
	case roll < 10:
		w.createGang()
	case roll < 12:
		w.createWithVolume()
	case roll < 13:
		w.create(pod(w.name("d"), 0, withDevice), pod(w.name("d"), 0, withDevice))
	case roll < 18:
		w.deleteSome(1 + w.dice.IntN(5))
	case roll < 19:
		w.setCordon(fmt.Sprintf("node-%d", w.dice.IntN(6)), w.dice.IntN(3) == 0)
	default:
		w.setCordon(fmt.Sprintf("node-%d", w.dice.IntN(6)), false)
	}
}

func (w *sessionWorld) name(prefix string) string {
	w.names++
	return fmt.Sprintf("%s%04d", prefix, w.names)
}

func (w *sessionWorld) randomPod() *corev1.Pod {
	p := pod(w.name("p"), int64(w.dice.IntN(5)))
	p.Labels["app"] = fmt.Sprintf("app-%d", w.dice.IntN(3))
	w.rank(p)
	switch w.dice.IntN(8) {
	case 0:
		p.Spec.NodeSelector = map[string]string{"zone": fmt.Sprintf("zone-%d", w.dice.IntN(4))}
	case 1:
		p.Spec.Tolerations = []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}}
	}
	if w.filters {
		restrict(w.dice, p)
	}
	return p
}

// rank gives the pod a queue, a priority and whether it may be evicted.
func (w *sessionWorld) rank(p *corev1.Pod) {
	p.Labels["berth.dev/queue"] = []string{"research", "product"}[w.dice.IntN(2)]
	p.Spec.PriorityClassName = []string{"low", "low", "high"}[w.dice.IntN(3)]
	if w.dice.IntN(3) > 0 {
		p.Labels["berth.dev/preemptible"] = "true"
	}
}

func (w *sessionWorld) createGang() {
	w.Helper()
	name, gpus, size := w.name("g"), 1+int64(w.dice.IntN(3)), 2+w.dice.IntN(3)
	first := pod(name+"-0", gpus, inGang(name, size))
	w.rank(first)
	w.create(first)
	for i := 1; i < size; i++ {
		p := pod(fmt.Sprintf("%s-%d", name, i), gpus, inGang(name, size))
		p.Spec.PriorityClassName = first.Spec.PriorityClassName
		for _, label := range []string{"berth.dev/queue", "berth.dev/preemptible"} {
			if value, found := first.Labels[label]; found {
				p.Labels[label] = value
			}
		}
		w.create(p)
	}
}

// createWithVolume creates a volume on a node, and a pod that claims one.
func (w *sessionWorld) createWithVolume() {
	w.Helper()
	name, node := w.name("v"), fmt.Sprintf("node-%d", w.dice.IntN(6))
	storage := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	class := "local"
	if w.dice.IntN(3) > 0 {
		if _, err := w.client.CoreV1().PersistentVolumes().Create(w.ctx, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: storage, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: class,
				PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
				}}}},
			},
		}, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
	if _, err := w.client.CoreV1().PersistentVolumeClaims(namespace).Create(w.ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{Requests: storage},
		},
	}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	p := w.randomPod()
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	w.create(p)
}

// deleteSome deletes up to n pods.
func (w *sessionWorld) deleteSome(n int) {
	w.Helper()
	var names []string
	for name := range w.pods() {
		names = append(names, name)
	}
	slices.Sort(names)
	w.dice.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:min(n, len(names))] {
		if err := w.client.CoreV1().Pods(namespace).Delete(w.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil && !apierrors.IsNotFound(err) {
			w.Fatal(err)
		}
	}
}

func (w *sessionWorld) setCordon(node string, closed bool) {
	w.Helper()
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, closed)
	if _, err := w.client.CoreV1().Nodes().Patch(w.ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
}

// ask runs kubectl berth snapshot with the scheduler of this world.
func (w *sessionWorld) ask(args ...string) result {
	w.Helper()
	return w.run(append([]string{"snapshot", "--scheduler-address", w.address, "--insecure-skip-scheduler-tls-verify"}, args...)...)
}

// checkSessions runs the sessions again that are new.
func (w *sessionWorld) checkSessions() {
	w.Helper()
	var list result
	w.eventually(func() string { // until the scheduler has started
		if list = w.ask("--session", "list"); list.code != 0 {
			return list.stderr
		}
		return ""
	})
	for _, line := range strings.Split(strings.TrimSpace(list.stdout), "\n")[1:] {
		var number uint64
		if _, err := fmt.Sscan(line, &number); err != nil {
			w.Fatalf("%q: %v", line, err)
		}
		if !w.seen[number] {
			w.checkSession(number)
		}
	}
}

// checkSession runs a session again, and compares.
func (w *sessionWorld) checkSession(number uint64) {
	w.Helper()
	file := filepath.Join(w.files, fmt.Sprintf("session-%d.json", number))
	saved := w.ask("--session", fmt.Sprint(number), file)
	if saved.code != 0 {
		if strings.Contains(saved.stderr, "is not kept") { // newer sessions have replaced it
			return
		}
		w.Fatal(saved.stderr)
	}
	w.seen[number] = true
	b, err := manifest.Load([]string{file})
	if err != nil {
		w.Fatal(err)
	}
	session, read := manifest.SessionOf(b)
	for _, d := range session.Decisions {
		w.kinds[d.Action]++
	}
	w.kinds["refusal"] += len(session.Refusals)
	var filters struct{ Assumed, Pending []any }
	if err := json.Unmarshal(read, &filters); err != nil {
		w.Fatal(err)
	}
	w.kinds["assumed volume"] += len(filters.Assumed)
	w.kinds["pending claim"] += len(filters.Pending)
	again := run("simulate", "-f", file, "-o", "json")
	if want := fmt.Sprintf("note: berth-scheduler decided the same in session %d\n", number); again.code != 0 || again.stderr != want {
		w.Errorf("kubectl berth simulate: exit code %d\n%s", again.code, again.stderr)
	}
	if saved.stderr == "" {
		w.plain++
		if got := decided(w.TB, w.berth("simulate", file, "-o", "json")); !slices.EqualFunc(got, session.Decisions, sameDecision) {
			w.Errorf("berth simulate decides\n%v\nand berth-scheduler decided\n%v\nin session %d", got, session.Decisions, number)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		w.Fatal(err)
	}
	if strings.Contains(string(text), "secret-of-") {
		w.Errorf("the input of session %d has environment variables or annotations", number)
	}
}

// decided returns the decisions that berth simulate writes as JSON.
func decided(t testing.TB, text string) []manifest.SessionDecision {
	t.Helper()
	var r wire.Result
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	var out []manifest.SessionDecision
	for i := range r.Decisions {
		d := &r.Decisions[i]
		to := manifest.SessionDecision{Action: d.Action, Workload: d.Workload, Task: d.Task, Node: d.Node, For: d.For}
		for _, device := range d.Devices {
			to.Devices = append(to.Devices, device.Index)
		}
		out = append(out, to)
	}
	return out
}

func sameDecision(a, b manifest.SessionDecision) bool {
	return a.Action == b.Action && a.Workload == b.Workload && a.Task == b.Task && a.Node == b.Node && a.For == b.For && slices.Equal(a.Devices, b.Devices)
}
