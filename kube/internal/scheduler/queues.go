package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/kube/internal/queuestatus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// invalidQueues are the queues that are not in State because their spec has an error. The loop
// writes them, and the writer of statuses reads them.
type invalidQueues struct {
	mu     sync.Mutex
	byName map[string]queuestatus.Invalid
}

// set notes whether the queue is valid, by the notes about how it was read.
func (q *invalidQueues) set(o *unstructured.Unstructured, notes []feed.Note) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.byName, o.GetName())
	for i := range notes {
		if notes[i].Severity == convert.Invalid {
			m := metaOf(o)
			q.byName[o.GetName()] = queuestatus.Invalid{Revision: feed.Revision(&m), Message: noteText(&notes[i])}
			return
		}
	}
}

func (q *invalidQueues) clone() map[string]queuestatus.Invalid {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.byName)
}

// writeQueues writes the statuses of queues until the context ends.
func (s *Scheduler) writeQueues(ctx context.Context) {
	queuestatus.New(queuestatus.Options{
		Client: s.options.Dynamic, Held: s.options.Held,
		Read: func() (queuestatus.Input, error) {
			shares, err := s.leader.Follower().QueueShares(time.Now().UnixNano())
			return queuestatus.Input{Shares: shares, Invalid: s.objects.invalid.clone()}, err
		},
		Report: func(err error) {
			level := slog.LevelWarn
			if errors.Is(err, queuestatus.ErrNotServed) {
				level = slog.LevelInfo // queues are optional
			}
			s.options.Log.Log(ctx, level, "The status of queues was not written.", "error", err)
		},
	}).Run(ctx)
}
