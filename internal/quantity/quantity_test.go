package quantity

import (
	"testing"

	"github.com/berth-project/berth/engine"
)

func TestQuantity(t *testing.T) {
	for want, q := range map[string]engine.Quantity{
		"38GiB":       {Value: 38 << 30, Unit: engine.Bytes},
		"22.488GiB":   {Value: 23028 << 20, Unit: engine.Bytes},
		"512B":        {Value: 512, Unit: engine.Bytes},
		"2 devices":   {Value: 2000, Unit: engine.Devices},
		"0.5 devices": {Value: 500, Unit: engine.Devices},
		"1 device":    {Value: 1000, Unit: engine.Devices},
		"500m cores":  {Value: 500, Unit: engine.Cores},
		"16 cores":    {Value: 16000, Unit: engine.Cores},
		"7":           {Value: 7, Unit: engine.Count},
		"":            {Value: 7},
	} {
		if got := Compact(q); got != want {
			t.Errorf("have %q, want %q", got, want)
		}
	}
	a, b := Pair(engine.Quantity{Value: 22<<30 + 1<<20, Unit: engine.Bytes}, engine.Quantity{Value: 22 << 30, Unit: engine.Bytes})
	if a == b {
		t.Errorf("different amounts are both spelled %q", a)
	}
}
