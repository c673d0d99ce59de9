package live

import (
	"hash/maphash"
	"maps"
	"slices"
)

// shards is how many parts a table has: a change copies one of them.
const shards = 1024

var seed = maphash.MakeSeed()

func shardOf(name string) uint64 { return maphash.String(seed, name) % shards }

// table is rows by name. It never changes: with makes another one that shares every
// part in which nothing changed.
type table[R any] struct{ parts []map[string]R }

func (t table[R]) get(name string) (R, bool) {
	if t.parts == nil {
		var none R
		return none, false
	}
	row, ok := t.parts[shardOf(name)][name]
	return row, ok
}

// with is the table with the rows of the names as they are now, or without them.
func (t table[R]) with(names map[string]bool, row func(name string) (R, bool)) table[R] {
	if len(names) == 0 {
		return t
	}
	out := table[R]{make([]map[string]R, shards)}
	copy(out.parts, t.parts)
	own := map[uint64]bool{} // parts that are copied already
	for name := range names {
		at := shardOf(name)
		if !own[at] {
			own[at] = true
			if out.parts[at] = maps.Clone(out.parts[at]); out.parts[at] == nil {
				out.parts[at] = map[string]R{}
			}
		}
		if r, ok := row(name); ok {
			out.parts[at][name] = r
		} else {
			delete(out.parts[at], name)
		}
	}
	return out
}

// list is all rows, in order.
func (t table[R]) list(compare func(a, b R) int) []R {
	var out []R
	for _, part := range t.parts {
		out = slices.AppendSeq(out, maps.Values(part))
	}
	slices.SortFunc(out, compare)
	return out
}

// changed collects the names of what changed in slots of a State. It remembers which
// name a slot had: what is gone has none any more.
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

// rename notes that the slot changed and has the name now; "": it is empty.
func (c *changed) rename(slot int, name string) {
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

func (c *changed) take() map[string]bool {
	out := c.dirty
	c.dirty = nil
	return out
}
