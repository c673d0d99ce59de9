package live

import (
	"hash/maphash"
	"maps"
	"slices"
)

// shardCount is how many shards a table has. A change of a row copies one shard.
const shardCount = 1024

var seed = maphash.MakeSeed()

func shardOf(name string) uint64 { return maphash.String(seed, name) % shardCount }

// table has rows by name. It is immutable: with returns another table, which shares every
// shard in which nothing changed.
type table[R any] struct{ shards []map[string]R }

func (t table[R]) get(name string) (R, bool) {
	if t.shards == nil {
		var none R
		return none, false
	}
	row, ok := t.shards[shardOf(name)][name]
	return row, ok
}

// with returns a table in which the rows of the names are replaced by what row returns, or
// removed if row reports false.
func (t table[R]) with(names map[string]bool, row func(name string) (R, bool)) table[R] {
	if len(names) == 0 {
		return t
	}
	out := table[R]{make([]map[string]R, shardCount)}
	copy(out.shards, t.shards)
	own := map[uint64]bool{} // shards that are copied already
	for name := range names {
		at := shardOf(name)
		if !own[at] {
			own[at] = true
			if out.shards[at] = maps.Clone(out.shards[at]); out.shards[at] == nil {
				out.shards[at] = map[string]R{}
			}
		}
		if r, ok := row(name); ok {
			out.shards[at][name] = r
		} else {
			delete(out.shards[at], name)
		}
	}
	return out
}

// list returns all rows, in order.
func (t table[R]) list(compare func(a, b R) int) []R {
	var out []R
	for _, shard := range t.shards {
		out = slices.AppendSeq(out, maps.Values(shard))
	}
	slices.SortFunc(out, compare)
	return out
}

// changed collects the names of nodes or jobs that changed. State reports changes by slot,
// and a slot of which the node or job is removed has no name any more, so changed keeps
// the name of each slot.
type changed struct {
	version uint64
	names   []string
	dirty   map[string]bool
}

func (c *changed) name(slot int) string {
	if slot < len(c.names) {
		return c.names[slot]
	}
	return ""
}

// setName records that the slot changed, and its name now; "": the slot is empty.
func (c *changed) setName(slot int, name string) {
	for slot >= len(c.names) {
		c.names = append(c.names, "")
	}
	c.add(c.names[slot])
	c.add(name)
	c.names[slot] = name
}

func (c *changed) add(name string) {
	if c.dirty == nil {
		c.dirty = map[string]bool{}
	}
	if name != "" {
		c.dirty[name] = true
	}
}

// drop forgets that the name changed.
func (c *changed) drop(name string) { delete(c.dirty, name) }

func (c *changed) take() map[string]bool {
	out := c.dirty
	c.dirty = nil
	return out
}
