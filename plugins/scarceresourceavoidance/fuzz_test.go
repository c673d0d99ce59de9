package scarceresourceavoidance

import (
	"encoding/json"
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// FuzzQuantity checks that a quantity is parsed as Kubernetes does, is never negative and
// never overflows, and that any other text is an error.
func FuzzQuantity(f *testing.F) {
	for _, s := range []string{"8", "500m", "1.5", "64Gi", "512M", "-1", "1e9", "9223372036854775807", "9007199254740993Ki", "1.0005", "+1", "１", "0x10", "1_000", ".5", "1.", " 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q := Quantity(text)
		if v, err := q.cores(); err == nil && text != "" {
			compare(t, text, v, func(k *resource.Quantity) int64 { return k.MilliValue() }, math.MaxInt64/1000)
		}
		if v, err := q.bytes(); err == nil && text != "" {
			compare(t, text, v, func(k *resource.Quantity) int64 { return k.Value() }, math.MaxInt64)
		}
		data, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var back Quantity
		if err := json.Unmarshal(data, &back); err != nil {
			t.Errorf("%s: %v", data, err)
		}
		_ = json.Unmarshal([]byte(text), &back) // must not panic
	})
}

func compare(t *testing.T, text string, got int64, value func(*resource.Quantity) int64, most int64) {
	t.Helper()
	if got < 0 {
		t.Errorf("%q is parsed as %d", text, got)
	}
	k, err := resource.ParseQuantity(text)
	if err != nil {
		t.Errorf("%q is parsed as %d, but is an error in Kubernetes: %v", text, got, err)
		return
	}
	if k.CmpInt64(most) < 0 && value(&k) != got {
		t.Errorf("%q is parsed as %d, but as %d by Kubernetes", text, got, value(&k))
	}
}
