package gguf

import "slices"

// measuredStates lists the architectures with a state whose buffers follow from their
// widths, as measured with llama.cpp.
var measuredStates = map[string]bool{
	"mamba": true, "mamba2": true, "jamba": true, "granitehybrid": true, "nemotron_h": true, "nemotron_h_moe": true,
	"falcon-h1": true, "plamo2": true, "lfm2": true, "lfm2moe": true,
}

// attentionIntervals is, for architectures that may omit it in their files, after how many
// layers there is a layer with attention. The layers in between keep a state.
var attentionIntervals = map[string]int{"qwen3next": 4, "qwen35": 4, "qwen35moe": 4, "minimax-01": 8}

// state returns how many numbers of 32 bits a recurrent layer keeps of one sequence: the
// functions n_embd_r and n_embd_s of llama.cpp's llama_hparams.
func (k *keys) state(hidden int, heads []int) uint64 {
	conv, inner := k.number("ssm.conv_kernel", maxDim), k.number("ssm.inner_size", maxWidth)
	size, groups := k.number("ssm.state_size", maxDim), k.number("ssm.group_count", maxHeads)
	if head := k.number("wkv.head_size", maxDim); head > 0 {
		shift := k.number("token_shift_count", maxDim)
		if shift == 0 {
			shift = 2
		}
		return uint64((shift + head) * hidden)
	}
	if kept := k.number("shortconv.l_cache", maxDim); kept > 0 {
		return uint64((kept - 1) * hidden)
	}
	if head := k.number("kda.head_dim", maxDim); head > 0 && len(heads) > 0 {
		if conv == 0 {
			conv = 4
		}
		return uint64(3*(conv-1)*heads[0]*head + head*head*heads[0])
	}
	if inner > 0 {
		return uint64(max(conv-1, 0)*(inner+2*groups*size) + size*inner)
	}
	if k.arch == "minimax-01" && len(heads) > 0 {
		head := k.number("attention.key_length", maxDim)
		if head == 0 {
			head = min(hidden/max(1, heads[0]), maxDim)
		}
		return uint64(head * head * heads[0])
	}
	return 0
}

// omitAttention removes the KV heads of the layers that have a state instead, for
// architectures that do not give the heads of each layer.
func (a *architecture) omitAttention(k *keys) {
	if a.state == 0 {
		return
	}
	if recurrent := k.perLayer("attention.recurrent_layers", a.layers, 1); recurrent != nil {
		for i := range a.kvHeads {
			a.kvHeads[i] *= 1 - recurrent[i]
		}
		return
	}
	interval := k.number("full_attention_interval", maxLayers)
	if interval == 0 {
		interval = attentionIntervals[k.arch]
	}
	if interval > 1 {
		for i := range a.kvHeads {
			if (i+1)%interval != 0 {
				a.kvHeads[i] = 0
			}
		}
	}
}

// recurrentLayers returns which layers keep a state: those without attention. In Falcon H1
// all layers have both. In Nemotron H a layer that is an MLP has neither.
func (a *architecture) recurrentLayers(name string, mlps []int) []bool {
	if a.state == 0 {
		return nil
	}
	out := make([]bool, a.layers)
	for i := range out {
		switch {
		case name == "falcon-h1" || a.kvHeads == nil:
			out[i] = true
		case name == "nemotron_h" || name == "nemotron_h_moe":
			out[i] = a.kvHeads[i] == 0 && (mlps == nil || mlps[i] == 0)
		default:
			out[i] = a.kvHeads[i] == 0
		}
	}
	if a.kvHeads != nil && !slices.Contains(a.kvHeads, 0) { // the file does not say which layers have attention
		for i := range out {
			out[i] = true
		}
	}
	return out
}

// widths reads how wide the MLPs and the inputs of a state are.
func (k *keys) widths(dense, experts, active int) perToken {
	w := perToken{dense: dense, experts: experts, active: active}
	if experts > 0 {
		w.expert = k.number("expert_feed_forward_length", maxWidth)
		if w.expert == 0 {
			w.expert = dense
		}
		w.shared = k.number("expert_shared_feed_forward_length", maxWidth)
		if w.shared == 0 {
			w.shared = k.number("expert_shared_count", maxExperts) * w.expert
		}
	} else {
		w.expert = k.number("expert_feed_forward_length", maxWidth)
	}
	inner, size, groups := k.number("ssm.inner_size", maxWidth), k.number("ssm.state_size", maxDim), k.number("ssm.group_count", maxHeads)
	if inner > 0 {
		w.ssmConv = inner + 2*groups*size
		w.ssmIn = inner + w.ssmConv + k.number("ssm.time_step_rank", maxWidth)
	}
	return w
}
