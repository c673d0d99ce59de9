// Package nodes computes how many whole nodes of one group a replica of a model takes.
// It is a rule of thumb for models that have nodes to themselves. It counts the weights
// and the cache of one context, and keeps a margin for everything else.
package nodes

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// DefaultTokens is the context for which the cache is computed if none is given.
const DefaultTokens = 2048

// Replica is what one replica needs on any group.
type Replica struct {
	Weights       cluster.Bytes
	BytesPerToken int64 // keys and values
	Tokens        int   // 0: DefaultTokens
	Heads         int   // attention heads, which tensor parallelism must divide; 0: not known, and assumed to be divisible
}

// Division is how a replica is divided over nodes of one group.
type Division struct {
	GPUs  int // the devices that are needed; the nodes may have more
	Nodes int
	// Tensor is the parallelism within a node, and Pipeline that over the nodes.
	Tensor, Pipeline int
	Need             cluster.Bytes // device memory, over all nodes of the replica
	Usable           cluster.Bytes // device memory of one node that one replica can use
}

// The constants of the rule are in thousandths. The rule uses whole numbers, so its result
// is the same on every machine.
const (
	margin   = 1071 // 1.02 for loaded weights × 1.05 for fragmentation
	usable   = 840  // of a device; the rest is for the runtime
	perMille = 1000
	fixed    = 2300 // GiB on each device for activations and graphs
)

// Divide returns how the replica is divided over nodes of the group. It returns an error
// with the figures if no number of nodes is enough.
func (r Replica) Divide(group cluster.GroupKey) (Division, error) {
	if err := r.check(group); err != nil {
		return Division{}, err
	}
	if group.Memory <= 0 {
		return Division{}, fmt.Errorf("the memory of the devices of group %s is not known", group)
	}
	each := int64(group.Count) // the devices over which the cache is divided
	if !group.Combines() {
		each = 1
	}
	tokens := r.Tokens
	if tokens == 0 {
		tokens = DefaultTokens
	}
	// All amounts are multiplied by 1000 × devices per node, so that nothing is rounded:
	// GPUs = ⌊1.071 × weights ÷ (0.84 × memory − 2.3 GiB − tokens × bytes ÷ devices)⌋ + 1.
	memory := product(group.Memory, 1<<20)
	kept := sum(product(fixed, 1<<30, each), product(int64(tokens), r.BytesPerToken, perMille))
	weights := product(int64(r.Weights), margin, each)
	offered := times(memory, usable, each)
	room := new(big.Int).Sub(offered, kept)
	if room.Sign() <= 0 {
		return Division{}, fmt.Errorf("a %s gives a model %s GiB, but %d tokens and the runtime take %s GiB of each; set a shorter context, or use devices with more memory",
			group.Product, gib(offered, each, false), tokens, gib(kept, each, true))
	}
	gpus := new(big.Int).Add(new(big.Int).Quo(weights, room), big.NewInt(1))
	if !group.Combines() && gpus.Cmp(big.NewInt(1)) > 0 {
		return Division{}, fmt.Errorf("one replica needs %s GiB, and %s gives %s GiB: %s cannot be combined",
			gib(sum(weights, kept), each, true), group.Product, gib(offered, each, false), partNoun(group))
	}
	if !gpus.IsInt64() || gpus.Int64() > maxDevices {
		return Division{}, fmt.Errorf("one replica would take %s devices with %s GiB each, and at most %d are allowed", gpus, gib(room, each, false), maxDevices)
	}
	n := gpus.Int64()
	d := Division{GPUs: int(n), Nodes: int((n + int64(group.Count) - 1) / int64(group.Count)), Tensor: 1}
	d.Pipeline = d.Nodes
	if group.Combines() {
		d.Tensor = tensor(r.Heads, group.Count)
	}
	d.Need = cluster.Bytes(toBytes(sum(weights, times(kept, n)), each, true))
	d.Usable = cluster.Bytes(toBytes(times(offered, each), each, false))
	return d, nil
}

// LeastNeed returns the least memory that the replica needs if it is on one node, and how
// much the node can give. They are the figures of a refusal if no number of nodes is
// enough. Both are 0 if they are not known.
func (r Replica) LeastNeed(group cluster.GroupKey) (need, gives cluster.Bytes) {
	if !group.Combines() {
		group.Count = 1
	}
	if r.check(group) != nil {
		return 0, 0
	}
	tokens := r.Tokens
	if tokens == 0 {
		tokens = DefaultTokens
	}
	devices := int64(group.Count)
	kept := sum(product(fixed, 1<<30, devices), product(int64(tokens), r.BytesPerToken, perMille))
	weights := product(int64(r.Weights), margin)
	offered := product(group.Memory, 1<<20, usable, devices)
	return cluster.Bytes(toBytes(sum(weights, kept), 1, true)), cluster.Bytes(toBytes(offered, 1, false))
}

// maxDevices and maxBytes are far above any real cluster. A larger figure is a mistake in
// the input.
const (
	maxDevices = 1_000_000
	maxBytes   = 1 << 60
)

func (r Replica) check(group cluster.GroupKey) error {
	switch {
	case r.Weights <= 0:
		return errors.New("the size of the weights is not known; set the memory explicitly")
	case r.BytesPerToken < 0 || r.Tokens < 0 || r.Heads < 0:
		return fmt.Errorf("bytes per token %d, tokens %d and heads %d cannot be negative", r.BytesPerToken, r.Tokens, r.Heads)
	case group.Count <= 0:
		return fmt.Errorf("group %s has no device with memory", group)
	}
	return nil
}

// tensor returns the largest tensor parallelism up to the devices of a node that divides
// the heads.
func tensor(heads, devices int) int {
	for t := devices; t > 1; t-- {
		if heads%t == 0 {
			return t
		}
	}
	return 1
}

// partNoun returns the name of what the devices of the group are; "" if they are whole
// devices.
func partNoun(group cluster.GroupKey) string {
	switch {
	case group.Combines():
		return ""
	case group.Replicas > 1:
		return "shared replicas"
	}
	return "MIG slices"
}

func product(of ...int64) *big.Int {
	out := big.NewInt(1)
	for _, x := range of {
		out.Mul(out, big.NewInt(x))
	}
	return out
}

func times(a *big.Int, by ...int64) *big.Int { return new(big.Int).Mul(a, product(by...)) }

func sum(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) }

// toBytes converts an amount in thousandths × devices to bytes, rounded up or down. The
// result is at most maxBytes.
func toBytes(a *big.Int, each int64, up bool) int64 {
	q, rest := new(big.Int).QuoRem(a, product(perMille, each), new(big.Int))
	if up && rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() || q.Int64() > maxBytes {
		return maxBytes
	}
	return q.Int64()
}

// gib formats such an amount in GiB with up to two decimals.
func gib(a *big.Int, each int64, up bool) string {
	hundredths := times(a, 100)
	n := toBytes(hundredths.Quo(hundredths, big.NewInt(1<<30)), each, up)
	text := fmt.Sprintf("%d.%02d", n/100, n%100)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
