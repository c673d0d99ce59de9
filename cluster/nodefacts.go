package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

func (c NodePut) apply(s *State) error {
	if c.Node.Name == "" {
		return fmt.Errorf("a node has no name")
	}
	n := s.fleet.find(c.Node.Name)
	if n != nil && !n.absent && stale(c.Revision, n.revision) {
		return nil
	}
	spec := c.Node.clone()
	if err := spec.prepare(); err != nil {
		return fmt.Errorf("node %q: %w", spec.Name, err)
	}
	spec.revision = c.Revision
	switch {
	case n == nil:
		spec.normalize()
		s.fleet.add(spec)
	case !n.absent && n.sameSpec(spec):
		n.revision = max(n.revision, c.Revision)
	default:
		s.inventory.respecify(n, spec)
	}
	return nil
}

// stale reports whether a fact with this revision is not newer than the known revision,
// so that the fact is ignored. Revision 0 means that the source has no revisions, and
// is never stale.
func stale(revision, known uint64) bool { return revision != 0 && revision <= known }

// prepare clears the ledgers, tasks and group of a reported node, which only State may set,
// and gives each device without a UUID one. It keeps the IDs of devices, because snapshots
// have them; nameDevices replaces those that are not consistent. It fails if two devices
// have the same UUID.
func (n *Node) prepare() error {
	n.Isolated, n.Tasks, n.group, n.absent = 0, nil, nil, false
	n.preemptibleMilli, n.unknownDeviceTasks, n.unreported = 0, 0, false // the node may be one of another State
	n.SupportedIsolation.CPU, n.SupportedIsolation.GPU = nilIfEmpty(n.SupportedIsolation.CPU), nilIfEmpty(n.SupportedIsolation.GPU)
	for i := range n.Resources {
		n.Resources[i] = Ledger{Name: n.Resources[i].Name, Capacity: n.Resources[i].Capacity}
	}
	uuids := make(map[string]bool, len(n.Devices))
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Use, d.Gone = (DeviceUse{}), false; d.DeviceSpec == nil { // nothing was reported of it
			d.DeviceSpec = &DeviceSpec{}
		}
		if d.UUID == "" {
			d.UUID = fmt.Sprintf("%s-%d", n.Name, i) // without a UUID, its index identifies it
		}
		if uuids[d.UUID] {
			return fmt.Errorf("two devices have the UUID %q", d.UUID)
		}
		uuids[d.UUID] = true
	}
	joinUUIDs(n.Devices)
	return nil
}

// joinUUIDs copies the UUIDs of the devices into one string, which takes less memory than a string
// for each.
func joinUUIDs(devices []Device) {
	var all strings.Builder
	size := 0
	for i := range devices {
		size += len(devices[i].UUID)
	}
	all.Grow(size)
	for i := range devices {
		all.WriteString(devices[i].UUID)
	}
	rest := all.String()
	for i := range devices {
		size := len(devices[i].UUID)
		devices[i].UUID, rest = rest[:size], rest[size:]
	}
}

