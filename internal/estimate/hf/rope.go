package hf

import (
	"encoding/json"
	"fmt"
	"strings"
)

// maxStretch is far above any factor that a context is stretched by.
const maxStretch = 1024

// rope is one way to stretch positions beyond those a model was trained on.
type rope struct {
	Type     string   `json:"type"`
	RopeType string   `json:"rope_type"`
	Factor   *float64 `json:"factor"`
	Original *float64 `json:"original_max_position_embeddings"`
}

// stretched is how many tokens a model takes once its positions are stretched, as
// vLLM works it out: yarn multiplies what it was trained on, linear and dynamic
// what the configuration says. Others name the long context themselves.
func (c config) stretched(context int) (int, []string, error) {
	if strings.HasPrefix(c.kind(), "gemma3") {
		return context, nil, nil // says the long one, and a factor beside it
	}
	name, raw := c.field("rope_scaling", "rope_parameters")
	if raw == nil || context == 0 {
		return context, nil, nil
	}
	ways, err := ropes(raw)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, w := range ways {
		kind := w.RopeType
		if kind == "" {
			kind = w.Type
		}
		switch kind {
		case "yarn", "linear", "dynamic":
		default:
			continue
		}
		from, factor := context, 1.0
		if w.Factor != nil {
			factor = *w.Factor
		}
		if kind == "yarn" && w.Original != nil {
			from = int(*w.Original)
		}
		if factor < 1 || factor > maxStretch || from < 1 || from > 1<<30 {
			return 0, nil, fmt.Errorf("%s stretches %d tokens by %g: the factor must be from 1 to %d", name, from, factor, maxStretch)
		}
		long := int(float64(from) * factor)
		if long == context {
			return context, nil, nil
		}
		return long, []string{fmt.Sprintf("%s (%s) stretches %d tokens by %g, to %d.", name, kind, from, factor, long)}, nil
	}
	return context, nil, nil
}

// ropes are the ways of a model: one, or one for each kind of layer.
func ropes(raw json.RawMessage) ([]rope, error) {
	var one rope
	if err := json.Unmarshal(raw, &one); err != nil {
		return nil, err
	}
	if one.Type != "" || one.RopeType != "" || one.Factor != nil {
		return []rope{one}, nil
	}
	var all []rope
	for _, kind := range []string{"full_attention", "sliding_attention", "chunked_attention"} {
		var each map[string]json.RawMessage
		if err := json.Unmarshal(raw, &each); err != nil {
			return nil, err
		}
		if isNull(each[kind]) {
			continue
		}
		var w rope
		if err := json.Unmarshal(each[kind], &w); err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		all = append(all, w)
	}
	return all, nil
}
