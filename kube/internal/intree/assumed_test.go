package intree

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// claimed returns a pod that claims the volume of a PersistentVolumeClaim.
func claimed(name, claim string) *v1.Pod {
	o := plain(name)
	o.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	return o
}

// putVolumes puts a volume on the node, and a claim for each name.
func putVolumes(t *testing.T, w *world, node string, claims ...string) {
	t.Helper()
	mode, class := storagev1.VolumeBindingWaitForFirstConsumer, "local"
	storage := v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	w.put(t, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &mode})
	w.put(t, &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "volume", ResourceVersion: "5"},
		Status:     v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable},
		Spec: v1.PersistentVolumeSpec{
			Capacity: storage, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: class,
			PersistentVolumeSource: v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/data"}},
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{node}}},
			}}}},
		},
	})
	for _, name := range claims {
		w.put(t, &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: "6"},
			Spec: v1.PersistentVolumeClaimSpec{
				AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: &class, Resources: v1.VolumeResourceRequirements{Requests: storage},
			},
		})
	}
}

// rerun returns the outcome of a session on a copy of the State and a new Store with the
// contents.
func rerun(t *testing.T, state *cluster.State, contents *Contents, a Assumed) engine.Outcome {
	t.Helper()
	store := NewStore()
	if err := contents.Fill(store); err != nil {
		t.Fatal(err)
	}
	if err := store.Assume(a); err != nil {
		t.Fatal(err)
	}
	p, err := build(store)
	if err != nil {
		t.Fatal(err)
	}
	e := enginetest.Engine(enginetest.Fit(), p)
	s := e.Open(state.Clone(), engine.Options{Now: 100})
	out, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestAssumedVolume checks that a session that is run again on the contents of the Store knows
// the volumes, and those that are reserved for pods that are not bound yet.
func TestAssumedVolume(t *testing.T) {
	w := newWorld(t)
	contents := NewContents()
	w.store.Observe(contents.Apply)
	w.putNode(t, node("n", map[string]string{v1.LabelHostname: "n"}))
	putVolumes(t, w, "n", "a", "b")
	w.job(t, claimed("first", "a"))
	if out := rerun(t, w.state, contents, Assumed{}); len(out.Decisions) != 1 {
		t.Fatalf("a new plugin decides %v", outline(&out))
	}
	if out := w.run(t); len(out.Decisions) != 1 {
		t.Fatalf("the pod is not placed: %v", outline(&out))
	}
	w.job(t, claimed("second", "b"))
	assumed := w.store.Assumed(w.state.View())
	if len(assumed.Objects) != 1 || assumed.Objects[0].(*v1.PersistentVolume).Spec.ClaimRef.Name != "a" {
		t.Fatalf("the assumed objects are %v", assumed.Objects)
	}
	want := w.run(t)
	if got := rerun(t, w.state, contents, assumed); len(got.Decisions) != 0 || outline(&got) != outline(&want) {
		t.Errorf("decided again: %s, want %s", outline(&got), outline(&want))
	}
	if without := rerun(t, w.state, contents, Assumed{}); len(without.Decisions) != 1 {
		t.Error("the volume is not needed by the second pod, so that the test shows nothing")
	}
	bound := assumed.Objects[0].(*v1.PersistentVolume).DeepCopy()
	bound.ResourceVersion = "7"
	w.put(t, bound)
	if left := w.store.Assumed(w.state.View()); len(left.Objects) != 0 {
		t.Errorf("after the API server has confirmed it, %v is assumed", left.Objects)
	}
}

func outline(out *engine.Outcome) string {
	text := ""
	for i := range out.Decisions {
		text += fmt.Sprintf("%s %v %s; ", out.Decisions[i].Action, out.Decisions[i].Task, out.Decisions[i].Node)
	}
	for _, r := range out.Refusals {
		text += fmt.Sprintf("%s %s; ", r.Job, r.Reason)
	}
	return text
}

// deviceWorld returns a world of node n, which has one device, with claims for it.
func deviceWorld(t *testing.T, claims ...string) (*world, *Contents) {
	t.Helper()
	const driver = "gpu.example.com"
	w := newWorld(t)
	contents := NewContents()
	w.store.Observe(contents.Apply)
	w.putNode(t, node("n", nil))
	name := "n"
	w.put(t, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: driver}})
	w.put(t, &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: driver, NodeName: &name, Pool: resourcev1.ResourcePool{Name: "n", Generation: 1, ResourceSliceCount: 1}, Devices: []resourcev1.Device{{Name: "gpu-0"}},
	}})
	for _, c := range claims {
		w.put(t, deviceClaim(c))
	}
	return w, contents
}

// deviceClaim returns a claim for one device.
func deviceClaim(name string) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: "5"},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "one", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.example.com", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
		}}}},
	}
}

// deviceUser returns a pod that uses the claim.
func deviceUser(name, claim string) *v1.Pod {
	o := plain(name)
	o.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "one", ResourceClaimName: &claim}}
	return o
}

