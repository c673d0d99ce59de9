package migration

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/phrase"
	"k8s.io/apimachinery/pkg/api/resource"
)

// parameter sets a field of the model by the value of a flag. It reports false if the field cannot hold
// the value. The flag is then passed to the server as it is.
type parameter func(spec *v1alpha1.ModelSpec, value string) bool

// number is a parameter that sets a number above 0.
func number(at func(*v1alpha1.ModelSpec) *int) parameter {
	return func(spec *v1alpha1.ModelSpec, value string) bool {
		n, err := strconv.Atoi(value)
		if err != nil || n <= 0 {
			return false
		}
		*at(spec) = n
		return true
	}
}

// flag is a parameter without a value, or with one that is true or false.
func flag(at func(*v1alpha1.ModelSpec) *bool) parameter {
	return func(spec *v1alpha1.ModelSpec, value string) bool {
		on, err := strconv.ParseBool(cmp.Or(value, "true"))
		if err == nil {
			*at(spec) = on
		}
		return err == nil
	}
}

func parallelism(spec *v1alpha1.ModelSpec) *v1alpha1.Parallelism {
	if spec.Parallelism == nil {
		spec.Parallelism = &v1alpha1.Parallelism{}
	}
	return spec.Parallelism
}

var (
	context      = number(func(s *v1alpha1.ModelSpec) *int { return &s.Context })
	tensor       = number(func(s *v1alpha1.ModelSpec) *int { return &parallelism(s).Tensor })
	pipeline     = number(func(s *v1alpha1.ModelSpec) *int { return &parallelism(s).Pipeline })
	dataParallel = number(func(s *v1alpha1.ModelSpec) *int { return &parallelism(s).Data })
	expert       = flag(func(s *v1alpha1.ModelSpec) *bool { return &parallelism(s).Expert })
	maxSequences = number(func(s *v1alpha1.ModelSpec) *int { return &s.MaxSequences })
	sequences    = number(func(s *v1alpha1.ModelSpec) *int { return &s.Sequences })
	batchTokens  = number(func(s *v1alpha1.ModelSpec) *int { return &s.BatchTokens })
	microBatch   = number(func(s *v1alpha1.ModelSpec) *int { return &s.MicroBatch })
	eager        = flag(func(s *v1alpha1.ModelSpec) *bool { return &s.Eager })
	fullWindow   = flag(func(s *v1alpha1.ModelSpec) *bool { return &s.FullWindowCache })
)

// utilization sets the fraction of each device that the server claims.
func utilization(spec *v1alpha1.ModelSpec, value string) bool {
	q, err := resource.ParseQuantity(value)
	if err != nil || q.Sign() <= 0 || q.CmpInt64(1) > 0 {
		return false
	}
	spec.GPUMemoryUtilization = &q
	return true
}

// dtype sets the type of weights that are not quantised.
func dtype(spec *v1alpha1.ModelSpec, value string) bool {
	switch value {
	case "auto", "bfloat16", "float16", "float32":
		spec.DType = value
	case "half":
		spec.DType = "float16"
	case "float":
		spec.DType = "float32"
	default:
		return false
	}
	return true
}

// quantization sets how weights are quantised as they are loaded. Other values name how the files
// are quantised, which Berth reads from the model.
func quantization(spec *v1alpha1.ModelSpec, value string) bool {
	if value != "fp8" && value != "bitsandbytes" {
		return false
	}
	spec.Quantization = value
	return true
}

// cacheType sets the size of a number in the KV cache.
func cacheType(spec *v1alpha1.ModelSpec, value string) bool {
	switch {
	case strings.HasPrefix(value, "fp8"), value == "q8_0":
		spec.KVCacheBits = 8
	case value == "f16":
		spec.KVCacheBits = 16
	default:
		return false
	}
	return true
}

// deviceLayers sets how many layers are on devices. A negative number means all.
func deviceLayers(spec *v1alpha1.ModelSpec, value string) bool {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return false
	}
	spec.Placement.DeviceLayers = &n
	return true
}

