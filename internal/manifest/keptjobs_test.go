package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/internal/model"
)

// A replica that runs stays in State when its spec is edited, and a note says so.
func TestEditedModelsAreKept(t *testing.T) {
	const gone = "none of its forms has these tasks on so many devices"
	node := func(devices string) string {
		return "\n---\napiVersion: berth.dev/v1alpha1\nkind: Node\nmetadata: {name: gpu}\nspec: {resources: {cpu: 64, memory: 512Gi}, devices: {product: A10, count: 2, memory: 20Gi" + devices + "}}"
	}
	tests := map[string]struct{ spec, placements, devices, holds, why string }{
		"as asked":        {"{source: {preset: phi-4-mini}, context: 4096}", "{task: server-0, node: gpu, devices: [0]}", "", "0: 18 GiB", ""},
		"more context":    {"{source: {preset: phi-4-mini}, sequences: 64}", "{task: server-0, node: gpu, devices: [0]}", "", "0: 18 GiB", "server-0 on gpu: devices [0] are not what the task asks for"},
		"not distributed": {"{source: {preset: phi-4-mini}, context: 4096}", "{task: leader-0, node: gpu, devices: [0]}, {task: worker-0, node: gpu, devices: [1]}", "", "0: 18 GiB 1: 18 GiB", gone},
		"whole nodes":     {"{memory: {device: 1Gi}, placement: {unit: Node}}", "{task: server-0, node: gpu, devices: [1]}", "", "1: 18 GiB", gone},
		"other devices":   {"{memory: {device: 1Gi}, placement: {devices: ['gpu:cuda:1']}}", "{task: server-0, node: gpu, devices: [0]}", "", "0: 18 GiB", "server-0 on gpu: device 0 is not of the kind that it requests"},
		"other backend":   {"{memory: {device: 1Gi}, backend: mindie}", "{task: server-0, node: gpu, devices: [0]}", "", "0: 16 GiB", "server-0 on gpu: device 0 is not of the kind that it requests"},
		"not without one": {"{memory: {device: 1Gi}, backend: custom}", "{task: server-0, node: gpu, devices: []}", "", "", gone},
		"lost":            {"{memory: {device: 1Gi}, backend: custom}", "{task: server-0, node: gpu, devices: [0]}", ", lost: [0]", "0: 20 GiB", "server-0 on gpu: device 0 is lost"},
		"more of them":    {"{memory: {device: 1Gi}, backend: custom, placement: {devicesPerReplica: 1}}", "{task: server-0, node: gpu, devices: [0, 1]}", "", "0: 1 GiB 1: 1 GiB", gone},
		"named before":    {"{memory: {device: 1Gi}}", "{task: server-0, node: gpu, devices: [0]}", "", "0: 18 GiB", ""},
	}
	for name, tt := range tests {
		form := ""
		if name == "named before" {
			form = "form: " + model.AsItRuns + ", "
		}
		b, err := Parse("f", []byte(object("Model", "chat", "spec: "+tt.spec+"\nstatus: {replicas: [{replica: 0, "+form+"placements: ["+tt.placements+"]}]}")+node(tt.devices)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s, err := b.State()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		j := s.Job("model/chat-0")
		var holds []string
		for _, task := range j.Tasks() {
			if task.Node == nil {
				t.Errorf("%s: %s has no node", name, task.ID)
			}
			for _, c := range task.Claims {
				holds = append(holds, fmt.Sprintf("%d: %d GiB", c.Device, c.Memory>>30))
			}
		}
		remark := ""
		if n := len(j.Remarks); j.Alternatives[j.Chosen].Running && n > 0 {
			remark = strings.TrimSuffix(strings.TrimPrefix(j.Remarks[n-1], "It is kept as it runs, which is not what its spec asks for now: "), ".")
		}
		if diff := cmp.Diff([]string{tt.holds, tt.why}, []string{strings.Join(holds, " "), remark}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if noted := strings.Contains(strings.Join(b.Notes, "\n"), "model/chat-0 ("+tt.why+")"); noted != (tt.why != "") {
			t.Errorf("%s: notes %q", name, b.Notes)
		}
	}
}

// Kept tasks on one device share what the other tasks leave of it.
func TestKeptTasksShareADevice(t *testing.T) {
	both := "placements: [{task: server-0, node: gpu, devices: [0]}]"
	text := object("Model", "chat", "spec: {backend: custom, memory: {device: 30Gi}, replicas: 2}\nstatus: {replicas: [{replica: 0, "+both+"}, {replica: 1, "+both+"}]}") +
		"\n---\n" + object("Model", "other", "spec: {backend: custom, memory: {device: 4Gi}}\nstatus: {replicas: [{replica: 0, "+both+"}]}") + gpu
	b, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]int64{"model/chat-0": 10, "model/chat-1": 10, "model/other-0": 4} {
		if got := int64(s.Job(id).Tasks()[0].Claims[0].Memory >> 30); got != want {
			t.Errorf("%s holds %d GiB, want %d", id, got, want)
		}
	}
}
