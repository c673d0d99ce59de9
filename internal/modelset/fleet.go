package modelset

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/model"
)

// Fleet keeps the devices of a State as models see them, until a node changes. The zero value is
// ready to use. It belongs to one State.
type Fleet struct {
	known   *model.Fleet
	version uint64 // of the State when the fleet was known to be true
}

// of returns the devices of the State. The Fleet may be nil.
func (f *Fleet) of(s *cluster.State) *model.Fleet {
	if f == nil {
		return model.NewFleet(s.View().Groups())
	}
	if f.known == nil || f.changed(s) {
		f.known = model.NewFleet(s.View().Groups())
	}
	f.version = s.Version()
	return f.known
}

// changed reports whether a node was added or removed, or has changed otherwise than by its tasks.
func (f *Fleet) changed(s *cluster.State) bool {
	view, out := s.View(), false
	view.Recent().Nodes(f.version, func(slot int) {
		n := view.At(slot)
		out = out || n == nil || n.SpecVersion() > f.version || view.Recent().AddedVersion(slot) > f.version
	})
	return out
}
