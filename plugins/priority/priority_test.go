package priority

import (
	"math"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

func TestCompare(t *testing.T) {
	tests := map[string]struct {
		left, right int32
		want        int
	}{
		"higher is first":                {10, 5, -1},
		"lower is last":                  {5, 10, +1},
		"equal priorities":               {5, 5, 0},
		"extreme values do not overflow": {math.MaxInt32, math.MinInt32, -1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			// Age and name are the opposite of the priority and must not count.
			l := &cluster.Job{ID: "job/z", Created: 9, Priority: tt.left}
			r := &cluster.Job{ID: "job/a", Created: 1, Priority: tt.right}
			if got := compare(l, r); got != tt.want {
				t.Errorf("compare = %d, want %d", got, tt.want)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"lowestFirst": true}`)); err == nil {
		t.Error("an unknown argument was accepted")
	}
}
