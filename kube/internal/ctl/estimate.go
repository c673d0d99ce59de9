package ctl

import (
	"fmt"
	"os"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	root "github.com/berth-project/berth/command"
	"github.com/berth-project/berth/internal/estimate/library"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/kube/internal/modelsource"
	"github.com/spf13/cobra"
)

// contextFlag is the name of the flag for the tokens of a sequence. The flag --context is that of
// kubectl.
const contextFlag = "context-tokens"

func (p *program) estimate() *cobra.Command {
	var flags *root.EstimateFlags
	c := &cobra.Command{
		Use:   "estimate MODEL|PRESET|FILE",
		Short: "Estimate how much memory a model needs, and on which node groups of the cluster it fits",
		Long: `Estimates how much memory a model needs, as "berth estimate" does. For each node
group of the cluster it shows the smallest number of devices that hold the model,
how the model is divided over them, the largest context that fits, and how many
nodes one replica takes if it uses whole nodes. All devices count as free.

MODEL is a Model of the cluster: NAME, model/NAME or model/NAMESPACE/NAME. PRESET
is the name of a preset (phi-4-mini, or preset/phi-4-mini if a Model has the same
name). FILE is a .yaml file with one or more Models, a .gguf file, or a directory
with config.json and safetensors files. Models are estimated with the settings of
their specs; flags take precedence.

The flag --context-tokens is the flag --context of "berth estimate". Without an
argument, -f names the .yaml file; with one, it names a file that "snapshot
--objects" wrote.`,
		Example: `  kubectl berth estimate model/chat
  kubectl berth estimate llama-3.3-70b --kv-bits 8
  kubectl berth estimate -f chat.yaml`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 && p.flags.file != "" {
				return nil
			}
			return oneArg("the name of a model, of a preset or of a file")(c, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := flags.Check(); err != nil {
				return err
			}
			if len(args) > 0 {
				return p.runEstimate(flags, args[0])
			}
			file := p.flags.file
			if p.flags.file = ""; !root.IsManifest(file) {
				return fmt.Errorf("-f %s: without an argument, -f names a .yaml file with Models; with one, it names a file that \"%s snapshot --objects\" wrote", file, name)
			}
			return p.runEstimate(flags, file)
		},
	}
	flags = root.NewEstimateFlags(c, contextFlag)
	return c
}

// runEstimate estimates the model that the text names.
func (p *program) runEstimate(flags *root.EstimateFlags, text string) error {
	w, err := p.read()
	if err != nil {
		return err
	}
	in, err := p.build(w)
	if err != nil {
		return err
	}
	groups := in.State.View().Groups()
	if preset, is := strings.CutPrefix(text, "preset/"); is {
		if _, err := library.Known(preset); err != nil {
			return err
		}
		return p.answers.Estimate(flags, preset, groups)
	}
	o, err := w.modelToEstimate(text)
	if err != nil {
		return err
	}
	if o == nil {
		return w.withModelNames(p.answers.Estimate(flags, text, groups), text)
	}
	if _, err := library.Known(o.Name); err == nil && !strings.Contains(text, "/") {
		fmt.Fprintf(p.answers.Stderr(), "note: %s is also a preset; the answer is about model/%s/%s, and preset/%s is the preset\n", text, o.Namespace, o.Name, text)
	}
	own := *o
	own.Status = v1alpha1.ModelStatus{} // an estimate does not depend on it
	s, err := p.reader(in).Spec(&own)
	if err != nil {
		return fmt.Errorf("model/%s/%s cannot be estimated: %s", o.Namespace, o.Name, modelsource.ProblemText(err))
	}
	return p.answers.EstimateSpec(flags, s, groups)
}

// modelToEstimate returns the Model that the text names; nil if it names a preset or a file. A text
// with a kind must name a Model.
func (w *world) modelToEstimate(text string) (*v1alpha1.Model, error) {
	r := parseReference(text, w.namespace)
	switch {
	case root.IsManifest(text), strings.Contains(text, "/") && r.kind != kindModel:
		return nil, nil
	case r.kind == "":
		list, _ := w.models()
		for _, m := range list {
			if m.Namespace == r.namespace && m.Name == r.name {
				return m, nil
			}
		}
		return nil, nil
	}
	o, number, err := w.findModel(r)
	if err == nil && number != anyReplica {
		err = fmt.Errorf("%s is a replica; name model/%s", text, o.Name)
	}
	return o, err
}

// withModelNames adds the nearest names of Models to the error about a name that is neither a Model
// nor a preset nor a file.
func (w *world) withModelNames(err error, text string) error {
	if err == nil {
		return nil
	}
	if _, unknown := library.Known(text); unknown == nil {
		return err
	}
	if _, noFile := os.Stat(text); noFile == nil {
		return err
	}
	list, _ := w.models()
	var here []string
	for _, m := range list {
		if m.Namespace == w.namespace {
			here = append(here, m.Name)
		}
	}
	if near := nearestNames(text, here); len(near) > 0 {
		return fmt.Errorf("%w; the nearest Models of namespace %s are %s", err, w.namespace, explain.List(near, len(near)))
	}
	return err
}
