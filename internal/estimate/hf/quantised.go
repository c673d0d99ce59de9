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
}

// maxBlock is far above any real block or group.
const maxBlock = 1 << 20

func (c config) quantised() (storage, error) {
	name, raw := c.field("quantization_config", "compression_config")
	if raw == nil {
		return storage{}, nil
	}
	var q struct {
		Method string   `json:"quant_method"`
		Bits   *float64 `json:"bits"`
		Four   bool     `json:"load_in_4bit"`
		Eight  bool     `json:"load_in_8bit"`
		Block  []int    `json:"weight_block_size"`
		Group  int      `json:"group_size"`
	}
	if err := json.Unmarshal(raw, &q); err != nil {
		return storage{}, fmt.Errorf("%s: %w", name, err)
	}
	out := storage{method: strings.ToLower(printable.Text(q.Method))}
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
	}
	if out.block < 0 || out.block > maxBlock {
		return storage{}, fmt.Errorf("%s has blocks of %d numbers; 1 to %d are allowed", name, out.block, maxBlock)
	}
	return out, nil
}
