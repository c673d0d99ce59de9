package hf

import (
	"strings"
	"testing"
)

func TestScaledContexts(t *testing.T) {
	const rest = `"num_hidden_layers":2,"num_attention_heads":4,"hidden_size":64,"head_dim":16,"intermediate_size":128,"vocab_size":100`
	tests := map[string]struct {
		config string
		want   int
		said   string // "": nothing
	}{
		"yarn":                             {`"max_position_embeddings":32768,"rope_scaling":{"type":"yarn","factor":4.0,"original_max_position_embeddings":32768}`, 131072, "rope_scaling (yarn) stretches 32768 tokens by 4, to 131072."},
		"yarn in rope_parameters":          {`"max_position_embeddings":32768,"rope_parameters":{"rope_type":"yarn","factor":2.5,"original_max_position_embeddings":32768}`, 81920, "rope_parameters (yarn) stretches"},
		"yarn with the extended length":    {`"max_position_embeddings":163840,"rope_scaling":{"type":"yarn","factor":40,"original_max_position_embeddings":4096}`, 163840, ""},
		"yarn without the original length": {`"max_position_embeddings":8192,"rope_scaling":{"rope_type":"yarn","factor":2}`, 16384, "8192 tokens by 2"},
		"linear":                           {`"max_position_embeddings":4096,"rope_scaling":{"type":"linear","factor":4.0}`, 16384, "(linear)"},
		"dynamic":                          {`"max_position_embeddings":4096,"rope_scaling":{"type":"dynamic","factor":2.0}`, 8192, "(dynamic)"},
		"llama3 is long already":           {`"max_position_embeddings":131072,"rope_scaling":{"rope_type":"llama3","factor":8.0,"original_max_position_embeddings":8192}`, 131072, ""},
		"longrope is long already":         {`"max_position_embeddings":131072,"rope_scaling":{"type":"longrope","factor":32}`, 131072, ""},
		"su is long already":               {`"max_position_embeddings":131072,"rope_scaling":{"type":"su","factor":32}`, 131072, ""},
		"plain":                            {`"max_position_embeddings":4096,"rope_parameters":{"rope_type":"default","rope_theta":10000.0}`, 4096, ""},
		"null":                             {`"max_position_embeddings":4096,"rope_scaling":null`, 4096, ""},
		"by types of layers":               {`"max_position_embeddings":4096,"rope_parameters":{"full_attention":{"rope_type":"linear","factor":8},"sliding_attention":{"rope_type":"default"}}`, 32768, "(linear)"},
		"gemma 3":                          {`"model_type":"gemma3_text","max_position_embeddings":131072,"rope_scaling":{"rope_type":"linear","factor":8}`, 131072, ""},
		"context not known":                {`"rope_scaling":{"type":"linear","factor":4.0}`, 0, ""},
	}
	for name, test := range tests {
		a, said, err := architecture("{" + test.config + "," + rest + "}")
		if err != nil || a.MaxContext != test.want || strings.Join(said, " ") != "" != (test.said != "") || !strings.Contains(strings.Join(said, " "), test.said) {
			t.Errorf("%s: %+v, %q, %v; want %d", name, a, said, err, test.want)
		}
	}
	wrong := map[string]string{
		`"rope_scaling":{"type":"linear","factor":1e30}`:                                     "stretches 4096 tokens by 1e+30",
		`"rope_scaling":{"type":"linear","factor":-2}`:                                       "the factor must be from 1 to 1024",
		`"rope_scaling":{"type":"yarn","factor":2,"original_max_position_embeddings":1e300}`: "stretches",
		`"rope_scaling":7`:                       "rope_scaling",
		`"rope_parameters":{"full_attention":7}`: "full_attention",
	}
	for config, want := range wrong {
		if _, _, err := architecture(`{"max_position_embeddings":4096,` + config + "," + rest + "}"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", config, err, want)
		}
	}
}
