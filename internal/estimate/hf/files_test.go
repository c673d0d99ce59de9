package hf_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate/hf"
	"github.com/berth-project/berth/internal/estimate/hf/sample"
)

const small = `{"architectures":["LlamaForCausalLM"],"num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,"vocab_size":1000,"intermediate_size":128,"max_position_embeddings":512}`

// up, embed and lmHead have 16384, 128000 and 128000 bytes.
var (
	up     = sample.Tensor{Name: "model.layers.0.mlp.up_proj.weight", Dtype: "BF16", Shape: []int64{128, 64}}
	embed  = sample.Tensor{Name: "model.embed_tokens.weight", Dtype: "BF16", Shape: []int64{1000, 64}}
	lmHead = sample.Tensor{Name: "lm_head.weight", Dtype: "BF16", Shape: []int64{1000, 64}}
)

func shard(tensors ...sample.Tensor) []byte { return sample.Header(tensors) }

const twoShards = `{"metadata":{"total_size":272384},"weight_map":{"model.layers.0.mlp.up_proj.weight":"model-00001-of-00002.safetensors","model.embed_tokens.weight":"model-00002-of-00002.safetensors"}}`

func TestWhichFilesCount(t *testing.T) {
	tests := map[string]struct {
		files   map[string][]byte
		want    cluster.Bytes
		wrong   string // part of the error
		assumed string // part of what is assumed
	}{
		"one file":                         {map[string][]byte{"model.safetensors": shard(up, embed, lmHead)}, 272384, "", ""},
		"shards by index":                  {map[string][]byte{"model.safetensors.index.json": []byte(twoShards), "model-00001-of-00002.safetensors": shard(up), "model-00002-of-00002.safetensors": shard(embed), "other.safetensors": shard(lmHead)}, 144384, "", ""},
		"shards without index":             {map[string][]byte{"model-00001-of-00002.safetensors": shard(up), "model-00002-of-00002.safetensors": shard(embed)}, 144384, "", ""},
		"consolidated beside one file":     {map[string][]byte{"model.safetensors": shard(up, embed), "consolidated.safetensors": shard(up, embed)}, 144384, "", ""},
		"consolidated beside shards":       {map[string][]byte{"model-00001-of-00001.safetensors": shard(up, embed), "consolidated.00.safetensors": shard(up, embed)}, 144384, "", ""},
		"consolidated alone":               {map[string][]byte{"consolidated.safetensors": shard(up, embed)}, 144384, "", ""},
		"original in a folder":             {map[string][]byte{"model.safetensors": shard(up), "original/model.safetensors": shard(up)}, 16384, "", ""},
		"an adapter in the directory":      {map[string][]byte{"model.safetensors": shard(up), "adapter_model.safetensors": shard(up)}, 16384, "", ""},
		"a tensor of the index is missing": {map[string][]byte{"model.safetensors.index.json": []byte(twoShards), "model-00001-of-00002.safetensors": shard(up), "model-00002-of-00002.safetensors": shard(lmHead)}, 0, "names tensor \"model.embed_tokens.weight\", which model-00002-of-00002.safetensors does not have", ""},
		"a tensor is in another shard":     {map[string][]byte{"model.safetensors.index.json": []byte(twoShards), "model-00001-of-00002.safetensors": shard(embed), "model-00002-of-00002.safetensors": shard(up)}, 0, "and it is in model-00001-of-00002.safetensors", ""},
		"index alone":                      {map[string][]byte{"model.safetensors.index.json": []byte(twoShards)}, 272384, "", "the index says that all of them take 272384 bytes"},
		"index alone without a size":       {map[string][]byte{"model.safetensors.index.json": []byte(`{"weight_map":{"a":"b.safetensors"}}`)}, 0, "metadata.total_size", ""},
		"one shard missing":                {map[string][]byte{"model.safetensors.index.json": []byte(twoShards), "model-00001-of-00002.safetensors": shard(up)}, 0, "model-00002-of-00002.safetensors is missing (1 of 2", ""},
		"one shard missing, no index":      {map[string][]byte{"model-00001-of-00002.safetensors": shard(up)}, 0, "model-00002-of-00002.safetensors is missing", ""},
		"index with a path outside":        {map[string][]byte{"model.safetensors.index.json": []byte(`{"weight_map":{"a":"../b.safetensors"}}`)}, 0, "not a .safetensors file of this directory", ""},
		"index with control characters":    {map[string][]byte{"model.safetensors.index.json": []byte(`{"weight_map":{"a":"\u001b[2Jb.safetensors"}}`)}, 0, `"\x1b[2Jb.safetensors", which is not`, ""},
		"empty index":                      {map[string][]byte{"model.safetensors.index.json": []byte(`{}`)}, 0, "names no file", ""},
		"pickles only":                     {map[string][]byte{"pytorch_model.bin": []byte("x")}, 0, "convert the model to safetensors", ""},
		"nothing":                          {nil, 0, "no .safetensors file", ""},
		"a tensor twice":                   {map[string][]byte{"a.safetensors": shard(up), "b.safetensors": shard(up)}, 0, "is in", ""},
		"no tensors":                       {map[string][]byte{"model.safetensors": shard()}, 0, "no tensors", ""},
		"numbers of 32 bits":               {map[string][]byte{"model.safetensors": shard(sample.Tensor{Name: "model.layers.0.mlp.up_proj.weight", Dtype: "F32", Shape: []int64{128, 64}})}, 16384, "", "loaded as 16 bits, which saves 16384 bytes"},
		"data cut off":                     {map[string][]byte{"model.safetensors": shard(up)}, 16384, "", "less data than its header says"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "config.json", []byte(small))
			for file, text := range test.files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
					t.Fatal(err)
				}
				write(t, dir, file, text)
			}
			m, err := hf.Read(dir)
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Errorf("the error is %v, want %q in it", err, test.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if m.Weights.Total() != test.want {
				t.Errorf("%d bytes, want %d", m.Weights.Total(), test.want)
			}
			if all := strings.Join(m.Assumed, " "); !strings.Contains(all, test.assumed) {
				t.Errorf("assumed %q, want %q in it", all, test.assumed)
			}
		})
	}
}

