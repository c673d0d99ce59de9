package estimate_test

import (
	"testing"

	"github.com/berth-project/berth/internal/estimate"
)

func TestWeightBits(t *testing.T) {
	for _, tt := range []struct {
		dtype, quantization string
		want                int
		wrong               string // the field of the error
	}{
		{"", "", 0, ""}, {"auto", "", 0, ""}, {"bfloat16", "", 16, ""}, {"float32", "", 32, ""}, {"", "fp8", 8, ""}, {"float16", "bitsandbytes", 4, ""},
		{"int3", "", 0, "dtype"}, {"", "gptq", 0, "quantization"}, {"float32", "fp8", 0, "quantization"},
	} {
		got, err := estimate.WeightBits(tt.dtype, tt.quantization)
		if got != tt.want || (err != nil) != (tt.wrong != "") || err != nil && err.Field != tt.wrong {
			t.Errorf("%q, %q: %d, %v", tt.dtype, tt.quantization, got, err)
		}
	}
}
