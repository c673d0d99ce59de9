package cluster

import "slices"

// CPUClass is how strictly a task's cores are isolated from other tasks. It is
// unrelated to Tier.
type CPUClass string

// The CPU classes, weakest first.
const (
	CPUBestEffort     CPUClass = "BestEffort"
	CPUWholeCore      CPUClass = "WholeCore"
	CPUStrictIsolated CPUClass = "StrictIsolated"
)

// CPUClasses lists all CPU classes, weakest first.
var CPUClasses = []CPUClass{CPUBestEffort, CPUWholeCore, CPUStrictIsolated}

// GPUClass is how strictly a task's devices are isolated from other tasks.
type GPUClass string

// The GPU classes. The empty class requests no isolation: a task that requests a
// fraction of a device is then treated as Shared.
const (
	GPUShared             GPUClass = "Shared"
	GPUSessionExclusive   GPUClass = "SessionExclusive"
	GPUDeviceExclusive    GPUClass = "DeviceExclusive"
	GPUPartitionExclusive GPUClass = "PartitionExclusive"
)

// GPUClasses lists all GPU classes, weakest first.
var GPUClasses = []GPUClass{GPUShared, GPUSessionExclusive, GPUDeviceExclusive, GPUPartitionExclusive}

// ShareMode is whether tasks may share the devices of a node.
type ShareMode string

// The share modes. A node without a share mode is ShareFractional.
const (
	ShareFractional ShareMode = "fractional"
	ShareExclusive  ShareMode = "exclusive"
)

// ShareModes lists all share modes.
var ShareModes = []ShareMode{ShareFractional, ShareExclusive}

// Tier says which queues may take room from which: tasks of a queue with a weaker tier
// may be preempted for jobs of a queue with a stronger one.
type Tier string

// The tiers, strongest first.
const (
	TierGuaranteed Tier = "Guaranteed"
	TierStandard   Tier = "Standard"
	TierScavenger  Tier = "Scavenger"
)

// Tiers lists all tiers, strongest first.
var Tiers = []Tier{TierGuaranteed, TierStandard, TierScavenger}

// Rank returns the index of the tier in Tiers: 0 is the strongest. The empty tier ranks
// as TierStandard, and an unknown tier ranks last.
func (t Tier) Rank() int {
	if t == "" {
		t = TierStandard
	}
	if i := slices.Index(Tiers, t); i >= 0 {
		return i
	}
	return len(Tiers)
}

// SupportedIsolation is the isolation that a node supports. The zero value supports
// BestEffort and Shared only.
type SupportedIsolation struct {
	CPU   []CPUClass `json:"cpu,omitempty"`
	GPU   []GPUClass `json:"gpu,omitempty"`
	Share ShareMode  `json:"share,omitempty"`
	// IsolableCores is how many cores the node can isolate for StrictIsolated tasks.
	IsolableCores int64 `json:"isolableCores,omitempty"`
}

// SupportsCPU reports whether the node supports the class. BestEffort and "" are always
// supported.
func (a *SupportedIsolation) SupportsCPU(c CPUClass) bool {
	return c == "" || c == CPUBestEffort || slices.Contains(a.CPU, c)
}

// SupportsGPU reports whether the node supports the class. Shared and "" are always
// supported.
func (a *SupportedIsolation) SupportsGPU(c GPUClass) bool {
	return c == "" || c == GPUShared || slices.Contains(a.GPU, c)
}

// Isolation is the isolation that a task requests.
type Isolation struct {
	CPU CPUClass `json:"cpu,omitempty"`
	GPU GPUClass `json:"gpu,omitempty"`
	// Session names the session of a SessionExclusive request. Tasks of the same named
	// session may share a device. A task with an unnamed session shares its device with
	// no other task.
	Session string `json:"session,omitempty"`
}

// Beside reports whether two tasks with these isolations may hold parts of one device
// at the same time.
func (i Isolation) Beside(o Isolation) bool {
	if i.Exclusive() || o.Exclusive() {
		return false
	}
	if i.GPU == GPUSessionExclusive || o.GPU == GPUSessionExclusive {
		return i.GPU == o.GPU && i.Session == o.Session
	}
	return true
}

// Exclusive reports whether the isolation allows no other task on the device.
func (i Isolation) Exclusive() bool {
	return i.GPU == GPUDeviceExclusive || i.GPU == GPUPartitionExclusive || (i.GPU == GPUSessionExclusive && i.Session == "")
}