func TestTiedHeadIsCountedOnce(t *testing.T) {
	tests := map[string]struct {
		config  string
		tensors []sample.Tensor
		tied    bool
		head    cluster.Bytes
	}{
		"tied, no copy":                         {`"tie_word_embeddings":true`, []sample.Tensor{up, embed}, true, 0},
		"tied, with a copy":                     {`"tie_word_embeddings":true`, []sample.Tensor{up, embed, lmHead}, true, 0},
		"not tied":                              {`"tie_word_embeddings":false`, []sample.Tensor{up, embed, lmHead}, false, 128000},
		"not in the configuration, no head":     {`"x":1`, []sample.Tensor{up, embed}, true, 0},
		"not in the configuration, with a head": {`"x":1`, []sample.Tensor{up, embed, lmHead}, false, 128000},
	}
	for name, test := range tests {
		dir := t.TempDir()
		write(t, dir, "config.json", []byte(strings.Replace(small, "{", "{"+test.config+",", 1)))
		write(t, dir, "model.safetensors", shard(test.tensors...))
		m, err := hf.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if m.Architecture.Tied != test.tied || m.Weights.Head != test.head || m.Weights.Embedding != 128000 {
			t.Errorf("%s: tied %v, %+v", name, m.Architecture.Tied, m.Weights)
		}
		if said := strings.Contains(strings.Join(m.Assumed, " "), "copy of 128000 bytes"); said != (name == "tied, with a copy") {
			t.Errorf("%s: assumed %q", name, m.Assumed)
		}
	}
}

func TestAdapter(t *testing.T) {
	dir := t.TempDir()
	if _, err := hf.ReadAdapter(dir); err == nil || !strings.Contains(err.Error(), "adapter_config.json") {
		t.Errorf("the error is %v", err)
	}
	write(t, dir, "adapter_config.json", []byte(`{"r":8}`))
	if _, err := hf.ReadAdapter(dir); err == nil || !strings.Contains(err.Error(), "adapter_model.safetensors") {
		t.Errorf("the error is %v", err)
	}
	write(t, dir, "adapter_model.safetensors", shard(
		sample.Tensor{Name: "a.lora_A.weight", Dtype: "F32", Shape: []int64{8, 64}},
		sample.Tensor{Name: "a.lora_B.weight", Dtype: "F32", Shape: []int64{64, 8}}))
	if got, err := hf.ReadAdapter(dir); err != nil || got != 4096 {
		t.Errorf("%d bytes, error %v", got, err)
	}
}

func TestPipesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "config.json", []byte(small))
	if err := syscall.Mkfifo(filepath.Join(dir, "model.safetensors"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := hf.Read(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("the error is %v", err)
	}
}
