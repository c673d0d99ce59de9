package fairshare

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/fairshare"
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

// ReadSettings decodes the plugin's arguments. It leaves Decay.Now at 0.
func ReadSettings(args engine.Arguments) (fairshare.Settings, error) {
	var a arguments
	if err := args.Decode(&a); err != nil {
		return fairshare.Settings{}, err
	}
	if slices.Contains(a.Divide, "") {
		return fairshare.Settings{}, fmt.Errorf("divide lists a resource without a name; write one such as cpu")
	}
	decay, err := a.decay()
	return fairshare.Settings{Decay: decay, Divide: a.Divide}, err
}

func (a *arguments) decay() (fairshare.Decay, error) {
	const shortest, longest = time.Second, 100_000 * time.Hour
	d := fairshare.Decay{Weight: 1000}
	if w := a.PastWeight; w != nil {
		if !(*w >= 0 && *w <= 10) {
			return fairshare.Decay{}, fmt.Errorf("pastWeight %v is not from 0 to 10", *w)
		}
		if d.Weight = int64(math.Round(*w * 1000)); a.HalfLife == "" {
			return fairshare.Decay{}, fmt.Errorf("pastWeight is how strongly past use counts, and needs halfLife; add one such as 24h")
		}
	}
	if a.HalfLife == "" {
		return fairshare.Decay{}, nil
	}
	half, err := time.ParseDuration(a.HalfLife)
	if err != nil || half < shortest || half > longest {
		return fairshare.Decay{}, fmt.Errorf("halfLife %q is not a duration from 1s to 100000h; write one such as 24h, or leave it out and past use does not count", a.HalfLife)
	}
	d.HalfLife = int64(half)
	return d, nil
}
