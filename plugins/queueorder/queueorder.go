// Package queueorder decides whose turn it is: the stronger tier's, then the
// higher priority's, then the older queue's.
//
// It looks at what queues are and refuses to know what they use: shares and
// quotas are not weighed here.
package queueorder

import (
	"cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Name is the plugin's name in a profile.
const Name = "QueueOrder"

type plugin struct{}

// New builds the plugin. It has no arguments.
func New(args engine.Arguments) (engine.Plugin, error) {
	if err := args.Decode(&struct{}{}); err != nil {
		return nil, err
	}
	return plugin{}, nil
}

func (plugin) Name() string                    { return Name }
func (plugin) OnSessionOpen(s *engine.Session) { s.AddQueueOrderFn(compare) }
func (plugin) OnSessionClose(*engine.Session)  {}

func compare(l, r *cluster.Queue) int {
	return cmp.Or(
		cmp.Compare(l.Tier.Rank(), r.Tier.Rank()),
		cmp.Compare(r.Priority, l.Priority),
		cmp.Compare(l.Created, r.Created),
	)
}
