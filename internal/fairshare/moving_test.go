package fairshare

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// Shares change with time while earlier use that differs from what is held now still
// counts. After ten half-lives it counts less than a thousandth.
func TestSharesMove(t *testing.T) {
	const hour = int64(3600e9)
	jobs := func(queues ...string) (out []enginetest.Part) {
		for _, q := range queues {
			out = append(out, enginetest.Queue(q), enginetest.Job("runs-"+q).Queue(q).Devices(2).On("n"), enginetest.Job("waits-"+q).Queue(q).Devices(4))
		}
		return out
	}
	past := enginetest.Queue("a").Past(90*hour, 100*hour, gpu, 4000)
	tests := map[string]struct {
		parts    []enginetest.Part
		halfLife int64
		until    int64 // in half-lives, rounded up to a multiple of five; 0: they do not change
	}{
		"no past that counts":      {append([]enginetest.Part{past}, jobs("a", "b")...), 0, 0},
		"both as before":           {jobs("a", "b"), 10 * hour, 0},
		"one had all":              {append([]enginetest.Part{past}, jobs("a", "b")...), 10 * hour, 15},
		"nothing to compete about": {append([]enginetest.Part{past}, jobs("a")...), 10 * hour, 0},
		"nothing was ever held":    {[]enginetest.Part{enginetest.Queue("a"), enginetest.Queue("b"), enginetest.Job("x").Queue("a").Devices(9), enginetest.Job("y").Queue("b").Devices(9)}, 10 * hour, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := enginetest.State(append([]enginetest.Part{enginetest.Node("n").CPU(9, "9Gi").GPUs(4, "A100", "80Gi")}, tt.parts...)...)
			var k Keeper
			until := int64(0)
			for lives := int64(0); lives <= 65; lives += 5 {
				now := 100*hour + lives*10*hour
				if err := s.Apply(cluster.SessionOpened{Now: now}); err != nil {
					t.Fatal(err)
				}
				k.follow(s.View(), Offered(s.View()), Settings{Decay: Decay{HalfLife: tt.halfLife, Weight: 1000, Now: now}})
				if k.Moving() {
					until = lives + 5
				}
			}
			if until != tt.until {
				t.Errorf("shares change until %d half-lives have passed, want %d", until, tt.until)
			}
		})
	}
}
