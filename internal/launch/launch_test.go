package launch

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/library"
	"github.com/berth-project/berth/internal/model"
)

// replicaOf returns a replica of the model with this spec, which is named chat.
func replicaOf(t *testing.T, spec string, f model.Form, pods int) *Replica {
	t.Helper()
	o := &v1alpha1.Model{}
	if err := yaml.UnmarshalStrict([]byte("metadata: {name: chat, namespace: ai}\nspec:\n  "+strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")), o); err != nil {
		t.Fatal(err)
	}
	s, notes := convert.Model(o, &convert.Environment{})
	for _, n := range notes {
		if n.Severity == convert.Invalid {
			t.Fatalf("%s: %s", n.Path, n.Message)
		}
	}
	if o.Spec.Source.Preset != "" {
		s.Source, _ = library.Known(o.Spec.Source.Preset)
	}
	r := &Replica{Object: o, Spec: s, Context: o.Spec.Context, Form: &f, Device: "cuda", Leader: "$(LWS_LEADER_ADDRESS)", Rank: "$(LWS_WORKER_INDEX)"}
	for i := 1; i < pods; i++ {
		r.Workers = append(r.Workers, "chat-r0-0-"+strconv.Itoa(i)+".chat-r0-0.ai")
	}
	return r
}

// line returns a command as one line. Arguments with spaces are quoted.
func line(command []string) string {
	var out []string
	for _, a := range command {
		if a == rayLeader || a == rayWorker || a == rpcLeader {
			a = "SCRIPT"
		}
		if strings.ContainsAny(a, " \"'") || a == "" {
			a = strconv.Quote(a)
		}
		out = append(out, a)
	}
	return strings.Join(out, " ")
}

const (
	vllmStart   = "vllm serve meta-llama/Llama-3.1-8B-Instruct --served-model-name chat --host 0.0.0.0 --port 8000"
	sglangStart = "python3 -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --served-model-name chat --host 0.0.0.0 --port 30000"
	llamaStart  = "--alias chat --host 0.0.0.0 --port 8080"
)

var one = model.Form{Tensor: 1, Pipeline: 1, Devices: 1, Nodes: 1}

func TestCommands(t *testing.T) {
	tests := map[string]struct {
		spec   string
		form   model.Form
		pods   int
		change func(*Replica)
		image  string // "": not compared
		first  string
		worker string
	}{
		"vllm on one device": {
			spec: "source: {preset: llama-3.1-8b}", form: one, pods: 1,
			image: "vllm/vllm-openai:v0.27.1", first: vllmStart + " --gpu-memory-utilization 0.9",
		},
		"vllm with a version has the share of that version": {
			spec: "{source: {preset: llama-3.1-8b}, backendVersion: 0.20.1}", form: one, pods: 1,
			image: "vllm/vllm-openai:v0.20.1", first: vllmStart + " --gpu-memory-utilization 0.92",
		},
		"vllm with a version that begins with v": {
			spec: "{source: {preset: llama-3.1-8b}, backendVersion: v0.9.1}", form: one, pods: 1,
			image: "vllm/vllm-openai:v0.9.1", first: vllmStart + " --gpu-memory-utilization 0.9",
		},
		"vllm on AMD devices": {
			spec: "source: {preset: llama-3.1-8b}", form: one, pods: 1, change: func(r *Replica) { r.Device = "rocm" },
			image: "vllm/vllm-openai-rocm:v0.27.1", first: vllmStart + " --gpu-memory-utilization 0.9",
		},
		"vllm with everything": {
			spec: `
source: {preset: llama-3.1-8b}
context: 8192
batchTokens: 4096
maxSequences: 64
gpuMemoryUtilization: "0.85"
kvCacheBits: 8
dtype: bfloat16
quantization: fp8
eager: true
draft: {repository: meta-llama/Llama-3.2-1B, preset: llama-3.2-1b}
adapters: [{name: sql, path: adapters/sql}, {name: law, path: /data/law}]
server:
  cache: {claim: models}
  port: 9000
  args: [--seed, "1"]`,
			form: model.Form{Tensor: 2, Pipeline: 2, Devices: 4, Nodes: 1}, pods: 1,
			first: "vllm serve meta-llama/Llama-3.1-8B-Instruct --served-model-name chat --host 0.0.0.0 --port 9000 --tensor-parallel-size 2 --pipeline-parallel-size 2" +
				" --max-model-len 8192 --max-num-batched-tokens 4096 --max-num-seqs 64 --gpu-memory-utilization 0.85 --kv-cache-dtype fp8 --dtype bfloat16 --quantization fp8" +
				" --enforce-eager --enable-lora --max-loras 2 --lora-modules sql=/models/adapters/sql law=/data/law" +
				` --speculative-config "{\"method\":\"draft_model\",\"model\":\"meta-llama/Llama-3.2-1B\",\"num_speculative_tokens\":5}" --seed 1`,
		},
		"an adapter without a path is not loaded": {
			spec: "{source: {preset: llama-3.1-8b}, adapters: [{name: sql, memory: 1Gi}, {name: law, path: /data/law}]}", form: one, pods: 1,
			first: vllmStart + " --gpu-memory-utilization 0.9 --enable-lora --max-loras 1 --lora-modules law=/data/law",
		},
		"vllm with bitsandbytes": {
			spec: "{source: {preset: llama-3.1-8b}, quantization: bitsandbytes}", form: one, pods: 1,
			first: vllmStart + " --gpu-memory-utilization 0.9 --quantization bitsandbytes",
		},
		"vllm with data-parallel ranks and experts on one node": {
			spec: "{source: {preset: llama-3.1-8b}, parallelism: {tensor: 2, data: 4, expert: true}}", form: model.Form{Tensor: 2, Pipeline: 1, Devices: 8, Nodes: 1}, pods: 1,
			first: vllmStart + " --tensor-parallel-size 2 --data-parallel-size 4 --enable-expert-parallel --gpu-memory-utilization 0.9",
		},
		"vllm with data-parallel ranks in several pods": {
			spec: "{source: {preset: llama-3.1-8b}, parallelism: {tensor: 2, data: 3}, placement: {distributed: true}, server: {args: [--seed, '1']}}", form: model.Form{Tensor: 2, Pipeline: 1, Devices: 2, Nodes: 1}, pods: 3,
			first:  vllmStart + " --tensor-parallel-size 2 --data-parallel-size 3 --gpu-memory-utilization 0.9 --data-parallel-size-local 1 --data-parallel-address $(BERTH_POD_IP) --seed 1",
			worker: vllmStart + " --tensor-parallel-size 2 --data-parallel-size 3 --gpu-memory-utilization 0.9 --data-parallel-size-local 1 --data-parallel-address $(BERTH_LEADER) --data-parallel-start-rank $(BERTH_NODE_RANK) --headless --seed 1",
		},
		"vllm on several nodes": {
			spec: "{source: {preset: llama-3.1-8b}, server: {args: [--seed, '1']}}", form: model.Form{Tensor: 8, Pipeline: 2, Devices: 8, Nodes: 2}, pods: 2,
			first:  vllmStart + " --tensor-parallel-size 8 --pipeline-parallel-size 2 --gpu-memory-utilization 0.9 --nnodes 2 --node-rank $(BERTH_NODE_RANK) --master-addr $(BERTH_POD_IP) --seed 1",
			worker: vllmStart + " --tensor-parallel-size 8 --pipeline-parallel-size 2 --gpu-memory-utilization 0.9 --nnodes 2 --node-rank $(BERTH_NODE_RANK) --master-addr $(BERTH_LEADER) --headless --seed 1",
		},
		"vllm with tensor parallelism over nodes": {
			spec: "source: {preset: llama-3.1-8b}", form: model.Form{Tensor: 16, Pipeline: 1, Devices: 8, Nodes: 2}, pods: 2,
			first:  vllmStart + " --tensor-parallel-size 16 --gpu-memory-utilization 0.9 --nnodes 2 --node-rank $(BERTH_NODE_RANK) --master-addr $(BERTH_POD_IP)",
			worker: vllmStart + " --tensor-parallel-size 16 --gpu-memory-utilization 0.9 --nnodes 2 --node-rank $(BERTH_NODE_RANK) --master-addr $(BERTH_LEADER) --headless",
		},
		"an old vllm on several nodes uses Ray": {
			spec: "{source: {preset: llama-3.1-8b}, backendVersion: 0.11.0, server: {args: [--seed, '1']}}", form: model.Form{Tensor: 8, Pipeline: 2, Devices: 8, Nodes: 2}, pods: 2,
			image:  "vllm/vllm-openai:v0.11.0",
			first:  "sh -c SCRIPT sh " + vllmStart + " --tensor-parallel-size 8 --pipeline-parallel-size 2 --gpu-memory-utilization 0.9 --distributed-executor-backend ray --seed 1",
			worker: "sh -c SCRIPT",
		},
		"vllm with Ray": {
			spec: "{source: {preset: llama-3.1-8b}, server: {distribution: Ray, image: example.com/vllm-ray:1}}", form: model.Form{Tensor: 8, Pipeline: 2, Devices: 8, Nodes: 2}, pods: 2,
			image:  "example.com/vllm-ray:1",
			first:  "sh -c SCRIPT sh " + vllmStart + " --tensor-parallel-size 8 --pipeline-parallel-size 2 --gpu-memory-utilization 0.9 --distributed-executor-backend ray",
			worker: "sh -c SCRIPT",
		},
		"vllm with different numbers of devices uses Ray": {
			spec: "{source: {preset: llama-3.1-8b}, server: {image: example.com/vllm-ray:1}}", form: model.Form{Tensor: 4, Pipeline: 3, Devices: 8, Nodes: 2}, pods: 2, change: func(r *Replica) { r.Uneven = true },
			first:  "sh -c SCRIPT sh " + vllmStart + " --tensor-parallel-size 4 --pipeline-parallel-size 3 --gpu-memory-utilization 0.9 --distributed-executor-backend ray",
			worker: "sh -c SCRIPT",
		},
		"an encoder has no share": {
			spec: "source: {preset: llama-3.1-8b}", form: one, pods: 1, change: func(r *Replica) {
				r.Spec.Source = &estimate.Model{Architecture: &estimate.Architecture{Encoder: true}}
			},
			first: vllmStart,
		},
		"sglang on one device": {
			spec: "{backend: sglang, source: {preset: llama-3.1-8b}, context: 4096}", form: one, pods: 1,
			image: "lmsysorg/sglang:v0.5.18", first: sglangStart + " --context-length 4096",
		},
		"sglang with everything": {
			spec: `
backend: sglang
source: {preset: llama-3.1-8b}
batchTokens: 2048
maxSequences: 32
gpuMemoryUtilization: "0.8"
kvCacheBits: 8
dtype: float16
quantization: fp8
eager: true
draft: {preset: llama-3.2-1b, repository: meta-llama/Llama-3.2-1B}
adapters: [{name: sql, path: /data/sql}]`,
			form: model.Form{Tensor: 4, Pipeline: 1, Devices: 4, Nodes: 1}, pods: 1,
			first: sglangStart + " --tp-size 4 --chunked-prefill-size 2048 --max-running-requests 32 --mem-fraction-static 0.8 --kv-cache-dtype fp8_e4m3 --dtype float16 --quantization fp8 --disable-cuda-graph" +
				" --max-loras-per-batch 1 --lora-paths sql=/data/sql --speculative-algorithm STANDALONE --speculative-draft-model-path meta-llama/Llama-3.2-1B",
		},
		"sglang on several nodes with stages": {
			spec: "{backend: sglang, source: {preset: llama-3.1-8b}, server: {args: [--log-level, info]}}", form: model.Form{Tensor: 8, Pipeline: 2, Devices: 8, Nodes: 2}, pods: 2,
			first:  sglangStart + " --tp-size 8 --pp-size 2 --nnodes 2 --node-rank $(BERTH_NODE_RANK) --dist-init-addr $(BERTH_LEADER):5000 --log-level info",
			worker: sglangStart + " --tp-size 8 --pp-size 2 --nnodes 2 --node-rank $(BERTH_NODE_RANK) --dist-init-addr $(BERTH_LEADER):5000 --log-level info",
		},
		"sglang with data-parallel ranks on one node": {
			spec: "{backend: sglang, source: {preset: llama-3.1-8b}, parallelism: {tensor: 2, data: 4}}", form: model.Form{Tensor: 2, Pipeline: 1, Devices: 8, Nodes: 1}, pods: 1,
			first: sglangStart + " --tp-size 2 --dp-size 4",
		},
		"sglang with data-parallel ranks in several pods": {
			spec: "{backend: sglang, source: {preset: llama-3.1-8b}, parallelism: {tensor: 2, data: 4}}", form: model.Form{Tensor: 2, Pipeline: 1, Devices: 2, Nodes: 1}, pods: 4,
			first: sglangStart + " --tp-size 2", worker: sglangStart + " --tp-size 2",
		},
		"sglang with ranks that share experts": {
			spec: "{backend: sglang, source: {preset: llama-3.1-8b}, parallelism: {tensor: 2, data: 4, expert: true}}", form: model.Form{Tensor: 2, Pipeline: 1, Devices: 2, Nodes: 1}, pods: 4,
			first:  sglangStart + " --tp-size 8 --dp-size 4 --enable-dp-attention --ep-size 8 --nnodes 4 --node-rank $(BERTH_NODE_RANK) --dist-init-addr $(BERTH_POD_IP):5000",
			worker: sglangStart + " --tp-size 8 --dp-size 4 --enable-dp-attention --ep-size 8 --nnodes 4 --node-rank $(BERTH_NODE_RANK) --dist-init-addr $(BERTH_LEADER):5000",
		},
		"an old sglang with experts": {
			spec: "{backend: sglang, backendVersion: 0.4.9, source: {preset: llama-3.1-8b}, parallelism: {tensor: 2, expert: true}}", form: model.Form{Tensor: 2, Pipeline: 1, Devices: 2, Nodes: 1}, pods: 1,
			image: "lmsysorg/sglang:v0.4.9", first: sglangStart + " --tp-size 2 --enable-ep-moe",
		},
		"sglang with bitsandbytes": {
			spec: "{backend: sglang, source: {preset: llama-3.1-8b}, quantization: bitsandbytes, server: {image: example.com/sglang-bnb:1}}", form: one, pods: 1,
			first: sglangStart + " --quantization bitsandbytes --load-format bitsandbytes",
		},
		"llamacpp on one device": {
			spec: "{source: {gguf: qwen/q8.gguf}, context: 4096, server: {cache: {claim: models, mountPath: /data}}}", form: one, pods: 1,
			image: "ghcr.io/ggml-org/llama.cpp:server-cuda-b10586",
			first: "/app/llama-server --model /data/qwen/q8.gguf " + llamaStart + " --ctx-size 4096 --parallel 1 --flash-attn on --n-gpu-layers 999",
		},
		"llamacpp with a file of a repository": {
			spec: "{source: {gguf: q8.gguf, repository: Qwen/Qwen3-8B-GGUF}, context: 4096, sequences: 4}", form: one, pods: 1,
			first: "/app/llama-server --hf-repo Qwen/Qwen3-8B-GGUF --hf-file q8.gguf " + llamaStart + " --ctx-size 16384 --parallel 4 --flash-attn on --n-gpu-layers 999",
		},
		"llamacpp with a file in a folder of a repository": {
			spec: "{source: {gguf: ./Q4_K_M/x-00001-of-00003.gguf, repository: a/b}, draft: {gguf: drafts/small.gguf, repository: c/d}}", form: one, pods: 1,
			first: "/app/llama-server --hf-repo a/b --hf-file Q4_K_M/x-00001-of-00003.gguf " + llamaStart + " --parallel 1 --flash-attn on --n-gpu-layers 999 --hf-repo-draft c/d --model-draft drafts/small.gguf",
		},
		"llamacpp with a file of a repository that is elsewhere on this machine": {
			spec: "{source: {gguf: /data/x.gguf, repository: a/b}, draft: {gguf: ../small.gguf, repository: c/d}}", form: one, pods: 1,
			first: "/app/llama-server --hf-repo a/b --hf-file x.gguf " + llamaStart + " --parallel 1 --flash-attn on --n-gpu-layers 999 --hf-repo-draft c/d --model-draft small.gguf",
		},
		"llamacpp with everything": {
			spec: `
source: {localPath: /srv/q8.gguf}
memory: {device: 8Gi}
context: 2048
batchTokens: 1024
microBatch: 256
flashAttention: false
fullWindowCache: true
draft: {gguf: /srv/small.gguf}
adapters: [{name: a, path: /srv/a.gguf}, {name: b, path: /srv/b.gguf}]
placement: {deviceLayers: 12}
server: {args: [--metrics]}`,
			form: one, pods: 1,
			first: "/app/llama-server --model /srv/q8.gguf " + llamaStart + " --ctx-size 2048 --parallel 1 --batch-size 1024 --ubatch-size 256 --flash-attn off --swa-full --n-gpu-layers 12" +
				" --lora /srv/a.gguf,/srv/b.gguf --model-draft /srv/small.gguf --metrics",
		},
		"llamacpp with a cache of 4 bits": {
			spec: "{source: {gguf: /q8.gguf}, kvCacheBits: 4}", form: one, pods: 1,
			first: "/app/llama-server --model /q8.gguf " + llamaStart + " --parallel 1 --flash-attn on --cache-type-k q4_0 --cache-type-v q4_0 --n-gpu-layers 999",
		},
		"llamacpp with the longest context": {
			spec: "{source: {gguf: /q8.gguf}, sequences: 2}", form: one, pods: 1, change: func(r *Replica) {
				r.Spec.Source = &estimate.Model{Architecture: &estimate.Architecture{MaxContext: 40960}}
			},
			first: "/app/llama-server --model /q8.gguf " + llamaStart + " --ctx-size 81920 --parallel 2 --flash-attn on --n-gpu-layers 999",
		},
		"llamacpp with as many layers as fit": {
			spec: "{source: {gguf: /q8.gguf}, placement: {cpuOffload: true}}", form: one, pods: 1,
			first: "/app/llama-server --model /q8.gguf " + llamaStart + " --parallel 1 --flash-attn on",
		},
		"llamacpp without devices": {
			spec: "{source: {gguf: /q8.gguf}, placement: {cpuOffload: true}}", form: model.Form{Tensor: 1, Pipeline: 1, Nodes: 1, Host: 1 << 30}, pods: 1, change: func(r *Replica) { r.Device = "" },
			image: "ghcr.io/ggml-org/llama.cpp:server-b10586",
			first: "/app/llama-server --model /q8.gguf " + llamaStart + " --parallel 1 --flash-attn on --n-gpu-layers 0",
		},
		"an old llamacpp": {
			spec: "{backendVersion: b6000, source: {gguf: /q8.gguf}, adapters: [{name: a, path: /a.gguf}, {name: b, path: /b.gguf}]}", form: one, pods: 1,
			image: "ghcr.io/ggml-org/llama.cpp:server-cuda-b6000",
			first: "/app/llama-server --model /q8.gguf " + llamaStart + " --parallel 1 --flash-attn --n-gpu-layers 999 --lora /a.gguf --lora /b.gguf",
		},
		"llamacpp on Intel devices": {
			spec: "{source: {gguf: /q8.gguf}}", form: one, pods: 1, change: func(r *Replica) { r.Device = "oneapi" },
			image: "ghcr.io/ggml-org/llama.cpp:server-intel-b10586",
			first: "/app/llama-server --model /q8.gguf " + llamaStart + " --parallel 1 --flash-attn on --n-gpu-layers 999",
		},
		"llamacpp on several nodes": {
			spec: "{source: {gguf: /q8.gguf}, server: {image: example.com/llama-rpc:1, args: [--metrics]}}", form: model.Form{Tensor: 1, Pipeline: 3, Devices: 1, Nodes: 3}, pods: 3,
			first: `bash -c SCRIPT "chat-r0-0-1.chat-r0-0.ai:50052 chat-r0-0-2.chat-r0-0.ai:50052" /app/llama-server --model /q8.gguf ` + llamaStart +
				" --parallel 1 --flash-attn on --n-gpu-layers 999 --rpc chat-r0-0-1.chat-r0-0.ai:50052,chat-r0-0-2.chat-r0-0.ai:50052 --metrics",
			worker: "/app/ggml-rpc-server --host 0.0.0.0 --port 50052",
		},
		"an old llamacpp on several nodes": {
			spec: "{backendVersion: b9000, source: {gguf: /q8.gguf}, server: {image: example.com/llama-rpc:1}}", form: model.Form{Tensor: 1, Pipeline: 2, Devices: 1, Nodes: 2}, pods: 2,
			first: `bash -c SCRIPT chat-r0-0-1.chat-r0-0.ai:50052 /app/llama-server --model /q8.gguf ` + llamaStart +
				" --parallel 1 --flash-attn on --n-gpu-layers 999 --rpc chat-r0-0-1.chat-r0-0.ai:50052",
			worker: "/app/rpc-server --host 0.0.0.0 --port 50052",
		},
		"a command of the user": {
			spec: "{source: {preset: llama-3.1-8b}, server: {command: [serve, $(BERTH_MODEL)], args: [--tp, $(BERTH_TENSOR_PARALLEL)]}}", form: model.Form{Tensor: 2, Pipeline: 2, Devices: 2, Nodes: 2}, pods: 2,
			image: "vllm/vllm-openai:v0.27.1", first: "serve $(BERTH_MODEL) --tp $(BERTH_TENSOR_PARALLEL)", worker: "serve $(BERTH_MODEL) --tp $(BERTH_TENSOR_PARALLEL)",
		},
		"a custom backend with the command of its image": {
			spec: "{backend: custom, memory: {device: 4Gi}, server: {image: example.com/own:1}}", form: one, pods: 1, image: "example.com/own:1",
		},
		"a config with a repository": {
			spec: "{source: {config: '{}', weights: 1Gi, repository: Qwen/Qwen3-8B}}", form: one, pods: 1,
			first: "vllm serve Qwen/Qwen3-8B --served-model-name chat --host 0.0.0.0 --port 8000 --gpu-memory-utilization 0.9",
		},
		"a directory of the nodes with variables in its name": {
			spec: "{source: {localPath: '/srv/$(HF_TOKEN) $$x'}, memory: {device: 4Gi}}", form: one, pods: 1,
			first: `vllm serve "/srv/$$(HF_TOKEN) $$$$x" --served-model-name chat --host 0.0.0.0 --port 8000 --gpu-memory-utilization 0.9`,
		},
		"a directory of the cache": {
			spec: "{source: {huggingFace: qwen}, server: {cache: {hostPath: /var/models}}}", form: one, pods: 1,
			first: "vllm serve /models/qwen --served-model-name chat --host 0.0.0.0 --port 8000 --gpu-memory-utilization 0.9",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := replicaOf(t, tt.spec, tt.form, tt.pods)
			if tt.change != nil {
				tt.change(r)
			}
			s, err := Of(r)
			if err != nil {
				t.Fatal(err)
			}
			if tt.image != "" && s.Image != tt.image {
				t.Errorf("image %s, want %s", s.Image, tt.image)
			}
			if diff := cmp.Diff(tt.first, line(s.Command)); diff != "" {
				t.Errorf("first pod:\n%s", diff)
			}
			if diff := cmp.Diff(tt.worker, line(s.Worker)); diff != "" {
				t.Errorf("worker:\n%s", diff)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	two := model.Form{Tensor: 8, Pipeline: 2, Devices: 8, Nodes: 2}
	tests := map[string]struct {
		spec   string
		form   model.Form
		pods   int
		change func(*Replica)
		want   string
	}{
		"no image":                  {spec: "{backend: custom, memory: {device: 4Gi}}", want: "spec.server.image: Berth knows no image of the backend custom; name one"},
		"no image of speech models": {spec: "{source: {preset: whisper-tiny}}", want: "spec.server.image: Berth knows no image of the backend voxbox; name one"},
		"arguments without command": {spec: "{backend: custom, memory: {device: 4Gi}, server: {image: a, args: [x]}}", want: "spec.server.args: Berth does not know the command of the backend custom; write the arguments after it, under command"},
		"no volume":                 {spec: "source: {huggingFace: qwen}", want: "spec.source: say on which volume the files are under server.cache, or name the repository from which the server loads them"},
		"no repository":             {spec: "memory: {device: 4Gi}", want: "spec.source.repository: name the repository from which the server loads the model"},
		"an adapter without volume": {spec: "{source: {preset: llama-3.1-8b}, adapters: [{name: a, path: a}]}", want: "spec.adapters[0]: say on which volume the files are under server.cache, or write an absolute path"},
		"a name of an adapter":      {spec: "{source: {preset: llama-3.1-8b}, adapters: [{name: 'a=b', path: /a}]}", want: "spec.adapters[0]: the server does not accept spaces, quotation marks, =, commas and braces in the name and the path of an adapter"},
		"int8 with vllm":            {spec: "{source: {preset: llama-3.1-8b}, quantization: int8}", want: "spec.quantization: vllm cannot quantise all weights of a model to int8 as it loads them; write fp8, or take weights that are quantised in the files"},
		"int8 with sglang":          {spec: "{backend: sglang, source: {preset: llama-3.1-8b}, quantization: int8}", want: "spec.quantization: sglang cannot quantise all weights of a model to int8 as it loads them; write fp8, or take weights that are quantised in the files"},
		"a GGUF file with vllm":     {spec: "{backend: vllm, source: {gguf: /a.gguf}}", want: "spec.source: vllm reads no GGUF files since version 0.24; name an older backendVersion, or the backend llamacpp"},
		"a repository of GGUF":      {spec: "{backend: vllm, backendVersion: 0.20.0, source: {gguf: a.gguf, repository: a/b}}", want: "spec.source.repository: vllm reads a GGUF file from a volume only; name the volume under server.cache, and leave the repository out"},
		"a draft with an old vllm":  {spec: "{backendVersion: 0.14.0, source: {preset: llama-3.1-8b}, draft: {preset: llama-3.2-1b}}", want: "spec.draft: vllm has drafts since version 0.15; name a newer backendVersion, or leave the draft out"},
		"Native with an old vllm":   {spec: "{backendVersion: 0.11.0, source: {preset: llama-3.1-8b}, server: {distribution: Native}}", form: two, pods: 2, want: "spec.server.distribution: vllm has its own flags for several nodes since version 0.11.1; write Ray, or name a newer backendVersion"},
		"Native, uneven":            {spec: "{source: {preset: llama-3.1-8b}, server: {distribution: Native}}", form: two, pods: 2, change: func(r *Replica) { r.Uneven = true }, want: "spec.server.distribution: vllm needs Ray for different numbers of devices on the nodes; write Ray, or fix the number of devices with placement.devicesPerReplica"},
		"Ray without an image":      {spec: "{source: {preset: llama-3.1-8b}, server: {distribution: Ray}}", form: two, pods: 2, want: "spec.server.image: the replica needs Ray, which the images of vllm do not contain since version 0.18; name an image with vllm and Ray, or an older backendVersion"},
		"Ray with ranks":            {spec: "{source: {preset: llama-3.1-8b}, parallelism: {data: 2}, server: {distribution: Ray}}", form: one, pods: 2, want: "spec.server.distribution: data-parallel ranks in several pods are started without Ray; leave distribution out"},
		"ranks with an old vllm":    {spec: "{backendVersion: 0.8.5, source: {preset: llama-3.1-8b}, parallelism: {data: 2}}", form: one, pods: 2, want: "spec.backendVersion: vllm has data-parallel ranks on several nodes since version 0.9; name a newer one"},
		"a part of a device": {spec: "source: {preset: llama-3.1-8b}", change: func(r *Replica) {
			r.Parts, r.Spec.Source = true, &estimate.Model{Architecture: &estimate.Architecture{Encoder: true}}
		}, want: "spec.gpuMemoryUtilization: vllm checks at its start that a share of the device is free, and the replica holds a part of a device; write the share"},
		"an old vllm on AMD":       {spec: "{backendVersion: 0.13.0, source: {preset: llama-3.1-8b}}", change: func(r *Replica) { r.Device = "rocm" }, want: "spec.server.image: Berth chooses no image of vllm for devices of the type rocm: the project publishes one since version 0.14 only; others are at docker.io/rocm/vllm; name one"},
		"vllm on Ascend":           {spec: "source: {preset: llama-3.1-8b}", change: func(r *Replica) { r.Device = "cann" }, want: "spec.server.image: Berth chooses no image of vllm for devices of the type cann: quay.io/ascend/vllm-ascend has one for each generation of devices, with versions of its own; name one"},
		"sglang on AMD":            {spec: "{backend: sglang, source: {preset: llama-3.1-8b}}", change: func(r *Replica) { r.Device = "rocm" }, want: "spec.server.image: Berth chooses no image of sglang for devices of the type rocm: the project publishes one for each generation of devices, such as lmsysorg/sglang:v0.5.18-rocm720-mi30x; name one"},
		"llamacpp on Gaudi":        {spec: "source: {gguf: /a.gguf}", change: func(r *Replica) { r.Device = "gaudi" }, want: "spec.server.image: Berth chooses no image of llamacpp for devices of the type gaudi: the project publishes none; name one"},
		"bitsandbytes with sglang": {spec: "{backend: sglang, source: {preset: llama-3.1-8b}, quantization: bitsandbytes}", want: "spec.server.image: the images of sglang do not contain bitsandbytes; name an image that does"},
		"a draft with an old sglang": {
			spec: "{backend: sglang, backendVersion: 0.5.1, source: {preset: llama-3.1-8b}, draft: {preset: llama-3.2-1b}}",
			want: "spec.draft: sglang has drafts since version 0.5.2; name a newer backendVersion, or leave the draft out",
		},
		"a draft with stages":   {spec: "{backend: sglang, source: {preset: llama-3.1-8b}, draft: {preset: llama-3.2-1b}}", form: two, pods: 2, want: "spec.draft: sglang has no drafts for a model with pipeline stages, or with data-parallel ranks that share experts; leave the draft out, or set parallelism"},
		"experts with stages":   {spec: "{backend: sglang, source: {preset: llama-3.1-8b}, parallelism: {data: 2, pipeline: 2, expert: true}}", form: two, pods: 2, want: "spec.parallelism.pipeline: sglang does not combine pipeline stages with data-parallel ranks that share experts; leave one out"},
		"RPC without an image":  {spec: "source: {gguf: /a.gguf}", form: two, pods: 2, want: "spec.server.image: a replica on several nodes needs RPC, and the images that llama.cpp publishes are built without it; name an image that is built with -DGGML_RPC=ON, or set placement.distributed to false"},
		"offload, old llamacpp": {spec: "{backendVersion: b7000, source: {gguf: /a.gguf}, placement: {cpuOffload: true}}", want: "spec.placement.deviceLayers: llamacpp finds out how many layers fit since b7410; name a newer backendVersion, or write how many layers are on devices"},
	}
	for name, tt := range tests {
		if tt.form.Nodes == 0 {
			tt.form = one
		}
		r := replicaOf(t, tt.spec, tt.form, max(1, tt.pods))
		if tt.change != nil {
			tt.change(r)
		}
		_, err := Of(r)
		var p *Problem
		if !errors.As(err, &p) || err.Error() != tt.want {
			t.Errorf("%s: %v\nwant %s", name, err, tt.want)
		}
	}
}

func TestVariables(t *testing.T) {
	r := replicaOf(t, "{source: {localPath: /srv/$x}, memory: {device: 1Gi}, context: 512, parallelism: {tensor: 2, data: 2}}", model.Form{Tensor: 2, Pipeline: 1, Devices: 2, Nodes: 1}, 2)
	s, err := Of(r)
	if err != nil {
		t.Fatal(err)
	}
	want := []Variable{
		{"BERTH_MODEL", "/srv/$$x", ""}, {"BERTH_TENSOR_PARALLEL", "2", ""}, {"BERTH_PIPELINE_PARALLEL", "1", ""}, {"BERTH_DATA_PARALLEL", "2", ""}, {"BERTH_CONTEXT", "512", ""},
		{"BERTH_PORT", "8000", ""}, {"BERTH_NODES", "2", ""}, {"BERTH_LEADER", "$(LWS_LEADER_ADDRESS)", ""}, {"BERTH_NODE_RANK", "$(LWS_WORKER_INDEX)", ""}, {"BERTH_POD_IP", "", "status.podIP"},
	}
	if diff := cmp.Diff(want, s.Variables); diff != "" {
		t.Error(diff)
	}
}

// The pods of a model answer requests one by one if no server divides them.
func TestEachServes(t *testing.T) {
	for spec, want := range map[string]bool{
		"{backend: sglang, source: {preset: llama-3.1-8b}, parallelism: {data: 2}}":               true,
		"{backend: sglang, source: {preset: llama-3.1-8b}, parallelism: {data: 2, expert: true}}": false,
		"{source: {preset: llama-3.1-8b}, parallelism: {data: 2}}":                                false,
	} {
		if s, err := Of(replicaOf(t, spec, one, 2)); err != nil || s.EachServes != want {
			t.Errorf("%s: %v, %v", spec, s, err)
		}
	}
}
