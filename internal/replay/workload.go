package replay

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/fgd"
)

// arguments are arguments of a plugin, as JSON.
type arguments []byte

// Decode implements engine.Arguments.
func (a arguments) Decode(into any) error { return json.Unmarshal(a, into) }

// FGDArguments returns the arguments with which FGD knows the workload of the trace from the
// beginning, as in its publication.
func (t *Trace) FGDArguments() engine.Arguments {
	out, err := json.Marshal(fgd.Arguments{Workload: t.requests()})
	if err != nil {
		panic(err) // numbers and texts can always be written
	}
	return arguments(out)
}

// requests returns the requests of the trace and how many tasks make each of them, the most
// frequent first.
func (t *Trace) requests() []fgd.Request {
	type key struct {
		cpu, milli int64
		devices    int
		products   string
	}
	counts := map[key]int64{}
	for i := range t.Jobs {
		j := &t.Jobs[i]
		k := key{cpu: j.CPU, devices: j.Devices, products: strings.Join(j.Products, "|")}
		if j.Devices > 0 {
			k.milli = int64(j.share())
		}
		counts[k] += int64(j.tasks() * max(1, t.Copies))
	}
	out := make([]fgd.Request, 0, len(counts))
	for k, n := range counts {
		out = append(out, fgd.Request{Count: n, CPU: k.cpu, Devices: k.devices, Milli: k.milli, Products: products(k.products)})
	}
	slices.SortFunc(out, func(a, b fgd.Request) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.Devices, b.Devices), cmp.Compare(a.Milli, b.Milli), slices.Compare(a.Products, b.Products))
	})
	return out
}
