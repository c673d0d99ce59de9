package cluster

// A request for devices has two sides, and each of them comes in a few ways. A part
// is what a task takes of each device: all of it, a share, an amount of memory, or
// some of its layers. A set is which devices it takes together: a number of them,
// so many that they come to a sum, as many as hold its layers, or all of a node. The
// rest of the code asks the part and the set of a shape and does not tell ways apart.
//
// All other fields of a Need are conditions that hold for every way: on a single
// device (Need.Kind, Need.Selects), or on the devices of a task together (bond).
// What a device or a node can give, whatever the way, is in supply.go.
//
// To add a way, write a type and add it to one of the lists below.

// Parts and sets are tried in order: the first that is asked for is the one.
var (
	deviceParts []devicePart
	deviceSets  []deviceSet
	bonds       []bond
)

func init() {
	deviceParts = []devicePart{exclusivePart{}, layered{}, fullSharePart{}, sharePart{}, memoryPart{}, wholePart{}}
	deviceSets = []deviceSet{wholeNodeSet{}, layered{}, sumSet{}, number{}}
	bonds = []bond{sameProduct{}}
}

// part is a way to ask for a device.
type devicePart interface {
	asked(s *Shape) bool
	// counted reports whether a task takes its place on the device and says nothing
	// of memory, so that devices are counted and no more.
	counted() bool
	// empties reports whether a task takes only devices of which others hold nothing.
	empties() bool
	// matters reports whether it matters which of several devices are taken.
	matters(s *Shape) bool

	// suits reports whether the device has as much, held or not.
	suits(s *Shape, d *Device) bool
	// takes reports whether the device has as much beside what is held. It implies
	// suits. sure reports whether an idle device that suits takes the part.
	takes(s *Shape, d *Device) bool
	sure() bool
	// claim is what is held of a device that gives so much memory in all.
	claim(s *Shape, d *Device, room Bytes) (Milli, Bytes)

	// spare is the most that others may hold of a device that takes the part.
	spare(s *Shape) Milli
	// times is how many tasks have their part in so much of a device, at most.
	times(s *Shape, milli Milli, memory Bytes) int64
	// memory bounds what is held of the device's memory.
	memory(s *Shape, d *Device) (least, most Bytes)
	// fill is what is taken of what is free of the device, as a fraction.
	fill(s *Shape, d *Device) (part, free int64)

	// price is what is charged for the device, at most. cheapest is what is charged
	// for any device at least; true where it is the same for all of them.
	price(s *Shape, d *Device) Milli
	cheapest(s *Shape) (Milli, bool)

	// tooSmall and inUse are what so many devices are short of: to be large enough,
	// and to have enough free.
	tooSmall(v survey, want int) Shortage
	inUse(v survey, want int) Shortage
}

// partial is what those parts have in common that leave room on a device to others.
type partial struct{}

func (partial) counted() bool       { return false }
func (partial) empties() bool       { return false }
func (partial) sure() bool          { return true }
func (partial) matters(*Shape) bool { return true }

// set is a way to ask for devices together.
type deviceSet interface {
	asked(s *Shape) bool
	// plain reports whether the shape fits as soon as enough devices take their part.
	plain() bool
	// single reports whether there is one choice of devices at most.
	single() bool
	// sized reports whether the shape alone says how many devices are taken, and how
	// much of each. open reports whether their number is known only when they are chosen.
	sized() bool
	open(s *Shape) bool
	// matters reports whether it matters which devices are taken.
	matters(s *Shape) bool

	// choose picks devices. lay makes claims of devices that take their part, and are
	// in order of preference. met reports whether claims are enough together.
	choose(c choice) ([]Claim, bool)
	lay(c choice, order []int) ([]Claim, bool)
	met(v supply, claims []Claim) bool
	// spill is the memory of the node that is held beside the claims.
	spill(s *Shape, claims []Claim) Bytes
	// maySpill is the most that spill can be.
	maySpill(s *Shape) Bytes

	// wanted is how many devices are needed of a node that has so many.
	wanted(s *Shape, there int) int
	// tasks is how many tasks have devices that take so many parts in all, at most.
	tasks(s *Shape, parts int64) int64
	// fewest bounds from below how many of the tasks must leave; false where it is
	// not enough if all do.
	fewest(v supply, leaving []*Task) (int, bool)

	// count and each are how many devices are charged for, if all of the node's are
	// like this one, and how much of each; least bounds from below what is charged if
	// none is larger.
	count(v supply, d *Device) int64
	each(v supply, d *Device) Milli
	least(v supply, d *Device) int64
	// load is what is held of devices like this one, of which there is so much.
	load(s *Shape, d *Device, capacity int64) int64

	// roomy is a quick yes to whether the empty node has the devices. empty is what the
	// empty node is short of; false where that takes a closer look.
	roomy(v supply) bool
	empty(v supply) (Shortage, bool)
	// short is what the node is short of; gives is what the devices that were counted
	// give together.
	short(v supply) Shortage
	gives(v survey) int64
}

