// Package nodes says how many whole nodes of one group a replica of a served
// model takes. It is the rule of thumb for models that have nodes to
// themselves: it counts weights and a cache for a few tokens, and keeps a
// margin for everything else.
package nodes

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// DefaultTokens are the tokens that a cache is reckoned for unless said otherwise.
const DefaultTokens = 2048

// Replica is what one replica needs, before it is known where.
type Replica struct {
	Weights       cluster.Bytes
	BytesPerToken int64 // of keys and values
	Tokens        int   // DefaultTokens unless given
	Heads         int   // of attention; tensor parallelism must divide them. 0: not known, taken to divide
}

// Plan is how a replica lies on nodes of one group.
type Plan struct {
	GPUs  int // that are needed; the nodes have at least so many
	Nodes int
	// Tensor and Pipeline are the parallelism: within a node, and over the nodes.
	Tensor, Pipeline int
	Need             cluster.Bytes // of device memory, over all its nodes
	Usable           cluster.Bytes // of one node by one replica
}

// The rule in thousandths and bytes: whole numbers give the same answer everywhere.
const (
	margin   = 1071 // 1.02 for what weights take once loaded, × 1.05 for fragments
	usable   = 840  // of a device; the rest is the runtime's
	perMille = 1000
	fixed    = 2300 // GiB on each device for activations and graphs
)

// On says what the replica takes of a group's nodes. An error means that no
// number of them will do, and names the numbers.
func (r Replica) On(group cluster.GroupKey) (Plan, error) {
	if err := r.check(group); err != nil {
		return Plan{}, err
	}
	if group.Memory <= 0 {
		return Plan{}, fmt.Errorf("the memory of the devices of group %s is not known", group)
	}
	each := int64(group.Count) // the devices that the cache is divided over
	if !group.Combines() {
		each = 1
	}
	tokens := r.Tokens
	if tokens == 0 {
		tokens = DefaultTokens
	}
	// Everything × 1000 × devices a node, so that nothing is rounded:
	// GPUs = ⌊1.071 × weights ÷ (0.84 × memory − 2.3 GiB − tokens × bytes ÷ devices)⌋ + 1.
	memory := product(group.Memory, 1<<20)
	kept := sum(product(fixed, 1<<30, each), product(int64(tokens), r.BytesPerToken, perMille))
	weights := product(int64(r.Weights), margin, each)
	offered := times(memory, usable, each)
	room := new(big.Int).Sub(offered, kept)
	if room.Sign() <= 0 {
		return Plan{}, fmt.Errorf("a %s gives a model %s GiB, but %d tokens and the runtime take %s GiB of each: give fewer tokens, or devices with more memory",
			group.Product, gib(offered, each, false), tokens, gib(kept, each, true))
	}
	gpus := new(big.Int).Add(new(big.Int).Quo(weights, room), big.NewInt(1))
	if !group.Combines() && gpus.Cmp(big.NewInt(1)) > 0 {
		return Plan{}, fmt.Errorf("one replica needs %s GiB, and %s gives %s GiB: %s cannot be combined",
			gib(sum(weights, kept), each, true), group.Product, gib(offered, each, false), parts(group))
	}
	if !gpus.IsInt64() || gpus.Int64() > most {
		return Plan{}, fmt.Errorf("%s × %s GiB of room for one replica is more than %d devices", gpus, gib(room, each, false), most)
	}
	n := gpus.Int64()
	plan := Plan{GPUs: int(n), Nodes: int((n + int64(group.Count) - 1) / int64(group.Count)), Tensor: 1}
	plan.Pipeline = plan.Nodes
	if group.Combines() {
		plan.Tensor = tensor(r.Heads, group.Count)
	}
	plan.Need = cluster.Bytes(over(sum(weights, times(kept, n)), each, true))
	plan.Usable = cluster.Bytes(over(times(offered, each), each, false))
	return plan, nil
}

// Least is what the replica would need of one node at the least, and what that
// gives: the numbers of a refusal, where no number of nodes will do.
func (r Replica) Least(group cluster.GroupKey) (need, gives cluster.Bytes) {
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
	return cluster.Bytes(over(sum(weights, kept), 1, true)), cluster.Bytes(over(offered, 1, false))
}

// most is a bound on what anybody means; beyond it a figure was mistyped.
const (
	most   = 1_000_000
	beyond = 1 << 60
)

func (r Replica) check(group cluster.GroupKey) error {
	switch {
	case r.Weights <= 0:
		return errors.New("the size of the weights is not known: give the memory explicitly")
	case r.BytesPerToken < 0 || r.Tokens < 0 || r.Heads < 0:
		return fmt.Errorf("bytes per token %d, tokens %d and heads %d cannot be negative", r.BytesPerToken, r.Tokens, r.Heads)
	case group.Count <= 0:
		return fmt.Errorf("group %s has no device with memory", group)
	}
	return nil
}

// tensor is the largest size that a node holds and that divides the heads.
func tensor(heads, devices int) int {
	for t := devices; t > 1; t-- {
		if heads%t == 0 {
			return t
		}
	}
	return 1
}

// parts names what the devices of a group are parts of; "" where they are whole.
func parts(group cluster.GroupKey) string {
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

// over turns thousandths over each device back into bytes. It stops at what
// nobody has.
func over(a *big.Int, each int64, up bool) int64 {
	q, rest := new(big.Int).QuoRem(a, product(perMille, each), new(big.Int))
	if up && rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() || q.Int64() > beyond {
		return beyond
	}
	return q.Int64()
}

// gib writes such a number in GiB with two digits, without trailing zeros.
func gib(a *big.Int, each int64, up bool) string {
	hundredths := times(a, 100)
	n := over(hundredths.Quo(hundredths, big.NewInt(1<<30)), each, up)
	text := fmt.Sprintf("%d.%02d", n/100, n%100)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
