package hf

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/estimate"
)

var (
	// layerName finds the number of a repeated layer in a tensor's name.
	layerName = regexp.MustCompile(`(?:^|\.)(?:layers|h|blocks|block|layer)\.(\d+)\.`)
	// otherTower is what sees or hears; servers keep all of it on each device.
	otherTower = regexp.MustCompile(`(?i)(?:^|[._])(?:vision|visual|audio|image|speech|multi_modal|mm|modality|img)[a-z]*(?:[._]|$)`)
	embedding  = regexp.MustCompile(`(?:^|\.)(?:embed_tokens|wte|word_embeddings|tok_embeddings|embed_in|embedding)\.(?:word_embeddings\.)?[a-z_]+$`)
	head       = regexp.MustCompile(`(?:^|\.)(?:lm_head|embed_out|output_layer)\.[a-z_]+$|^output\.[a-z_]+$`)
	// undivided is what tensor parallelism leaves whole in a layer: norms, routers,
	// and what leads into a latent.
	undivided = regexp.MustCompile(`norm|\.ln_|\.router\.|(?:mlp|ffn|moe|block_sparse_moe)\.gate\.|shared_expert_gate|_a_proj|kv_a_proj_with_mqa|rotary|sinks$`)
	// beside is what quantised weights bring with them: no parameters of the model.
	beside = regexp.MustCompile(`(?:_scale|_scales|scales|scale_inv|_zero_point|qzeros|g_idx|weight_shape|absmax|quant_map|quant_state[a-z_.0-9]*|SCB|weight_format|input_scale)$`)
)

// count adds up the tensors of all files by how they divide.
func count(paths []string, c config, a *estimate.Architecture) (w estimate.Weights, assumed []string, err error) {
	method, width, err := c.quantised()
	if err != nil {
		return w, nil, err
	}
	w.Quantised = method
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
			w.Parameters += t.parameters(width)
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
	if otherTower.MatchString(name) {
		return everywhere, 0
	}
	if m := layerName.FindStringSubmatch(name); m != nil {
		layer, err := strconv.Atoi(m[1])
		if err != nil || undivided.MatchString(name) {
			return everywhere, layer
		}
		return inLayers, layer
	}
	switch {
	case head.MatchString(name):
		return atHead, 0
	case embedding.MatchString(name):
		return atEmbedding, 0
	}
	return everywhere, 0
}

// parameters is how many numbers of the model the tensor holds; width is what
// one takes where several are packed into an integer.
func (t tensor) parameters(width int) int64 {
	if beside.MatchString(t.name) {
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
	method, _, err := c.quantised()
	if err != nil {
		return estimate.Weights{}, err
	}
	w := estimate.Weights{Layers: total, Quantised: method}
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
