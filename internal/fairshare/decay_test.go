package fairshare

import (
	"math"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const hour = int64(3600e9)

// shared divides 6 devices among queues that request 6 each.
func shared(decay Decay, queues ...enginetest.Part) *Tree {
	parts := append(queues, enginetest.Node("n").CPU(0, "0").GPUs(6, "A100", "80Gi"))
	s := enginetest.State(parts...)
	for _, q := range s.Queues() {
		if q.Leaf() && q.Name != cluster.DefaultQueue {
			if err := s.Apply(cluster.JobPut{Job: *enginetest.Job(q.Name).Queue(q.Name).Devices(6).Build()}); err != nil {
				panic(err)
			}
		}
	}
	return Shares(s.View(), Offered(s.View()), Settings{Decay: decay})
}

// The use of the whole cluster forever counts 1. Its use in the last half-life counts 1/2, in
// the one before 1/4, and so on.
func TestPast(t *testing.T) {
	q := enginetest.Queue
	a := func(from, to, devices int64) *enginetest.QueueBuilder {
		return q("a").Past(from*hour, to*hour, gpu, devices*1000)
	}
	type list = []enginetest.Part
	type result struct{ share, past, weight int64 }
	tests := map[string]struct {
		strength int64
		queues   list
		want     map[string]result
	}{
		// a: 1/2 + (1/2 - 1/2), b: 1/2 + 1/2. 1 to 2.
		"one half-life": {1000, list{a(90, 100, 6), q("b")}, map[string]result{"a": {2000, 500, 667}, "b": {4000, 0, 1333}}},
		// a: 1/2 + 2 (1/2 - 1/4) = 1, b: 1/2 + 2/2. 2 to 3.
		"counting double": {2000, list{a(90, 100, 3), q("b")}, map[string]result{"a": {2400, 250, 800}, "b": {3600, 0, 1200}}},
		// a: 1/2 + (1/2 - 1/4), b: 1. 3 to 4.
		"one half-life ago": {1000, list{a(80, 90, 6), q("b")}, map[string]result{"a": {2571, 250, 857}, "b": {3429, 0, 1143}}},
		"what is to come":   {1000, list{a(90, 500, 6), q("b")}, map[string]result{"a": {2000, 500, 667}, "b": {4000, 0, 1333}}},
		"all to come":       {1000, list{a(100, 500, 6), q("b")}, map[string]result{"a": {3000, -1, -1}, "b": {3000, -1, -1}}},
		"no past use":       {1000, list{q("a"), q("b")}, map[string]result{"a": {3000, -1, -1}, "b": {3000, -1, -1}}},
		"alike":             {1000, list{a(90, 100, 3), q("b").Past(90*hour, 100*hour, gpu, 3000)}, map[string]result{"a": {3000, 250, 1000}, "b": {3000, 250, 1000}}},
		"another resource":  {1000, list{q("a").Past(90*hour, 100*hour, cluster.CPU, 6000), q("b")}, map[string]result{"a": {3000, -1, -1}, "b": {3000, -1, -1}}},
		// a: 1/2 + (1/2 - 1) is 0, so a hundredth of 1/2 is used; b: 1. 1 to 200.
		"never nothing": {1000, list{a(-10_000, 100, 6), q("b")}, map[string]result{"a": {30, 1000, 10}, "b": {5970, 0, 1990}}},
		// The queues used twice the total: 2/3 and 1/3 of it. 1/2 + 1/2 - 2/3 to 1/2 + 1/2 - 1/3.
		"more than there is": {1000, list{a(-10_000, 100, 8), q("b").Past(-10_000*hour, 100*hour, gpu, 4000)}, map[string]result{"a": {2000, 667, 667}, "b": {4000, 333, 1333}}},
		// Weights of 3 and 1. a: 3/4 + (3/4 - 1/2) = 1, b: 1/4 + 1/4. 2 to 1.
		"with weights": {1000, list{a(90, 100, 6).Weight(3), q("b")}, map[string]result{"a": {4000, 500, 2667}, "b": {2000, 0, 1333}}},
		// b has the higher priority and does not compete with a.
		"another priority": {1000, list{a(90, 100, 6), q("b").Priority(1)}, map[string]result{"a": {0, 500, 1000}, "b": {6000, -1, -1}}},
		// c has all that it requests within its quota and does not compete.
		"quotas come first": {1000, list{a(90, 100, 6), q("b"), q("c").Quota(gpu, 6000)}, map[string]result{"a": {0, 500, 667}, "b": {0, 0, 1333}, "c": {6000, -1, -1}}},
		// The use of the queues below top counts for top, as with one half-life. low used all of
		// the 2 devices of top: 1/2 + (1/2 - 1), so a hundredth of 1/2, to 1/2 + 1/2.
		"below": {1000, list{q("top"), q("b"), q("low").Parent("top").Past(90*hour, 100*hour, gpu, 6000), q("other").Parent("top")},
			map[string]result{"top": {2000, 500, 667}, "b": {4000, 0, 1333}, "low": {10, 1000, 10}, "other": {1990, 0, 1990}}},
		"reported above": {1000, list{q("top").Past(90*hour, 100*hour, gpu, 6000), q("b"), q("low").Parent("top").Past(90*hour, 100*hour, gpu, 99)},
			map[string]result{"top": {2000, 500, 667}, "b": {4000, 0, 1333}, "low": {2000, 25, 1000}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tree := shared(Decay{HalfLife: 10 * hour, Weight: tc.strength, Now: 100 * hour}, tc.queues...)
			got := map[string]result{}
			for name, q := range tree.ByName {
				for _, sh := range q.Shares {
					r := result{sh.Share(), -1, -1}
					if sh.Past != nil {
						r.past, r.weight = sh.Past.Share, sh.Past.Weight
					}
					got[name] = r
				}
			}
			if d := cmp.Diff(tc.want, got, cmp.AllowUnexported(result{})); d != "" {
				t.Errorf("shares (-want +got):\n%s", d)
			}
		})
	}
}

func drawPast(t *rapid.T, name string) *enginetest.QueueBuilder {
	b := enginetest.Queue(name).Weight(rapid.Int64Range(1, 9).Draw(t, "weight"))
	for range rapid.IntRange(0, 4).Draw(t, "samples") {
		from := rapid.Int64Range(-1000, 110).Draw(t, "from")
		b.Past(from*hour, (from+rapid.Int64Range(1, 50).Draw(t, "hours"))*hour, gpu, rapid.Int64Range(0, 9000).Draw(t, "held"))
	}
	return b
}

// With any past use, the whole total is divided. A queue that used more gets no more than
// before. Use that is long ago does not count.
func TestPastIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		decay := Decay{HalfLife: rapid.Int64Range(1, 100).Draw(t, "half-life") * hour, Weight: rapid.Int64Range(0, 10_000).Draw(t, "strength"), Now: 100 * hour}
		a, b, c := drawPast(t, "a"), drawPast(t, "b"), drawPast(t, "c")
		shares := func(d Decay) map[string]int64 {
			out, all := map[string]int64{}, int64(0)
			for name, q := range shared(d, a, b, c).ByName {
				for _, sh := range q.Shares {
					out[name] = sh.Share()
					all += sh.Share()
				}
			}
			if all != 6000 {
				t.Fatalf("6 devices were divided into %v", out)
			}
			return out
		}
		before := shares(decay)
		never := shares(Decay{})
		late := decay
		late.Now += 63*decay.HalfLife + 200*hour
		if d := cmp.Diff(never, shares(late)); d != "" {
			t.Errorf("the past still counts after 63 half-lives (-want +got):\n%s", d)
		}
		a.Past(90*hour, 95*hour, gpu, 3000)
		// Shares are rounded up or down to thousandths, so one more may be due to that.
		if after := shares(decay); after["a"] > before["a"]+1 {
			t.Errorf("a used more and gets %d instead of %d", after["a"], before["a"])
		}
	})
}

func TestHalved(t *testing.T) {
	d := Decay{HalfLife: 10 * hour}
	for age, want := range map[int64]uint64{0: one, 10 * hour: one / 2, 30 * hour: one / 8, 620 * hour: 2, 630 * hour: 0, math.MaxInt64: 0} {
		if got := d.halved(age); got != want {
			t.Errorf("%d hours: want %d, have %d", age/hour, want, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := Decay{HalfLife: rapid.Int64Range(1e9, 1e17).Draw(t, "half-life")}
		age := rapid.Int64Range(0, 20*d.HalfLife).Draw(t, "age")
		want := math.Exp2(-float64(age) / float64(d.HalfLife))
		if got := float64(d.halved(age)) / one; math.Abs(got-want) > 1e-14 {
			t.Errorf("want %v, have %v", want, got)
		}
	})
}
