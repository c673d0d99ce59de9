package launch

import (
	"fmt"
	"strings"

	"github.com/berth-project/berth/internal/estimate/backend"
)

// version returns the version of the backend, as its project writes it.
func (r *Replica) version() string {
	v := strings.ToLower(r.Spec.Version)
	if v == "" {
		return defaultVersions[r.Spec.Backend.Name]
	}
	if r.Spec.Backend.Name == "llamacpp" {
		return "b" + strings.TrimPrefix(v, "b")
	}
	return strings.TrimPrefix(v, "v")
}

// is reports whether the version of the backend is in the range.
func (r *Replica) is(versions string) bool {
	in, err := backend.Within(r.version(), versions)
	return in && err == nil // convert has checked the version
}

// noImage is the error about devices for which Berth cannot choose an image.
func (r *Replica) noImage(why string) error {
	return problem(fmt.Sprintf("Berth chooses no image of %s for devices of the type %s: %s; name one", r.Spec.Backend.Name, r.Device, why), "spec", "server", "image")
}

// vllmImage returns the image that the project publishes. Source: .buildkite/scripts of vLLM
// (publish-release-images.sh, annotate-rocm-release.sh).
func vllmImage(r *Replica, version string) (string, error) {
	switch r.Device {
	case "cuda", "":
		return "vllm/vllm-openai:v" + version, nil
	case "rocm":
		if !r.is(">=0.14") {
			return "", r.noImage("the project publishes one since version 0.14 only; others are at docker.io/rocm/vllm")
		}
		return "vllm/vllm-openai-rocm:v" + version, nil
	case "cann":
		return "", r.noImage("quay.io/ascend/vllm-ascend has one for each generation of devices, with versions of its own")
	}
	return "", r.noImage("the project publishes none")
}

// sglangImage returns the image that the project publishes. Source: .github/workflows of SGLang
// (release-docker.yml, release-docker-amd.yml, release-docker-npu.yml).
func sglangImage(r *Replica, version string) (string, error) {
	switch r.Device {
	case "cuda", "":
		return "lmsysorg/sglang:v" + version, nil
	case "rocm":
		return "", r.noImage(fmt.Sprintf("the project publishes one for each generation of devices, such as lmsysorg/sglang:v%s-rocm720-mi30x", version))
	case "cann":
		return "", r.noImage("the project publishes one for each version of CANN and generation of devices; see the tags with cann of lmsysorg/sglang")
	}
	return "", r.noImage("the project publishes none")
}

// llamacppImages are the images of llama.cpp by the type of devices; "": without devices. Source:
// .github/workflows/docker.yml of llama.cpp.
var llamacppImages = map[string]string{"": "server", "cpu": "server", "cuda": "server-cuda", "rocm": "server-rocm", "musa": "server-musa", "vulkan": "server-vulkan", "oneapi": "server-intel"}

func llamacppImage(r *Replica, version string) (string, error) {
	if len(r.Workers) > 0 {
		return "", problem("a replica on several nodes needs RPC, and the images that llama.cpp publishes are built without it; name an image that is built with -DGGML_RPC=ON, or set placement.distributed to false", "spec", "server", "image")
	}
	image, known := llamacppImages[r.Device]
	if !known {
		return "", r.noImage("the project publishes none")
	}
	return "ghcr.io/ggml-org/llama.cpp:" + image + "-" + version, nil
}
