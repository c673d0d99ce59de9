package hf

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/printable"
)

// stored is how weights are stored; the zero value: as plain numbers.
type stored struct {
	method string
	bits   int // 0 where the method has but one width
	block  int // numbers with one scale, as far as that keeps a matrix from being divided; 0: it does not
}

// maxBlock is far above any block or group.
const maxBlock = 1 << 20

func (c config) quantised() (stored, error) {
	name, raw := c.field("quantization_config", "compression_config")
	if raw == nil {
		return stored{}, nil
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
		return stored{}, fmt.Errorf("%s: %w", name, err)
	}
	out := stored{method: strings.ToLower(printable.Text(q.Method))}
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
		return stored{}, fmt.Errorf("%s does not say quant_method", name)
	}
	switch out.method {
	case "fp8":
		if len(q.Block) > 0 {
			out.block = slices.Max(q.Block) // of rows and columns; both are powers of two
		}
	case "gptq", "awq":
		out.block = max(0, q.Group) // -1: one scale for all
	}
	if out.block < 0 || out.block > maxBlock {
		return stored{}, fmt.Errorf("%s has blocks of %d: there are 1 to %d numbers in one", name, out.block, maxBlock)
	}
	return out, nil
}
