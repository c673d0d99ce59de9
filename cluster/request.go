package cluster

// A request for devices has two sides, and there are several kinds of each. The
// devicePart is what a task takes of each device: all of it, a share, an amount of memory,
// or memory for some layers. The deviceSet is which devices it takes together: a number of
// them, a number with a minimum for the sum of their memory, as many as hold all layers, or
// all devices of a node. All other code calls the methods of the shape's devicePart and
// deviceSet, and does not depend on their kinds.
//
// All other fields of a Need are conditions that apply to every kind of request: either
// to a single device (Need.Kind, Need.Selects), or to the devices of a task together
// (groupRule). supply.go computes what a device or a node can offer, for every kind of
// request.
//
// To add a kind of request, write a type and add it to one of the lists below.

// The kinds of parts and sets are tested in order. The first for which applies returns
// true is that of the shape. Group rules are combined.
var (
	deviceParts []devicePart
	deviceSets  []deviceSet
	groupRules  []groupRule
)

func init() {
	deviceParts = []devicePart{exclusivePart{}, layersKind{}, fullSharePart{}, sharePart{}, memoryPart{}, wholePart{}}
	deviceSets = []deviceSet{wholeNodeSet{}, layersKind{}, sumSet{}, countSet{}}
	groupRules = []groupRule{sameProduct{}, sameLink{}}
}

// devicePart is what a task takes of each of its devices.
type devicePart interface {
	// applies reports whether the shape requests devices in this way.
	applies(s *Shape) bool
	// holdsWhole reports whether a task holds its devices whole, so that it suffices to
	// count devices.
	holdsWhole() bool
	// needsEmpty reports whether fewest may require that enough devices become empty. If it
	// is true, a task takes only devices that no other task holds. It may be false for a
	// part for which that holds too, such as fullSharePart.
	needsEmpty() bool
	// choiceMatters reports whether other tasks are affected by which of several devices
	// a task takes.
	choiceMatters(s *Shape) bool

	// suits reports whether the device is large enough, whether it is in use or not.
	suits(s *Shape, d *Device) bool
	// takes reports whether the device has enough free now. If it does, suits is true.
	takes(s *Shape, d *Device) bool
	// idleSuffices reports whether takes is always true for an idle device for which
	// suits is true.
	idleSuffices() bool
	// claim returns what a task holds of a device on which tasks can hold room bytes of
	// memory together.
	claim(s *Shape, d *Device, room Bytes) (Milli, Bytes)

	// mostHeldByOthers returns the most that other tasks may hold of a device for which
	// takes is true, in thousandths.
	mostHeldByOthers(s *Shape) Milli
	// partsWithin returns an upper bound for how many tasks fit into an amount of a
	// device's time and memory.
	partsWithin(s *Shape, milli Milli, memory Bytes) int64
	// memory returns bounds for how much of the device's memory a task holds.
	memory(s *Shape, d *Device) (least, most Bytes)
	// freeFraction returns what a task takes and what is free of the device, in a common
	// unit.
	freeFraction(s *Shape, d *Device) (part, free int64)

	// price returns the most that a queue is charged for the device, in thousandths.
	price(s *Shape, d *Device) Milli
	// cheapest returns the least that a queue is charged for any device, and true if the
	// charge is the same for all devices.
	cheapest(s *Shape) (Milli, bool)

	// tooSmall returns what is missing if fewer than want devices are large enough.
	tooSmall(v survey, want int) Shortage
	// inUse returns what is missing if fewer than want devices have enough free.
	inUse(v survey, want int) Shortage
}

// partial has the methods that are common to all parts that leave room on a device for
// other tasks.
type partial struct{}

func (partial) holdsWhole() bool          { return false }
func (partial) needsEmpty() bool          { return false }
func (partial) idleSuffices() bool        { return true }
func (partial) choiceMatters(*Shape) bool { return true }

