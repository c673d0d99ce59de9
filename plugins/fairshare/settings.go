package fairshare

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// arguments are what a profile may say about the plugin.
type arguments struct {
	// HalfLife is the time after which past use counts half; none: it does not count.
	HalfLife string `json:"halfLife"`
	// PastWeight is how strongly it counts, from 0 to 10; 1 unless given.
	PastWeight *float64 `json:"pastWeight"`
	// Divide names resources, such as cpu and memory, that are divided although no
	// queue has terms for them.
	Divide []string `json:"divide"`
}

// Settings are how a profile wants shares worked out.
type Settings struct {
	Decay  Decay
	Divide []string // resources that are divided whatever the terms of queues name
}

// ReadSettings reads the plugin's arguments; Now is left to the session.
func ReadSettings(args engine.Arguments) (Settings, error) {
	var a arguments
	if err := args.Decode(&a); err != nil {
		return Settings{}, err
	}
	if slices.Contains(a.Divide, "") {
		return Settings{}, fmt.Errorf("divide names a resource without a name; write one such as cpu")
	}
	decay, err := a.decay()
	return Settings{decay, a.Divide}, err
}

func (a *arguments) decay() (Decay, error) {
	const shortest, longest = time.Second, 100_000 * time.Hour
	d := Decay{Weight: 1000}
	if w := a.PastWeight; w != nil {
		if !(*w >= 0 && *w <= 10) {
			return Decay{}, fmt.Errorf("pastWeight %v is not from 0 to 10", *w)
		}
		if d.Weight = int64(math.Round(*w * 1000)); a.HalfLife == "" {
			return Decay{}, fmt.Errorf("pastWeight says how strongly the past counts; say with halfLife, such as 24h, how long it does")
		}
	}
	if a.HalfLife == "" {
		return Decay{}, nil
	}
	half, err := time.ParseDuration(a.HalfLife)
	if err != nil || half < shortest || half > longest {
		return Decay{}, fmt.Errorf("halfLife %q is no duration from 1s to 100000h; write one such as 24h, or leave it out and the past does not count", a.HalfLife)
	}
	d.HalfLife = int64(half)
	return d, nil
}

// Divided are the resources that queues divide: devices, what the terms of some
// queue name, and what the profile adds. All others are free for all: a quota of
// devices would be worth little if cores, which no queue has terms for, were divided
// by weight.
func (o *Settings) Divided(s cluster.View) map[string]bool {
	out := map[string]bool{}
	for _, list := range [][]string{deviceNames(s), o.Divide} {
		for _, name := range list {
			out[name] = true
		}
	}
	for _, q := range s.Queues() {
		for _, list := range []cluster.Resources{q.Quota, q.Limits, q.OverQuotaWeight} {
			for _, a := range list {
				out[a.Name] = true
			}
		}
	}
	return out
}

// deviceNames are the resources that devices of nodes are divided under:
// slices are parts of GPUs unless some queue has terms for their own name.
func deviceNames(s cluster.View) []string {
	kinds := s.Kinds()
	out := make([]string, len(kinds))
	for i := range kinds {
		if out[i] = kinds[i].Resource; kinds[i].Fraction > 0 {
			out[i] = gpu
		}
	}
	return out
}