// parameters are the flags of each backend that Berth has a field for.
var parameters = map[string]map[string]parameter{
	"vllm": {
		"max-model-len": context, "gpu-memory-utilization": utilization,
		"tensor-parallel-size": tensor, "tp": tensor, "pipeline-parallel-size": pipeline, "pp": pipeline,
		"data-parallel-size": dataParallel, "dp": dataParallel, "enable-expert-parallel": expert,
		"max-num-seqs": maxSequences, "max-num-batched-tokens": batchTokens, "enforce-eager": eager,
		"dtype": dtype, "quantization": quantization, "q": quantization, "kv-cache-dtype": cacheType,
	},
	"sglang": {
		"context-length": context, "mem-fraction-static": utilization,
		"tensor-parallel-size": tensor, "tp-size": tensor, "tp": tensor, "pipeline-parallel-size": pipeline, "pp-size": pipeline, "pp": pipeline,
		"data-parallel-size": dataParallel, "dp-size": dataParallel, "dp": dataParallel,
		"max-running-requests": maxSequences, "chunked-prefill-size": batchTokens, "disable-cuda-graph": eager,
		"dtype": dtype, "quantization": quantization, "kv-cache-dtype": cacheType,
	},
	"llamacpp": {
		"ctx-size": context, "c": context, "parallel": sequences, "np": sequences, "ubatch-size": microBatch, "ub": microBatch,
		"gpu-layers": deviceLayers, "n-gpu-layers": deviceLayers, "ngl": deviceLayers, "cache-type-k": cacheType, "swa-full": fullWindow,
	},
	"mindie": {
		"max-seq-len": context, "npu-memory-fraction": utilization, "tensor-parallel-size": tensor, "tp": tensor,
		"pipeline-parallel-size": pipeline, "pp": pipeline, "data-parallel-size": dataParallel, "dp": dataParallel,
	},
}

// parameters sets the fields for which the backend has flags, and passes all other flags to the
// server.
func (g *gpustack) parameters(list []string) {
	known := parameters[cmp.Or(g.name, "vllm")]
	var args []string
	for _, p := range splitFlags(list) {
		if set := known[p.name]; set != nil && len(p.values) <= 1 && set(&g.model.Spec, strings.Join(p.values, "")) {
			continue
		}
		args = append(args, p.written...)
	}
	if len(args) == 0 {
		return
	}
	g.serverSpec().Args = args
	var names []string
	for _, a := range args {
		if isFlag(a) {
			name, _, _ := strings.Cut(a, "=")
			names = append(names, phrase.Clip(name))
		}
	}
	const most = 8
	if len(names) > most {
		names = append(names[:most], "…")
	}
	g.object.notef(path{"backend_parameters"}, "passed to the server under server.args, without an effect on the estimate of its memory: %s", cmp.Or(strings.Join(names, ", "), "all"))
}

// serverFlag is a flag and its values.
type serverFlag struct {
	name    string // without hyphens
	values  []string
	written []string // as it is passed to the server
}

// splitFlags returns the flags of a list in which a flag and its value are one entry with "=" or a
// space between them, or two entries.
func splitFlags(list []string) []serverFlag {
	var words []string
	for _, entry := range list {
		// A value in JSON or in quotes stays as it is.
		if strings.HasPrefix(entry, "-") && !strings.ContainsAny(entry, `"'{[`) {
			words = append(words, strings.Fields(entry)...)
		} else {
			words = append(words, strings.TrimSpace(entry))
		}
	}
	var out []serverFlag
	for _, w := range words {
		if !isFlag(w) {
			if len(out) == 0 {
				out = append(out, serverFlag{})
			}
			last := &out[len(out)-1]
			last.values, last.written = append(last.values, w), append(last.written, w)
			continue
		}
		name, value, has := strings.Cut(strings.TrimLeft(w, "-"), "=")
		f := serverFlag{name: name, written: []string{w}}
		if has {
			f.values = []string{value}
		}
		out = append(out, f)
	}
	return out
}

// isFlag reports whether the word is a flag and not a negative number.
func isFlag(word string) bool {
	if !strings.HasPrefix(word, "-") {
		return false
	}
	_, err := strconv.ParseFloat(word, 64)
	return err != nil
}
