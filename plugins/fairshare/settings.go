package fairshare

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// arguments are the plugin's arguments.
type arguments struct {
	// HalfLife is the time after which past use counts half. Unless given, past use does not count.
	HalfLife string `json:"halfLife"`
	// PastWeight is how strongly past use counts, from 0 to 10; 1 unless given.
	PastWeight *float64 `json:"pastWeight"`
	// Divide lists further resources to divide, such as cpu and memory, that no queue
	// names in its quota, limits or weights.
	Divide []string `json:"divide"`
}

// Settings are how shares are computed.
type Settings struct {
	Decay  Decay
	Divide []string // resources that are divided even if no queue names them
}

// ReadSettings decodes the plugin's arguments. It leaves Decay.Now at 0.
func ReadSettings(args engine.Arguments) (Settings, error) {
	var a arguments
	if err := args.Decode(&a); err != nil {
		return Settings{}, err
	}
	if slices.Contains(a.Divide, "") {
		return Settings{}, fmt.Errorf("divide lists a resource without a name; write one such as cpu")
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
			return Decay{}, fmt.Errorf("pastWeight is how strongly past use counts, and needs halfLife; add one such as 24h")
		}
	}
	if a.HalfLife == "" {
		return Decay{}, nil
	}
	half, err := time.ParseDuration(a.HalfLife)
	if err != nil || half < shortest || half > longest {
		return Decay{}, fmt.Errorf("halfLife %q is not a duration from 1s to 100000h; write one such as 24h, or leave it out and past use does not count", a.HalfLife)
	}
	d.HalfLife = int64(half)
	return d, nil
}

// Divided returns the resources that queues divide: devices, the resources that some queue
// names in its quota, limits or weights, and those of the settings. Other resources are
// not divided: a quota of devices would be worth little if cores, which no queue names,
// were divided by weight.
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

// deviceNames returns the resource names under which devices are divided. Slices are
// fractions of GPUs unless some queue names them.
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
