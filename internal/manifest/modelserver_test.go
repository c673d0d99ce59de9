package manifest

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// small is the config.json of a small model.
const small = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 2048, "intermediate_size": 8192, "vocab_size": 128256, "max_position_embeddings": 131072, "tie_word_embeddings": true}`

// A model may be described by the text of its config.json.
func TestModelConfig(t *testing.T) {
	source := func(fields string) string { return aModel("{source: {" + fields + "}}") }
	config := "config: '" + small + "'"
	tests := map[string]struct{ text, want string }{
		"config":             {source(config + ", weights: 2471Mi"), ""},
		"with a repository":  {source(config + ", weights: 2471Mi, repository: meta-llama/Llama-3.2-1B"), ""},
		"over several lines": {aModel("\n  source:\n    weights: 2471Mi\n    config: |\n      " + strings.ReplaceAll(small, ", ", ",\n      \t") + "\n"), ""},
		"no weights":         {source(config), "spec.source.config: the size of the weights is not part of a config.json; write how large all safetensors files are together beside it, such as weights: 16Gi"},
		"weights of 0":       {source("weights: 0, " + config), "spec.source.weights: want how large all safetensors files are together, such as 16Gi, have 0"},
		"too much":           {source("weights: 9Ti, " + config), "spec.source.weights: 9Ti is too large for a model: the most is 8Ti"},
		"weights alone":      {source("preset: phi-4, weights: 2471Mi"), "spec.source.weights: weights is the size of the model that config describes; write config beside it, or leave it out"},
		"two sources":        {source("preset: phi-4, weights: 1Gi, config: '{}'"), "spec.source.config: preset already says where the model comes from; keep one"},
		"a path":             {source("localPath: /m, weights: 1Gi, config: '{}'"), "spec.source.config: localPath already says where the model comes from; keep one"},
		"no JSON":            {source("weights: 1Gi, config: 'hidden_size: 1'"), "spec.source.config: it is not JSON: invalid character 'h' looking for beginning of value"},
		"spaces":             {source("weights: 1Gi, config: '  '"), "spec.source.config: it is not JSON: unexpected end of JSON input"},
		"a number":           {source("weights: 1Gi, config: 1"), `spec.source.config: want text, have the number 1; put it in quotes: "1"`},
		"an object":          {source("weights: 1Gi, config: {}"), "spec.source.config: want text, have an object"},
		"with known memory":  {aModel("{memory: {device: 8Gi}, source: {weights: 1Gi, config: '['}}"), "spec.source.config: it is not JSON: unexpected end of JSON input"},
		"deep":               {source("weights: 1Gi, config: '" + strings.Repeat("[", 20_000) + "'"), "spec.source.config: it is not JSON: invalid character '[' exceeded max depth"},
		"long":               {source("weights: 1Gi, config: '{}" + strings.Repeat(" ", 512<<10) + "'"), "spec.source.config: the text has 524290 bytes; 524288 are the most"},
		"hidden characters":  {source(`weights: 1Gi, config: "{}\u202e"`), `spec.source.config: "{}\u202e" has characters that cannot be printed; leave them out`},
		"heads":              {aModel("{source: {weights: 1Gi, repository: a/b, " + config + "}, parallelism: {tensor: 3}}"), "spec.parallelism.tensor: 3 devices (tp 3): the 32 attention heads of model a/b do not divide over 3 devices"},
		"format":             {aModel("{backend: llamacpp, source: {weights: 1Gi, repository: a/b, " + config + "}}"), "spec.source.config: llamacpp serves GGUF files, and a/b is not one of these; name another backend, or say how much memory it needs under memory"},
		"a draft":            {aModel("{source: {preset: llama-3.1-8b}, draft: {weights: 2471Mi, " + config + "}}"), ""},
		"a wrong draft":      {aModel("{source: {preset: llama-3.1-8b}, draft: {weights: 2471Mi, config: '{'}}"), "spec.draft.config: it is not JSON: unexpected end of JSON input"},
		"a flag as a name":   {source("preset: phi-4, repository: --trust-remote-code"), `spec.source.repository: "--trust-remote-code" is not the name of a repository: write owner/name, such as Qwen/Qwen3-8B`},
		"three parts":        {source("preset: phi-4, repository: a/b/c"), `spec.source.repository: "a/b/c" is not the name of a repository: write owner/name, such as Qwen/Qwen3-8B`},
		"one part":           {source("preset: phi-4, repository: gpt2"), ""},
	}
	checkProblems(t, tests)
}

// How the server is started is checked, although no decision depends on it.
func TestModelServer(t *testing.T) {
	server := func(fields string) string { return aModel("{source: {preset: phi-4}, server: {" + fields + "}}") }
	tests := map[string]struct{ text, want string }{
		"all fields": {server("image: a/b:1, command: [sh, -c, \"vllm serve\\nsleep 1\"], args: [--x], port: 8000, distribution: Ray, " +
			"cache: {claim: models, mountPath: /models}, tokenSecret: {name: hub, key: TOKEN}, imagePullSecrets: [a, b]"), ""},
		"none":              {server(""), ""},
		"image":             {server("image: a b"), `spec.server.image: "a b" is not an image: write one such as vllm/vllm-openai:v0.11.2`},
		"port":              {server("port: 65536"), `spec.server.port: want from 1 to 65535, have 65536`},
		"negative port":     {server("port: -1"), `spec.server.port: want from 1 to 65535, have -1`},
		"distribution":      {server("distribution: ray"), `spec.server.distribution: unknown value "ray"; did you mean Ray?`},
		"of another":        {aModel("{source: {preset: phi-4}, backend: sglang, server: {distribution: Ray}}"), `spec.server.distribution: sglang does not have this setting, only vllm has; leave it out`},
		"two caches":        {server("cache: {claim: a, hostPath: /b}"), `spec.server.cache: say either claim, the name of a PersistentVolumeClaim, or hostPath, a directory of the nodes`},
		"no cache":          {server("cache: {mountPath: /b}"), `spec.server.cache: say either claim, the name of a PersistentVolumeClaim, or hostPath, a directory of the nodes`},
		"claim":             {server("cache: {claim: My_Claim}"), `spec.server.cache.claim: "My_Claim" is not a valid name: use lower-case letters, digits, - and ., and begin and end with a letter or digit`},
		"path of the node":  {server("cache: {hostPath: models}"), `spec.server.cache.hostPath: "models" is not an absolute path: write one such as /var/lib/models`},
		"path in the pod":   {server("cache: {hostPath: /a, mountPath: ./b}"), `spec.server.cache.mountPath: "./b" is not an absolute path: write one such as /var/lib/models`},
		"path with a colon": {server("cache: {hostPath: '/a:b'}"), `spec.server.cache.hostPath: "/a:b" has a colon, which a path of a volume must not have`},
		"path upwards":      {server("cache: {hostPath: /a/..}"), `spec.server.cache.hostPath: "/a/.." has a step upwards (..), which a path of a volume must not have`},
		"two dots":          {server("cache: {hostPath: /a..b/..c}"), ``},
		"no secret":         {server("tokenSecret: {key: a}"), `spec.server.tokenSecret.name: a secret needs a name`},
		"secret":            {server("tokenSecret: {name: A}"), `spec.server.tokenSecret.name: "A" is not a valid name: use lower-case letters, digits, - and ., and begin and end with a letter or digit`},
		"key":               {server("tokenSecret: {name: a, key: b/c}"), `spec.server.tokenSecret.key: "b/c" is not a key of a secret: use letters, digits, -, _ and .`},
		"pull secrets":      {server("imagePullSecrets: [a, a, '', B]"), "spec.server.imagePullSecrets[1]: secret \"a\" is already entry 0\nspec.server.imagePullSecrets[2]: a secret is missing\nspec.server.imagePullSecrets[3]: \"B\" is not a valid name: use lower-case letters, digits, - and ., and begin and end with a letter or digit"},
		"hidden characters": {server(`args: ["a\u001bb"]`), `spec.server.args[0]: "a\x1bb" has characters that cannot be printed; leave them out`},
	}
	checkProblems(t, tests)
}

// A template is a PodTemplateSpec.
func TestModelTemplate(t *testing.T) {
	template := func(value string) string { return aModel("{source: {preset: phi-4}, template: " + value + "}") }
	container := func(fields string) string {
		return template("{spec: {containers: [{name: server, " + fields + "}]}}")
	}
	tests := map[string]struct{ text, want string }{
		"empty":           {template("{}"), ""},
		"null":            {template("null"), ""},
		"usual":           {template("{metadata: {labels: {a: b}}, spec: {containers: [{name: server, env: [{name: A, value: \"1\\n2\"}], resources: {limits: {cpu: 4, memory: 1.5Gi}}}], terminationGracePeriodSeconds: 5, volumes: [{name: v, emptyDir: {sizeLimit: 1Gi}}]}}"), ""},
		"probe":           {container("livenessProbe: {httpGet: {port: http}, periodSeconds: 5}"), ""},
		"text":            {template("x"), `spec.template: want an object, have "x"`},
		"list":            {template("[]"), "spec.template: want an object, have a list"},
		"unknown":         {container("imagee: x"), `spec.template: spec.containers[0]: unknown field "imagee"; did you mean "image"?`},
		"another place":   {template("{containers: []}"), `spec.template: unknown field "containers"; it belongs under spec`},
		"wrong type":      {template("{spec: {containers: {}}}"), "spec.template: spec.containers: want a list, have an object"},
		"quantity":        {container("resources: {limits: {cpu: 1e999999999}}"), "spec.template: spec.containers[0].resources.limits.cpu: 1e999999999 is out of range"},
		"scheduler":       {template("{spec: {schedulerName: default-scheduler}}"), "spec.template: spec.schedulerName: Berth sets it, to the name of its scheduler; leave it out, and write schedulerName of the model to choose a profile"},
		"node":            {template("{spec: {nodeName: gpu-1}}"), "spec.template: spec.nodeName: the scheduler chooses the node; leave it out, and restrict the nodes with placement.nodeSelector"},
		"directive":       {template(`{spec: {$patch: replace}}`), `spec.template: spec: unknown field "$patch"`},
		"several":         {template("{spec: {a: 1, b: 2}}"), "spec.template: spec: unknown field \"a\"\nspec.template: spec: unknown field \"b\""},
		"duplicate field": {template("{spec: {}, spec: {}}"), `spec.template: cannot read an object: duplicate key "spec", first written in line 4`},
	}
	checkProblems(t, tests)
}

var position = regexp.MustCompile(`(?m)^[0-9]+:[0-9]+: `)

// checkProblems compares the problems of manifests, without positions, with those wanted. A
// manifest without a problem in YAML has none in JSON.
func checkProblems(t *testing.T, tests map[string]struct{ text, want string }) {
	t.Helper()
	for name, tc := range tests {
		if diff := cmp.Diff(tc.want, position.ReplaceAllString(problems(tc.text), "")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if tc.want != "" {
			continue
		}
		text, err := yaml.YAMLToJSON([]byte(tc.text))
		if err != nil || !json.Valid(text) {
			t.Fatal(err)
		}
		if got := problems(string(text)); got != "" {
			t.Errorf("%s: as JSON: %s", name, got)
		}
	}
}
