package hf

import (
	"strings"
	"testing"
)

func TestQuantisation(t *testing.T) {
	tests := map[string]struct {
		config string
		want   storage
		wrong  string
	}{
		"none":             {`{}`, storage{}, ""},
		"gptq":             {`{"quantization_config":{"quant_method":"gptq","bits":4,"group_size":128}}`, storage{"gptq", 4, 128, 0}, ""},
		"one scale":        {`{"quantization_config":{"quant_method":"gptq","bits":4,"group_size":-1}}`, storage{"gptq", 4, 0, 0}, ""},
		"awq":              {`{"quantization_config":{"quant_method":"awq","bits":4,"group_size":64}}`, storage{"awq", 4, 64, 0}, ""},
		"fp8":              {`{"quantization_config":{"quant_method":"FP8"}}`, storage{"fp8", 0, 0, 0}, ""},
		"fp8 blocks":       {`{"quantization_config":{"quant_method":"fp8","weight_block_size":[64,128]}}`, storage{"fp8", 0, 128, 0}, ""},
		"bitsandbytes":     {`{"quantization_config":{"load_in_4bit":true}}`, storage{"bitsandbytes", 4, 0, 0}, ""},
		"in the text part": {`{"text_config":{"quantization_config":{"quant_method":"mxfp4"}}}`, storage{"mxfp4", 0, 0, 0}, ""},
		"groups of compressed tensors": {
			`{"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":4,"group_size":128}}},"kv_cache_scheme":{"num_bits":8,"type":"float"}}}`,
			storage{"compressed-tensors", 4, 128, 8}, "",
		},
		"scales for the cache as text": {`{"quantization_config":{"quant_method":"fp8","kv_cache_scheme":"FP8"}}`, storage{"fp8", 0, 0, 8}, ""},
		"ModelOpt without its name":    {`{"quantization_config":{"quant_algo":"NVFP4","kv_cache_quant_algo":"FP8","group_size":16}}`, storage{"modelopt", 0, 0, 8}, ""},
		"no method":                    {`{"quantization_config":{}}`, storage{}, "does not have quant_method"},
		"negative block":               {`{"quantization_config":{"quant_method":"fp8","weight_block_size":[-1]}}`, storage{}, "blocks of -1"},
		"text":                         {`{"quantization_config":{"quant_method":"gptq","group_size":"x"}}`, storage{}, "quantization_config"},
	}
	for name, test := range tests {
		c, err := decodeConfig([]byte(test.config))
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.quantised()
		if got != test.want || (err != nil) != (test.wrong != "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%s: %+v, error %v", name, got, err)
		}
	}
}
