package randomfit

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// TestDraw counts how often each of ten nodes has the highest number.
func TestDraw(t *testing.T) {
	p := plugin{seed: 1}
	var wins [10]int
	for task := range 10_000 {
		best, most := 0, -1.0
		for n := range wins {
			v := p.draw(fmt.Sprintf("job/%d/0", task), fmt.Sprintf("node-%d", n))
			if v < 0 || v > 100 {
				t.Fatalf("%v is out of range", v)
			}
			if v > most {
				best, most = n, v
			}
		}
		wins[best]++
	}
	for n, w := range wins {
		if w < 850 || w > 1150 {
			t.Errorf("node %d is drawn %d times of 10,000", n, w)
		}
	}
	if other := (plugin{seed: 2}); p.draw("a", "b") == other.draw("a", "b") || p.draw("a", "b") != p.draw("a", "b") {
		t.Error("the numbers do not depend on the seed alone")
	}
}

func TestArguments(t *testing.T) {
	built, err := New(enginetest.Arguments(`{"seed": 7}`))
	if err != nil || built != engine.Plugin(plugin{seed: 7}) || built.Name() != Name {
		t.Errorf("%+v, %v", built, err)
	}
}
