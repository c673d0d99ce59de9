package launch

// sglangPort is the port at which the pods of a replica find each other.
const sglangPort = "5000"

// sglang returns the commands of SGLang. Source: python/sglang/srt/server_args.py of the releases
// 0.4.6 to 0.5.18.
func sglang(r *Replica, source string, port int32) (commands, error) {
	if err := r.checkSGLang(); err != nil {
		return commands{}, err
	}
	o := &r.Object.Spec
	a := arguments{"python3", "-m", "sglang.launch_server", "--model-path", source, "--served-model-name", r.Object.Name, "--host", "0.0.0.0"}
	a.number("--port", int(port))
	independent := r.addSGLangParallelism(&a)
	a.number("--context-length", r.Context)
	a.number("--chunked-prefill-size", o.BatchTokens)
	a.number("--max-running-requests", o.MaxSequences)
	a.text("--mem-fraction-static", share(r.Spec.Utilization))
	a.text("--kv-cache-dtype", cacheType(o.KVCacheBits, "fp8_e4m3"))
	a.text("--dtype", o.DType)
	a.text("--quantization", o.Quantization)
	if o.Quantization == "bitsandbytes" {
		a.text("--load-format", "bitsandbytes")
	}
	a.flag("--disable-cuda-graph", o.Eager)
	adapters, err := r.adapters()
	if err != nil {
		return commands{}, err
	}
	if len(adapters) > 0 {
		a.number("--max-loras-per-batch", len(adapters))
		a = append(append(a, "--lora-paths"), pairs(adapters)...)
	}
	draft, err := r.draft()
	if err != nil {
		return commands{}, err
	}
	if draft != "" {
		a = append(a, "--speculative-algorithm", "STANDALONE", "--speculative-draft-model-path", literal(draft))
	}
	if r.pods() > 1 && !independent {
		a.number("--nnodes", r.pods())
		a.text("--node-rank", variable(VarNodeRank))
		host := VarLeader
		if r.sharesExperts() {
			host = VarPodIP // the leader binds sockets to it, for which ZeroMQ wants an address
		}
		worker := a.with("--dist-init-addr", variable(VarLeader)+":"+sglangPort)
		a.text("--dist-init-addr", variable(host)+":"+sglangPort)
		return commands{a, worker, independent, true}, nil
	}
	return commands{a, a.with(), independent, true}, nil
}

// sharesExperts reports whether data-parallel ranks share the experts.
func (r *Replica) sharesExperts() bool { return r.Spec.Serving.Expert && r.ranks() > 1 }

// addSGLangParallelism adds how the model is divided. It reports true if every pod is a server of
// its own: SGLang has no data-parallel ranks in several pods that share no layers.
//
// With expert parallelism, the ranks share the experts (attention is data-parallel). --tp-size is
// then the number of devices of all ranks.
func (r *Replica) addSGLangParallelism(a *arguments) (independent bool) {
	tensor, data := max(1, r.Form.Tensor), r.ranks()
	shared := r.sharesExperts()
	if shared {
		tensor *= data
	}
	a.several("--tp-size", tensor)
	a.several("--pp-size", r.Form.Pipeline)
	independent = r.pods() > 1 && data > 1 && !shared
	if !independent {
		a.several("--dp-size", data)
	}
	a.flag("--enable-dp-attention", shared)
	if r.Spec.Serving.Expert && r.is("<0.5.1") {
		a.flag("--enable-ep-moe", true)
	} else if r.Spec.Serving.Expert {
		a.several("--ep-size", tensor)
	}
	return independent
}

// checkSGLang returns what this version of SGLang cannot do.
func (r *Replica) checkSGLang() error {
	o, stages := &r.Object.Spec, r.Form.Pipeline > 1
	shared := r.sharesExperts()
	switch {
	case o.Quantization == "int8":
		return r.noInt8()
	case o.Quantization == "bitsandbytes" && r.server().Image == "":
		return problem("the images of sglang do not contain bitsandbytes; name an image that does", "spec", "server", "image")
	case o.Draft != nil && r.is("<0.5.2"):
		return problem("sglang has drafts since version 0.5.2; name a newer backendVersion, or leave the draft out", "spec", "draft")
	case o.Draft != nil && (stages || shared):
		return problem("sglang has no drafts for a model with pipeline stages, or with data-parallel ranks that share experts; leave the draft out, or set parallelism", "spec", "draft")
	case shared && stages:
		return problem("sglang does not combine pipeline stages with data-parallel ranks that share experts; leave one out", "spec", "parallelism", "pipeline")
	}
	return nil
}
