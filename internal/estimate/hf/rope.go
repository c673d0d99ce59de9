package hf

import (
	"encoding/json"
	"fmt"
	"strings"
)

// maxFactor is far above any factor by which a context is extended.
const maxFactor = 1024

// ropeScaling is a method to extend positions beyond those on which a model was trained.
type ropeScaling struct {
	Type     string   `json:"type"`
	RopeType string   `json:"rope_type"`
	Factor   *float64 `json:"factor"`
	Original *float64 `json:"original_max_position_embeddings"`
}

// scaledContext returns the longest context with rope scaling, computed as in vLLM: yarn
// multiplies the original length, linear and dynamic multiply the length in the
// configuration. For other methods the configuration already has the extended length.
func (c config) scaledContext(context int) (int, []string, error) {
	if strings.HasPrefix(c.modelType(), "gemma3") {
		return context, nil, nil // the configuration has the extended length and also a factor
	}
	name, raw := c.field("rope_scaling", "rope_parameters")
	if raw == nil || context == 0 {
		return context, nil, nil
	}
	scalings, err := ropeScalings(name, raw)
	if err != nil {
		return 0, nil, err
	}
	for _, w := range scalings {
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
		if factor < 1 || factor > maxFactor || from < 1 || from > 1<<30 {
			return 0, nil, fmt.Errorf("%s stretches %d tokens by %g: the factor must be from 1 to %d", name, from, factor, maxFactor)
		}
		long := int(float64(from) * factor)
		if long == context {
			return context, nil, nil
		}
		return long, []string{fmt.Sprintf("%s (%s) stretches %d tokens by %g, to %d.", name, kind, from, factor, long)}, nil
	}
	return context, nil, nil
}

// ropeScalings returns the scalings of a model: one, or one for each type of layer.
func ropeScalings(name string, raw json.RawMessage) ([]ropeScaling, error) {
	var one ropeScaling
	if err := decode(name, raw, &one); err != nil {
		return nil, err
	}
	if one.Type != "" || one.RopeType != "" || one.Factor != nil {
		return []ropeScaling{one}, nil
	}
	var each map[string]json.RawMessage
	if err := decode(name, raw, &each); err != nil {
		return nil, err
	}
	var all []ropeScaling
	for _, kind := range []string{"full_attention", "sliding_attention", "chunked_attention"} {
		if isNull(each[kind]) {
			continue
		}
		var w ropeScaling
		if err := decode(name+"."+kind, each[kind], &w); err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}
