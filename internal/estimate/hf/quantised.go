package hf

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/printable"
)

// storage is how weights are stored; the zero value means plain numbers.
type storage struct {
	method string
	bits   int // 0 if the method has only one width
	block  int // numbers that share a scale, which a device must hold whole; 0: no restriction
	kvBits int // of a number in the KV cache; 0: the files demand none
}

// maxBlock is far above any real block or group.
const maxBlock = 1 << 20

func (c config) quantised() (storage, error) {
	name, raw := c.field("quantization_config", "compression_config")
	if raw == nil {
		return storage{}, nil
	}
	if c.storedIn != "" {
		name = "quantization"
	}
	var q struct {
		Method string   `json:"quant_method"`
		Bits   *float64 `json:"bits"`
		Four   bool     `json:"load_in_4bit"`
		Eight  bool     `json:"load_in_8bit"`
		Block  []int    `json:"weight_block_size"`
		Group  int      `json:"group_size"`
		Groups map[string]struct {
			Weights *struct {
				Bits  int  `json:"num_bits"`
				Group *int `json:"group_size"`
			} `json:"weights"`
		} `json:"config_groups"`
		Algorithm string          `json:"quant_algo"`
		Producer  json.RawMessage `json:"producer"`
		KVScheme  json.RawMessage `json:"kv_cache_scheme"`
		KVQuant   string          `json:"kv_cache_quant_algo"`
	}
	if err := decode(name, raw, &q); err != nil {
		return storage{}, err
	}
	out := storage{method: strings.ToLower(printable.Text(q.Method)), kvBits: kvBits(q.KVScheme, q.KVQuant)}
	if out.method == "" && (q.Algorithm != "" || strings.Contains(string(q.Producer), "modelopt")) {
		out.method = "modelopt"
	}
	switch {
	case q.Bits != nil && *q.Bits >= 1 && *q.Bits <= 16:
		out.bits = int(*q.Bits)
	case q.Four:
		out.bits = 4
	case q.Eight:
		out.bits = 8
	}
	if out.method == "" && (q.Four || q.Eight) {
		out.method = "bitsandbytes"
	}
	if out.method == "" {
		return storage{}, fmt.Errorf("%s does not have quant_method", name)
	}
	switch out.method {
	case "fp8":
		if len(q.Block) > 0 {
			out.block = slices.Max(q.Block) // the larger of rows and columns; both are powers of two
		}
	case "gptq", "awq":
		out.block = max(0, q.Group) // -1: one scale for the whole matrix
	case "compressed-tensors":
		for _, g := range q.Groups {
			if w := g.Weights; w != nil {
				out.bits = max(out.bits, min(w.Bits, 16))
				if w.Group != nil {
					out.block = max(out.block, *w.Group)
				}
			}
		}
	}
	if out.block < 0 || out.block > maxBlock {
		return storage{}, fmt.Errorf("%s has blocks of %d numbers; 1 to %d are allowed", name, out.block, maxBlock)
	}
	return out, nil
}

// kvBits returns the size of a number in the KV cache that the files demand; 0: none. The
// scheme is an object, or text such as FP8.
func kvBits(scheme json.RawMessage, algorithm string) int {
	var object struct {
		Bits int `json:"num_bits"`
	}
	var text string
	switch {
	case json.Unmarshal(scheme, &object) == nil && object.Bits == 8:
		return 8
	case json.Unmarshal(scheme, &text) == nil && text != "":
		algorithm = text
	}
	if strings.HasPrefix(strings.ToLower(algorithm), "fp8") {
		return 8
	}
	return 0
}
