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

// WireVersion is the version of the JSON format of changes and snapshots. A reader of one
// version also reads the version before it.
const WireVersion = 1

// changeTypes maps the kind of each change to its Go type.
var changeTypes = func() map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for _, c := range []Change{
		NodePut{}, NodeSeen{}, NodeRead{}, NodeGone{}, QueuePut{}, QueueGone{}, BudgetPut{}, BudgetGone{},
		JobPut{}, JobSeen{}, JobGone{}, SetScaled{}, TaskPut{}, TaskSeen{}, TaskGone{}, BindSent{}, BindFailed{}, EvictionRefused{},
		Decided{}, Assign{}, Nominate{}, Evict{}, Move{}, Withdraw{}, Overdue{}, Retire{}, ChooseGroup{}, Displace{}, Tear{}, Park{}, Learn{}, Earmark{}, SessionOpened{},
	} {
		out[c.Kind()] = reflect.TypeOf(c)
	}
	return out
}()

// Encode returns a change as one JSON object on one line. Its field "kind" names the type
// of the change.
func Encode(c Change) ([]byte, error) {
	if c == nil {
		return nil, errors.New("the change is missing")
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

// Decode reads a change from JSON. It fails if a kind or a field is not known, or if a
// value is malformed.
func Decode(data []byte) (Change, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("not a change: %w", err)
	}
	var kind string
	if name, given := fields["kind"]; given {
		if err := json.Unmarshal(name, &kind); err != nil {
			return nil, fmt.Errorf("not a change: %w", err)
		}
	}
	of, known := changeTypes[kind]
	if !known {
		return nil, fmt.Errorf("unknown kind of change %q", kind)
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
	if err := checkChange(c); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return c, nil
}

// decodeStrict decodes one JSON value. It fails if a field is not known or if more data
// follows the value.
func decodeStrict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("more data follows the JSON value")
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
		if err := json.Unmarshal(b, &inner); err == nil && inner.Changes != nil { // nesting would cost quadratic time: each level is decoded once for every level above it
			return errors.New("a decision cannot contain decisions")
		}
		d, err := Decode(b)
		if err != nil {
			return err
		}
		c.Changes = append(c.Changes, d)
	}
	return nil
}

// MarshalJSON writes an empty list of lost devices as [], because it differs from an absent
// one: the empty list reports that no device is lost. The same holds for artifacts.
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

// UnmarshalJSON reads resources from an object: {"cpu": 4000}.
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
	return fmt.Errorf("unknown status %q; the names are %s", text, strings.Join(statusNames[:], ", "))
}

// Kinds returns the kinds of all changes, sorted.
func Kinds() []string { return slices.Sorted(maps.Keys(changeTypes)) }
