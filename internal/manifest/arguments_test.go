package manifest

import "testing"

func TestArguments(t *testing.T) {
	type args struct {
		Weight int `json:"weight"`
	}
	b, err := Parse("conf.yaml", []byte("apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\nplugins:\n- name: A\n  arguments: {weight: 2}\n- name: B\n  arguments:\n    wieght: 2\n- name: C"))
	if err != nil {
		t.Fatal(err)
	}
	c := b.Configuration()
	got := args{Weight: 1}
	if err := c.Entry("A").Arguments.Decode(&got); err != nil || got.Weight != 2 {
		t.Errorf("A: %+v, %v", got, err)
	}
	want := `conf.yaml:8:5: plugins[1].arguments: unknown field "wieght"; did you mean "weight"?`
	if err := c.Entry("B").Arguments.Decode(&args{}); err == nil || err.Error() != want {
		t.Errorf("B: %v", err)
	}
	got = args{Weight: 1}
	if e := c.Entry("C"); e.Arguments.Decode(&got) != nil || got.Weight != 1 || !e.Arguments.Empty() || e.Where != "conf.yaml:9" {
		t.Errorf("C: %+v, %+v", got, e)
	}
	if c.Entry("D") != nil {
		t.Error("D is not configured")
	}
	alone, err := ParseArguments("flag", []byte("weight: 7"))
	if err != nil || alone.Decode(&got) != nil || got.Weight != 7 {
		t.Errorf("alone: %+v, %v", got, err)
	}
}
