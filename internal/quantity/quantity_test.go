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
}

func TestPair(t *testing.T) {
	bytes := func(v int64) engine.Quantity { return engine.Quantity{Value: v, Unit: engine.Bytes} }
	tests := map[string]struct{ a, b engine.Quantity }{
		"22.001 GiB and 22 GiB":                 {bytes(22<<30 + 1<<20), bytes(22 << 30)},
		"22.49 GiB and 22.5 GiB":                {bytes(23028 << 20), bytes(23040 << 20)},
		"1081.3 GiB and 1024 GiB":               {bytes(1081<<30 + 300<<20), bytes(1024 << 30)},
		"1.4 GiB and 170.4 MiB":                 {bytes(1434 << 20), bytes(170<<20 + 400<<10)},
		"12 TiB and 11 TiB":                     {bytes(12 << 40), bytes(11 << 40)},
		"10995116277761 B and 10995116277760 B": {bytes(10<<40 + 1), bytes(10 << 40)},
		"2 and 1":                               {engine.Quantity{Value: 2, Unit: engine.Count}, engine.Quantity{Value: 1, Unit: engine.Count}},
		"0.9 devices and 0.899 devices":         {engine.Quantity{Value: 900, Unit: engine.Devices}, engine.Quantity{Value: 899, Unit: engine.Devices}},
	}
	for want, tt := range tests {
		if a, b := Pair(tt.a, tt.b); a+" and "+b != want {
			t.Errorf("%s and %s, want %s", a, b, want)
		}
	}
}
