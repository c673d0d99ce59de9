package sample

import "fmt"

// Names lists the names that Named accepts.
var Names = []string{"deepseek-v3-q4_k_m", "llama-3.1-8b-q8_0", "llama-3.3-70b-q4_k_m"}

// Named returns the file of a published model.
func Named(name string) (File, error) {
	switch name {
	case "deepseek-v3-q4_k_m":
		return DeepSeekV3(), nil
	case "llama-3.1-8b-q8_0":
		return Llama8B(), nil
	case "llama-3.3-70b-q4_k_m":
		return Llama70B(), nil
	}
	return File{}, fmt.Errorf("no model named %q: there are %q", name, Names)
}
