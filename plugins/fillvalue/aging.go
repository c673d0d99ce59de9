package fillvalue

// aging is a map that forgets what is not used. Nothing is deleted one by one, so that forgetting takes
// no longer if there is much to forget.
type aging[V any] struct {
	young map[string]V // what was used since the last turn
	old   map[string]V // what was used before it
}

func newAging[V any]() aging[V] { return aging[V]{young: map[string]V{}} }

// find returns the value of the key.
func (m *aging[V]) find(key []byte) (V, bool) {
	v, ok := m.young[string(key)]
	if !ok {
		if v, ok = m.old[string(key)]; ok {
			m.young[string(key)] = v
		}
	}
	return v, ok
}

// turn forgets what was not used since the last turn.
func (m *aging[V]) turn() { m.old, m.young = m.young, make(map[string]V, len(m.young)/4) }
