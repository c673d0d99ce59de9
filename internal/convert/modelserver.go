package convert

import (
	"encoding/json"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/phrase"
	"github.com/berth-project/berth/internal/strict"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

const maxPort = 65535

var distributions = []string{"Ray", "Native"}

// checkServer checks how the server of a replica is started. No decision depends on it.
func checkServer(b *backend.Backend, o *v1alpha1.ModelServer, at path, r reporter) {
	if o == nil {
		return
	}
	if strings.ContainsAny(o.Image, " \t\r\n") {
		r.errorf(at.Add("image"), "%s is not an image: write one such as vllm/vllm-openai:v0.11.2", phrase.Quote(o.Image))
	}
	if o.Port != 0 {
		checkRange(int(o.Port), 1, maxPort, at.Add("port"), r)
	}
	if checkEnum(o.Distribution, distributions, at.Add("distribution"), r) && o.Distribution != "" && b != nil && b.Name != "vllm" {
		r.errorf(at.Add("distribution"), "%s does not have this setting, only vllm has; leave it out", b.Name)
	}
	checkCache(o.Cache, at.Add("cache"), r)
	if s := o.TokenSecret; s != nil {
		checkNameAt(s.Name, "secret", at.Add("tokenSecret", "name"), r)
		if s.Key != "" && (len(s.Key) > maxName || len(validation.IsConfigMapKey(s.Key)) > 0) {
			r.errorf(at.Add("tokenSecret", "key"), "%s is not a key of a secret: use letters, digits, -, _ and .", phrase.Quote(s.Key))
		}
	}
	for i, name := range o.ImagePullSecrets {
		if name != "" { // checkDistinct reports it
			checkNameAt(name, "secret", at.Add("imagePullSecrets", i), r)
		}
	}
	checkDistinct(o.ImagePullSecrets, "secret", at.Add("imagePullSecrets"), r)
}

func checkCache(o *v1alpha1.ModelCache, at path, r reporter) {
	switch {
	case o == nil:
		return
	case (o.Claim == "") == (o.HostPath == ""):
		r.errorf(at, "say either claim, the name of a PersistentVolumeClaim, or hostPath, a directory of the nodes")
	case o.Claim != "":
		checkNameAt(o.Claim, "claim", at.Add("claim"), r)
	}
	checkAbsolute(o.HostPath, at.Add("hostPath"), r)
	checkAbsolute(o.MountPath, at.Add("mountPath"), r)
}

// checkAbsolute reports a path that Kubernetes does not accept. It may be left out.
func checkAbsolute(file string, at path, r reporter) {
	switch {
	case file == "":
	case !strings.HasPrefix(file, "/"):
		r.errorf(at, "%s is not an absolute path: write one such as /var/lib/models", phrase.Quote(file))
	case strings.Contains(file, ":"):
		r.errorf(at, "%s has a colon, which a path of a volume must not have", phrase.Quote(file))
	case strings.Contains(file+"/", "/../"):
		r.errorf(at, "%s has a step upwards (..), which a path of a volume must not have", phrase.Quote(file))
	}
}

// checkTemplate checks that the template is a PodTemplateSpec, without fields that it does not
// have and without those that Berth sets itself.
func checkTemplate(o *runtime.RawExtension, at path, r reporter) {
	if o == nil {
		return
	}
	text := o.Raw
	if text == nil && o.Object != nil {
		var err error
		if text, err = json.Marshal(o.Object); err != nil {
			r.errorf(at, "it cannot be written as JSON: %v", err)
			return
		}
	}
	var template corev1.PodTemplateSpec
	// Commands and variables of a pod may have any characters.
	errs := strict.DecodeJSON(text, &template, strict.Options{AnyText: true})
	for _, e := range errs {
		r.errorf(at, "%s", e.Error())
	}
	if template.Spec.SchedulerName != "" {
		r.errorf(at, "spec.schedulerName: Berth sets it, to the name of its scheduler; leave it out, and write schedulerName of the model to choose a profile")
	}
	if template.Spec.NodeName != "" {
		r.errorf(at, "spec.nodeName: the scheduler chooses the node; leave it out, and restrict the nodes with placement.nodeSelector")
	}
}