// deviceSet is which devices a task takes together.
type deviceSet interface {
	// applies reports whether the shape requests devices in this way.
	applies(s *Shape) bool
	// countSuffices reports whether a task fits as soon as enough devices can each take it.
	countSuffices() bool
	// hasSingleChoice reports whether there is at most one choice of devices on a node.
	hasSingleChoice() bool
	// sized reports whether the shape alone determines how many devices a task takes, and
	// how much of each.
	sized() bool
	// hasOpenCount reports whether the number of devices is known only when they are
	// chosen.
	hasOpenCount(s *Shape) bool
	// choiceMatters reports whether other tasks are affected by which devices a task takes.
	choiceMatters(s *Shape) bool

	// choose chooses devices and returns the claims, or false if there are none.
	choose(c choice) ([]Claim, bool)
	// claimInOrder returns claims of the devices in order, which are sorted by preference
	// and can each take the task, or false if they do not suffice.
	claimInOrder(c choice, order []int) ([]Claim, bool)
	// suffice reports whether the claims suffice together.
	suffice(v supply, claims []Claim) bool
	// spill returns the memory of the node that a task holds in addition to its claims.
	spill(s *Shape, claims []Claim) Bytes
	// maySpill returns the most that spill can be.
	maySpill(s *Shape) Bytes

	// wanted returns how many devices a task needs on a node with there devices.
	wanted(s *Shape, there int) int
	// maxTasks returns an upper bound for how many tasks fit on devices that can take parts
	// parts in all.
	maxTasks(s *Shape, parts int64) int64
	// fewest returns a lower bound for how many of the tasks must leave. It returns false
	// if it does not suffice that all of them leave.
	fewest(v supply, leaving []*Task) (int, bool)
	// fewestBySummary is Shape.FewestBySummary.
	fewestBySummary(s *Shape, unfilled, held, widest int) (int, bool)

	// chargedDevices returns for how many devices a queue is charged, if all devices of
	// the node are like this one.
	chargedDevices(v supply, d *Device) int64
	// chargePerDevice returns how much a queue is charged for each of these devices, in
	// thousandths.
	chargePerDevice(v supply, d *Device) Milli
	// leastCharge returns a lower bound for what a queue is charged in all, if no device is
	// larger than this one.
	leastCharge(v supply, d *Device) int64
	// load returns how much a task holds of devices like this one, of which the node has
	// capacity thousandths.
	load(s *Shape, d *Device, capacity int64) int64

	// fitsEmptied is a cheap test whether the empty node has the devices. If it returns
	// false, the node may have them nevertheless.
	fitsEmptied(v supply) bool
	// shortageEmptied returns what the empty node lacks. It returns false if it cannot
	// tell.
	shortageEmptied(v supply) (Shortage, bool)
	// shortage returns what the node lacks now.
	shortage(v supply) Shortage
	// offered returns how much memory the devices of the survey offer together, for
	// comparison with other surveys.
	offered(v survey) int64
}

// groupRule is a condition on the devices of a task together: group must return the same
// string for all of them.
type groupRule interface {
	// applies reports whether the need has the condition.
	applies(n *Need) bool
	group(n *Need, d *Device) string
	// uniform reports whether group returns the same for all devices of one kind and size.
	uniform() bool
}

// deviceRequest holds the kinds of a shape's request for devices. It is computed when the
// shape is interned. A copy of the shape may be changed, so that deviceRequest is only
// valid for the shape of.
type deviceRequest struct {
	of        *Shape
	part      devicePart
	set       deviceSet
	groupRule groupRule // nil if the devices of a task need not be of one group
	layers    *layerTable
}

func deviceRequestOf(s *Shape) deviceRequest {
	out := deviceRequest{of: s, part: findPart(s), set: findSet(s), groupRule: findGroupRule(&s.Need)}
	if l := s.Need.Layers; l != nil {
		out.layers = newLayerTable(l)
	}
	return out
}

func (s *Shape) part() devicePart {
	if s.devices.of == s {
		return s.devices.part
	}
	return findPart(s)
}

func (s *Shape) set() deviceSet {
	if s.devices.of == s {
		return s.devices.set
	}
	return findSet(s)
}

func (s *Shape) groupRule() groupRule {
	if s.devices.of == s {
		return s.devices.groupRule
	}
	return findGroupRule(&s.Need)
}

// layers returns the table of the shape's layers. It must only be called if Need.Layers
// is not nil.
func (s *Shape) layers() *layerTable {
	if s.devices.of == s {
		return s.devices.layers
	}
	return newLayerTable(s.Need.Layers)
}

//go:noinline
func findPart(s *Shape) devicePart { return firstPart(s, deviceParts) }

func firstPart(s *Shape, kinds []devicePart) devicePart {
	at := 0
	for !kinds[at].applies(s) {
		at++
	}
	return kinds[at]
}

//go:noinline
func findSet(s *Shape) deviceSet {
	at := 0
	for !deviceSets[at].applies(s) {
		at++
	}
	return deviceSets[at]
}

func findGroupRule(n *Need) groupRule {
	var found groupRule
	for _, b := range groupRules {
		switch {
		case !b.applies(n):
		case found == nil:
			found = b
		default:
			found = bothRules{found, b}
		}
	}
	return found
}

