package hf

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

// The parts of a tensor's name, between its dots, by which it is classified.
var (
	repeated   = []string{"layers", "h", "blocks", "block", "layer"}
	embeddings = []string{"embed_tokens", "wte", "word_embeddings", "tok_embeddings", "embed_in"}
	heads      = []string{"lm_head", "embed_out", "output_layer"}
	// towers are prefixes of vision and audio parts. Servers may keep all of them on each device.
	towers = []string{"vision", "visual", "audio", "image", "speech", "multi_modal", "mm_", "modality", "img"}
	// undivided are substrings of tensors of a layer that tensor parallelism does not divide:
	// norms, and projections into a latent. routers match a whole part of the name.
	undivided = []string{"norm", "ln_", "_a_proj", "rotary", "sinks", "shared_expert_gate"}
	routers   = []string{"router", "gate"}
	// auxiliary are suffixes of tensors that quantisation adds. They are not parameters of the model.
	auxiliary = []string{"_scale", "scales", "scale_inv", "zero_point", "qzeros", "g_idx", "weight_shape", "absmax", "quant_map", "SCB", "weight_format"}
)

// sumTensors adds up the tensors of all files by how they are divided over devices.
func sumTensors(paths []string, c config, how storage, a *estimate.Architecture) (w estimate.Weights, assumed []string, err error) {
	w.Quantised, w.Block = how.method, how.block
	tied, given, err := c.flag("tie_word_embeddings")
	if err != nil {
		return w, nil, err
	}
	layers := maxLayers
	if a != nil {
		layers = a.Layers
	}
	seen := map[string]string{}
	beyond, copied, hasHead := false, cluster.Bytes(0), false
	narrowed := cluster.Bytes(0)
	for _, path := range paths {
		list, cut, err := tensors(path)
		if err != nil {
			return w, nil, err
		}
		if cut {
			assumed = append(assumed, fmt.Sprintf("%s holds less data than its header says; the sizes of the header are used.", filepath.Base(path)))
		}
		for _, t := range list {
			if before, twice := seen[t.name]; twice {
				return w, nil, fmt.Errorf("tensor %q is in %s and in %s", t.name, before, path)
			}
			seen[t.name] = path
			n := cluster.Bytes(t.bytes)
			if t.dtype == "F32" && c.loadedNarrow() && !t.isAuxiliary() {
				n /= 2
				narrowed += n
			}
			place, layer := placeOf(t.name)
			if place == atHead {
				hasHead = true
				if tied {
					copied += n
					continue
				}
			}
			switch place {
			case inLayers:
				w.Layers += n
				beyond = beyond || layer >= layers
			case atEmbedding:
				w.Embedding += n
			case atHead:
				w.Head += n
			default:
				w.Replicated += n
			}
			w.Parameters += t.parameters(how.bits)
			if slices.Contains([]string{"BF16", "F16", "F32"}, t.dtype) && !t.isAuxiliary() {
				w.Plain += n
			}
			if w.Total() > maxWeights {
				return w, nil, fmt.Errorf("%s: the tensors so far take more than %d bytes, which no model has", path, int64(maxWeights))
			}
		}
	}
	if w.Total() == 0 {
		return w, nil, fmt.Errorf("%s has no tensors; download it again", paths[0])
	}
	if err := checkIndex(filepath.Dir(paths[0]), seen); err != nil {
		return w, nil, err
	}
	if copied > 0 {
		assumed = append(assumed, fmt.Sprintf("The head is tied to the embedding, so its copy of %d bytes in the files is not counted.", copied))
	}
	if narrowed > 0 {
		assumed = append(assumed, fmt.Sprintf("Numbers of 32 bits in the files are loaded as 16 bits, which saves %d bytes.", narrowed))
	}
	if a != nil && !given {
		a.Tied = !hasHead
	}
	if beyond {
		assumed = append(assumed, fmt.Sprintf("The files hold layers beyond the %d of the model, for drafting tokens; they are counted.", layers))
	}
	if w.Parameters > 0 {
		w.Bits = int(cluster.MulDiv(int64(w.Total()), 800, w.Parameters))
	}
	return w, assumed, nil
}

// tensorPlace is the part of a model to which a tensor belongs.
type tensorPlace int

const (
	everywhere tensorPlace = iota
	inLayers
	atEmbedding
	atHead
)

// placeOf returns how servers divide the tensor with this name, and the number of its
// layer.
func placeOf(name string) (tensorPlace, int) {
	words := strings.Split(name, ".")
	layer, whole := -1, false
	for i, w := range words {
		if slices.ContainsFunc(towers, func(t string) bool { return strings.HasPrefix(w, t) }) {
			return everywhere, 0
		}
		if layer < 0 && i+1 < len(words) && slices.Contains(repeated, w) {
			if n, err := strconv.Atoi(words[i+1]); err == nil && n >= 0 {
				layer = n
			}
		}
		whole = whole || slices.Contains(routers, w) || slices.ContainsFunc(undivided, func(u string) bool { return strings.Contains(w, u) })
	}
	switch last := words[max(0, len(words)-2)]; {
	case layer >= 0 && whole:
		return everywhere, layer
	case layer >= 0:
		return inLayers, layer
	case slices.Contains(heads, last) || strings.HasPrefix(name, "output."):
		return atHead, 0
	case slices.Contains(embeddings, last):
		return atEmbedding, 0
	}
	return everywhere, 0
}

// isAuxiliary reports whether quantisation added the tensor.
func (t tensor) isAuxiliary() bool {
	return strings.Contains(t.name, ".quant_state.") || slices.ContainsFunc(auxiliary, func(end string) bool { return strings.HasSuffix(t.name, end) })
}

// loadedNarrow reports whether servers load numbers of 32 bits as 16 bits: they do, unless
// the configuration says that the model has numbers of 16 bits and keeps some of 32.
func (c config) loadedNarrow() bool {
	for _, name := range []string{"torch_dtype", "dtype"} {
		if kind := c.stringList(name); len(kind) == 1 {
			return kind[0] == "float32"
		}
	}
	return true
}

// parameters returns how many parameters of the model the tensor holds. width is the
// size of a parameter in bits if several are packed into an integer.
func (t tensor) parameters(width int) int64 {
	if t.isAuxiliary() {
		return 0
	}
	switch t.dtype {
	case "I32", "I64", "U32":
		if width > 0 && strings.Contains(t.name, "weight") {
			return cluster.MulDiv(t.count, bitsOf[t.dtype], int64(width))
		}
		return 0
	case "U8":
		return cluster.MulDiv(t.count, 2, 1) // two parameters of four bits each: mxfp4, nf4
	}
	return t.count
}

// divideTotal divides a total size into layers, embedding and head. Embeddings usually
// have 16 bits even if the layers are quantised.
func divideTotal(total cluster.Bytes, how storage, a *estimate.Architecture) estimate.Weights {
	w := estimate.Weights{Layers: total, Quantised: how.method, Block: how.block}
	if how.method == "" {
		w.Plain = total
	}
	if a == nil {
		return w
	}
	one := cluster.Bytes(cluster.MulDiv(int64(a.Vocab), int64(a.Hidden)*2, 1))
	both := one
	if !a.Tied {
		both += one
	}
	if both < total {
		w.Embedding, w.Head, w.Layers = one, both-one, total-both
	}
	return w
}