// TestFilledBefore checks that a plugin that is built after the Store was filled knows the
// ResourceClaims in it and the devices that are allocated.
func TestFilledBefore(t *testing.T) {
	w, contents := deviceWorld(t, "c")
	w.job(t, deviceUser("p", "c"))
	if out := rerun(t, w.state, contents, Assumed{}); len(out.Decisions) != 1 {
		t.Errorf("the pod is not placed: %s", outline(&out))
	}
	other := deviceClaim("other")
	other.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "one", Driver: "gpu.example.com", Pool: "n", Device: "gpu-0"}},
	}}
	if out := rerun(t, w.state, contents, Assumed{Pending: []*resourcev1.ResourceClaim{other}}); len(out.Decisions) != 0 {
		t.Error("a device that is being allocated to another claim is allocated")
	}
	w.put(t, other)
	if out := rerun(t, w.state, contents, Assumed{}); len(out.Decisions) != 0 {
		t.Error("a device that is allocated to another claim is allocated")
	}
}

// TestAssumedHolds checks that a session that is run again knows what is reserved for tasks, and
// which pods are gone whose claims are not deallocated.
func TestAssumedHolds(t *testing.T) {
	w, contents := deviceWorld(t, "first", "second")
	gone := deviceUser("gone", "old")
	w.put(t, allocatedClaim("old", "elsewhere", string(gone.UID)))
	if err := w.store.PutPod(TaskKey{"job/gone", "gone", "uid"}, gone); err != nil {
		t.Fatal(err)
	}
	w.store.DeletePod(TaskKey{"job/gone", "gone", "uid"})
	w.job(t, deviceUser("a", "first"))
	if out := w.run(t); len(out.Decisions) != 1 {
		t.Fatalf("the pod is not placed: %s", outline(&out))
	}
	w.job(t, deviceUser("b", "second"))
	assumed := w.store.Assumed(w.state.View())
	if len(assumed.Holds) != 1 || assumed.Holds[0].Phase != "reserved" || len(assumed.Holds[0].Claims) != 1 || len(assumed.Gone) != 1 {
		t.Fatalf("held are %+v, gone are %v", assumed.Holds, assumed.Gone)
	}
	store := NewStore()
	if err := errors.Join(contents.Fill(store), store.Assume(assumed)); err != nil {
		t.Fatal(err)
	}
	p, err := build(store)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(assumed.Holds, p.claims.list()); d != "" || !slices.Equal(store.gone.list(), assumed.Gone) {
		t.Errorf("restored: %s, gone are %v", d, store.gone.list())
	}
	// In the session, the first pod is evicted, so that its device can be reserved for the other.
	evict := func(e *engine.Engine, state *cluster.State) string {
		t.Helper()
		s := e.Open(state, engine.Options{Now: 100})
		stmt := s.Begin()
		if err := stmt.Evict(state.Job("pod/default/a").Tasks()[0], "pod/default/b", "Test"); err != nil {
			t.Fatal(err)
		}
		stmt.Commit()
		out, err := s.Run()
		if err = errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		return outline(&out)
	}
	got := evict(enginetest.Engine(enginetest.Fit(), p), w.state.Clone())
	if want := evict(w.engine, w.state); got != want {
		t.Errorf("decided again: %s, want %s", got, want)
	}
	assumed.Holds[0].Phase = "unheard of"
	if err := NewStore().Assume(assumed); err == nil {
		t.Error("a phase that does not exist is accepted")
	}
}

// TestEvictedBeforeBound checks that what was allocated for a pod is released if the pod is evicted
// before it was bound, in whichever order State learns of that.
func TestEvictedBeforeBound(t *testing.T) {
	w, _ := deviceWorld(t, "first")
	id := w.job(t, deviceUser("a", "first"))
	if out := w.run(t); len(out.Decisions) != 1 {
		t.Fatalf("the pod is not placed: %s", outline(&out))
	}
	task := w.state.Job(id).Tasks()[0]
	claims := w.store.primary.claims
	h, _ := claims.get(KeyOf(task))
	claims.setPhase(h, prepared)
	s := w.engine.Open(w.state, engine.Options{Now: 100})
	stmt := s.Begin()
	if err := stmt.Evict(task, "pod/default/other", "Test"); err != nil {
		t.Fatal(err)
	}
	stmt.Commit()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if task.Status != cluster.Releasing {
		t.Fatalf("the task is %s", task.Status)
	}
	claims.settle(w.state.View())
	if list := w.store.Releases(); len(list) != 0 {
		t.Error("the claim is released before it is known that the pod was not bound")
	}
	w.apply(t, cluster.TaskSeen{Task: task.Ref(), UID: task.UID})
	if task.Status != cluster.Pending {
		t.Fatalf("the task is %s", task.Status)
	}
	claims.settle(w.state.View())
	if list := w.store.Releases(); len(list) != 1 {
		t.Errorf("%d holds are released, want 1", len(list))
	}
}

// TestDeleteOfEarlierObject checks that the deletion of an object does not remove one that has the
// same name and was created later.
func TestDeleteOfEarlierObject(t *testing.T) {
	s := NewStore()
	p, err := build(s)
	if err != nil {
		t.Fatal(err)
	}
	now := allocatedClaim("c", "gpu", "a")
	earlier := now.DeepCopy()
	earlier.UID = "earlier"
	if err := errors.Join(s.Put(now), s.Delete(earlier)); err != nil {
		t.Fatal(err)
	}
	if c, err := p.claims.tracker.Get("default", "c"); err != nil || c.UID != now.UID {
		t.Errorf("the claim is %v, %v", c, err)
	}
	if err := s.Delete(now); err != nil {
		t.Fatal(err)
	}
	if _, err := p.claims.tracker.Get("default", "c"); err == nil {
		t.Error("the claim is known after its deletion")
	}
}