// nilIfEmpty returns nil for an empty list. JSON omits both, so a decoded list is nil where
// the original was empty; comparisons must not see a difference.
func nilIfEmpty[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// sameSpec reports whether the reported spec changes nothing of the node.
func (n *Node) sameSpec(spec *Node) bool {
	return n.Cell == spec.Cell && n.Unschedulable == spec.Unschedulable && n.Unified == spec.Unified &&
		n.Sharing == spec.Sharing && (spec.DeviceResource == "" && n.DeviceResource == DefaultDeviceResource || n.DeviceResource == spec.DeviceResource) &&
		maps.Equal(n.Labels, spec.Labels) && slices.Equal(n.Taints, spec.Taints) &&
		n.SupportedIsolation.Share == spec.SupportedIsolation.Share && n.SupportedIsolation.IsolableCores == spec.SupportedIsolation.IsolableCores &&
		slices.Equal(n.SupportedIsolation.CPU, spec.SupportedIsolation.CPU) && slices.Equal(n.SupportedIsolation.GPU, spec.SupportedIsolation.GPU) &&
		(n.Defect == nil) == (spec.Defect == nil) && (n.Defect == nil || *n.Defect == *spec.Defect) &&
		sameCapacities(n.Resources, spec.Resources) && sameDevices(n.Devices, spec.Devices, n.DeviceResource)
}

func sameCapacities(known, spec []Ledger) bool {
	return len(known) == len(spec) && !slices.ContainsFunc(spec, func(l Ledger) bool {
		i := slices.IndexFunc(known, func(k Ledger) bool { return k.Name == l.Name })
		return i < 0 || known[i].Capacity != l.Capacity
	})
}

func sameDevices(known, spec []Device, resource string) bool {
	listed := len(known)
	for listed > 0 && known[listed-1].Gone { // devices that are not reported any more are at the end
		listed--
	}
	return slices.EqualFunc(known[:listed], spec, func(d, o Device) bool {
		return d.UUID == o.UUID && !d.Gone && d.Product == o.Product && d.Profile == o.Profile && d.Memory == o.Memory &&
			d.Reserved == o.Reserved && d.Type == o.Type && d.NUMA == o.NUMA && d.PCIe == o.PCIe && d.Link == o.Link && d.Replica == o.Replica && d.ByCount == o.ByCount &&
			d.Shares == o.Shares && d.Parent == o.Parent && d.Resource == o.resourceOr(resource)
	})
}

// inventory changes the specs of nodes while tasks are on them.
type inventory struct {
	journal    *journal
	fleet      *fleet
	booking    *booking
	taskStates *taskStates
}

// respecify gives a known node another spec. The node keeps its status, and its tasks
// keep their claims: devices are matched by UUID, whatever their order. A device that
// the new spec does not list is dropped if no task holds it. Otherwise it stays on the
// node, marked as Lost and Gone. It stays even after the task has released it, until the
// next call of respecify or until addUnlistedDevice reuses its index.
func (v *inventory) respecify(n, spec *Node) {
	devices, at := mergeDevices(n, spec.Devices)
	after := *spec
	after.Devices, after.Phase, after.Artifacts, after.Avoids = devices, n.Phase, n.Artifacts, n.Avoids
	if n.absent { // the node is reported for the first time or again: its status is reported with it
		after.Phase, after.Artifacts, after.Avoids = spec.Phase, spec.Artifacts, spec.Avoids
	}
	claims := taskClaims(n)
	for i := range claims {
		claims[i] = reindexClaims(claims[i], at)
	}
	v.replaceSpec(n, &after, claims, false)
	v.taskStates.recountLater(n)
}

// mergeDevices returns the devices of a spec with the status that State knows, followed
// by the devices that the spec does not list and tasks still hold. at maps the old index
// of each device to its new one, or to -1 if the device is dropped.
func mergeDevices(n *Node, spec []Device) (devices []Device, at []int) {
	place := make(map[string]int, len(n.Devices))
	at = make([]int, len(n.Devices))
	for i := range n.Devices {
		if at[i] = -1; !n.Devices[i].Gone || !n.Devices[i].Idle() {
			place[n.Devices[i].UUID] = i
		}
	}
	for _, d := range spec {
		i, known := place[d.UUID]
		if known {
			at[i] = len(devices)
		}
		switch {
		case n.unreported: // the devices were only guessed from tasks: the spec replaces them
		case n.absent && known: // the node is reported again, with a new status
			d.ID = cmp.Or(n.Devices[i].ID, d.ID)
		case n.absent:
		case known:
			old := &n.Devices[i]
			d.ID, d.Foreign, d.Lost = cmp.Or(old.ID, d.ID), old.Foreign, old.Lost && !old.Gone
		default:
			d.Lost, d.Foreign = false, 0
		}
		devices = append(devices, d)
	}
	for i := range n.Devices {
		if d := n.Devices[i]; at[i] < 0 && !d.Idle() {
			d.Lost, d.Gone = true, true
			at[i] = len(devices)
			devices = append(devices, d)
		}
	}
	return devices, at
}

func taskClaims(n *Node) [][]Claim {
	out := make([][]Claim, len(n.Tasks))
	for i, t := range n.Tasks {
		out[i] = t.Claims
	}
	return out
}

// reindexClaims returns the claims with the new indexes of their devices.
func reindexClaims(claims []Claim, at []int) []Claim {
	out := slices.Clone(claims)
	for i := range out {
		out[i].Device = at[out[i].Device]
	}
	slices.SortFunc(out, func(a, b Claim) int { return a.Device - b.Device })
	return out
}

// replaceSpec gives the node the spec and status of the node to, and its tasks the
// claims, which are in the order of n.Tasks. If absent is true, the node is removed from
// the fleet and kept only for its tasks.
func (v *inventory) replaceSpec(n, to *Node, claims [][]Claim, absent bool) {
	before, was, wasAbsent := n.clone(), taskClaims(n), n.absent
	v.rewrite(n, to, claims, absent)
	if v.journal.recording() {
		v.journal.recordUndo(func() { v.rewrite(n, before, was, wasAbsent) })
	}
}

// rewrite is replaceSpec without the journal. It takes the tasks out of the ledgers and
// classes first, and books them again on the changed node.
func (v *inventory) rewrite(n, to *Node, claims [][]Claim, absent bool) {
	for _, t := range n.Tasks {
		v.booking.bookAndList(t, -1) // before the node changes: the class depends on whether the node is absent
	}
	if !n.absent {
		if absent {
			v.fleet.delete(n)
		} else {
			v.fleet.leaveGroup(n)
		}
	}
	was := n.absent
	n.replaceSpec(to)
	n.absent, n.Isolated = absent, 0
	for i := range n.Resources {
		n.Resources[i].Used, n.Resources[i].LeftOut, n.Resources[i].Releasing = 0, 0, 0
	}
	for i := range n.Devices {
		n.Devices[i].Use = DeviceUse{}
	}
	n.normalize()
	switch {
	case absent:
	case was:
		v.fleet.insert(n)
	default:
		if g := v.fleet.joinGroup(n); g != nil {
			g.Nodes = insert(g.Nodes, n, byName)
		}
	}
	v.fleet.touch(n)
	n.spec = n.version
	for i, t := range n.Tasks {
		t.Claims = claims[i]
		v.booking.bookAndList(t, +1)
	}
	v.fleet.listAbsent(n)
}

// replaceSpec copies the spec and status of the other node, and keeps the fields by
// which State tracks this one.
func (n *Node) replaceSpec(o *Node) {
	was := *n
	*n = *o
	n.Name, n.Tasks, n.slot, n.group, n.version, n.freed, n.unknownDeviceTasks, n.preemptibleMilli = was.Name, was.Tasks, was.slot, was.group, was.version, was.freed, was.unknownDeviceTasks, was.preemptibleMilli
	n.Devices, n.Resources = slices.Clone(o.Devices), slices.Clone(o.Resources) // the journal may still refer to o
}

func (c NodeSeen) apply(s *State) error {
	n := s.fleet.find(c.Name)
	if n == nil {
		return nil // the status of an unknown node is not kept
	}
	to := n.clone()
	if c.Phase != nil {
		to.Phase = *c.Phase
	}
	if c.Artifacts != nil {
		to.Artifacts = maps.Clone(*c.Artifacts)
	}
	changed := to.Phase != n.Phase || !maps.Equal(to.Artifacts, n.Artifacts)
	if c.Lost != nil {
		for i := range to.Devices {
			d := &to.Devices[i]
			lost := d.Gone || slices.Contains(*c.Lost, d.UUID)
			changed = changed || lost != d.Lost
			d.Lost = lost
		}
	}
	if !changed {
		return nil
	}
	s.inventory.replaceSpec(n, to, taskClaims(n), n.absent)
	s.taskStates.recountLater(n)
	return nil
}

func (c NodeGone) apply(s *State) error {
	n := s.fleet.byName[c.Name]
	if n == nil {
		return nil
	}
	for _, t := range slices.Clone(n.Tasks) {
		if t.Status == Nominated { // also the reservation of a task that moves here
			s.taskStates.clear(t)
		}
	}
	if len(n.Tasks) == 0 {
		s.fleet.remove(n)
		return nil
	}
	s.inventory.replaceSpec(n, n.clone(), taskClaims(n), true)
	return nil
}

func (c NodeRead) apply(s *State) error {
	n := s.fleet.byName[c.Name]
	if n == nil {
		return nil // the reading cannot be compared with what tasks hold
	}
	free := make([]Bytes, len(n.Devices))
	for i := range n.Devices {
		free[i] = -1
		if v, read := c.Free[n.Devices[i].UUID]; read {
			if v < 0 {
				return fmt.Errorf("node %q: device %q: %d bytes free; the number cannot be negative", c.Name, n.Devices[i].UUID, v)
			}
			free[i] = v
		}
	}
	s.fleet.applyReading(n, free)
	return nil
}

// newNodes returns the length of the longest prefix of the changes that adds only nodes
// that are not known, each once.
func (v *inventory) newNodes(changes []Change) int {
	seen := map[string]bool{}
	for i, c := range changes {
		put, ok := c.(NodePut)
		if !ok || put.Node.Name == "" || v.fleet.find(put.Node.Name) != nil || seen[put.Node.Name] {
			return i
		}
		seen[put.Node.Name] = true
	}
	return len(changes)
}

// addNodes adds the nodes of the changes, which newNodes has checked, and returns how many
// it added. It fails at the first malformed node; the nodes before it are added.
func (v *inventory) addNodes(changes []Change) (added int, err error) {
	nodes := make([]*Node, 0, len(changes))
	defer func() { v.fleet.addAll(nodes) }()
	for _, c := range changes {
		put := c.(NodePut)
		n := put.Node.clone()
		if err := n.prepare(); err != nil {
			return len(nodes), fmt.Errorf("node %q: %w", n.Name, err)
		}
		n.revision = put.Revision
		nodes = append(nodes, n)
	}
	return len(nodes), nil
}
