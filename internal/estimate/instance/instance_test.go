package instance

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
)

func TestFind(t *testing.T) {
	want := Type{Name: "Standard_NC96ads_A100_v4", Cloud: "azure", GPUs: 4, Product: "A100", Memory: 320 << 30}
	for _, name := range []string{"Standard_NC96ads_A100_v4", "NC96ads_A100_v4", "standard_nc96ads_a100_v4"} {
		got, err := Find(name)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	tests := map[string]string{
		"Standard_NC96ads_A100_v5": `no instance type is called "Standard_NC96ads_A100_v5"; did you mean "Standard_NC96ads_A100_v4"?`,
		"g5.12xlarg":               `no instance type is called "g5.12xlarg"; did you mean "g5.12xlarge"?`,
		"my-own-rack":              `no instance type is called "my-own-rack"`,
	}
	for name, want := range tests {
		if _, err := Find(name); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestGroup(t *testing.T) {
	tests := map[string]cluster.GroupKey{
		"p4d.24xlarge":              {Product: "A100", Count: 8, Memory: 40960, Resource: "nvidia.com/gpu"},
		"Standard_NC80adis_H100_v5": {Product: "H100", Count: 2, Memory: 96256, Resource: "nvidia.com/gpu"},
		"Standard_ND96isr_H200_v5":  {Product: "H200", Count: 8, Memory: 144384, Resource: "nvidia.com/gpu"},
	}
	for name, want := range tests {
		got, err := Find(name)
		if diff := cmp.Diff(want, got.Group()); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestTypesArePlausible(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range All() {
		each := e.Memory >> 30 / cluster.Bytes(max(1, e.GPUs))
		if e.GPUs < 1 || e.Memory%cluster.Bytes(e.GPUs) != 0 || !slices.Contains([]cluster.Bytes{24, 40, 80, 94, 141}, each) {
			t.Errorf("%+v has %d GiB a device", e, each)
		}
		if n := strings.ToLower(e.Name); seen[n] {
			t.Errorf("%s is listed twice", e.Name)
		} else {
			seen[n] = true
		}
	}
	if len(seen) != 32 {
		t.Errorf("%d instance types", len(seen))
	}
}

func TestFindDevice(t *testing.T) {
	tests := map[string]string{
		"NVIDIA-L4": "NVIDIA-L4", "nvidia-l4": "NVIDIA-L4", "L4": "NVIDIA-L4", "h100": "NVIDIA-H100-80GB-HBM3",
		"T4": "Tesla-T4", "RTX-4090": "NVIDIA-GeForce-RTX-4090", "A100-SXM4-40GB": "NVIDIA-A100-SXM4-40GB",
	}
	for name, want := range tests {
		if got, err := FindDevice(name); err != nil || got.Product != want || got.Memory == 0 {
			t.Errorf("%s is %+v (%v), want %s", name, got, err, want)
		}
	}
	refused := map[string]string{
		"A100":    `"A100" may be NVIDIA-A100-SXM4-40GB or NVIDIA-A100-SXM4-80GB; write the full name`,
		"NVIDIA":  "may be NVIDIA-A10 or NVIDIA-L4",
		"H10":     `no device is called "H10"`,
		"":        `no device is called ""`,
		"TeslaT4": `did you mean "Tesla-T4"?`,
	}
	for name, want := range refused {
		if _, err := FindDevice(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
}

func TestDevicesAreSortedBySize(t *testing.T) {
	if all := Devices(); len(all) < 8 || !slices.IsSortedFunc(all, func(a, b Device) int { return int(a.Memory>>20 - b.Memory>>20) }) {
		t.Errorf("%+v", all)
	}
}
