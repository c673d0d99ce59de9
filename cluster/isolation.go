package cluster

import "slices"

// CPUClass is how strictly a task's cores are kept from others. It is unrelated
// to Tier, although both have a weakest member that people call best effort.
type CPUClass string

// The CPU classes, weakest first.
const (
	CPUBestEffort     CPUClass = "BestEffort"
	CPUWholeCore      CPUClass = "WholeCore"
	CPUStrictIsolated CPUClass = "StrictIsolated"
)

// CPUClasses lists every CPU class, weakest first.
var CPUClasses = []CPUClass{CPUBestEffort, CPUWholeCore, CPUStrictIsolated}

// GPUClass is how strictly a task's devices are kept from others.
type GPUClass string

// The GPU classes. The empty class asks for nothing: whole devices are then held
// by count alone, and a fraction of a device is taken as Shared.
const (
	GPUShared             GPUClass = "Shared"
	GPUSessionExclusive   GPUClass = "SessionExclusive"
	GPUDeviceExclusive    GPUClass = "DeviceExclusive"
	GPUPartitionExclusive GPUClass = "PartitionExclusive"
)

// GPUClasses lists every GPU class, weakest first.
var GPUClasses = []GPUClass{GPUShared, GPUSessionExclusive, GPUDeviceExclusive, GPUPartitionExclusive}

// ShareMode says whether a node's devices may be shared at all.
type ShareMode string

// The share modes. Fractional is what a node that says nothing has.
const (
	ShareFractional ShareMode = "fractional"
	ShareExclusive  ShareMode = "exclusive"
)

// ShareModes lists every share mode.
var ShareModes = []ShareMode{ShareFractional, ShareExclusive}

// Tier is a tenant's standing under contention.
type Tier string

// The tiers, strongest first.
const (
	TierGuaranteed Tier = "Guaranteed"
	TierStandard   Tier = "Standard"
	TierScavenger  Tier = "Scavenger"
)

// Tiers lists every tier, strongest first.
var Tiers = []Tier{TierGuaranteed, TierStandard, TierScavenger}

// Rank is the tier's place in Tiers: lower goes first, what is no tier last.
func (t Tier) Rank() int {
	if t == "" {
		t = TierStandard
	}
	if i := slices.Index(Tiers, t); i >= 0 {
		return i
	}
	return len(Tiers)
}

// Advertised is what a node can honour. The zero value supports
// BestEffort and Shared only: whatever is not advertised is not there.
type Advertised struct {
	CPU   []CPUClass `json:"cpu,omitempty"`
	GPU   []GPUClass `json:"gpu,omitempty"`
	Share ShareMode  `json:"share,omitempty"`
	// IsolableCores can be cut off from the rest of the machine (StrictIsolated).
	IsolableCores int64 `json:"isolableCores,omitempty"`
}

// SupportsCPU reports whether the class is advertised; BestEffort always is.
func (a *Advertised) SupportsCPU(c CPUClass) bool {
	return c == "" || c == CPUBestEffort || slices.Contains(a.CPU, c)
}

// SupportsGPU reports whether the class is advertised; Shared always is.
func (a *Advertised) SupportsGPU(c GPUClass) bool {
	return c == "" || c == GPUShared || slices.Contains(a.GPU, c)
}

// Isolation is what a task asks for.
type Isolation struct {
	CPU CPUClass `json:"cpu,omitempty"`
	GPU GPUClass `json:"gpu,omitempty"`
	// Session names the session of a SessionExclusive request; leases of the same
	// named session may share a device. An unnamed session shares its device with no other.
	Session string `json:"session,omitempty"`
}

// Beside reports whether the two may hold parts of one device at the same time.
func (i Isolation) Beside(o Isolation) bool {
	if i.Exclusive() || o.Exclusive() {
		return false
	}
	if i.GPU == GPUSessionExclusive || o.GPU == GPUSessionExclusive {
		return i.GPU == o.GPU && i.Session == o.Session
	}
	return true
}

// Exclusive reports whether the GPU class keeps everybody else off the device.
func (i Isolation) Exclusive() bool {
	return i.GPU == GPUDeviceExclusive || i.GPU == GPUPartitionExclusive || (i.GPU == GPUSessionExclusive && i.Session == "")
}
