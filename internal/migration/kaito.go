package migration

import (
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/estimate/preset"
	"github.com/berth-project/berth/internal/phrase"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const unitNode = "Node"

// kaitoToken is the key of the secret with the token for the Hugging Face Hub.
const kaitoToken = "HF_TOKEN"

// kaitoInference are the rules about how a model is served, below the path of inference.
var kaitoInference = rules{
	"template":                   {says: "a pod template is not a model: run it as a Deployment with schedulerName: berth-scheduler and a node selector, or write a Model with backend: custom and memory"},
	"config":                     {says: "the ConfigMap is not read: write what it says about memory as fields of the Model, such as context, and other flags under server.args"},
	"adapters":                   {says: "the size of the adapters is not known: write them under adapters, each with its name, and path or memory"},
	"preset.accessMode":          {says: "the server loads the weights from the Hugging Face Hub: name a secret under server.tokenSecret if these are private", unless: []string{"public"}},
	"preset.presetOptions.image": {says: "an image with the weights has no counterpart: the server loads them from the Hugging Face Hub, or name a volume under server.cache"},
}

var workspaceRules = rules{
	"tuning":                  {says: "fine-tuning is not scheduled as a model; run it as a Job"},
	"resource.count":          {says: "the number of nodes of a replica follows from the memory that it needs", unless: []string{"1"}},
	"resource.preferredNodes": {says: "it has no counterpart: label these nodes, and name the label under placement.nodeSelector"},
}

var inferenceSetRules = rules{
	"spec.nodeCountLimit":    {says: "it has no counterpart in a Model: put the model in a queue with limits of devices"},
	"spec.updateStrategy":    {says: "it has no counterpart: set the strategy of the objects that serve the model"},
	"spec.autoUpgrade":       {says: "it has no counterpart: the version of the server is backendVersion or server.image"},
	"spec.template.metadata": {says: "labels of the Workspaces have no counterpart: labels of the pods belong under template.metadata of the Model"},
}

// under returns the rules with a path before theirs.
func (r rules) under(at string) rules {
	out := rules{}
	for name, x := range r {
		out[at+"."+name] = x
	}
	return out
}

// workspace converts a Workspace of KAITO: a model with one replica.
func workspace(m *migration, o *object) {
	o.takeMeta()
	w := &kaito{m: m, object: o, resource: path{"resource"}, inference: path{"inference"}, selector: path{"resource", "labelSelector"}}
	if o.node(path{"tuning"}) == nil || o.node(path{"inference"}) != nil {
		w.model()
	} else {
		o.ignore("resource") // it is part of what tuning needs
	}
	o.annotations("kaito.sh/", "scaledobject.kaito.sh/")
	o.rest(metadataRules, workspaceRules, kaitoInference.under("inference"))
}

// inferenceSet converts an InferenceSet of KAITO: a model with several replicas.
func inferenceSet(m *migration, o *object) {
	o.takeMeta()
	template := path{"spec", "template"}
	w := &kaito{m: m, object: o, resource: template.Add("resource"), inference: template.Add("inference"), selector: path{"spec", "labelSelector"}}
	if model := w.model(); model != nil {
		if n, set := take[int](o, "spec", "replicas"); set {
			model.Spec.Replicas = &n
		}
	}
	kaitoUpdateStrategy(o)
	o.annotations("kaito.sh/", "scaledobject.kaito.sh/")
	o.rest(metadataRules, inferenceSetRules, kaitoInference.under("spec.template.inference"))
}

// kaitoUpdateStrategy marks the strategy that an API server writes if there is none.
func kaitoUpdateStrategy(o *object) {
	at := path{"spec", "updateStrategy"}
	n := o.node(at.Add("rollingUpdate", "maxUnavailable"))
	if kind := o.node(at.Add("type")); kind != nil && kind.Value == "RollingUpdate" && (n == nil || n.Value == "1") {
		o.mark(at)
	}
}

// kaito is what Workspaces and InferenceSets share, which have it at different paths.
type kaito struct {
	m                             *migration
	object                        *object
	resource, inference, selector path
}

// model adds a Model. It returns nil if the object runs a pod template and no model.
func (k *kaito) model() *v1alpha1.Model {
	o := k.object
	if o.node(k.inference.Add("preset")) == nil && o.node(k.inference.Add("template")) != nil {
		o.mark(k.resource) // it says where the pods of the template run
		o.mark(k.selector)
		return nil
	}
	model := &v1alpha1.Model{TypeMeta: typeMeta(v1alpha1.KindModel), ObjectMeta: metav1.ObjectMeta{Name: o.meta.Name, Namespace: o.meta.Namespace, Labels: o.meta.Labels}}
	d := &Document{Object: model, id: modelID(model), from: o}
	k.m.models = append(k.m.models, d)
	model.Spec.Placement.Unit = unitNode
	model.Spec.Placement.NodeSelector = k.nodeSelector()
	model.Spec.Placement.InstanceType = o.text(k.resource.Add("instanceType")...)
	k.partition(&model.Spec.Placement)
	k.preset(d, model)
	return model
}

func modelID(m *v1alpha1.Model) string {
	if m.Namespace != "" {
		return "model/" + phrase.Clip(m.Namespace) + "/" + phrase.Clip(m.Name)
	}
	return "model/" + phrase.Clip(m.Name)
}

// nodeSelector takes the labels that nodes must have.
func (k *kaito) nodeSelector() map[string]string {
	o := k.object
	out, _ := take[map[string]string](o, k.selector.Add("matchLabels")...)
	list := k.selector.Add("matchExpressions")
	for i := range o.entries(list...) {
		at := list.Add(i)
		e, ok := take[metav1.LabelSelectorRequirement](o, at...)
		switch {
		case !ok:
		case e.Operator == metav1.LabelSelectorOpIn && len(e.Values) == 1:
			if out == nil {
				out = map[string]string{}
			}
			out[e.Key] = e.Values[0]
		default:
			o.notef(at, "a Model selects nodes by equal labels only: label the nodes that are meant, and name the label under placement.nodeSelector")
		}
	}
	if len(out) > 0 && o.node(k.resource.Add("instanceType")) != nil {
		o.notef(k.selector, "KAITO adds these labels to the nodes that it creates; with Berth, nodes must already have the labels of placement.nodeSelector")
	}
	return out
}

// partition takes how a replica takes a part of a node: a MIG slice, or some whole devices.
func (k *kaito) partition(p *v1alpha1.ModelPlacement) {
	o, at := k.object, k.resource.Add("partition")
	if o.node(at) == nil {
		return
	}
	o.touch(at)
	switch mode := o.text(at.Add("mode")...); mode {
	case "mig":
		p.Partition = o.text(at.Add("profile")...)
	case "accelerator":
		p.DevicesPerReplica, _ = take[int](o, at.Add("count")...)
	default:
		o.notef(at.Add("mode"), "the mode %s is not known", phrase.Quote(mode))
		return
	}
	p.Unit = ""
	if p.InstanceType != "" {
		if p.NodeSelector == nil {
			p.NodeSelector = map[string]string{}
		}
		p.NodeSelector[v1alpha1.LabelInstanceType] = p.InstanceType
		o.notef(k.resource.Add("instanceType"), "a model that takes a part of a node is not provisioned for: the instance type is written as a label under placement.nodeSelector")
		p.InstanceType = ""
	}
}

// preset takes the source of the model.
func (k *kaito) preset(d *Document, model *v1alpha1.Model) {
	o, at := k.object, k.inference.Add("preset")
	name := o.text(at.Add("name")...)
	options := at.Add("presetOptions")
	server := v1alpha1.ModelServer{}
	if secret := o.text(options.Add("modelAccessSecret")...); secret != "" {
		server.TokenSecret = &v1alpha1.SecretKey{Name: secret, Key: kaitoToken}
		model.Spec.Server = &server
	}
	if secrets, set := take[[]string](o, options.Add("imagePullSecrets")...); set && len(secrets) > 0 {
		server.ImagePullSecrets = secrets
		model.Spec.Server = &server
	}
	if name == "" {
		d.Problem = "spec.source: the object names no preset"
		return
	}
	d.setPreset(model, name, at.Add("name"))
}

// sizeUnknown is the problem of a model without a known source.
const sizeUnknown = "the size of the model is not known: write how much memory a replica needs under memory.total, or name its files under source, or write source.config and source.weights"

// setPreset sets the preset of the name. If there is none, the document has a problem.
func (d *Document) setPreset(model *v1alpha1.Model, name string, at path) {
	p, err := preset.Find(name)
	if err == nil {
		model.Spec.Source.Preset = p.Name
		repository := strings.ToLower(p.Repository)
		if strings.HasSuffix(strings.ToLower(name), "-instruct") && !strings.Contains(repository, "instruct") && !strings.HasSuffix(repository, "-it") {
			// One preset stands for two models of equal size, and its repository is the base model.
			model.Spec.Source.Repository = p.Repository + "-instruct"
		}
		return
	}
	if strings.Contains(name, "/") {
		model.Spec.Source.Repository = name
	}
	d.Problem = sizeUnknown
	d.from.notef(at, "%s", err)
}
