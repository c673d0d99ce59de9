package launch

import (
	"encoding/json"

	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
)

const (
	rayPort = "6379"
	// rayLeader starts Ray and waits until all pods have joined. Then it runs its arguments.
	rayLeader = "ray start --head --port=" + rayPort + " && " +
		"until python3 -c 'import ray, sys; ray.init(address=\"auto\"); sys.exit(sum(n[\"Alive\"] for n in ray.nodes()) < int(sys.argv[1]))' \"$" + VarNodes + "\"; do sleep 5; done && " +
		"exec \"$@\""
	// rayWorker waits for the leader and joins it. The container would be restarted if it did not
	// wait, and with it all pods of the replica.
	rayWorker = "until python3 -c 'import socket, sys; socket.create_connection((sys.argv[1], " + rayPort + "), 5)' \"$" + VarLeader + "\"; do sleep 5; done; " +
		"exec ray start --address=\"$" + VarLeader + ":" + rayPort + "\" --block"
	// speculativeTokens is how many tokens a draft proposes at once.
	speculativeTokens = 5
)

// vllm returns the commands of vLLM. Source: vllm/engine/arg_utils.py and vllm/config of the releases
// 0.8.0 to 0.27.1.
func vllm(r *Replica, source string, port int32) (commands, error) {
	if err := r.checkVLLM(); err != nil {
		return commands{}, err
	}
	o, f := &r.Object.Spec, r.Form
	a := arguments{"vllm", "serve", source, "--served-model-name", r.Object.Name, "--host", "0.0.0.0"}
	a.number("--port", int(port))
	a.several("--tensor-parallel-size", f.Tensor)
	a.several("--pipeline-parallel-size", f.Pipeline)
	a.several("--data-parallel-size", r.ranks())
	a.flag("--enable-expert-parallel", r.Spec.Serving.Expert)
	a.number("--max-model-len", r.Context)
	a.number("--max-num-batched-tokens", o.BatchTokens)
	a.number("--max-num-seqs", o.MaxSequences)
	a.text("--gpu-memory-utilization", r.utilization())
	a.text("--kv-cache-dtype", cacheType(o.KVCacheBits, "fp8"))
	a.text("--dtype", o.DType)
	a.text("--quantization", o.Quantization)
	a.flag("--enforce-eager", o.Eager)
	adapters, err := r.adapters()
	if err != nil {
		return commands{}, err
	}
	if len(adapters) > 0 {
		a.flag("--enable-lora", true)
		a.number("--max-loras", len(adapters))
		a = append(append(a, "--lora-modules"), pairs(adapters)...)
	}
	draft, err := r.draft()
	if err != nil {
		return commands{}, err
	}
	if draft != "" {
		text, err := json.Marshal(map[string]any{"method": "draft_model", "model": draft, "num_speculative_tokens": speculativeTokens})
		if err != nil {
			return commands{}, problem(err.Error(), "spec", "draft")
		}
		a.text("--speculative-config", literal(string(text)))
	}
	return r.overPods(a)
}

// utilization returns the share of each device that the server claims. It is always written,
// because the estimate was made for it and the default depends on the version.
func (r *Replica) utilization() string {
	if r.Spec.Utilization > 0 {
		return share(r.Spec.Utilization)
	}
	b, err := r.Spec.Backend.At(r.Spec.Version)
	if err != nil {
		return "" // convert has checked the version
	}
	m := r.Spec.Source
	if m == nil {
		m = &estimate.Model{}
	}
	return share(b.Fraction(m, r.Spec.Serving, backend.Accelerator{}))
}

// checkVLLM returns what this version of vLLM cannot do.
func (r *Replica) checkVLLM() error {
	o := &r.Object.Spec
	switch {
	case o.Quantization == "int8":
		return r.noInt8()
	case isGGUF(&o.Source) && r.is(">=0.24"):
		return problem("vllm reads no GGUF files since version 0.24; name an older backendVersion, or the backend llamacpp", "spec", "source")
	case o.Source.GGUF != "" && o.Source.Repository != "":
		return problem("vllm reads a GGUF file from a volume only; name the volume under server.cache, and leave the repository out", "spec", "source", "repository")
	case r.Parts && r.utilization() == "":
		return problem("vllm checks at its start that a share of the device is free, and the replica holds a part of a device; write the share", "spec", "gpuMemoryUtilization")
	case o.Draft != nil && r.is("<0.15"):
		return problem("vllm has drafts since version 0.15; name a newer backendVersion, or leave the draft out", "spec", "draft")
	}
	return nil
}

// overPods adds the arguments with which the pods of a replica find each other. The first pod is
// given its own IP address, because it binds ZeroMQ sockets to the address, and ZeroMQ resolves no
// names for that. The other pods are given the name of the first: they only connect to it.
func (r *Replica) overPods(a arguments) (commands, error) {
	wanted := r.server().Distribution
	at := []any{"spec", "server", "distribution"}
	native := r.is(">=0.11.1") && !r.Uneven
	switch {
	case r.pods() == 1:
		return commands{first: a}, nil
	case r.ranks() > 1 && wanted == Ray:
		return commands{}, problem("data-parallel ranks in several pods are started without Ray; leave distribution out", at...)
	case r.ranks() > 1 && r.is("<0.9"):
		return commands{}, problem("vllm has data-parallel ranks on several nodes since version 0.9; name a newer one", "spec", "backendVersion")
	case r.ranks() > 1:
		a.number("--data-parallel-size-local", 1)
		const address = "--data-parallel-address"
		return commands{
			first:      a.with(address, variable(VarPodIP)),
			worker:     a.with(address, variable(VarLeader), "--data-parallel-start-rank", variable(VarNodeRank), "--headless"),
			workerArgs: true,
		}, nil
	case wanted == Native && r.Uneven:
		return commands{}, problem("vllm needs Ray for different numbers of devices on the nodes; write Ray, or fix the number of devices with placement.devicesPerReplica", at...)
	case wanted == Native && !native:
		return commands{}, problem("vllm has its own flags for several nodes since version 0.11.1; write Ray, or name a newer backendVersion", at...)
	case wanted == Ray || !native:
		return r.withRay(a)
	}
	a.number("--nnodes", r.pods())
	a.text("--node-rank", variable(VarNodeRank))
	const address = "--master-addr"
	return commands{first: a.with(address, variable(VarPodIP)), worker: a.with(address, variable(VarLeader), "--headless"), workerArgs: true}, nil
}

// withRay returns the commands with which Ray divides the server over pods. The images have had no
// Ray since version 0.18 (requirements/cuda.txt).
func (r *Replica) withRay(a arguments) (commands, error) {
	if r.server().Image == "" && r.is(">=0.18") {
		return commands{}, problem("the replica needs Ray, which the images of vllm do not contain since version 0.18; name an image with vllm and Ray, or an older backendVersion", "spec", "server", "image")
	}
	a.text("--distributed-executor-backend", "ray")
	return commands{append([]string{"sh", "-c", rayLeader, "sh"}, a...), []string{"sh", "-c", rayWorker}, false, false}, nil
}
