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

// The words of a tensor's name, between its dots, that say what it is.
var (
	repeated   = []string{"layers", "h", "blocks", "block", "layer"}
	embeddings = []string{"embed_tokens", "wte", "word_embeddings", "tok_embeddings", "embed_in"}
	heads      = []string{"lm_head", "embed_out", "output_layer"}
	// towers begin the words of what sees or hears; servers may keep all of it on each device.
	towers = []string{"vision", "visual", "audio", "image", "speech", "multi_modal", "mm_", "modality", "img"}
	// undivided is in the words of what tensor parallelism leaves whole in a layer:
	// norms, and what leads into a latent. Routers are a word of their own.
	undivided = []string{"norm", "ln_", "_a_proj", "rotary", "sinks", "shared_expert_gate"}
	routers   = []string{"router", "gate"}
	// beside end the names of what quantised weights bring with them: no parameters of the model.
	beside = []string{"_scale", "scales", "scale_inv", "zero_point", "qzeros", "g_idx", "weight_shape", "absmax", "quant_map", "SCB", "weight_format"}
)

// count adds up the tensors of all files by how they divide.
func count(paths []string, c config, a *estimate.Architecture) (w estimate.Weights, assumed []string, err error) {
	how, err := c.quantised()
	if err != nil {
		return w, nil, err
	}
	w.Quantised, w.Block = how.method, how.block
	tied, said, err := c.flag("tie_word_embeddings")
	if err != nil {
		return w, nil, err
	}
	layers := maxLayers
	if a != nil {
		layers = a.Layers
	}
	seen := map[string]string{}
	beyond, copied, hasHead := false, cluster.Bytes(0), false
	for _, path := range paths {
		list, cut, err := tensors(path)
		if err != nil {
			return w, nil, err
		}
		if cut {
			assumed = append(assumed, fmt.Sprintf("%s holds less data than its header says; the header is believed.", filepath.Base(path)))
		}
		for _, t := range list {
			if before, twice := seen[t.name]; twice {
				return w, nil, fmt.Errorf("tensor %q is in %s and in %s", t.name, before, path)
			}
			seen[t.name] = path
			n := cluster.Bytes(t.bytes)
			kind, layer := divide(t.name)
			if kind == atHead {
				hasHead = true
				if tied {
					copied += n
					continue
				}
			}
			switch kind {
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
			if w.Total() > maxWeights {
				return w, nil, fmt.Errorf("%s: the tensors so far take more than %d bytes: that is no model", path, int64(maxWeights))
			}
		}
	}
	if w.Total() == 0 {
		return w, nil, fmt.Errorf("%s has no tensors: download it again", paths[0])
	}
	if copied > 0 {
		assumed = append(assumed, fmt.Sprintf("The head is tied to the embedding, so its copy of %d bytes in the files is not counted.", copied))
	}
	if a != nil && !said {
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

type place int

const (
	everywhere place = iota
	inLayers
	atEmbedding
	atHead
)

// divide says how servers divide the tensor of this name, and its layer.
func divide(name string) (place, int) {
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

// parameters is how many numbers of the model the tensor holds; width is what
// one takes where several are packed into an integer.
func (t tensor) parameters(width int) int64 {
	if strings.Contains(t.name, ".quant_state.") || slices.ContainsFunc(beside, func(end string) bool { return strings.HasSuffix(t.name, end) }) {
		return 0
	}
	switch t.dtype {
	case "I32", "I64", "U32":
		if width > 0 && strings.Contains(t.name, "weight") {
			return cluster.MulDiv(t.count, bitsOf[t.dtype], int64(width))
		}
		return 0
	case "U8":
		return cluster.MulDiv(t.count, 2, 1) // two of four bits: mxfp4, nf4
	}
	return t.count
}

// divideTotal splits a total as configuration and customs have it: embeddings
// are kept in 16 bits whatever the layers are stored in.
func divideTotal(total cluster.Bytes, c config, a *estimate.Architecture) (estimate.Weights, error) {
	how, err := c.quantised()
	if err != nil {
		return estimate.Weights{}, err
	}
	w := estimate.Weights{Layers: total, Quantised: how.method, Block: how.block}
	if a == nil {
		return w, nil
	}
	one := cluster.Bytes(cluster.MulDiv(int64(a.Vocab), int64(a.Hidden)*2, 1))
	both := one
	if !a.Tied {
		both += one
	}
	if both < total {
		w.Embedding, w.Head, w.Layers = one, both-one, total-both
	}
	return w, nil
}
