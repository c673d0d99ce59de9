package enginetest_test

import (
	"fmt"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// Two nodes have four devices each. The gang takes all devices of both, and the second job
// is refused.
func Example() {
	state := enginetest.State(
		enginetest.Node("a").GPUs(4, "A100", "80Gi"),
		enginetest.Node("b").GPUs(4, "A100", "80Gi"),
		enginetest.Job("train").Gang(2).Devices(4),
		enginetest.Job("zeta").Devices(1),
	)
	session := enginetest.Engine(enginetest.Fit()).Open(state, engine.Options{})
	out, err := session.Run()
	if err != nil {
		panic(err)
	}
	if err := session.Close(); err != nil {
		panic(err)
	}
	for _, d := range out.Decisions {
		fmt.Println(d.Action, d.Task.ID(), d.Node)
	}
	for _, r := range out.Refusals {
		fmt.Println(r.Job, r.Reason)
	}
	// Output:
	// Bind job/train/worker-0 a
	// Bind job/train/worker-1 b
	// job/zeta NoRoom
}
