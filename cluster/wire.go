package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// WireVersion is the version of the JSON form of changes and snapshots. A reader of
// a version reads the version before it as well.
const WireVersion = 1

// changeTypes are the types of changes, by kind.
var changeTypes = func() map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for _, c := range []Change{
		NodePut{}, NodeSeen{}, NodeRead{}, NodeGone{}, QueuePut{}, QueueGone{}, BudgetPut{}, BudgetGone{},
		JobPut{}, JobSeen{}, JobGone{}, SetScaled{}, TaskPut{}, TaskSeen{}, TaskGone{}, BindSent{}, BindFailed{}, EvictionRefused{},
		Decided{}, Assign{}, Nominate{}, Evict{}, Move{}, Withdraw{}, Overdue{}, Retire{}, ChooseGroup{}, Displace{}, Tear{}, Park{}, SessionOpened{},
	} {
		out[c.Kind()] = reflect.TypeOf(c)
	}
	return out
}()

// Encode writes a change as one JSON object on one line. Its field "kind" names the type.
func Encode(c Change) ([]byte, error) {
	if c == nil {
		return nil, errors.New("no change")
	}
	body, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	out := append([]byte(`{"kind":"`), c.Kind()...)
	out = append(out, '"')
	if len(body) > 2 {
		out = append(out, ',')
	}
	return append(out, body[1:]...), nil
}

// Decode reads a change. A kind or a field that is not known is an error, and so is
// a value that no State can have.
func Decode(data []byte) (Change, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("no change: %w", err)
	}
	var kind string
	if name, given := fields["kind"]; given {
		if err := json.Unmarshal(name, &kind); err != nil {
			return nil, fmt.Errorf("no change: %w", err)
		}
	}
	of, known := changeTypes[kind]
	if !known {
		return nil, fmt.Errorf("no change is of the kind %q", kind)
	}
	delete(fields, "kind")
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	v := reflect.New(of)
	if err := decodeStrict(body, v.Interface()); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	c := v.Elem().Interface().(Change)
	if err := malformed(c); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return c, nil
}

// strict decodes one JSON value and nothing after it.
func decodeStrict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("something follows the value")
	}
	return nil
}

// MarshalJSON writes the decisions with their kinds.
func (c Decided) MarshalJSON() ([]byte, error) {
	list := make([]json.RawMessage, len(c.Changes))
	for i, d := range c.Changes {
		b, err := Encode(d)
		if err != nil {
			return nil, err
		}
		list[i] = b
	}
	return json.Marshal(map[string]any{"changes": list})
}

// UnmarshalJSON reads decisions with their kinds.
func (c *Decided) UnmarshalJSON(data []byte) error {
	var raw struct {
		Changes []json.RawMessage `json:"changes"`
	}
	if err := decodeStrict(data, &raw); err != nil {
		return err
	}
	c.Changes = nil
	for _, b := range raw.Changes {
		var inner struct {
			Changes json.RawMessage `json:"changes"`
		}
		if err := json.Unmarshal(b, &inner); err == nil && inner.Changes != nil { // each level would be read once for every level above it
			return errors.New("a decision holds no decisions of its own")
		}
		d, err := Decode(b)
		if err != nil {
			return err
		}
		c.Changes = append(c.Changes, d)
	}
	return nil
}

// MarshalJSON tells an empty list, which says that no device is lost, from an absent one.
func (c NodeSeen) MarshalJSON() ([]byte, error) {
	type plain NodeSeen // without this method
	if c.Lost != nil && *c.Lost == nil {
		c.Lost = &[]string{}
	}
	if c.Artifacts != nil && *c.Artifacts == nil {
		c.Artifacts = &map[string]ArtifactState{}
	}
	return json.Marshal(plain(c))
}

// MarshalJSON writes resources as an object: {"cpu": 4000}.
func (r Resources) MarshalJSON() ([]byte, error) {
	out := make(map[string]int64, len(r))
	for _, a := range r {
		out[a.Name] = a.Value
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads resources.
func (r *Resources) UnmarshalJSON(data []byte) error {
	var in map[string]int64
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*r = nil
	for name, v := range in {
		*r = append(*r, Amount{name, v})
	}
	sortAmounts(*r)
	return nil
}

// MarshalText writes the status by name.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a status by name.
func (s *Status) UnmarshalText(text []byte) error {
	if i := slices.Index(statusNames[:], string(text)); i >= 0 {
		*s = Status(i)
		return nil
	}
	return fmt.Errorf("no status is named %q; they are %s", text, strings.Join(statusNames[:], ", "))
}

// Kinds are the kinds of changes, in order.
func Kinds() []string { return slices.Sorted(maps.Keys(changeTypes)) }