// mustMatch reports whether all devices of a task must be in one group.
func (s *Shape) mustMatch() bool { return s.groupRule() != nil }

// group returns the group of the device. It must only be called if mustMatch returns
// true.
func (s *Shape) group(d *Device) string { return s.groupRule().group(&s.Need, d) }

// bothRules is the groupRule that requires two others.
type bothRules struct{ a, b groupRule }

func (bothRules) applies(*Need) bool { return false }
func (t bothRules) uniform() bool    { return t.a.uniform() && t.b.uniform() }
func (t bothRules) group(n *Need, d *Device) string {
	return t.a.group(n, d) + "\x00" + t.b.group(n, d)
}

// sameProduct is the groupRule that all devices of a task are of one product.
type sameProduct struct{}

func (sameProduct) applies(n *Need) bool            { return n.SameProduct }
func (sameProduct) group(_ *Need, d *Device) string { return d.Product }
func (sameProduct) uniform() bool                   { return true }

// sameLink is the groupRule that all devices of a task are in one NVLink domain. A device
// without one, and a part of a device, is in no group with others.
type sameLink struct{}

func (sameLink) applies(n *Need) bool { return n.SameLink && n.Devices > 1 }
func (sameLink) uniform() bool        { return false }
func (sameLink) group(_ *Need, d *Device) string {
	if d.Link == "" || d.Profile != "" || d.Parent != "" || d.Replica {
		return "\x00" + d.UUID
	}
	return d.Link
}

// holdsWhole reports whether a task of the shape holds its devices whole.
func (s *Shape) holdsWhole() bool { return s.part().holdsWhole() }

// Price returns the most that a queue is charged if a task of the shape takes the device,
// in thousandths.
func (s *Shape) Price(d *Device) Milli { return s.part().price(s, d) }

// Cheapest returns the least that a queue is charged for each device that a task of the
// shape takes, in thousandths, and true if the charge is the same on every node.
func (s *Shape) Cheapest() (Milli, bool) {
	each, same := s.part().cheapest(s)
	return each, same && s.set().sized()
}

// MemoryOf returns bounds for how much of the device's memory a task of the shape takes. On
// unified memory it may take less than least if less is free.
func (s *Shape) MemoryOf(d *Device) (least, most Bytes) { return s.part().memory(s, d) }

// FreeFraction returns what a task of the shape takes of the device and what is free of
// it, in a common unit, so that part/free is how much of the free room it fills.
func (s *Shape) FreeFraction(d *Device) (part, free int64) { return s.part().freeFraction(s, d) }

// Wanted returns how many devices a task of the shape needs on a node with there devices.
func (s *Shape) Wanted(there int) int {
	if s.Need.None() {
		return 0
	}
	return s.set().wanted(s, there)
}

// Sized reports whether the shape alone determines how many devices a task takes, and how
// much of each.
func (s *Shape) Sized() bool { return s.set().sized() }

// HasOpenCount reports whether the number of devices is known only when they are chosen.
func (s *Shape) HasOpenCount() bool { return s.set().hasOpenCount(s) }

// MaySpill returns the most memory of a node that a task of the shape takes in addition to
// what it requests of the node and what it claims of devices.
func (s *Shape) MaySpill() Bytes { return s.set().maySpill(s) }

// Spill returns how much of the memory of MaySpill a task with these claims takes.
func (s *Shape) Spill(claims []Claim) Bytes { return s.set().spill(s, claims) }

// ChoiceMatters reports whether other tasks of this shape are affected by which devices
// one of them takes.
func (s *Shape) ChoiceMatters() bool { return s.set().choiceMatters(s) }

// Load returns how much a task of the shape holds of devices like this one, in thousandths.
// capacity is how much there is of these devices, in thousandths.
func (s *Shape) Load(d *Device, capacity int64) int64 { return s.set().load(s, d, capacity) }

// Fewest returns a lower bound for how many of the leaving tasks must leave the node before
// it has the devices for the shape. It returns false if the node would not have them even
// if all of these tasks left.
func (s *Shape) Fewest(n *Node, leaving []*Task) (int, bool) {
	return s.set().fewest(supplyOf(s, n), leaving)
}

// FewestBySummary returns a bound that is not above the one of Fewest, and returns true
// whenever Fewest does. It needs only three numbers: how many devices of the node are
// unfilled, how many devices the leaving tasks hold together, and how many one of them holds
// at most.
func (s *Shape) FewestBySummary(unfilled, held, widest int) (int, bool) {
	return s.set().fewestBySummary(s, unfilled, held, widest)
}
