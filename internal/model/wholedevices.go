package model

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// notOnWholeDevices is the problem of forms that hold parts of devices, if the devices of the
// cluster can only be used whole.
const notOnWholeDevices = "it takes a part of a device, and the nodes give whole devices to containers"

// useWholeDevices changes the forms so that every task holds whole devices, as it does on a node
// that itself chooses which devices a container gets.
func (p *converter) useWholeDevices() {
	for i := range p.forms {
		f := &p.forms[i]
		f.tasks = slices.Clone(f.tasks)
		changed := map[*cluster.Shape]*cluster.Shape{} // roles may share a shape
		for k := range f.tasks {
			was := f.tasks[k].shape
			if changed[was] == nil {
				own := *was
				if !own.Need.TakeWhole() && f.Problem == "" {
					f.Problem = notOnWholeDevices
				}
				changed[was] = &own
			}
			f.tasks[k].shape = changed[was]
		}
	}
}
