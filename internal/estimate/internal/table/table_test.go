package table

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
)

type row struct {
	Memory GiB `yaml:"memory"`
}

func TestGiBIsExact(t *testing.T) {
	tests := map[string]cluster.Bytes{
		"0": 0, "1": 1 << 30, "0.5": 1 << 29,
		"7.12":   7645041787,   // 7.12 × 2^30 = 7645041786.88
		"131.42": 141111150510, // 131.42 × 2^30 = 141111150510.08
	}
	for text, want := range tests {
		var r row
		if err := decode([]byte("memory: "+text), &r); err != nil || r.Memory.Bytes != want {
			t.Errorf("%s GiB is %d bytes, want %d (%v)", text, r.Memory.Bytes, want, err)
		}
	}
}

func TestMistakesAreFound(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"not a number":  {"memory: 1e3", "line 1: \"1e3\" is not a decimal number of GiB"},
		"negative":      {"memory: -1", "not a decimal number"},
		"unknown field": {"memory: 1\nmemroy: 2", "field memroy not found"},
		"two documents": {"memory: 1\n---\nmemory: 2", "more than one document"},
		"nothing":       {"", "EOF"},
	}
	for name, tt := range tests {
		var r row
		if err := decode([]byte(tt.text), &r); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}
