package launch

import (
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
)

const (
	rpcPort = "50052"
	// rpcLeader waits for all servers that its first argument lists. Then it runs the other
	// arguments. llama-server would end if a server did not answer, and all pods of the replica
	// would be restarted.
	rpcLeader = "for a in $0; do until (exec 3<>\"/dev/tcp/${a%:*}/${a##*:}\") 2>/dev/null; do sleep 2; done; done; exec \"$@\""
	// allLayers is more layers than any model has.
	allLayers = "999"
)

// llamacpp returns the commands of llama.cpp. Source: common/arg.cpp and tools/rpc of the builds
// b6000 to b10586.
func llamacpp(r *Replica, source string, port int32) (commands, error) {
	o := &r.Object.Spec
	a := arguments{"/app/llama-server"}
	a.file("--hf-repo", "--hf-file", "--model", &o.Source, source)
	a.text("--alias", r.Object.Name)
	a.text("--host", "0.0.0.0")
	a.number("--port", int(port))
	sequences := max(1, o.Sequences)
	a.number("--ctx-size", r.contextOfFile()*sequences)
	a.number("--parallel", sequences)
	a.number("--batch-size", o.BatchTokens)
	a.number("--ubatch-size", o.MicroBatch)
	flash := o.FlashAttention == nil || *o.FlashAttention
	switch {
	case r.is("<b6325"): // a flag without a value
		a.flag("--flash-attn", flash)
	case flash:
		a.text("--flash-attn", "on")
	default:
		a.text("--flash-attn", "off")
	}
	a.flag("--swa-full", o.FullWindowCache)
	if t := map[int]string{8: "q8_0", 4: "q4_0"}[o.KVCacheBits]; t != "" {
		a = append(a, "--cache-type-k", t, "--cache-type-v", t)
	}
	if err := r.addLayers(&a); err != nil {
		return commands{}, err
	}
	adapters, err := r.adapters()
	if err != nil {
		return commands{}, err
	}
	a = append(a, r.loras(adapters)...)
	draft, err := r.draft()
	if err != nil {
		return commands{}, err
	}
	if draft != "" {
		a.file("--hf-repo-draft", "--model-draft", "--model-draft", o.Draft, literal(draft))
	}
	return r.overRPC(a), nil
}

// file adds the flags for a source: a file of a repository, or one in the container.
func (a *arguments) file(repository, file, local string, s *v1alpha1.ModelSource, source string) {
	if s.GGUF == "" && s.LocalPath == "" || s.Repository != "" {
		a.text(repository, source)
		if s.GGUF != "" {
			a.text(file, literal(pathInRepository(s.GGUF)))
		}
		return
	}
	a.text(local, source)
}

// pathInRepository returns the path of a GGUF file in its repository: the path as it is written, or
// the name alone if the path does not begin in the directory of the models.
func pathInRepository(file string) string {
	if !filepath.IsLocal(file) {
		return path.Base(file)
	}
	return path.Clean(file)
}

// contextOfFile returns the tokens of a sequence. llama.cpp divides its context among sequences,
// also the longest one that the model supports, for which the estimate was made.
func (r *Replica) contextOfFile() int {
	if m := r.Spec.Source; r.Context == 0 && m != nil && m.Architecture != nil {
		return m.Architecture.MaxContext
	}
	return r.Context
}

// addLayers adds how many layers are on devices. With cpuOffload, the server itself finds out how
// many fit, as it does since b7410 (--fit).
func (r *Replica) addLayers(a *arguments) error {
	p := &r.Object.Spec.Placement
	switch {
	case p.DeviceLayers != nil:
		a.text("--n-gpu-layers", strconv.Itoa(*p.DeviceLayers))
	case r.Device == "":
		a.text("--n-gpu-layers", "0")
	case !p.CPUOffload:
		a.text("--n-gpu-layers", allLayers)
	case r.is("<b7410"):
		return problem("llamacpp finds out how many layers fit since b7410; name a newer backendVersion, or write how many layers are on devices", "spec", "placement", "deviceLayers")
	}
	return nil
}

// loras returns the flags for adapters. Since b7648 a list is written with commas, and only the last
// of several flags is used.
func (r *Replica) loras(adapters []adapter) []string {
	var out, paths []string
	for _, x := range adapters {
		out = append(out, "--lora", x.path)
		paths = append(paths, x.path)
	}
	if len(paths) > 1 && r.is(">=b7648") {
		return []string{"--lora", strings.Join(paths, ",")}
	}
	return out
}

// overRPC adds the servers on other nodes, and returns their command.
func (r *Replica) overRPC(a arguments) commands {
	if r.pods() == 1 {
		return commands{first: a}
	}
	servers := make([]string, len(r.Workers))
	for i, w := range r.Workers {
		servers[i] = w + ":" + rpcPort
	}
	a.text("--rpc", strings.Join(servers, ","))
	program := "/app/ggml-rpc-server"
	if r.is("<b9824") {
		program = "/app/rpc-server"
	}
	return commands{
		first:  append([]string{"bash", "-c", rpcLeader, strings.Join(servers, " ")}, a...),
		worker: []string{program, "--host", "0.0.0.0", "--port", rpcPort},
	}
}