// bond is a condition on the devices of a task together: they are of one group.
type bond interface {
	asked(n *Need) bool
	group(n *Need, d *Device) string
	// uniform reports whether devices of one kind and size are of one group.
	uniform() bool
}

// ways is how a shape asks for devices. It is found when the shape is interned; a
// copy, which may be changed, has to find its own.
type deviceRequest struct {
	of   *Shape
	part devicePart
	set  deviceSet
	bond bond // nil: none
}

func deviceRequestOf(s *Shape) deviceRequest {
	return deviceRequest{s, findPart(s), findSet(s), findBond(&s.Need)}
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

func (s *Shape) bond() bond {
	if s.devices.of == s {
		return s.devices.bond
	}
	return findBond(&s.Need)
}

//go:noinline
func findPart(s *Shape) devicePart { return firstPart(s, deviceParts) }

func firstPart(s *Shape, kinds []devicePart) devicePart {
	at := 0
	for !kinds[at].asked(s) {
		at++
	}
	return kinds[at]
}

//go:noinline
func findSet(s *Shape) deviceSet {
	at := 0
	for !deviceSets[at].asked(s) {
		at++
	}
	return deviceSets[at]
}

func findBond(n *Need) bond {
	var found bond
	for _, b := range bonds {
		switch {
		case !b.asked(n):
		case found == nil:
			found = b
		default:
			found = bothBonds{found, b}
		}
	}
	return found
}

// bonded reports whether devices of different groups may not be mixed.
func (s *Shape) bonded() bool { return s.bond() != nil }

// group is the group of the device, if there is a bond.
func (s *Shape) group(d *Device) string { return s.bond().group(&s.Need, d) }

// both are two bonds at once.
type bothBonds struct{ a, b bond }

func (bothBonds) asked(*Need) bool { return false }
func (t bothBonds) uniform() bool  { return t.a.uniform() && t.b.uniform() }
func (t bothBonds) group(n *Need, d *Device) string {
	return t.a.group(n, d) + "\x00" + t.b.group(n, d)
}

// sameProduct is asked for by those that cannot use a mix of products.
type sameProduct struct{}

func (sameProduct) asked(n *Need) bool              { return n.SameProduct }
func (sameProduct) group(_ *Need, d *Device) string { return d.Product }
func (sameProduct) uniform() bool                   { return true }

// counted reports whether the shape takes devices by count alone.
func (s *Shape) counted() bool { return s.part().counted() }

// Price is the most that the shape is charged for the device, in thousandths.
func (s *Shape) Price(d *Device) Milli { return s.part().price(s, d) }

// Cheapest is the least that the shape is charged for each device, in thousandths;
// true where it is charged as much on every node.
func (s *Shape) Cheapest() (Milli, bool) {
	each, same := s.part().cheapest(s)
	return each, same && s.set().sized()
}

// MemoryOf bounds what the shape takes of the device's memory. On unified memory it
// may take less, if that is left.
func (s *Shape) MemoryOf(d *Device) (least, most Bytes) { return s.part().memory(s, d) }

// Fill is what the shape takes of what is free of the device, as a fraction.
func (s *Shape) Fill(d *Device) (part, free int64) { return s.part().fill(s, d) }

// Wanted is how many devices the shape needs of a node that has so many.
func (s *Shape) Wanted(there int) int {
	if s.Need.None() {
		return 0
	}
	return s.set().wanted(s, there)
}

// Sized reports whether the shape alone says how many devices it takes, and how much
// of each.
func (s *Shape) Sized() bool { return s.set().sized() }

// Open reports whether the number of devices is known only when they are chosen.
func (s *Shape) Open() bool { return s.set().open(s) }

// MaySpill is the most memory of a node that the shape takes beside what it requests
// and what it claims of devices.
func (s *Shape) MaySpill() Bytes { return s.set().maySpill(s) }

// Spill is how much of that it takes with the claims.
func (s *Shape) Spill(claims []Claim) Bytes { return s.set().spill(s, claims) }

// Matters reports whether it matters to other tasks of this shape which devices one
// of them takes.
func (s *Shape) Matters() bool { return s.set().matters(s) }

// Load is what the shape holds of devices like this one, of which there is so much,
// in thousandths.
func (s *Shape) Load(d *Device, capacity int64) int64 { return s.set().load(s, d, capacity) }

// Fewest bounds from below how many of the tasks must leave the node for the shape
// to have its devices; false where it would not have them if all left.
func (s *Shape) Fewest(n *Node, leaving []*Task) (int, bool) {
	return s.set().fewest(supplyOf(s, n), leaving)
}
