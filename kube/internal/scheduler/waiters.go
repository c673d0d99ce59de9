package scheduler

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// patience is how long a pod must have waited for the other pods of its group, or for its queue,
// before its condition says so. The pods of most groups are created within that time, and a
// request for each of them would delay what others wait for.
const patience = time.Second

// waiters are pods that wait for other objects, in the order of their arrival.
type waiters []waiter

type waiter struct {
	pod types.UID
	at  time.Time
}

// add adds a pod that arrived.
func (w *waiters) add(pod types.UID, now time.Time) { *w = append(*w, waiter{pod, now}) }

// due removes and returns the pods that arrived long ago. The others are returned later.
func (w *waiters) due(now time.Time) []types.UID {
	var out []types.UID
	n := 0
	for ; n < len(*w) && now.Sub((*w)[n].at) >= patience; n++ {
		out = append(out, (*w)[n].pod)
	}
	*w = remaining(*w, n)
	return out
}
