package fairshare

import "github.com/berth-project/berth/cluster"

// Settings are how shares are computed.
type Settings struct {
	Decay  Decay
	Divide []string // resources that are divided even if no queue names them
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
