package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func aModel(spec string) string { return object("Model", "chat", "spec: "+spec) }

const gpu = "\n---\napiVersion: berth.dev/v1alpha1\nkind: Node\nmetadata: {name: gpu}\nspec: {resources: {cpu: 64, memory: 512Gi}, devices: {product: A10, count: 2, memory: 24Gi}}"

func TestModelErrors(t *testing.T) {
	memory := func(rest string) string { return aModel("{memory: {device: 1Gi}, "+rest+"}") + gpu }
	place := func(rest string) string { return memory("placement: {" + rest + "}") }
	tests := map[string]struct{ text, want string }{
		"backend":                {memory("backend: vlm"), `4:40: spec.backend: no backend is called "vlm"; did you mean "vllm"?`},
		"version":                {memory("backendVersion: new"), `4:47: spec.backendVersion: vllm: "new" is not a version; write it as in 0.8.5, 2.1.rc2 or 0.5.1.post3`},
		"replicas":               {memory("replicas: -1"), `4:41: spec.replicas: want from 0 to 10000, have -1`},
		"too many replicas":      {memory("replicas: 10001"), `4:41: spec.replicas: want from 0 to 10000, have 10001`},
		"context":                {memory("context: -5"), `4:40: spec.context: want from 1 to 100000000, have -5`},
		"a long context":         {memory("context: 100000001"), `4:40: spec.context: want from 1 to 100000000, have 100000001`},
		"sequences":              {memory("sequences: 1000001"), `4:42: spec.sequences: want from 1 to 1000000, have 1000001`},
		"batch":                  {memory("batchTokens: -1"), `4:44: spec.batchTokens: want from 1 to 100000000, have -1`},
		"bits":                   {memory("kvCacheBits: 5"), `4:44: spec.kvCacheBits: want 16, 8 or 4, have 5`},
		"tensor":                 {memory("parallelism: {tensor: 4097}"), `4:53: spec.parallelism.tensor: want from 1 to 4096, have 4097`},
		"pipeline":               {memory("parallelism: {pipeline: -1}"), `4:55: spec.parallelism.pipeline: want from 1 to 4096, have -1`},
		"both":                   {memory("parallelism: {tensor: 4096, pipeline: 4096}"), `4:44: spec.parallelism: 4096 × 4096 are 16777216 devices; the most is 4096`},
		"share":                  {memory("gpuMemoryUtilization: 1.5"), `4:53: spec.gpuMemoryUtilization: want a share above 0 and at most 1, such as 0.5, have 1500m`},
		"no share":               {memory("backend: custom, gpuMemoryUtilization: 0.5"), `4:70: spec.gpuMemoryUtilization: custom claims the memory that it needs, not a part of each device; leave it out`},
		"memory of 0":            {aModel("{memory: {total: 0}}"), `4:24: spec.memory.total: want more than 0, have 0; leave it out to have it estimated`},
		"negative memory":        {aModel("{memory: {host: -1Gi, device: 1Gi}}"), `4:23: spec.memory.host: want more than 0, have -1Gi; leave it out to have it estimated`},
		"too much memory":        {aModel("{memory: {total: 1Ei}}"), `4:24: spec.memory.total: 1Ei is too large for a model: the most is 8Ti`},
		"memory twice":           {aModel("{memory: {device: 1Gi, total: 2Gi}}"), `4:37: spec.memory.total: device is of each device, total of all together; keep one`},
		"memory is no amount":    {aModel("{memory: {device: lots}}"), `4:25: spec.memory.device: want a quantity such as 8, 500m, 80Gi or 1.5Ti, have "lots"`},
		"share of all":           {memory("backend: sglang, gpuMemoryUtilization: 1"), `4:70: spec.gpuMemoryUtilization: the share of sglang is for weights and cache alone, and must leave room for the rest; want less than 1, such as 0.88`},
		"bits it has not":        {memory("kvCacheBits: 4"), `4:44: spec.kvCacheBits: the cache of vllm has 16 or 8 bits, not 4`},
		"bits it has":            {memory("backend: llamacpp, kvCacheBits: 4"), ``},
		"stages and devices":     {memory("parallelism: {pipeline: 2}, placement: {devicesPerReplica: 4}"), `4:90: spec.placement.devicesPerReplica: parallelism 1 × 2 is 2 devices, not 4; leave one out`},
		"size of whole nodes":    {memory("parallelism: {tensor: 2}, placement: {unit: Node}"), `4:44: spec.parallelism: with unit: Node a replica takes all devices of its nodes, and its parallelism follows from them; leave it out`},
		"unknown draft":          {memory("draft: {preset: phi-four}"), `4:38: spec.draft: no preset is called "phi-four"`},
		"unknown preset, a typo": {memory("source: {preset: phi-for}"), `4:39: spec.source: no preset is called "phi-for"; did you mean "phi-4"?`},
		"no GGUF":                {aModel("{backend: llamacpp, source: {preset: phi-4}}"), `4:35: spec.source: llamacpp serves GGUF files, and phi-4 is not one of these; name another backend, or say how much memory it needs under memory`},
		"no speech":              {aModel("{backend: voxbox, source: {preset: phi-4}}"), `4:33: spec.source: voxbox serves its own speech models, and phi-4 is not one of these; name another backend, or say how much memory it needs under memory`},
		"speech":                 {aModel("{source: {preset: whisper-small}}"), ``},
		"speech elsewhere":       {aModel("{backend: vllm, source: {preset: whisper-small}}"), `4:31: spec.source: vllm serves safetensors, presets or GGUF files, and whisper-small is not one of these; name another backend, or say how much memory it needs under memory`},
		"no source":              {aModel("{}"), `4:7: spec.source: say where the model comes from: preset, gguf, huggingFace, localPath or config; or say how much memory it needs under memory`},
		"two sources":            {aModel("{source: {preset: phi-4, gguf: a.gguf}}"), `4:38: spec.source.ggu preset already says where the model comes from; keep one`},
		"unknown preset":         {aModel("{source: {preset: phi-4-mni}}"), `4:16: spec.source: no preset is called "phi-4-mni"; did you mean "phi-4-mini"?`},
		"a preset is no path":    {aModel("{source: {preset: ./model.gguf}}"), `4:16: spec.source: no preset is called "./model.gguf"`},
		"missing file":           {aModel("{source: {gguf: no/such.gguf}}"), `4:16: spec.source: ./no/such.gguf does not exist`},
		"missing directory":      {aModel("{source: {huggingFace: no/such}}"), `4:16: spec.source: ./no/such does not exist; huggingFace is the path of a directory that was downloaded`},
		"no directory, a preset": {aModel("{source: {huggingFace: meta-llama/Llama-3.1-8B-Instruct}}"), `4:16: spec.source: ./meta-llama/Llama-3.1-8B-Instruct does not exist; huggingFace is the path of a directory that was downloaded; without one, preset: llama-3.1-8b is this model`},
		"missing on the nodes":   {aModel("{source: {localPath: /no/such}}"), `4:16: spec.source: /no/such does not exist; if it is on the nodes only, say how much memory it needs under memory`},
		"draft without source":   {aModel("{source: {preset: phi-4}, draft: {}}"), `4:40: spec.draft: say where the model comes from: preset, gguf, huggingFace, localPath or config; or say how much memory it needs under memory`},
		"missing draft":          {aModel("{source: {preset: phi-4}, draft: {preset: ph}}"), `4:40: spec.draft: no preset is called "ph"`},
		"adapters": {memory("adapters: [{memory: 1Gi}, {name: a}, {name: b, memory: 1Gi, path: x}, {name: b, memory: -1}]"), `4:42: spec.adapters[0].name: an adapter needs a name
4:57: spec.adapters[1]: say either memory, or path, which is read
4:68: spec.adapters[2]: say either memory, or path, which is read
4:108: spec.adapters[3].name: adapter "b" is already adapters[2]
4:119: spec.adapters[3].memory: -1 is negative`},
		"missing adapter":      {memory("adapters: [{name: a, path: no/such}]"), `4:42: spec.adapters[0]: stat no/such/adapter_config.json: no such file or directory; the directory of an adapter must have an adapter_config.json`},
		"devices as resources": {memory("resources: {nvidia.com/gpu: 2}"), `4:59: spec.resources["nvidia.com/gpu"]: devices are counted by the model's own needs; for a fixed number write placement: {devicesPerReplica: 2}`},
		"queue":                {memory("queue: nope"), `4:38: spec.queue: there is no queue "nope"; declare it (kind: Queue, name: nope) or use default`},
		"strategy":             {place("strategy: binpack"), `4:53: spec.placement.strategy: unknown value "binpack"; did you mean Binpack?`},
		"unit":                 {place("unit: Nodes"), `4:49: spec.placement.unit: unknown value "Nodes"; did you mean Node?`},
		"cells":                {place("cells: [a, a]"), `4:54: spec.placement.cells[1]: cell "a" is already entry 0`},
		"selector":             {place("nodeSelector: {a b: c}"), `4:63: spec.placement.nodeSelector["a b"]: "a b" is not a valid label key: write name or domain/name`},
		"devices per replica":  {place("devicesPerReplica: 5000"), `4:62: spec.placement.devicesPerReplica: want from 1 to 4096, have 5000`},
		"other parallelism":    {memory("parallelism: {tensor: 2}, placement: {devicesPerReplica: 3}"), `4:88: spec.placement.devicesPerReplica: parallelism 2 × 1 is 2 devices, not 3; leave one out`},
		"type without unit":    {place("instanceType: g5.xlarge"), `4:57: spec.placement.instanceType: an instance type needs unit: Node beside it`},
		"type twice":           {place("unit: Node, instanceType: g5.xlarge, nodeSelector: {node.kubernetes.io/instance-type: g6.xlarge}"), `4:69: spec.placement.instanceType: nodeSelector already asks for the instance type "g6.xlarge"; keep one`},
		"unknown type":         {place("unit: Node, instanceType: g5.xlrge"), `4:69: spec.placement.instanceType: no instance type is called "g5.xlrge"; did you mean "g5.xlarge"?`},
		"type as a label":      {place("unit: Node, instanceType: 'a b'"), `4:69: spec.placement.instanceType: "a b" is not a valid label value: use at most 63 letters, digits, -, _ and ., and begin and end with a letter or digit`},
		"device ids": {place("devices: ['a:b', 'a:cuda:x', 'a:cuda:-1', ':cuda:0', 'a::0', 'a:cuda:99999', 'gpu:cuda:0', 'gpu:cuda:0']"), `4:53: spec.placement.devices[0]: "a:b" is not a device: write node:type:index, such as gpu-1:cuda:0
4:60: spec.placement.devices[1]: "a:cuda:x" is not a device: write node:type:index, such as gpu-1:cuda:0
4:72: spec.placement.devices[2]: "a:cuda:-1" is not a device: write node:type:index, such as gpu-1:cuda:0
4:85: spec.placement.devices[3]: ":cuda:0" is not a device: write node:type:index, such as gpu-1:cuda:0
4:96: spec.placement.devices[4]: "a::0" is not a device: write node:type:index, such as gpu-1:cuda:0
4:104: spec.placement.devices[5]: "a:cuda:99999" is not a device: write node:type:index, such as gpu-1:cuda:0
4:134: spec.placement.devices[7]: device "gpu:cuda:0" is already entry 6`},
		"too few selected":  {place("devices: ['gpu:cuda:0'], devicesPerReplica: 2"), `4:52: spec.placement.devices: 1 devices are selected, and each replica takes 2`},
		"unknown field":     {memory("placment: {}"), `4:31: spec: unknown field "placment"; did you mean "placement"?`},
		"heads":             {aModel("{source: {preset: phi-4}, parallelism: {tensor: 3}}") + gpu, `4:55: spec.parallelism.tensor: 3 devices (tp 3): the 40 attention heads of model phi-4 do not divide over 3 devices`},
		"two of a name":     {memory("") + "\n---\n" + aModel("{memory: {device: 1Gi}}"), `13:18: metadata.name: model/chat is already declared at 1; rename or remove one`},
		"name of a replica": {memory("") + "\n---\n" + object("Model", "chat-0", "spec: {memory: {device: 1Gi}}"), ``},
		"too many forms":    {memory("replicas: 10000, backend: custom, placement: {cells: [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, bb, cc, dd, ee, ff, gg, hh, ii, jj, kk, ll, mm, nn, oo, pp, qq, rr, ss, tt, uu, vv, ww, xx, yy, zz]}"), `4:41: spec.replicas: 10000 replicas in 2 forms make 1,040,000 tasks, and at most 1,000,000 are allowed; set fewer replicas, or fix the parallelism`},
	}
	for name, tc := range tests {
		if diff := cmp.Diff(tc.want, problems(tc.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestModelStatusErrors(t *testing.T) {
	status := func(text string) string {
		return object("Model", "chat", "spec: {memory: {device: 1Gi}, placement: {unit: Node}}\nstatus: "+text) + gpu
	}
	tests := map[string]struct{ text, want string }{
		"group": {status("{group: {product: A10, count: 0, memory: -1, nodesPerReplica: 0}}"), `5:39: status.group.count: want from 1 to 1024, have 0
5:50: status.group.memory: say the memory of each device, such as 80Gi
5:71: status.group.nodesPerReplica: want from 1 to 64, have 0`},
		"group and sharing": {status("{group: {product: A10, count: 1, memory: 1Gi, nodesPerReplica: 1, sharing: {strategy: slices}}}"), `5:95: status.group.sharing.strategy: unknown value "slices"; write time-slicing or mps`},
		"many nodes":        {status("{group: {product: A10, count: 1, memory: 1Gi, nodesPerReplica: 10000}}"), `5:72: status.group.nodesPerReplica: want from 1 to 64, have 10000`},
		"group, of devices": {object("Model", "chat", "spec: {memory: {device: 1Gi}}\nstatus: {group: {product: A10, count: 1, memory: 1Gi, nodesPerReplica: 1}}"), ``},
		"number": {status("{replicas: [{replica: -1}, {replica: 10001}]}"), `5:31: status.replicas[0].replica: want from 0 to 10000, have -1
5:46: status.replicas[1].replica: want from 0 to 10000, have 10001`},
		"twice":            {status("{replicas: [{replica: 1}, {replica: 1}]}"), `5:45: status.replicas[1].replica: replica 1 is already replicas[0]`},
		"state":            {status("{replicas: [{replica: 0, state: running}]}"), `5:41: status.replicas[0].state: unknown value "running"; did you mean Running?`},
		"layers":           {status("{replicas: [{replica: 0, offloadedLayers: 3, totalLayers: 2}]}"), `5:51: status.replicas[0].offloadedLayers: want from 0 to the 2 of totalLayers, have 3`},
		"node":             {status("{replicas: [{replica: 0, placements: [{task: node-0, node: gup}]}]}"), `5:68: status.replicas[0].placements[0].node: there is no node "gup"; did you mean "gpu"?`},
		"task":             {status("{replicas: [{replica: 0, placements: [{task: nod-0, node: gpu}]}]}"), `5:54: status.replicas[0].placements[0].task: model/chat-0 has no task "nod-0"; did you mean "node-0"?`},
		"form of before":   {status("{replicas: [{replica: 0, form: 2 devices, placements: [{task: node-0, node: gpu}]}]}"), ``},
		"no device":        {status("{replicas: [{replica: 0, placements: [{task: server-0, node: gpu, devices: [0, 2]}]}]}"), `5:47: status.replicas[0].placements[0]: server-0 cannot be running on gpu: it has no device 2; its 2 devices count from 0`},
		"a device twice":   {status("{replicas: [{replica: 0, placements: [{task: server-0, node: gpu, devices: [1, 1]}]}]}"), `5:47: status.replicas[0].placements[0]: server-0 cannot be running on gpu: device 1 is listed twice`},
		"held by another":  {status("{replicas: [{replica: 0, placements: [{task: server-0, node: gpu, devices: [1]}]}, {replica: 1, placements: [{task: node-0, node: gpu}]}]}"), `5:47: status.replicas[0].placements[0]: server-0 cannot be running on gpu: device 1 is held by model/chat-1/node-0`},
		"two on a node":    {status("{replicas: [{replica: 0, placements: [{task: node-0, node: gpu}]}, {replica: 1, placements: [{task: node-0, node: gpu}]}]}"), `5:102: status.replicas[1].placements[0]: node-0 cannot be running on gpu: too few of its devices are free for that; list the devices of every running task, or correct the node`},
		"readings":         {aNodeWith("freeMemory: [1Gi, 1Gi, 1Gi]"), `5:22: status.freeMemory: node "n" has 2 devices, and 3 were read`},
		"negative reading": {aNodeWith("freeMemory: [-1]"), `5:23: status.freeMemory[0]: -1 is negative`},
		"files":            {aNodeWith("files: {m: 3}"), `5:21: status.files.m: want text, have the number 3; put it in quotes: "3"`},
	}
	for name, tc := range tests {
		if diff := cmp.Diff(tc.want, problems(tc.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func aNodeWith(status string) string {
	return node("{resources: {cpu: 8, memory: 8Gi}, devices: {product: A10, count: 2, memory: 24Gi}}") + "\nstatus: {" + status + "}"
}
